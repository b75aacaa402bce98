"""Counts of rows that go with a damaged history: in the snapshots' records, and in the manifests' files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import duckdb
import pyarrow as pa

from harness.commits import ADD, CHANGELOG, DELTA
from harness.defects.files import read, write
from harness.model import CommitLog, Evidence, SnapshotRecord


def growth(before: pa.Table, after: pa.Table) -> dict[int, int]:
    """How many more rows each snapshot has in one table than in another."""
    then, now = (Counter(rows["snapshot_id"].to_pylist()) for rows in (before, after))
    grown = {number: now[number] - then[number] for number in sorted(then.keys() | now.keys())}
    return {number: more for number, more in grown.items() if more}


def recounted(
    evidence: Evidence, table: str, *, deltas: Mapping[int, int], changelogs: Mapping[int, int]
) -> Evidence:
    """The evidence of a table whose snapshots brought so many more rows, as its metadata would say it."""
    if not deltas and not changelogs:
        return evidence
    for log in evidence.commits:
        if log.table == table and log.entries:
            _recount_files(evidence, log, deltas=deltas, changelogs=changelogs)
    return replace(
        evidence,
        snapshots=tuple(
            _recorded(record, deltas, changelogs) if record.table == table else record
            for record in evidence.snapshots
        ),
    )


def _recorded(
    record: SnapshotRecord, deltas: Mapping[int, int], changelogs: Mapping[int, int]
) -> SnapshotRecord:
    grown = sum(more for number, more in deltas.items() if number <= record.snapshot_id)
    return replace(
        record,
        delta_records=record.delta_records + deltas.get(record.snapshot_id, 0),
        total_records=record.total_records + grown,
        changelog_records=record.changelog_records + changelogs.get(record.snapshot_id, 0),
    )


def _recount_files(
    evidence: Evidence, log: CommitLog, *, deltas: Mapping[int, int], changelogs: Mapping[int, int]
) -> None:
    """Let the largest file that a snapshot brought have the more rows, wherever a manifest names it."""
    entries = read(evidence, log.entries)
    grown = [
        *((DELTA, number, more) for number, more in deltas.items()),
        *((CHANGELOG, number, more) for number, more in changelogs.items()),
    ]
    fields = pa.schema([("list", pa.string()), ("snapshot_id", pa.int64()), ("more", pa.int64())])
    with duckdb.connect(":default:").cursor() as database:
        database.register("entries", entries)
        database.register(
            "grown",
            pa.Table.from_pylist([dict(zip(fields.names, row, strict=True)) for row in grown], fields),
        )
        found: pa.Table = database.sql(
            f"""
            WITH largest AS (
              SELECT file, more FROM (
                SELECT e.*, more, row_number() OVER (
                         PARTITION BY e.list, e.snapshot_id ORDER BY e.rows DESC, e.file) AS place
                FROM entries AS e JOIN grown USING (list, snapshot_id) WHERE e.kind = '{ADD}'
              ) WHERE place = 1
            )
            SELECT e.* REPLACE (CASE WHEN e.rows > 0 THEN e.rows + coalesce(more, 0) ELSE e.rows END AS rows)
            FROM entries AS e LEFT JOIN largest USING (file)
            """
        ).to_arrow_table()
    write(evidence, log.entries, found.cast(entries.schema))
