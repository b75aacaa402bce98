"""The commit log's oracle: every rule fails where it must, and clean commits pass, real ones too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from commit_defects import (
    ORDERS,
    changed,
    dropped,
    entries_edited,
    expired_before,
    files_edited,
    inserted,
    logged,
    not_stored,
    only,
    renamed,
    unread,
    with_compaction,
    with_log,
)
from commit_folders import entries_file, entry, files_file, with_commits
from evidence_folders import Rows
from judging import codes, finding
from sink_warehouse import INSIDE, LOG, SinkWarehouse

from harness.commits import ADD, BASE, CHANGELOG, DELETE, DELTA, ENTRY_SCHEMA, METADATA
from harness.model import Evidence, Verdict
from harness.paimon.commit_log import read_commits
from harness.paimon.stored_files import FolderFiles

TABLES = pytest.mark.parametrize("table", ["orders", "behavior-log"])
LIFTED = "data-2.orc"
"""The file that the COMPACT snapshot 5 lifts to another level; it rewrites those of snapshots 3 and 4."""


@pytest.fixture
def clean(evidence: Evidence) -> Evidence:
    return with_compaction(evidence)


def test_commits_that_hold_together_are_valid(clean: Evidence) -> None:
    result = logged(clean)

    assert Verdict.VALID == result.verdict
    assert () == result.findings
    assert 12 == result.examined
    assert 24 == len(result.checks)


def test_commits_without_any_compaction_are_valid(evidence: Evidence) -> None:
    assert Verdict.VALID == logged(with_commits(evidence)).verdict


def test_commits_of_which_the_first_have_expired_are_valid(clean: Evidence) -> None:
    clean = entries_edited(clean, expired_before(3))
    clean = replace(
        clean,
        snapshots=tuple(r for r in clean.snapshots if r.snapshot_id >= 3 or r.table != ORDERS),
        fences=tuple(f for f in clean.fences if f.mark.number > 1),
    )

    assert Verdict.VALID == logged(clean).verdict


def test_commits_of_a_real_table_hold_together_but_for_their_writer(clean: Evidence, tmp_path: Path) -> None:
    sink = SinkWarehouse(tmp_path / "warehouse")
    for key in range(1, 7):
        sink.insert((f"l-{key}", key, INSIDE, "2026-07-06"))
    entries, files = read_commits(FolderFiles(sink.folder / "dwd.db" / "dwd_behavior_log"))
    pq.write_table(entries, tmp_path / entries_file(LOG.name))
    pq.write_table(files, tmp_path / files_file(LOG.name))
    records = sink.reader().snapshots(LOG)
    orders = [record for record in clean.snapshots if record.table == ORDERS]

    written = logged(replace(clean, snapshots=(*orders, *records)))
    user = {"commit_user": "u"}
    streamed = [replace(r, **user, commit_identifier=r.snapshot_id) for r in records]
    as_streamed = logged(replace(clean, snapshots=(*orders, *streamed)))

    assert Verdict.INVALID == written.verdict
    assert {"foreign-commit"} == codes(written)
    assert Verdict.VALID == as_streamed.verdict
    assert 12 == as_streamed.examined


@TABLES
def test_a_table_without_a_commit_log_is_unknown(clean: Evidence, table: str) -> None:
    result = logged(replace(clean, commits=tuple(log for log in clean.commits if log.table != table)))

    assert Verdict.UNKNOWN == result.verdict
    assert {"commits-unread"} == codes(result)


@pytest.mark.parametrize("missing", [{"error": "no answer"}, {"entries": ""}, {"files": ""}])
def test_a_commit_log_that_was_not_read_is_unknown(clean: Evidence, missing: dict[str, str]) -> None:
    result = logged(with_log(clean, ORDERS, **missing))

    assert Verdict.UNKNOWN == result.verdict
    assert {"commits-unread"} == codes(result)


def test_a_table_without_snapshots_is_unknown(clean: Evidence) -> None:
    clean = replace(clean, snapshots=tuple(r for r in clean.snapshots if r.table != ORDERS))

    result = logged(files_edited(entries_edited(clean, lambda _: []), lambda _: []))

    assert Verdict.UNKNOWN == result.verdict
    assert "no-commits" in codes(result)


def test_no_list_of_files_is_unknown(clean: Evidence) -> None:
    result = logged(files_edited(clean, lambda _: []))

    assert Verdict.UNKNOWN == result.verdict
    assert {"files-unlisted"} == codes(result)


@pytest.mark.parametrize("number", [2, 3, 6])
def test_a_snapshot_between_the_fences_that_only_the_manifests_know_is_unknown(
    clean: Evidence, number: int
) -> None:
    gone = [r for r in clean.snapshots if (r.table, r.snapshot_id) != (ORDERS, number)]

    result = logged(replace(clean, snapshots=tuple(gone)))

    assert Verdict.UNKNOWN == result.verdict
    assert (f"snapshot {number}: not in the list of snapshots",) == finding(
        result, "commits-incomplete"
    ).examples


def test_a_fence_whose_snapshot_had_expired_is_unknown(clean: Evidence) -> None:
    result = logged(entries_edited(clean, expired_before(3)))

    assert Verdict.UNKNOWN == result.verdict
    assert ("snapshot 2: not in the manifests",) == finding(result, "commits-incomplete").examples


def test_a_manifest_that_is_there_and_could_not_be_read_is_unknown(clean: Evidence) -> None:
    result = logged(entries_edited(clean, unread(3, "manifest/manifest-3")))

    assert Verdict.UNKNOWN == result.verdict
    assert {"manifests-unread"} == codes(result)


def test_a_manifest_that_could_not_be_read_because_it_is_gone_is_invalid(clean: Evidence) -> None:
    without_it = entries_edited(clean, unread(3, "manifest/manifest-3"))

    result = logged(files_edited(without_it, not_stored("manifest/manifest-3")))

    assert Verdict.INVALID == result.verdict
    assert {"files-missing", "manifests-unread"} == codes(result)


def test_a_snapshot_that_is_gone_from_between_is_invalid(clean: Evidence) -> None:
    result = logged(entries_edited(clean, only(1, 2, 4, 5, 6)))

    assert Verdict.INVALID == result.verdict
    assert ("snapshot 3",) == finding(result, "snapshot-gone").examples


def test_a_fence_whose_snapshot_was_rolled_back_is_invalid(clean: Evidence) -> None:
    result = logged(entries_edited(clean, only(1, 2, 3, 4)))

    assert Verdict.INVALID == result.verdict
    assert {"snapshot-gone"} == codes(result)
    assert ("snapshot 5", "snapshot 6") == finding(result, "snapshot-gone").examples


@TABLES
@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_commit_that_the_next_one_does_not_stand_on_is_lost(
    clean: Evidence, table: str, number: int
) -> None:
    """As when two writers both commit on top of the same snapshot."""
    file = f"data-{number}.orc"
    lost = entries_edited(clean, dropped(number + 1, BASE, file), table)

    result = logged(lost)

    assert Verdict.INVALID == result.verdict
    assert "base-differs" in codes(result)
    assert (f"snapshot {number + 1}: {file}, -1",) == finding(result, "base-differs").examples


def test_a_base_with_a_file_of_nobody_is_invalid(clean: Evidence) -> None:
    result = logged(entries_edited(clean, inserted(entry(4, BASE, "data-nobody.orc"))))

    assert Verdict.INVALID == result.verdict
    assert ("snapshot 4: data-nobody.orc, +1",) == finding(result, "base-differs").examples


def test_a_base_that_forgets_that_a_file_was_deleted_is_invalid(clean: Evidence) -> None:
    result = logged(entries_edited(clean, dropped(6, BASE, "data-3.orc")))

    assert Verdict.INVALID == result.verdict
    assert ("snapshot 6: data-3.orc, +1",) == finding(result, "base-differs").examples


def test_a_base_that_has_a_file_with_other_rows_is_invalid(clean: Evidence) -> None:
    def edit(rows: Rows) -> Rows:
        return [
            row | {"rows": 13}
            if (row["snapshot_id"], row["list"], row["file"]) == (3, BASE, "data-2.orc")
            else row
            for row in rows
        ]

    result = logged(entries_edited(clean, edit))

    assert {"snapshot 3: data-2.orc, +1", "snapshot 3: data-2.orc, -1"} == set(
        finding(result, "base-differs").examples
    )


def test_a_file_deleted_from_a_table_that_does_not_hold_it_is_invalid(clean: Evidence) -> None:
    result = logged(entries_edited(clean, inserted(entry(6, DELTA, "data-nobody.orc", kind=DELETE, rows=0))))

    assert Verdict.INVALID == result.verdict
    assert {"file-lives-differ"} == codes(result)
    assert ("snapshot 6: data-nobody.orc, -1 times",) == finding(result, "file-lives-differ").examples


def test_a_file_deleted_twice_is_invalid(clean: Evidence) -> None:
    result = logged(entries_edited(clean, inserted(entry(6, DELTA, "data-3.orc", kind=DELETE))))

    assert {"file-lives-differ", "row-counts-differ"} == codes(result)
    assert Verdict.INVALID == result.verdict


def test_a_first_base_that_deletes_what_it_does_not_hold_is_invalid(clean: Evidence) -> None:
    result = logged(entries_edited(clean, inserted(entry(1, BASE, "data-nobody.orc", kind=DELETE, rows=0))))

    assert Verdict.INVALID == result.verdict
    assert "file-lives-differ" in codes(result)


@TABLES
def test_a_file_that_two_commits_add_is_invalid(clean: Evidence, table: str) -> None:
    twice = entries_edited(clean, renamed("data-6.orc", "data-2.orc", {6}), table)

    result = logged(twice)

    assert Verdict.INVALID == result.verdict
    assert {"file-added-again"} == codes(result)
    assert ("snapshot 6: data-2.orc, first added by snapshot 2",) == finding(
        result, "file-added-again"
    ).examples


def test_a_file_that_is_added_again_after_it_was_compacted_is_invalid(clean: Evidence) -> None:
    """As when a checkpoint is committed once more after a restart: its files are gone from the table."""
    result = logged(entries_edited(clean, renamed("data-6.orc", "data-3.orc", {6})))

    assert Verdict.INVALID == result.verdict
    assert {"file-added-again"} == codes(result)


def test_a_file_that_was_there_before_the_first_snapshot_and_is_added_again_is_invalid(
    clean: Evidence,
) -> None:
    result = logged(entries_edited(clean, renamed("data-6.orc", "data-old.orc", {6})))

    assert Verdict.INVALID == result.verdict
    assert "file-added-again" in codes(result)


def test_a_file_that_one_commit_adds_twice_is_invalid(clean: Evidence) -> None:
    result = logged(entries_edited(clean, inserted(entry(6, DELTA, "data-6.orc"))))

    assert Verdict.INVALID == result.verdict
    assert {"file-added-again", "file-lives-differ", "row-counts-differ"} == codes(result)


def test_a_changelog_file_that_two_commits_add_is_invalid(clean: Evidence) -> None:
    result = logged(entries_edited(clean, renamed("changelog-6.orc", "changelog-2.orc", {6})))

    assert Verdict.INVALID == result.verdict
    assert "file-added-again" in codes(result)


def test_a_compaction_that_adds_a_file_again_without_deleting_it_is_invalid(clean: Evidence) -> None:
    result = logged(entries_edited(clean, inserted(entry(5, DELTA, LIFTED, level=2))))

    assert Verdict.INVALID == result.verdict
    assert "file-added-again" in codes(result)


def test_an_append_may_not_lift_files(clean: Evidence) -> None:
    result = logged(changed(clean, 5, ORDERS, kind="APPEND", commit_identifier=1_005))

    assert Verdict.INVALID == result.verdict
    assert {"file-added-again"} == codes(result)


@TABLES
@pytest.mark.parametrize("count", ["total_records", "delta_records", "changelog_records"])
def test_a_snapshot_that_counts_other_rows_than_its_files_hold_is_invalid(
    clean: Evidence, table: str, count: str
) -> None:
    record = next(r for r in clean.snapshots if (r.table, r.snapshot_id) == (table, 4))

    result = logged(changed(clean, 4, table, **{count: getattr(record, count) + 1}))

    assert Verdict.INVALID == result.verdict
    assert {"row-counts-differ"} == codes(result)
    assert 1 == len(finding(result, "row-counts-differ").examples)


def test_a_compaction_that_loses_rows_by_its_own_count_is_seen_in_the_sums(clean: Evidence) -> None:
    def fewer(rows: Rows) -> Rows:
        return [row | {"rows": row["rows"] - 1} if row["file"] == "data-5.orc" else row for row in rows]

    result = logged(entries_edited(clean, fewer))

    assert Verdict.INVALID == result.verdict
    assert {"row-counts-differ"} == codes(result)


def test_the_tables_of_the_fixture_are_what_the_tests_speak_of(clean: Evidence) -> None:
    entries = pq.read_table(Path(clean.folder) / entries_file(ORDERS))

    assert ENTRY_SCHEMA == entries.schema
    assert {BASE, DELTA, CHANGELOG, METADATA} == set(entries["list"].to_pylist())
    assert {ADD, DELETE} == set(entries["kind"].to_pylist())
