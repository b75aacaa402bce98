"""The reconciliation oracle: guide §5.1 method 1 at each fence of each table, with planted defects."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest
from evidence_folders import FIRST_DAY, SECOND_DAY, Edit, Rows, fence_of, spoiled, with_fence
from judging import (
    EVERY_FENCE,
    KEYS,
    added,
    changed,
    codes,
    empty,
    failed_checks,
    finding,
    judged,
    swapped,
    without,
)

from harness.model import Evidence, OracleResult, Reading, TimeWindow, Verdict

NAME = "reconciliation"
A_MILLISECOND_LATER = datetime(2026, 7, 6, 10, 24, 0, 1000)  # noqa: DTZ001 - as the source writes it


def reconciled(evidence: Evidence) -> OracleResult:
    return judged(evidence, NAME)


@pytest.mark.parametrize(
    ("defect", "counted"),
    [
        (without(9), "1 keys missing, 0 extra"),
        (added(9, order_id=99), "0 keys missing, 1 extra"),
        (added(9, order_id=None), "0 keys missing, 1 extra"),
        (changed(9, order_amount=Decimal("9.01")), "1 with another row"),
        (changed(9, order_status=5), "1 with another row"),
        (changed(9, update_time=A_MILLISECOND_LATER), "1 with another row"),
        (changed(9, dt=SECOND_DAY), "1 with another row"),
        (changed(9, user_id=None), "1 with another row"),
        (swapped("order_amount", 9, 11), "2 with another row"),
        (added(9, dt=SECOND_DAY), "1 with more than one row"),
        (added(9), "1 with more than one row"),
        (added(6, order_status=1), "1 with more than one row"),
        (empty, "15 keys missing"),
    ],
    ids=[
        "missing",
        "added",
        "added without a key",
        "amount",
        "status",
        "time",
        "moved to another day",
        "a value became NULL",
        "two amounts swapped, so that sums are equal",
        "in two partitions",
        "twice the same",
        "twice, the old row beside the new",
        "nothing at all",
    ],
)
def test_a_sink_that_is_not_the_source_is_invalid_and_the_rows_are_named(
    evidence: Evidence, defect: Edit, counted: str
) -> None:
    result = reconciled(spoiled(evidence, "orders", sink=defect))

    assert Verdict.INVALID == result.verdict
    differing = finding(result, "rows-differ")
    assert counted in differing.what
    assert differing.examples
    assert "orders, fence 3, snapshot 6" == differing.where


@pytest.mark.parametrize(
    ("defect", "counted"),
    [
        (without("log-09"), "1 keys missing"),
        (added("log-09"), "1 with more than one row"),
        (added("log-09", event_type="pay"), "1 with more than one row"),
        (added("log-09", log_id="LOG-09"), "1 extra"),
        (changed("log-09", event_type="pay"), "1 with another row"),
        (swapped("user_id", "log-09", "log-11"), "2 with another row"),
    ],
    ids=["lost", "twice", "twice, once with another value", "other case of letters", "type", "users swapped"],
)
def test_a_log_that_is_not_the_source_is_invalid_too(evidence: Evidence, defect: Edit, counted: str) -> None:
    result = reconciled(spoiled(evidence, "behavior-log", sink=defect))

    assert Verdict.INVALID == result.verdict
    assert counted in finding(result, "rows-differ").what


@pytest.mark.parametrize("defect", [without, added], ids=["lost", "twice"])
@pytest.mark.parametrize(("table", "number"), EVERY_FENCE)
def test_a_defect_of_any_table_at_any_fence_is_seen_where_it_is(
    evidence: Evidence, table: str, number: int, defect: Any
) -> None:
    result = reconciled(spoiled(evidence, table, number, sink=defect(KEYS[table])))

    places = {item.where for item in result.findings}
    assert Verdict.INVALID == result.verdict
    assert {"totals-differ", "rows-differ"} == codes(result)
    assert {f"{table}, fence {number}, snapshot {2 * number}"} == places


def test_an_example_shows_key_expected_and_actual(evidence: Evidence) -> None:
    result = reconciled(spoiled(evidence, "orders", sink=changed(9, order_amount=Decimal("9.01"))))

    (example,) = finding(result, "rows-differ").examples
    assert example.startswith("stale: order_id 9; expected {")
    assert "9.00" in example.partition("; actual ")[0]
    assert "9.01" in example.partition("; actual ")[2]


def test_at_most_twenty_examples_are_shown_of_any_number_of_differences(evidence: Evidence) -> None:
    def many(rows: Rows) -> Rows:
        return [*rows, *(rows[-1] | {"order_id": 1000 + number} for number in range(50))]

    result = reconciled(spoiled(evidence, "orders", sink=many))

    assert "50 extra" in finding(result, "rows-differ").what
    assert 20 == len(finding(result, "rows-differ").examples)


def test_sums_that_differ_are_told_by_partition(evidence: Evidence) -> None:
    result = reconciled(spoiled(evidence, "orders", sink=without(9)))

    assert "totals-differ" in codes(result)
    assert f"orders, fence 3, flink-sql, {FIRST_DAY}" in failed_checks(result)
    assert f"orders, fence 3, flink-sql, {SECOND_DAY}" not in failed_checks(result)


def test_a_partition_of_its_own_in_the_sink_is_told_as_one(evidence: Evidence) -> None:
    result = reconciled(spoiled(evidence, "orders", sink=changed(9, dt="2026-07-09")))

    assert "orders, fence 3, flink-sql, 2026-07-09" in failed_checks(result)


@pytest.mark.parametrize(
    ("table", "column", "one", "other"),
    [("orders", "order_amount", 9, 11), ("behavior-log", "user_id", "log-09", "log-11")],
)
def test_swapped_values_are_seen_although_every_sum_agrees(
    evidence: Evidence, table: str, column: str, one: Any, other: Any
) -> None:
    result = reconciled(spoiled(evidence, table, sink=swapped(column, one, other)))

    assert Verdict.INVALID == result.verdict
    assert {"rows-differ"} == codes(result)


def test_rows_in_another_order_are_the_same_rows(evidence: Evidence) -> None:
    result = reconciled(spoiled(evidence, "orders", sink=lambda rows: rows[::-1]))

    assert Verdict.VALID == result.verdict


@pytest.mark.parametrize(("table", "number"), EVERY_FENCE)
def test_a_marker_that_never_showed_is_invalid_although_all_rows_agree(
    evidence: Evidence, table: str, number: int
) -> None:
    result = reconciled(with_fence(evidence, table, number, visible=False, visible_at_ms=0))

    assert Verdict.INVALID == result.verdict
    assert {"marker-lost"} == codes(result)


def test_a_reader_that_failed_makes_unknown_of_what_else_agrees(evidence: Evidence) -> None:
    native, _ = fence_of(evidence, "orders", 3).sink
    failed = Reading(reader="flink-sql", error="no slot")

    result = reconciled(with_fence(evidence, "orders", 3, sink=(native, failed)))

    assert Verdict.UNKNOWN == result.verdict
    assert {"reader-failed"} == codes(result)
    assert "no slot" == finding(result, "reader-failed").actual


def test_files_that_are_gone_are_invalid_and_not_a_failed_reader(evidence: Evidence) -> None:
    gone = Reading(reader="pypaimon-rust", error="a file is gone", files_missing=True)
    sink = (gone, replace(gone, reader="flink-sql"))

    result = reconciled(with_fence(evidence, "behavior-log", 2, sink=sink, sink_rows=""))

    assert Verdict.INVALID == result.verdict
    assert {"sink-files-missing", "rows-unread"} == codes(result)


@pytest.mark.parametrize("other", [0, 1], ids=["the first answers less", "the second answers less"])
def test_readers_that_disagree_are_unknown_and_both_answers_are_shown(evidence: Evidence, other: int) -> None:
    sink = list(fence_of(evidence, "orders", 2).sink)
    sink[other] = replace(sink[other], totals=sink[other].totals[:-1])

    result = reconciled(with_fence(evidence, "orders", 2, sink=tuple(sink)))

    assert Verdict.UNKNOWN == result.verdict
    said = finding(result, "readers-disagree").actual
    assert "pypaimon-rust: " in said
    assert "flink-sql: " in said


@pytest.mark.parametrize("asked", [0, 1])
def test_fewer_than_two_readers_are_unknown_although_the_rows_agree(evidence: Evidence, asked: int) -> None:
    sink = fence_of(evidence, "orders", 3).sink[:asked]

    result = reconciled(with_fence(evidence, "orders", 3, sink=sink))

    assert Verdict.UNKNOWN == result.verdict
    assert {"reader-missing"} == codes(result)


@pytest.mark.parametrize(("table", "number"), EVERY_FENCE)
def test_rows_that_were_not_read_are_unknown(evidence: Evidence, table: str, number: int) -> None:
    result = reconciled(with_fence(evidence, table, number, sink_rows=""))

    assert Verdict.UNKNOWN == result.verdict
    assert {"rows-unread"} == codes(result)


def test_a_window_that_holds_no_row_is_unknown(evidence: Evidence) -> None:
    at = fence_of(evidence, "orders", 3)
    start = at.window.start.replace(year=2001)
    nothing = tuple(replace(total, window_keys=0, window_amount="0.00") for total in at.source.totals)
    outside = with_fence(
        evidence,
        "orders",
        3,
        window=TimeWindow(start=start, end=start),
        source=replace(at.source, totals=nothing),
        sink=tuple(replace(reading, totals=nothing) for reading in at.sink),
    )

    result = reconciled(outside)

    assert Verdict.UNKNOWN == result.verdict
    assert {"window-empty"} == codes(result)


def test_a_fence_at_which_source_and_sink_are_empty_compares_nothing(evidence: Evidence) -> None:
    at = fence_of(evidence, "orders", 1)
    nothing = spoiled(evidence, "orders", 1, source=empty, sink=empty)

    result = reconciled(with_fence(nothing, "orders", 1, mark=replace(at.mark, operation=0)))

    assert Verdict.UNKNOWN == result.verdict
    assert "nothing-to-compare" in codes(result)


@pytest.mark.parametrize("lacking", range(6))
def test_a_table_that_was_not_read_at_a_fence_is_unknown(evidence: Evidence, lacking: int) -> None:
    fences = tuple(at for position, at in enumerate(evidence.fences) if position != lacking)
    mark = evidence.fences[lacking].mark

    result = reconciled(replace(evidence, fences=fences))

    assert Verdict.UNKNOWN == result.verdict
    assert {"fence-unread"} == codes(result)
    assert f"not read: {mark.table}, fence {mark.number}" == finding(result, "fence-unread").actual
