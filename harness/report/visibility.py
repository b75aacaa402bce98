"""How much of each table was committed at the source and visible in the sink, when, and how late.

Pure but for the ledger files that the evidence names.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pyarrow.parquet as pq

from harness.ledger import UPDATE
from harness.model import Evidence, Fence, Progress, SnapshotRecord, TableContract

VISIBLE_AT_MOST = 120
"""Points of a table for the sink; longer runs are thinned."""

EVEN_POINTS = 60
"""Points of a table for the source that are spread evenly; each point of the sink brings two more."""


@dataclass(frozen=True, kw_only=True)
class Lag:
    """How long rows of a table waited until the snapshot that was committed at `at_ms` showed them.

    `newest_s` is the wait of the last row that it brought, `oldest_s` that of the first.
    """

    table: str
    at_ms: int
    newest_s: float
    oldest_s: float


def progress_of(evidence: Evidence) -> tuple[Progress, ...]:
    """Per table the points of two curves: committed at the source, visible in the sink.

    Counted in change records. Of an append-only table they are the rows of a snapshot; of a primary-key
    table the changelog records of all snapshots so far, which needs the changelog producer `input`.
    A table without a ledger has no points. Beside evenly spread ones, the source has a point when it had
    committed as many as the sink shows, and one for the next record: `lags` is exact at these.
    """
    points: list[Progress] = []
    for table in evidence.tables:
        ledger = Path(evidence.folder) / table.ledger_file
        if not ledger.is_file():
            continue
        at_ms, counts = _committed(ledger)
        visible = _visible(table, evidence, counts)
        wanted = {number for _, count in visible for number in (count, count + 1)}
        if counts:
            step = max(1, len(counts) // EVEN_POINTS)
            wanted |= {1, counts[-1], *counts[::step]}
        positions = sorted({p for p in (bisect_left(counts, n) for n in wanted) if p < len(counts)})
        points += [
            Progress(table=table.name, at_ms=at_ms[p], committed=counts[p], visible=-1) for p in positions
        ]
        points += [Progress(table=table.name, at_ms=at, committed=-1, visible=n) for at, n in visible]
    return tuple(points)


def lags(progress: Sequence[Progress]) -> tuple[Lag, ...]:
    """For each point of the sink how long its rows had waited; none where the source's part is not known.

    The wait of a row is the snapshot's commit time minus the time when the source had committed that many
    records. Clocks of two machines may make it negative. Of a thinned curve, `oldest_s` is counted from
    the point before.
    """
    found: list[Lag] = []
    for table in dict.fromkeys(point.table for point in progress):
        source = [point for point in progress if point.table == table and point.committed >= 0]
        counts = [point.committed for point in source]
        before = 0
        for point in (point for point in progress if point.table == table):
            if point.visible <= before:
                continue
            first, last = bisect_left(counts, before + 1), bisect_left(counts, point.visible)
            before = point.visible
            if last < len(source):
                found.append(
                    Lag(
                        table=table,
                        at_ms=point.at_ms,
                        newest_s=(point.at_ms - source[last].at_ms) / 1000,
                        oldest_s=(point.at_ms - source[first].at_ms) / 1000,
                    )
                )
    return tuple(found)


def _committed(ledger: Path) -> tuple[list[int], list[int]]:
    """For each operation when it was committed, and how many change records there were with it."""
    table = pq.read_table(ledger, columns=["committed_at_ms", "kind"])
    weights = (2 if kind == UPDATE else 1 for kind in table["kind"].to_pylist())
    return table["committed_at_ms"].to_pylist(), list(accumulate(weights))


def _visible(table: TableContract, evidence: Evidence, counts: Sequence[int]) -> list[tuple[int, int]]:
    """When (epoch ms) a snapshot showed more than all before it, and how many change records then."""
    snapshots = sorted(
        (item for item in evidence.snapshots if item.table == table.name), key=lambda item: item.snapshot_id
    )
    shown = _rows(snapshots) if table.append_only else _changes(snapshots, evidence.fences, counts)
    grown: list[tuple[int, int]] = []
    for snapshot in snapshots:
        count = shown.get(snapshot.snapshot_id, 0)
        if count > (grown[-1][1] if grown else 0):
            grown.append((snapshot.committed_at_ms, count))
    step = -(-len(grown) // VISIBLE_AT_MOST)
    # The last one of each group: the curve ends where it really ended.
    return [grown[min(first + step, len(grown)) - 1] for first in range(0, len(grown), step or 1)]


def _rows(snapshots: Sequence[SnapshotRecord]) -> Mapping[int, int]:
    return {item.snapshot_id: item.total_records for item in snapshots}


def _changes(
    snapshots: Sequence[SnapshotRecord], fences: Sequence[Fence], counts: Sequence[int]
) -> Mapping[int, int]:
    """Changelog records so far, by snapshot.

    The initial load reads a row once however often it has changed, and first snapshots may have expired:
    so the sum is set right where the truth is known, at the first fence. None without either.
    """
    if not snapshots:
        return {}
    sums = dict(
        zip(
            (item.snapshot_id for item in snapshots),
            accumulate(item.changelog_records for item in snapshots),
            strict=True,
        )
    )
    known = [
        fence
        for fence in sorted(fences, key=lambda fence: fence.mark.number)
        if fence.mark.table == snapshots[0].table
        and fence.visible
        and fence.snapshot_id in sums
        and 0 < fence.mark.operation <= len(counts)
    ]
    if known:
        missing = counts[known[0].mark.operation - 1] - sums[known[0].snapshot_id]
        return {number: total + missing for number, total in sums.items()}
    return sums if snapshots[0].snapshot_id == 1 else {}
