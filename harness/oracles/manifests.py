"""What a table's manifests come to: bases, live files, sums of rows, and what storage should hold.

SQL over the rows of harness.commits. Each method answers one question; what it means is not said here.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType

import pyarrow as pa

from harness.oracles.comparison import engine

# A file is the same only with its partition, bucket, level, rows and size.
_PREPARE = (
    # The snapshot before another one, where none between them is missing.
    """CREATE TEMP TABLE ids AS
       SELECT snapshot_id, snapshot_id - 1 IN (SELECT snapshot_id FROM entries) AS follows
       FROM (SELECT DISTINCT snapshot_id FROM entries)""",
    """CREATE TEMP TABLE signed AS
       SELECT snapshot_id, list, partition, bucket, level, file, rows, size_bytes,
              CASE kind WHEN 'ADD' THEN 1 ELSE -1 END AS sign
       FROM entries WHERE list IN ('base', 'delta', 'changelog')""",
    # The bases' rows are changes: summed until a snapshot, they are how often its base holds the file.
    """CREATE TEMP TABLE lives AS
       SELECT *, base + change AS live FROM (
         SELECT snapshot_id, partition, bucket, level, file, rows, size_bytes, change,
                sum(came) OVER (PARTITION BY partition, bucket, level, file, rows, size_bytes
                                ORDER BY snapshot_id) AS base
         FROM (SELECT snapshot_id, partition, bucket, level, file, rows, size_bytes,
                      coalesce(sum(sign) FILTER (list = 'base'), 0) AS came,
                      coalesce(sum(sign) FILTER (list = 'delta'), 0) AS change
               FROM signed WHERE list <> 'changelog' GROUP BY ALL))""",
    # Files that the snapshots need. Of one that the first snapshot's base held and its delta took away,
    # expiry of the snapshots before may have removed the file.
    """CREATE TEMP TABLE needed AS
       SELECT how, place, size_bytes, min(snapshot_id) AS snapshot_id FROM (
         SELECT 'place' AS how, snapshot_id, size_bytes,
                'bucket-' || CASE bucket WHEN -2 THEN 'postpone' ELSE bucket::VARCHAR END || '/' || file
                  AS place
         FROM (SELECT snapshot_id, bucket, file, size_bytes FROM lives WHERE live > 0
               UNION ALL SELECT snapshot_id, bucket, file, size_bytes FROM signed
               WHERE list = 'changelog' AND sign > 0)
         UNION ALL
         SELECT CASE WHEN contains(file, '/') THEN 'path' ELSE 'name' END, snapshot_id, size_bytes, file
         FROM entries WHERE list = 'metadata')
       GROUP BY how, place, size_bytes""",
    """CREATE TEMP TABLE stored AS
       SELECT path, size_bytes, regexp_extract(path, '[^/]+/[^/]+$') AS place,
              regexp_extract(path, '[^/]+$') AS name
       FROM files""",
    """CREATE TEMP TABLE places AS
       SELECT 'path' AS how, path AS place, size_bytes FROM stored
       UNION ALL SELECT 'place', place, size_bytes FROM stored
       UNION ALL SELECT 'name', name, size_bytes FROM stored""",
)


@dataclass(frozen=True, kw_only=True)
class RowSums:
    """Rows in files by a snapshot's manifests: brought by it, in its changelog, and in all its files."""

    delta: int
    changelog: int
    total: int

    def __str__(self) -> str:
        return f"{self.delta} brought, {self.changelog} in the changelog, {self.total} in all"


class Manifests:
    """Manifest entries and files of one table, opened. To be used in a `with` statement."""

    def __init__(self, entries: pa.Table, files: pa.Table, compacts: list[int]) -> None:
        """`compacts` are the snapshots of kind COMPACT."""
        self._database = engine()
        self._database.register("entries", entries)
        self._database.register("files", files)
        self._database.register("compacts", pa.table({"snapshot_id": pa.array(compacts, pa.int64())}))
        for statement in _PREPARE:
            self._database.execute(statement)

    def __enter__(self) -> Manifests:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def snapshots(self) -> list[int]:
        """The snapshots of which there is anything, in order."""
        return [row[0] for row in self._rows("SELECT snapshot_id FROM ids ORDER BY 1")]

    def unread(self) -> list[tuple[int, str]]:
        """Files that a snapshot needs to be understood and that could not be read."""
        return self._rows("SELECT snapshot_id, file FROM entries WHERE list = 'unread' ORDER BY ALL")

    def base_differences(self) -> list[tuple[int, str, int]]:
        """Where a base is not what the snapshot before it left: snapshot, file, how often too many."""
        return self._rows(
            """SELECT snapshot_id, file, sum(sign)::BIGINT AS over FROM (
                 SELECT s.* FROM signed AS s JOIN ids USING (snapshot_id) WHERE list = 'base' AND follows
                 UNION ALL BY NAME
                 SELECT s.* REPLACE (snapshot_id + 1 AS snapshot_id, -sign AS sign)
                 FROM signed AS s WHERE list = 'delta' AND snapshot_id + 1 IN (SELECT snapshot_id FROM ids))
               GROUP BY snapshot_id, partition, bucket, level, file, rows, size_bytes
               HAVING over <> 0 ORDER BY snapshot_id, file"""
        )

    def wrong_lives(self) -> list[tuple[int, str, int]]:
        """Files that are not once or not at all in a snapshot or its base: snapshot, file, how often."""
        return self._rows(
            """SELECT snapshot_id, file, CASE WHEN live BETWEEN 0 AND 1 THEN base ELSE live END::BIGINT
               FROM lives WHERE live NOT BETWEEN 0 AND 1 OR base NOT BETWEEN 0 AND 1
               ORDER BY snapshot_id, file"""
        )

    def added_again(self) -> list[tuple[int, str, int]]:
        """Files added by a snapshot that were added before: snapshot, file, the snapshot of the first time.

        A COMPACT snapshot that lifts a file to another level DELETEs and ADDs it: that is none.
        """
        return self._rows(
            """WITH added AS (
                 SELECT snapshot_id, file, count(*) FILTER (sign > 0) AS adds,
                        count(*) FILTER (sign < 0) AS deletes
                 FROM signed WHERE list = 'delta' GROUP BY ALL
                 UNION ALL
                 SELECT snapshot_id, file, sum(sign), 0 FROM signed
                 WHERE list = 'changelog' GROUP BY ALL
                 UNION ALL  -- what was there before the first snapshot was added before it
                 SELECT min(snapshot_id) - 1, file, 1, 0 FROM signed
                 WHERE list = 'base' AND snapshot_id = (SELECT min(snapshot_id) FROM ids) GROUP BY file),
               numbered AS (
                 SELECT *, min(snapshot_id) OVER (PARTITION BY file) AS first FROM added WHERE adds > 0)
               SELECT snapshot_id, file, first FROM numbered
               WHERE adds > deletes + (snapshot_id = first)::BIGINT
                  OR (snapshot_id > first AND snapshot_id NOT IN (SELECT snapshot_id FROM compacts))
               ORDER BY ALL"""
        )

    def sums(self) -> dict[int, RowSums]:
        """The rows of each snapshot."""
        found = self._rows(
            """SELECT snapshot_id, delta, changelog,
                      (sum(came) OVER (ORDER BY snapshot_id) + delta)::BIGINT FROM (
                 SELECT snapshot_id,
                        coalesce(sum(sign * rows) FILTER (list = 'delta'), 0)::BIGINT AS delta,
                        coalesce(sum(sign * rows) FILTER (list = 'changelog'), 0)::BIGINT AS changelog,
                        coalesce(sum(sign * rows) FILTER (list = 'base'), 0)::BIGINT AS came
                 FROM ids LEFT JOIN signed USING (snapshot_id) GROUP BY snapshot_id)"""
        )
        return {number: RowSums(delta=d, changelog=c, total=t) for number, d, c, t in found}

    def stored_files(self) -> int:
        """How many files are in storage."""
        return int(self._rows("SELECT count(*) FROM stored")[0][0])

    def needed_files(self) -> int:
        """How many files the snapshots need."""
        return int(self._rows("SELECT count(DISTINCT (how, place)) FROM needed")[0][0])

    def missing_files(self) -> list[tuple[int, str]]:
        """Files that are needed and not in storage, with the first snapshot that needs them."""
        return self._rows(
            """SELECT min(snapshot_id) AS first, place FROM needed ANTI JOIN places USING (how, place)
               GROUP BY how, place ORDER BY ALL"""
        )

    def other_sizes(self) -> list[tuple[int, str, int, int]]:
        """Files of another size than the manifests say: first snapshot, file, size there, size in storage."""
        return self._rows(
            """SELECT n.snapshot_id, place, n.size_bytes, p.size_bytes FROM needed AS n JOIN places AS p
               USING (how, place) WHERE n.size_bytes <> p.size_bytes ORDER BY ALL"""
        )

    def orphans(self) -> tuple[int, int]:
        """Data, index and manifest files in storage that no snapshot needs: how many, and their bytes."""
        found = self._rows(
            """SELECT count(*), coalesce(sum(size_bytes), 0)::BIGINT FROM stored
               WHERE (place LIKE 'bucket-%' OR path LIKE 'manifest/%' OR path LIKE 'index/%')
                 AND path NOT IN (SELECT place FROM needed WHERE how = 'path')
                 AND place NOT IN (SELECT place FROM needed WHERE how = 'place')
                 AND name NOT IN (SELECT place FROM needed WHERE how = 'name')"""
        )
        return found[0]

    def _rows(self, query: str) -> list[tuple]:  # type: ignore[type-arg]  # each query has its own columns
        return self._database.execute(query).fetchall()
