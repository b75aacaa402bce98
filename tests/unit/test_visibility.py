"""Progress: both curves in change records, and lags that come out of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import factories
import pyarrow as pa
import pyarrow.parquet as pq

from harness.model import Evidence, Fence, Progress, SnapshotRecord, TableContract
from harness.report.visibility import VISIBLE_AT_MOST, Lag, lags, progress_of


def committed(at_ms: int, count: int, table: str = "orders") -> Progress:
    return Progress(table=table, at_ms=at_ms, committed=count, visible=-1)


def visible(at_ms: int, count: int, table: str = "orders") -> Progress:
    return Progress(table=table, at_ms=at_ms, committed=-1, visible=count)


def snapshot(
    number: int, at_ms: int, *, total: int = 0, changes: int = 0, table: TableContract = factories.ORDERS
) -> SnapshotRecord:
    return replace(
        factories.snapshot(table.name),
        snapshot_id=number,
        committed_at_ms=at_ms,
        total_records=total,
        changelog_records=changes,
    )


def evidence(
    folder: Path,
    table: TableContract,
    operations: Sequence[tuple[int, str]],
    snapshots: Sequence[SnapshotRecord],
    fences: Sequence[Fence] = (),
) -> Evidence:
    """Evidence with one table, whose ledger holds the given operations: when, and of which kind."""
    at_ms, kinds = zip(*operations, strict=True)
    ledger = pa.table({"operation": range(1, len(kinds) + 1), "committed_at_ms": at_ms, "kind": kinds})
    pq.write_table(ledger, folder / table.ledger_file)
    return replace(
        factories.evidence(),
        folder=str(folder),
        tables=(table,),
        snapshots=tuple(snapshots),
        fences=tuple(fences),
    )


def fence_at(operation: int, snapshot_id: int, *, seen: bool = True) -> Fence:
    return replace(
        factories.fence(),
        mark=factories.mark(operation=operation),
        snapshot_id=snapshot_id,
        visible=seen,
    )


def test_an_update_counts_two_change_records(tmp_path: Path) -> None:
    found = progress_of(
        evidence(tmp_path, factories.ORDERS, [(10, "insert"), (20, "update"), (30, "delete")], [])
    )

    expected = (committed(10, 1), committed(20, 3), committed(30, 4))
    assert expected == found


def test_of_an_append_only_table_the_rows_of_each_snapshot_are_visible(tmp_path: Path) -> None:
    log = factories.BEHAVIOR_LOG
    snapshots = [snapshot(7, 25, total=2, table=log), snapshot(8, 45, total=3, table=log)]

    found = progress_of(evidence(tmp_path, log, [(10, "insert"), (20, "insert"), (40, "insert")], snapshots))

    expected = (visible(25, 2, log.name), visible(45, 3, log.name))
    assert expected == found[-2:]


def test_of_a_primary_key_table_the_changelog_records_so_far_are_visible(tmp_path: Path) -> None:
    operations = [(10, "insert"), (20, "update"), (40, "insert")]
    snapshots = [snapshot(1, 25, total=1, changes=3), snapshot(2, 45, total=2, changes=1)]

    found = progress_of(evidence(tmp_path, factories.ORDERS, operations, snapshots))

    expected = (visible(25, 3), visible(45, 4))
    assert expected == found[-2:]


def test_a_load_that_merged_changes_is_set_right_at_the_first_fence(tmp_path: Path) -> None:
    operations = [(10, "insert"), (11, "update"), (20, "insert"), (40, "insert")]
    snapshots = [snapshot(1, 15, changes=1), snapshot(2, 25, changes=1), snapshot(3, 45, changes=1)]

    found = progress_of(evidence(tmp_path, factories.ORDERS, operations, snapshots, [fence_at(3, 2)]))

    expected = (visible(15, 3), visible(25, 4), visible(45, 5))
    assert expected == found[-3:]


def test_a_changelog_whose_beginning_expired_shows_nothing_without_a_fence(tmp_path: Path) -> None:
    operations = [(10, "insert"), (20, "insert")]
    unseen = fence_at(2, 9, seen=False)

    found = progress_of(
        evidence(tmp_path, factories.ORDERS, operations, [snapshot(9, 25, changes=1)], [unseen])
    )

    expected = (committed(10, 1), committed(20, 2))
    assert expected == found


def test_a_snapshot_that_brings_nothing_new_is_no_point(tmp_path: Path) -> None:
    log = factories.BEHAVIOR_LOG
    snapshots = [snapshot(1, 25, total=1, table=log), snapshot(2, 45, total=1, table=log)]

    found = progress_of(evidence(tmp_path, log, [(10, "insert")], snapshots))

    expected = [visible(25, 1, log.name)]
    assert expected == [point for point in found if point.visible >= 0]


def test_a_table_without_a_ledger_has_no_points() -> None:
    assert () == progress_of(factories.evidence())


def test_a_long_run_is_thinned_and_keeps_its_ends(tmp_path: Path) -> None:
    log, many = factories.BEHAVIOR_LOG, 5000
    snapshots = [snapshot(n, 10 * n + 5, total=n, table=log) for n in range(1, many + 1)]

    found = progress_of(evidence(tmp_path, log, [(10 * n, "insert") for n in range(1, many + 1)], snapshots))

    shown = [point for point in found if point.visible >= 0]
    assert len(shown) <= VISIBLE_AT_MOST
    assert visible(50_005, 5000, log.name) == shown[-1]
    assert committed(10, 1, log.name) == found[0]
    assert len(found) <= 430


def test_the_lag_of_a_snapshot_is_that_of_its_newest_and_its_oldest_row() -> None:
    points = (
        committed(1_000, 1),
        committed(2_000, 2),
        committed(5_000, 3),
        committed(6_000, 9),
        visible(2_500, 2),
        visible(7_000, 9),
    )

    expected = (
        Lag(table="orders", at_ms=2_500, newest_s=0.5, oldest_s=1.5),
        Lag(table="orders", at_ms=7_000, newest_s=1.0, oldest_s=2.0),
    )
    assert expected == lags(points)


def test_rows_that_the_source_is_not_known_to_have_committed_have_no_lag() -> None:
    assert () == lags((committed(1_000, 1), visible(2_000, 2)))


def test_the_pause_of_a_fence_is_no_lag(tmp_path: Path) -> None:
    log = factories.BEHAVIOR_LOG
    operations = [(n * 10, "insert") for n in range(1, 301)] + [
        (60_000 + n * 10, "insert") for n in range(300)
    ]
    snapshots = [snapshot(1, 3_500, total=300, table=log), snapshot(2, 63_500, total=600, table=log)]

    found = lags(progress_of(evidence(tmp_path, log, operations, snapshots)))

    expected = Lag(table=log.name, at_ms=63_500, newest_s=0.51, oldest_s=3.5)
    assert expected == found[-1]
