"""Oracle: the jobs live: RUNNING at the end, recovered after each fault, checkpoints completing again.

A job may have had several lives; only the last one must run. It can't see how long a single task stood
still.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

from harness.model import (
    CheckpointRecord,
    Evidence,
    FaultProof,
    JobFailure,
    JobHistory,
    OracleResult,
    Verdict,
)
from harness.oracles.exhibits import Exhibits
from harness.oracles.judgement import Judgement

NAME = "liveness"

_ENDED = ("FAILED", "FINISHED", "CANCELED")


def judge(exhibits: Exhibits) -> OracleResult:
    """INVALID when a job ended, or was awaited and never completed a checkpoint again after a fault."""
    evidence = exhibits.evidence
    judgement = Judgement(NAME, unit="checkpoints")
    judgement.examined = sum(life.counts.completed for life in evidence.jobs)
    names = [table.name for table in evidence.tables]
    names += sorted({life.name for life in evidence.jobs} - set(names))
    for name in names:
        lives = sorted((life for life in evidence.jobs if life.name == name), key=lambda life: life.life)
        _Job(judgement, evidence, name, lives).judge()
    return judgement.result()


class _Job:
    """One job in all its lives, the first one first, under judgement."""

    def __init__(
        self, judgement: Judgement, evidence: Evidence, name: str, lives: Sequence[JobHistory]
    ) -> None:
        self._judgement = judgement
        self._evidence = evidence
        self._name = name
        self._lives = lives
        self._find = partial(judgement.find, todo="see logs/jobmanager.log")

    def judge(self) -> None:
        numbers = [life.life for life in self._lives]
        if not numbers or numbers != list(range(1, len(numbers) + 1)):
            self._find(
                Verdict.UNKNOWN,
                "life-unknown",
                f"{self._name}: it is not known what became of the job",
                expected="a history of each of its lives",
                actual=f"lives {', '.join(map(str, numbers))}" if numbers else "none",
            )
        if not numbers:
            return
        for life in self._lives[:-1]:
            self._ended_on_purpose(life)
        self._runs(self._lives[-1])
        for number, proof in enumerate(self._evidence.faults, start=1):
            self._came_back(number, proof)
        for life in self._lives:
            self._restarts(life)

    def _ended_on_purpose(self, life: JobHistory) -> None:
        """An earlier life was stopped, or used up its restarts while a fault lasted."""
        by_a_fault = bool(life.failures) and self._explained(life.failures[-1])
        held = bool(life.ended_by) and (life.state == "FINISHED" or (life.state == "FAILED" and by_a_fault))
        reason = life.ended_by or "for no known reason"
        if not self._judgement.check(
            f"{self._life(life)} ended on purpose, or by a fault",
            expected="FINISHED, or FAILED during a fault",
            actual=f"{life.state}, {reason}",
            held=held,
        ):
            ended = life.state == "FAILED" and bool(life.failures)
            self._find(
                Verdict.INVALID if ended else Verdict.UNKNOWN,
                "life-ended",
                f"{self._life(life)} is {life.state}, and no fault explains it",
                expected="FINISHED, or FAILED during a fault",
                actual=f"{reason}; {_last_exception(life)}",
            )

    def _runs(self, life: JobHistory) -> None:
        if not self._judgement.check(
            f"{self._name} at the end", expected="RUNNING", actual=life.state, held=life.state == "RUNNING"
        ):
            self._find(
                Verdict.INVALID if life.state in _ENDED else Verdict.UNKNOWN,
                "job-not-running",
                f"{self._name} is {life.state}",
                expected="RUNNING",
                actual=_last_exception(life),
            )

    def _came_back(self, number: int, proof: FaultProof) -> None:
        after = self._completed_after(max(proof.healed_at_ms, proof.injected_at_ms))
        recovered = f"recovered in {(proof.recovered_at_ms - proof.injected_at_ms) / 1000:.1f} s"
        name = f"{self._name} after fault {number}, {proof.fault}: checkpoints complete again"
        expected = "at least 1 checkpoint"
        actual = f"{len(after)} checkpoints, {recovered if proof.recovered_at_ms else 'did not recover'}"
        held = bool(after) and proof.recovered_at_ms > 0
        if not self._judgement.check(name, expected=expected, actual=actual, held=held):
            self._find(
                Verdict.INVALID if self._was_awaited(proof) else Verdict.UNKNOWN,
                "no-progress",
                name,
                expected=expected,
                actual=actual,
            )

    def _restarts(self, life: JobHistory) -> None:
        strange = [failure for failure in life.failures if not self._explained(failure)]
        unrecorded = max(0, life.restarts - len(life.failures))
        name = f"{self._life(life)}: every restart is explained by a fault"
        expected = "0 without a fault's explanation"
        actual = f"{len(strange) + unrecorded} of {life.restarts}"
        held = not strange and not unrecorded
        if not self._judgement.check(name, expected=expected, actual=actual, held=held):
            first = strange[0].exception if strange else f"{unrecorded} restarts without a recorded failure"
            self._find(
                Verdict.UNKNOWN, "unexplained-restarts", name, expected=expected, actual=f"{actual}: {first}"
            )

    def _explained(self, failure: JobFailure) -> bool:
        """Whether a failure belongs to a fault: from its injection until the job is well again.

        That is when the first checkpoint has completed that was triggered after the fault was healed, in
        whatever life. Until then one fault may cost several restarts: the loss itself, a deployment on a
        node that is gone but not yet missed, and one that Paimon's committer makes on purpose after it
        recommits.
        """
        return any(
            0 < proof.injected_at_ms <= failure.at_ms <= self._well_again_at(proof)
            for proof in self._evidence.faults
        )

    def _well_again_at(self, proof: FaultProof) -> float:
        after = self._completed_after(max(proof.injected_at_ms, proof.healed_at_ms))
        return min((record.triggered_at_ms + record.duration_ms for record in after), default=math.inf)

    def _completed_after(self, at_ms: int) -> list[CheckpointRecord]:
        """The checkpoints of any life that were triggered after a time and completed; no savepoints."""
        return [
            record
            for life in self._lives
            for record in life.checkpoints
            if record.status == "COMPLETED" and not record.is_savepoint and record.triggered_at_ms > at_ms
        ]

    def _was_awaited(self, proof: FaultProof) -> bool:
        """Whether the fault was injected and the run went on until the job came back or a bound was over."""
        evidence = self._evidence
        every_fence = evidence.expected_fences * len(evidence.tables)
        went_on = bool(evidence.ended_early) or len(evidence.fences) >= every_fence
        return went_on and not evidence.interrupted and proof.injected_at_ms > 0

    def _life(self, life: JobHistory) -> str:
        return f"{self._name}, life {life.life}" if len(self._lives) > 1 else self._name


def _last_exception(life: JobHistory) -> str:
    return life.failures[-1].exception if life.failures else "no exception recorded"
