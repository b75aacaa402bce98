"""Outages that burn restart attempts: within the budget, and beyond it from a retained checkpoint."""

from __future__ import annotations

import pytest
from findings import why

from harness.model import RunResult, Verdict
from harness.pytest_plugin import Accept

pytestmark = pytest.mark.docker

OUTAGES = """
name: outages
description: Connections to the storage are reset, first for a while, then for longer than the restarts last
seed: 20260706
profile: fast
workload: {rate: 500, initial_rows: 2000}
steady_checkpoints: 1
faults:
  - fault: cut-storage
    with: {mode: reject}
  - fault: cut-storage
    with: {mode: reject, until: job-failed, at_most_s: 600}
oracles: all
"""


@pytest.fixture(scope="module")
def outages(accept: Accept) -> RunResult:
    """One run with an outage within the budget and one beyond it."""
    return accept(OUTAGES).result


def test_both_outages_are_survived_exactly(outages: RunResult) -> None:
    assert Verdict.VALID is outages.verdict, why(outages)
    assert [True, True] == [proof.bit for proof in outages.faults]


def test_beyond_the_budget_each_job_failed_and_began_a_life_from_its_retained_checkpoint(
    outages: RunResult,
) -> None:
    failed = [job for job in outages.jobs if job.state == "FAILED"]
    after = {job.name: job for job in outages.jobs if not job.ended_by}

    assert {"orders", "behavior-log"} == {job.name for job in failed}
    assert all(job.restarts >= job.restart_attempts for job in failed)
    assert all("/chk-" in after[job.name].restored_from for job in failed)
    assert outages.budget is not None
    assert outages.budget.fail_fast_s == 20
