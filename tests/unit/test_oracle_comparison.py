"""Comparing tables: exact, key by key, as multisets; and finding a table's place in its ledger."""

from __future__ import annotations

from decimal import Decimal
from random import Random

import evidence_folders
import pyarrow as pa
import pytest
from evidence_folders import ROW_SCHEMAS, Change, Rows, log, order
from factories import BEHAVIOR_LOG, ORDERS

from harness.ledger import DELETE, INSERT, UPDATE, state_after
from harness.model import TimeWindow, Verdict
from harness.oracles.comparison import difference, totals
from harness.oracles.judgement import Judgement
from harness.oracles.positions import last_shown, operations_like


def orders(*rows: evidence_folders.Row) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=ROW_SCHEMAS[ORDERS.name])


def logs(*rows: evidence_folders.Row) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=ROW_SCHEMAS[BEHAVIOR_LOG.name])


def test_a_text_that_says_null_is_not_null() -> None:
    found = difference(orders(order(1) | {"dt": None}), orders(order(1) | {"dt": "NULL"}), ORDERS)

    assert 1 == found.stale


def test_texts_that_look_alike_in_a_row_are_not_mistaken() -> None:
    one = log("a") | {"event_type": "x', 'dt': y"}
    other = log("a") | {"event_type": "x", "dt": "y"}

    assert not difference(logs(one), logs(other), BEHAVIOR_LOG).is_empty


def test_rows_count_as_a_multiset_whatever_their_order() -> None:
    twice, once = log("a"), log("b")

    same = difference(logs(twice, once, twice), logs(once, twice, twice), BEHAVIOR_LOG)
    other = difference(logs(twice, once, twice), logs(once, once, twice), BEHAVIOR_LOG)

    assert same.is_empty
    assert (1, 1) == (other.repeated, other.stale)


def test_a_key_that_is_null_is_extra_and_not_missing() -> None:
    found = difference(logs(log("a")), logs(log("a"), log("a") | {"log_id": None}), BEHAVIOR_LOG)

    assert (0, 1) == (found.missing, found.extra)


def test_a_column_that_is_not_there_is_an_error_and_not_equal() -> None:
    with pytest.raises(KeyError):
        difference(orders(order(1)), orders(order(1)).drop_columns(["order_status"]), ORDERS)


def test_a_value_that_does_not_fit_is_an_error_and_not_equal() -> None:
    finer = orders(order(1)).set_column(
        2, "order_amount", pa.array([Decimal("10.004")], pa.decimal128(18, 3))
    )

    with pytest.raises(pa.ArrowInvalid):
        difference(orders(order(1)), finer, ORDERS)


def test_both_ends_of_a_window_belong_to_it() -> None:
    rows = orders(*(order(key, minute=key) for key in range(5)))
    window = TimeWindow(start=evidence_folders.time(1), end=evidence_folders.time(3))

    (total,) = totals(rows, window, ORDERS)

    assert (5, "50.00", 3, "30.00") == (total.rows, total.amount, total.window_keys, total.window_amount)


def random_changes(seed: int) -> list[Change]:
    """Inserts, updates and deletes of a few keys, so that states recur."""
    draw, live, changes = Random(seed), set[int](), []
    for _ in range(60):
        key, cents = draw.randrange(4), draw.randrange(3)
        if key not in live:
            live.add(key)
            changes.append(Change(INSERT, order(key, cents=cents)))
        elif draw.random() < 0.3:
            live.remove(key)
            changes.append(Change(DELETE, order(key, cents=cents)))
        else:
            changes.append(Change(UPDATE, order(key, cents=cents)))
    return changes


@pytest.mark.parametrize("seed", range(3))
def test_a_state_is_found_after_exactly_the_operations_that_made_it(seed: int) -> None:
    ledger = evidence_folders.ledger(ORDERS.name, random_changes(seed))
    states = [state_after(ledger, number, key="order_id") for number in range(1, 61)]
    wanted = Random(seed).sample(range(60), 10)

    for position in wanted:
        same = [number for number, state in enumerate(states, start=1) if state.equals(states[position])]
        shuffled = states[position].sort_by([("order_amount", "descending"), ("order_id", "descending")])
        assert same == operations_like(ledger, shuffled, key="order_id")


def test_a_state_that_never_was_is_not_found() -> None:
    ledger = evidence_folders.ledger(ORDERS.name, random_changes(0))
    never = state_after(ledger, 30, key="order_id").to_pylist()

    def like(rows: Rows) -> list[int]:
        return operations_like(ledger, orders(*rows), key="order_id")

    assert [] == like([*never, order(99)])
    assert [] == like([*never, *never])
    assert [] == like([never[0] | {"user_id": None}, *never[1:]])


def test_a_table_that_is_no_state_stands_at_the_last_row_that_it_shows() -> None:
    ledger = evidence_folders.ledger(
        BEHAVIOR_LOG.name, [Change(INSERT, log(f"l{key}", user=key)) for key in range(9)]
    )

    assert 7 == last_shown(ledger, logs(log("l0", user=0), log("l6", user=6)))
    assert 0 == last_shown(ledger, logs(log("other")))


def test_a_check_that_failed_unexplained_is_unknown() -> None:
    judgement = Judgement("any", unit="rows")
    judgement.examined = 1
    judgement.check("a thing", expected="1", actual="2", held=False)

    assert Verdict.UNKNOWN == judgement.result().verdict


def test_something_examined_and_nothing_found_is_valid_and_nothing_examined_is_unknown() -> None:
    judgement = Judgement("any", unit="rows")

    before = judgement.result().verdict
    judgement.examined = 1

    assert [Verdict.UNKNOWN, Verdict.VALID] == [before, judgement.result().verdict]
