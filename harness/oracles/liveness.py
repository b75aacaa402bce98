"""Oracle: the job lives: RUNNING at the end, recovered after each fault, checkpoints completing again.

It can't see how long a single task stood still.
"""

from __future__ import annotations

import math

from harness.model import (
    Check,
    CheckpointRecord,
    Evidence,
    FaultProof,
    Finding,
    JobFailure,
    JobHistory,
    OracleResult,
    Severity,
    Verdict,
    worst,
)

NAME = "liveness"


def judge(evidence: Evidence) -> OracleResult:
    """INVALID when a job ended, or was awaited and never completed a checkpoint again after a fault."""
    verdicts: list[Verdict] = []
    checks: list[Check] = []
    findings: list[Finding] = []
    for job in evidence.jobs:
        alive = job.state == "RUNNING"
        checks.append(Check(name=f"{job.name} at the end", expected="RUNNING", actual=job.state, held=alive))
        if not alive:
            verdicts.append(
                Verdict.INVALID if job.state in ("FAILED", "FINISHED", "CANCELED") else Verdict.UNKNOWN
            )
            last = job.failures[-1].exception if job.failures else "no exception recorded"
            findings.append(_finding("job-not-running", f"{job.name} is {job.state}", "RUNNING", last))
        for proof in evidence.faults:
            checks.append(_came_back(job, proof))
            if not checks[-1].held:
                verdicts.append(Verdict.INVALID if _was_awaited(evidence, proof) else Verdict.UNKNOWN)
                findings.append(
                    _finding("no-progress", checks[-1].name, checks[-1].expected, checks[-1].actual)
                )
        strange = [failure for failure in job.failures if not _explained(job, failure, evidence.faults)]
        unrecorded = max(0, job.restarts - len(job.failures))
        checks.append(
            Check(
                name=f"{job.name}: every restart is explained by a fault",
                expected="0 without a fault's explanation",
                actual=f"{len(strange) + unrecorded} of {job.restarts}",
                held=not strange and not unrecorded,
            )
        )
        if not checks[-1].held:
            verdicts.append(Verdict.UNKNOWN)
            first = strange[0].exception if strange else f"{unrecorded} restarts without a recorded failure"
            actual = f"{checks[-1].actual}: {first}"
            findings.append(_finding("unexplained-restarts", checks[-1].name, checks[-1].expected, actual))
    completed = sum(job.counts.completed for job in evidence.jobs)
    verdicts.append(Verdict.VALID if completed else Verdict.UNKNOWN)
    return OracleResult(
        oracle=NAME,
        verdict=worst(verdicts),
        examined=completed,
        unit="checkpoints",
        checks=tuple(checks),
        findings=tuple(findings),
    )


def _was_awaited(evidence: Evidence, proof: FaultProof) -> bool:
    """Whether the fault was injected and the run went on until the job came back or a bound was over."""
    went_on = bool(evidence.ended_early) or len(evidence.fences) >= evidence.expected_fences
    return went_on and not evidence.interrupted and proof.injected_at_ms > 0


def _explained(job: JobHistory, failure: JobFailure, faults: tuple[FaultProof, ...]) -> bool:
    """Whether a failure belongs to a fault: from its injection to the first checkpoint completed after it.

    In this window one kill may cost several restarts: the loss itself, a deployment on the node that is
    gone but not yet missed, and one that Paimon's committer makes on purpose after it recommits.
    """
    return any(
        0 < proof.injected_at_ms <= failure.at_ms <= _first_completion_after(job, proof.injected_at_ms)
        for proof in faults
    )


def _first_completion_after(job: JobHistory, at_ms: int) -> float:
    ends = [record.triggered_at_ms + record.duration_ms for record in _completed_after(job, at_ms)]
    return min(ends, default=math.inf)


def _completed_after(job: JobHistory, at_ms: int) -> list[CheckpointRecord]:
    """The checkpoints that were triggered after a time and completed."""
    return [
        record
        for record in job.checkpoints
        if record.status == "COMPLETED" and record.triggered_at_ms > at_ms
    ]


def _came_back(job: JobHistory, proof: FaultProof) -> Check:
    after = _completed_after(job, max(proof.healed_at_ms, proof.injected_at_ms))
    recovered = f"recovered in {(proof.recovered_at_ms - proof.injected_at_ms) / 1000:.1f} s"
    return Check(
        name=f"{job.name} after {proof.fault}: checkpoints complete again",
        expected="at least 1 checkpoint",
        actual=f"{len(after)} checkpoints, {recovered if proof.recovered_at_ms else 'did not recover'}",
        held=bool(after) and proof.recovered_at_ms > 0,
    )


def _finding(code: str, what: str, expected: str, actual: str) -> Finding:
    return Finding(
        code=code,
        severity=Severity.ERROR,
        what=what,
        expected=expected,
        actual=actual,
        todo="see logs/jobmanager.log",
    )
