"""Planted defects: each says what it is, damages a copy only, and leaves evidence that fits together."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import provable_folders
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from judging import judged

from harness import oracles
from harness.defects import DEFECTS
from harness.defects.control import written_anew
from harness.defects.files import copied, read, write
from harness.defects.sink import Sink
from harness.errors import NoPlace
from harness.ledger import state_after
from harness.model import Evidence, Verdict
from harness.replay import rows_at

Planted = Callable[[str], Evidence]


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """Evidence of a clean run with a place for every defect; no test changes it."""
    return provable_folders.evidence(tmp_path_factory.mktemp("clean"))


@pytest.fixture
def copy(clean: Evidence, tmp_path: Path) -> Evidence:
    """A copy of it, of links."""
    copied(Path(clean.folder), tmp_path)
    return replace(clean, folder=str(tmp_path))


@pytest.fixture
def planted(copy: Evidence) -> Planted:
    """Plants a defect into the copy, by its name."""
    return lambda name: DEFECTS[name].plant(copy, random.Random(7))


def contents(folder: str) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in Path(folder).iterdir()}


def test_there_are_enough_defects_and_each_says_in_one_line_what_is_wrong() -> None:
    said = [defect.what for defect in DEFECTS.values()]

    assert len(DEFECTS) >= 30
    assert len(said) == len(set(said))
    assert all(text and "\n" not in text and len(text) < 110 for text in said)


def test_each_defect_must_be_caught_by_an_oracle_that_there_is_and_is_not_valid() -> None:
    for name, defect in DEFECTS.items():
        assert defect.caught_by, name
        assert set(defect.caught_by) <= set(oracles.ORACLES), name
        assert defect.verdict is not Verdict.VALID, name


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_damages_the_copy_and_leaves_the_runs_own_files_as_they_are(
    clean: Evidence, copy: Evidence, name: str
) -> None:
    before = contents(clean.folder)
    damaged = DEFECTS[name].plant(copy, random.Random(7))

    assert before == contents(clean.folder)
    assert copy.folder == damaged.folder
    assert (damaged, contents(damaged.folder)) != (copy, before)


def test_a_defect_is_planted_alike_with_the_same_seed_and_elsewhere_with_another(
    clean: Evidence, tmp_path: Path
) -> None:
    found = []
    for number, seed in enumerate((7, 7, 8)):
        folder = tmp_path / str(number)
        folder.mkdir()
        copied(Path(clean.folder), folder)
        DEFECTS["row-lost"].plant(replace(clean, folder=str(folder)), random.Random(seed))
        found.append(pq.read_table(folder / "orders-changes.parquet"))

    assert found[0].equals(found[1])
    assert not found[0].equals(found[2])


def test_a_file_that_is_written_twice_still_leaves_the_original_alone(
    clean: Evidence, copy: Evidence
) -> None:
    before = contents(clean.folder)
    for _ in range(2):
        write(copy, "ledger-orders.parquet", read(copy, "ledger-orders.parquet").slice(1))

    assert before == contents(clean.folder)
    assert read(copy, "ledger-orders.parquet").num_rows == read(clean, "ledger-orders.parquet").num_rows - 2


def lost_key(clean: Evidence, damaged: Evidence) -> int:
    """The key of the one row that a history has no more."""
    then, now = (set(read(e, "orders-changes.parquet")["order_id"].to_pylist()) for e in (clean, damaged))
    (key,) = then - now
    assert isinstance(key, int)
    return key


def test_a_lost_row_is_gone_from_history_changelog_fence_and_travel_alike(
    clean: Evidence, planted: Planted
) -> None:
    damaged = planted("row-lost")
    key = lost_key(clean, damaged)
    fence, travel = (
        next(one for one in found if name(one) == ("orders", 3))
        for found, name in (
            (damaged.fences, lambda one: (one.mark.table, one.mark.number)),
            (damaged.travels, lambda one: (one.table, one.fence)),
        )
    )

    for file in ("orders-changes.parquet", "orders-changelog.parquet", fence.sink_rows, travel.sink_rows):
        assert key not in read(damaged, file)["order_id"].to_pylist(), file
    assert key in read(damaged, fence.source_rows)["order_id"].to_pylist()
    rows = sum(total.rows for total in fence.source.totals)
    readings = (*fence.sink, travel.by_id, travel.by_time)
    assert [rows - 1] * 4 == [sum(total.rows for total in reading.totals) for reading in readings]


def test_counts_of_snapshots_and_manifests_go_with_a_lost_row(clean: Evidence, planted: Planted) -> None:
    damaged = planted("row-lost")
    then, now = (
        {r.snapshot_id: r for r in evidence.snapshots if r.table == "orders"} for evidence in (clean, damaged)
    )
    brought = Counter(number for number in then if now[number].delta_records != then[number].delta_records)

    assert 1 == len(brought)
    assert then[15].total_records - 1 == now[15].total_records
    assert Verdict.VALID is judged(damaged, "commit_log").verdict
    assert [file.name for file in Path(damaged.folder).glob("*.new")] == []


def test_a_state_between_fences_heals_at_the_next_snapshot(clean: Evidence, planted: Planted) -> None:
    damaged = planted("row-deleted-and-put-back")
    contract = clean.contract("orders")
    then, now = (read(evidence, "orders-changes.parquet") for evidence in (clean, damaged))
    wrong = [
        number
        for number in range(2, 16)
        if sorted(rows_at(then, number, contract).to_pylist(), key=str)
        != sorted(rows_at(now, number, contract).to_pylist(), key=str)
    ]

    assert 1 == len(wrong)
    assert clean.fences == damaged.fences


def test_the_control_changes_the_order_of_rows_and_nothing_else(clean: Evidence, copy: Evidence) -> None:
    anew = written_anew(copy, random.Random(7))
    name = clean.fences[-1].sink_rows

    assert clean == replace(anew, folder=clean.folder)
    assert not read(clean, name).equals(read(anew, name))
    assert [] == [r.oracle for r in oracles.judge(anew, oracles.ORACLES) if r.verdict is not Verdict.VALID]


def test_a_sink_can_hold_any_rows_at_one_snapshot(copy: Evidence) -> None:
    sink = Sink(copy, copy.contract("orders"))
    older, at, later = sink.at(6), 8, sink.at(9)
    sink.hold(at, older)

    def in_order(rows: pa.Table) -> pa.Table:
        return rows.sort_by([(name, "ascending") for name in rows.column_names])

    assert in_order(older).equals(in_order(sink.at(at)))
    assert in_order(later).equals(in_order(sink.at(9)))


@pytest.mark.parametrize(
    ("name", "changes", "why"),
    [
        ("row-lost", {"histories": ()}, "the run has no history of orders"),
        ("row-lost", {"fences": ()}, "no fence of orders"),
        ("compaction-drops-a-row", {"snapshots": ()}, "was not compacted"),
        ("data-file-gone", {"commits": ()}, "no commits of orders"),
        ("fault-unproven", {"faults": ()}, "the run has no fault"),
        ("savepoint-not-used", {"states": ()}, "no stopped job"),
        ("sums-unread", {"aggregates": ()}, "no job of the run keeps sums"),
        ("foreign-write-undone", {"binlogs": ()}, "no binlog of orders"),
        ("transaction-unresolved", {"workload": None}, "no workload"),
    ],
)
def test_a_defect_says_why_it_has_no_place_in_a_run(
    copy: Evidence, name: str, changes: dict[str, object], why: str
) -> None:
    with pytest.raises(NoPlace, match=why):
        DEFECTS[name].plant(replace(copy, **changes), random.Random(7))  # type: ignore[arg-type]


def test_defects_of_append_only_tables_have_no_place_without_one(copy: Evidence) -> None:
    keyed = replace(copy, tables=tuple(table for table in copy.tables if not table.append_only))

    with pytest.raises(NoPlace, match="no append-only table"):
        DEFECTS["row-appended-twice"].plant(keyed, random.Random(7))


def test_a_silent_load_leaves_a_sink_that_is_the_source_at_every_fence(
    copy: Evidence, planted: Planted
) -> None:
    silent = planted("no-load-before-the-last-fence")
    for contract in silent.tables:
        ledger = read(silent, contract.ledger_file)
        last = [fence for fence in silent.fences if fence.mark.table == contract.name][-1]
        held = read(silent, last.sink_rows)

        assert ledger.num_rows == last.mark.operation
        assert pc.max(ledger["operation"]).as_py() == ledger.num_rows
        key = contract.source_key
        expected = state_after(ledger, last.mark.operation, key=key).sort_by(key)
        assert expected.equals(held.select(expected.column_names).cast(expected.schema).sort_by(key))


def test_the_copy_costs_nothing(clean: Evidence, copy: Evidence, tmp_path: Path) -> None:
    assert all(file.is_symlink() for file in Path(copy.folder).iterdir())
    shutil.rmtree(copy.folder)

    assert contents(clean.folder)


def test_what_only_the_history_shows_is_not_planted_where_a_checkpoint_failed(copy: Evidence) -> None:
    ids = {record.commit_identifier for record in copy.snapshots}
    jobs = tuple(
        replace(
            job,
            checkpoints=tuple(
                replace(job.checkpoints[0], checkpoint_id=number, status="FAILED") for number in sorted(ids)
            ),
        )
        for job in copy.jobs
    )

    with pytest.raises(NoPlace, match="between fences"):
        DEFECTS["change-one-snapshot-late"].plant(replace(copy, jobs=jobs), random.Random(7))
