"""Tables of sums are read whole at every snapshot, and a snapshot that can't be read is a gap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import factories
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aggregate_folders import LOG_SUMS
from factories import BEHAVIOR_LOG, ORDERS
from sink_warehouse import SinkWarehouse

from harness import resources
from harness.errors import ReaderError, SinkFilesMissing
from harness.model import Aggregate, AggregateContract, Fence, SnapshotRecord, TableContract
from harness.paimon.aggregates import Reader, read_aggregates
from harness.source.behavior import CONTRACT

LOG = replace(BEHAVIOR_LOG, aggregate=LOG_SUMS)


class SumsWarehouse(SinkWarehouse):
    """A warehouse with a table of sums; each insert is a snapshot."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.run(
            f"CREATE TABLE paimon.{LOG_SUMS.sink} "
            "(dt STRING, event_type STRING, events BIGINT, users BIGINT, "
            "PRIMARY KEY (dt, event_type)) WITH ('bucket' = '1', 'merge-engine' = 'aggregation', "
            "'fields.events.aggregate-function' = 'sum', 'fields.users.aggregate-function' = 'sum')"
        )

    def add(self, *rows: tuple[str, str, int]) -> None:
        values = ", ".join(f"('{day}', '{event}', 1, {user})" for day, event, user in rows)
        self.run(f"INSERT INTO paimon.{LOG_SUMS.sink} VALUES {values}")


class SlowReader:
    """A reader that is asked for snapshots several times before the newest one is there, or fails."""

    def __init__(self, *answers: Sequence[int], broken: dict[int, ReaderError] | None = None) -> None:
        self.answers = list(answers)
        self.asked = 0
        self._broken = broken or {}

    def snapshots(self, contract: AggregateContract) -> tuple[SnapshotRecord, ...]:
        ids = self.answers[min(self.asked, len(self.answers) - 1)]
        self.asked += 1
        found = factories.snapshot("behavior-log")
        return tuple(
            replace(found, table=contract.name, snapshot_id=number, commit_identifier=10 * number)
            for number in ids
        )

    def query(self, sql: str) -> pa.Table:
        number = int(sql.rpartition(" ")[2])
        if number in self._broken:
            raise self._broken[number]
        return pa.table({"dt": ["d"], "event_type": ["view"], "events": [number], "users": [7]})


def read(reader: Reader, folder: Path, *, commit: int = 0, table: TableContract = LOG) -> list[Aggregate]:
    """Read after a fence whose snapshot was committed by this checkpoint."""
    at: Fence = factories.fence(LOG.name)
    record = replace(factories.snapshot(LOG.name), commit_identifier=commit)
    return list(read_aggregates(reader, [table], [at], {LOG.name: [record]}, folder, patience_s=3))


def rows_of(found: Aggregate, folder: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(folder / found.rows).to_pylist()
    return sorted(rows, key=lambda row: [str(value) for value in row.values()])


def test_each_snapshot_has_the_sums_of_all_that_was_added_until_then(tmp_path: Path) -> None:
    warehouse = SumsWarehouse(tmp_path / "warehouse")
    warehouse.add(("d1", "view", 7), ("d1", "view", 10), ("d2", "click", 5))
    warehouse.add(("d1", "view", 100))

    (found,) = read(warehouse.reader(), tmp_path)

    assert [
        {"snapshot_id": 1, "dt": "d1", "event_type": "view", "events": 2, "users": 17},
        {"snapshot_id": 1, "dt": "d2", "event_type": "click", "events": 1, "users": 5},
        {"snapshot_id": 2, "dt": "d1", "event_type": "view", "events": 3, "users": 117},
        {"snapshot_id": 2, "dt": "d2", "event_type": "click", "events": 1, "users": 5},
    ] == rows_of(found, tmp_path)
    assert [("behavior-totals", 1), ("behavior-totals", 2)] == [
        (one.table, one.snapshot_id) for one in found.snapshots
    ]
    assert ("behavior-log", (), "") == (found.table, found.gaps, found.error)


def test_a_snapshot_whose_files_are_gone_is_a_gap_that_says_so(tmp_path: Path) -> None:
    warehouse = SumsWarehouse(tmp_path / "warehouse")
    warehouse.add(("d1", "view", 7))
    before = set(warehouse.data_files())
    warehouse.add(("d1", "view", 8))
    (second,) = set(warehouse.data_files()) - before
    second.unlink()

    (found,) = read(warehouse.reader(), tmp_path)

    assert [(2, True)] == [(gap.snapshot_id, gap.files_missing) for gap in found.gaps]
    assert {1} == {row["snapshot_id"] for row in rows_of(found, tmp_path)}


def test_a_table_of_sums_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    (found,) = read(SinkWarehouse(tmp_path / "warehouse").reader(), tmp_path)

    assert found.error
    assert ((), "") == (found.snapshots, found.rows)


@pytest.mark.parametrize(
    ("error", "missing"), [(ReaderError("throttled"), False), (SinkFilesMissing("NoSuchKey"), True)]
)
def test_one_snapshot_that_fails_does_not_stop_the_others(
    tmp_path: Path, error: ReaderError, missing: bool
) -> None:
    (found,) = read(SlowReader([1, 2, 3], broken={2: error}), tmp_path)

    assert [(2, error.what, missing)] == [
        (gap.snapshot_id, gap.error, gap.files_missing) for gap in found.gaps
    ]
    assert [1, 3] == [row["snapshot_id"] for row in rows_of(found, tmp_path)]


def test_the_commit_of_the_last_fences_checkpoint_is_awaited(tmp_path: Path) -> None:
    reader = SlowReader([1], [1], [1, 2])

    (found,) = read(reader, tmp_path, commit=20)

    assert [1, 2] == [one.snapshot_id for one in found.snapshots]
    assert 3 <= reader.asked


def test_a_commit_that_does_not_come_is_not_awaited_for_ever(tmp_path: Path) -> None:
    (found,) = read(SlowReader([1]), tmp_path, commit=20)

    assert [1] == [one.snapshot_id for one in found.snapshots]
    assert "" == found.error


def test_a_table_without_sums_is_not_read(tmp_path: Path) -> None:
    assert [] == read(SlowReader([1]), tmp_path, table=ORDERS)


def test_the_behavior_log_keeps_sums_by_columns_that_it_has() -> None:
    kept = CONTRACT.aggregate

    assert kept == LOG_SUMS
    assert {*kept.groups, kept.summed} <= set(CONTRACT.columns)


def test_the_program_of_the_behavior_log_feeds_the_table_of_its_contract() -> None:
    program = (resources.folder("jobs") / "behavior-log" / "job.py").read_text(encoding="utf-8")

    assert f"CREATE TABLE IF NOT EXISTS paimon.{LOG_SUMS.sink} (" in program
    assert f"PRIMARY KEY ({', '.join(LOG_SUMS.groups)}) NOT ENFORCED" in program
    for column in (LOG_SUMS.count, LOG_SUMS.total):
        assert f"'fields.{column}.aggregate-function' = 'sum'" in program
    selected = f"{', '.join(LOG_SUMS.groups)}, CAST(1 AS BIGINT), {LOG_SUMS.summed}"
    assert f"INSERT INTO paimon.{LOG_SUMS.sink}\nSELECT {selected} FROM behavior_log" in program
