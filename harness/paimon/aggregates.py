"""Tables of sums, collected: what each snapshot of a table's aggregate holds, read whole.

pypaimon-rust merges the sums by itself, so neither Flink nor Paimon's own merging is asked. (Seen with 0.4
on tables that Paimon 1.3.1 wrote: right also before, in and after a COMPACT snapshot; 10 ms a snapshot.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from harness.errors import ReaderError, SinkFilesMissing, WaitTimeout
from harness.model import Aggregate, AggregateContract, Fence, SnapshotGap, SnapshotRecord, TableContract
from harness.waiting import wait_until

COMMIT_S = 30.0
"""How long a commit may come after that of the same checkpoint in the job's other table."""


class Reader(Protocol):
    """What is needed of the native reader. Both raise SinkFilesMissing or ReaderError."""

    def snapshots(self, contract: AggregateContract) -> tuple[SnapshotRecord, ...]: ...

    def query(self, sql: str) -> pa.Table: ...


def read_aggregates(
    reader: Reader,
    tables: Sequence[TableContract],
    fences: Sequence[Fence],
    snapshots: Mapping[str, Sequence[SnapshotRecord]],
    folder: Path,
    *,
    patience_s: float = COMMIT_S,
) -> tuple[Aggregate, ...]:
    """Read the aggregate of each of these tables that has one; rows go into `folder`.

    `snapshots` are the tables' own, by name. A job commits to its two tables one after the other, so this
    first waits for the checkpoint that the table's last fence was read of: for that commit, not for what
    is in it. A commit that does not come is for the oracle to judge.
    """
    return tuple(
        _read(reader, table.name, table.aggregate, _last_commit(fences, snapshots, table), folder, patience_s)
        for table in tables
        if table.aggregate
    )


def _read(
    reader: Reader, table: str, contract: AggregateContract, until: int, folder: Path, patience_s: float
) -> Aggregate:
    try:
        with suppress(WaitTimeout):
            wait_until(
                f"the commit of checkpoint {until} in {contract.sink}",
                lambda: any(one.commit_identifier >= until for one in reader.snapshots(contract)),
                timeout_s=patience_s,
                every_s=1,
            )
        records = reader.snapshots(contract)
    except ReaderError as error:
        return Aggregate(table=table, error=error.what)
    file = f"aggregate-{table}.parquet"
    parts, gaps = [_schema(contract).empty_table()], []
    for record in records:
        number = record.snapshot_id
        try:
            parts.append(_rows(reader, contract, number))
        except ReaderError as error:
            missing = isinstance(error, SinkFilesMissing)
            gaps.append(SnapshotGap(snapshot_id=number, error=error.what, files_missing=missing))
    pq.write_table(pa.concat_tables(parts), folder / file)
    return Aggregate(table=table, snapshots=records, gaps=tuple(gaps), rows=file)


def _rows(reader: Reader, contract: AggregateContract, snapshot_id: int) -> pa.Table:
    schema = _schema(contract)
    columns = ", ".join(name for name in schema.names[1:])
    found = reader.query(f"SELECT {columns} FROM paimon.{contract.sink} VERSION AS OF {snapshot_id}")
    if not found.num_rows:
        return schema.empty_table()
    numbers = pa.repeat(pa.scalar(snapshot_id, pa.int64()), found.num_rows)
    return found.add_column(0, schema.field(0), numbers).cast(schema)


def _schema(contract: AggregateContract) -> pa.Schema:
    return pa.schema(
        [
            ("snapshot_id", pa.int64()),
            *((name, pa.string()) for name in contract.groups),
            (contract.count, pa.int64()),
            (contract.total, pa.int64()),
        ]
    )


def _last_commit(
    fences: Sequence[Fence], snapshots: Mapping[str, Sequence[SnapshotRecord]], table: TableContract
) -> int:
    """The commit identifier of the snapshot at which the table's last fence was read; 0 when not known."""
    read = {fence.snapshot_id for fence in fences if fence.mark.table == table.name}
    return max(
        (one.commit_identifier for one in snapshots.get(table.name, ()) if one.snapshot_id in read), default=0
    )
