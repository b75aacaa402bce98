"""Fault: kill -9 of the JVM of a TaskManager that holds tasks of the jobs (guide §5.2, test 1)."""

from __future__ import annotations

import time

from harness.errors import FaultError, FlinkUnreachable, UsageError, WaitTimeout
from harness.faults import processes
from harness.faults.comebacks import Comebacks
from harness.faults.victims import VICTIMS, choose, held_tasks
from harness.model import Check, FaultProof, NodeState, Role
from harness.ports import FaultContext, Stack
from harness.waiting import wait_until


class KillTaskManager:
    """Ends a TaskManager's process at once; the restart policy of its container brings it back.

    `victim` is `holding` (one that runs tasks of every job, or of some if there is no such; chosen by
    the seed) or `idle` (one that runs none: it proves nothing, and a run with it must end UNKNOWN).

    Proof: the victim held tasks; its process is gone and its node lives a second life; each job that
    lost tasks there restarted, and was restored from a checkpoint after the kill.
    """

    spends_attempts = True

    def __init__(self, *, victim: str = "holding") -> None:
        if victim not in VICTIMS:
            raise UsageError(
                f"kill-taskmanager: victim is {victim!r}", todo=f"use one of {', '.join(VICTIMS)}"
            )
        self._wanted = victim
        self._victim = ""
        self._held: dict[str, int] = {}
        self._process = ""
        self._injected_at_ms = 0
        self._before: NodeState | None = None
        self._after: NodeState | None = None
        self._comebacks = Comebacks()

    def inject(self, context: FaultContext) -> None:
        stack = context.stack
        self._victim, self._held = choose(context, self._wanted)
        self._comebacks = Comebacks(context.jobs)
        self._before = stack.state(self._victim)
        self._process = processes.jvm(stack, self._victim)
        killed_at_ms = int(time.time() * 1000)
        killed = stack.execute(self._victim, ["kill", "-KILL", self._process], user="root", timeout_s=10)
        # The shell may die with its container before it can report: 137 is as good as 0.
        if killed.status not in (0, 137):
            raise FaultError(f"kill -9 {self._process} in {self._victim} failed: {killed.output.strip()}")
        self._injected_at_ms = killed_at_ms

    def prove(self, context: FaultContext) -> None:
        struck = [job for job in context.jobs if self._held.get(job.name)]

        def second_life() -> NodeState | None:
            state = context.stack.state(self._victim)
            return state if self._before and state.started_at != self._before.started_at else None

        def all_came_back() -> bool:
            each = [self._comebacks.came_back(job, since_ms=self._injected_at_ms) for job in struck]
            return all(each)

        try:
            self._after = wait_until(
                "the victim's second life", second_life, timeout_s=min(30, context.bound_s)
            )
        except WaitTimeout:
            self._after = None  # the effect that did not come is a check that does not hold
        try:
            wait_until(
                "every job that lost tasks to restart and be restored",
                all_came_back,
                timeout_s=context.bound_s,
                retry_on=(FlinkUnreachable,),
            )
        except WaitTimeout:
            return

    def heal(self, stack: Stack) -> None:
        """Start the victim if its restart policy did not; in another process, any stopped worker."""
        for node in stack.nodes():
            if node.role is Role.TASKMANAGER and not stack.state(node.name).running:
                stack.ensure_running(node.name)

    def recover(self, context: FaultContext) -> None:
        """Nothing to do: Flink restarts the jobs."""

    def proof(self) -> FaultProof:
        before, after = self._before, self._after
        checks = [
            held_tasks(self._held),
            Check(
                name="its process is gone, its node lives again",
                expected=f"another start than {before.started_at if before else 'never'}",
                actual=f"process {self._process} killed; started {after.started_at if after else 'no more'}",
                held=after is not None,
            ),
        ]
        for name in (name for name, tasks in self._held.items() if tasks):
            checks += self._comebacks.checks(name, since="the kill")
        return FaultProof(
            fault="kill-taskmanager",
            node=self._victim,
            injected_at_ms=self._injected_at_ms,
            healed_at_ms=0,
            recovered_at_ms=0,
            checks=tuple(checks),
        )
