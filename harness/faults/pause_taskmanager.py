"""Fault: a TaskManager is stopped by SIGSTOP, its tasks run elsewhere, then it goes on: a zombie."""

from __future__ import annotations

import time
from collections import Counter

from harness.errors import FaultError, FlinkError, StackError, UsageError, WaitTimeout
from harness.faults.comebacks import Comebacks
from harness.faults.hangs import Hangs
from harness.faults.standstill import Standstill, resume_all
from harness.faults.victims import choose, held_tasks
from harness.model import Check, FaultProof
from harness.ports import FaultContext, Job, Stack
from harness.waiting import wait_until

HOLDS = ("past-heartbeat", "short")

REGISTERED = "Successful registration at resource manager"
"""What a TaskManager logs whenever it joins the cluster (Flink 1.20)."""


class PauseTaskManager:
    """Stops the JVM of a TaskManager that holds tasks of the jobs, chosen by the seed, and resumes it later.

    `hold` is `past-heartbeat` (until every job that had tasks there runs all of them elsewhere: what goes
    on then is a zombie, which must not commit) or `short` (for `short_s`, which has to be shorter than
    heartbeat.timeout and longer than the checkpoint interval: nothing may restart).

    Proof: the victim held tasks; its process stood still from the start until it was resumed, and then
    ran on. `past-heartbeat`: meanwhile each job restarted, was restored from a checkpoint, and ran
    elsewhere; the victim joined the cluster again, or what replaced it after it had ended itself.
    `short`: a checkpoint of each job hung, and none restarted. It isn't seen whether the zombie was in the
    middle of a commit.
    """

    spends_attempts = True

    def __init__(self, *, hold: str = "past-heartbeat", short_s: float = 8) -> None:
        if hold not in HOLDS:
            raise UsageError(f"pause-taskmanager: hold is {hold!r}", todo=f"use one of {', '.join(HOLDS)}")
        if isinstance(short_s, bool) or not isinstance(short_s, int | float) or short_s <= 0:
            raise UsageError(f"pause-taskmanager: short_s is {short_s!r}", todo="use seconds, more than 0")
        self._zombie = hold == "past-heartbeat"
        self._short_s = short_s
        self._victim = ""
        self._held: dict[str, int] = {}
        self._injected_at_ms = 0
        self._standstill = Standstill(may_end=self._zombie)
        self._comebacks = Comebacks()
        self._elsewhere: dict[str, str] = {}
        self._registrations = (0, 0)
        self._hangs = Hangs()

    def inject(self, context: FaultContext) -> None:
        stack = context.stack
        self._victim, self._held = choose(context)
        self._comebacks = Comebacks(context.jobs)
        registered = stack.log(self._victim).count(REGISTERED)
        self._registrations = (registered, registered)
        stopped_at_ms = int(time.time() * 1000)
        self._standstill.begin(stack, self._victim, bound_s=context.bound_s)
        self._injected_at_ms = stopped_at_ms

    def prove(self, context: FaultContext) -> None:
        struck = self._struck(context)
        if not self._zombie:
            self._hangs.last(struck, self._standstill, for_s=self._short_s, bound_s=context.bound_s)
            return

        def all_elsewhere() -> bool:
            told = {job.name: self._place(job) for job in struck}
            self._elsewhere = {name: place for name, place in told.items() if place}
            return len(self._elsewhere) == len(struck)

        try:
            wait_until(
                f"every job that had tasks on {self._victim} to run elsewhere",
                all_elsewhere,
                timeout_s=context.bound_s,
                retry_on=(FlinkError,),
            )
        except WaitTimeout:
            return  # the effect that did not come is a check that does not hold

    def _struck(self, context: FaultContext) -> list[Job]:
        return [job for job in context.jobs if self._held.get(job.name)]

    def _place(self, job: Job) -> str:
        """Where a job that came back runs; empty while it did not, or has anything on the victim."""
        came_back = self._comebacks.came_back(job, since_ms=self._injected_at_ms)
        hosts = Counter(place.taskmanager for place in job.places())
        if not came_back or not hosts or self._victim in hosts or not job.all_running():
            return ""
        return ", ".join(f"{tasks} tasks on {host}" for host, tasks in sorted(hosts.items()))

    def heal(self, stack: Stack) -> None:
        """Resume every TaskManager that stands still; in another process too."""
        self._standstill.end(stack, self._victim)
        resume_all(stack)

    def recover(self, context: FaultContext) -> None:
        """Nobody has to do anything: wait until it is seen to run on, and what came of it."""
        stack, victim = context.stack, self._victim

        def went_on() -> bool:
            if not self._standstill.ran_on(stack, victim):
                return False
            before, _ = self._registrations
            self._registrations = (before, stack.log(victim).count(REGISTERED))
            return not self._zombie or self._registrations[1] > before

        try:
            wait_until(
                f"{victim} to go on", went_on, timeout_s=context.bound_s, retry_on=(FaultError, StackError)
            )
        except WaitTimeout:
            return  # the checks tell which of it was not seen
        if not self._zombie:
            self._hangs.go_on(
                self._struck(context),
                self._comebacks,
                since_ms=self._injected_at_ms,
                bound_s=context.bound_s,
            )

    def proof(self) -> FaultProof:
        until = "until its tasks ran elsewhere" if self._zombie else "until it was resumed"
        checks = [
            held_tasks(self._held),
            *self._standstill.checks(until=until, at_least_s=0 if self._zombie else self._short_s),
        ]
        for name in (name for name, tasks in self._held.items() if tasks):
            checks += self._zombie_checks(name) if self._zombie else self._hangs.checks(name, self._comebacks)
        if self._zombie:
            before, now = self._registrations
            joined = Check(
                name="it joined the cluster again",
                expected=f"more than {before} registrations in its log",
                actual=f"{now} registrations",
                held=now > before,
            )
            checks.append(joined)
        return FaultProof(
            fault="pause-taskmanager",
            node=self._victim,
            injected_at_ms=self._injected_at_ms,
            healed_at_ms=0,
            recovered_at_ms=0,
            checks=tuple(checks),
        )

    def _zombie_checks(self, name: str) -> list[Check]:
        elsewhere = Check(
            name=f"{name}: ran elsewhere before the victim was resumed",
            expected=f"every task runs, none of them on {self._victim}",
            actual=self._elsewhere.get(name, "not seen"),
            held=name in self._elsewhere,
        )
        return [*self._comebacks.checks(name, since="the stop"), elsewhere]
