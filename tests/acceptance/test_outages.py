"""An outage beyond the budget: the job fails as configured, and goes on from its retained checkpoint."""

from __future__ import annotations

import pytest
from findings import why

from harness.model import RunResult, Verdict
from harness.pytest_plugin import Accept

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def outages(accept: Accept) -> RunResult:
    """One run with an outage beyond the budget."""
    return accept("outage-beyond-budget").result


def test_an_outage_beyond_the_budget_loses_nothing_and_doubles_nothing(outages: RunResult) -> None:
    assert Verdict.VALID is outages.verdict, why(outages)
    assert [True] == [proof.bit for proof in outages.faults]


def test_beyond_the_budget_the_job_failed_and_began_a_life_from_its_retained_checkpoint(
    outages: RunResult,
) -> None:
    failed = [job for job in outages.jobs if job.state == "FAILED"]
    after = {job.name: job for job in outages.jobs if not job.ended_by}

    assert ["orders"] == [job.name for job in failed]
    assert all(job.restarts >= job.restart_attempts for job in failed)
    assert all("/chk-" in after[job.name].restored_from for job in failed)
    assert outages.budget is not None
    assert 2 == outages.budget.fail_fast_s
