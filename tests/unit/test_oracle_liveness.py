"""The liveness oracle: every job runs in its last life, and came back after each fault."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import factories
import pytest
from judging import KEYS, codes, finding, judged

from harness.model import Evidence, JobFailure, OracleResult, Verdict

INJECTED_MS = factories.proof().injected_at_ms
STOPPED_MS = factories.stop_proof().injected_at_ms
EACH_TABLE = pytest.mark.parametrize("table", KEYS)


def alive(evidence: Evidence) -> OracleResult:
    return judged(evidence, "liveness")


def with_life(evidence: Evidence, name: str, life: int, **changes: Any) -> Evidence:
    """The evidence with one life of a job changed."""
    return replace(
        evidence,
        jobs=tuple(
            replace(job, **changes) if (job.name, job.life) == (name, life) else job for job in evidence.jobs
        ),
    )


def failures_at(*times_ms: int) -> tuple[JobFailure, ...]:
    return tuple(JobFailure(at_ms=at_ms, exception="RemoteTransport", taskmanager="") for at_ms in times_ms)


def never_again(evidence: Evidence) -> Evidence:
    """No job completed a checkpoint after the first fault."""
    first = factories.checkpoint(1, after_ms=0)
    return replace(evidence, jobs=tuple(replace(job, checkpoints=(first,)) for job in evidence.jobs))


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        ("FAILED", Verdict.INVALID),
        ("FINISHED", Verdict.INVALID),
        ("CANCELED", Verdict.INVALID),
        ("RESTARTING", Verdict.UNKNOWN),
        ("SUSPENDED", Verdict.UNKNOWN),
    ],
)
@EACH_TABLE
def test_a_job_that_does_not_run_at_the_end_is_never_valid(
    evidence: Evidence, table: str, state: str, verdict: Verdict
) -> None:
    failed = failures_at(STOPPED_MS + 1)
    result = alive(with_life(evidence, table, 2, state=state, failures=failed))

    assert verdict == result.verdict
    assert {"job-not-running"} == codes(result)
    assert "RemoteTransport" == finding(result, "job-not-running").actual


def test_a_job_that_was_stopped_and_never_started_again_is_invalid(evidence: Evidence) -> None:
    jobs = tuple(job for job in evidence.jobs if (job.name, job.life) != ("orders", 2))

    result = alive(replace(evidence, jobs=jobs))

    assert Verdict.INVALID == result.verdict
    assert {"job-not-running", "no-progress"} == codes(result)


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"state": "FINISHED", "ended_by": ""}, Verdict.UNKNOWN),
        ({"state": "CANCELED"}, Verdict.UNKNOWN),
        ({"state": "RUNNING"}, Verdict.UNKNOWN),
        ({"state": "FAILED", "failures": ()}, Verdict.UNKNOWN),
        ({"state": "FAILED", "failures": failures_at(INJECTED_MS - 1)}, Verdict.INVALID),
        ({"state": "FAILED", "failures": failures_at(INJECTED_MS + 35_000)}, Verdict.INVALID),
        ({"state": "FAILED", "ended_by": ""}, Verdict.INVALID),
    ],
    ids=[
        "finished, nobody knows why",
        "canceled",
        "still running",
        "failed, nobody knows of what",
        "failed before the fault",
        "failed after the fault",
        "failed, nobody started it again",
    ],
)
@EACH_TABLE
def test_an_earlier_life_that_ended_otherwise_than_on_purpose_is_never_valid(
    evidence: Evidence, table: str, changes: dict[str, Any], verdict: Verdict
) -> None:
    result = alive(with_life(evidence, table, 1, **{"restarts": 0} | changes))

    assert verdict == result.verdict
    assert "life-ended" in codes(result)


def test_an_earlier_life_may_have_failed_while_a_fault_lasted(evidence: Evidence) -> None:
    outlasted = with_life(
        evidence,
        "orders",
        1,
        state="FAILED",
        ended_by="out of attempts in the outage, restarted from the retained checkpoint",
        failures=failures_at(INJECTED_MS + 500, INJECTED_MS + 900),
    )

    result = alive(outlasted)

    assert Verdict.VALID == result.verdict


@EACH_TABLE
def test_no_checkpoint_after_a_fault_is_invalid(evidence: Evidence, table: str) -> None:
    clean_last = with_life(evidence, table, 2, checkpoints=())

    result = alive(clean_last)

    assert Verdict.INVALID == result.verdict
    assert {"no-progress"} == codes(result)
    assert "0 checkpoints, recovered in 10.0 s" == finding(result, "no-progress").actual
    assert finding(result, "no-progress").what.startswith(f"{table} after fault 2, stop-with-savepoint")


def test_checkpoints_of_a_later_life_are_progress_after_an_earlier_fault(evidence: Evidence) -> None:
    first = factories.checkpoint(1, after_ms=0)

    result = alive(with_life(evidence, "orders", 1, checkpoints=(first,)))

    assert Verdict.VALID == result.verdict


@pytest.mark.parametrize(
    "changes", [{"status": "FAILED"}, {"status": "IN_PROGRESS"}, {"is_savepoint": True}], ids=str
)
def test_what_is_not_a_completed_checkpoint_is_no_progress(
    evidence: Evidence, changes: dict[str, Any]
) -> None:
    jobs = tuple(
        replace(job, checkpoints=tuple(replace(item, **changes) for item in job.checkpoints))
        for job in evidence.jobs
    )

    result = alive(replace(evidence, jobs=jobs))

    assert Verdict.INVALID == result.verdict
    assert "no-progress" in codes(result)


def test_a_checkpoint_that_was_triggered_before_the_fault_was_healed_is_no_progress(
    evidence: Evidence,
) -> None:
    cut = factories.stop_proof()
    early = factories.checkpoint(12, after_ms=cut.healed_at_ms - factories.START_MS)

    result = alive(with_life(evidence, "orders", 2, checkpoints=(early,)))

    assert {"no-progress"} == codes(result)


def test_a_job_that_did_not_recover_in_its_bound_is_invalid(evidence: Evidence) -> None:
    down = replace(
        evidence,
        fences=evidence.fences[:2],
        faults=(replace(factories.proof(), recovered_at_ms=0),),
        ended_early="waited 99 s for every task of the job to run again",
    )

    result = alive(down)

    assert Verdict.INVALID == result.verdict
    assert finding(result, "no-progress").actual.endswith("did not recover")


@pytest.mark.parametrize(
    "changes",
    [
        {"interrupted": "stopped by the user"},
        {},
        {"ended_early": "no TaskManager is idle", "faults": (replace(factories.proof(), injected_at_ms=0),)},
    ],
    ids=["somebody stopped the run", "the harness failed", "the fault was never injected"],
)
def test_a_recovery_that_nobody_awaited_is_unknown(evidence: Evidence, changes: dict[str, Any]) -> None:
    cut = {"faults": (factories.proof(),), "fences": evidence.fences[:2]} | changes

    result = alive(replace(never_again(evidence), **cut))

    assert Verdict.UNKNOWN == result.verdict


def test_one_table_without_its_last_fence_means_that_the_run_did_not_go_on(evidence: Evidence) -> None:
    result = alive(replace(never_again(evidence), fences=evidence.fences[:-1]))

    assert Verdict.UNKNOWN == result.verdict


@EACH_TABLE
@pytest.mark.parametrize("life", [1, 2])
def test_restarts_without_a_recorded_failure_are_unknown(evidence: Evidence, table: str, life: int) -> None:
    result = alive(with_life(evidence, table, life, restarts=3))

    assert Verdict.UNKNOWN == result.verdict
    assert {"unexplained-restarts"} == codes(result)


def test_several_restarts_before_the_first_checkpoint_after_a_fault_are_explained_by_it(
    evidence: Evidence,
) -> None:
    failures = failures_at(INJECTED_MS + 256, INJECTED_MS + 1_422, INJECTED_MS + 7_537)

    result = alive(with_life(evidence, "orders", 1, restarts=3, failures=failures))

    assert Verdict.VALID == result.verdict


def test_a_restart_after_a_savepoint_is_explained_until_the_next_life_completes_a_checkpoint(
    evidence: Evidence,
) -> None:
    verdicts = [
        alive(with_life(evidence, "orders", 2, restarts=1, failures=failures_at(at_ms))).verdict
        for at_ms in (STOPPED_MS + 10_500, STOPPED_MS + 20_000)
    ]

    assert [Verdict.VALID, Verdict.UNKNOWN] == verdicts


def test_a_checkpoint_inside_of_a_fault_does_not_end_its_time(evidence: Evidence) -> None:
    long = replace(factories.proof(), healed_at_ms=INJECTED_MS + 25_000)
    inside = factories.checkpoint(5, after_ms=INJECTED_MS - factories.START_MS + 2_000)
    late = failures_at(INJECTED_MS + 24_000)
    cut = with_life(evidence, "orders", 1, failures=late, checkpoints=(inside,))

    result = alive(replace(cut, faults=(long, factories.stop_proof())))

    assert Verdict.VALID == result.verdict


@pytest.mark.parametrize("before_or_after_ms", [-1, 10 * 60_000], ids=["before", "long after"])
def test_a_restart_outside_of_a_faults_time_is_unknown(evidence: Evidence, before_or_after_ms: int) -> None:
    failures = failures_at(INJECTED_MS + 256, INJECTED_MS + before_or_after_ms)

    result = alive(with_life(evidence, "orders", 1, restarts=2, failures=failures))

    assert Verdict.UNKNOWN == result.verdict
    assert {"unexplained-restarts"} == codes(result)


@EACH_TABLE
def test_a_table_whose_job_is_not_known_is_unknown(evidence: Evidence, table: str) -> None:
    jobs = tuple(job for job in evidence.jobs if job.name != table)

    result = alive(replace(evidence, jobs=jobs))

    assert Verdict.UNKNOWN == result.verdict
    assert {"life-unknown"} == codes(result)


def test_a_life_that_is_not_known_is_unknown(evidence: Evidence) -> None:
    jobs = tuple(job for job in evidence.jobs if (job.name, job.life) != ("orders", 1))

    result = alive(replace(evidence, jobs=jobs))

    assert Verdict.UNKNOWN == result.verdict
    assert "lives 2" == finding(result, "life-unknown").actual


def test_a_job_that_feeds_no_table_is_judged_too(evidence: Evidence) -> None:
    other = replace(factories.job("other"), state="FAILED")

    result = alive(replace(evidence, jobs=(*evidence.jobs, other)))

    assert Verdict.INVALID == result.verdict


def test_jobs_of_which_nothing_is_known_are_unknown(evidence: Evidence) -> None:
    result = alive(replace(evidence, jobs=()))

    assert (Verdict.UNKNOWN, 0) == (result.verdict, result.examined)
