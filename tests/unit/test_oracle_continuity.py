"""The continuity oracle: a stopped job's sink is one state of the source, and the rest of it followed.

In the clean run the orders stop after operation 21 and the log after 19; fence 3 is operation 24 and 22.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import evidence_folders
import factories
import pyarrow.parquet as pq
import pytest
from evidence_folders import (
    STORIES,
    Change,
    Edit,
    fence_of,
    marker,
    order,
    rewritten,
    spoiled,
    with_fence,
)
from factories import ORDERS, TABLES
from judging import KEYS, added, changed, codes, empty, failed_checks, finding, judged, swapped, without

from harness.ledger import UPDATE, state_after
from harness.model import Evidence, JobMoment, OracleResult, SinkState, Verdict

EACH_TABLE = pytest.mark.parametrize("table", KEYS)


def continued(evidence: Evidence) -> OracleResult:
    return judged(evidence, "continuity")


def state_of(evidence: Evidence, table: str) -> SinkState:
    return next(state for state in evidence.states if state.table == table)


def with_state(evidence: Evidence, table: str, **changes: Any) -> Evidence:
    old = state_of(evidence, table)
    return replace(
        evidence,
        states=tuple(replace(state, **changes) if state is old else state for state in evidence.states),
    )


def stopped_after(evidence: Evidence, table: str, operation: int) -> Evidence:
    """The table as it was after another operation, and everything after that emitted."""
    contract = evidence.contract(table)
    folder = Path(evidence.folder)
    ledger = pq.read_table(folder / contract.ledger_file)
    kept = state_after(ledger, operation, key=contract.source_key)
    pq.write_table(kept, folder / state_of(evidence, table).sink_rows)
    rest = ledger["kind"].to_pylist()[operation:]
    return emitting(evidence, table, sum(2 if kind == UPDATE else 1 for kind in rest))


def emitting(evidence: Evidence, table: str, records: int) -> Evidence:
    """The source of the last life emitted so many records until the last fence."""
    return with_fence(evidence, table, 3, job=JobMoment(life=2, restarts=0, source_records=records))


def spoil_stopped(evidence: Evidence, table: str, edit: Edit) -> Evidence:
    rewritten(evidence, state_of(evidence, table).sink_rows, edit)
    return evidence


@pytest.mark.parametrize(
    ("table", "operation"),
    [("orders", number) for number in range(19, 24)] + [("behavior-log", number) for number in range(17, 22)],
)
def test_every_operation_since_the_last_fence_is_a_good_place_to_stop(
    evidence: Evidence, table: str, operation: int
) -> None:
    result = continued(stopped_after(evidence, table, operation))

    assert Verdict.VALID == result.verdict
    assert f"after operation {operation}" in {check.actual for check in result.checks}


@pytest.mark.parametrize(
    ("table", "defect"),
    [
        ("orders", without(9)),
        ("orders", added(9)),
        ("orders", added(9, order_id=99)),
        ("orders", changed(9, order_status=5)),
        ("orders", swapped("order_amount", 9, 11)),
        ("orders", without(2)),
        ("orders", lambda rows: changed(14, order_amount=Decimal("10.00"))(without(13)(rows))),
        ("orders", empty),
        ("behavior-log", without("log-09")),
        ("behavior-log", without("log-16")),
        ("behavior-log", added("log-09")),
        ("behavior-log", added("log-09", log_id="log-99")),
        ("behavior-log", swapped("user_id", "log-09", "log-11")),
        ("behavior-log", added("log-09", log_id="log-19", user_id=19, event_time=evidence_folders.time(19))),
    ],
    ids=[
        "an order lost",
        "an order twice",
        "an order of nobody",
        "a stale order",
        "swapped amounts",
        "the delete of operation 23 without 22",
        "operation 21 undone and an order lost",
        "no order at all",
        "a row lost",
        "the row before the last lost",
        "a row twice",
        "a row of nobody",
        "swapped users",
        "a row ahead of those before it",
    ],
)
def test_a_stopped_sink_that_is_no_state_of_the_source_is_invalid(
    evidence: Evidence, table: str, defect: Edit
) -> None:
    result = continued(spoil_stopped(evidence, table, defect))

    assert Verdict.INVALID == result.verdict
    assert {"no-such-state"} == codes(result)
    assert finding(result, "no-such-state").examples


def test_the_nearest_state_shows_what_is_lost(evidence: Evidence) -> None:
    result = continued(spoil_stopped(evidence, "behavior-log", without("log-09")))

    nearest = finding(result, "no-such-state")
    assert nearest.actual.startswith("against operation 19, the nearest: 1 keys missing, 0 extra")
    assert "after one of the operations 17 to 21" in nearest.expected
    assert nearest.examples[0].startswith("missing: log_id log-09")


@pytest.mark.parametrize(("table", "operation"), [("orders", 18), ("behavior-log", 16), ("behavior-log", 22)])
def test_a_state_of_another_time_is_invalid_and_the_time_is_said(
    evidence: Evidence, table: str, operation: int
) -> None:
    result = continued(stopped_after(evidence, table, operation))

    assert Verdict.INVALID == result.verdict
    assert f"as after operation {operation}, which is not one" in finding(result, "no-such-state").actual


@EACH_TABLE
def test_a_state_ahead_of_what_was_committed_is_invalid(evidence: Evidence, table: str) -> None:
    stopped_at = STORIES[table].cut

    result = continued(with_state(evidence, table, committed=stopped_at - 1))

    assert Verdict.INVALID == result.verdict
    assert {"no-such-state"} == codes(result)


@EACH_TABLE
def test_a_source_that_skipped_a_change_is_invalid_although_every_row_is_right(
    evidence: Evidence, table: str
) -> None:
    emitted = fence_of(evidence, table, 3).job
    assert emitted is not None

    result = continued(emitting(evidence, table, emitted.source_records - 1))

    assert Verdict.INVALID == result.verdict
    assert {"gap"} == codes(result)


@EACH_TABLE
def test_a_source_that_read_changes_again_is_invalid_although_every_row_is_right(
    evidence: Evidence, table: str
) -> None:
    emitted = fence_of(evidence, table, 3).job
    assert emitted is not None

    result = continued(emitting(evidence, table, emitted.source_records + 2))

    assert Verdict.INVALID == result.verdict
    assert {"read-again"} == codes(result)


@pytest.mark.parametrize(
    "moment",
    [
        None,
        JobMoment(life=2, restarts=0, source_records=-1),
        JobMoment(life=2, restarts=1, source_records=1),
        JobMoment(life=3, restarts=0, source_records=1),
        JobMoment(life=1, restarts=0, source_records=1),
    ],
    ids=["not asked", "not reported", "restarted since", "a later life", "the life before"],
)
def test_where_the_source_can_not_be_counted_the_rows_decide_and_that_is_said(
    evidence: Evidence, moment: JobMoment | None
) -> None:
    uncounted = with_fence(evidence, "orders", 3, job=moment)

    result = continued(uncounted)
    of_lost_rows = continued(spoiled(uncounted, "orders", sink=without(9)))

    assert Verdict.VALID == result.verdict
    assert any("how much the source emitted is not known" in check.actual for check in result.checks)
    assert Verdict.INVALID == of_lost_rows.verdict


@pytest.mark.parametrize("defect", [without, added], ids=["a gap", "a duplicate"])
@EACH_TABLE
def test_a_rest_that_is_not_the_sources_is_invalid(evidence: Evidence, table: str, defect: Any) -> None:
    result = continued(spoiled(evidence, table, sink=defect(KEYS[table])))

    assert Verdict.INVALID == result.verdict
    assert {"not-continued"} == codes(result)
    assert finding(result, "not-continued").examples


def test_a_log_read_again_from_its_beginning_is_invalid(evidence: Evidence) -> None:
    again = spoiled(evidence, "behavior-log", sink=lambda rows: [*rows, *rows])

    result = continued(emitting(again, "behavior-log", 22))

    assert {"not-continued", "read-again"} == codes(result)


def test_a_state_that_recurs_may_have_been_left_at_either_time(tmp_path: Path) -> None:
    back_and_forth = (
        Change(UPDATE, order(13, cents=1, minute=9)),
        Change(UPDATE, order(13, minute=9)),  # as at fence 2 again; the savepoint cuts here
        Change(UPDATE, order(13, cents=1300, minute=32)),
    )
    orders = STORIES["orders"]
    story = replace(orders, chapters=(*orders.chapters[:2], back_and_forth), cut=21)
    twice = evidence_folders.evidence(tmp_path, {**STORIES, "orders": story})

    after_the_first, after_the_second = 2 * 3 + 1, 2 + 1
    verdicts = [
        continued(emitting(twice, "orders", records)).verdict
        for records in (after_the_first, after_the_second, after_the_second + 1)
    ]

    assert [Verdict.VALID, Verdict.VALID, Verdict.INVALID] == verdicts


@pytest.mark.parametrize(("records", "verdict"), [(4, "VALID"), (1, "VALID"), (5, "INVALID")])
def test_a_job_that_ended_otherwise_may_emit_less_since_its_checkpoint_is_ahead_of_its_sink(
    evidence: Evidence, records: int, verdict: str
) -> None:
    result = continued(emitting(with_state(evidence, "orders", savepoint=""), "orders", records))

    assert Verdict[verdict] == result.verdict


@EACH_TABLE
def test_a_job_that_did_not_come_back_from_its_savepoint_is_unknown(evidence: Evidence, table: str) -> None:
    jobs = tuple(
        replace(job, restored_from="s3://flink/other" if job.restored_from else "")
        if job.name == table
        else job
        for job in evidence.jobs
    )

    result = continued(replace(evidence, jobs=jobs))

    assert Verdict.UNKNOWN == result.verdict
    assert {"not-restored-from-it"} == codes(result)


@EACH_TABLE
def test_a_job_that_was_started_from_nothing_and_read_all_again_is_invalid(
    evidence: Evidence, table: str
) -> None:
    jobs = tuple(replace(job, restored_from="") for job in evidence.jobs)

    result = continued(replace(emitting(evidence, table, 40), jobs=jobs))

    assert Verdict.INVALID == result.verdict
    assert {"not-restored-from-it", "read-again"} == codes(result)


@pytest.mark.parametrize(
    "changes", [{"sink_rows": ""}, {"sink_rows": "", "error": "no slot"}], ids=["no rows", "failed"]
)
@EACH_TABLE
def test_a_stopped_sink_that_was_not_read_is_unknown(
    evidence: Evidence, table: str, changes: dict[str, str]
) -> None:
    result = continued(with_state(evidence, table, **changes))

    assert Verdict.UNKNOWN == result.verdict
    assert {"state-unread"} == codes(result)


@EACH_TABLE
def test_a_stop_of_which_a_tables_rows_were_not_kept_is_unknown(evidence: Evidence, table: str) -> None:
    states = tuple(state for state in evidence.states if state.table != table)

    result = continued(replace(evidence, states=states))

    assert Verdict.UNKNOWN == result.verdict
    assert f"{table}, fault 2" == finding(result, "state-missing").where


def test_a_stop_of_which_nothing_was_kept_is_unknown(evidence: Evidence) -> None:
    result = continued(replace(evidence, states=()))

    assert (Verdict.UNKNOWN, 0) == (result.verdict, result.examined)
    assert {"state-missing"} == codes(result)


def test_rows_kept_in_one_stop_do_not_stand_for_another(evidence: Evidence) -> None:
    stops = (*evidence.faults, factories.stop_proof())

    result = continued(replace(evidence, faults=stops, expected_faults=3))

    assert {"orders, fault 3", "behavior-log, fault 3"} == {item.where for item in result.findings}


def test_a_stop_before_the_first_fence_is_unknown(evidence: Evidence) -> None:
    fences = tuple(at for at in evidence.fences if at.mark.number == 3)

    result = continued(replace(evidence, fences=fences))

    assert Verdict.UNKNOWN == result.verdict
    assert {"no-fence-before"} == codes(result)


def test_a_stop_after_which_no_fence_was_read_is_unknown(evidence: Evidence) -> None:
    fences = tuple(at for at in evidence.fences if at.mark.number < 3)

    result = continued(replace(evidence, fences=fences))

    assert Verdict.UNKNOWN == result.verdict
    assert {"no-fence-after"} == codes(result)


def test_rows_that_were_not_read_at_the_fence_after_are_unknown(evidence: Evidence) -> None:
    result = continued(with_fence(evidence, "orders", 3, sink_rows=""))

    assert Verdict.UNKNOWN == result.verdict
    assert {"rows-unread"} == codes(result)


@pytest.mark.parametrize("number", [2, 3])
def test_a_ledger_that_is_not_the_source_around_a_stop_is_unknown(evidence: Evidence, number: int) -> None:
    foreign = spoiled(evidence, "orders", number, source=without(9))

    result = continued(spoil_stopped(foreign, "orders", without(9)))

    assert Verdict.UNKNOWN == result.verdict
    assert {"ledger-is-not-source"} == codes(result)


def test_what_does_not_hold_is_a_check_that_failed(evidence: Evidence) -> None:
    result = continued(spoil_stopped(evidence, "orders", without(9)))

    assert {"orders, fault 2, snapshot 5: the stopped sink is a state of the source"} == failed_checks(result)


def test_the_story_stops_inside_of_its_last_chapter() -> None:
    for table in TABLES:
        chapters = STORIES[table.name].chapters
        fences = [sum(len(chapter) + 1 for chapter in chapters[:number]) for number in (2, 3)]
        assert fences[0] < STORIES[table.name].cut < fences[1]
    assert marker(ORDERS.name, 3).row["order_id"] == -3
