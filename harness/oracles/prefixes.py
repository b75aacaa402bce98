"""Where each snapshot of a table stands in its ledger: the operation whose state it holds."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import pyarrow as pa

from harness.model import NO_OPERATION, SnapshotPosition
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.fingerprints import Content, Stretches
from harness.oracles.histories import Seen, seen
from harness.oracles.late_commits import marked


def positions_of(exhibits: Exhibits) -> tuple[SnapshotPosition, ...]:
    """The positions of all tables' snapshots, for reports; none of a table that has no usable evidence."""
    found: list[SnapshotPosition] = []
    for table in exhibits.tables():
        try:
            found += positions(table)
        except (OSError, ValueError, KeyError, pa.ArrowException, duckdb.Error):
            # Evidence that is damaged: the oracle that reads it too says so, and makes the run UNKNOWN.
            continue
    return tuple(found)


def positions(table: OpenTable) -> tuple[SnapshotPosition, ...]:
    """The position of each known snapshot, in order; none when no base is known.

    It is the first operation, not before the snapshot before it, whose state the snapshot holds. One that
    went back has the last such operation before that; one that is no state at all has NO_OPERATION, and
    may be torn.
    """
    return table.once(_positions)


def _positions(table: OpenTable) -> tuple[SnapshotPosition, ...]:
    found = seen(table)
    if found is None:
        return ()
    holds = known_contents(table, found)
    transactions, committed = table.ledger["transaction"], table.ledger["committed_at_ms"]
    placed, newest = [], 0
    for record in found.known:
        operation = _stands(holds[record.snapshot_id].when, newest)
        newest = max(newest, operation)
        within = 0 < operation < len(transactions)
        placed.append(
            SnapshotPosition(
                table=table.name,
                snapshot_id=record.snapshot_id,
                kind=record.kind,
                at_ms=record.committed_at_ms,
                operation=operation,
                lag_ms=record.committed_at_ms - committed[operation - 1].as_py() if operation > 0 else 0,
                inside_transaction=within
                and bool(transactions[operation - 1].as_py() == transactions[operation].as_py()),
                whole=record.snapshot_id in found.whole,
            )
        )
    return marked(table, placed)


def known_contents(table: OpenTable, found: Seen) -> Mapping[int, Content]:
    """What each known snapshot holds, by its number."""
    return table.contents([record.snapshot_id for record in found.known])


def most_agreed(partitions: Mapping[str, Stretches], *, first: int) -> int:
    """The operation, not before `first`, after which most partitions are as they are; of several the last.

    `first` when there is none.
    """
    turns = []
    for when in partitions.values():
        for start, end in zip(when.starts, when.ends, strict=True):
            if end >= first:
                # An end counts after the starts at the same operation.
                turns += [(max(start, first), 0), (end, 1)]
    best, most, open_stretches = first, 0, 0
    for operation, is_end in sorted(turns):
        open_stretches += -1 if is_end else 1
        if not is_end and open_stretches >= most:
            best, most = operation, open_stretches
    return best


def _stands(when: Stretches, newest: int) -> int:
    ahead = when.first_from(newest)
    if ahead is not None:
        return ahead
    back = when.last_until(newest)
    return NO_OPERATION if back is None else back
