"""Fingerprints: equal for equal rows, different for all else, and followed through ledgers and changes."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from evidence_folders import FIRST_DAY, ROW_SCHEMAS, SECOND_DAY, Change, Row, edited, ledger, log, order
from factories import BEHAVIOR_LOG, ORDERS
from judging import added, changed, swapped, without

from harness.ledger import DELETE, INSERT, UPDATE, state_after
from harness.oracles.fingerprints import NOTHING, Content, Stretches, contents, fingerprint
from harness.oracles.positions import last_shown, operations_like
from harness.replay import CHANGE_COLUMNS, CORRECTION, DELTA, rows_at

COLUMNS = ORDERS.columns


def rows(*kept: Row) -> pa.Table:
    return pa.Table.from_pylist(list(kept), schema=pa.schema(ROW_SCHEMAS["orders"]))


TWELVE = rows(*(order(key, cents=100 * key, dt=FIRST_DAY if key % 2 else SECOND_DAY) for key in range(1, 13)))

RECURRING = ledger(
    "orders",
    [
        Change(INSERT, order(1)),
        Change(INSERT, order(2, dt=FIRST_DAY)),
        Change(UPDATE, order(1, cents=5)),
        Change(UPDATE, order(1)),
        Change(UPDATE, order(1, dt=FIRST_DAY)),
        Change(DELETE, order(2, dt=FIRST_DAY)),
        Change(DELETE, order(1, dt=FIRST_DAY)),
    ],
)


def delta(snapshot: int, *kept: tuple[str, Row], part: str = DELTA) -> list[Row]:
    return [
        {"snapshot_id": snapshot, "part": part, "rowkind": kind, "sequence": number} | row
        for number, (kind, row) in enumerate(kept)
    ]


def changes(*deltas: list[Row], table: str = "orders") -> pa.Table:
    schema = pa.schema([*CHANGE_COLUMNS, *ROW_SCHEMAS[table]])
    return pa.Table.from_pylist([row for part in deltas for row in part], schema=schema)


def held(of: pa.Table, snapshots: Sequence[int]) -> dict[int, Content]:
    return contents(RECURRING, of, ORDERS, base=snapshots[0], snapshots=snapshots)


def stretches(*spans: tuple[int, int]) -> Stretches:
    return Stretches(starts=[start for start, _ in spans], ends=[end for _, end in spans])


def test_the_order_of_rows_does_not_matter() -> None:
    assert fingerprint(TWELVE, COLUMNS) == fingerprint(TWELVE.take(list(reversed(range(12)))), COLUMNS)


def test_nothing_has_the_fingerprint_of_nothing() -> None:
    assert NOTHING == fingerprint(rows(), COLUMNS)


@pytest.mark.parametrize(
    "defect",
    [
        without(9),
        added(9),
        lambda kept: added(9)(without(11)(kept)),
        changed(9, order_status=None),
        changed(9, dt=SECOND_DAY),
        *(swapped(column, 9, 12) for column in ("user_id", "order_amount", "order_status", "dt")),
    ],
)
def test_whatever_differs_in_a_row_differs_in_the_fingerprint(defect: Any) -> None:
    kept = edited(TWELVE, changed(9, user_id=8, order_status=4))

    for half in (0, 1):  # each of the two hashes by itself
        assert fingerprint(kept, COLUMNS)[half] != fingerprint(edited(kept, defect), COLUMNS)[half]


def test_two_rows_of_two_columns_that_swap_a_value_differ_however_often_it_is_tried() -> None:
    for number in range(50):
        one = pa.table({"a": [number, -1 - number], "b": [7 * number + 1, 3]})
        other = pa.table({"a": [number, -1 - number], "b": [3, 7 * number + 1]})
        assert fingerprint(one, ["a", "b"]) != fingerprint(other, ["a", "b"])


@pytest.mark.parametrize("operation", range(8))
def test_every_state_of_a_ledger_is_found_at_each_operation_that_has_it(operation: int) -> None:
    alike = [{2, 4}, {0, 7}]

    found = operations_like(RECURRING, state_after(RECURRING, operation, key="order_id"), key="order_id")

    assert sorted(next((same for same in alike if operation in same), {operation})) == found


def test_rows_that_no_operation_left_are_found_nowhere() -> None:
    assert [] == operations_like(RECURRING, rows(order(1), order(2)), key="order_id")


def test_the_last_operation_whose_row_is_shown_is_where_a_table_stands() -> None:
    assert 3 == last_shown(RECURRING, rows(order(1, cents=5), order(9)))
    assert 0 == last_shown(RECURRING, rows(order(9)))


def test_a_stretch_is_left_and_entered_at_its_ends() -> None:
    when = stretches((2, 4), (7, 7))

    assert [2, 2, 2, 3, 4, 7, 7, 7, None] == [when.first_from(number) for number in range(9)]
    assert [None, None, 2, 3, 4, 4, 4, 7, 7] == [when.last_until(number) for number in range(9)]


def test_each_snapshot_is_found_in_the_ledger_whole_and_by_partition() -> None:
    found = held(
        changes(
            delta(3, ("+I", order(1)), ("+I", order(2, dt=FIRST_DAY))),
            delta(4, ("+U", order(1, cents=5))),
            delta(6, ("-D", order(1, cents=5)), ("+I", order(1, dt=FIRST_DAY))),
            delta(7, ("-D", order(1, dt=FIRST_DAY)), ("-D", order(2, dt=FIRST_DAY))),
        ),
        [3, 4, 5, 6, 7],
    )

    assert {
        3: stretches((2, 2), (4, 4)),
        4: stretches((3, 3)),
        5: stretches((3, 3)),
        6: stretches((5, 5)),
        7: stretches((0, 0), (7, 7)),
    } == {snapshot: content.when for snapshot, content in found.items()}
    assert {FIRST_DAY: stretches((2, 4)), SECOND_DAY: stretches((1, 2), (4, 4))} == found[3].partitions
    assert {FIRST_DAY: stretches((5, 5)), SECOND_DAY: stretches((0, 0), (5, 7))} == found[6].partitions
    assert all(not content.foreign for content in found.values())


def test_what_happened_until_the_base_counts_as_the_bases_with_its_correction() -> None:
    found = held(
        changes(
            delta(1, ("+I", order(9))),
            delta(2, ("+I", order(1))),
            delta(3, ("-D", order(9)), ("+I", order(2, dt=FIRST_DAY)), part=CORRECTION),
            delta(4, ("+U", order(1, cents=5))),
        ),
        [3, 4],
    )

    assert {3: stretches((2, 2), (4, 4)), 4: stretches((3, 3))} == {n: one.when for n, one in found.items()}


def test_a_partition_of_which_the_ledger_knows_nothing_is_foreign_while_it_holds_rows() -> None:
    found = held(
        changes(
            delta(3, ("+I", order(1)), ("+I", order(2, dt=FIRST_DAY)), ("+I", order(3, dt="1970-01-01"))),
            delta(4, ("-D", order(3, dt="1970-01-01"))),
        ),
        [3, 4],
    )

    assert [{"1970-01-01": 1}, {}] == [found[3].foreign, found[4].foreign]
    assert [Stretches(), stretches((2, 2), (4, 4))] == [found[3].when, found[4].when]


def test_a_row_appended_twice_is_no_state_until_one_of_them_is_gone() -> None:
    of = changes(
        delta(1, ("+I", log("a"))),
        delta(2, ("+I", log("b")), ("+I", log("b"))),
        delta(3, ("-D", log("b")), part=CORRECTION),
        table="behavior-log",
    )
    written = ledger("behavior-log", [Change(INSERT, log("a")), Change(INSERT, log("b"))])

    found = contents(written, of, BEHAVIOR_LOG, base=1, snapshots=[1, 2, 3])

    assert [stretches((1, 1)), Stretches(), stretches((2, 2))] == [one.when for one in found.values()]


def test_the_fingerprint_of_a_snapshot_is_that_of_its_rows() -> None:
    of = changes(
        delta(1, ("+I", order(1)), ("+I", order(2)), ("+U", order(2, cents=7))),
        delta(2, ("-U", order(1)), ("+U", order(1, cents=Decimal(3)))),
        delta(3, ("-D", order(2))),
    )

    found = held(of, [1, 2, 3])

    for snapshot, content in found.items():
        assert fingerprint(rows_at(of, snapshot, ORDERS), COLUMNS) == content.fingerprint
