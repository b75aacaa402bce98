"""Increments and histories of real tables in a folder: what each snapshot brought, as the reader has it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import ReaderError
from harness.model import TableContract
from harness.paimon.history import ReadHistory
from harness.replay import rows_at
from tests.unit.sink_warehouse import INSIDE, LOG, SinkWarehouse

DAY = "2026-07-06"
KEYED = replace(LOG, name="orders", sink="dwd.dwd_order_detail", append_only=False)


@pytest.fixture
def sink(tmp_path: Path) -> SinkWarehouse:
    sink = SinkWarehouse(tmp_path)
    sink.insert(("a", 1, INSIDE, DAY), ("b", 2, INSIDE, "2026-07-07"))
    sink.insert(("c", 3, INSIDE, DAY))
    return sink


def history(sink: SinkWarehouse, contract: TableContract = LOG, *, base: int = 1) -> ReadHistory:
    reader = sink.reader()
    return reader.history(contract, reader.snapshots(contract), base=base)


def brought(found: ReadHistory) -> list[tuple[int, str, str]]:
    rows = found.changes.to_pylist()
    return sorted((row["snapshot_id"], row["rowkind"], row["log_id"]) for row in rows)


def keyed(sink: SinkWarehouse) -> None:
    """A table with a key, in two snapshots; the second has another row of a key."""
    sink.run(
        f"CREATE TABLE paimon.{KEYED.sink} (log_id STRING, user_id BIGINT, event_time TIMESTAMP(3), "
        "dt STRING, PRIMARY KEY (dt, log_id)) PARTITIONED BY (dt) "
        "WITH ('bucket' = '2', 'file.format' = 'parquet', 'changelog-producer' = 'input')"
    )
    for rows in ((("a", 1), ("b", 2)), (("a", 9),)):
        values = ", ".join(f"('{key}', {user}, TIMESTAMP '{INSIDE}', '{DAY}')" for key, user in rows)
        sink.run(f"INSERT INTO paimon.{KEYED.sink} VALUES {values}")


def test_every_row_comes_with_the_snapshot_that_brought_it(sink: SinkWarehouse) -> None:
    found = history(sink)

    assert [(1, "+I", "a"), (1, "+I", "b"), (2, "+I", "c")] == brought(found)
    assert ((1, 2), (), "none", None) == (
        found.whole,
        found.gaps,
        found.changelog_producer,
        found.changelog,
    )


def test_a_row_that_came_twice_is_told_twice(sink: SinkWarehouse) -> None:
    sink.insert(("a", 1, INSIDE, DAY))

    assert (3, "+I", "a") in brought(history(sink))
    assert ["a", "a", "b", "c"] == sorted(rows_at(history(sink).changes, 3, LOG)["log_id"].to_pylist())


def test_rows_that_were_overwritten_are_told_where_they_came_and_where_they_went(sink: SinkWarehouse) -> None:
    sink.run(f"INSERT OVERWRITE paimon.{LOG.sink} VALUES ('z', 1, TIMESTAMP '{INSIDE}', '{DAY}')")

    found = history(sink)

    assert [(1, "+I", "a"), (1, "+I", "b"), (2, "+I", "c")] == brought(found)[:3]
    assert {(3, "-D", "a"), (3, "-D", "c"), (3, "+I", "z")} <= set(brought(found)[3:])
    assert ["b", "z"] == sorted(rows_at(found.changes, 3, LOG)["log_id"].to_pylist())


def test_the_first_snapshot_that_is_left_is_read_although_the_one_before_it_is_gone(
    sink: SinkWarehouse,
) -> None:
    sink.snapshot_file(1).unlink()
    found = history(sink, base=2)

    assert ([(2, "+I", "a"), (2, "+I", "b"), (2, "+I", "c")], ()) == (brought(found), found.gaps)
    assert 2 == found.changes["part"].to_pylist().count("correction")


def test_snapshots_whose_files_are_gone_are_gaps(sink: SinkWarehouse) -> None:
    for file in sink.data_files():
        file.unlink()
    found = history(sink)

    assert [(1, True), (2, True)] == [(gap.snapshot_id, gap.files_missing) for gap in found.gaps]
    assert ((), 0) == (found.whole, found.changes.num_rows)


def test_a_key_of_a_table_comes_with_its_sequence_and_its_changelog(sink: SinkWarehouse) -> None:
    keyed(sink)
    found = history(sink, KEYED)

    assert [(1, "+I", "a"), (1, "+I", "b"), (2, "+I", "a")] == brought(found)
    assert 3 == len(set(zip(found.changes["log_id"], found.changes["sequence"], strict=True)))
    assert ("input", ()) == (found.changelog_producer, found.gaps)
    assert found.changelog is not None
    assert [1, 1, 2] == sorted(found.changelog["snapshot_id"].to_pylist())
    assert [("a", 9), ("b", 2)] == sorted(
        (row["log_id"], row["user_id"]) for row in rows_at(found.changes, 2, KEYED).to_pylist()
    )


def test_the_types_of_rows_are_known_of_a_table_that_has_none(tmp_path: Path) -> None:
    schema = SinkWarehouse(tmp_path).reader().row_schema(LOG)

    assert {"log_id": "string", "user_id": "int64", "event_time": "timestamp[ms]", "dt": "string"} == {
        field.name: str(field.type) for field in schema
    }


def test_a_table_without_a_snapshot_has_no_history(tmp_path: Path) -> None:
    with pytest.raises(ReaderError, match="no snapshot"):
        history(SinkWarehouse(tmp_path))
