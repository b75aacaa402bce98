"""The guide's query on the sink: the same predicates for every reader, and its rows as totals per request."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime
from decimal import Decimal

import duckdb
import pytest

from harness.errors import ReaderError
from harness.model import PartitionTotals, TimeWindow
from harness.paimon.totals import Branch, totals_from, totals_query
from harness.ports import TotalsRequest
from harness.source.orders import CONTRACT
from tests.unit.sink_warehouse import LOG

WINDOW = TimeWindow(
    start=datetime(2026, 7, 6, 10, 0, 0, 5000),  # noqa: DTZ001 - the model's windows are naive UTC
    end=datetime(2026, 7, 6, 11),  # noqa: DTZ001 - as above
)
REQUEST = TotalsRequest(table=CONTRACT, window=WINDOW, snapshot_id=7)


def query(text_type: str = "STRING", table: str = "dwd.dwd_order_detail") -> str:
    return totals_query([Branch(request=REQUEST, table=table)], text_type=text_type)


def test_the_window_is_asked_for_with_milliseconds() -> None:
    predicates = re.findall(r"(\S+ BETWEEN .*) AS inside", query())

    assert [
        "update_time BETWEEN TIMESTAMP '2026-07-06 10:00:00.005' AND TIMESTAMP '2026-07-06 11:00:00.000'"
    ] == predicates


def test_both_readers_ask_the_same_but_for_the_snapshot_and_the_texts_type() -> None:
    flink = query("STRING", "t /*+ OPTIONS('scan.snapshot-id'='7') */")
    native = query("VARCHAR", "t VERSION AS OF 7")

    assert native == flink.replace("STRING", "VARCHAR").replace(
        "t /*+ OPTIONS('scan.snapshot-id'='7') */", "t VERSION AS OF 7"
    )


def test_the_query_counts_and_sums_as_it_says() -> None:
    with duckdb.connect() as engine:
        engine.execute(
            "CREATE TABLE t AS SELECT * FROM (VALUES "
            "(1, 1.50::DECIMAL(18,2), TIMESTAMP '2026-07-06 10:00:00.005', 'a'), "  # the first of the window
            "(1, 1.00::DECIMAL(18,2), TIMESTAMP '2026-07-06 11:00:00.000', 'a'), "  # its last, the same key
            "(2, 0.25::DECIMAL(18,2), TIMESTAMP '2026-07-06 10:00:00.004', 'a'), "  # just outside
            "(4, 0.25::DECIMAL(18,2), NULL, 'a'), "  # at no time
            "(3, NULL, TIMESTAMP '2026-07-07 00:00:00', 'b')) r(order_id, order_amount, update_time, dt)"
        )
        (found,) = totals_from(engine.execute(query("VARCHAR", "t")).fetchall(), 1)

    assert (
        PartitionTotals(partition="a", rows=4, keys=3, amount="3.00", window_keys=1, window_amount="2.50"),
        PartitionTotals(partition="b", rows=1, keys=1, amount="0.00", window_keys=0, window_amount="0.00"),
    ) == found


def test_tables_with_other_types_and_windows_share_a_statement() -> None:
    later = TimeWindow(start=WINDOW.end, end=datetime(2026, 7, 6, 12))  # noqa: DTZ001 - as above
    logs = TotalsRequest(table=LOG, window=later, snapshot_id=1)
    branches = [
        Branch(request=REQUEST, table="o"),
        Branch(request=logs, table="l"),
        Branch(request=replace(logs, window=WINDOW), table="l"),
        Branch(request=logs, table="nothing"),
    ]
    with duckdb.connect() as engine:
        engine.execute(
            "CREATE TABLE o AS SELECT 1 AS order_id, 1.50::DECIMAL(18,2) AS order_amount, "
            "TIMESTAMP '2026-07-06 10:30:00' AS update_time, 'a' AS dt"
        )
        engine.execute(
            "CREATE TABLE l AS SELECT * FROM (VALUES "
            "('x', 100, TIMESTAMP '2026-07-06 10:30:00', 'a'), "
            "('y', 23, TIMESTAMP '2026-07-06 11:30:00', 'a')) "
            "r(log_id, user_id, event_time, dt)"
        )
        engine.execute("CREATE TABLE nothing AS SELECT * FROM l WHERE FALSE")
        rows = engine.execute(totals_query(branches, text_type="VARCHAR")).fetchall()
        orders, after, before, none = totals_from(rows, 4)

    log = PartitionTotals(
        partition="a", rows=2, keys=2, amount="123.00", window_keys=1, window_amount="23.00"
    )
    assert "1.50" == orders[0].amount
    assert ((log,), (replace(log, window_amount="100.00"),), ()) == (after, before, none)


def test_totals_are_sorted_by_branch_and_partition() -> None:
    rows = [
        (branch, day, 1, 1, "1", 1, "1")
        for branch, day in ((1, "2026-07-08"), (0, "2026-07-04"), (1, "2026-07-06"))
    ]
    found = totals_from(rows, 2)

    assert [["2026-07-04"], ["2026-07-06", "2026-07-08"]] == [
        [total.partition for total in totals] for totals in found
    ]


@pytest.mark.parametrize("number", [-1, 2])
def test_a_row_of_no_branch_is_an_error(number: int) -> None:
    with pytest.raises(ReaderError, match=f"branch {number}"):
        totals_from([(number, "a", 1, 1, "1", 1, "1")], 2)


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0", "0.00"), ("12.5", "12.50"), (Decimal("99999999999999.99"), "99999999999999.99"), (3, "3.00")],
)
def test_amounts_have_two_decimals_and_lose_none(amount: object, text: str) -> None:
    ((total,),) = totals_from([(0, "a", 1, 1, amount, 1, amount)], 1)

    assert (text, text) == (total.amount, total.window_amount)


def test_an_empty_table_has_no_totals() -> None:
    assert ((),) == totals_from([], 1)
