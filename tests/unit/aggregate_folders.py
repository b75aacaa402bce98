"""Clean evidence of a table of sums, made from a ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from factories import LOG_SUMS

from harness.model import Aggregate, AggregateContract, SnapshotRecord, TableContract

__all__ = ["LOG_SUMS", "aggregate", "sums"]


def aggregate(
    ledger: pa.Table,
    table: TableContract,
    snapshots: Sequence[SnapshotRecord],
    cuts: Mapping[int, int],
    folder: Path,
) -> Aggregate:
    """The sums of a job that went well. `snapshots` are theirs, and `cuts` their ids with the operation
    that each holds the source after. The table's contract must have an aggregate.
    """
    assert table.aggregate
    file = f"aggregate-{table.name}.parquet"
    parts = [sums(ledger.slice(0, operation), table.aggregate, number) for number, operation in cuts.items()]
    pq.write_table(pa.concat_tables(parts), folder / file)
    return Aggregate(table=table.name, snapshots=tuple(snapshots), rows=file)


def sums(operations: pa.Table, contract: AggregateContract, snapshot: int) -> pa.Table:
    """What a snapshot holds that these operations were applied to, each once."""
    found: dict[tuple[str, ...], tuple[int, int]] = {}
    for row in operations.to_pylist():
        group = tuple(row[name] for name in contract.groups)
        count, total = found.get(group, (0, 0))
        found[group] = (count + 1, total + row[contract.summed])
    types = [pa.int64(), *(pa.string() for _ in contract.groups), pa.int64(), pa.int64()]
    names = ["snapshot_id", *contract.groups, contract.count, contract.total]
    rows = [
        dict(zip(names, (snapshot, *group, *values), strict=True)) for group, values in sorted(found.items())
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema(list(zip(names, types, strict=True))))
