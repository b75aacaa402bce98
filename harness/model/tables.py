"""Tables: what source and sink have in common, the guide's totals, and the sink's snapshots."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, kw_only=True)
class AggregateContract:
    """Sums of a table's rows in a table of their own, whose merge engine is Paimon's `aggregation`.

    The job that feeds the table feeds this one too. There is a row per value of `groups`, which are columns
    of the table and the key here: `count` says of how many rows it is, `total` the sum of their column
    `summed`. Source: Paimon 1.3 docs, "Primary Key Table / Merge Engine / Aggregation".
    """

    name: str
    sink: str
    groups: tuple[str, ...]
    count: str
    total: str
    summed: str


@dataclass(frozen=True, kw_only=True)
class TableContract:
    """What the source table and the sink table have in common, in the order of the columns.

    `name` is also that of the job that feeds the sink. `source_key` is the source's primary key,
    `partition` the sink's partition column, `amount` and `time` the columns that the guide's §5.1
    queries sum and filter. `append_only`: the source is only inserted into, and the sink has no key.
    `aggregate` is where the same job keeps sums of the rows; only of a table that is append-only.
    """

    name: str
    source: str
    sink: str
    columns: tuple[str, ...]
    source_key: str
    partition: str
    amount: str
    time: str
    append_only: bool
    aggregate: AggregateContract | None = None

    @property
    def ledger_file(self) -> str:
        """The file in a run's evidence that holds this table's ledger."""
        return f"ledger-{self.name}.parquet"


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
class SnapshotId:
    """A snapshot of the sink and when it was committed (epoch ms, the committer's clock)."""

    snapshot_id: int
    committed_at_ms: int


@dataclass(frozen=True, kw_only=True)
class SnapshotRecord:
    """One snapshot of a table's history, as its metadata says.

    `kind` is APPEND, COMPACT, OVERWRITE or ANALYZE. `commit_identifier` is Flink's checkpoint id.
    Records are counted in files: an update of a primary-key table is a record of its own until it is
    merged. `changelog_records` counts -U and +U each.
    """

    table: str
    snapshot_id: int
    kind: str
    commit_user: str
    commit_identifier: int
    committed_at_ms: int
    total_records: int
    delta_records: int
    changelog_records: int
