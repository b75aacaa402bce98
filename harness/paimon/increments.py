"""Increments: the rows of one snapshot's delta or changelog, read by pypaimon-rust.

From the manifests of that snapshot, never from the files of today: compaction writes rows again. Files are
not merged: a row comes as often as it was written. Seen on Paimon 1.3.1 and pypaimon-rust 0.4 (2026-11-30):
the delta of a COMPACT snapshot is empty, its changelog is not read either unless it has one.
"""

from __future__ import annotations

import pyarrow as pa
from pypaimon_rust.datafusion import Table

from harness.model import TableContract

DELTA, CHANGELOG = "delta", "changelog"

_SEQUENCE = "_SEQUENCE_NUMBER"


def read_increment(
    table: Table, contract: TableContract, snapshot_id: int, mode: str, row_schema: pa.Schema
) -> pa.Table:
    """The rows that a snapshot brought: `rowkind`, `sequence`, and the contract's columns in `row_schema`.

    `mode` is DELTA or CHANGELOG. A table without a key has no sequence numbers: they are 0. Costs some
    20 ms on object storage. What pypaimon-rust raises passes through.
    """
    columns = list(contract.columns)
    wanted = columns if contract.append_only else [_SEQUENCE, *columns]
    builder = table.new_read_builder().with_include_row_kind(True).with_projection(wanted)
    plan = builder.new_incremental_scan(snapshot_id - 1, snapshot_id, mode).plan()
    batches = builder.new_read().read(plan.splits())
    schema = pa.schema([("rowkind", pa.string()), ("sequence", pa.int64()), *row_schema])
    if not batches:
        return schema.empty_table()
    found = pa.Table.from_batches(batches)
    if contract.append_only:
        found = found.append_column(_SEQUENCE, pa.repeat(pa.scalar(0, pa.int64()), found.num_rows))
    return found.select(["rowkind", _SEQUENCE, *columns]).rename_columns(schema.names).cast(schema)
