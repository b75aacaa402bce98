"""Torn snapshots: a part of what a failed checkpoint had prepared, committed with a later checkpoint.

Flink fails no job over a checkpoint that expired, as long as no more than tolerable-failed-checkpoints have
in a row. Paimon's committer keeps what some writers had already prepared for it, and at the next checkpoint
that completes commits a snapshot for each checkpoint number it has, the failed ones first (CommitterOperator
groups by checkpoint). A writer that had not prepared has its rows in the next of these snapshots. So for a
moment, and by time travel for ever, readers see one writer's rows and not another's, and guide §4.3 (no
intermediate state) does not hold. With tolerable-failed-checkpoints 0 a job restarts instead, and nothing
is left to be committed late. Seen on Paimon 1.3.1 and Flink 1.20.3 (2026-11-30).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from harness.model import SnapshotPosition, SnapshotRecord
from harness.oracles.comparison import engine
from harness.oracles.exhibits import OpenTable
from harness.replay import rows_at

LIMIT = "torn-late-commits"
"""What a scenario accepts that lets torn snapshots pass."""

TODO = (
    "set execution.checkpointing.tolerable-failed-checkpoints to 0, or have readers that can bear a state "
    f"that another commit completes at once, and let the scenario accept {LIMIT}"
)


def marked(table: OpenTable, positions: Sequence[SnapshotPosition]) -> tuple[SnapshotPosition, ...]:
    """The positions, with those that are torn marked as such.

    A snapshot is torn that holds the source after no operation; that was committed for a checkpoint which
    the job's history says failed; after which the same commit user committed one that is good; and of which
    each row is one that the source had between the good snapshot before it and that after it. So is a
    compaction of the same checkpoint that follows on a torn snapshot and changes no row of it.
    """
    records = {record.snapshot_id: record for record in table.snapshots}
    found, floor = list(positions), 0
    for index, position in enumerate(positions):
        if position.operation >= 0:
            floor = max(floor, position.operation)
            continue
        completed = next((later for later in positions[index + 1 :] if later.operation >= floor), None)
        before = found[index - 1] if index else None
        if completed and (
            _torn(table, records, position, completed, floor)
            or (before and before.torn and _compacted(table, records, before, position))
        ):
            found[index] = replace(position, torn=True)
    return tuple(found)


def completed_by(positions: Sequence[SnapshotPosition]) -> dict[int, SnapshotPosition]:
    """The snapshot that completes each torn one, by the number of the torn one."""
    return {
        position.snapshot_id: next(later for later in positions[index + 1 :] if later.operation >= 0)
        for index, position in enumerate(positions)
        if position.torn
    }


def _torn(
    table: OpenTable,
    records: dict[int, SnapshotRecord],
    position: SnapshotPosition,
    completed: SnapshotPosition,
    floor: int,
) -> bool:
    record, after = records[position.snapshot_id], records[completed.snapshot_id]
    return (
        record.kind == "APPEND"
        and record.commit_identifier in table.failed_checkpoints
        and record.commit_user == after.commit_user
        and record.commit_identifier < after.commit_identifier
        and _in_between(table, position.snapshot_id, floor, completed.operation)
    )


def _compacted(
    table: OpenTable,
    records: dict[int, SnapshotRecord],
    before: SnapshotPosition,
    position: SnapshotPosition,
) -> bool:
    torn, record = records[before.snapshot_id], records[position.snapshot_id]
    return (
        record.kind == "COMPACT"
        and record.snapshot_id == torn.snapshot_id + 1
        and (record.commit_user, record.commit_identifier) == (torn.commit_user, torn.commit_identifier)
        and record.snapshot_id not in table.changes["snapshot_id"].unique().to_pylist()
    )


def _in_between(table: OpenTable, snapshot_id: int, first: int, last: int) -> bool:
    """Whether what a snapshot has beyond the source after `first`, and lacks of it, was changed until `last`.

    A row that is new must be one that an operation in between wrote, and come once; a row that is gone must
    be of a key that an operation in between touched.
    """
    contract = table.contract
    columns = ", ".join(f'"{name}"' for name in contract.columns)
    with engine() as database:
        database.register("ledger", table.ledger.slice(first, last - first))
        database.register("before", table.state(first))
        database.register("torn", rows_at(table.changes, snapshot_id, contract))
        strange = database.execute(
            f"""
            WITH new AS (SELECT {columns} FROM torn EXCEPT ALL SELECT {columns} FROM before),
            gone AS (SELECT {columns} FROM before EXCEPT ALL SELECT {columns} FROM torn)
            SELECT
              (SELECT count(*) FROM (
                 SELECT {columns} FROM new EXCEPT ALL
                 SELECT DISTINCT {columns} FROM ledger WHERE kind <> 'delete'))
              + (SELECT count(*) FROM gone WHERE "{contract.source_key}" NOT IN
                   (SELECT "{contract.source_key}" FROM ledger))
            """  # noqa: S608 - names of the contract
        ).fetchone()
    return strange is not None and strange[0] == 0
