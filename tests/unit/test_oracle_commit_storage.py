"""The commit log's oracle on files in storage: what snapshots refer to is there, as large as they say."""

from __future__ import annotations

from dataclasses import replace

import pytest
from commit_defects import (
    ORDERS,
    entries_edited,
    expired_before,
    files_edited,
    inserted,
    logged,
    not_stored,
    with_compaction,
)
from commit_folders import metadata
from evidence_folders import Rows
from judging import codes, failed_checks, finding

from harness.model import Evidence, Verdict

TABLES = pytest.mark.parametrize("table", ["orders", "behavior-log"])


@pytest.fixture
def clean(evidence: Evidence) -> Evidence:
    return with_compaction(evidence)


@TABLES
@pytest.mark.parametrize(
    "file",
    [
        "bucket-0/data-old.orc",
        "bucket-0/data-3.orc",
        "bucket-0/data-5.orc",
        "manifest/manifest-list-4-0",
        "manifest/manifest-6",
        "snapshot/snapshot-1",
        "schema/schema-0",
    ],
)
def test_a_file_that_is_gone_is_invalid(clean: Evidence, table: str, file: str) -> None:
    result = logged(files_edited(clean, not_stored(file), table))

    assert Verdict.INVALID == result.verdict
    assert {"files-missing"} == codes(result)
    assert finding(result, "files-missing").examples[0].endswith(file)
    assert {f"{table}: every file that a snapshot refers to is in storage"} == failed_checks(result)


def test_a_changelog_file_that_is_gone_is_invalid(clean: Evidence) -> None:
    result = logged(files_edited(clean, not_stored("changelog-2.orc")))

    assert Verdict.INVALID == result.verdict
    assert {"files-missing"} == codes(result)


def test_a_data_file_in_another_bucket_is_not_where_it_should_be(clean: Evidence) -> None:
    def moved(rows: Rows) -> Rows:
        return [row | {"path": row["path"].replace("bucket-0/data-3", "bucket-1/data-3")} for row in rows]

    assert {"files-missing"} == codes(logged(files_edited(clean, moved)))


@pytest.mark.parametrize("file", ["bucket-0/data-3.orc", "bucket-0/changelog-2.orc", "manifest/manifest-6"])
@pytest.mark.parametrize("by", [-1, 1])
def test_a_file_of_another_size_is_invalid(clean: Evidence, file: str, by: int) -> None:
    def resized(rows: Rows) -> Rows:
        return [
            row | {"size_bytes": row["size_bytes"] + by} if row["path"].endswith(file) else row
            for row in rows
        ]

    result = logged(files_edited(clean, resized))

    assert Verdict.INVALID == result.verdict
    assert {"file-size-differs"} == codes(result)
    assert file in finding(result, "file-size-differs").examples[0]


def test_an_index_file_is_found_wherever_it_is(clean: Evidence) -> None:
    indexed = entries_edited(clean, inserted(metadata(6, "index-1", 7)))
    assert "files-missing" not in codes(logged(indexed))

    gone = files_edited(indexed, lambda rows: [row for row in rows if row["path"] != "index-1"])
    beside = {"path": "index/index-1", "size_bytes": 7}

    assert {"files-missing"} == codes(logged(gone))
    assert Verdict.VALID == logged(files_edited(gone, inserted(beside))).verdict


def test_a_file_that_an_expired_snapshot_took_along_is_not_needed(clean: Evidence) -> None:
    clean = entries_edited(clean, expired_before(5))
    clean = replace(
        clean,
        snapshots=tuple(r for r in clean.snapshots if r.snapshot_id >= 5 or r.table != ORDERS),
        fences=tuple(f for f in clean.fences if f.mark.number > 2),
    )

    result = logged(files_edited(clean, not_stored("data-3.orc", "data-4.orc")))

    assert Verdict.VALID == result.verdict


@pytest.mark.parametrize(
    "path", ["dt=2026-07-05/bucket-0/data-failed.orc", "manifest/manifest-failed", "index/index-failed"]
)
def test_a_file_of_nobody_is_counted_and_held_against_nobody(clean: Evidence, path: str) -> None:
    result = logged(files_edited(clean, inserted({"path": path, "size_bytes": 77})))

    assert Verdict.VALID == result.verdict
    (check,) = (c for c in result.checks if c.name.startswith("orders: files that no snapshot refers to"))
    assert "1 files, 77 bytes" == check.actual
