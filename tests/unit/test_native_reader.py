"""The native reader, on real tables in a folder: what it reads at which snapshot, and how it fails."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import ReaderError, SinkFilesMissing
from harness.model import PartitionTotals, SnapshotId
from harness.ports import TotalsRequest
from tests.unit.sink_warehouse import INSIDE, LOG, OUTSIDE, WINDOW, SinkWarehouse

DAY = "2026-07-06"


@pytest.fixture
def sink(tmp_path: Path) -> SinkWarehouse:
    """Three snapshots: a and b; c; a once more."""
    sink = SinkWarehouse(tmp_path)
    sink.insert(("a", 100, INSIDE, DAY), ("b", 20, OUTSIDE, "2026-07-07"))
    sink.insert(("c", 3, INSIDE, DAY))
    sink.insert(("a", 100, INSIDE, DAY))
    return sink


def request(snapshot_id: int, *, at_ms: int = 0) -> TotalsRequest:
    return TotalsRequest(table=LOG, window=WINDOW, snapshot_id=snapshot_id, at_ms=at_ms)


def of_day(rows: int, keys: int, amount: str) -> PartitionTotals:
    return PartitionTotals(
        partition=DAY, rows=rows, keys=keys, amount=amount, window_keys=keys, window_amount=amount
    )


def test_each_request_is_answered_at_its_own_snapshot_and_in_its_place(sink: SinkWarehouse) -> None:
    third, first, second = sink.reader().totals([request(3), request(1), request(2)])

    other = PartitionTotals(
        partition="2026-07-07", rows=1, keys=1, amount="20.00", window_keys=0, window_amount="0.00"
    )
    assert (of_day(3, 2, "203.00"), other) == third.totals
    assert (of_day(1, 1, "100.00"), other) == first.totals
    assert (of_day(2, 2, "103.00"), other) == second.totals
    assert {""} == {reading.error for reading in (first, second, third)}


def test_a_snapshot_that_is_not_there_is_an_error_and_not_a_missing_file(sink: SinkWarehouse) -> None:
    gone, there = sink.reader().totals([request(9), request(1)])

    assert "expired or was never there" in gone.error
    assert (False, ()) == (gone.files_missing, gone.totals)
    assert "" == there.error


def test_a_snapshot_whose_files_are_gone_is_told_so(sink: SinkWarehouse) -> None:
    for file in sink.data_files():
        file.unlink()
    (reading,) = sink.reader().totals([request(1)])

    assert reading.files_missing
    assert () == reading.totals
    with pytest.raises(SinkFilesMissing):
        sink.reader().rows(LOG, 1)


def test_a_request_by_time_is_refused_rather_than_answered_at_an_id(sink: SinkWarehouse) -> None:
    (reading,) = sink.reader().totals([request(1, at_ms=1_800_000_000_000)])

    assert "can't read by time" in reading.error
    assert () == reading.totals


def test_a_table_that_does_not_exist_is_an_error(sink: SinkWarehouse) -> None:
    with pytest.raises(ReaderError, match="nosuch"):
        sink.reader().latest(replace(LOG, sink="dwd.nosuch"))


def test_the_snapshots_are_told_with_what_each_brought(sink: SinkWarehouse) -> None:
    found = sink.reader().snapshots(LOG)

    assert [(1, "APPEND", 2, 2), (2, "APPEND", 3, 1), (3, "APPEND", 4, 1)] == [
        (s.snapshot_id, s.kind, s.total_records, s.delta_records) for s in found
    ]
    assert {LOG.name} == {s.table for s in found}
    assert sorted(s.committed_at_ms for s in found) == [s.committed_at_ms for s in found]
    assert SnapshotId(snapshot_id=3, committed_at_ms=found[-1].committed_at_ms) == sink.reader().latest(LOG)


def test_commit_times_are_utc_whatever_the_zone_of_the_machine(
    sink: SinkWarehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    written_ms = sink.snapshot_file(3).stat().st_mtime * 1000
    monkeypatch.setenv("TZ", "Asia/Tokyo")

    assert abs(written_ms - sink.reader().snapshots(LOG)[-1].committed_at_ms) < 60_000


def test_a_table_without_a_snapshot_has_no_latest(tmp_path: Path) -> None:
    assert SinkWarehouse(tmp_path).reader().latest(LOG) is None


def test_rows_and_their_count_are_those_of_the_snapshot(sink: SinkWarehouse) -> None:
    reader = sink.reader()

    assert list(LOG.columns) == reader.rows(LOG, 2).column_names
    assert ["a", "b", "c"] == sorted(reader.rows(LOG, 2)["log_id"].to_pylist())
    assert [2, 3, 4] == [reader.count(LOG, snapshot) for snapshot in (1, 2, 3)]


@pytest.mark.parametrize(
    ("partition", "key", "snapshot", "shown"),
    [
        (DAY, "c", 2, True),
        (DAY, "c", 1, False),
        ("2026-07-07", "c", 2, False),
        (DAY, "c' OR 'x'='x", 2, False),
    ],
)
def test_a_row_is_found_by_partition_key_and_snapshot(
    sink: SinkWarehouse, partition: str, key: str, snapshot: int, shown: bool
) -> None:
    assert shown == sink.reader().has_row(LOG, partition=partition, key=key, snapshot_id=snapshot)


def test_a_number_finds_a_row_too(sink: SinkWarehouse) -> None:
    by_user = replace(LOG, source_key="user_id")

    assert sink.reader().has_row(by_user, partition=DAY, key=100, snapshot_id=1)
    assert not sink.reader().has_row(by_user, partition=DAY, key=101, snapshot_id=1)


def test_the_options_in_force_are_told(sink: SinkWarehouse) -> None:
    assert {"bucket": "-1", "file.format": "parquet"}.items() <= sink.reader().options(LOG).items()


def test_a_table_has_no_consumer_unless_one_was_set(sink: SinkWarehouse) -> None:
    assert {} == sink.reader().consumers(LOG)
