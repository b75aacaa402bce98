"""The fault-effect oracle: a fault without a proof proves nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import factories
import pytest
from evidence_folders import history_of, rewritten, with_history
from judging import codes, finding, judged

from harness.model import BulkUpdate, Evidence, FaultProof, OracleResult, Verdict

BIT = factories.proof()

KILL, STOP = factories.proof(), factories.stop_proof()

FENCED_MS = {number: factories.mark(number=number).committed_at_ms for number in (1, 2, 3)}

INSIDE = BulkUpdate(
    table="orders",
    fault=1,
    first_operation=17,
    last_operation=18,
    committed_at_ms=0,
    restored_checkpoint=1003,
)
"""A bulk update of two rows; the snapshot of checkpoint 1003 holds the source after the first one."""


def moved(evidence: Evidence, table: str, since_ms: int, until_ms: int, to_ms: int) -> Evidence:
    """What the source committed in a table in this time, it committed at another."""
    rewritten(
        evidence,
        evidence.contract(table).ledger_file,
        lambda rows: [
            row | {"committed_at_ms": to_ms} if since_ms <= row["committed_at_ms"] <= until_ms else row
            for row in rows
        ],
    )
    return evidence


def without_load(result: OracleResult) -> list[str]:
    """The tables, faults and times without a load."""
    return [f"{one.where}: {one.what}" for one in result.findings if one.code == "no-load"]


def test_a_fault_that_did_not_bite_is_unknown(evidence: Evidence) -> None:
    faults = (factories.proof(bit=False), factories.stop_proof())

    result = judged(replace(evidence, faults=faults), "fault_effect")

    assert Verdict.UNKNOWN == result.verdict
    assert {"fault-did-not-bite"} == codes(result)
    assert "taskmanager-1" == finding(result, "fault-did-not-bite").where


@pytest.mark.parametrize(
    "faults",
    [(), (BIT,), (BIT, replace(BIT, checks=())), (BIT, BIT, replace(BIT, checks=()))],
    ids=["no proof", "too few", "a proof without checks", "one more, without checks"],
)
def test_a_fault_without_a_proof_is_unknown(evidence: Evidence, faults: tuple[FaultProof, ...]) -> None:
    result = judged(replace(evidence, faults=faults), "fault_effect")

    assert Verdict.UNKNOWN == result.verdict
    assert {"fault-missing"} == codes(result)


def test_the_same_fault_twice_has_checks_of_its_own(evidence: Evidence) -> None:
    result = judged(replace(evidence, faults=(BIT, BIT)), "fault_effect")

    names = [check.name for check in result.checks]
    assert Verdict.VALID == result.verdict
    assert len(names) == len(set(names))


def test_a_fault_that_nobody_knows_the_time_of_is_not_proved(evidence: Evidence) -> None:
    result = judged(replace(evidence, faults=(replace(KILL, injected_at_ms=0), STOP)), "fault_effect")

    assert (Verdict.UNKNOWN, {"fault-missing"}) == (result.verdict, codes(result))


def test_what_each_table_committed_under_each_fault_and_after_it_is_told(evidence: Evidence) -> None:
    result = judged(evidence, "fault_effect")

    told = {check.name: check.actual for check in result.checks if "committed" in check.name}
    on, after = "committed while it was on", "committed from its end to the next fence"
    assert {
        f"1 kill-taskmanager taskmanager-1: orders: {on}": "1 in 12.5 s",
        f"1 kill-taskmanager taskmanager-1: orders: {after}": "1 in 17.5 s",
        f"1 kill-taskmanager taskmanager-1: behavior-log: {on}": "2 in 12.5 s",
        f"1 kill-taskmanager taskmanager-1: behavior-log: {after}": "1 in 17.5 s",
        f"2 stop-with-savepoint: orders: {on}": "1 in 10.0 s",
        f"2 stop-with-savepoint: orders: {after}": "2 in 20.0 s",
        f"2 stop-with-savepoint: behavior-log: {on}": "1 in 10.0 s",
        f"2 stop-with-savepoint: behavior-log: {after}": "2 in 20.0 s",
    } == told


@pytest.mark.parametrize("table", ["orders", "behavior-log"])
@pytest.mark.parametrize(
    ("proof", "struck"), [(KILL, "1 kill-taskmanager taskmanager-1"), (STOP, "2 stop-with-savepoint")]
)
def test_a_fault_under_which_a_table_was_not_written_to_proves_nothing(
    evidence: Evidence, proof: FaultProof, struck: str, table: str
) -> None:
    before = proof.injected_at_ms - 1
    still = moved(evidence, table, proof.injected_at_ms, proof.recovered_at_ms, before)
    result = judged(still, "fault_effect")

    assert Verdict.UNKNOWN == result.verdict
    assert [
        f"{table}, fault {struck}: the source committed nothing while it was on, so nothing could go wrong"
    ] == without_load(result)


@pytest.mark.parametrize(("proof", "fence"), [(KILL, 2), (STOP, 3)])
def test_a_table_that_was_written_to_no_more_after_a_fault_does_not_show_that_the_job_went_on(
    evidence: Evidence, proof: FaultProof, fence: int
) -> None:
    over = proof.recovered_at_ms
    result = judged(moved(evidence, "orders", over, FENCED_MS[fence] - 1, over - 1), "fault_effect")

    assert Verdict.UNKNOWN == result.verdict
    (said,) = without_load(result)
    assert "nothing from its end to the next fence" in said


@pytest.mark.parametrize(
    ("at_ms", "found"),
    [
        (KILL.injected_at_ms - 1, "0"),
        (KILL.injected_at_ms, "1"),
        (KILL.recovered_at_ms, "1"),
        (KILL.recovered_at_ms + 1, "0"),
    ],
)
def test_the_time_of_a_fault_is_from_its_injection_to_the_recovery_both_included(
    evidence: Evidence, at_ms: int, found: str
) -> None:
    only = moved(evidence, "orders", KILL.injected_at_ms, KILL.recovered_at_ms, at_ms)
    result = judged(only, "fault_effect")

    (check,) = (check for check in result.checks if "taskmanager-1: orders: committed while" in check.name)
    assert (f"{found} in 12.5 s", found == "1") == (check.actual, check.held)


def test_markers_are_no_load(evidence: Evidence) -> None:
    marked = replace(evidence, bulks=(replace(INSIDE, first_operation=18, last_operation=18),))
    result = judged(marked, "fault_effect")  # of the operations 17 to 19 all but 18 are markers then

    (said,) = without_load(result)
    assert "orders, fault 1 kill-taskmanager taskmanager-1: the source committed nothing while" in said


def test_a_fault_that_was_never_over_needs_a_load_since_its_injection(evidence: Evidence) -> None:
    endless = replace(STOP, healed_at_ms=0, recovered_at_ms=0)
    unread = tuple(fence for fence in evidence.fences if fence.mark.number < 3)
    cut_short = replace(evidence, faults=(KILL, endless), fences=unread)
    last_ms = FENCED_MS[3]
    loaded = without_load(judged(cut_short, "fault_effect"))
    for table in ("orders", "behavior-log"):
        moved(cut_short, table, STOP.injected_at_ms, last_ms, STOP.injected_at_ms - 1)

    assert [] == loaded
    assert 2 == len(without_load(judged(cut_short, "fault_effect")))


def test_a_recovery_after_the_next_fence_leaves_no_time_in_which_the_job_went_on(evidence: Evidence) -> None:
    late = replace(KILL, recovered_at_ms=FENCED_MS[2] + 1)
    result = judged(replace(evidence, faults=(late, STOP)), "fault_effect")

    assert Verdict.UNKNOWN == result.verdict
    assert 2 == len(without_load(result))


def test_a_restore_from_inside_the_bulk_update_is_told_with_the_rows_that_it_holds(
    evidence: Evidence,
) -> None:
    result = judged(replace(evidence, bulks=(INSIDE,)), "fault_effect")

    (check,) = (check for check in result.checks if "bulk update" in check.name)
    assert Verdict.VALID == result.verdict
    assert "checkpoint 1003, snapshot 3, which holds the source after operation 17: 1 of its 2 rows" == (
        check.actual
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"first_operation": 18, "last_operation": 19}, "operation 17: before it"),
        ({"first_operation": 16, "last_operation": 17}, "operation 17: after it"),
        ({"last_operation": 16}, "operation 17: after it"),  # of no rows
        ({"restored_checkpoint": 0}, "no restore was seen"),
        ({"restored_checkpoint": 999}, "checkpoint 999; it has no snapshot"),
        ({"restored_checkpoint": 1001}, "checkpoint 1001, snapshot 1; what it held is not known"),
    ],
)
def test_a_restore_from_elsewhere_or_unknown_is_unknown(
    evidence: Evidence, changes: dict[str, Any], said: str
) -> None:
    result = judged(replace(evidence, bulks=(replace(INSIDE, **changes),)), "fault_effect")

    assert Verdict.UNKNOWN == result.verdict
    assert "bulk-update-missed" in codes(result)
    assert said in finding(result, "bulk-update-missed").actual


def test_without_a_history_it_is_not_known_whether_the_bulk_update_was_struck(evidence: Evidence) -> None:
    unread = with_history(replace(evidence, bulks=(INSIDE,)), "orders", changes="", error="gone")

    assert Verdict.UNKNOWN == judged(unread, "fault_effect").verdict


def test_a_restored_snapshot_that_is_no_state_of_the_source_is_not_inside_the_bulk_update(
    evidence: Evidence,
) -> None:
    rewritten(
        evidence,
        history_of(evidence, "orders").changes,
        lambda rows: [row | {"user_id": 8} if row["snapshot_id"] == 3 else row for row in rows],
    )
    result = judged(replace(evidence, bulks=(INSIDE,)), "fault_effect")

    assert "after no operation" in finding(result, "bulk-update-missed").actual
