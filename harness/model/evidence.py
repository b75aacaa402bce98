"""Evidence: fences, readings, fault proofs, and all else that a run collects for its oracles."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.jobs import JobHistory, JobMoment
from harness.model.tables import PartitionTotals, SnapshotRecord, TableContract, TimeWindow
from harness.model.verdicts import Check


@dataclass(frozen=True, kw_only=True)
class FaultProof:
    """Whether a fault bit, check by check. Times are epoch milliseconds; 0 when it never came to that.

    `node` names the nodes that were struck, comma-separated; empty when the jobs themselves were.
    """

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
class FenceMark:
    """The marker row that was committed last in a table before a fence.

    `number` counts fences from 1 and is the same for all tables; a marker row that stands for something
    else than a fence has 0. `operation` is the marker's number in
    the table's ledger; `partition` and `key` find it in the sink.
    """

    table: str
    number: int
    operation: int
    partition: str
    key: int | str
    committed_at_ms: int


@dataclass(frozen=True, kw_only=True)
class Reading:
    """One reader's answer; on failure the error and no totals."""

    reader: str
    totals: tuple[PartitionTotals, ...] = ()
    error: str = ""
    files_missing: bool = False
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Fence:
    """What was read of one table's source and sink at a fence, all of the sink at one snapshot.

    `source_rows` and `sink_rows` name Parquet files beside the evidence; empty when the read failed.
    `baseline` marks the fence before the first fault. `job` is the table's job at the fence, None when
    it could not be asked.
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
    job: JobMoment | None = None


@dataclass(frozen=True, kw_only=True)
class TimeTravel:
    """A fence's snapshot read again at the end of the run, after all later writes and faults.

    `by_time` is a reader's answer FOR SYSTEM_TIME AS OF the snapshot's commit time (`at_ms`);
    `resolved_id` is the newest snapshot of the table that was committed at or before that time, 0 for
    none. `by_id` is another reader's answer at the snapshot's id. `sink_rows` names a Parquet file with
    the rows by id; empty when the read failed.
    """

    table: str
    fence: int
    snapshot_id: int
    at_ms: int
    resolved_id: int
    by_time: Reading
    by_id: Reading
    sink_rows: str = ""


@dataclass(frozen=True, kw_only=True)
class SinkState:
    """A table of the sink as it was while its job was down, in fault number `fault` (from 1).

    `savepoint` is the path of the savepoint that stopped the job, empty when it ended otherwise.
    `committed` counts the operations in the table's ledger when the rows were read.
    """

    table: str
    fault: int
    snapshot_id: int
    savepoint: str
    committed: int
    sink_rows: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A consumer that keeps a table's snapshots from `first_snapshot` on from expiring."""

    table: str
    consumer: str
    first_snapshot: int
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class SnapshotGap:
    """A snapshot whose content is not known, and why: it had expired, or could not be read."""

    snapshot_id: int
    error: str
    files_missing: bool = False


@dataclass(frozen=True, kw_only=True)
class TableHistory:
    """What every snapshot of a table held, from `base_snapshot` on: that one is known from a whole read.

    `base_snapshot` is the first fence's, 0 when there was none. `whole` are the snapshots that were read
    whole, the base among them. `changelog_producer` is the table's option in force.
    `changes` and `changelog` name Parquet files with the columns of harness.replay.CHANGE_COLUMNS and
    CHANGELOG_COLUMNS and those of the table; `changes` begins with the deltas of the first snapshot that
    is still there. Empty, with an error, when nothing could be read; `changelog` also when the table has
    no changelog producer.
    """

    table: str
    changelog_producer: str
    base_snapshot: int
    whole: tuple[int, ...] = ()
    gaps: tuple[SnapshotGap, ...] = ()
    changes: str = ""
    changelog: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """What every snapshot of the aggregate of a table held, each read whole.

    `snapshots` are those that were there at the end of the run; `gaps` are those of them that could not be
    read. `rows` names a Parquet file with `snapshot_id` and the columns of the AggregateContract; empty,
    with an error, when nothing could be read.
    """

    table: str
    snapshots: tuple[SnapshotRecord, ...] = ()
    gaps: tuple[SnapshotGap, ...] = ()
    rows: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class CommitLog:
    """What a table's snapshot and manifest files say of its commits, and the files that are in storage.

    `entries` and `files` name Parquet files with the columns of harness.commits.ENTRY_SCHEMA and
    FILE_SCHEMA; empty, with an error, when they could not be read.
    """

    table: str
    entries: str = ""
    files: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class Binlog:
    """A table's row changes as the source's binlog has them, read by a client that is not the workload.

    `operations` names a Parquet file with the columns `kind` and those of the table, in the order of the
    binlog, in the form of a ledger: a change of the key is a delete and an insert. Empty, with an error,
    when it could not be read.
    """

    table: str
    operations: str = ""
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class BulkUpdate:
    """One UPDATE of every row of a table, for fault number `fault` (from 1) to strike while it is read.

    Its rows are the operations from `first_operation` to `last_operation` of the table's ledger.
    `restored_checkpoint` is the checkpoint or savepoint that the table's job was restored from last after
    the fault; 0 when no restore was seen.
    """

    table: str
    fault: int
    first_operation: int
    last_operation: int
    committed_at_ms: int
    restored_checkpoint: int


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
class Evidence:
    """All that a run collected. Oracles judge this and nothing else; it is kept as JSON and Parquet.

    `folder` holds each table's ledger and the files that the parts name. `fences` has one entry per
    table and fence. `expected_fences` counts fences, not entries. `oracles` are those that the scenario
    asks for, `accepts` the known limits that it lets pass, `startup` where its jobs began to read the
    source (scan.startup.mode). `interrupted` and `ended_early` say why a run did not go its whole way:
    somebody stopped it; the pipeline or a fault did.
    """

    folder: str
    tables: tuple[TableContract, ...]
    oracles: tuple[str, ...]
    expected_faults: int
    expected_fences: int
    fences: tuple[Fence, ...]
    faults: tuple[FaultProof, ...]
    jobs: tuple[JobHistory, ...]
    workload: WorkloadOutcome | None
    travels: tuple[TimeTravel, ...] = ()
    states: tuple[SinkState, ...] = ()
    snapshots: tuple[SnapshotRecord, ...] = ()
    histories: tuple[TableHistory, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    commits: tuple[CommitLog, ...] = ()
    binlogs: tuple[Binlog, ...] = ()
    bulks: tuple[BulkUpdate, ...] = ()
    pins: tuple[Pin, ...] = ()
    accepts: tuple[str, ...] = ()
    startup: str = "initial"
    interrupted: str = ""
    ended_early: str = ""

    def contract(self, table: str) -> TableContract:
        """The contract of a table, by its name."""
        return next(contract for contract in self.tables if contract.name == table)

    def fences_of(self, table: str) -> list[Fence]:
        """A table's fences in the order of time."""
        own = (fence for fence in self.fences if fence.mark.table == table)
        return sorted(own, key=lambda fence: fence.mark.number)

    def snapshots_of(self, table: str) -> list[SnapshotRecord]:
        """A table's snapshots in the order of their ids."""
        own = (record for record in self.snapshots if record.table == table)
        return sorted(own, key=lambda record: record.snapshot_id)

    def failed_checkpoints(self, table: str) -> frozenset[int]:
        """The ids of the checkpoints of a table's job that failed, in all its lives."""
        return frozenset(
            checkpoint.checkpoint_id
            for job in self.jobs
            if job.name == table
            for checkpoint in job.checkpoints
            if checkpoint.status == "FAILED"
        )
