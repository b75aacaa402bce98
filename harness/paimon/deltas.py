"""Deltas: which snapshot brought each row of an append-only table.

From the delta manifests of APPEND snapshots, never from the files of today: compaction writes rows again.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pypaimon_rust.datafusion import PaimonCatalog, Table

from harness.errors import ReaderError
from harness.model import SnapshotRecord, TableContract


def read_additions(
    options: dict[str, str], contract: TableContract, snapshots: Sequence[SnapshotRecord]
) -> pa.Table:
    """One row per row added: `snapshot_id`, and the table's source key; in the order of the snapshots.

    Costs some 20 ms a snapshot that has rows. Raises ReaderError when a snapshot's delta has not as many
    rows as its metadata says; what pypaimon-rust raises passes through.
    """
    brought = [s for s in snapshots if s.kind == "APPEND" and s.delta_records]
    table = PaimonCatalog(options).get_table(contract.sink)
    keys = [(s, _delta(table, contract.source_key, s.snapshot_id)) for s in brought]
    for snapshot, found in keys:
        if len(found) != snapshot.delta_records:
            raise ReaderError(
                f"snapshot {snapshot.snapshot_id} of {contract.sink} brought "
                f"{snapshot.delta_records} rows, its delta has {len(found)}"
            )
    ids = [pa.repeat(pa.scalar(s.snapshot_id, pa.int64()), len(found)) for s, found in keys]
    return pa.table(
        {
            "snapshot_id": pa.chunked_array(ids, type=pa.int64()),
            contract.source_key: pa.chunked_array([chunk for _, found in keys for chunk in found.chunks])
            if keys
            else pa.nulls(0),
        }
    )


def _delta(table: Table, key: str, snapshot_id: int) -> pa.ChunkedArray:
    builder = table.new_read_builder().with_projection([key])
    plan = builder.new_incremental_scan(snapshot_id - 1, snapshot_id, "delta").plan()
    batches = builder.new_read().read(plan.splits())
    return pa.Table.from_batches(batches)[key] if batches else pa.chunked_array([], type=pa.null())
