"""A stack whose JVMs can be stopped and resumed, and jobs that leave the one that stands still."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from fakes import FakeJob, FakeStack

from harness.errors import StackError
from harness.faults.pause_taskmanager import REGISTERED
from harness.model import CheckpointCounts, ExecResult, Restore

VICTIM = "taskmanager-1"


class PausedStack(FakeStack):
    """Each node has one JVM; a signal's effect on it may be taken away. A resumed one registers again."""

    def __init__(self) -> None:
        super().__init__()
        self.stat = {node.name: "S" for node in self.nodes()}
        self.began = {node.name: 1000 for node in self.nodes()}
        self.ran = {node.name: 50 for node in self.nodes()}
        self.registrations = {node.name: 1 for node in self.nodes()}
        self.signals: list[str] = []
        self.signal_status = 0
        self.stops, self.runs, self.registers = True, True, True
        self.when_stopped: Callable[[], None] = lambda: None
        self.when_resumed: Callable[[], None] = lambda: None
        self.programs = {"kill": self._kill, "cat": self._cat}

    def _kill(self, node: str, argv: Sequence[str]) -> ExecResult:
        self.signals.append(f"{node} {' '.join(argv[1:])}")
        if self.signal_status:
            return ExecResult(status=self.signal_status, output="no such process")
        if argv[1] == "-STOP" and self.stops:
            self.stat[node] = "T"
            self.when_stopped()
        if argv[1] == "-CONT":
            self.stat[node] = "S"
            self.ran[node] += 7 if self.runs else 0
            self.registrations[node] += 1 if self.registers else 0
            self.when_resumed()
        return ExecResult(status=0, output="")

    def _cat(self, node: str, argv: Sequence[str]) -> ExecResult:
        if argv[1] != "/proc/77/stat":
            return ExecResult(status=1, output="no such file")
        between = " ".join(str(number) for number in range(4, 14))
        after = f"{self.ran[node]} 0 0 0 20 0 60 0 {self.began[node]} 4096"
        return ExecResult(status=0, output=f"77 (java (x)) {self.stat[node]} {between} {after}\n")

    def another_life(self, node: str) -> None:
        """Its JVM has ended and another one has its number."""
        self.began[node] += 500
        self.stat[node], self.ran[node] = "S", 3

    def goes_down(self, node: str) -> None:
        self.states[node] = replace(self.states[node], running=False)

    def log(self, node: str) -> str:
        if not self.states[node].running:
            raise StackError(f"{node} is not running")
        return f"{REGISTERED} jobmanager\n" * self.registrations[node]


class PausedJob(FakeJob):
    """Its checkpoints complete at each look, but while `hangs`."""

    def __init__(self, *, name: str = "orders", hosts: Sequence[str] = (VICTIM,)) -> None:
        super().__init__(name=name, hosts=hosts)
        self.hangs = False
        self.under_way = 1
        self.runs = True

    def counts(self) -> CheckpointCounts:
        if not self.hangs:
            return super().counts()
        return CheckpointCounts(completed=self.completed, failed=0, in_progress=self.under_way, restored=0)

    def all_running(self) -> bool:
        return self.runs and super().all_running()

    def restart_on(self, host: str) -> None:
        """As when a TaskManager's heartbeat is missed: it restores, and runs on another one."""
        self.restarted += 1
        self.hosts = (host, host)
        self.restore = Restore(
            checkpoint_id=12,
            at_ms=int(time.time() * 1000) + 1,
            is_savepoint=False,
            path="s3://checkpoints/12",
        )
