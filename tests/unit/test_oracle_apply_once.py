"""The oracle of sums: an operation applied twice or not at all is seen at every snapshot, and named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from aggregate_folders import LOG_SUMS, aggregate, sums
from evidence_folders import Edit, cuts, rewritten, spoiled, with_fence
from factories import BEHAVIOR_LOG
from judging import changed, codes, failed_checks, finding, judged

from harness import oracles
from harness.model import Aggregate, Evidence, OracleResult, SnapshotGap, Verdict

LOG = BEHAVIOR_LOG.name
HELD = {1: 6, 2: 13, 3: 15, 4: 17, 5: 19, 6: 22}
"""How many operations each snapshot holds in the clean run; 2, 4 and 6 are at a fence, 1 is of the load."""


@pytest.fixture
def summed(evidence: Evidence) -> Evidence:
    """The clean run of a job that keeps sums: its commits are those of the log."""
    tables = tuple(replace(one, aggregate=LOG_SUMS if one.name == LOG else None) for one in evidence.tables)
    evidence = replace(evidence, tables=tables)
    fences = [fence for fence in evidence.fences if fence.mark.table == LOG]
    records = [replace(one, table=LOG_SUMS.name) for one in evidence.snapshots if one.table == LOG]
    assert HELD == cuts(fences)
    kept = aggregate(ledger(evidence), evidence.contract(LOG), records, HELD, Path(evidence.folder))
    return replace(evidence, aggregates=(kept,))


def ledger(evidence: Evidence) -> pa.Table:
    return pq.read_table(Path(evidence.folder) / BEHAVIOR_LOG.ledger_file)


def verdict_of(evidence: Evidence) -> OracleResult:
    return judged(evidence, "apply_once")


def holding(evidence: Evidence, *operations: Iterable[int], snapshot: int) -> None:
    """Plant a defect: a snapshot holds the sums of other operations than it should."""
    kept = ledger(evidence)
    numbers = [number - 1 for some in operations for number in some]
    held = sums(kept.take(pa.array(numbers, pa.int64())), LOG_SUMS, snapshot).to_pylist()
    spoil(evidence, lambda rows: [row for row in rows if row["snapshot_id"] != snapshot] + held)


def until(last: int) -> range:
    """The first operations."""
    return range(1, last + 1)


def spoil(evidence: Evidence, edit: Edit) -> None:
    """Plant a defect in the rows that snapshots hold."""
    rewritten(evidence, evidence.aggregates[0].rows, edit)


def kept(evidence: Evidence, change: Callable[[Aggregate], Aggregate]) -> Evidence:
    """The evidence with another record of what was kept."""
    return replace(evidence, aggregates=(change(evidence.aggregates[0]),))


def without_records(*numbers: int) -> Callable[[Aggregate], Aggregate]:
    """Some snapshots are not in the table."""
    return lambda one: replace(
        one, snapshots=tuple(record for record in one.snapshots if record.snapshot_id not in numbers)
    )


def test_sums_of_the_first_operations_are_valid_at_every_snapshot_since_the_first_fence(
    summed: Evidence,
) -> None:
    result = verdict_of(summed)

    assert Verdict.VALID == result.verdict
    assert len(HELD) - 1 == result.examined
    assert [] == list(result.findings)
    assert "5 snapshots (and 1 of the first load, which are not judged)" == result.checks[0].expected


def test_a_checkpoint_applied_again_by_the_next_one_is_invalid_and_named(summed: Evidence) -> None:
    for number in (4, 5, 6):
        holding(summed, until(HELD[number]), [14, 15], snapshot=number)

    result = verdict_of(summed)

    assert Verdict.INVALID == result.verdict
    assert {"applied-twice"} == codes(result)
    twice = finding(result, "applied-twice")
    assert "as if operations 14 to 15 had been applied twice; 3 snapshots are wrong" in twice.what
    assert "behavior-log, dwd.dwd_behavior_totals, snapshot 4 (APPEND, checkpoint 1004)" == twice.where
    assert "the sums of 19 operations, as it counts them" == twice.expected
    assert "2026-07-06, click: expected 11 with the sum 117; actual 11 with the sum 111" == twice.examples[0]


def test_rows_after_the_last_commit_applied_twice_are_named(summed: Evidence) -> None:
    holding(summed, until(19), [18], snapshot=5)

    result = verdict_of(summed)

    assert Verdict.INVALID == result.verdict
    assert "operations 18 to 18 had been applied twice" in finding(result, "applied-twice").what


def test_more_operations_than_the_source_committed_were_applied_twice(summed: Evidence) -> None:
    holding(summed, until(22), [9], snapshot=6)

    result = verdict_of(summed)

    assert Verdict.INVALID == result.verdict
    assert finding(result, "applied-twice").actual.endswith("; the source committed 22")


def test_operations_that_never_came_are_invalid_and_named(summed: Evidence) -> None:
    holding(summed, until(15), snapshot=4)
    holding(summed, until(15), [18, 19], snapshot=5)
    holding(summed, until(15), range(18, 23), snapshot=6)

    result = verdict_of(summed)

    assert Verdict.INVALID == result.verdict
    assert {"operations-lost", "not-at-fence"} == codes(result)
    lost = finding(result, "operations-lost")
    assert "as if operations 16 to 17 had been applied not at all; 2 snapshots are wrong" in lost.what
    assert "snapshot 5 (APPEND, checkpoint 1005)" in lost.where


def test_the_last_operations_lost_are_invalid_once_their_checkpoint_is_committed(summed: Evidence) -> None:
    holding(summed, until(19), snapshot=6)

    result = verdict_of(summed)

    assert Verdict.INVALID == result.verdict
    assert {"not-at-fence"} == codes(result)
    behind = finding(result, "not-at-fence")
    assert ("22 operations", "19 operations") == (behind.expected, behind.actual)
    assert "snapshot 6 (APPEND, checkpoint 1006)" in behind.where


def test_a_commit_that_was_not_seen_until_the_end_is_unknown(summed: Evidence) -> None:
    result = verdict_of(kept(summed, without_records(6)))

    assert Verdict.UNKNOWN == result.verdict
    assert {"commit-unseen"} == codes(result)


def test_an_operation_in_the_place_of_an_earlier_one_is_invalid(summed: Evidence) -> None:
    holding(summed, until(18), [20], snapshot=5)

    result = verdict_of(summed)

    assert Verdict.INVALID == result.verdict
    assert {"sums-differ"} == codes(result)


@pytest.mark.parametrize(
    "edit",
    [
        lambda rows: [row | {"users": row["users"] + (row["snapshot_id"] == 3)} for row in rows],
        lambda rows: [row for row in rows if (row["snapshot_id"], row["dt"]) != (3, "2026-07-05")],
        lambda rows: [*rows, rows[0] | {"snapshot_id": 3, "event_type": "foreign", "events": 0, "users": 0}],
        lambda rows: [*rows, *(row for row in rows if row["snapshot_id"] == 3)],
    ],
    ids=["another sum", "a group gone", "a group of nobody", "each group twice"],
)
def test_any_other_row_of_a_snapshot_is_invalid(summed: Evidence, edit: Edit) -> None:
    spoil(summed, edit)

    result = verdict_of(summed)

    assert Verdict.INVALID == result.verdict
    assert "behavior-log: each snapshot's sums are those of the operations until one" in failed_checks(result)


def test_a_snapshot_of_a_compaction_is_judged_like_any_other(summed: Evidence) -> None:
    compacted = kept(
        summed,
        lambda one: replace(
            one,
            snapshots=(
                *one.snapshots[:-1],
                replace(one.snapshots[-2], snapshot_id=6, kind="COMPACT"),
                replace(one.snapshots[-1], snapshot_id=7),
            ),
        ),
    )
    holding(compacted, until(22), snapshot=7)
    holding(compacted, until(19), snapshot=6)
    clean = verdict_of(compacted)
    holding(compacted, until(18), [18], snapshot=6)
    damaged = verdict_of(compacted)

    assert Verdict.VALID == clean.verdict
    assert Verdict.INVALID == damaged.verdict
    assert "snapshot 6 (COMPACT, checkpoint 1005)" in damaged.findings[0].where


def test_a_snapshot_with_fewer_operations_than_one_before_it_is_invalid(summed: Evidence) -> None:
    holding(summed, until(14), snapshot=5)

    result = verdict_of(summed)

    assert Verdict.INVALID == result.verdict
    assert {"went-back"} == codes(result)
    assert ("17 or more", "14") == (result.findings[0].expected, result.findings[0].actual)


def test_a_checkpoint_that_brought_more_than_the_log_has_at_a_fence_is_invalid(summed: Evidence) -> None:
    holding(summed, until(18), snapshot=4)

    result = verdict_of(summed)

    assert Verdict.INVALID == result.verdict
    assert {"not-at-fence"} == codes(result)


def test_sums_that_lag_behind_the_log_but_not_behind_its_checkpoint_are_valid(summed: Evidence) -> None:
    # The log was read at fence 2 in a later snapshot, of a checkpoint without rows: none is in the sums.
    later = tuple(
        replace(one, commit_identifier=2 * one.commit_identifier) if one.table == LOG else one
        for one in summed.snapshots
    )
    doubled = replace(
        kept(
            summed,
            lambda one: replace(
                one,
                snapshots=tuple(
                    replace(record, commit_identifier=2 * record.commit_identifier - 1)
                    for record in one.snapshots
                ),
            ),
        ),
        snapshots=later,
    )

    assert Verdict.VALID == verdict_of(doubled).verdict


def test_the_first_load_may_come_in_any_order(summed: Evidence) -> None:
    holding(summed, range(7, 13), snapshot=1)

    assert Verdict.VALID == verdict_of(summed).verdict


@pytest.mark.parametrize("operations", [[*until(13), 5], [*until(11), 13]], ids=["twice", "not at all"])
def test_an_operation_of_the_first_load_that_was_not_applied_once_is_seen_at_the_first_fence(
    summed: Evidence, operations: list[int]
) -> None:
    holding(summed, operations, snapshot=2)

    result = verdict_of(summed)

    assert Verdict.INVALID == result.verdict
    assert "snapshot 2 (" in result.findings[0].where


def test_snapshots_that_are_gone_or_could_not_be_read_are_unknown(summed: Evidence) -> None:
    gap = SnapshotGap(snapshot_id=3, error="a reader failed")

    for lacking in (
        kept(summed, without_records(3)),
        kept(summed, without_records(1)),
        kept(summed, without_records(1, 2, 3)),
        kept(summed, lambda one: replace(one, gaps=(gap,))),
    ):
        result = verdict_of(lacking)
        assert Verdict.UNKNOWN == result.verdict
        assert {"snapshots-unseen"} == codes(result)


def test_a_snapshot_whose_files_are_gone_is_invalid(summed: Evidence) -> None:
    gap = SnapshotGap(snapshot_id=3, error="NoSuchKey", files_missing=True)

    result = verdict_of(kept(summed, lambda one: replace(one, gaps=(gap,))))

    assert Verdict.INVALID == result.verdict
    assert {"sink-files-missing"} == codes(result)


def test_a_fence_whose_snapshot_of_sums_is_not_known_is_not_held_against_the_job(summed: Evidence) -> None:
    gap = SnapshotGap(snapshot_id=4, error="a reader failed")

    result = verdict_of(kept(summed, lambda one: replace(one, gaps=(gap,))))

    assert {"snapshots-unseen"} == codes(result)
    assert "behavior-log, fence 2" not in " ".join(check.name for check in result.checks)


@pytest.mark.parametrize(
    "aggregates",
    [(), (Aggregate(table=LOG, error="no such table"),), (Aggregate(table=LOG),)],
    ids=["none", "failed", "no rows kept"],
)
def test_sums_that_were_not_read_are_unknown(summed: Evidence, aggregates: tuple[Aggregate, ...]) -> None:
    result = verdict_of(replace(summed, aggregates=aggregates))

    assert Verdict.UNKNOWN == result.verdict
    assert {"sums-unread"} == codes(result)
    assert finding(result, "sums-unread").actual


def test_a_table_of_sums_without_a_snapshot_is_unknown(summed: Evidence) -> None:
    result = verdict_of(kept(summed, without_records(*HELD)))

    assert (Verdict.UNKNOWN, 0) == (result.verdict, result.examined)


def test_a_table_of_sums_without_a_row_is_never_valid(summed: Evidence) -> None:
    spoil(summed, lambda rows: [])

    assert Verdict.INVALID == verdict_of(summed).verdict


def test_a_log_that_was_not_read_at_a_fence_is_unknown(summed: Evidence) -> None:
    fences = tuple(at for at in summed.fences if (at.mark.table, at.mark.number) != (LOG, 2))

    result = verdict_of(replace(summed, fences=fences))

    assert Verdict.UNKNOWN == result.verdict
    assert {"fence-unread"} == codes(result)


def test_a_fence_of_which_no_commit_is_known_is_unknown(summed: Evidence) -> None:
    unrecorded = replace(summed, snapshots=tuple(one for one in summed.snapshots if one.table != LOG))
    unseen = with_fence(summed, LOG, 2, visible=False)

    for evidence in (unrecorded, unseen):
        result = verdict_of(evidence)
        assert Verdict.UNKNOWN == result.verdict
        assert {"fence-uncommitted"} == codes(result)


def test_a_ledger_that_is_not_the_source_judges_no_sums(summed: Evidence) -> None:
    result = verdict_of(spoiled(summed, LOG, 2, source=changed("log-09", user_id=8)))

    assert (Verdict.UNKNOWN, 0) == (result.verdict, result.examined)
    assert {"ledger-is-not-source"} == codes(result)


def test_a_source_that_did_more_than_insert_can_not_be_counted(summed: Evidence) -> None:
    rewritten(
        summed,
        BEHAVIOR_LOG.ledger_file,
        lambda rows: [row | {"kind": "update"} if row["operation"] == 20 else row for row in rows],
    )

    result = verdict_of(summed)

    assert Verdict.UNKNOWN == result.verdict
    assert "not-insert-only" in codes(result)


def test_a_run_whose_jobs_keep_no_sums_is_not_asked_for_them(summed: Evidence) -> None:
    tables = tuple(replace(table, aggregate=None) for table in summed.tables)

    results = oracles.judge(replace(summed, tables=tables), ["apply_once"])

    assert ["completeness"] == [result.oracle for result in results]
