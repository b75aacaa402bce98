"""Fault: kill -9 of the JVM of a TaskManager that holds tasks of the jobs (guide §5.2, test 1)."""

from __future__ import annotations

import time

from harness.errors import FaultError, FlinkUnreachable, ReaderError, UsageError, WaitTimeout
from harness.model import Check, FaultProof, NodeState, Role
from harness.ports import FaultContext, Job, Stack
from harness.waiting import wait_until

VICTIMS = ("holding", "idle")

LOAD_SHARE = 0.9
"""A load with more rows than this share of the first rows counts as over: later deletes may hide its end."""


class KillTaskManager:
    """Ends a TaskManager's process at once; the restart policy of its container brings it back.

    `victim` is `holding` (one that runs tasks of every job, or of some if there is no such; chosen by
    the seed) or `idle` (one that runs none: it proves nothing, and a run with it must end UNKNOWN).
    With `initial_rows`, the number of rows in each source table at the start, it waits until the first
    load of every job is under way: some rows are in the sink, and not yet all of them.

    Proof: the victim held tasks; its process is gone and its node lives a second life; each job that
    lost tasks there restarted, and was restored from a checkpoint after the kill.
    """

    spends_attempts = True

    def __init__(self, *, victim: str = "holding", initial_rows: int = 0) -> None:
        if victim not in VICTIMS:
            raise UsageError(
                f"kill-taskmanager: victim is {victim!r}", todo=f"use one of {', '.join(VICTIMS)}"
            )
        if isinstance(initial_rows, bool) or not isinstance(initial_rows, int) or initial_rows < 0:
            raise UsageError(
                f"kill-taskmanager: initial_rows is {initial_rows!r}",
                todo="use the number of the workload's initial rows, or leave it away",
            )
        self._wanted = victim
        self._initial_rows = initial_rows
        self._victim = ""
        self._held: dict[str, int] = {}
        self._rows: dict[str, int] = {}
        self._process = ""
        self._injected_at_ms = 0
        self._before: NodeState | None = None
        self._after: NodeState | None = None
        self._restarts_before: dict[str, int] = {}
        self._restarts_after: dict[str, int] = {}
        self._restores: dict[str, str] = {}

    def inject(self, context: FaultContext) -> None:
        stack = context.stack
        if self._initial_rows:
            self._await_load(context)
        self._victim, self._held = self._choose(context)
        self._restarts_before = {job.name: job.restarts() for job in context.jobs}
        self._before = stack.state(self._victim)
        self._process = _jvm(stack, self._victim)
        if self._initial_rows:
            self._rows = {job.name: context.sink_rows(job.name) for job in context.jobs}
        killed_at_ms = int(time.time() * 1000)
        killed = stack.execute(self._victim, ["kill", "-KILL", self._process], user="root", timeout_s=10)
        # The shell may die with its container before it can report: 137 is as good as 0.
        if killed.status not in (0, 137):
            raise FaultError(f"kill -9 {self._process} in {self._victim} failed: {killed.output.strip()}")
        self._injected_at_ms = killed_at_ms

    def _await_load(self, context: FaultContext) -> None:
        """Until every job's load has begun, or one is over, or the bound is: the proof tells which."""

        def begun() -> bool:
            rows = [context.sink_rows(job.name) for job in context.jobs]
            return min(rows) > 0 or any(self._load_over(found) for found in rows)

        try:
            wait_until(
                "rows of every job's first load",
                begun,
                timeout_s=context.bound_s,
                retry_on=(FlinkUnreachable, ReaderError),
            )
        except WaitTimeout:
            return

    def _load_over(self, rows: int) -> bool:
        return rows >= LOAD_SHARE * self._initial_rows

    def _choose(self, context: FaultContext) -> tuple[str, dict[str, int]]:
        """A victim, and how many tasks of each job it holds."""
        managers = sorted(node.name for node in context.stack.nodes() if node.role is Role.TASKMANAGER)
        places = {job.name: job.places() for job in context.jobs}
        held = {
            manager: {
                name: sum(place.taskmanager == manager for place in found) for name, found in places.items()
            }
            for manager in managers
        }
        some = [manager for manager in managers if any(held[manager].values())]
        if self._wanted == "idle":
            candidates = [manager for manager in managers if manager not in some]
        else:
            candidates = [manager for manager in some if all(held[manager].values())] or some
        if not candidates:
            raise FaultError(f"no TaskManager is {self._wanted}: tasks per TaskManager are {held}")
        victim = context.rng.choice(candidates)
        return victim, held[victim]

    def prove(self, context: FaultContext) -> None:
        struck = [job for job in context.jobs if self._held.get(job.name)]

        def second_life() -> NodeState | None:
            state = context.stack.state(self._victim)
            return state if self._before and state.started_at != self._before.started_at else None

        def all_came_back() -> bool:
            each = [self._came_back(job) for job in struck]
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

    def _came_back(self, job: Job) -> bool:
        restarts = max(job.restarts(), self._restarts_after.get(job.name, 0))
        self._restarts_after[job.name] = restarts
        restore = job.last_restore()
        if job.name not in self._restores and restore and restore.at_ms >= self._injected_at_ms:
            self._restores[job.name] = (
                f"checkpoint {restore.checkpoint_id}, {restore.path or 'path not reported'}"
            )
        return restarts > self._restarts_before[job.name] and job.name in self._restores

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
            *self._load_checks(),
            Check(
                name="the victim held tasks of the jobs",
                expected="at least 1 task",
                actual=", ".join(f"{name} {tasks} tasks" for name, tasks in self._held.items()) or "0 tasks",
                held=sum(self._held.values()) > 0,
            ),
            Check(
                name="its process is gone, its node lives again",
                expected=f"another start than {before.started_at if before else 'never'}",
                actual=f"process {self._process} killed; started {after.started_at if after else 'no more'}",
                held=after is not None,
            ),
        ]
        for name in (name for name, tasks in self._held.items() if tasks):
            was, now = self._restarts_before.get(name, 0), self._restarts_after.get(name, 0)
            restore = self._restores.get(name, "")
            checks += [
                Check(
                    name=f"{name}: lost tasks and restarted",
                    expected=f"more than {was} restarts",
                    actual=f"{now} restarts",
                    held=now > was,
                ),
                Check(
                    name=f"{name}: restored from a checkpoint",
                    expected="a restore after the kill",
                    actual=restore or "none",
                    held=bool(restore),
                ),
            ]
        return FaultProof(
            fault="kill-taskmanager",
            node=self._victim,
            injected_at_ms=self._injected_at_ms,
            healed_at_ms=0,
            recovered_at_ms=0,
            checks=tuple(checks),
        )

    def _load_checks(self) -> list[Check]:
        most = int(LOAD_SHARE * self._initial_rows)
        checks = []
        for name, rows in self._rows.items():
            over = self._load_over(rows)
            told = "; it was over" if over else "" if rows else "; it had not begun"
            checks.append(
                Check(
                    name=f"{name}: its first load was under way",
                    expected=f"more than 0 and less than {most:,} of {self._initial_rows:,} rows in the sink",
                    actual=f"{rows:,} rows{told}",
                    held=rows > 0 and not over,
                )
            )
        return checks


def _jvm(stack: Stack, node: str) -> str:
    found = stack.execute(node, ["pgrep", "-x", "java"], user="root")
    processes = found.output.split()
    if found.status != 0 or len(processes) != 1:
        raise FaultError(f"{node}: expected one JVM, found {processes or 'none'}")
    return processes[0]
