"""The Protocols that rooms meet at. Each has at least one real implementation and one fake in tests/."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from harness.model import (
    Address,
    Aggregate,
    Binlog,
    CheckpointCounts,
    CommitLog,
    Component,
    ExecResult,
    FaultProof,
    Fence,
    FenceMark,
    JobHistory,
    JobMoment,
    Node,
    NodeState,
    Pin,
    Reading,
    Restore,
    Setting,
    SinkState,
    SnapshotId,
    SnapshotRecord,
    TableContract,
    TableHistory,
    TaskPlace,
    TimeTravel,
    TimeWindow,
    WorkloadOutcome,
)


class Stack(Protocol):
    """Everything that runs for a test. Only `up` and `down` make or remove nodes."""

    @property
    def run(self) -> str:
        """The run that this stack belongs to."""
        ...

    def up(self) -> None:
        """Start every node and wait until each answers. Raises StackError or ImageError."""
        ...

    def down(self) -> None:
        """Remove whatever is there of the stack. Idempotent."""
        ...

    def nodes(self) -> tuple[Node, ...]: ...

    def state(self, node: str) -> NodeState: ...

    def address(self, node: str, port: int) -> Address:
        """Where the node's port is reached now; it may change when the node restarts."""
        ...

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
        """Run a command inside a node. Secrets belong into `environment`, which nothing logs.

        An engine may lose what a command printed. Of a `repeatable` command, one that only looks, the
        output is whole: it is run again until it is. Raises StackError when the node is not running.
        """
        ...

    def ensure_running(self, node: str) -> None:
        """Start the node if it is stopped or paused. Idempotent."""
        ...

    def log(self, node: str) -> str:
        """What the node printed in all its lives so far."""
        ...

    def components(self) -> tuple[Component, ...]: ...


class Job(Protocol):
    """A streaming job under test, through all its lives: a restart from a savepoint is a new life."""

    @property
    def name(self) -> str:
        """The name of the table that the job feeds."""
        ...

    @property
    def job_id(self) -> str:
        """Flink's id of the life that is on."""
        ...

    def state(self) -> str: ...

    def restarts(self) -> int:
        """Restarts of this life so far: each costs an attempt of the restart strategy."""
        ...

    def places(self) -> tuple[TaskPlace, ...]:
        """Where each subtask runs; `taskmanager` is the host name of its node."""
        ...

    def counts(self) -> CheckpointCounts: ...

    def last_restore(self) -> Restore | None: ...

    def all_running(self) -> bool:
        """True when the job and every one of its subtasks is RUNNING."""
        ...

    def raise_if_ended(self) -> None:
        """Raise JobEnded, with the engine's root exception, when the job is in a terminal state."""
        ...

    def moment(self) -> JobMoment: ...

    def stop_with_savepoint(self, *, timeout_s: float) -> str:
        """Take a savepoint, end the job, and return the savepoint's path.

        Raises FlinkError with the engine's message when that fails, WaitTimeout when it takes longer.
        """
        ...

    def cancel(self, *, timeout_s: float) -> None:
        """End the job without a savepoint; its last checkpoint is retained if it was told so."""
        ...

    def retained_checkpoint(self) -> str:
        """The path of the last completed checkpoint, which outlives the job; empty when there is none."""
        ...

    def start_from(self, path: str, *, why: str) -> None:
        """Begin a new life from a savepoint or retained checkpoint; without a path, from nothing.

        The life before it must have ended. `why` is kept as its end. Returns once every task runs.
        Raises FlinkError.
        """
        ...

    def histories(self, *, restart_attempts: int) -> tuple[JobHistory, ...]:
        """Everything that an oracle needs to know of each life of the job, the first one first."""
        ...


@dataclass(frozen=True, kw_only=True)
class FaultContext:
    """What a fault may use.

    `bound_s` is how long it may wait for an effect or a recovery, `checkpoint_s` how long a checkpoint
    may take at most with its timeout; when none has completed for `late_s` (interval and timeout), one
    is late. `committed` counts the operations that the source has committed.
    `keep_sink` keeps each table's rows as they are while its job is down; `savepoints` are the paths
    of the savepoints that stopped the jobs, by name.
    """

    stack: Stack
    jobs: tuple[Job, ...]
    rng: random.Random
    bound_s: float
    checkpoint_s: float
    late_s: float
    committed: Callable[[], int]
    keep_sink: Callable[[Mapping[str, str]], None]


class Fault(Protocol):
    """Something done to a node or to the jobs. The runner calls inject, prove, heal, recover and proof,
    in this order; `heal` also whenever anything goes wrong after `inject` was begun, so it must be
    idempotent. `spends_attempts`: it makes jobs restart by themselves, so each starts with all attempts.
    """

    spends_attempts: bool

    def inject(self, context: FaultContext) -> None: ...

    def prove(self, context: FaultContext) -> None:
        """Look for the effects of the fault; a missing effect is recorded, not raised."""
        ...

    def heal(self, stack: Stack) -> None:
        """Undo only what this fault made. Idempotent; works in another process too."""
        ...

    def recover(self, context: FaultContext) -> None:
        """What a person has to do after healing so that the jobs run again; mostly nothing.

        Then waits for the proof that needs running jobs, such as what they were restored from.
        """
        ...

    def proof(self) -> FaultProof:
        """What was seen so far; an effect that was not seen is a check that did not hold."""
        ...


@dataclass(frozen=True, kw_only=True)
class BulkMarks:
    """The marker rows around a bulk update in its transaction: its operations are those between theirs."""

    begin: FenceMark
    end: FenceMark


class Workload(Protocol):
    """Seeded source transactions at a set rate, and per table the ledger of what they committed."""

    def prepare(self) -> None:
        """Create the source tables, and their initial rows unless they come later."""
        ...

    def probe(self) -> tuple[FenceMark, ...]:
        """Commit a row of its own in each table, to see whether it arrives. Only before `fill`."""
        ...

    def fill(self) -> None:
        """Delete the probes and create the initial rows, where `prepare` left them to this."""
        ...

    def start(self) -> None: ...

    def fence(self) -> tuple[FenceMark, ...]:
        """Pause at a transaction border and commit a marker row in each table last."""
        ...

    def bulk_update(self) -> BulkMarks:
        """Pause at a transaction border, and change every row of a table by one UPDATE in a transaction of
        its own, with a marker row before it and one after it.
        """
        ...

    def resume(self) -> None: ...

    def stop(self) -> WorkloadOutcome:
        """Stop for good. Idempotent."""
        ...

    def committed(self) -> int:
        """Operations committed so far, in all tables."""
        ...

    def ledger(self, table: str) -> pa.Table:
        """A table's ledger so far; columns as harness.ledger says."""
        ...


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A fence's marker, and the snapshot at which its table is read. `visible_at_ms` is 0 when the marker
    did not become visible.
    """

    mark: FenceMark
    snapshot: SnapshotId
    visible_at_ms: int


class Pipeline(Protocol):
    """A stack with the jobs under test on it: what the runner drives."""

    @property
    def stack(self) -> Stack: ...

    @property
    def workload(self) -> Workload:
        """The source's transactions; there once `prepare` has returned."""
        ...

    @property
    def tables(self) -> tuple[TableContract, ...]: ...

    def preflight(self, tell: Callable[[str], None]) -> None:
        """Engine, memory, disk and images. Raises PreflightError or ImageError."""
        ...

    def prepare(self) -> None:
        """Check that the source can be read by CDC, create its users and tables, and its first rows unless
        the jobs are to start at its latest offset.
        """
        ...

    def submit(self) -> tuple[Job, ...]:
        """Create the sinks, start the jobs, and check that the settings are in force."""
        ...

    def settings(self) -> tuple[Setting, ...]: ...

    def newest_snapshot(self, table: str) -> SnapshotId | None: ...

    def sink_rows(self, table: str) -> int:
        """The rows of a table's newest snapshot; 0 before the first."""
        ...

    def shows(self, mark: FenceMark, snapshot: SnapshotId) -> bool:
        """Whether a snapshot of the marker's table shows the marker row."""
        ...

    def read_fence(
        self, seen: Sequence[Seen], *, baseline: bool, folder: Path
    ) -> Callable[[], tuple[Fence, ...]]:
        """Begin to read source and sink as they are now, and return what waits for that to end.

        The source's state is held and the sink is read at a snapshot, so both may go on meanwhile. Rows
        go into `folder`. A reader that fails is recorded. At the baseline a consumer pins the snapshots.
        """
        ...

    def keep_sink(
        self, fault: int, savepoints: Mapping[str, str], folder: Path
    ) -> Callable[[], tuple[SinkState, ...]]:
        """Note each table's newest snapshot while the jobs are down, begin to read its rows, and return
        what waits for that to end.
        """
        ...

    def travel(self, fences: Sequence[Fence], folder: Path) -> Travelled:
        """Read every fence's snapshot again, by time and by id, and the history of all snapshots."""
        ...

    def components(self) -> tuple[Component, ...]: ...

    def kept(self) -> str:
        """How to reach what runs, for a person who keeps the stack."""
        ...


@dataclass(frozen=True, kw_only=True)
class Travelled:
    """What a look back at the end of a run brought."""

    travels: tuple[TimeTravel, ...]
    snapshots: tuple[SnapshotRecord, ...]
    pins: tuple[Pin, ...]
    histories: tuple[TableHistory, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    commits: tuple[CommitLog, ...] = ()
    binlogs: tuple[Binlog, ...] = ()


@dataclass(frozen=True, kw_only=True)
class TotalsRequest:
    """The guide's totals of a table, to be read at a snapshot; `at_ms` asks by time (epoch ms) instead."""

    table: TableContract
    window: TimeWindow
    snapshot_id: int
    at_ms: int = 0


class TableReader(Protocol):
    """Reads the sink. Answers with one Reading per request, in their order; failures are in the Reading,
    with `files_missing` when files that a snapshot refers to are gone.
    """

    name: str

    def totals(self, requests: Sequence[TotalsRequest]) -> tuple[Reading, ...]: ...


class Listener(Protocol):
    """Whoever shows a run's progress."""

    def phase(self, name: str) -> None:
        """A phase began; the one before it ended."""
        ...

    def progress(self, text: str, done: float, total: float) -> None: ...

    def event(self, kind: str, text: str, node: str = "") -> None: ...
