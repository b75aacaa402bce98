"""A table's history: every snapshot is known by its delta or a whole read, or it is a gap with its reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import factories
import pyarrow as pa
import pytest

from harness.errors import ReaderError, SinkFilesMissing
from harness.model import SnapshotRecord, TableContract
from harness.paimon.history import ReadHistory, read_history
from harness.replay import CHANGE_COLUMNS, CHANGELOG_COLUMNS, CORRECTION, DELTA, rows_at

ACCOUNTS = TableContract(
    name="accounts",
    source="shop.accounts",
    sink="dwd.accounts",
    columns=("id", "cents", "dt"),
    source_key="id",
    partition="dt",
    amount="cents",
    time="id",
    append_only=False,
)
ROWS = pa.schema([("id", pa.int64()), ("cents", pa.int64()), ("dt", pa.string())])
INCREMENT = pa.schema([("rowkind", pa.string()), ("sequence", pa.int64()), *ROWS])


class FakeSnapshots:
    """Implements `history.SnapshotReader`: snapshot n inserts key n, and holds the keys 1 to n.

    `spoil` lets a read of a snapshot answer with other rows, or raise.
    """

    row_schema = ROWS

    def __init__(self, last: int, *, kinds: dict[int, str] | None = None) -> None:
        self.kinds = dict.fromkeys(range(1, last + 1), "APPEND") | (kinds or {})
        self.asked: list[tuple[str, int]] = []
        self._spoilt: dict[tuple[str, int], ReaderError | pa.Table] = {}

    def records(self) -> list[SnapshotRecord]:
        appends = {number: int(kind == "APPEND") for number, kind in self.kinds.items()}
        return [
            replace(
                factories.snapshot(ACCOUNTS.name),
                snapshot_id=number,
                kind=kind,
                delta_records=appends[number],
                changelog_records=appends[number],
            )
            for number, kind in self.kinds.items()
        ]

    def spoil(self, how: str, number: int, answer: ReaderError | pa.Table) -> None:
        self._spoilt[how, number] = answer

    def delta(self, snapshot_id: int) -> pa.Table:
        return self._answer("delta", snapshot_id, self._increment)

    def changelog(self, snapshot_id: int) -> pa.Table:
        return self._answer("changelog", snapshot_id, self._increment)

    def whole(self, snapshot_id: int) -> pa.Table:
        return self._answer("whole", snapshot_id, self.holds)

    def holds(self, number: int) -> pa.Table:
        appended = [n for n, kind in self.kinds.items() if kind == "APPEND" and n <= number]
        return holding(*appended)

    def _increment(self, number: int) -> pa.Table:
        rows = [("+I", number, *row.values()) for row in holding(number).to_pylist()]
        return increment(*rows) if self.kinds[number] == "APPEND" else increment()

    def _answer(self, how: str, number: int, make: Callable[[int], pa.Table]) -> pa.Table:
        self.asked.append((how, number))
        answer = self._spoilt.get((how, number))
        if isinstance(answer, ReaderError):
            raise answer
        return make(number) if answer is None else answer


def holding(*keys: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": key, "cents": 100 * key, "dt": "d"} for key in keys], schema=ROWS)


def increment(*rows: tuple[object, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(INCREMENT.names, row, strict=True)) for row in rows], INCREMENT)


def read(
    snapshots: FakeSnapshots, *, base: int = 1, producer: str = "input", without: tuple[int, ...] = ()
) -> ReadHistory:
    records = [record for record in snapshots.records() if record.snapshot_id not in without]
    return read_history(snapshots, ACCOUNTS, records, base=base, changelog_producer=producer)


def keys_at(history: ReadHistory, snapshot: int) -> list[int]:
    return sorted(rows_at(history.changes, snapshot, ACCOUNTS)["id"].to_pylist())


def corrected(history: ReadHistory) -> list[tuple[int, str, int]]:
    return [
        (row["snapshot_id"], row["rowkind"], row["id"])
        for row in history.changes.to_pylist()
        if row["part"] == CORRECTION
    ]


def test_all_deltas_are_read_and_none_is_corrected_when_all_is_well() -> None:
    history = read(FakeSnapshots(4), base=2)

    assert [(number, DELTA) for number in (1, 2, 3, 4)] == [
        (row["snapshot_id"], row["part"]) for row in history.changes.to_pylist()
    ]
    assert ((2, 4), ()) == (history.whole, history.gaps)
    assert [1, 2, 3] == keys_at(history, 3)


def test_the_files_have_the_promised_columns_even_when_nothing_was_brought() -> None:
    nothing = FakeSnapshots(1, kinds={1: "COMPACT"})

    history = read(nothing)

    assert pa.schema([*CHANGE_COLUMNS, *ROWS]) == history.changes.schema
    assert history.changelog is not None
    assert pa.schema([*CHANGELOG_COLUMNS, *ROWS]) == history.changelog.schema
    assert (0, 0) == (history.changes.num_rows, history.changelog.num_rows)


def test_base_last_every_tenth_append_and_all_other_kinds_are_read_whole() -> None:
    kinds = {5: "COMPACT", 17: "OVERWRITE", 19: "ANALYZE"}

    history = read(FakeSnapshots(26, kinds=kinds), base=3)

    assert (3, 5, 14, 17, 19, 26) == history.whole  # 14 is the tenth APPEND after 3


def test_before_the_first_fence_nothing_is_read_whole_and_all_deltas_are_read() -> None:
    snapshots = FakeSnapshots(5, kinds={2: "COMPACT"})

    read(snapshots, base=4)

    assert [4, 5] == [number for how, number in snapshots.asked if how == "whole"]
    assert [1, 3, 4, 5] == [number for how, number in snapshots.asked if how == "delta"]


def test_without_a_fence_nothing_is_read_whole() -> None:
    history = read(FakeSnapshots(3), base=0)

    assert ((), 3) == (history.whole, history.changes.num_rows)


def test_a_compaction_that_changes_rows_is_corrected_where_it_happened() -> None:
    snapshots = FakeSnapshots(4, kinds={3: "COMPACT"})
    snapshots.spoil("whole", 3, holding(1))  # key 2 is lost, and stays so
    snapshots.spoil("whole", 4, holding(1, 4))

    history = read(snapshots)

    assert [(3, "-D", 2)] == corrected(history)
    assert [[1, 2], [1], [1, 4]] == [keys_at(history, number) for number in (2, 3, 4)]
    assert () == history.gaps


def test_a_row_that_is_twice_in_a_whole_read_stays_twice() -> None:
    snapshots = FakeSnapshots(3, kinds={2: "COMPACT"})
    snapshots.spoil("whole", 2, holding(1, 1))
    snapshots.spoil("whole", 3, holding(1, 1, 3))

    history = read(snapshots)

    assert [(2, "+I", 1)] == corrected(history)
    assert [1, 1, 3] == keys_at(history, 3)


@pytest.mark.parametrize(
    "reads",
    [
        {2: (1, 1), 4: (1, 4)},
        {2: (), 4: (4, 1)},
        {2: (1, 2, 2), 4: (2, 4)},
        {2: (2,), 4: (1, 1, 3, 4)},
    ],
    ids=repr,
)
@pytest.mark.parametrize("append_only", [False, True])
def test_whatever_whole_reads_say_one_after_the_other_is_what_the_changes_give(
    reads: dict[int, tuple[int, ...]], append_only: bool
) -> None:
    contract = replace(ACCOUNTS, append_only=append_only)
    snapshots = FakeSnapshots(5, kinds={2: "COMPACT", 4: "COMPACT"})
    for number, keys in reads.items():
        snapshots.spoil("whole", number, holding(*keys))
    snapshots.spoil("delta", 3, increment(("+U", 3, 1, 111, "d")))  # of the key that most reads have
    snapshots.spoil("delta", 5, increment(("-D", 5, 2, 200, "d")))

    history = read_history(snapshots, contract, snapshots.records(), base=1, changelog_producer="none")

    assert (1, 2, 4, 5) == history.whole
    for number in (2, 4):
        assert sorted(reads[number]) == sorted(rows_at(history.changes, number, contract)["id"].to_pylist())
    assert [1, 3, 5] == sorted(rows_at(history.changes, 5, contract)["id"].to_pylist())


def test_what_came_before_the_first_snapshot_that_is_left_is_known_from_the_base() -> None:
    history = read(FakeSnapshots(5), base=4, without=(1, 2))

    assert [(4, "+I", 1), (4, "+I", 2)] == sorted(corrected(history))
    assert ([1, 2, 3, 4, 5], ()) == (keys_at(history, 5), history.gaps)


def test_a_snapshot_that_is_expired_is_a_gap_and_the_next_one_is_read_whole() -> None:
    history = read(FakeSnapshots(5), without=(3,))

    (gap,) = history.gaps
    assert (3, False) == (gap.snapshot_id, gap.files_missing)
    assert "expired" in gap.error
    assert (1, 4, 5) == history.whole
    assert [1, 2, 3, 4] == keys_at(history, 4)


def test_a_base_that_is_expired_itself_is_a_gap() -> None:
    history = read(FakeSnapshots(4), base=1, without=(1, 2))

    assert [1, 2] == [gap.snapshot_id for gap in history.gaps]
    assert (3, 4) == history.whole


def test_a_delta_that_can_not_be_read_is_a_gap_although_a_whole_read_makes_up_for_it() -> None:
    snapshots = FakeSnapshots(5)
    snapshots.spoil("delta", 3, ReaderError("no route to host"))

    history = read(snapshots)

    (gap,) = history.gaps
    assert "its delta could not be read: no route to host" in gap.error
    assert gap.error.endswith("its rows are known from a whole read")
    assert [(3, "+I", 3)] == corrected(history)
    assert ((1, 3, 5), [1, 2, 3, 4]) == (history.whole, keys_at(history, 4))


def test_a_snapshot_that_can_be_read_in_no_way_is_a_gap_until_the_next_that_can() -> None:
    snapshots = FakeSnapshots(6)
    snapshots.spoil("delta", 3, ReaderError("no route to host"))
    for number in (3, 4):
        snapshots.spoil("whole", number, ReaderError("timed out"))

    history = read(snapshots)

    assert [
        (3, "its delta could not be read: no route to host; it could not be read whole: timed out"),
        (4, "it could not be read whole: timed out"),
    ] == [(gap.snapshot_id, gap.error) for gap in history.gaps]
    assert ((1, 5, 6), [1, 2, 3, 4, 5]) == (history.whole, keys_at(history, 5))


def test_a_base_that_can_not_be_read_whole_is_a_gap() -> None:
    snapshots = FakeSnapshots(3)
    snapshots.spoil("whole", 1, ReaderError("timed out"))

    history = read(snapshots)

    assert ([1], (2, 3)) == ([gap.snapshot_id for gap in history.gaps], history.whole)


@pytest.mark.parametrize("how", ["delta", "changelog", "whole"])
def test_files_that_are_gone_are_told_from_other_failures(how: str) -> None:
    snapshots = FakeSnapshots(3)
    snapshots.spoil(how, 3, SinkFilesMissing("a file of the sink is gone"))

    (gap,) = read(snapshots).gaps

    assert (3, True) == (gap.snapshot_id, gap.files_missing)


@pytest.mark.parametrize("how", ["delta", "changelog"])
@pytest.mark.parametrize("rows", [0, 2])
def test_an_increment_with_other_rows_than_the_metadata_says_is_a_gap(how: str, rows: int) -> None:
    snapshots = FakeSnapshots(3)
    snapshots.spoil(how, 2, increment(*[("+I", 2, 2, 200, "d")] * rows))

    history = read(snapshots)

    (gap,) = history.gaps
    assert f"its {how} has {rows} rows, and its metadata says 1" in gap.error
    assert [1, 2, 3] == keys_at(history, 3)


def test_a_failure_before_the_base_is_a_gap_too() -> None:
    snapshots = FakeSnapshots(4)
    snapshots.spoil("delta", 1, ReaderError("timed out"))

    history = read(snapshots, base=3)

    assert [1] == [gap.snapshot_id for gap in history.gaps]
    assert ((3, 4), [1, 2, 3]) == (history.whole, keys_at(history, 3))


def test_the_changelog_is_read_of_every_kind_of_snapshot() -> None:
    snapshots = FakeSnapshots(4, kinds={2: "COMPACT"})
    records = [
        replace(record, changelog_records=2) if record.kind == "COMPACT" else record
        for record in snapshots.records()
    ]
    snapshots.spoil("changelog", 2, increment(("-U", 1, 1, 100, "d"), ("+U", 2, 1, 101, "d")))

    history = read_history(snapshots, ACCOUNTS, records, base=1, changelog_producer="lookup")

    assert history.changelog is not None
    assert [(1, "+I"), (2, "-U"), (2, "+U"), (3, "+I"), (4, "+I")] == [
        (row["snapshot_id"], row["rowkind"]) for row in history.changelog.to_pylist()
    ]
    assert ("lookup", ()) == (history.changelog_producer, history.gaps)


def test_a_table_without_a_changelog_producer_is_not_asked_for_one() -> None:
    snapshots = FakeSnapshots(3)

    history = read(snapshots, producer="none")

    assert history.changelog is None
    assert "changelog" not in {how for how, _ in snapshots.asked}
