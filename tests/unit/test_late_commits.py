"""Torn late commits: part of a failed checkpoint passes only where the scenario accepts it, nothing else.

In the clean run the orders' snapshots 4, 5 and 6 stand at operations 19, 21 and 24: 20 and 21 write order 14,
22 changes order 13, 23 deletes order 2, 24 is a marker. A torn snapshot 5 holds 22 of these alone.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import factories
import pytest
from evidence_folders import FIRST_DAY, Row, Rows, history_of, order, with_fence, with_history
from held_rows import at_operation, corrected, holding, with_record
from judging import codes, finding, judged

from harness.model import Evidence, Severity, Verdict
from harness.oracles.exhibits import Exhibits
from harness.oracles.late_commits import LIMIT
from harness.oracles.prefixes import positions_of

JUDGES = pytest.mark.parametrize("oracle", ["snapshot_prefix", "partition_atomicity"])


def only(clean: Evidence, *operations: int) -> Rows:
    """The orders after operation 19 and these."""
    rows = {row["order_id"]: row for row in at_operation(clean, "orders", 19)}
    for operation in operations:
        after = {row["order_id"]: row for row in at_operation(clean, "orders", operation)}
        before = {row["order_id"]: row for row in at_operation(clean, "orders", operation - 1)}
        rows |= {key: row for key, row in after.items() if before.get(key) != row}
        for key in before.keys() - after.keys():
            del rows[key]
    return list(rows.values())


def torn(clean: Evidence, rows: Rows, *, status: str = "FAILED") -> Evidence:
    """A run whose snapshot 5 holds these rows, committed for a checkpoint of this status."""
    late = replace(factories.checkpoint(1005, after_ms=95_000), status=status)
    jobs = tuple(
        replace(job, checkpoints=(*job.checkpoints, late)) if (job.name, job.life) == ("orders", 2) else job
        for job in clean.jobs
    )
    return replace(holding(clean, "orders", {5: rows}), jobs=jobs)


def accepting(evidence: Evidence) -> Evidence:
    return replace(evidence, accepts=(LIMIT,))


def is_torn(evidence: Evidence) -> list[int]:
    return [position.snapshot_id for position in positions_of(Exhibits(evidence)) if position.torn]


@JUDGES
def test_a_torn_snapshot_is_invalid_unless_it_is_accepted(evidence: Evidence, oracle: str) -> None:
    result = judged(torn(evidence, only(evidence, 22)), oracle)

    assert Verdict.INVALID is result.verdict


@JUDGES
def test_a_torn_snapshot_that_is_accepted_leaves_the_run_valid(evidence: Evidence, oracle: str) -> None:
    result = judged(accepting(torn(evidence, only(evidence, 22))), oracle)

    assert Verdict.VALID is result.verdict
    assert all(check.held for check in result.checks)


def test_a_torn_snapshot_that_is_accepted_is_warned_of_with_what_completed_it(evidence: Evidence) -> None:
    result = judged(accepting(torn(evidence, only(evidence, 22))), "snapshot_prefix")
    warning = finding(result, "torn-late-commit")

    assert Severity.WARNING is warning.severity
    assert "orders, snapshot 5 (APPEND)" == warning.where
    assert warning.examples[0].startswith("snapshot 5, checkpoint 1005: completed by snapshot 6 ")
    assert "tolerable-failed-checkpoints" in warning.todo


def test_a_torn_snapshot_says_so_when_it_is_not_accepted(evidence: Evidence) -> None:
    result = judged(torn(evidence, only(evidence, 22)), "snapshot_prefix")

    assert {"torn-late-commit"} == codes(result)


@pytest.mark.parametrize("operations", [(22,), (23,), (22, 23), (20, 23)])
def test_any_part_of_what_was_changed_in_between_is_torn(
    evidence: Evidence, operations: tuple[int, ...]
) -> None:
    assert [5] == is_torn(torn(evidence, only(evidence, *operations)))


def test_a_late_commit_that_is_whole_is_an_ordinary_snapshot(evidence: Evidence) -> None:
    whole = torn(evidence, at_operation(evidence, "orders", 21))

    assert [] == is_torn(whole)
    assert Verdict.VALID is judged(whole, "snapshot_prefix").verdict


@JUDGES
def test_of_a_checkpoint_that_completed_nothing_passes(evidence: Evidence, oracle: str) -> None:
    whole = accepting(torn(evidence, only(evidence, 22), status="COMPLETED"))

    assert [] == is_torn(whole)
    assert Verdict.INVALID is judged(whole, oracle).verdict


STRANGE = order(13, cents=77_777, minute=9)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda rows: [row for row in rows if row["order_id"] != 6],
        lambda rows: [STRANGE if row["order_id"] == 13 else row for row in rows],
        lambda rows: [*rows, order(99)],
        lambda rows: [
            row | {"order_amount": Decimal("1.00")} if row["order_id"] == 12 else row for row in rows
        ],
        lambda rows: [row | {"dt": FIRST_DAY} if row["order_id"] == 13 else row for row in rows],
    ],
    ids=["a row is lost", "a value never was", "a row is foreign", "another row is stale", "it moved"],
)
@JUDGES
def test_what_the_source_did_not_have_in_between_does_not_pass_as_torn(
    evidence: Evidence, oracle: str, spoil: object
) -> None:
    rows: list[Row] = spoil(only(evidence, 22))  # type: ignore[operator]
    spoiled = accepting(torn(evidence, rows))

    assert [] == is_torn(spoiled)
    assert Verdict.INVALID is judged(spoiled, oracle).verdict


@pytest.mark.parametrize(
    "changes", [{"commit_user": "somebody-else"}, {"kind": "COMPACT"}, {"commit_identifier": 1007}]
)
def test_only_the_job_itself_commits_late_and_before_it_commits_the_next(
    evidence: Evidence, changes: dict[str, object]
) -> None:
    other = with_record(torn(evidence, only(evidence, 22)), "orders", 5, **changes)

    assert [] == is_torn(other)


def test_a_part_that_nothing_completes_is_not_torn(evidence: Evidence) -> None:
    rows = only(evidence, 22)
    late = tuple(
        replace(
            job,
            checkpoints=(
                *job.checkpoints,
                *(replace(factories.checkpoint(n, after_ms=95_000), status="FAILED") for n in (1005, 1006)),
            ),
        )
        for job in evidence.jobs
    )
    never = accepting(replace(holding(evidence, "orders", {5: rows, 6: rows}), jobs=late))

    assert [] == is_torn(never)
    assert Verdict.INVALID is judged(never, "snapshot_prefix").verdict


def compacted(clean: Evidence, rows: Rows, **changes: Any) -> Evidence:
    """A torn snapshot 4, its compaction 5, and both completed by snapshot 6; fence 2 was at snapshot 3."""
    late = replace(factories.checkpoint(1004, after_ms=95_000), status="FAILED")
    held = holding(clean, "orders", {3: at_operation(clean, "orders", 19), 4: rows, 5: rows})
    held = with_fence(held, "orders", 2, snapshot_id=3)
    held = with_record(held, "orders", 5, **{"kind": "COMPACT", "commit_identifier": 1004, **changes})
    whole = replace(history_of(held, "orders"), whole=(2, 5, 6))
    return replace(
        with_history(held, "orders", whole=whole.whole),
        jobs=tuple(replace(job, checkpoints=(*job.checkpoints, late)) for job in held.jobs),
    )


def test_a_compaction_of_a_torn_snapshot_that_changes_no_row_is_torn_too(evidence: Evidence) -> None:
    both = compacted(evidence, only(evidence, 22))

    assert [4, 5] == is_torn(both)
    assert Verdict.VALID is judged(accepting(both), "partition_atomicity").verdict


def test_a_compaction_of_a_torn_snapshot_that_changes_a_row_is_not(evidence: Evidence) -> None:
    both = compacted(evidence, only(evidence, 22))
    strange = corrected(both, "orders", 5, ("+I", order(99)))
    gone = corrected(strange, "orders", 6, ("-D", order(99)))

    assert [4] == is_torn(gone)
    assert Verdict.INVALID is judged(accepting(gone), "snapshot_prefix").verdict


@pytest.mark.parametrize("changes", [{"commit_user": "somebody-else"}, {"commit_identifier": 1005}])
def test_a_compaction_by_another_or_of_another_checkpoint_is_not_of_the_torn_snapshot(
    evidence: Evidence, changes: dict[str, object]
) -> None:
    assert [4] == is_torn(compacted(evidence, only(evidence, 22), **changes))
