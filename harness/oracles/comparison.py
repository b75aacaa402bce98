"""What the oracles share: rows and totals of the ledger, and key-by-key differences, in DuckDB."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from harness.ledger import state_after
from harness.model import Evidence, Fence, PartitionTotals, TableContract, TimeWindow

MAX_EXAMPLES = 20


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How a table differs from what it should hold, counted in source keys, with examples.

    `missing`: keys that should be there and aren't. `extra`: keys that should not be there.
    `stale`: keys whose row differs. `repeated`: keys with more than one row.
    """

    rows_expected: int
    rows_actual: int
    missing: int
    extra: int
    stale: int
    repeated: int
    examples: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        return not (self.missing or self.extra or self.stale or self.repeated)

    def __str__(self) -> str:
        return (
            f"{self.missing} keys missing, {self.extra} extra, {self.stale} with another row, "
            f"{self.repeated} with more than one row"
        )


@dataclass(frozen=True, kw_only=True)
class AgainstSource:
    """The ledger's state at a fence, and how the source that was read there compares.

    `rows` is None when the source's rows were not kept.
    """

    expected: pa.Table
    sums: tuple[PartitionTotals, ...]
    sums_agree: bool
    rows: Difference | None


def ledger_of(evidence: Evidence) -> pa.Table:
    """The whole ledger of a run."""
    return pq.read_table(Path(evidence.folder) / "ledger.parquet")


def rows_of(evidence: Evidence, name: str) -> pa.Table:
    """The rows that a fence kept under this file name."""
    return pq.read_table(Path(evidence.folder) / name)


def totals(rows: pa.Table, window: TimeWindow, contract: TableContract) -> tuple[PartitionTotals, ...]:
    """The guide's §5.1 aggregates of these rows, per partition, sorted by partition."""
    key, amount, inside = contract.source_key, contract.amount, f"{contract.time} BETWEEN ? AND ?"
    with duckdb.connect() as engine:
        engine.register("rows", rows)
        found = engine.execute(
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

    The key is the source's, so a row that is in two partitions at once is a repeated key.
    """
    key = contract.source_key
    actual = actual.select(list(contract.columns)).cast(expected.schema)
    row = "struct_pack(" + ", ".join(f"{name} := {name}" for name in contract.columns) + ")"
    with duckdb.connect() as engine:
        engine.register("expected_rows", expected)
        engine.register("actual_rows", actual)
        # Lists sorted by the row itself compare as multisets.
        for side in ("expected", "actual"):
            engine.execute(
                f"CREATE TABLE {side} AS SELECT {key} AS k, "
                f"list({row}::VARCHAR ORDER BY {row}::VARCHAR) AS r "
                f"FROM {side}_rows GROUP BY {key}"
            )
        engine.execute(
            "CREATE TABLE differing AS SELECT coalesce(e.k, a.k) AS k, e.r AS e, a.r AS a, CASE "
            "WHEN a.k IS NULL THEN 'missing' WHEN e.k IS NULL THEN 'extra' "
            "WHEN len(a.r) > len(e.r) THEN 'repeated' ELSE 'stale' END AS how "
            "FROM expected e FULL JOIN actual a ON e.k = a.k WHERE e.r IS DISTINCT FROM a.r"
        )
        counts = dict(engine.execute("SELECT how, count(*) FROM differing GROUP BY how").fetchall())
        examples = engine.execute(
            "SELECT how, k, e, a FROM differing ORDER BY k LIMIT ?", [MAX_EXAMPLES]
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


def against_source(evidence: Evidence, ledger: pa.Table, fence: Fence) -> AgainstSource:
    """Compare the ledger with the source at a fence, in the guide's sums and row by row.

    Both, since equal sums hide a changed status or two swapped amounts.
    """
    contract = evidence.contract
    expected = state_after(ledger, fence.mark.operation, key=contract.source_key)
    sums = totals(expected, fence.window, contract)
    kept = rows_of(evidence, fence.source_rows) if fence.source_rows else None
    return AgainstSource(
        expected=expected,
        sums=sums,
        sums_agree=sums == fence.source.totals and not fence.source.error,
        rows=None if kept is None else difference(expected, kept, contract),
    )


def _shown(rows: list[str] | None) -> str:
    return " and ".join(rows) if rows else "no row"


def _two_places(amount: Decimal | int) -> str:
    return str(Decimal(amount).quantize(Decimal("0.01")))
