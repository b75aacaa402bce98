"""The append oracle: no duplicate and no loss, each named with the snapshot that brought it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evidence_folders import Edit, rewritten, spoiled, with_fence
from factories import BEHAVIOR_LOG
from judging import added, changed, codes, failed_checks, finding, judged, without

from harness.model import Additions, Evidence, OracleResult, Verdict

LOG = "behavior-log"
COMMIT_USER = "5f1c8f8e-0000-4000-8000-000000000001"
FENCES = pytest.mark.parametrize("number", [1, 2, 3])


def appended(evidence: Evidence) -> OracleResult:
    return judged(evidence, "append_exactly_once")


def added_rows(evidence: Evidence, edit: Edit) -> None:
    """Plant a defect in what the deltas of the snapshots say; their rows are snapshot_id and log_id."""
    rewritten(evidence, evidence.additions[0].rows, edit)


def added_by(key: str, snapshot: int) -> Edit:
    return lambda rows: [*rows, {"snapshot_id": snapshot, "log_id": key}]


def never_added(*keys: str) -> Edit:
    return lambda rows: [row for row in rows if row["log_id"] not in keys]


@FENCES
def test_a_duplicate_is_invalid_and_named_with_every_snapshot_that_added_it(
    evidence: Evidence, number: int
) -> None:
    added_rows(evidence, added_by("log-09", 15))

    result = appended(spoiled(evidence, LOG, number, sink=added("log-09")))

    assert Verdict.INVALID == result.verdict
    duplicates = finding(result, "duplicates")
    assert f"behavior-log, fence {number}, snapshot {10 * number}" == duplicates.where
    assert (
        f"log_id log-09: added by snapshot 10 (checkpoint 1010, commit user {COMMIT_USER}) and "
        f"snapshot 15 (checkpoint 1015, commit user {COMMIT_USER})",
    ) == duplicates.examples


@FENCES
def test_a_loss_is_invalid_and_named_with_the_snapshots_of_its_neighbours(
    evidence: Evidence, number: int
) -> None:
    added_rows(evidence, never_added("log-06", "log-07"))

    result = appended(spoiled(evidence, LOG, number, sink=without("log-06", "log-07")))

    assert Verdict.INVALID == result.verdict
    losses = finding(result, "losses")
    assert f"behavior-log, fence {number}, snapshot {10 * number}" == losses.where
    assert 2 == len(losses.examples)
    assert losses.examples[0].startswith("log_id log-06: before it log_id log-05: added by snapshot 5 (")
    assert "after it log_id log-08: added by snapshot 10 (checkpoint 1010" in losses.examples[0]


def test_a_row_that_was_added_and_is_gone_names_the_snapshot_that_added_it(evidence: Evidence) -> None:
    result = appended(spoiled(evidence, LOG, sink=without("log-09")))

    (example,) = finding(result, "losses").examples
    assert "log_id log-09: added by snapshot 10 (" in example
    assert example.endswith(", gone since")


def test_the_last_row_of_all_lost_has_no_neighbour_after_it(evidence: Evidence) -> None:
    added_rows(evidence, never_added("marker-3"))

    result = appended(spoiled(evidence, LOG, sink=without("marker-3")))

    assert finding(result, "losses").examples[0].endswith("; after it none")


def test_a_row_added_twice_is_invalid_although_the_sink_shows_it_once(evidence: Evidence) -> None:
    added_rows(evidence, added_by("log-09", 25))

    result = appended(evidence)

    assert Verdict.INVALID == result.verdict
    assert {"added-twice"} == codes(result)
    assert "snapshot 25" in finding(result, "added-twice").examples[0]
    assert {"behavior-log: each row was added once, over all snapshots"} == failed_checks(result)


def test_a_row_added_twice_by_one_snapshot_is_a_duplicate_too(evidence: Evidence) -> None:
    added_rows(evidence, added_by("log-09", 10))

    assert {"added-twice"} == codes(appended(evidence))


def test_a_duplicate_of_which_no_delta_knows_is_invalid(evidence: Evidence) -> None:
    result = appended(spoiled(evidence, LOG, sink=added("log-09")))

    assert Verdict.INVALID == result.verdict
    assert {"duplicates"} == codes(result)


def test_a_row_of_nobody_in_the_sink_is_invalid(evidence: Evidence) -> None:
    added_rows(evidence, added_by("log-99", 30))

    result = appended(spoiled(evidence, LOG, sink=added("log-09", log_id="log-99")))

    assert Verdict.INVALID == result.verdict
    assert {"foreign-rows", "added-foreign"} == codes(result)
    assert "snapshot 30" in finding(result, "foreign-rows").examples[0]


def test_a_row_of_nobody_that_was_added_and_vanished_is_invalid(evidence: Evidence) -> None:
    added_rows(evidence, added_by("log-99", 15))

    result = appended(evidence)

    assert Verdict.INVALID == result.verdict
    assert {"added-foreign"} == codes(result)


def test_a_row_with_other_values_is_invalid(evidence: Evidence) -> None:
    result = appended(spoiled(evidence, LOG, sink=changed("log-09", user_id=8)))

    assert Verdict.INVALID == result.verdict
    assert {"rows-differ"} == codes(result)


def test_a_row_of_the_sink_that_no_delta_brought_is_unknown(evidence: Evidence) -> None:
    added_rows(evidence, never_added("log-09"))

    result = appended(evidence)

    assert Verdict.UNKNOWN == result.verdict
    assert {"never-added"} == codes(result)


def test_rows_after_the_last_fence_may_have_been_added_or_not(evidence: Evidence) -> None:
    cut = tuple(at for at in evidence.fences if at.mark.number < 3)
    added_rows(evidence, never_added("log-19", "marker-3"))

    result = appended(replace(evidence, fences=cut, expected_fences=2))

    assert Verdict.VALID == result.verdict


@pytest.mark.parametrize(
    "additions",
    [(), (Additions(table=LOG, error="a delta can't be read"),), (Additions(table=LOG),)],
    ids=["none", "failed", "no rows kept"],
)
def test_additions_that_were_not_read_are_unknown_although_every_fence_agrees(
    evidence: Evidence, additions: tuple[Additions, ...]
) -> None:
    result = appended(replace(evidence, additions=additions))

    assert Verdict.UNKNOWN == result.verdict
    assert {"additions-unread"} == codes(result)
    assert finding(result, "additions-unread").actual


def test_a_duplicate_is_invalid_even_where_its_snapshots_are_not_known(evidence: Evidence) -> None:
    result = appended(replace(spoiled(evidence, LOG, sink=added("log-09")), additions=()))

    assert Verdict.INVALID == result.verdict
    assert {"duplicates", "additions-unread"} == codes(result)


def test_a_snapshot_without_a_record_is_named_by_its_number(evidence: Evidence) -> None:
    added_rows(evidence, added_by("log-09", 25))

    result = appended(replace(evidence, snapshots=()))

    assert "snapshot 25, which is not in the table's history" in finding(result, "added-twice").examples[0]


@FENCES
def test_rows_that_were_not_read_are_unknown(evidence: Evidence, number: int) -> None:
    result = appended(with_fence(evidence, LOG, number, sink_rows=""))

    assert Verdict.UNKNOWN == result.verdict
    assert {"rows-unread"} == codes(result)


def test_a_log_that_was_not_read_at_a_fence_is_unknown(evidence: Evidence) -> None:
    fences = tuple(at for at in evidence.fences if (at.mark.table, at.mark.number) != (LOG, 2))

    result = appended(replace(evidence, fences=fences))

    assert Verdict.UNKNOWN == result.verdict
    assert {"fence-unread"} == codes(result)


@pytest.mark.parametrize(
    "change",
    [{"kind": "update"}, {"kind": "delete"}, {"log_id": "log-01"}],
    ids=["an update", "a delete", "a key again"],
)
def test_a_source_that_did_more_than_insert_can_not_be_counted(
    evidence: Evidence, change: dict[str, str]
) -> None:
    path = Path(evidence.folder) / BEHAVIOR_LOG.ledger_file
    ledger = pq.read_table(path)
    rows = [row | change if row["operation"] == 20 else row for row in ledger.to_pylist()]
    pq.write_table(pa.Table.from_pylist(rows, schema=ledger.schema), path)

    result = appended(evidence)

    assert Verdict.UNKNOWN == result.verdict
    assert {"not-insert-only"} == codes(result)
