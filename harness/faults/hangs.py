"""Jobs that hang for a short while and must not restart: what their checkpoints did meanwhile and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import FlinkError, WaitTimeout
from harness.faults.comebacks import Comebacks
from harness.faults.standstill import Standstill
from harness.flink.rest import STALE_S
from harness.model import Check, CheckpointCounts
from harness.ports import Job
from harness.waiting import pause, wait_until

AFTERWARDS = 2
"""Checkpoints after which a restart is told too: the counters of the API are not equally old."""


@dataclass(frozen=True, kw_only=True)
class Hung:
    """A job's checkpoints while it hung: how many completed meanwhile, and were under way at the end."""

    completed: int
    under_way: int


class Hangs:
    """`last` while the JVM stands still, `go_on` once it was resumed, then the checks of each job."""

    def __init__(self) -> None:
        self._hung: dict[str, Hung] = {}

    def last(self, jobs: Sequence[Job], standstill: Standstill, *, for_s: float, bound_s: float) -> None:
        """Let `for_s` pass since the stop; at first, what completed before it may still be told."""
        pause(min(STALE_S, for_s / 2))
        before = _counts(jobs, bound_s)
        pause(max(0.0, for_s - standstill.passed_s))
        for name, now in _counts(jobs, bound_s).items():
            if name in before:
                completed = now.completed - before[name].completed
                self._hung[name] = Hung(completed=completed, under_way=now.in_progress)

    def go_on(self, jobs: Sequence[Job], comebacks: Comebacks, *, since_ms: int, bound_s: float) -> None:
        """Wait for checkpoints of each job, and note its restarts since the stop (epoch ms)."""
        before = _counts(jobs, bound_s)

        def went_on() -> bool:
            grown = [job.counts().completed - before[job.name].completed for job in jobs if before]
            return min(grown, default=0) >= AFTERWARDS

        try:
            wait_until(
                f"{AFTERWARDS} checkpoints of each job after the pause",
                went_on,
                timeout_s=bound_s,
                retry_on=(FlinkError,),
            )
            for job in jobs:
                comebacks.came_back(job, since_ms=since_ms)
        except (FlinkError, WaitTimeout):
            return  # what was not seen is a check that does not hold

    def checks(self, name: str, comebacks: Comebacks) -> list[Check]:
        """A job's two checks."""
        hung = self._hung.get(name)
        checkpoint = Check(
            name=f"{name}: a checkpoint hung",
            expected="one under way, none completed while the victim stood still",
            actual=f"{hung.under_way} under way, {hung.completed} completed" if hung else "not seen",
            held=hung is not None and hung.under_way > 0 and hung.completed == 0,
        )
        return [checkpoint, comebacks.no_restart(name, when=f"{AFTERWARDS} checkpoints after it")]


def _counts(jobs: Sequence[Job], bound_s: float) -> dict[str, CheckpointCounts]:
    """Each job's counters by name; nothing when they can't be read in time."""
    try:
        return wait_until(
            "the counters of each job",
            lambda: {job.name: job.counts() for job in jobs},
            timeout_s=bound_s,
            retry_on=(FlinkError,),
        )
    except WaitTimeout:
        return {}
