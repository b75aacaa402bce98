"""Fakes of every Protocol that a run meets: they keep its promises, and note their calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import evidence_folders
import factories
from binlog_folders import binlog
from commit_folders import with_commits
from factories import BEHAVIOR_LOG, TABLES
from fake_workload import FakeWorkload

from harness.errors import FlinkError, JobEnded, StackError
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
    JobMoment,
    Node,
    NodeState,
    Restore,
    Role,
    Setting,
    SinkState,
    SnapshotId,
    TaskPlace,
)
from harness.ports import FaultContext, Job, Seen, Stack, Travelled
from harness.watching import now_ms

NODES = (
    Node(name="source", role=Role.SOURCE),
    Node(name="storage", role=Role.STORAGE),
    Node(name="jobmanager", role=Role.JOBMANAGER),
    Node(name="taskmanager-1", role=Role.TASKMANAGER),
    Node(name="taskmanager-2", role=Role.TASKMANAGER),
    Node(name="gateway", role=Role.GATEWAY),
)

AFTER_ANY_FAULT_MS = 9_000_000_000_000
"""Far in the future, where a test can't know when its fault strikes."""

Program = Callable[[str, Sequence[str]], ExecResult]
"""A command of a fake node: from the node's name and the words of the command to what it prints."""


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
    """Implements `ports.Stack`. A killed node comes back when `revives`, else it stays stopped.

    `programs` answers other commands, by the first word of the command.
    """

    run = "fake"

    def __init__(self, calls: Calls | None = None, *, revives: bool = True, processes: str = "77\n") -> None:
        self.calls = calls or Calls()
        self.revives = revives
        self.processes = processes
        self.kill_status = 137
        self.killed: list[str] = []
        self.when_killed: Callable[[], None] = lambda: None
        self.programs: dict[str, Program] = {}
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

    def execute(
        self,
        node: str,
        argv: Sequence[str],
        *,
        user: str = "",
        environment: Mapping[str, str] | None = None,
        timeout_s: float = 30,
        repeatable: bool = False,
    ) -> ExecResult:
        if not self.states[node].running:
            raise StackError(f"{node} is not running")
        if argv[0] in self.programs:
            return self.programs[argv[0]](node, argv)
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
    """Implements `ports.Job`. Each look at its counts finds `step` more completed checkpoints.

    `ended` is the terminal state it is in, if any. `lives` has the path and the reason of each start.
    """

    def __init__(
        self, calls: Calls | None = None, *, name: str = "orders", hosts: Sequence[str] = ("taskmanager-1",)
    ) -> None:
        self.calls = calls or Calls()
        self.name = name
        self.job_id = "a1b2"
        self.hosts = hosts
        self.step = 10
        self.restore: Restore | None = None
        self.restarted = 0
        self.completed = 0
        self.failed = 0
        self.ended = ""
        self.ends_after_looks: int | None = None
        self.savepoint = f"s3://flink/savepoints/{name}-1"
        self.retained = f"s3://flink/checkpoints/{name}/chk-7"
        self.lives: list[tuple[str, str]] = [("", "")]
        self._looks = 0

    def restarts(self) -> int:
        return self.restarted

    def state(self) -> str:
        if self.ends_after_looks is not None and self._looks > self.ends_after_looks:
            return "FAILED"
        return self.ended or "RUNNING"

    def places(self) -> tuple[TaskPlace, ...]:
        return tuple(
            TaskPlace(vertex="sink", subtask=number, taskmanager=host)
            for number, host in enumerate(self.hosts)
        )

    def counts(self) -> CheckpointCounts:
        self.completed += self.step
        return CheckpointCounts(completed=self.completed, failed=self.failed, in_progress=0, restored=0)

    def last_restore(self) -> Restore | None:
        return self.restore

    def all_running(self) -> bool:
        self.calls.note("all_running")
        return self.state() == "RUNNING"

    def raise_if_ended(self) -> None:
        self._looks += 1
        if self.state() != "RUNNING":
            raise JobEnded(f"job {self.job_id} is {self.state()}: disk full", state=self.state())

    def moment(self) -> JobMoment:
        return JobMoment(life=len(self.lives), restarts=self.restarted, source_records=0)

    def stop_with_savepoint(self, *, timeout_s: float) -> str:
        self.calls.note("stop_with_savepoint")
        self.ended = "FINISHED"
        return self.savepoint

    def cancel(self, *, timeout_s: float) -> None:
        self.calls.note("cancel")
        self.ended = "CANCELED"

    def retained_checkpoint(self) -> str:
        return self.retained

    def start_from(self, path: str, *, why: str) -> None:
        self.calls.note("start_from")
        if self.state() == "RUNNING":
            raise FlinkError(f"{self.name} still runs")
        self.lives.append((path, why))
        self.job_id = f"a1b2-life-{len(self.lives)}"
        self.ended, self.ends_after_looks, self.restarted, self.failed = "", None, 0, 0
        self.restore = None
        if path:
            self.restore = Restore(
                checkpoint_id=8, at_ms=int(time.time() * 1000), is_savepoint="savepoint" in path, path=path
            )

    def histories(self, *, restart_attempts: int) -> tuple[JobHistory, ...]:
        self.calls.note("job history")
        record = replace(factories.job().checkpoints[0], triggered_at_ms=AFTER_ANY_FAULT_MS)
        reasons = [why for _, why in self.lives[1:]]
        ended = [
            replace(
                factories.job(),
                job_id=f"a1b2-life-{life}",
                name=self.name,
                life=life,
                restored_from=path,
                ended_by=why,
                state="FINISHED",
                restarts=0,
                restart_attempts=restart_attempts,
                failures=(),
            )
            for life, ((path, _), why) in enumerate(zip(self.lives, reasons, strict=False), start=1)
        ]
        current = replace(
            factories.job(),
            job_id=self.job_id,
            name=self.name,
            life=len(self.lives),
            restored_from=self.lives[-1][0],
            ended_by="",
            state=self.state(),
            restarts=self.restarted,
            restart_attempts=restart_attempts,
            checkpoints=(record,),
            failures=tuple(
                replace(factories.job().failures[0], at_ms=record.triggered_at_ms)
                for _ in range(self.restarted)
            ),
        )
        return (*ended, current)


class FakeFault:
    """Implements `ports.Fault`: it bites, the source goes on meanwhile, and it can be healed many times."""

    def __init__(self, calls: Calls, name: str = "fake", *, spends_attempts: bool = True) -> None:
        self.calls = calls
        self.name = name
        self.spends_attempts = spends_attempts
        self.draws: list[float] = []
        self._injected_at_ms = 0
        self._proved = False

    def inject(self, context: FaultContext) -> None:
        self.draws.append(context.rng.random())
        self._injected_at_ms = now_ms()
        self.calls.note("inject")

    def prove(self, context: FaultContext) -> None:
        self.calls.note("prove")
        context.committed()
        self._proved = True

    def heal(self, stack: Stack) -> None:
        self.calls.note("heal")

    def recover(self, context: FaultContext) -> None:
        self.calls.note("recover")

    def proof(self) -> FaultProof:
        return FaultProof(
            fault=self.name,
            node="taskmanager-1",
            injected_at_ms=self._injected_at_ms,
            healed_at_ms=0,
            recovered_at_ms=0,
            checks=(Check(name="it bit", expected="yes", actual="yes", held=self._proved),),
        )


class FakePipeline:
    """Implements `ports.Pipeline`. The sinks are the ledgers; they show every marker when `shows_markers`."""

    tables = TABLES

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.fake_jobs = tuple(FakeJob(calls, name=table.name) for table in TABLES)
        self.shows_markers = True
        self.hidden: set[int | str] = set()
        self.has_snapshots = True
        self.loaded = 0
        self._made: FakeStack | None = None
        self._workload = FakeWorkload(calls.note)

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

    def submit(self) -> tuple[Job, ...]:
        self.calls.note("submit")
        return self.fake_jobs

    def settings(self) -> tuple[Setting, ...]:
        return ()

    def newest_snapshot(self, table: str) -> SnapshotId | None:
        return SnapshotId(snapshot_id=41, committed_at_ms=factories.START_MS) if self.has_snapshots else None

    def sink_rows(self, table: str) -> int:
        return self.loaded

    def shows(self, mark: FenceMark, snapshot: SnapshotId) -> bool:
        self.calls.note(f"shows {mark.table}")
        return self.shows_markers and mark.key not in self.hidden

    def read_fence(
        self, seen: Sequence[Seen], *, baseline: bool, folder: Path
    ) -> Callable[[], tuple[Fence, ...]]:
        self.calls.note("read_fence")
        fences = tuple(
            replace(
                evidence_folders.fence(self._workload.ledger(one.mark.table), one.mark, folder),
                baseline=baseline,
                visible=one.visible_at_ms > 0,
                visible_at_ms=one.visible_at_ms,
            )
            for one in seen
        )
        return lambda: fences

    def keep_sink(
        self, fault: int, savepoints: Mapping[str, str], folder: Path
    ) -> Callable[[], tuple[SinkState, ...]]:
        self.calls.note("keep_sink")
        return lambda: tuple(replace(factories.state(table.name), fault=fault) for table in self.tables)

    def travel(self, fences: Sequence[Fence], folder: Path) -> Travelled:
        self.calls.note("travel")
        of = {table.name: [fence for fence in fences if fence.mark.table == table.name] for table in TABLES}
        snapshots = tuple(
            record
            for name, own in of.items()
            for record in evidence_folders.snapshots(
                name, len(own), evidence_folders.emitted(self._workload.ledger(name), name, own)
            )
        )
        committed = with_commits(replace(factories.evidence(), folder=str(folder), snapshots=snapshots))
        return Travelled(
            travels=tuple(evidence_folders.travel(fence, folder) for fence in fences),
            snapshots=committed.snapshots,
            commits=committed.commits,
            histories=tuple(
                evidence_folders.history(self._workload.ledger(name), name, own, folder)
                for name, own in of.items()
            ),
            binlogs=tuple(binlog(self._workload.ledger(table.name), table, folder) for table in TABLES),
            aggregates=(
                evidence_folders.sums_of(
                    self._workload.ledger(BEHAVIOR_LOG.name), of[BEHAVIOR_LOG.name], folder
                ),
            ),
            pins=(),
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
