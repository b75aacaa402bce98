"""The changelog oracle: a changelog that misleads its reader is INVALID, one not looked at never VALID."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from evidence_folders import Edit, Row, Rows, history_of, order, rewritten, with_history
from factories import BEHAVIOR_LOG, ORDERS
from judging import codes, failed_checks, finding, judged, judged_by_all

from harness.model import Evidence, OracleResult, Severity, SnapshotGap, Verdict
from harness.replay import CORRECTION, rows_at

NAME = "changelog"
BASE, LAST = 2, 6
"""The snapshots of the first fence, and of the last one."""


def changelog_of(evidence: Evidence) -> Rows:
    file = history_of(evidence, "orders").changelog
    rows: Rows = pq.read_table(Path(evidence.folder) / file).to_pylist()
    return rows


def logged(evidence: Evidence, edit: Edit) -> Evidence:
    """The changelog has other rows, and the snapshots' metadata agrees with it."""
    rows = rewritten(evidence, history_of(evidence, "orders").changelog, edit).to_pylist()
    counts = Counter(row["snapshot_id"] for row in rows)
    return replace(
        evidence,
        snapshots=tuple(
            replace(record, changelog_records=counts[record.snapshot_id])
            if record.table == "orders"
            else record
            for record in evidence.snapshots
        ),
    )


def verdict_and_codes(result: OracleResult) -> tuple[Verdict, set[str]]:
    return result.verdict, codes(result)


def dropped(place: int) -> Edit:
    return lambda rows: [row for number, row in enumerate(rows) if number != place]


def doubled(place: int) -> Edit:
    return lambda rows: [*rows, rows[place] | {"sequence": 1000}]


def with_other_values(place: int) -> Edit:
    return lambda rows: [row | {"user_id": 99} if number == place else row for number, row in enumerate(rows)]


def one_snapshot_later(place: int) -> Edit:
    return lambda rows: [
        row | {"snapshot_id": row["snapshot_id"] + 1} if number == place else row
        for number, row in enumerate(rows)
    ]


def test_a_changelog_that_leads_to_every_snapshot_is_valid_and_counts_its_rows(evidence: Evidence) -> None:
    result = judged(evidence, NAME)

    assert (Verdict.VALID, set()) == verdict_and_codes(result)
    assert len(changelog_of(evidence)) == result.examined
    assert "equal at 4" in {check.actual for check in result.checks}


@pytest.mark.parametrize("defect", [dropped, doubled, with_other_values, one_snapshot_later])
def test_any_row_that_is_lost_doubled_wrong_or_late_is_invalid(
    evidence: Evidence, defect: Callable[[int], Edit]
) -> None:
    clean = changelog_of(evidence)
    for place, row in enumerate(clean):
        if row["snapshot_id"] > BASE:
            edit = defect(place)
            result = judged(logged(evidence, lambda _, edit=edit: edit(clean)), NAME)  # type: ignore[misc]
            assert Verdict.INVALID == result.verdict, row


def test_a_lost_row_is_named_with_the_snapshot_it_is_missed_at(evidence: Evidence) -> None:
    inserted = next(row for row in changelog_of(evidence) if row["rowkind"] == "+I" and row["order_id"] == 14)
    lost = logged(evidence, lambda rows: [row for row in rows if row != inserted])

    result = judged(lost, NAME)

    differing = finding(result, "changelog-differs")
    assert f"first at {inserted['snapshot_id']} (APPEND)" in differing.what
    assert "1 rows of the table lacking, 0 rows too many" == differing.actual
    assert f"snapshot {inserted['snapshot_id']}: not in the changelog: " in differing.examples[0]
    assert "'order_id': 14" in differing.examples[0]
    assert "removes nothing" in finding(result, "changelog-out-of-turn").examples[0]


def test_an_update_that_is_told_before_the_row_it_takes_away_is_out_of_turn(evidence: Evidence) -> None:
    """Sums don't see the order of rows; a reader that holds one row of a key does."""

    def turned(rows: Rows) -> Rows:
        of_six = [row for row in rows if row["order_id"] == 6 and row["rowkind"] in ("-U", "+U")]
        before, after = (row["sequence"] for row in of_six)
        return [
            row | {"sequence": before + after - row["sequence"]} if row in of_six else row for row in rows
        ]

    result = judged(logged(evidence, turned), NAME)

    assert (Verdict.INVALID, {"changelog-out-of-turn"}) == verdict_and_codes(result)
    found = finding(result, "changelog-out-of-turn")
    assert found.what.startswith("2 rows do not follow")
    assert "+U {'order_id': 6" in found.examples[0]
    assert "is added to what is there; before it +I" in found.examples[0]


def test_an_update_without_its_other_half_is_invalid(evidence: Evidence) -> None:
    def halved(rows: Rows) -> Rows:
        return [
            row | {"rowkind": "+I"} if (row["order_id"], row["rowkind"]) == (6, "+U") else row for row in rows
        ]

    result = judged(logged(evidence, halved), NAME)

    assert (Verdict.INVALID, {"half-update"}) == verdict_and_codes(result)
    assert "order_id 6 has 1 -U and 0 +U" in finding(result, "half-update").examples[0]


def test_a_change_that_only_the_table_has_is_invalid(evidence: Evidence) -> None:
    def without_last(rows: Rows) -> Rows:
        return [row for row in rows if (row["snapshot_id"], row["order_id"]) != (LAST, 2)]

    rewritten(evidence, history_of(evidence, "orders").changes, without_last)

    assert (Verdict.INVALID, {"changelog-differs"}) == verdict_and_codes(judged(evidence, NAME))


def test_a_row_that_a_whole_read_found_and_nothing_brought_is_invalid(evidence: Evidence) -> None:
    ghost: Row = {"snapshot_id": 4, "part": CORRECTION, "rowkind": "+I", "sequence": 0} | order(77)
    rewritten(evidence, history_of(evidence, "orders").changes, lambda rows: [*rows, ghost])

    result = judged(evidence, NAME)

    assert (Verdict.INVALID, {"changelog-differs"}) == verdict_and_codes(result)
    assert "at 3 snapshots, first at 4" in finding(result, "changelog-differs").what


def test_a_changelog_of_the_load_that_does_not_lead_to_the_first_fence_is_invalid(evidence: Evidence) -> None:
    result = judged(logged(evidence, dropped(0)), NAME)

    assert (Verdict.INVALID, {"first-changelog-differs"}) == verdict_and_codes(result)


def test_the_changelog_of_the_load_is_not_judged_when_its_first_snapshot_is_gone(evidence: Evidence) -> None:
    lost = logged(evidence, dropped(0))
    expired = replace(lost, snapshots=tuple(record for record in lost.snapshots if record.snapshot_id > 1))

    result = judged(expired, NAME)

    assert (Verdict.VALID, set()) == verdict_and_codes(result)
    assert sum(row["snapshot_id"] > BASE for row in changelog_of(evidence)) == result.examined


def test_other_numbers_of_rows_than_the_snapshots_promise_are_unknown(evidence: Evidence) -> None:
    more = tuple(
        replace(record, changelog_records=record.changelog_records + 1) for record in evidence.snapshots
    )

    result = judged(replace(evidence, snapshots=more), NAME)

    assert (Verdict.UNKNOWN, {"changelog-count-differs"}) == verdict_and_codes(result)
    assert "snapshot 1: " in finding(result, "changelog-count-differs").examples[0]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"error": "gone away"}, "changelog-unread"),
        ({"changelog": ""}, "changelog-unread"),
        ({"changes": ""}, "changelog-unread"),
        ({"changelog_producer": ""}, "producer-unknown"),
        ({"changelog_producer": "sometimes"}, "producer-unknown"),
        ({"base_snapshot": 0}, "no-base"),
    ],
)
def test_a_changelog_that_was_not_read_is_unknown(
    evidence: Evidence, changes: dict[str, Any], code: str
) -> None:
    result = judged(with_history(evidence, "orders", **changes), NAME)

    assert (Verdict.UNKNOWN, {code}) == verdict_and_codes(result)


def test_a_table_of_which_no_history_was_kept_is_unknown(evidence: Evidence) -> None:
    result = judged(replace(evidence, histories=()), NAME)

    assert (Verdict.UNKNOWN, {"changelog-unread"}) == verdict_and_codes(result)


def test_a_changelog_in_which_nothing_happened_is_unknown(evidence: Evidence) -> None:
    only_base = replace(
        evidence,
        snapshots=tuple(record for record in evidence.snapshots if record.snapshot_id == BASE),
        fences=tuple(at for at in evidence.fences if at.snapshot_id == BASE),
    )

    result = judged(only_base, NAME)

    assert (Verdict.UNKNOWN, 0) == (result.verdict, result.examined)


@pytest.mark.parametrize(
    ("missing", "verdict", "code"),
    [(False, Verdict.UNKNOWN, "snapshots-unknown"), (True, Verdict.INVALID, "sink-files-missing")],
)
def test_a_snapshot_that_is_not_known_is_never_valid(
    evidence: Evidence, missing: bool, verdict: Verdict, code: str
) -> None:
    gap = SnapshotGap(snapshot_id=5, error="it is gone", files_missing=missing)
    result = judged(with_history(evidence, "orders", gaps=(gap,)), NAME)

    assert (verdict, {code}) == verdict_and_codes(result)
    assert "1 not known, the first is 5: it is gone" == finding(result, code).actual
    assert "equal at 2" in {check.actual for check in result.checks}  # those before the gap


@pytest.mark.parametrize("gone", [BASE, 4, LAST])
def test_a_snapshot_without_metadata_is_not_known(evidence: Evidence, gone: int) -> None:
    known = tuple(record for record in evidence.snapshots if record.snapshot_id != gone)

    result = judged(replace(evidence, snapshots=known), NAME)

    assert (Verdict.UNKNOWN, {"snapshots-unknown"}) == verdict_and_codes(result)


def test_a_gap_before_the_base_costs_only_the_load(evidence: Evidence) -> None:
    gap = SnapshotGap(snapshot_id=1, error="expired")

    result = judged(with_history(evidence, "orders", gaps=(gap,)), NAME)

    assert (Verdict.VALID, set()) == verdict_and_codes(result)
    assert not any("snapshots 1 to" in check.name for check in result.checks)


def test_a_table_without_a_producer_is_not_judged_and_the_run_says_so(evidence: Evidence) -> None:
    none = with_history(replace(evidence, oracles=(NAME,)), "orders", changelog_producer="none", changelog="")

    results = judged_by_all(none)

    assert NAME not in results
    said = finding(results["completeness"], "changelog-not-applicable")
    assert (Severity.WARNING, Verdict.VALID) == (said.severity, results["completeness"].verdict)
    assert said.what.endswith("since no table has one: orders")


def test_a_run_that_does_not_ask_for_changelogs_says_nothing_of_them(evidence: Evidence) -> None:
    none = with_history(evidence, "orders", changelog_producer="none", changelog="")

    assert set() == codes(judged(none, "completeness"))


def test_a_run_with_append_only_tables_alone_is_not_asked_for_a_changelog(evidence: Evidence) -> None:
    logs = replace(evidence, tables=(BEHAVIOR_LOG,))

    assert NAME not in judged_by_all(logs)


def test_beside_a_table_with_a_changelog_one_without_is_said_not_to_be_judged(evidence: Evidence) -> None:
    other = replace(ORDERS, name="more-orders")
    two = replace(
        evidence,
        tables=(*evidence.tables, other),
        histories=(
            *evidence.histories,
            replace(history_of(evidence, "orders"), table=other.name, changelog_producer="none"),
        ),
    )

    result = judged(two, NAME)

    assert (Verdict.VALID, {"no-changelog"}) == verdict_and_codes(result)
    assert "more-orders" == finding(result, "no-changelog").where


def emitted_later(
    evidence: Evidence, *, producer: str = "lookup", at: tuple[int, ...] = (2, 4, 6)
) -> Evidence:
    """The same sink with a producer that emits with compactions: at these snapshots, what became of each
    key since the one before.
    """
    history = history_of(evidence, "orders")
    changes = pq.read_table(Path(evidence.folder) / history.changes)

    def of_compactions(_: Rows) -> Rows:
        rows: Rows = []
        before: dict[Any, Row] = {}
        for snapshot in at:
            held = {
                (row["dt"], row["order_id"]): row for row in rows_at(changes, snapshot, ORDERS).to_pylist()
            }
            for key in sorted(before.keys() | held.keys()):
                was, now = before.get(key), held.get(key)
                if was != now:
                    kinds = ("-U", "+U") if was and now else ("-D", "+I")
                    rows += [
                        {"snapshot_id": snapshot, "rowkind": kind, "sequence": len(rows) + place} | row
                        for place, (kind, row) in enumerate(zip(kinds, (was, now), strict=True))
                        if row
                    ]
            before = held
        return rows

    return compacting(
        with_history(logged(evidence, of_compactions), "orders", changelog_producer=producer), at
    )


def compacting(evidence: Evidence, at: tuple[int, ...]) -> Evidence:
    return replace(
        evidence,
        snapshots=tuple(
            replace(record, kind="COMPACT") if record.snapshot_id in at else record
            for record in evidence.snapshots
        ),
    )


@pytest.mark.parametrize("producer", ["lookup", "full-compaction"])
def test_a_changelog_of_compactions_that_caught_up_is_valid(evidence: Evidence, producer: str) -> None:
    later = emitted_later(evidence, producer=producer)

    result = judged(later, NAME)

    assert (Verdict.VALID, set()) == verdict_and_codes(result)
    assert len(changelog_of(later)) == result.examined
    assert "equal at 2 of 2 snapshots from 2 on, not yet emitted at 0" in {
        check.actual for check in result.checks
    }


def test_changes_that_no_compaction_emitted_yet_are_unknown_with_what_to_do(evidence: Evidence) -> None:
    result = judged(emitted_later(evidence, at=(2, 4)), NAME)

    assert (Verdict.UNKNOWN, {"not-yet-emitted"}) == verdict_and_codes(result)
    assert finding(result, "not-yet-emitted").todo
    assert {f"orders: all was emitted at snapshot {LAST}, changelog = content"} == failed_checks(result)


def test_a_change_that_is_emitted_a_compaction_later_is_counted_and_no_defect(evidence: Evidence) -> None:
    def late(rows: Rows) -> Rows:
        return [
            row | {"snapshot_id": LAST} if (row["snapshot_id"], row["order_id"]) == (4, 6) else row
            for row in rows
        ]

    result = judged(logged(emitted_later(evidence), late), NAME)

    assert (Verdict.VALID, set()) == verdict_and_codes(result)
    assert "equal at 1 of 2 snapshots from 2 on, not yet emitted at 1" in {
        check.actual for check in result.checks
    }


def test_a_row_that_compactions_emitted_and_the_table_never_held_is_invalid(evidence: Evidence) -> None:
    def ghostly(rows: Rows) -> Rows:
        ghost = order(78)
        return [
            *rows,
            {"snapshot_id": 2, "rowkind": "+I", "sequence": 500} | ghost,
            {"snapshot_id": 4, "rowkind": "-D", "sequence": 500} | ghost,
        ]

    result = judged(logged(emitted_later(evidence), ghostly), NAME)

    assert (Verdict.INVALID, {"never-held"}) == verdict_and_codes(result)
    assert "snapshot 2: {'order_id': 78" in finding(result, "never-held").examples[0]


def test_an_emission_that_was_skipped_shows_at_the_next_of_its_key(evidence: Evidence) -> None:
    of_thirteen = [row for row in changelog_of(emitted_later(evidence)) if row["order_id"] == 13]
    assert ["+I", "-U", "+U"] == [row["rowkind"] for row in of_thirteen]

    skipped = logged(evidence, lambda rows: [row for row in rows if row != of_thirteen[0]])
    result = judged(with_history(compacting(skipped, (2, 4, 6)), "orders", changelog_producer="lookup"), NAME)

    assert (Verdict.INVALID, True) == (result.verdict, "changelog-out-of-turn" in codes(result))


def test_two_compactions_of_a_snapshot_may_give_a_row_the_same_sequence_twice(evidence: Evidence) -> None:
    """What takes a row away stands under the sequence of that row."""

    def twice(rows: Rows) -> Rows:
        (place,) = [
            number
            for number, row in enumerate(rows)
            if (row["order_id"], row["rowkind"], row["snapshot_id"]) == (6, "+U", 4)
        ]
        first = rows[place] | {"sequence": 600}
        again = [first | {"rowkind": "-U"}, first | {"sequence": 601}]
        return [*rows[:place], *again, first, *rows[place + 1 :]]

    result = judged(logged(emitted_later(evidence), twice), NAME)

    assert (Verdict.VALID, set()) == verdict_and_codes(result)


def test_a_later_changelog_without_its_beginning_is_unknown(evidence: Evidence) -> None:
    later = emitted_later(evidence)
    expired = replace(later, snapshots=tuple(record for record in later.snapshots if record.snapshot_id > 1))

    assert (Verdict.UNKNOWN, {"start-unknown"}) == verdict_and_codes(judged(expired, NAME))


def test_a_job_that_began_in_the_middle_may_delete_rows_that_it_never_read(evidence: Evidence) -> None:
    unread = {"snapshot_id": 1, "rowkind": "-D", "sequence": -1} | order(99, minute=1)
    deleting = logged(evidence, lambda rows: [unread, *rows])

    assert Verdict.INVALID is judged(deleting, NAME).verdict
    assert Verdict.VALID is judged(replace(deleting, startup="latest-offset"), NAME).verdict
