"""The Protocols that rooms meet at. Each has at least one real implementation and one fake in tests/."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from harness.model import (
    Address,
    CheckpointCounts,
    Component,
    Evidence,
    ExecResult,
    FaultProof,
    Fence,
    FenceMark,
    JobHistory,
    Node,
    NodeState,
    OracleResult,
    PartitionTotals,
    Restore,
    Setting,
    SnapshotId,
    TableContract,
    TaskPlace,
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

    def execute(self, node: str, argv: Sequence[str], *, user: str = "", timeout_s: float = 30) -> ExecResult:
        """Run a command inside a node. Raises StackError when the node is not running."""
        ...

    def ensure_running(self, node: str) -> None:
        """Start the node if it is stopped or paused. Idempotent."""
        ...

    def log(self, node: str) -> str:
        """What the node printed in all its lives so far."""
        ...

    def components(self) -> tuple[Component, ...]: ...


class Job(Protocol):
    """The streaming job under test, as Flink's REST API shows it."""

    @property
    def job_id(self) -> str: ...

    def state(self) -> str: ...

    def restarts(self) -> int: ...

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

    def history(self, *, restart_attempts: int) -> JobHistory:
        """Everything that an oracle needs to know of the job, at this moment."""
        ...


@dataclass(frozen=True, kw_only=True)
class FaultContext:
    """What a fault may use. `bound_s` is how long it may wait for an effect or a recovery."""

    stack: Stack
    job: Job
    rng: random.Random
    bound_s: float


class Fault(Protocol):
    """Something done to a node. The runner calls inject, prove, heal and recovered, in this order;
    `heal` also whenever anything goes wrong after `inject` was begun, so it must be idempotent.
    """

    def inject(self, context: FaultContext) -> None: ...

    def prove(self, context: FaultContext) -> None:
        """Look for the effects of the fault; a missing effect is recorded, not raised."""
        ...

    def heal(self, stack: Stack) -> None:
        """Undo only what this fault made. Idempotent; works in another process too."""
        ...

    def proof(self) -> FaultProof:
        """What was seen so far; an effect that was not seen is a check that did not hold."""
        ...


class Workload(Protocol):
    """Seeded source transactions at a set rate, and the ledger of what they committed."""

    def prepare(self) -> None:
        """Create the source tables and their initial rows."""
        ...

    def start(self) -> None: ...

    def fence(self) -> FenceMark:
        """Pause at a transaction border and commit the marker row last."""
        ...

    def resume(self) -> None: ...

    def stop(self) -> WorkloadOutcome:
        """Stop for good. Idempotent."""
        ...

    def committed(self) -> int:
        """Operations committed so far."""
        ...

    def ledger(self) -> pa.Table:
        """The ledger so far; columns as harness.ledger says."""
        ...


class Pipeline(Protocol):
    """A stack with a job under test on it: what the runner drives."""

    @property
    def stack(self) -> Stack: ...

    @property
    def workload(self) -> Workload:
        """The source's transactions; there once `prepare` has returned."""
        ...

    @property
    def contract(self) -> TableContract: ...

    def preflight(self, tell: Callable[[str], None]) -> None:
        """Engine, memory, disk and images. Raises PreflightError or ImageError."""
        ...

    def prepare(self) -> None:
        """Check that the source can be read by CDC, create its users and tables, and its first rows."""
        ...

    def submit(self) -> Job:
        """Create the sink, start the job, and check that the settings are in force."""
        ...

    def settings(self) -> tuple[Setting, ...]: ...

    def newest_snapshot(self) -> SnapshotId | None: ...

    def shows(self, mark: FenceMark, snapshot: SnapshotId) -> bool:
        """Whether a snapshot of the sink shows the marker row."""
        ...

    def read_fence(
        self, mark: FenceMark, snapshot: SnapshotId, *, baseline: bool, visible_at_ms: int, folder: Path
    ) -> Callable[[], Fence]:
        """Read the source now, begin to read the sink, and return what waits for that to end.

        The sink is read at a snapshot, so the source may go on meanwhile. Rows go into `folder`. A
        reader that fails is recorded. `visible_at_ms` is 0 when the marker did not become visible.
        """
        ...

    def components(self) -> tuple[Component, ...]: ...

    def kept(self) -> str:
        """How to reach what runs, for a person who keeps the stack."""
        ...


class TableReader(Protocol):
    """Reads the sink at a snapshot. Raises ReaderError, or SinkFilesMissing when files are gone."""

    name: str

    def totals(self, window: TimeWindow, snapshot_id: int) -> tuple[PartitionTotals, ...]: ...


class Oracle(Protocol):
    """A pure check of evidence."""

    def __call__(self, evidence: Evidence) -> OracleResult: ...


class Listener(Protocol):
    """Whoever shows a run's progress."""

    def phase(self, name: str) -> None:
        """A phase began; the one before it ended."""
        ...

    def progress(self, text: str, done: float, total: float) -> None: ...

    def event(self, kind: str, text: str, node: str = "") -> None: ...
