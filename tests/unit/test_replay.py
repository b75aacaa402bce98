"""Replay: rows of any snapshot put together from deltas, and corrections that make them a whole read's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import duckdb
import pyarrow as pa
import pytest

from harness.model import TableContract
from harness.replay import CHANGE_COLUMNS, CORRECTION, DELTA, corrections, rows_at, signed_rows

KEYED = TableContract(
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
LOG = replace(KEYED, append_only=True)
ROWS = pa.schema([("id", pa.int64()), ("cents", pa.int64()), ("dt", pa.string())])
SCHEMA = pa.schema([*CHANGE_COLUMNS, *ROWS])
BOTH = pytest.mark.parametrize("contract", [KEYED, LOG], ids=["keyed", "append-only"])

Row = tuple[int, int | None, str]
Change = tuple[int, str, str, int, int, int | None, str]


def delta(snapshot: int, rowkind: str, sequence: int, *row: int | str | None) -> Change:
    return (snapshot, DELTA, rowkind, sequence, *row)  # type: ignore[return-value]


def correction(snapshot: int, rowkind: str, *row: int | str | None) -> Change:
    return (snapshot, CORRECTION, rowkind, 0, *row)  # type: ignore[return-value]


def table(*changes: Change) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in changes], schema=SCHEMA)


def whole(*rows: Row) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(ROWS.names, row, strict=True)) for row in rows], schema=ROWS)


def listed(rows: pa.Table) -> list[Row]:
    return sorted((tuple(row.values()) for row in rows.to_pylist()), key=repr)  # type: ignore[misc]


def at(changes: pa.Table, snapshot: int, contract: TableContract = KEYED) -> list[Row]:
    return listed(rows_at(changes, snapshot, contract))


def signs(changes: pa.Table, contract: TableContract = KEYED) -> list[tuple[int | str, ...]]:
    """What signed_rows says: snapshot, sign, columns."""
    with duckdb.connect(":default:").cursor() as database:
        database.register("changes", changes)
        return sorted(database.sql(signed_rows(contract)).fetchall(), key=repr)


def corrected(changes: pa.Table, snapshot: int, held: pa.Table, contract: TableContract = KEYED) -> pa.Table:
    return pa.concat_tables([changes, corrections(changes, held, snapshot, contract)])


def kinds(changes: pa.Table) -> list[tuple[int | str, ...]]:
    """Snapshot, kind and columns of every correction."""
    return sorted(
        (row["snapshot_id"], row["rowkind"], row["id"], row["cents"], row["dt"])
        for row in changes.to_pylist()
        if row["part"] == CORRECTION
    )


LIFE = table(
    delta(1, "+I", 1, 1, 100, "a"),
    delta(1, "+I", 2, 2, 200, "a"),
    delta(2, "+U", 4, 1, 150, "a"),
    delta(3, "-D", 5, 1, 150, "a"),
    delta(3, "-U", 6, 2, 200, "a"),  # 2 moves to another partition
    delta(3, "+U", 7, 2, 200, "b"),
    delta(4, "+I", 8, 1, 100, "a"),  # 1 comes back
)


@pytest.mark.parametrize(
    ("snapshot", "held"),
    [
        (0, []),
        (1, [(1, 100, "a"), (2, 200, "a")]),
        (2, [(1, 150, "a"), (2, 200, "a")]),
        (3, [(2, 200, "b")]),
        (4, [(1, 100, "a"), (2, 200, "b")]),
        (9, [(1, 100, "a"), (2, 200, "b")]),
    ],
)
def test_a_snapshot_of_a_keyed_table_holds_the_last_row_of_each_key(snapshot: int, held: list[Row]) -> None:
    assert held == at(LIFE, snapshot)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_of_several_rows_of_a_key_in_one_delta_the_highest_sequence_counts(order: Sequence[int]) -> None:
    rows = [delta(1, "+I", 1, 1, 1, "a"), delta(1, "+U", 3, 1, 3, "a"), delta(1, "-U", 2, 1, 1, "a")]

    assert [(1, 3, "a")] == at(table(*(rows[number] for number in order)), 1)


def test_a_later_snapshot_counts_for_more_than_a_higher_sequence() -> None:
    assert [(1, 7, "a")] == at(table(delta(1, "+I", 9, 1, 100, "a"), delta(2, "+U", 1, 1, 7, "a")), 2)


def test_a_key_in_two_partitions_is_two_rows() -> None:
    changes = table(delta(1, "+I", 1, 1, 1, "a"), delta(2, "+I", 2, 1, 1, "b"))

    assert [(1, 1, "a"), (1, 1, "b")] == at(changes, 2)


@pytest.mark.parametrize("rowkind", ["-D", "-U"])
def test_a_delete_of_a_key_that_was_never_there_takes_nothing_away(rowkind: str) -> None:
    changes = table(delta(1, rowkind, 1, 1, 1, "a"), delta(2, "+I", 2, 1, 1, "a"))

    assert [[], [(1, 1, "a")]] == [at(changes, 1), at(changes, 2)]
    assert [(2, 1, 1, 1, "a")] == signs(changes)


def test_each_snapshot_is_told_by_what_it_added_and_took_away() -> None:
    assert [
        (1, 1, 1, 100, "a"),
        (1, 1, 2, 200, "a"),
        (2, -1, 1, 100, "a"),
        (2, 1, 1, 150, "a"),
        (3, -1, 1, 150, "a"),
        (3, -1, 2, 200, "a"),
        (3, 1, 2, 200, "b"),
        (4, 1, 1, 100, "a"),
    ] == sorted(signs(LIFE))  # type: ignore[type-var]


def test_a_delete_takes_away_the_row_that_was_there_whatever_values_it_names() -> None:
    changes = table(delta(1, "+I", 1, 1, 100, "a"), delta(2, "-D", 2, 1, 999, "a"))

    assert [] == at(changes, 2)
    assert (2, -1, 1, 100, "a") in signs(changes)


def test_values_that_are_null_are_values() -> None:
    changes = table(delta(1, "+I", 1, 1, None, "a"), delta(2, "+U", 2, 1, 5, "a"))

    assert [[(1, None, "a")], [(1, 5, "a")]] == [at(changes, 1), at(changes, 2)]


@BOTH
def test_a_whole_read_with_a_null_is_no_correction_of_the_same(contract: TableContract) -> None:
    changes = table(delta(1, "+I", 1, 1, None, "a"))

    assert 0 == corrections(changes, whole((1, None, "a")), 1, contract).num_rows


def test_an_append_only_table_holds_every_row_as_often_as_it_came() -> None:
    changes = table(
        delta(1, "+I", 0, 1, 1, "a"),
        delta(1, "+I", 0, 1, 1, "a"),
        delta(2, "+I", 0, 1, 1, "a"),
        delta(2, "+I", 0, 1, 2, "a"),
    )

    assert [(1, 1, "a"), (1, 1, "a")] == at(changes, 1, LOG)
    assert [(1, 1, "a"), (1, 1, "a"), (1, 1, "a"), (1, 2, "a")] == at(changes, 2, LOG)


def test_one_of_several_equal_rows_that_goes_leaves_the_others() -> None:
    changes = table(*[delta(1, "+I", 0, 1, 1, "a")] * 3, correction(2, "-D", 1, 1, "a"))

    assert [(1, 1, "a")] * 2 == at(changes, 2, LOG)


@BOTH
def test_deltas_that_explain_a_whole_read_need_no_correction(contract: TableContract) -> None:
    changes = table(delta(1, "+I", 1, 1, 1, "a"), delta(2, "+I", 2, 2, 2, "b"))

    found = corrections(changes, whole((2, 2, "b"), (1, 1, "a")), 2, contract)

    assert (0, SCHEMA) == (found.num_rows, found.schema)


@BOTH
@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ((), [(1, "-D", 1, 1, "a"), (1, "-D", 2, 2, "a")]),
        (((1, 1, "a"),), [(1, "-D", 2, 2, "a")]),
        (((1, 1, "a"), (2, 2, "a"), (3, 3, "b")), [(1, "+I", 3, 3, "b")]),
        (((1, 1, "a"), (2, 5, "a")), [(1, "+I", 2, 5, "a"), (1, "-D", 2, 2, "a")]),
        (((1, 1, "a"), (2, 2, "b")), [(1, "+I", 2, 2, "b"), (1, "-D", 2, 2, "a")]),
        (((1, 1, "a"), (2, 2, "a"), (2, 2, "a")), [(1, "+I", 2, 2, "a")]),
        (((1, 1, "a"), (2, 2, "a"), (2, 5, "a")), [(1, "+I", 2, 5, "a")]),
    ],
    ids=["all gone", "one gone", "one more", "another value", "moved", "twice the same", "twice, differing"],
)
def test_a_correction_says_row_by_row_how_a_whole_read_differs_and_makes_it_so(
    contract: TableContract, held: tuple[Row, ...], expected: list[tuple[int | str, ...]]
) -> None:
    changes = table(delta(1, "+I", 1, 1, 1, "a"), delta(1, "+I", 2, 2, 2, "a"))

    after = corrected(changes, 1, whole(*held), contract)

    assert expected == kinds(after)
    assert listed(whole(*held)) == at(after, 1, contract)


@BOTH
def test_a_base_of_which_no_delta_is_there_is_corrections_alone(contract: TableContract) -> None:
    base = whole((1, 1, "a"), (2, 2, "b"))

    after = corrected(table(), 7, base, contract)

    assert [(7, "+I", 1, 1, "a"), (7, "+I", 2, 2, "b")] == kinds(after)
    assert [[], listed(base), listed(base)] == [at(after, number, contract) for number in (6, 7, 8)]


@BOTH
def test_a_correction_does_not_change_the_snapshots_before_it(contract: TableContract) -> None:
    changes = table(delta(1, "+I", 1, 1, 1, "a"), delta(2, "+I", 2, 2, 2, "a"))

    after = corrected(changes, 2, whole((2, 2, "a")), contract)

    assert [[(1, 1, "a")], [(2, 2, "a")]] == [at(after, 1, contract), at(after, 2, contract)]


@BOTH
def test_a_second_whole_read_that_says_the_same_needs_no_second_correction(contract: TableContract) -> None:
    changes = table(delta(1, "+I", 1, 1, 1, "a"))
    held = whole((1, 5, "a"), (2, 2, "b"))
    after = corrected(changes, 1, held, contract)

    assert 0 == corrections(after, held, 2, contract).num_rows


def test_a_delta_after_a_correction_takes_the_place_of_the_corrected_row() -> None:
    after = corrected(table(delta(1, "+I", 1, 1, 1, "a")), 1, whole((1, 5, "a")))
    later = pa.concat_tables([after, table(delta(2, "+U", 2, 1, 6, "a"), delta(3, "-D", 3, 1, 6, "a"))])

    assert [[(1, 5, "a")], [(1, 6, "a")], []] == [at(later, number) for number in (1, 2, 3)]
    assert 0 == corrections(later, whole((1, 6, "a")), 2, KEYED).num_rows


def test_a_key_that_a_correction_took_away_may_come_back_by_a_delta() -> None:
    after = corrected(table(delta(1, "+I", 1, 1, 1, "a")), 1, whole())
    later = pa.concat_tables([after, table(delta(2, "+U", 2, 1, 6, "a"))])

    assert [[], [(1, 6, "a")]] == [at(later, 1), at(later, 2)]


def test_a_delta_that_was_not_read_is_made_up_for_by_the_next_whole_read() -> None:
    known = table(*(change for change in _changes(LIFE) if change[0] != 3))

    after = corrected(known, 4, rows_at(LIFE, 4, KEYED))

    assert at(LIFE, 4) == at(after, 4)
    assert kinds(after)


@pytest.mark.parametrize(
    "then", [((2, 2, "b"), (2, 2, "b")), ((2, 2, "b"), (2, 3, "b")), ((2, 3, "b"),), ()], ids=repr
)
@pytest.mark.parametrize(
    "first", [((1, 1, "a"), (1, 1, "a")), ((1, 1, "a"), (1, 2, "a")), ((1, 7, "a"),)], ids=repr
)
def test_rows_of_a_key_that_a_whole_read_has_twice_survive_deltas_and_further_corrections(
    first: tuple[Row, ...], then: tuple[Row, ...]
) -> None:
    after = corrected(table(delta(1, "+I", 1, 1, 1, "a")), 1, whole(*first))
    later = pa.concat_tables([after, table(delta(2, "+U", 2, 1, 9, "a"), delta(2, "+I", 3, 2, 2, "b"))])

    last = corrected(later, 3, whole((1, 9, "a"), *then))

    assert listed(whole(*first)) == at(last, 1)
    assert listed(whole((1, 9, "a"), *then)) == at(last, 3)


@BOTH
def test_the_order_of_the_changes_in_the_file_means_nothing(contract: TableContract) -> None:
    changes = list(_changes(LIFE)) if contract is KEYED else [delta(n, "+I", 0, n, n, "a") for n in (1, 2, 3)]
    straight, reverse = table(*changes), table(*reversed(changes))

    assert [at(straight, n, contract) for n in range(5)] == [at(reverse, n, contract) for n in range(5)]


@BOTH
def test_the_signs_summed_until_a_snapshot_are_the_rows_that_it_holds(contract: TableContract) -> None:
    changes = LIFE if contract is KEYED else table(*[delta(n, "+I", 0, n % 2, 1, "a") for n in (1, 2, 3, 4)])
    changes = corrected(changes, 4, whole((1, 1, "a"), (1, 1, "a"), (8, 8, "b")), contract)

    for before, snapshot in pairwise(range(5)):
        held = {row: at(changes, before, contract).count(row) for row in at(changes, before, contract)}
        for number, sign, *row in signs(changes, contract):
            if number == snapshot:
                held[tuple(row)] = held.get(tuple(row), 0) + int(sign)  # type: ignore[index, arg-type]
        counted = sorted((row for row, times in held.items() for _ in range(times)), key=repr)

        assert counted == at(changes, snapshot, contract)


def test_rows_keep_the_types_of_the_changes() -> None:
    fields = [("id", pa.int64()), ("cents", pa.decimal128(18, 2)), ("dt", pa.string())]
    changes = pa.schema([*CHANGE_COLUMNS, *fields]).empty_table()

    assert pa.schema(fields) == rows_at(changes, 1, KEYED).schema


def _changes(changes: pa.Table) -> list[Change]:
    return [tuple(row.values()) for row in changes.to_pylist()]  # type: ignore[misc]
