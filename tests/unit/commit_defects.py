"""Defects for commit evidence: edits of manifest entries, of files in storage, and of snapshot records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from commit_folders import COMPACT, Row, entries_file, files_file, metadata, stored, with_commits
from evidence_folders import Edit, Rows, rewritten
from judging import judged

from harness.commits import BASE, UNREAD
from harness.model import Evidence, OracleResult, SnapshotRecord

ORDERS = "orders"


def with_compaction(evidence: Evidence) -> Evidence:
    """The run with commits. Each table has snapshots 1 to 6, of which 5 is a COMPACT.

    It lifts the file of snapshot 2 to another level, and rewrites those of snapshots 3 and 4.
    """
    return with_commits(changed(evidence, 5, kind=COMPACT, commit_identifier=1_004))


def changed(evidence: Evidence, number: int, table: str = "", **values: Any) -> Evidence:
    """The record of one snapshot says something else, in a table or in all."""
    return replace(
        evidence,
        snapshots=tuple(
            replace(record, **values)
            if record.snapshot_id == number and table in ("", record.table)
            else record
            for record in evidence.snapshots
        ),
    )


def all_changed(
    evidence: Evidence, table: str, change: Callable[[SnapshotRecord], dict[str, Any]]
) -> Evidence:
    """The records of a table's snapshots say something else."""
    return replace(
        evidence,
        snapshots=tuple(
            replace(record, **change(record)) if record.table == table else record
            for record in evidence.snapshots
        ),
    )


def with_log(evidence: Evidence, table: str, **values: Any) -> Evidence:
    """The commit log of a table is another."""
    return replace(
        evidence,
        commits=tuple(replace(log, **values) if log.table == table else log for log in evidence.commits),
    )


def logged(evidence: Evidence) -> OracleResult:
    """What the oracle says."""
    return judged(evidence, "commit_log")


def entries_edited(evidence: Evidence, edit: Edit, table: str = ORDERS) -> Evidence:
    """Manifests say something else; the files of what they say now are in storage, each as large as said."""
    said = rewritten(evidence, entries_file(table), edit)
    rewritten(evidence, files_file(table), lambda _: stored(said.to_pylist()))
    return evidence


def files_edited(evidence: Evidence, edit: Edit, table: str = ORDERS) -> Evidence:
    """Storage holds something else."""
    rewritten(evidence, files_file(table), edit)
    return evidence


def _is_at(row: Row, number: int, part: str, file: str) -> bool:
    return (row["snapshot_id"], row["list"], row["file"]) == (number, part, file)


def dropped(number: int, part: str, file: str) -> Edit:
    """An entry is not there."""
    return lambda rows: [row for row in rows if not _is_at(row, number, part, file)]


def inserted(*new: Row) -> Edit:
    """Entries are there beside the others."""
    return lambda rows: [*rows, *new]


def renamed(old: str, new: str, numbers: set[int]) -> Edit:
    """In these snapshots, a file has another name."""
    return lambda rows: [
        row | {"file": new} if row["file"] == old and row["snapshot_id"] in numbers else row for row in rows
    ]


def not_stored(*names: str) -> Edit:
    """Files are gone from storage."""
    return lambda rows: [row for row in rows if not row["path"].endswith(names)]


def only(*numbers: int) -> Edit:
    """Of other snapshots there is nothing."""
    return lambda rows: [row for row in rows if row["snapshot_id"] in numbers]


def expired_before(first: int) -> Edit:
    """The first snapshot's base is all that the deltas before it left, none of them compacted."""

    def edit(rows: Rows) -> Rows:
        kept = [row for row in rows if row["snapshot_id"] >= first]
        old = [row for row in rows if row["snapshot_id"] < first and row["list"] == BASE]
        return [*(row | {"snapshot_id": first} for row in old), *kept]

    return edit


def unread(number: int, path: str) -> Edit:
    """A file that a snapshot needs could not be read."""
    return inserted(metadata(number, path) | {"list": UNREAD})
