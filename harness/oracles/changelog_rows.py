"""What a changelog's rows say, compared in DuckDB with the table that they belong to: sums, rules, pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from harness.model import TableContract
from harness.oracles.comparison import MAX_EXAMPLES, engine
from harness.replay import signed_rows


@dataclass(frozen=True, kw_only=True)
class Apart:
    """At a snapshot, `lacking` rows of the table are not in its changelog's sum, `beyond` are there only."""

    snapshot_id: int
    lacking: int
    beyond: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.lacking} rows of the table lacking, {self.beyond} rows too many"


@dataclass(frozen=True, kw_only=True)
class Offences:
    """How many rows break a rule, with examples that name snapshot and row."""

    count: int
    examples: tuple[str, ...]


class ChangelogRows:
    """A table's changes and its changelog, both until a snapshot. Close it when done."""

    def __init__(
        self, contract: TableContract, *, changes: pa.Table, changelog: pa.Table, until: int
    ) -> None:
        self._contract = contract
        self._columns = ", ".join(f'"{name}"' for name in contract.columns)
        self._row = "struct_pack(" + ", ".join(f'"{name}" := "{name}"' for name in contract.columns) + ")"
        self._key = f'"{contract.partition}", "{contract.source_key}"'
        self._database = engine()
        self._database.register("all_changes", changes)
        self._database.register("all_changelog", changelog)
        for name in ("changes", "changelog"):
            self._run(
                f"CREATE TEMP TABLE {name} AS SELECT * FROM all_{name} WHERE snapshot_id <= {until}"  # noqa: S608 - names and numbers of our own
            )
        self._run(f"CREATE TEMP TABLE signed AS {signed_rows(contract)}")

    def close(self) -> None:
        """Let go of the tables in memory."""
        self._database.close()

    def counts(self) -> dict[int, int]:
        """How many rows each snapshot's changelog has; without those that have none."""
        return dict(self._run("SELECT snapshot_id, count(*) FROM changelog GROUP BY snapshot_id").fetchall())

    def apart(self, at: Sequence[int], *, after: int) -> tuple[Apart, ...]:
        """At which of these snapshots the table, and the sum of its changelog, differ as multisets of rows.

        Both are taken to be equal at the snapshot `after`; after 0 the table is empty.
        """
        self._run(
            f"""
            CREATE OR REPLACE TEMP TABLE spans AS
            SELECT {self._columns}, snapshot_id AS since,
                   lead(snapshot_id) OVER of_row AS until, sum(times) OVER of_row AS times
            FROM (
              SELECT snapshot_id, {self._columns}, sum(sign) AS times FROM (
                SELECT snapshot_id, sign, {self._columns} FROM signed
                UNION ALL
                SELECT snapshot_id, CASE WHEN rowkind LIKE '+%' THEN -1 ELSE 1 END, {self._columns}
                FROM changelog
              ) WHERE snapshot_id > {after} GROUP BY ALL HAVING times <> 0
            )
            WINDOW of_row AS (PARTITION BY {self._columns} ORDER BY snapshot_id)
            """  # noqa: S608 - names of the contract, numbers of our own
        )
        self._database.register("compared", pa.table({"snapshot_id": pa.array(at, pa.int64())}))
        found = self._run(
            """
            SELECT c.snapshot_id, coalesce(sum(times) FILTER (WHERE times > 0), 0)::BIGINT,
                   -coalesce(sum(times) FILTER (WHERE times < 0), 0)::BIGINT
            FROM compared AS c JOIN spans AS s
              ON s.since <= c.snapshot_id AND (s.until IS NULL OR c.snapshot_id < s.until) AND s.times <> 0
            GROUP BY c.snapshot_id ORDER BY c.snapshot_id
            """
        ).fetchall()
        return tuple(
            Apart(snapshot_id=snapshot, lacking=lacking, beyond=beyond, examples=self._examples_at(snapshot))
            for snapshot, lacking, beyond in found
        )

    def _examples_at(self, snapshot_id: int) -> tuple[str, ...]:
        found = self._run(
            f"""
            SELECT CASE WHEN times > 0 THEN 'not in the changelog' ELSE 'in the changelog only' END,
                   {self._row}::VARCHAR
            FROM spans
            WHERE times <> 0 AND since <= {snapshot_id} AND (until IS NULL OR {snapshot_id} < until)
            ORDER BY {self._key} LIMIT {MAX_EXAMPLES}
            """  # noqa: S608 - as above
        ).fetchall()
        return tuple(f"snapshot {snapshot_id}: {how}: {row}" for how, row in found)

    def out_of_turn(self, state: pa.Table | None, *, after: int) -> Offences:
        """Rows that don't follow from those before them of their partition and key, in the order of the log.

        A -U or -D removes a row that is there, with the values it has; a +I or +U comes when the key is not
        there. `state` is the table at the snapshot `after`; None when it was empty.
        """
        begin = "SELECT * FROM known"
        if state is not None:
            self._database.register("state", state)
            begin += f" UNION ALL SELECT {after}, '+I', -1, {self._columns} FROM state"  # noqa: S608 - as below
        # A compaction writes the row that it takes away under the sequence of that row, which may be the
        # last of the compaction before it in the same snapshot: what adds goes before what takes away.
        found = self._run(
            f"""
            WITH known AS (
              SELECT snapshot_id, rowkind, sequence, {self._columns} FROM changelog
              WHERE snapshot_id > {after}
            ), turns AS (
              SELECT *, {self._row} AS is_row, lag(rowkind) OVER of_key AS was_kind,
                     lag({self._row}) OVER of_key AS was_row
              FROM ({begin})
              WINDOW of_key AS (
                PARTITION BY {self._key} ORDER BY snapshot_id, sequence, rowkind LIKE '-%'
              )
            ), judged AS (
              SELECT *, CASE
                WHEN rowkind LIKE '+%' AND was_kind LIKE '+%' THEN 'is added to what is there'
                WHEN rowkind LIKE '-%' AND (was_kind IS NULL OR was_kind LIKE '-%') THEN 'removes nothing'
                WHEN rowkind LIKE '-%' AND was_row IS DISTINCT FROM is_row THEN 'removes other values'
              END AS offence
              FROM turns WHERE snapshot_id > {after}
            )
            SELECT snapshot_id, rowkind, is_row::VARCHAR, offence, coalesce(was_row::VARCHAR, 'nothing'),
                   coalesce(was_kind, 'the beginning'), count(*) OVER ()
            FROM judged WHERE offence IS NOT NULL ORDER BY snapshot_id, {self._key}, sequence
            LIMIT {MAX_EXAMPLES}
            """  # noqa: S608 - as above
        ).fetchall()
        return Offences(
            count=found[0][-1] if found else 0,
            examples=tuple(
                f"snapshot {snapshot}: {kind} {row} {offence}; before it {was_kind} {was}"
                for snapshot, kind, row, offence, was, was_kind, _ in found
            ),
        )

    def half_updates(self, *, after: int, joined: Mapping[int, int]) -> Offences:
        """Source keys of which a snapshot's changelog has a -U without its +U, or the other way round.

        A snapshot that is in `joined` counts as a part of the one that it names.
        """
        self._database.register(
            "joined",
            pa.table({"part": pa.array(joined, pa.int64()), "of": pa.array(joined.values(), pa.int64())}),
        )
        found = self._run(
            f"""
            SELECT coalesce("of", snapshot_id) AS snapshot_id, "{self._contract.source_key}"::VARCHAR,
                   count(*) FILTER (WHERE rowkind = '-U') AS before,
                   count(*) FILTER (WHERE rowkind = '+U') AS behind, count(*) OVER ()
            FROM changelog LEFT JOIN joined ON snapshot_id = part WHERE snapshot_id > {after}
            GROUP BY ALL HAVING before <> behind
            ORDER BY 1, 2 LIMIT {MAX_EXAMPLES}
            """  # noqa: S608 - as above
        ).fetchall()
        return Offences(
            count=found[0][-1] if found else 0,
            examples=tuple(
                f"snapshot {snapshot}: {self._contract.source_key} {key} has {before} -U and {behind} +U"
                for snapshot, key, before, behind, _ in found
            ),
        )

    def never_held(self) -> Offences:
        """Rows that the changelog added although the table held them at no snapshot until then."""
        found = self._run(
            f"""
            SELECT emitted, {self._row}::VARCHAR, count(*) OVER () FROM (
              SELECT {self._columns}, min(snapshot_id) FILTER (WHERE held) AS held,
                     min(snapshot_id) FILTER (WHERE NOT held) AS emitted
              FROM (
                SELECT snapshot_id, TRUE AS held, {self._columns} FROM signed WHERE sign = 1
                UNION ALL SELECT snapshot_id, FALSE, {self._columns} FROM changelog WHERE rowkind LIKE '+%'
              ) GROUP BY {self._columns}
            ) WHERE emitted IS NOT NULL AND (held IS NULL OR emitted < held)
            ORDER BY 1, 2 LIMIT {MAX_EXAMPLES}
            """  # noqa: S608 - as above
        ).fetchall()
        return Offences(
            count=found[0][-1] if found else 0,
            examples=tuple(f"snapshot {snapshot}: {row}" for snapshot, row, _ in found),
        )

    def _run(self, text: str) -> duckdb.DuckDBPyConnection:
        return self._database.execute(text)
