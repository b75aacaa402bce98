"""The time-travel oracle: guide §5.1 method 2 at each fence of each table, with planted defects."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from evidence_folders import spoiled, travel_of, with_travel
from judging import EVERY_FENCE, KEYS, added, changed, codes, finding, judged, swapped, without

from harness.model import Evidence, OracleResult, Pin, Reading, Severity, Verdict

NAME = "time_travel"
EACH = pytest.mark.parametrize(("table", "number"), EVERY_FENCE)


def travelled(evidence: Evidence) -> OracleResult:
    return judged(evidence, NAME)


@pytest.mark.parametrize("defect", [without, added], ids=["lost", "twice"])
@EACH
def test_a_snapshot_that_is_no_more_what_the_source_held_is_invalid(
    evidence: Evidence, table: str, number: int, defect: Any
) -> None:
    then = spoiled(evidence, table, number, travelled=defect(KEYS[table]))

    result = travelled(then)

    assert Verdict.INVALID == result.verdict
    assert {"totals-differ", "rows-differ"} == codes(result)
    assert {f"{table}, fence {number}, snapshot {2 * number}"} == {item.where for item in result.findings}
    assert Verdict.VALID == judged(then, "reconciliation").verdict


@pytest.mark.parametrize(
    ("table", "defect"),
    [
        ("orders", changed(9, order_status=5)),
        ("orders", swapped("order_amount", 9, 11)),
        ("behavior-log", changed("log-09", event_type="pay")),
        ("behavior-log", swapped("user_id", "log-09", "log-11")),
    ],
    ids=["a stale status", "swapped amounts", "a stale event", "swapped users"],
)
def test_a_row_that_is_stale_only_in_the_past_is_invalid_although_every_sum_agrees(
    evidence: Evidence, table: str, defect: Any
) -> None:
    result = travelled(spoiled(evidence, table, 2, travelled=defect))

    assert Verdict.INVALID == result.verdict
    assert {"rows-differ"} == codes(result)
    assert finding(result, "rows-differ").examples


def test_the_newest_state_is_not_taken_for_an_old_one(evidence: Evidence) -> None:
    newest = travel_of(evidence, "orders", 3)
    always_the_newest = with_travel(
        evidence, "orders", 1, by_time=newest.by_time, by_id=newest.by_id, sink_rows=newest.sink_rows
    )

    result = travelled(always_the_newest)

    assert Verdict.INVALID == result.verdict


@EACH
def test_a_fence_without_a_travel_is_unknown(evidence: Evidence, table: str, number: int) -> None:
    lacking = travel_of(evidence, table, number)
    travels = tuple(then for then in evidence.travels if then is not lacking)

    result = travelled(replace(evidence, travels=travels))

    assert Verdict.UNKNOWN == result.verdict
    assert {"not-travelled"} == codes(result)


def test_a_travel_to_another_snapshot_than_the_fences_is_none(evidence: Evidence) -> None:
    result = travelled(with_travel(evidence, "orders", 2, snapshot_id=21, resolved_id=21))

    assert Verdict.UNKNOWN == result.verdict
    assert "snapshot 21" == finding(result, "not-travelled").actual


@pytest.mark.parametrize(("resolved", "said"), [(1, "snapshot 1"), (0, "no snapshot")])
def test_a_time_that_leads_to_another_snapshot_is_unknown_although_all_agrees(
    evidence: Evidence, resolved: int, said: str
) -> None:
    result = travelled(with_travel(evidence, "orders", 2, resolved_id=resolved))

    assert Verdict.UNKNOWN == result.verdict
    assert {"resolved-elsewhere"} == codes(result)
    assert said == finding(result, "resolved-elsewhere").actual


@pytest.mark.parametrize("by", ["by_time", "by_id"])
def test_a_reader_that_failed_is_unknown(evidence: Evidence, by: str) -> None:
    failed = replace(getattr(travel_of(evidence, "orders", 2), by), totals=(), error="no slot")

    result = travelled(with_travel(evidence, "orders", 2, **{by: failed}))

    assert Verdict.UNKNOWN == result.verdict
    assert {"reader-failed"} == codes(result)


@pytest.mark.parametrize("by", ["by_time", "by_id"])
def test_files_that_are_gone_are_invalid(evidence: Evidence, by: str) -> None:
    reader = getattr(travel_of(evidence, "orders", 2), by).reader
    gone = Reading(reader=reader, error="a file is gone", files_missing=True)

    result = travelled(with_travel(evidence, "orders", 2, **{by: gone}))

    assert Verdict.INVALID == result.verdict
    assert {"sink-files-missing"} == codes(result)


@pytest.mark.parametrize("by", ["by_time", "by_id"])
def test_readers_that_disagree_are_unknown_and_both_answers_are_shown(evidence: Evidence, by: str) -> None:
    reading = getattr(travel_of(evidence, "orders", 2), by)
    less = replace(reading, totals=reading.totals[:-1])

    result = travelled(with_travel(evidence, "orders", 2, **{by: less}))

    assert Verdict.UNKNOWN == result.verdict
    assert {"readers-disagree"} == codes(result)
    said = finding(result, "readers-disagree").actual
    assert "pypaimon-rust: " in said
    assert "flink-sql: " in said


def test_one_reader_asked_twice_confirms_nothing(evidence: Evidence) -> None:
    then = travel_of(evidence, "orders", 2)

    result = travelled(with_travel(evidence, "orders", 2, by_time=then.by_id))

    assert Verdict.UNKNOWN == result.verdict
    assert {"reader-missing"} == codes(result)


@EACH
def test_rows_that_were_not_read_again_are_unknown(evidence: Evidence, table: str, number: int) -> None:
    result = travelled(with_travel(evidence, table, number, sink_rows=""))

    assert Verdict.UNKNOWN == result.verdict
    assert {"rows-unread"} == codes(result)


def test_a_fence_that_was_never_read_is_unknown(evidence: Evidence) -> None:
    result = travelled(replace(evidence, fences=evidence.fences[:-1]))

    assert Verdict.UNKNOWN == result.verdict
    assert {"fence-unread"} == codes(result)


def test_sums_that_differ_are_invalid_although_the_rows_agree(evidence: Evidence) -> None:
    then = travel_of(evidence, "orders", 2)
    first, *others = then.by_id.totals
    wrong = (replace(first, amount=str(Decimal(first.amount) + 1)), *others)
    by_time, by_id = (replace(reading, totals=wrong) for reading in (then.by_time, then.by_id))

    result = travelled(with_travel(evidence, "orders", 2, by_time=by_time, by_id=by_id))

    assert Verdict.INVALID == result.verdict
    assert {"totals-differ"} == codes(result)


def test_a_pin_that_failed_is_a_warning_and_costs_nothing_by_itself(evidence: Evidence) -> None:
    failed = Pin(table="orders", consumer="harness", first_snapshot=0, error="no such procedure")

    result = travelled(replace(evidence, pins=(failed,)))

    assert Verdict.VALID == result.verdict
    assert ("pin-failed", Severity.WARNING) == (result.findings[0].code, result.findings[0].severity)
