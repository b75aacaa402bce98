"""Fault: the storage is cut off from the Flink nodes by iptables (guide §5.2, test 2)."""

from __future__ import annotations

import time
from dataclasses import dataclass

from harness.errors import FaultError, FlinkError, HarnessError, StackError, UsageError, WaitTimeout
from harness.faults import firewall
from harness.faults.lives import Start, not_restored, start_all
from harness.model import Check, FaultProof, Role
from harness.ports import FaultContext, Job, Stack
from harness.waiting import wait_until

UNTILS = ("checkpoint-failed", "job-failed")

TOOTHLESS = 3
"""After so many completed checkpoints under the cut, it does not cut. One may be on its way already."""

KIND = "retained checkpoint"

WANTED = {
    "drop": ("a checkpoint failed or was late", "a failed checkpoint, or none completed for {late} s"),
    "reject": (
        "a checkpoint or its tasks failed",
        "a failed checkpoint or a restart, or no checkpoint completed for {late} s",
    ),
    "job-failed": ("used up its restarts", "FAILED"),
}
"""What a job must have had under the cut, by mode, or by `until` when that is the job's end."""


@dataclass(frozen=True, kw_only=True)
class Tally:
    """A job's counters at one moment, or what they grew by since the cut.

    `quiet_s`: for how long none has completed under the cut.
    """

    completed: int
    failed: int
    restarts: int
    state: str
    quiet_s: float = 0.0

    def since(self, before: Tally, last: Tally, *, passed_s: float) -> Tally:
        """What it grew by; `last` is what it had grown by `passed_s` before: an ended job reports no
        restarts.
        """
        completed = self.completed - before.completed
        return Tally(
            completed=completed,
            failed=self.failed - before.failed,
            restarts=max(self.restarts - before.restarts, last.restarts),
            state=self.state,
            quiet_s=last.quiet_s + passed_s if completed == last.completed else 0.0,
        )


UNSEEN = Tally(completed=0, failed=0, restarts=0, state="not seen")


class CutStorage:
    """Stops all packets between the storage and the JobManager and each TaskManager, until it has bitten.

    `mode` is `drop` (silence: requests hang) or `reject` (connections are reset: tasks fail at once).
    `until` is `checkpoint-failed` (each job had a failed checkpoint or a late one, or with `reject` a
    restart; the jobs have to recover by themselves) or `job-failed` (each job has used up its restarts;
    each is started from its last retained checkpoint after healing). A late one counts since a JobManager
    that hangs in the storage before it triggers a checkpoint fails none for minutes. `at_most_s` bounds
    the cut; 0 leaves that to the run's own bounds. It ends early when checkpoints go on completing,
    since then it cuts nothing.

    Proof: the rules stopped packets on each TaskManager that held tasks, and were there on every node
    until they were removed; each job had what `until` says; for `job-failed`, each was restored from its
    retained checkpoint. An outage that long outlasts processes (a task that hangs in the storage is not
    cancelled in time, and its TaskManager ends itself), so with `job-failed` a node that restarted is cut
    off again. The JobManager may have nothing to write meanwhile: its packets are only told.
    """

    spends_attempts = True

    def __init__(
        self, *, mode: str = "drop", until: str = "checkpoint-failed", port: int = 9000, at_most_s: float = 0
    ) -> None:
        for name, value, known in (("mode", mode, firewall.MODES), ("until", until, UNTILS)):
            if value not in known:
                raise UsageError(f"cut-storage: {name} is {value!r}", todo=f"use one of {', '.join(known)}")
        if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
            raise UsageError(f"cut-storage: port is {port!r}", todo="use a number from 1 to 65535")
        if isinstance(at_most_s, bool) or not isinstance(at_most_s, int | float) or at_most_s < 0:
            raise UsageError(f"cut-storage: at_most_s is {at_most_s!r}", todo="use seconds, or leave it away")
        self._mode = mode
        self._until = until
        self._port = port
        self._at_most_s = at_most_s
        self._injected_at_ms = 0
        self._healed = False
        self._tasks: dict[str, int] = {}
        self._chains: dict[str, firewall.Chain | str] = {}
        self._before: dict[str, Tally] = {}
        self._grown: dict[str, Tally] = {}
        self._gave_up = False
        self._late_s = 0.0
        self._addresses: dict[str, str] = {}
        self._lives: dict[str, str] = {}
        self._cut_again = 0
        self._restored: dict[str, Check] = {}

    def inject(self, context: FaultContext) -> None:
        stack = context.stack
        flink = _flink_nodes(stack)
        storage = next(node.name for node in stack.nodes() if node.role is Role.STORAGE)
        places = [place.taskmanager for job in context.jobs for place in job.places()]
        if not set(places) & set(flink):
            raise FaultError(f"no TaskManager holds tasks of the jobs: they are on {places or 'none'}")
        self._addresses = {node: firewall.address_of(stack, node, storage) for node in flink}
        self._lives = {node: stack.state(node).started_at for node in flink}
        self._before = {job.name: _tally(job) for job in context.jobs}
        began_at_ms = int(time.time() * 1000)
        for node, address in self._addresses.items():
            firewall.cut(stack, node, address=address, port=self._port, mode=self._mode)
        self._tasks = {node: places.count(node) for node in flink}
        self._injected_at_ms = began_at_ms

    def prove(self, context: FaultContext) -> None:
        self._late_s = context.late_s
        looked_s = time.monotonic()

        def bitten_or_toothless() -> bool:
            nonlocal looked_s
            if self._until == "job-failed":
                self._cut_off_restarted(context.stack)
            now = {job.name: _tally(job) for job in context.jobs}
            passed_s, looked_s = time.monotonic() - looked_s, time.monotonic()
            for name, tally in now.items():
                last = self._grown.get(name, UNSEEN)
                self._grown[name] = tally.since(self._before[name], last, passed_s=passed_s)
            self._gave_up = any(grown.completed >= TOOTHLESS for grown in self._grown.values())
            return self._gave_up or all(self._bitten(grown) for grown in self._grown.values())

        try:
            wait_until(
                f"the cut to bite: {self._until}",
                bitten_or_toothless,
                timeout_s=self._at_most_s or context.bound_s + context.checkpoint_s,
                retry_on=(FlinkError, StackError),
                seen=lambda: self._grown,
            )
        except WaitTimeout:
            return  # the effect that did not come is a check that does not hold

    def _cut_off_restarted(self, stack: Stack) -> None:
        """Set the rules again on nodes that live another life; one that is down is looked at next time."""
        for node, address in self._addresses.items():
            state = stack.state(node)
            if state.running and state.started_at != self._lives[node]:
                firewall.cut(stack, node, address=address, port=self._port, mode=self._mode)
                self._lives[node] = state.started_at
                self._cut_again += 1

    def _bitten(self, grown: Tally) -> bool:
        if self._until == "job-failed":
            return grown.state == "FAILED"
        late = grown.quiet_s >= self._late_s > 0
        return late or grown.failed > 0 or (self._mode == "reject" and grown.restarts > 0)

    def _look(self, stack: Stack) -> None:
        """Note what each node has of the rules; what can't be read is noted as such."""
        for node in self._tasks:
            try:
                self._chains[node] = firewall.look(stack, node)
            except HarnessError as error:
                self._chains[node] = error.what

    def heal(self, stack: Stack) -> None:
        """Remove the rules from every Flink node that runs; one that is down has lost them by itself.

        Raises FaultError when rules remain anywhere, after all nodes were tried.
        """
        if self._injected_at_ms and not self._healed:
            self._look(stack)  # the last moment to see whether the cut held all the while
        self._healed = True
        failures: list[HarnessError] = []
        for node in _flink_nodes(stack):
            if not stack.state(node).running:
                continue
            try:
                firewall.remove(stack, node)
            except StackError as error:
                if stack.state(node).running:
                    failures.append(error)
            except FaultError as error:
                failures.append(error)
        if failures:
            raise FaultError(
                "; ".join(failure.what for failure in failures), todo=failures[0].todo or "heal again"
            )

    def recover(self, context: FaultContext) -> None:
        """Jobs recover by themselves; with `job-failed` those that ended are started again."""
        if self._until != "job-failed":
            return
        starts = []
        for job in context.jobs:
            if job.state() != "FAILED":
                continue
            path = job.retained_checkpoint()
            if path:
                why = "FAILED: the storage was cut off for longer than its restarts last"
                starts.append(Start(job=job, path=path, wanted=path, kind=KIND, why=why))
            else:  # a start without a path would begin from nothing
                self._restored[job.name] = not_restored(
                    job.name, "its last checkpoint", KIND, "it retained none"
                )
        self._restored |= start_all(starts, bound_s=context.bound_s)

    def proof(self) -> FaultProof:
        checks: list[Check] = []
        for node, tasks in self._tasks.items():
            checks += self._node_checks(node, tasks)
        if self._injected_at_ms:
            for name in self._before:
                checks += self._job_checks(name)
        return FaultProof(
            fault="cut-storage",
            node=",".join(self._tasks),
            injected_at_ms=self._injected_at_ms,
            healed_at_ms=0,
            recovered_at_ms=0,
            checks=tuple(checks),
        )

    def _node_checks(self, node: str, tasks: int) -> list[Check]:
        chain = self._chains.get(node, "not seen")
        packets = chain.packets if isinstance(chain, firewall.Chain) else 0
        in_place = Check(
            name=f"{node}: the rules were there until they were removed",
            expected=f"chain {firewall.CHAIN} with a rule and a jump for each direction",
            actual=f"{chain}; {packets} packets stopped",
            held=isinstance(chain, firewall.Chain) and chain.cuts,
        )
        stopped = Check(
            name=f"{node}: packets between it and the storage were stopped",
            expected="at least 1 packet",
            actual=f"{packets} packets; it held {tasks} tasks",
            held=packets > 0,
        )
        return [in_place, stopped] if tasks else [in_place]

    def _job_checks(self, name: str) -> list[Check]:
        grown = self._grown.get(name, UNSEEN)
        ended = self._until == "job-failed"
        what, wanted = WANTED["job-failed" if ended else self._mode]
        again = f"; {self._cut_again} restarted nodes cut off again" if self._cut_again else ""
        given_up = "; given up, since checkpoints went on completing" if self._gave_up else ""
        effect = Check(
            name=f"{name}: {what}",
            expected=wanted.format(late=f"{self._late_s:.0f}"),
            actual=(
                f"{grown.failed} failed and {grown.completed} completed checkpoints, "
                f"none for {grown.quiet_s:.0f} s, {grown.restarts} restarts under the cut; "
                f"{grown.state}{again}{given_up}"
            ),
            held=self._bitten(grown),
        )
        if not ended:
            return [effect]
        not_yet = not_restored(name, "its last checkpoint", KIND, "not started again")
        return [effect, self._restored.get(name, not_yet)]


def _flink_nodes(stack: Stack) -> tuple[str, ...]:
    """Those that write to the storage for the jobs; never the gateway, which verifies."""
    flink = (Role.JOBMANAGER, Role.TASKMANAGER)
    return tuple(sorted(node.name for node in stack.nodes() if node.role in flink))


def _tally(job: Job) -> Tally:
    counts = job.counts()
    return Tally(completed=counts.completed, failed=counts.failed, restarts=job.restarts(), state=job.state())
