"""Fault: kill -9 of the JVM of a TaskManager that holds tasks of the job (guide §5.2, test 1)."""

from __future__ import annotations

import time

from harness.errors import FaultError, FlinkUnreachable, UsageError, WaitTimeout
from harness.model import Check, FaultProof, NodeState, Role
from harness.ports import FaultContext, Job, Stack
from harness.waiting import wait_until

VICTIMS = ("holding", "idle")


class KillTaskManager:
    """Ends a TaskManager's process at once; the restart policy of its container brings it back.

    `victim` is `holding` (one that runs tasks of the job, chosen by the seed) or `idle` (one that
    runs none: it proves nothing, and a run with it must end UNKNOWN).

    Proof: the victim held tasks; its process is gone and its node lives a second life; the job lost
    tasks there and restarted; it was restored from a checkpoint after the kill.
    """

    def __init__(self, *, victim: str = "holding") -> None:
        if victim not in VICTIMS:
            raise UsageError(
                f"kill-taskmanager: victim is {victim!r}", todo=f"use one of {', '.join(VICTIMS)}"
            )
        self._wanted = victim
        self._victim = ""
        self._tasks_held = 0
        self._process = ""
        self._injected_at_ms = 0
        self._before: NodeState | None = None
        self._after: NodeState | None = None
        self._restarts_before = 0
        self._restarts_after = 0
        self._restore = ""

    def inject(self, context: FaultContext) -> None:
        stack, job = context.stack, context.job
        places = job.places()
        managers = [node.name for node in stack.nodes() if node.role is Role.TASKMANAGER]
        held = {name: sum(place.taskmanager == name for place in places) for name in managers}
        candidates = sorted(name for name in managers if bool(held[name]) == (self._wanted == "holding"))
        if not candidates:
            raise FaultError(f"no TaskManager is {self._wanted}: tasks per TaskManager are {held}")
        self._victim = context.rng.choice(candidates)
        self._tasks_held = held[self._victim]
        self._restarts_before = job.restarts()
        self._before = stack.state(self._victim)
        self._process = _jvm(stack, self._victim)
        killed_at_ms = int(time.time() * 1000)
        killed = stack.execute(self._victim, ["kill", "-KILL", self._process], user="root", timeout_s=10)
        # The shell may die with its container before it can report: 137 is as good as 0.
        if killed.status not in (0, 137):
            raise FaultError(f"kill -9 {self._process} in {self._victim} failed: {killed.output.strip()}")
        self._injected_at_ms = killed_at_ms

    def prove(self, context: FaultContext) -> None:
        stack, job = context.stack, context.job

        def second_life() -> NodeState | None:
            state = stack.state(self._victim)
            return state if self._before and state.started_at != self._before.started_at else None

        def lost_tasks() -> int | None:
            self._restarts_after = job.restarts()
            return self._restarts_after if self._restarts_after > self._restarts_before else None

        try:
            self._after = wait_until(
                "the victim's second life", second_life, timeout_s=min(30, context.bound_s)
            )
            wait_until(
                "the job to restart", lost_tasks, timeout_s=context.bound_s, retry_on=(FlinkUnreachable,)
            )
            self._restore = wait_until(
                "a restore after the kill",
                lambda: _restored_since(job, self._injected_at_ms),
                timeout_s=context.bound_s,
                retry_on=(FlinkUnreachable,),
            )
        except WaitTimeout:
            return  # the effect that did not come is a check that does not hold

    def heal(self, stack: Stack) -> None:
        """Start the victim if its restart policy did not; in another process, any stopped worker."""
        for node in stack.nodes():
            if node.role is Role.TASKMANAGER and not stack.state(node.name).running:
                stack.ensure_running(node.name)

    def proof(self) -> FaultProof:
        before, after = self._before, self._after
        checks = (
            Check(
                name="the victim held tasks of the job",
                expected="at least 1 task",
                actual=f"{self._tasks_held} tasks",
                held=self._tasks_held > 0,
            ),
            Check(
                name="its process is gone, its node lives again",
                expected=f"another start than {before.started_at if before else 'never'}",
                actual=f"process {self._process} killed; started {after.started_at if after else 'no more'}",
                held=after is not None,
            ),
            Check(
                name="the job lost tasks and restarted",
                expected=f"more than {self._restarts_before} restarts",
                actual=f"{self._restarts_after} restarts",
                held=self._restarts_after > self._restarts_before,
            ),
            Check(
                name="the job was restored from a checkpoint",
                expected="a restore after the kill",
                actual=self._restore or "none",
                held=bool(self._restore),
            ),
        )
        return FaultProof(
            fault="kill-taskmanager",
            node=self._victim,
            injected_at_ms=self._injected_at_ms,
            healed_at_ms=0,
            recovered_at_ms=0,
            checks=checks,
        )


def _jvm(stack: Stack, node: str) -> str:
    found = stack.execute(node, ["pgrep", "-x", "java"], user="root")
    processes = found.output.split()
    if found.status != 0 or len(processes) != 1:
        raise FaultError(f"{node}: expected one JVM, found {processes or 'none'}")
    return processes[0]


def _restored_since(job: Job, at_ms: int) -> str:
    restore = job.last_restore()
    if restore is None or restore.at_ms < at_ms:
        return ""
    return f"checkpoint {restore.checkpoint_id}, {restore.path or 'path not reported'}"
