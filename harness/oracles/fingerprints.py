"""Fingerprints of tables: equal when the rows are, in whatever order, and cheap to follow change by change.

A row's fingerprint is two hashes of 64 bits over its columns, in two orders. A table's is the sum of its
rows', each half by itself, and their number: so an added row adds its own, and a lost one takes it away.
Equal fingerprints are as good as equal rows, but not proof: 128 bits are left to chance.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import duckdb
import pyarrow as pa

from harness.ledger import DELETE, OPERATION_SCHEMA
from harness.model import TableContract
from harness.oracles.comparison import engine
from harness.replay import CHANGE_COLUMNS, signed_rows

UNNAMED = "NULL"
"""How a partition without a name is called."""


class Fingerprint(NamedTuple):
    """Two sums of hashes, and how many rows were summed. An empty table has NOTHING."""

    first: int
    second: int
    rows: int


NOTHING = Fingerprint(0, 0, 0)


@dataclass(frozen=True, kw_only=True)
class Stretches:
    """The operations after which something was as it is: stretches from one to another, in order."""

    starts: Sequence[int] = field(default_factory=list)
    ends: Sequence[int] = field(default_factory=list)

    def first_from(self, operation: int) -> int | None:
        """The first of these operations that is not before the given one."""
        index = bisect_left(self.ends, operation)
        return None if index == len(self.ends) else max(operation, self.starts[index])

    def last_until(self, operation: int) -> int | None:
        """The last of these operations that is not after the given one."""
        index = bisect_left(self.starts, operation + 1)
        return None if index == 0 else min(operation, self.ends[index - 1])


NEVER = Stretches()


@dataclass(frozen=True, kw_only=True)
class Content:
    """What a snapshot holds: its fingerprint, when the ledger was so, and the same of each partition.

    `partitions` has every partition of the ledger, and those of the sink that hold anything.
    """

    fingerprint: Fingerprint
    when: Stretches
    partitions: Mapping[str, Stretches]
    foreign: Mapping[str, int]
    """Partitions that the ledger never had, and how many rows they hold."""


def row_hashes(columns: Sequence[str]) -> str:
    """SQL for a row's fingerprint: the columns `first` and `second`, 64 bits each.

    DuckDB mixes the last column into a hash with an exclusive or, which sums would undo in part when two
    rows swap a value; so the hash is hashed again.
    """
    names = [f'"{name}"' for name in columns]
    return (
        f"hash(hash({', '.join(names)})) AS first, "
        f"hash(hash('second', {', '.join(reversed(names))})) AS second"
    )


def row_columns(ledger: pa.Table) -> list[str]:
    """The columns of a ledger that are its table's."""
    return [name for name in ledger.column_names if name not in OPERATION_SCHEMA.names]


def fingerprint(rows: pa.Table, columns: Sequence[str]) -> Fingerprint:
    """The fingerprint of a table's rows. The types must be those of what it is compared with."""
    with engine() as database:
        database.register("rows", rows)
        found = database.execute(
            f"SELECT coalesce(sum(first), 0), coalesce(sum(second), 0), count(*) "  # noqa: S608 - names are ours
            f"FROM (SELECT {row_hashes(columns)} FROM rows)"
        ).fetchone()
    return NOTHING if found is None else Fingerprint(*found)


def stretches_like(ledger: pa.Table, rows: pa.Table, *, key: str) -> Stretches:
    """The operations after which the ledger's state has the fingerprint of `rows`, of the ledger's types.

    States may recur. Operation 0 is before the first one, when there was nothing.
    """
    columns = row_columns(ledger)
    wanted = fingerprint(rows, columns)
    with engine() as database:
        database.register("ledger", ledger)
        _make_states(database, _ledger_signed(columns, key=key, scope=f"'{UNNAMED}'"), until=ledger.num_rows)
        return _when(database, [(None, wanted)])[None, wanted]


def contents(
    ledger: pa.Table, changes: pa.Table, contract: TableContract, *, base: int, snapshots: Sequence[int]
) -> dict[int, Content]:
    """What each of these snapshots holds as `changes` say, and when the ledger held the same.

    `changes` has CHANGE_COLUMNS and the ledger's row, in the ledger's types. What happened until `base`
    counts as the base's. `snapshots` ascend, the base first.
    """
    columns = row_columns(ledger)
    scope = f"""coalesce("{contract.partition}"::VARCHAR, '{UNNAMED}')"""
    with engine() as database:
        database.register("ledger", ledger)
        database.register("changes", changes)
        held = _held(database, columns, contract, scope=scope, base=base)
        _make_states(
            database, _ledger_signed(columns, key=contract.source_key, scope=scope), until=ledger.num_rows
        )
        scopes = {name for (name,) in database.execute("SELECT DISTINCT scope FROM states").fetchall()}
        wanted = {(name, seen) for steps in held.values() for name, seen in steps.items()}
        when = _when(database, [*wanted, *((name, NOTHING) for name in scopes)])
    return _along(snapshots, held, when, scopes - {None})


def _along(
    snapshots: Sequence[int],
    held: Mapping[int, Mapping[str | None, Fingerprint]],
    when: Mapping[tuple[str | None, Fingerprint], Stretches],
    partitions: set[str],
) -> dict[int, Content]:
    """Go from snapshot to snapshot, and take over what did not change."""
    now: dict[str | None, Fingerprint] = {None: NOTHING, **dict.fromkeys(sorted(partitions), NOTHING)}
    found = {}
    changed = iter(sorted(held))
    upcoming = next(changed, None)
    for snapshot in snapshots:
        while upcoming is not None and upcoming <= snapshot:
            now |= held[upcoming]
            upcoming = next(changed, None)
        found[snapshot] = Content(
            fingerprint=now[None],
            when=when[None, now[None]],
            partitions={
                name: when[name, seen]
                for name, seen in now.items()
                if name is not None and (name in partitions or seen != NOTHING)
            },
            foreign={
                name: seen.rows
                for name, seen in now.items()
                if name is not None and name not in partitions and seen != NOTHING
            },
        )
    return found


def _held(
    database: duckdb.DuckDBPyConnection,
    columns: Sequence[str],
    contract: TableContract,
    *,
    scope: str,
    base: int,
) -> dict[int, dict[str | None, Fingerprint]]:
    """The fingerprint of each partition, and of all (None), at each snapshot that changed it."""
    # Rows are replayed by their hashes alone, in a table as narrow as can be.
    names = (contract.partition, contract.source_key)
    narrow = replace(contract, columns=(*names, "first", "second"))
    kept = ", ".join(f'"{name}"' for name in (*CHANGE_COLUMNS.names, *names))
    database.execute(
        f"CREATE TEMP TABLE hashed AS SELECT {kept}, {row_hashes(columns)} FROM changes"  # noqa: S608 - names are ours
    )
    signed = (
        f"SELECT greatest(snapshot_id, {base}) AS step, {scope} AS scope, sign, first, second "  # noqa: S608 - as above
        f"FROM ({signed_rows(narrow, changes='hashed')})"
    )
    found: dict[int, dict[str | None, Fingerprint]] = defaultdict(dict)
    for at, name, *sums in database.execute(f"{_summed(signed)} FROM summed").fetchall():
        found[at][name] = Fingerprint(*sums)
    return found


def _ledger_signed(columns: Sequence[str], *, key: str, scope: str) -> str:
    """SQL for the rows that each operation of `ledger` added and took away."""
    return f"""
        WITH hashed AS (
          SELECT operation, "{key}" AS key, kind <> '{DELETE}' AS lives, {scope} AS scope,
                 {row_hashes(columns)}
          FROM ledger
        ), chained AS (
          SELECT *, lag(lives) OVER earlier AS lived, lag(scope) OVER earlier AS scope_before,
                 lag(first) OVER earlier AS first_before, lag(second) OVER earlier AS second_before
          FROM hashed WINDOW earlier AS (PARTITION BY key ORDER BY operation)
        )
        SELECT operation AS step, scope, 1 AS sign, first, second FROM chained WHERE lives
        UNION ALL SELECT operation, scope_before, -1, first_before, second_before FROM chained WHERE lived
    """  # noqa: S608 - the names are columns of the ledger itself


def _summed(signed: str) -> str:
    """SQL: a WITH that ends in `summed`, the fingerprint of each scope, and of all (NULL), at each change."""
    return f"""
        WITH signed AS ({signed}), steps AS (
          SELECT step, scope, sum(sign * first::HUGEINT) AS first, sum(sign * second::HUGEINT) AS second,
                 sum(sign) AS rows
          FROM signed GROUP BY GROUPING SETS ((step, scope), (step))
        ), summed AS (
          SELECT step, scope, sum(first) OVER until AS first, sum(second) OVER until AS second,
                 sum(rows) OVER until AS rows
          FROM steps WINDOW until AS (PARTITION BY scope ORDER BY step ROWS UNBOUNDED PRECEDING)
        )
    """  # noqa: S608 - as above


def _make_states(database: duckdb.DuckDBPyConnection, signed: str, *, until: int) -> None:
    """Make `states`: the fingerprint of each scope and of all, from one operation to another."""
    database.execute(
        f"""
        CREATE TEMP TABLE states AS {_summed(signed)}, since AS (
          SELECT * FROM summed
          UNION ALL SELECT 0, scope, 0, 0, 0 FROM (SELECT scope FROM summed UNION SELECT NULL)
        )
        SELECT scope, first, second, rows, step AS starts,
               coalesce(lead(step) OVER (PARTITION BY scope ORDER BY step) - 1, {until}) AS ends
        FROM since
        """  # noqa: S608 - as above
    )


def _when(
    database: duckdb.DuckDBPyConnection, wanted: Sequence[tuple[str | None, Fingerprint]]
) -> dict[tuple[str | None, Fingerprint], Stretches]:
    """The stretches of `states` with these fingerprints."""
    # Sums go as text, since Arrow has no integer of 128 bits.
    texts = [(name, pa.string()) for name in Fingerprint._fields]
    fields = pa.schema([("number", pa.int64()), ("scope", pa.string()), *texts])
    entries = [
        dict(zip(fields.names, (number, scope, *map(str, seen)), strict=True))
        for number, (scope, seen) in enumerate(wanted)
    ]
    database.register("wanted", pa.Table.from_pylist(entries, schema=fields))
    found = database.execute(
        """
        SELECT number, starts, ends FROM states JOIN (
          SELECT number, scope, first::HUGEINT AS first, second::HUGEINT AS second, rows::HUGEINT AS rows
          FROM wanted
        ) AS w USING (first, second, rows) WHERE states.scope IS NOT DISTINCT FROM w.scope
        ORDER BY number, starts
        """
    ).fetchall()
    starts: dict[int, list[int]] = defaultdict(list)
    ends: dict[int, list[int]] = defaultdict(list)
    for number, start, end in found:
        starts[number].append(start)
        ends[number].append(end)
    return {
        one: Stretches(starts=starts[number], ends=ends[number]) if number in starts else NEVER
        for number, one in enumerate(wanted)
    }
