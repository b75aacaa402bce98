"""The words of the harness as data: frozen, keyword-only, free of behaviour that touches the world."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum


class Verdict(Enum):
    """VALID, UNKNOWN or INVALID. The worst of several wins; each has its exit code."""

    VALID = "VALID"
    UNKNOWN = "UNKNOWN"
    INVALID = "INVALID"

    @property
    def exit_code(self) -> int:
        """0 valid, 1 invalid, 2 unknown (3, a failure of the harness, is not a verdict)."""
        return {Verdict.VALID: 0, Verdict.INVALID: 1, Verdict.UNKNOWN: 2}[self]


HARNESS_FAILED = 3
"""Exit code when the harness itself failed; usage errors too."""


def worst(verdicts: list[Verdict]) -> Verdict:
    """INVALID before UNKNOWN before VALID. Of nothing: UNKNOWN, since nothing was examined."""
    if not verdicts:
        return Verdict.UNKNOWN
    order = [Verdict.VALID, Verdict.UNKNOWN, Verdict.INVALID]
    return max(verdicts, key=order.index)


class Severity(Enum):
    """How much a finding weighs."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing an oracle says: what, where, expected, actual, at most 20 examples, what to do."""

    code: str
    severity: Severity
    what: str
    where: str = ""
    expected: str = ""
    actual: str = ""
    examples: tuple[str, ...] = ()
    todo: str = ""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One comparison: a name, what was expected, what was seen, and whether they agree."""

    name: str
    expected: str
    actual: str
    held: bool


@dataclass(frozen=True, kw_only=True)
class OracleResult:
    """What one oracle says of the evidence. `examined` counts what it looked at; 0 is never VALID."""

    oracle: str
    verdict: Verdict
    examined: int
    unit: str
    checks: tuple[Check, ...] = ()
    findings: tuple[Finding, ...] = ()


class Role(Enum):
    """What a node is in the stack."""

    SOURCE = "source"
    STORAGE = "storage"
    JOBMANAGER = "jobmanager"
    TASKMANAGER = "taskmanager"
    GATEWAY = "gateway"


@dataclass(frozen=True, kw_only=True)
class Node:
    """One process host of the stack; `name` is its host name inside the stack's network."""

    name: str
    role: Role


@dataclass(frozen=True, kw_only=True)
class NodeState:
    """A node as the engine sees it. Two states with another `started_at` are two lives of the node."""

    running: bool
    started_at: str
    restarts: int
    exit_code: int


@dataclass(frozen=True, kw_only=True)
class ExecResult:
    """What a command inside a node printed, and how it ended."""

    status: int
    output: str


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a node's port is reached from this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """A name and its secret. Never written to evidence or reports."""

    user: str
    secret: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class TableContract:
    """What the source table and the sink table have in common, in the order of the columns.

    `source_key` is the source's primary key, `partition` the sink's partition column, `amount` and
    `time` the columns that the guide's §5.1 queries sum and filter.
    """

    source: str
    sink: str
    columns: tuple[str, ...]
    source_key: str
    partition: str
    amount: str
    time: str


@dataclass(frozen=True, kw_only=True)
class TimeWindow:
    """Both ends included, as SQL BETWEEN; naive datetimes in UTC with millisecond precision."""

    start: datetime
    end: datetime


@dataclass(frozen=True, kw_only=True)
class PartitionTotals:
    """The guide's §5.1 aggregates of one partition, whole and inside a time window.

    Amounts are decimal strings with two places, so that equal sums are equal texts.
    """

    partition: str
    rows: int
    keys: int
    amount: str
    window_keys: int
    window_amount: str


@dataclass(frozen=True, kw_only=True)
class TaskPlace:
    """Where one subtask of a job runs."""

    vertex: str
    subtask: int
    taskmanager: str


@dataclass(frozen=True, kw_only=True)
class CheckpointCounts:
    """Flink's counters of a job's checkpoints since it was submitted."""

    completed: int
    failed: int
    in_progress: int
    restored: int


@dataclass(frozen=True, kw_only=True)
class Restore:
    """The last restore of a job: which checkpoint or savepoint, when (epoch ms), from which path."""

    checkpoint_id: int
    at_ms: int
    is_savepoint: bool
    path: str


@dataclass(frozen=True, kw_only=True)
class CheckpointRecord:
    """One checkpoint of a job's history."""

    checkpoint_id: int
    status: str
    triggered_at_ms: int
    duration_ms: int
    state_size_bytes: int
    is_savepoint: bool


@dataclass(frozen=True, kw_only=True)
class JobFailure:
    """One entry of Flink's exception history."""

    at_ms: int
    exception: str
    taskmanager: str


@dataclass(frozen=True, kw_only=True)
class JobHistory:
    """What became of a job over a run: its state at the end, restarts, failures, checkpoints."""

    job_id: str
    name: str
    state: str
    restarts: int
    restart_attempts: int
    counts: CheckpointCounts
    checkpoints: tuple[CheckpointRecord, ...]
    failures: tuple[JobFailure, ...]


@dataclass(frozen=True, kw_only=True)
class FaultProof:
    """Whether a fault bit, check by check. Times are epoch milliseconds."""

    fault: str
    node: str
    injected_at_ms: int
    healed_at_ms: int
    recovered_at_ms: int
    checks: tuple[Check, ...]

    @property
    def bit(self) -> bool:
        """True when there was something to check and every check held."""
        return bool(self.checks) and all(check.held for check in self.checks)


@dataclass(frozen=True, kw_only=True)
class SnapshotId:
    """A snapshot of the sink and when it was committed (epoch ms, the committer's clock)."""

    snapshot_id: int
    committed_at_ms: int


@dataclass(frozen=True, kw_only=True)
class FenceMark:
    """The marker row that was committed last before a fence.

    `operation` is its number in the ledger; `partition` and `key` find it in the sink.
    """

    number: int
    operation: int
    partition: str
    key: int
    committed_at_ms: int


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One reader's answer at a fence; on failure the error and no totals."""

    reader: str
    totals: tuple[PartitionTotals, ...] = ()
    error: str = ""
    files_missing: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Fence:
    """What was read of source and sink at a fence, all of the sink at one snapshot.

    `source_rows` and `sink_rows` name Parquet files beside the evidence; empty when the read failed.
    `baseline` marks the fence before the first fault.
    """

    mark: FenceMark
    baseline: bool
    visible: bool
    visible_at_ms: int
    snapshot_id: int
    snapshot_at_ms: int
    window: TimeWindow
    source: Reading
    sink: tuple[Reading, ...]
    source_rows: str = ""
    sink_rows: str = ""


@dataclass(frozen=True, kw_only=True)
class WorkloadOutcome:
    """What the workload did. `unresolved` names transactions whose commit is not known."""

    seed: int
    transactions: int
    operations: int
    reconnects: int
    unresolved: tuple[int, ...]
    seconds: float
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Component:
    """A component that really ran: its version as it said itself, and where it came from."""

    name: str
    version: str
    origin: str


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of a run; where the time went."""

    name: str
    started_at_ms: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened in a run, at a time (epoch ms)."""

    at_ms: int
    kind: str
    text: str
    node: str = ""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One configuration entry in force: where it belongs, its key and value, and where it comes from."""

    scope: str
    key: str
    value: str
    origin: str


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All that a run collected. Oracles judge this and nothing else; it is kept as JSON and Parquet.

    `folder` holds ledger.parquet and the files that fences name. `interrupted` and `ended_early` say
    why a run did not go its whole way: somebody stopped it; the pipeline or a fault did.
    """

    folder: str
    contract: TableContract
    expected_faults: int
    expected_fences: int
    fences: tuple[Fence, ...]
    faults: tuple[FaultProof, ...]
    jobs: tuple[JobHistory, ...]
    workload: WorkloadOutcome | None
    interrupted: str = ""
    ended_early: str = ""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """A run, judged. What each report renders."""

    schema_version: int
    run: str
    scenario: str
    profile: str
    seed: int
    started_at: str
    seconds: float
    verdict: Verdict
    exit_code: int
    failure: str
    failure_todo: str
    config_hash: str
    components: tuple[Component, ...]
    settings: tuple[Setting, ...]
    profile_differences: tuple[str, ...]
    unapplied_options: tuple[str, ...]
    oracles: tuple[OracleResult, ...]
    faults: tuple[FaultProof, ...]
    fences: tuple[Fence, ...]
    jobs: tuple[JobHistory, ...]
    workload: WorkloadOutcome | None
    phases: tuple[Phase, ...]
    events: tuple[Event, ...]
    reproduce: str
