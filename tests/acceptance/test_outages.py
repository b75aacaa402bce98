"""An outage beyond the budget: the jobs fail as configured, and go on from their retained checkpoints."""

from __future__ import annotations

import pytest
from findings import why

from harness.acceptance import Accepted

pytestmark = pytest.mark.docker


@pytest.mark.exactly_once(scenario="outage-beyond-budget")
def test_beyond_the_budget_the_jobs_failed_and_began_lives_from_their_retained_checkpoints(
    accepted: Accepted,
) -> None:
    result = accepted.result
    failed = [job for job in result.jobs if job.state == "FAILED"]
    after = {job.name: job for job in result.jobs if not job.ended_by}

    assert [True] == [proof.bit for proof in result.faults], why(result)
    assert {"orders", "behavior-log"} == {job.name for job in failed}
    assert all(job.restarts >= job.restart_attempts for job in failed)
    assert all("/chk-" in after[job.name].restored_from for job in failed)
    assert result.budget is not None
    assert 2 == result.budget.fail_fast_s
