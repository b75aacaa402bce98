"""What the oracles share: the guide's totals of any rows, and key-by-key differences, in DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

import duckdb
import pyarrow as pa

from harness.model import PartitionTotals, TableContract, TimeWindow

MAX_EXAMPLES = 20


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How a table differs from what it should hold, counted in source keys, with examples.

    `missing`: keys that should be there and aren't. `extra`: keys that should not be there.
    `stale`: keys whose row differs. `repeated`: keys with more rows than they should have.
    """

    rows_expected: int
    rows_actual: int
    missing: int = 0
    extra: int = 0
    stale: int = 0
    repeated: int = 0
    examples: tuple[str, ...] = ()

    @property
    def keys(self) -> int:
        """How many keys differ."""
        return self.missing + self.extra + self.stale + self.repeated

    @property
    def is_empty(self) -> bool:
        return not self.keys

    def __str__(self) -> str:
        return (
            f"{self.missing} keys missing, {self.extra} extra, {self.stale} with another row, "
            f"{self.repeated} with more than one row"
        )


def engine() -> duckdb.DuckDBPyConnection:
    """An empty database in memory: a cursor of the process's own, since a new one takes 20 ms."""
    return duckdb.connect(":default:").cursor()


def place(table: str, fence: int, snapshot: int) -> str:
    """How a finding says where it looked."""
    return f"{table}, fence {fence}, snapshot {snapshot}"


def totals(rows: pa.Table, window: TimeWindow, contract: TableContract) -> tuple[PartitionTotals, ...]:
    """The guide's §5.1 aggregates of these rows, per partition, sorted by partition."""
    key, amount, inside = contract.source_key, contract.amount, f"{contract.time} BETWEEN ? AND ?"
    with engine() as database:
        database.register("rows", rows)
        found = database.execute(
            f"SELECT {contract.partition}, count(*), count(DISTINCT {key}), "
            f"coalesce(sum({amount}), 0), count(DISTINCT {key}) FILTER (WHERE {inside}), "
            f"coalesce(sum({amount}) FILTER (WHERE {inside}), 0) FROM rows GROUP BY 1 ORDER BY 1",
            [window.start, window.end, window.start, window.end],
        ).fetchall()
    return tuple(
        PartitionTotals(
            partition=row[0],
            rows=row[1],
            keys=row[2],
            amount=_two_places(row[3]),
            window_keys=row[4],
            window_amount=_two_places(row[5]),
        )
        for row in found
    )


def difference(expected: pa.Table, actual: pa.Table, contract: TableContract) -> Difference:
    """Compare two tables key by key over every column; rows count as a multiset.

    The key is the source's, so a row that is in two partitions at once, or was appended twice, is a
    repeated key.
    """
    key = contract.source_key
    actual = actual.select(list(contract.columns)).cast(expected.schema)
    # Mostly all is well, which two sorted tables show ten times as fast as a join.
    if expected.num_rows == actual.num_rows and expected.sort_by(key).equals(actual.sort_by(key)):
        return Difference(rows_expected=expected.num_rows, rows_actual=actual.num_rows)
    row = "struct_pack(" + ", ".join(f"{name} := {name}" for name in contract.columns) + ")"
    with engine() as database:
        database.register("expected_rows", expected)
        database.register("actual_rows", actual)
        # Lists sorted by the row itself compare as multisets.
        for side in ("expected", "actual"):
            database.execute(
                f"CREATE TEMP TABLE {side} AS SELECT {key} AS k, list({row} ORDER BY {row}) AS r "
                f"FROM {side}_rows GROUP BY {key}"
            )
        database.execute(
            "CREATE TEMP TABLE differing AS SELECT coalesce(e.k, a.k) AS k, e.r AS e, a.r AS a, CASE "
            "WHEN a.r IS NULL THEN 'missing' WHEN e.r IS NULL THEN 'extra' "
            "WHEN len(a.r) > len(e.r) THEN 'repeated' ELSE 'stale' END AS how "
            "FROM expected e FULL JOIN actual a ON e.k IS NOT DISTINCT FROM a.k "
            "WHERE e.r IS DISTINCT FROM a.r"
        )
        counts = dict(database.execute("SELECT how, count(*) FROM differing GROUP BY how").fetchall())
        examples = database.execute(
            "SELECT how, k, e::VARCHAR[], a::VARCHAR[] FROM differing ORDER BY k LIMIT ?", [MAX_EXAMPLES]
        ).fetchall()
    return Difference(
        rows_expected=expected.num_rows,
        rows_actual=actual.num_rows,
        missing=counts.get("missing", 0),
        extra=counts.get("extra", 0),
        stale=counts.get("stale", 0),
        repeated=counts.get("repeated", 0),
        examples=tuple(
            f"{how}: {key} {k}; expected {_shown(wanted)}; actual {_shown(seen)}"
            for how, k, wanted, seen in examples
        ),
    )


def shown(totals: tuple[PartitionTotals, ...]) -> str:
    """The totals of all partitions in one line."""
    return " | ".join(f"{total.partition}: {shown_one(total)}" for total in totals) or "no rows"


def shown_one(total: PartitionTotals | None) -> str:
    """The totals of one partition; None when there is no such partition."""
    if total is None:
        return "no such partition"
    return (
        f"{total.rows} rows, {total.keys} keys, sum {total.amount}; "
        f"in the window {total.window_keys} keys, sum {total.window_amount}"
    )


def _shown(rows: list[str] | None) -> str:
    return " and ".join(rows) if rows else "no row"


def _two_places(amount: Decimal | int) -> str:
    return str(Decimal(amount).quantize(Decimal("0.01")))
