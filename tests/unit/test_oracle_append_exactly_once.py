"""The append oracle: no duplicate and no loss, each named with the snapshot that brought it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from evidence_folders import Edit, Row, history_of, rewritten, spoiled, with_fence, with_history
from factories import BEHAVIOR_LOG
from judging import added, changed, codes, failed_checks, finding, judged, without

from harness.model import Evidence, OracleResult, SnapshotGap, TableHistory, Verdict
from harness.replay import CORRECTION

LOG = "behavior-log"
COMMIT_USER = "5f1c8f8e-0000-4000-8000-000000000001"
FENCES = pytest.mark.parametrize("number", [1, 2, 3])


def appended(evidence: Evidence) -> OracleResult:
    return judged(evidence, "append_exactly_once")


def added_rows(evidence: Evidence, edit: Edit) -> None:
    """Plant a defect in what the snapshots' deltas and corrections say."""
    rewritten(evidence, history_of(evidence, LOG).changes, edit)


def again(key: str, snapshot: int, **values: str) -> Edit:
    """One more change, of the row `key` with other values."""

    def edit(rows: list[Row]) -> list[Row]:
        found = next(row for row in rows if row["log_id"] == key)
        return [*rows, found | {"snapshot_id": snapshot} | values]

    return edit


def never_added(*keys: str) -> Edit:
    return lambda rows: [row for row in rows if row["log_id"] not in keys]


@FENCES
def test_a_duplicate_is_invalid_and_named_with_every_snapshot_that_added_it(
    evidence: Evidence, number: int
) -> None:
    added_rows(evidence, again("log-09", 3))

    result = appended(spoiled(evidence, LOG, number, sink=added("log-09")))

    assert Verdict.INVALID == result.verdict
    duplicates = finding(result, "duplicates")
    assert f"behavior-log, fence {number}, snapshot {2 * number}" == duplicates.where
    assert (
        f"log_id log-09: added by snapshot 2 (APPEND, checkpoint 1002, commit user {COMMIT_USER}) and "
        f"snapshot 3 (APPEND, checkpoint 1003, commit user {COMMIT_USER})",
    ) == duplicates.examples


@FENCES
def test_a_loss_is_invalid_and_named_with_the_snapshots_of_its_neighbours(
    evidence: Evidence, number: int
) -> None:
    added_rows(evidence, never_added("log-06", "log-07"))

    result = appended(spoiled(evidence, LOG, number, sink=without("log-06", "log-07")))

    assert Verdict.INVALID == result.verdict
    losses = finding(result, "losses")
    assert f"behavior-log, fence {number}, snapshot {2 * number}" == losses.where
    assert 2 == len(losses.examples)
    assert losses.examples[0].startswith("log_id log-06: before it log_id log-05: added by snapshot 1 (")
    assert "after it log_id log-08: added by snapshot 2 (APPEND, checkpoint 1002" in losses.examples[0]


def test_a_row_that_was_added_and_is_gone_names_the_snapshot_that_added_it(evidence: Evidence) -> None:
    result = appended(spoiled(evidence, LOG, sink=without("log-09")))

    (example,) = finding(result, "losses").examples
    assert "log_id log-09: added by snapshot 2 (" in example
    assert example.endswith(", gone since")


def test_the_last_row_of_all_lost_has_no_neighbour_after_it(evidence: Evidence) -> None:
    added_rows(evidence, never_added("marker-3"))

    result = appended(spoiled(evidence, LOG, sink=without("marker-3")))

    assert finding(result, "losses").examples[0].endswith("; after it none")


def test_a_row_added_twice_is_invalid_although_the_sink_shows_it_once(evidence: Evidence) -> None:
    added_rows(evidence, again("log-09", 5))

    result = appended(evidence)

    assert Verdict.INVALID == result.verdict
    assert {"added-twice"} == codes(result)
    assert "snapshot 5" in finding(result, "added-twice").examples[0]
    assert {"behavior-log: each row was added once, over all snapshots"} == failed_checks(result)


def test_a_row_added_twice_by_one_snapshot_is_a_duplicate_too(evidence: Evidence) -> None:
    added_rows(evidence, again("log-09", 2))

    assert {"added-twice"} == codes(appended(evidence))


def test_a_duplicate_of_which_no_delta_knows_is_invalid(evidence: Evidence) -> None:
    result = appended(spoiled(evidence, LOG, sink=added("log-09")))

    assert Verdict.INVALID == result.verdict
    assert {"duplicates"} == codes(result)


def test_a_row_of_nobody_in_the_sink_is_invalid(evidence: Evidence) -> None:
    added_rows(evidence, again("log-09", 6, log_id="log-99"))

    result = appended(spoiled(evidence, LOG, sink=added("log-09", log_id="log-99")))

    assert Verdict.INVALID == result.verdict
    assert {"foreign-rows", "added-foreign"} == codes(result)
    assert "snapshot 6" in finding(result, "foreign-rows").examples[0]


def test_a_row_of_nobody_that_was_added_and_vanished_is_invalid(evidence: Evidence) -> None:
    added_rows(evidence, again("log-09", 3, log_id="log-99"))

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


def test_rows_that_come_by_deltas_alone_are_told_so(evidence: Evidence) -> None:
    (check,) = (item for item in appended(evidence).checks if "none goes" in item.name)

    assert ("0 rows", True) == (check.actual, check.held)


@pytest.mark.parametrize("rowkind", ["-D", "-U", "+U"])
def test_a_delta_of_an_append_only_table_that_does_more_than_add_is_invalid(
    evidence: Evidence, rowkind: str
) -> None:
    added_rows(evidence, again("log-09", 5, rowkind=rowkind))

    result = appended(evidence)

    assert Verdict.INVALID == result.verdict
    assert {"rows-without-delta"} == codes(result)
    assert (
        f"log_id log-09: {rowkind} in the delta of snapshot 5 (APPEND, checkpoint 1005"
        in (finding(result, "rows-without-delta").examples[0])
    )


@pytest.mark.parametrize(
    ("rowkind", "said"), [("+I", "there, though no delta added it, in"), ("-D", "gone from")]
)
@pytest.mark.parametrize("snapshot", [2, 6], ids=["the first whole read", "the last"])
def test_a_row_that_came_or_went_without_a_delta_is_invalid_although_every_fence_agrees(
    evidence: Evidence, snapshot: int, rowkind: str, said: str
) -> None:
    added_rows(evidence, again("log-01", snapshot, part=CORRECTION, rowkind=rowkind))

    result = appended(evidence)

    assert Verdict.INVALID == result.verdict
    assert {"rows-without-delta"} == codes(result)
    (example,) = finding(result, "rows-without-delta").examples
    assert example.startswith(f"log_id log-01: {said} snapshot {snapshot} (")


def test_a_row_of_a_whole_read_counts_as_added_by_no_snapshot(evidence: Evidence) -> None:
    added_rows(evidence, never_added("log-09"))
    added_rows(evidence, again("log-10", 2, log_id="log-09", part=CORRECTION))

    result = appended(evidence)

    assert Verdict.INVALID == result.verdict
    assert {"rows-without-delta", "never-added"} == codes(result)


def test_a_first_whole_read_is_no_witness_when_snapshots_before_it_are_expired(evidence: Evidence) -> None:
    added_rows(evidence, again("log-10", 2, part=CORRECTION))
    later = tuple(record for record in evidence.snapshots if record.snapshot_id > 1)

    assert Verdict.VALID == appended(replace(evidence, snapshots=later)).verdict


def test_a_whole_read_is_no_witness_when_a_snapshot_since_the_last_one_was_not_read(
    evidence: Evidence,
) -> None:
    added_rows(evidence, again("log-10", 6, part=CORRECTION))
    gap = SnapshotGap(snapshot_id=4, error="its delta could not be read")

    result = appended(with_history(evidence, LOG, gaps=(gap,)))

    assert Verdict.UNKNOWN == result.verdict
    assert {"additions-unread"} == codes(result)


def test_snapshots_that_were_not_read_are_unknown_and_named(evidence: Evidence) -> None:
    gaps = (SnapshotGap(snapshot_id=4, error="it is expired"),)

    result = appended(with_history(evidence, LOG, gaps=gaps))

    assert Verdict.UNKNOWN == result.verdict
    assert ("snapshot 4: it is expired",) == finding(result, "additions-unread").examples


def test_a_row_added_twice_is_invalid_even_where_other_snapshots_were_not_read(evidence: Evidence) -> None:
    added_rows(evidence, again("log-09", 5))
    gaps = (SnapshotGap(snapshot_id=4, error="it is expired"),)

    result = appended(with_history(evidence, LOG, gaps=gaps))

    assert Verdict.INVALID == result.verdict
    assert {"added-twice", "additions-unread"} == codes(result)


UNREAD = TableHistory(table=LOG, changelog_producer="", base_snapshot=2)


@pytest.mark.parametrize(
    "histories",
    [(), (replace(UNREAD, error="the snapshots can't be read"),), (UNREAD,)],
    ids=["none", "failed", "no rows kept"],
)
def test_additions_that_were_not_read_are_unknown_although_every_fence_agrees(
    evidence: Evidence, histories: tuple[TableHistory, ...]
) -> None:
    result = appended(replace(evidence, histories=histories))

    assert Verdict.UNKNOWN == result.verdict
    assert {"additions-unread"} == codes(result)
    assert finding(result, "additions-unread").actual


def test_a_duplicate_is_invalid_even_where_its_snapshots_are_not_known(evidence: Evidence) -> None:
    result = appended(replace(spoiled(evidence, LOG, sink=added("log-09")), histories=()))

    assert Verdict.INVALID == result.verdict
    assert {"duplicates", "additions-unread"} == codes(result)


def test_a_snapshot_without_a_record_is_named_by_its_number(evidence: Evidence) -> None:
    added_rows(evidence, again("log-09", 5))

    result = appended(replace(evidence, snapshots=()))

    assert "snapshot 5, which is not in the table's history" in finding(result, "added-twice").examples[0]


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
