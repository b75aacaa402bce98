"""Whether a fault landed inside the bulk update that it was to strike: part of the oracle `fault_effect`.

It did when the job was restored from a checkpoint whose snapshot holds a part of the update. It can't see
where in a row event of the binlog that was: a source that gets this wrong only inside one may be lucky.
"""

from __future__ import annotations

from harness.model import NO_OPERATION, BulkUpdate, Check
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.histories import APPEND
from harness.oracles.prefixes import positions


def landed(exhibits: Exhibits, bulk: BulkUpdate) -> Check:
    """Holds when the snapshot of the restored checkpoint is the source after some row of the update, and
    not after all of them. What is not known does not hold.
    """
    rows = bulk.last_operation - bulk.first_operation + 1
    operation, said = _restored(exhibits.table(bulk.table), bulk)
    done = operation - bulk.first_operation + 1
    held = 0 < done < rows
    if operation >= 0:
        where = f"{done:,} of its {rows:,} rows" if held else "before it" if done < 1 else "after it"
        said += f", which holds the source after operation {operation:,}: {where}"
    return Check(
        name=f"{bulk.table}: restored from a checkpoint inside the bulk update",
        expected=f"one after operations {bulk.first_operation:,} to {bulk.last_operation - 1:,}",
        actual=said,
        held=held,
    )


def _restored(table: OpenTable, bulk: BulkUpdate) -> tuple[int, str]:
    """The operation after which the job was restored, -1 when not known, and how that was found."""
    checkpoint = bulk.restored_checkpoint
    if not checkpoint:
        return NO_OPERATION, "no restore was seen"
    said = f"checkpoint {checkpoint}"
    own = [
        record.snapshot_id
        for record in table.snapshots
        if record.kind == APPEND and record.commit_identifier == checkpoint
    ]
    if not own:
        return NO_OPERATION, f"{said}; it has no snapshot"
    said += f", snapshot {own[-1]}"
    operation = next((each.operation for each in positions(table) if each.snapshot_id == own[-1]), None)
    if operation is None:
        return NO_OPERATION, f"{said}; what it held is not known"
    if operation == NO_OPERATION:
        return NO_OPERATION, f"{said}, which holds the source after no operation"
    return operation, said
