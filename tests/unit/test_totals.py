"""The guide's query on the sink: the same predicates for every reader, and its rows as totals."""

from __future__ import annotations

import re
from datetime import datetime
from decimal import Decimal

import duckdb
import pytest

from harness.model import PartitionTotals, TimeWindow
from harness.paimon.totals import totals_from, totals_query
from harness.source.orders import CONTRACT

WINDOW = TimeWindow(
    start=datetime(2026, 7, 6, 10, 0, 0, 5000),  # noqa: DTZ001 - the model's windows are naive UTC
    end=datetime(2026, 7, 6, 11),  # noqa: DTZ001 - as above
)


def query(text_type: str = "STRING", table: str = "dwd.dwd_order_detail") -> str:
    return totals_query(CONTRACT, table, WINDOW, text_type=text_type)


def test_both_aggregates_of_the_window_have_the_same_predicate_with_milliseconds() -> None:
    predicates = re.findall(r"CASE WHEN (.*?) THEN", query())

    expected = (
        "update_time BETWEEN TIMESTAMP '2026-07-06 10:00:00.005' AND TIMESTAMP '2026-07-06 11:00:00.000'"
    )
    assert [expected] * 2 == predicates


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
            "(3, NULL, TIMESTAMP '2026-07-07 00:00:00', 'b')) r(order_id, order_amount, update_time, dt)"
        )
        found = totals_from(engine.execute(query("VARCHAR", "t")).fetchall())

    assert (
        PartitionTotals(partition="a", rows=3, keys=2, amount="2.75", window_keys=1, window_amount="2.50"),
        PartitionTotals(partition="b", rows=1, keys=1, amount="0.00", window_keys=0, window_amount="0.00"),
    ) == found


def test_totals_are_sorted_by_partition() -> None:
    found = totals_from([(day, 1, 1, "1", 1, "1") for day in ("2026-07-08", "2026-07-04", "2026-07-06")])

    assert ["2026-07-04", "2026-07-06", "2026-07-08"] == [total.partition for total in found]


@pytest.mark.parametrize(
    ("amount", "text"),
    [("0", "0.00"), ("12.5", "12.50"), (Decimal("99999999999999.99"), "99999999999999.99"), (3, "3.00")],
)
def test_amounts_have_two_decimals_and_lose_none(amount: object, text: str) -> None:
    (total,) = totals_from([("a", 1, 1, amount, 1, amount)])

    assert (text, text) == (total.amount, total.window_amount)


def test_an_empty_table_has_no_totals() -> None:
    assert () == totals_from([])
