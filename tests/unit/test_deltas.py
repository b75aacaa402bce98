"""Deltas: each row of an append-only table is told with the snapshot that brought it, or it is an error."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import ReaderError, SinkFilesMissing
from tests.unit.sink_warehouse import INSIDE, LOG, SinkWarehouse

DAY = "2026-07-06"


@pytest.fixture
def sink(tmp_path: Path) -> SinkWarehouse:
    sink = SinkWarehouse(tmp_path)
    sink.insert(("a", 1, INSIDE, DAY), ("b", 2, INSIDE, "2026-07-07"))
    sink.insert(("c", 3, INSIDE, DAY))
    return sink


def added(sink: SinkWarehouse) -> list[tuple[int, str]]:
    table = sink.reader().additions(LOG, sink.reader().snapshots(LOG))
    return sorted((row["snapshot_id"], row["log_id"]) for row in table.to_pylist())


def test_every_row_comes_with_the_snapshot_that_brought_it(sink: SinkWarehouse) -> None:
    assert [(1, "a"), (1, "b"), (2, "c")] == added(sink)


def test_a_row_that_came_twice_is_told_twice(sink: SinkWarehouse) -> None:
    sink.insert(("a", 1, INSIDE, DAY))

    assert [(1, "a"), (1, "b"), (2, "c"), (3, "a")] == added(sink)


def test_rows_that_a_later_snapshot_wrote_anew_are_still_told_where_they_came(sink: SinkWarehouse) -> None:
    sink.run(f"INSERT OVERWRITE paimon.{LOG.sink} VALUES ('a', 1, TIMESTAMP '{INSIDE}', '{DAY}')")
    kinds = [snapshot.kind for snapshot in sink.reader().snapshots(LOG)]

    assert ["APPEND", "APPEND", "OVERWRITE"] == kinds
    assert [(1, "a"), (1, "b"), (2, "c")] == added(sink)


def test_the_first_snapshot_that_is_left_is_read_although_the_one_before_it_is_gone(
    sink: SinkWarehouse,
) -> None:
    sink.snapshot_file(1).unlink()

    assert [(2, "c")] == added(sink)


def test_a_delta_with_other_rows_than_its_metadata_says_is_an_error(sink: SinkWarehouse) -> None:
    one, two = sink.reader().snapshots(LOG)

    with pytest.raises(ReaderError, match=r"snapshot 2 .* brought 2 rows, its delta has 1"):
        sink.reader().additions(LOG, [one, replace(two, delta_records=2)])


def test_a_delta_whose_files_are_gone_is_an_error(sink: SinkWarehouse) -> None:
    snapshots = sink.reader().snapshots(LOG)
    for file in sink.data_files():
        file.unlink()

    with pytest.raises(SinkFilesMissing):
        sink.reader().additions(LOG, snapshots)


def test_a_table_without_snapshots_has_no_additions_but_the_columns(tmp_path: Path) -> None:
    table = SinkWarehouse(tmp_path).reader().additions(LOG, [])

    assert (["snapshot_id", "log_id"], 0) == (table.column_names, table.num_rows)
