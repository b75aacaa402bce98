"""Defects of the commits: who committed what, how often and in which order, and which files are there."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from harness.commits import ADD, DELTA
from harness.defects.defect import Defect, invalid, unknown
from harness.defects.files import read, write
from harness.defects.parts import any_of, history_of, one, put, some, without
from harness.errors import NoPlace
from harness.model import CommitLog, Evidence, SnapshotGap, SnapshotRecord


def data_file_gone(evidence: Evidence, rng: random.Random) -> Evidence:
    """A data file that the newest snapshots refer to is gone from storage."""
    log = _log(evidence)
    history = history_of(evidence, log.table)
    entries, files = read(evidence, log.entries), read(evidence, log.files)
    deleted = set(entries.filter(pc.equal(entries["kind"], "DELETE"))["file"].to_pylist())
    added = entries.filter(pc.and_(pc.equal(entries["list"], DELTA), pc.equal(entries["kind"], ADD)))
    alive = sorted(
        (row["file"], row["snapshot_id"])
        for row in added.select(["file", "snapshot_id"]).to_pylist()
        if row["file"] not in deleted and row["snapshot_id"] > history.base_snapshot
    )
    if not alive:
        raise NoPlace(f"no snapshot of {log.table} added a file that is still in use")
    name, since = rng.choice(alive)
    write(evidence, log.files, files.filter(pc.invert(pc.ends_with(files["path"], f"/{name}"))))
    gaps = tuple(
        SnapshotGap(
            snapshot_id=number, error=f"it could not be read whole: {name} is gone", files_missing=True
        )
        for number in history.whole
        if number >= since
    )
    whole = tuple(number for number in history.whole if number < since)
    return replace(
        evidence, histories=put(evidence.histories, history, gaps=(*history.gaps, *gaps), whole=whole)
    )


def file_added_by_two_commits(evidence: Evidence, rng: random.Random) -> Evidence:
    """A file was added by two commits: its rows were committed twice."""
    log = _log(evidence)
    entries = read(evidence, log.entries)
    appends = {
        record.snapshot_id
        for record in evidence.snapshots
        if record.table == log.table and record.kind == "APPEND"
    }
    added = entries.filter(pc.and_(pc.equal(entries["list"], DELTA), pc.equal(entries["kind"], ADD)))
    of_appends = [row for row in added.to_pylist() if row["snapshot_id"] in appends]
    numbers = sorted({row["snapshot_id"] for row in of_appends})
    if len(numbers) < 2:
        raise NoPlace(f"fewer than two snapshots of {log.table} added files")
    again = rng.choice(numbers[1:])
    earlier = [row for row in of_appends if row["snapshot_id"] == numbers[numbers.index(again) - 1]]
    row = rng.choice(earlier) | {"snapshot_id": again}
    write(
        evidence,
        log.entries,
        pa.concat_tables([entries, pa.Table.from_pylist([row], schema=entries.schema)]),
    )
    return evidence


def checkpoint_committed_twice(evidence: Evidence, rng: random.Random) -> Evidence:
    """Two snapshots are the same commit: the same user, checkpoint and kind."""
    record, earlier = _two_appends(evidence, rng)
    return replace(
        evidence,
        snapshots=put(
            evidence.snapshots,
            record,
            commit_identifier=earlier.commit_identifier,
            commit_user=earlier.commit_user,
        ),
    )


def checkpoint_committed_late(evidence: Evidence, rng: random.Random) -> Evidence:
    """A checkpoint was committed after the one that followed it."""
    record, earlier = _two_appends(evidence, rng)
    snapshots = put(evidence.snapshots, record, commit_identifier=earlier.commit_identifier)
    return replace(evidence, snapshots=put(snapshots, earlier, commit_identifier=record.commit_identifier))


def foreign_job_commits(evidence: Evidence, rng: random.Random) -> Evidence:
    """A second job writes into the table."""
    record, _ = _two_appends(evidence, rng)
    return replace(
        evidence,
        snapshots=put(
            evidence.snapshots,
            record,
            commit_user="0badc0de-0000-4000-8000-000000000000",
            commit_identifier=1,
        ),
    )


def commits_unread(evidence: Evidence, rng: random.Random) -> Evidence:
    """What the manifests say was not read."""
    log = _log(evidence)
    return replace(
        evidence, commits=put(evidence.commits, log, entries="", files="", error="the storage did not answer")
    )


def commits_of_a_table_missing(evidence: Evidence, rng: random.Random) -> Evidence:
    """The evidence of a table's commits is missing."""
    return replace(evidence, commits=without(evidence.commits, _log(evidence)))


def _log(evidence: Evidence) -> CommitLog:
    name = some(evidence).name
    found = [log for log in evidence.commits if log.table == name and log.entries and log.files]
    return one(found, f"commits of {name}")


def _two_appends(evidence: Evidence, rng: random.Random) -> tuple[SnapshotRecord, SnapshotRecord]:
    """An APPEND snapshot after the first fence, and the one before it by the same user."""
    history = history_of(evidence, some(evidence).name)
    appends = [
        record for record in evidence.snapshots if record.table == history.table and record.kind == "APPEND"
    ]
    pairs = [
        (later, earlier)
        for earlier, later in pairwise(appends)
        if earlier.snapshot_id >= history.base_snapshot
        and earlier.commit_user == later.commit_user
        and earlier.commit_identifier < later.commit_identifier
    ]
    record = any_of([later for later, _ in pairs], rng, f"two APPEND snapshots of {history.table}")
    return next(pair for pair in pairs if pair[0] is record)


DEFECTS: tuple[Defect, ...] = (
    invalid(data_file_gone, "commit_log", "snapshot_prefix"),
    invalid(file_added_by_two_commits, "commit_log"),
    invalid(checkpoint_committed_twice, "commit_log"),
    invalid(checkpoint_committed_late, "commit_log"),
    invalid(foreign_job_commits, "commit_log"),
    unknown(commits_unread, "commit_log"),
    unknown(commits_of_a_table_missing, "commit_log"),
)
