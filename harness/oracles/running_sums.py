"""Sums over the first operations of a ledger, group by group, and what explains sums that are others.

Pure, in DuckDB: the sums after every operation are made once, and looked up for all snapshots at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pyarrow as pa

from harness.model import AggregateContract
from harness.oracles.comparison import engine

Sums: TypeAlias = dict[tuple[str, ...], tuple[int, int]]
"""Count and total of each group that has rows."""

_CANDIDATES = 20


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Sums are those of the ledger until some operation, if `first` to `last` count `times`: 0 or 2."""

    first: int
    last: int
    times: int

    def __str__(self) -> str:
        how = "twice" if self.times else "not at all"
        return f"as if operations {self.first} to {self.last} had been applied {how}"


class RunningSums:
    """A ledger's sums, and those of snapshots beside them. A context: what it needs is gone afterwards.

    `rows` are the sums that snapshots hold: `snapshot_id`, and the contract's columns.
    """

    def __init__(self, ledger: pa.Table, rows: pa.Table, contract: AggregateContract) -> None:
        self._length = ledger.num_rows
        self._groups = contract.groups
        names = ", ".join(f'"{name}"' for name in contract.groups)
        self._names = names
        self._database = engine()
        self._database.register("ledger", ledger.select(["operation", *contract.groups, contract.summed]))
        self._database.register("kept_rows", rows)
        self._database.execute(
            f"""
            CREATE TEMP TABLE running AS
            SELECT operation, {names}, count(*) OVER of_group AS n,
              sum("{contract.summed}") OVER of_group AS s
            FROM ledger WINDOW of_group AS (PARTITION BY {names} ORDER BY operation);
            CREATE TEMP TABLE groups AS SELECT DISTINCT {names} FROM ledger;
            CREATE TEMP TABLE held AS
            SELECT snapshot_id, {names}, "{contract.count}" AS n, "{contract.total}" AS s FROM kept_rows;
            CREATE TEMP TABLE overall AS
            SELECT 0::BIGINT AS operation, 0::HUGEINT AS s
            UNION ALL SELECT operation, coalesce(sum("{contract.summed}") OVER (ORDER BY operation), 0)
            FROM ledger
            """  # noqa: S608 - names are ours
        )

    def __enter__(self) -> RunningSums:
        return self

    def __exit__(self, *exception: object) -> None:
        self._database.close()

    def counts(self) -> dict[int, int]:
        """How many rows the sums of each snapshot are of; a snapshot without any is not in it."""
        found = self._database.execute("SELECT snapshot_id, sum(n)::BIGINT FROM held GROUP BY 1").fetchall()
        return {number: count or 0 for number, count in found}

    def differences(self, counts: Mapping[int, int]) -> dict[int, list[str]]:
        """Of these snapshots those that are not the sums of their first `counts` operations, told by group.

        The sums of more operations than there are do not exist: then it is told against all of them.
        """
        equal = " AND ".join(f'e."{name}" = a."{name}"' for name in self._groups)
        told = "concat_ws(', ', " + ", ".join(f'coalesce(e."{n}", a."{n}")' for n in self._groups) + ")"
        self._expect(counts)
        found = self._database.execute(
            f"""
            SELECT coalesce(e.snapshot_id, a.snapshot_id), {told}, e.n, e.s, a.n, a.s
            FROM expected AS e
            FULL JOIN (SELECT * FROM held WHERE snapshot_id IN (SELECT key FROM asked)) AS a
              ON e.snapshot_id = a.snapshot_id AND {equal}
            WHERE e.n IS DISTINCT FROM a.n OR e.s IS DISTINCT FROM a.s
            ORDER BY 1, 2
            """  # noqa: S608 - as above
        ).fetchall()
        differing: dict[int, list[str]] = {}
        for snapshot, group, *values in found:
            expected, actual = _shown(*values[:2]), _shown(*values[2:])
            differing.setdefault(snapshot, []).append(f"{group}: expected {expected}; actual {actual}")
        return differing

    def explain(self, snapshot: int, count: int, before: Sequence[int]) -> Explanation | None:
        """What happened to operations once or twice so that a snapshot has these sums; None if nothing did.

        `before` are the counts of the snapshots before it, which are right: what is repeated is looked for
        in each of their commits and in the one after them, what is missing in the one after them.
        """
        newest = max(before, default=0)
        held = self._held(snapshot)
        self._database.register("commits", _numbers(a=[0, *before[:-1]] if before else [], b=before))
        likely = self._database.execute(
            f"""
            WITH candidates AS (
              SELECT a, b, 1 AS sign FROM commits WHERE b > a
              UNION ALL SELECT $newest, $newest + k, 1 FROM range(1, ($count - $newest) // 2 + 1) AS r(k)
              UNION ALL SELECT $newest, $newest + k, -1 FROM range(1, $length - $count + 1) AS r(k)
            )
            SELECT c.a, c.b, c.sign, until.operation
            FROM candidates AS c
            JOIN overall AS lower ON lower.operation = c.a
            JOIN overall AS upper ON upper.operation = c.b
            JOIN overall AS until ON until.operation = $count - c.sign * (c.b - c.a)
            WHERE until.s + c.sign * (upper.s - lower.s) = $total
            ORDER BY c.b - c.a LIMIT {_CANDIDATES}
            """,  # noqa: S608 - a number of ours
            {
                "newest": newest,
                "count": count,
                "length": self._length,
                "total": sum(total for _, total in held.values()),
            },
        ).fetchall()
        for a, b, sign, reached in likely:
            if _plus(self._at(reached), _plus(self._at(b), self._at(a), -1), sign) == held:
                return Explanation(first=a + 1, last=b, times=1 + sign)
        return None

    def _expect(self, counts: Mapping[int, int]) -> None:
        """Put into `expected` the sums of the first operations, so many for each key."""
        equal = " AND ".join(f'w."{name}" = r."{name}"' for name in self._groups)
        wanted = ", ".join(f'w."{name}"' for name in self._groups)
        self._database.register("asked", _numbers(key=list(counts), operations=list(counts.values())))
        self._database.execute(
            f"""
            CREATE OR REPLACE TEMP TABLE expected AS
            SELECT w.key AS snapshot_id, {wanted}, r.n, r.s
            FROM (SELECT * FROM asked CROSS JOIN groups) AS w
            ASOF JOIN running AS r ON {equal} AND w.operations >= r.operation
            """  # noqa: S608 - as above
        )

    def _at(self, operation: int) -> Sums:
        """The sums after an operation."""
        self._expect({0: operation})
        return self._sums("expected", 0)

    def _held(self, snapshot: int) -> Sums:
        """The sums that a snapshot holds."""
        return self._sums("held", snapshot)

    def _sums(self, relation: str, snapshot: int) -> Sums:
        found = self._database.execute(
            f"SELECT {self._names}, sum(n)::BIGINT, coalesce(sum(s), 0)::BIGINT FROM {relation} "  # noqa: S608 - as above
            "WHERE snapshot_id = ? GROUP BY ALL",
            [snapshot],
        ).fetchall()
        return {tuple(row[:-2]): (row[-2], row[-1]) for row in found}


def _numbers(**columns: Sequence[int]) -> pa.Table:
    return pa.table({name: pa.array(values, pa.int64()) for name, values in columns.items()})


def _plus(one: Sums, other: Sums, sign: int) -> Sums:
    """One and `sign` times the other, without groups that have nothing."""
    found = {}
    for group in one.keys() | other.keys():
        (count, total), (more, extra) = one.get(group, (0, 0)), other.get(group, (0, 0))
        found[group] = (count + sign * more, total + sign * extra)
    return {group: sums for group, sums in found.items() if sums != (0, 0)}


def _shown(count: int | None, total: int | None) -> str:
    return "no row" if count is None else f"{count} with the sum {total}"
