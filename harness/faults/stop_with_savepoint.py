"""Fault: stop with savepoint, let the source go on, start from the savepoint (guide §5.2, test 3)."""

from __future__ import annotations

import time
from collections.abc import Sequence

from harness.errors import FlinkError, UsageError, WaitTimeout
from harness.faults.lives import Start, not_restored, start_all
from harness.flink.together import of_each
from harness.model import Check, FaultProof
from harness.ports import FaultContext, Job, Stack
from harness.waiting import wait_until

STARTS = ("savepoint", "checkpoint", "nothing")


class StopWithSavepoint:
    """Stops every job with a savepoint, waits while the source commits, and starts each from its own.

    `operations` is how many the source has to commit while the jobs are down. `start_from` is `savepoint`,
    or a defect to plant, whose run must not end VALID: `checkpoint` cancels each job and starts it from
    its retained checkpoint, so that no savepoint is used; `nothing` starts it without any state.

    Proof, per job: it was stopped with a savepoint; the source went on while it was down; the savepoint
    that it was restored from is that one. What the sink held meanwhile is kept for an oracle.
    """

    spends_attempts = False

    def __init__(self, *, operations: int = 1000, start_from: str = "savepoint") -> None:
        if isinstance(operations, bool) or not isinstance(operations, int) or operations < 1:
            raise UsageError(
                f"stop-with-savepoint: operations is {operations!r}", todo="use a whole number from 1 on"
            )
        if start_from not in STARTS:
            raise UsageError(
                f"stop-with-savepoint: start_from is {start_from!r}", todo=f"use one of {', '.join(STARTS)}"
            )
        self._operations = operations
        self._start_from = start_from
        self._injected_at_ms = 0
        self._savepoints: dict[str, str] = {}
        self._refusals: dict[str, str] = {}
        self._committed_before = 0
        self._committed_meanwhile = 0
        self._states: dict[str, str] = {}
        self._restored: dict[str, Check] = {}

    def inject(self, context: FaultContext) -> None:
        began_at_ms = int(time.time() * 1000)
        bound_s = context.checkpoint_s + context.bound_s

        def stop(job: Job) -> None:
            try:
                if self._start_from == "checkpoint":
                    job.cancel(timeout_s=bound_s)
                    self._refusals[job.name] = "cancelled without a savepoint"
                else:
                    self._savepoints[job.name] = job.stop_with_savepoint(timeout_s=bound_s)
            except (FlinkError, WaitTimeout) as error:
                self._refusals[job.name] = error.what

        of_each(context.jobs, stop)
        self._committed_before = context.committed()
        self._injected_at_ms = began_at_ms
        if self._savepoints:
            context.keep_sink(dict(self._savepoints))

    def prove(self, context: FaultContext) -> None:
        self._await_operations(context)
        for job in context.jobs:  # afterwards: it was down all the while
            try:
                self._states[job.name] = wait_until(
                    f"{job.name}'s state", job.state, timeout_s=context.bound_s, retry_on=(FlinkError,)
                )
            except WaitTimeout as error:
                self._states[job.name] = error.what

    def _await_operations(self, context: FaultContext) -> None:
        def went_on() -> bool:
            self._committed_meanwhile = context.committed() - self._committed_before
            return self._committed_meanwhile >= self._operations

        try:
            wait_until(f"{self._operations} operations of the source", went_on, timeout_s=context.bound_s)
        except WaitTimeout:
            return  # the effect that did not come is a check that does not hold

    def heal(self, stack: Stack) -> None:
        """The jobs were stopped, and no node was touched: there is nothing to undo."""

    def recover(self, context: FaultContext) -> None:
        """Start every job that was stopped from its savepoint."""
        starts = [
            Start(job=job, path=path, wanted=wanted, kind="savepoint", why=f"stopped with savepoint {wanted}")
            for job in context.jobs
            for path, wanted in self._place_of(job)
        ]
        self._restored = start_all(starts, bound_s=context.bound_s)

    def _place_of(self, job: Job) -> Sequence[tuple[str, str]]:
        """From where a job is to be started, and from where it should be; nothing for one that runs."""
        if self._start_from == "checkpoint":
            return [(job.retained_checkpoint(), "its savepoint")]
        path = self._savepoints.get(job.name, "")
        return [(path if self._start_from == "savepoint" else "", path)] if path else []

    def proof(self) -> FaultProof:
        checks: list[Check] = []
        for name in sorted({*self._savepoints, *self._refusals}):
            path, state = self._savepoints.get(name, ""), self._states.get(name, "")
            checks += [
                Check(
                    name=f"{name}: stopped with a savepoint",
                    expected="the path of a savepoint",
                    actual=path or self._refusals.get(name, "") or "no path",
                    held=bool(path),
                ),
                Check(
                    name=f"{name}: was down while the source went on",
                    expected=f"FINISHED, at least {self._operations} operations meanwhile",
                    actual=f"{state or 'not seen'}, {self._committed_meanwhile} operations meanwhile",
                    held=state == "FINISHED" and self._committed_meanwhile >= self._operations,
                ),
                self._restored.get(name)
                or not_restored(name, path or "its savepoint", "savepoint", "not started"),
            ]
        return FaultProof(
            fault="stop-with-savepoint",
            node="",
            injected_at_ms=self._injected_at_ms,
            healed_at_ms=0,
            recovered_at_ms=0,
            checks=tuple(checks),
        )
