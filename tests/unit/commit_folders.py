"""Clean commit evidence for a run: manifest entries and files that fit its snapshots.

Every APPEND brings one data file, and a changelog file when it counts changelog records. A COMPACT rewrites
the two newest files into one, and lifts the file before them to another level under its name.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from harness.commits import ADD, BASE, CHANGELOG, DELETE, DELTA, ENTRY_SCHEMA, FILE_SCHEMA, METADATA
from harness.model import CommitLog, Evidence, SnapshotRecord

COMPACT = "COMPACT"
Row = dict[str, Any]


def entries_file(table: str) -> str:
    """The file of the evidence with a table's manifest entries."""
    return f"commits-{table}.parquet"


def files_file(table: str) -> str:
    """The file of the evidence with the list of a table's files."""
    return f"files-{table}.parquet"


def with_commits(evidence: Evidence) -> Evidence:
    """The evidence with a commit log of each table that has snapshots, all of which must be there.

    The total of a table's first snapshot stays as it is. Of the others the rows brought stay, the totals
    follow, and a COMPACT brings nothing.
    """
    logs, snapshots = [], []
    for table in dict.fromkeys(record.table for record in evidence.snapshots):
        story = _Story()
        records = [record for record in evidence.snapshots if record.table == table]
        snapshots += [story.told(record) for record in records]
        entries = pa.Table.from_pylist(story.entries, ENTRY_SCHEMA)
        pq.write_table(entries, Path(evidence.folder) / entries_file(table))
        files = pa.Table.from_pylist(stored(story.entries), FILE_SCHEMA)
        pq.write_table(files, Path(evidence.folder) / files_file(table))
        logs.append(CommitLog(table=table, entries=entries_file(table), files=files_file(table)))
    return replace(evidence, commits=tuple(logs), snapshots=tuple(snapshots))


def entry(snapshot_id: int, part: str, file: str, *, kind: str = ADD, level: int = 0, rows: int = 12) -> Row:
    """An entry of a manifest."""
    return {
        "snapshot_id": snapshot_id,
        "list": part,
        "kind": kind,
        "partition": "0a",
        "bucket": 0,
        "level": level,
        "file": file,
        "rows": rows,
        "size_bytes": 100 * rows,
    }


def metadata(snapshot_id: int, path: str, size_bytes: int | None = None) -> Row:
    """A file that a snapshot needs beside data."""
    needed = {"snapshot_id": snapshot_id, "list": METADATA, "kind": ADD, "file": path}
    return dict.fromkeys(ENTRY_SCHEMA.names) | needed | {"size_bytes": size_bytes}


def stored(entries: list[Row]) -> list[Row]:
    """Every file that these entries name, where Paimon puts it."""
    sizes = {}
    for row in entries:
        folder = "" if row["list"] == METADATA else f"dt=2026-07-05/bucket-{row['bucket']}/"
        sizes[folder + row["file"]] = row["size_bytes"] or 300
    return [{"path": path, "size_bytes": size_bytes} for path, size_bytes in sizes.items()]


class _Story:
    """A table's commits as they are told, one snapshot after the other."""

    def __init__(self) -> None:
        self.entries: list[Row] = []
        self._held: dict[tuple[str, int], int] = {}
        self._delta: list[Row] = []

    def told(self, record: SnapshotRecord) -> SnapshotRecord:
        """The record of a snapshot that now has entries, with the counts of their rows."""
        number, changelog = record.snapshot_id, record.changelog_records
        base = [row | {"snapshot_id": number, "list": BASE} for row in self._delta]
        if not self.entries and (old := record.total_records - record.delta_records):
            self._held["data-old.orc", 0] = old
            base = [entry(number, BASE, "data-old.orc", rows=old)]
        self._delta = self._compaction(number) if record.kind == COMPACT else self._addition(record)
        for row in self._delta:
            if row["kind"] == ADD:
                self._held[row["file"], row["level"]] = row["rows"]
            else:
                del self._held[row["file"], row["level"]]
        self.entries += [metadata(number, f"snapshot/snapshot-{number}"), metadata(number, "schema/schema-0")]
        for name in (f"list-{number}-0", f"list-{number}-1", f"{number}"):
            self.entries.append(metadata(number, f"manifest/manifest-{name}", 500))
        self.entries += base + self._delta
        if record.kind == COMPACT:
            changelog = 0
        if changelog:
            self.entries.append(entry(number, CHANGELOG, f"changelog-{number}.orc", rows=changelog))
        return replace(
            record,
            total_records=sum(self._held.values()),
            delta_records=0 if record.kind == COMPACT else record.delta_records,
            changelog_records=changelog,
        )

    def _addition(self, record: SnapshotRecord) -> list[Row]:
        if not record.delta_records:
            return []
        number = record.snapshot_id
        return [entry(number, DELTA, f"data-{number}.orc", rows=record.delta_records)]

    def _compaction(self, number: int) -> list[Row]:
        *_, (lifted, level), one, other = self._held
        rows = {file: self._held[file] for file in ((lifted, level), one, other)}
        gone = [
            entry(number, DELTA, name, kind=DELETE, level=at, rows=count)
            for (name, at), count in rows.items()
        ]
        return [
            *gone,
            entry(number, DELTA, f"data-{number}.orc", level=5, rows=rows[one] + rows[other]),
            entry(number, DELTA, lifted, level=level + 1, rows=rows[lifted, level]),
        ]
