"""Fakes of every Protocol that a run meets: they keep its promises, and note their calls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import evidence_folders
import factories
import pyarrow as pa

from harness.errors import JobEnded, StackError
from harness.ledger import Ledger
from harness.model import (
    Address,
    Check,
    CheckpointCounts,
    Component,
    ExecResult,
    FaultProof,
    Fence,
    FenceMark,
    JobHistory,
    Node,
    NodeState,
    Restore,
    Role,
    Setting,
    SnapshotId,
    TableContract,
    TaskPlace,
    WorkloadOutcome,
)
from harness.ports import FaultContext, Job, Stack
from harness.source.orders import CONTRACT

NODES = (
    Node(name="source", role=Role.SOURCE),
    Node(name="storage", role=Role.STORAGE),
    Node(name="jobmanager", role=Role.JOBMANAGER),
    Node(name="taskmanager-1", role=Role.TASKMANAGER),
    Node(name="taskmanager-2", role=Role.TASKMANAGER),
    Node(name="gateway", role=Role.GATEWAY),
)


class Calls:
    """Notes what was called, in order, and raises what a test planned for a call."""

    def __init__(self, **raises: BaseException) -> None:
        self.made: list[str] = []
        self._raises = raises

    def note(self, name: str) -> None:
        self.made.append(name)
        error = self._raises.get(name)
        if error is not None:
            raise error


class FakeStack:
    """Implements `ports.Stack`. A killed node comes back when `revives`, else it stays stopped."""

    run = "fake"

    def __init__(self, calls: Calls | None = None, *, revives: bool = True, processes: str = "77\n") -> None:
        self.calls = calls or Calls()
        self.revives = revives
        self.processes = processes
        self.kill_status = 137
        self.killed: list[str] = []
        self.when_killed: Callable[[], None] = lambda: None
        self.states = {
            node.name: NodeState(running=True, started_at="first", restarts=0, exit_code=0) for node in NODES
        }

    def up(self) -> None:
        self.calls.note("up")

    def down(self) -> None:
        self.calls.note("down")

    def nodes(self) -> tuple[Node, ...]:
        return NODES

    def state(self, node: str) -> NodeState:
        return self.states[node]

    def address(self, node: str, port: int) -> Address:
        return Address(host=node, port=port)

    def execute(self, node: str, argv: Sequence[str], *, user: str = "", timeout_s: float = 30) -> ExecResult:
        if argv[0] == "pgrep":
            return ExecResult(status=0 if self.processes else 1, output=self.processes)
        if argv[0] != "kill":
            raise StackError(f"{node}: no such command: {argv[0]}")
        if self.kill_status not in (0, 137):
            return ExecResult(status=self.kill_status, output="no such process")
        self.killed.append(node)
        life = f"life after kill {len(self.killed)}"
        old = self.states[node]
        self.states[node] = (
            replace(old, started_at=life) if self.revives else replace(old, running=False, exit_code=137)
        )
        self.when_killed()
        return ExecResult(status=self.kill_status, output="")

    def ensure_running(self, node: str) -> None:
        self.calls.note(f"ensure_running {node}")
        self.states[node] = replace(self.states[node], running=True, started_at="started by heal")

    def log(self, node: str) -> str:
        return f"log of {node}\n"

    def components(self) -> tuple[Component, ...]:
        return ()


class FakeJob:
    """Implements `ports.Job`. Each look at its counts finds `step` more completed checkpoints."""

    job_id = "a1b2"

    def __init__(self, calls: Calls | None = None, *, hosts: Sequence[str] = ("taskmanager-1",)) -> None:
        self.calls = calls or Calls()
        self.hosts = hosts
        self.step = 10
        self.restore: Restore | None = None
        self.restarted = 0
        self.completed = 0
        self.ends_after_looks: int | None = None
        self._looks = 0

    def restarts(self) -> int:
        return self.restarted

    def state(self) -> str:
        ended = self.ends_after_looks is not None and self._looks > self.ends_after_looks
        return "FAILED" if ended else "RUNNING"

    def places(self) -> tuple[TaskPlace, ...]:
        return tuple(
            TaskPlace(vertex="sink", subtask=number, taskmanager=host)
            for number, host in enumerate(self.hosts)
        )

    def counts(self) -> CheckpointCounts:
        self.completed += self.step
        return CheckpointCounts(completed=self.completed, failed=0, in_progress=0, restored=0)

    def last_restore(self) -> Restore | None:
        return self.restore

    def all_running(self) -> bool:
        self.calls.note("all_running")
        return True

    def raise_if_ended(self) -> None:
        self._looks += 1
        if self.state() == "FAILED":
            raise JobEnded("job a1b2 is FAILED: disk full", state="FAILED")

    def history(self, *, restart_attempts: int) -> JobHistory:
        self.calls.note("job history")
        # Far in the future: after any fault of a test.
        record = replace(factories.job().checkpoints[0], triggered_at_ms=9_000_000_000_000)
        return replace(
            factories.job(),
            state=self.state(),
            restarts=self.restarted,
            restart_attempts=restart_attempts,
            checkpoints=(record,),
            failures=tuple(
                replace(factories.job().failures[0], at_ms=record.triggered_at_ms)
                for _ in range(self.restarted)
            ),
        )


class FakeWorkload:
    """Implements `ports.Workload`: some orders at once, then nothing but markers."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self._ledger = Ledger()
        self._fences = 0

    def prepare(self) -> None:
        self._append(evidence_folders.first_orders())

    def start(self) -> None:
        self.calls.note("start")

    def fence(self) -> FenceMark:
        self.calls.note("fence")
        self._fences += 1
        self._append([evidence_folders.marker(self._fences)])
        return evidence_folders.mark(self._fences, len(self._ledger))

    def resume(self) -> None:
        self.calls.note("resume")

    def stop(self) -> WorkloadOutcome:
        self.calls.note("stop")
        return replace(factories.WORKLOAD, operations=len(self._ledger))

    def committed(self) -> int:
        return len(self._ledger)

    def ledger(self) -> pa.Table:
        return self._ledger.table()

    def _append(self, operations: Sequence[Any]) -> None:
        self._ledger.append(operations, transaction=1, committed_at_ms=factories.START_MS)


class FakeFault:
    """Implements `ports.Fault`: it bites, and can be healed any number of times."""

    def __init__(self, calls: Calls, name: str = "fake") -> None:
        self.calls = calls
        self.name = name
        self.draws: list[float] = []
        self._injected = False
        self._proved = False

    def inject(self, context: FaultContext) -> None:
        self.draws.append(context.rng.random())
        self._injected = True
        self.calls.note("inject")

    def prove(self, context: FaultContext) -> None:
        self.calls.note("prove")
        self._proved = True

    def heal(self, stack: Stack) -> None:
        self.calls.note("heal")

    def proof(self) -> FaultProof:
        return FaultProof(
            fault=self.name,
            node="taskmanager-1",
            injected_at_ms=factories.START_MS if self._injected else 0,
            healed_at_ms=0,
            recovered_at_ms=0,
            checks=(Check(name="it bit", expected="yes", actual="yes", held=self._proved),),
        )


class FakePipeline:
    """Implements `ports.Pipeline`. The sink is the ledger; it shows every marker when `shows_markers`."""

    contract: TableContract = CONTRACT

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.fake_job = FakeJob(calls)
        self.shows_markers = True
        self.has_snapshots = True
        self._made: FakeStack | None = None
        self._workload = FakeWorkload(calls)

    @property
    def stack(self) -> FakeStack:
        if self._made is None:
            raise StackError("the stack is not made yet")
        return self._made

    @property
    def workload(self) -> FakeWorkload:
        return self._workload

    def preflight(self, tell: Callable[[str], None]) -> None:
        self.calls.note("preflight")
        tell("a fake engine answers")
        self._made = FakeStack(self.calls)

    def prepare(self) -> None:
        self.calls.note("prepare")
        self._workload.prepare()

    def submit(self) -> Job:
        self.calls.note("submit")
        return self.fake_job

    def settings(self) -> tuple[Setting, ...]:
        return ()

    def newest_snapshot(self) -> SnapshotId | None:
        return SnapshotId(snapshot_id=41, committed_at_ms=factories.START_MS) if self.has_snapshots else None

    def shows(self, mark: FenceMark, snapshot: SnapshotId) -> bool:
        self.calls.note("shows")
        return self.shows_markers

    def read_fence(
        self, mark: FenceMark, snapshot: SnapshotId, *, baseline: bool, visible_at_ms: int, folder: Path
    ) -> Callable[[], Fence]:
        self.calls.note("read_fence")
        fence = evidence_folders.fence(self._workload.ledger(), mark, folder)
        return lambda: replace(
            fence, baseline=baseline, visible=visible_at_ms > 0, visible_at_ms=visible_at_ms
        )

    def components(self) -> tuple[Component, ...]:
        return ()

    def kept(self) -> str:
        return "http://jobmanager:8081"


class FakeListener:
    """Implements `ports.Listener`: remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, ...]] = []

    def phase(self, name: str) -> None:
        self.told.append(("phase", name))

    def progress(self, text: str, done: float, total: float) -> None:
        self.told.append(("progress", text))

    def event(self, kind: str, text: str, node: str = "") -> None:
        self.told.append(("event", kind, text, node))
