"""Where in a ledger a table stands: the operations after which the source was as the table is."""

from __future__ import annotations

import pyarrow as pa

from harness.ledger import DELETE, OPERATION_SCHEMA
from harness.oracles.comparison import engine


def operations_like(ledger: pa.Table, rows: pa.Table, *, key: str) -> list[int]:
    """The operations after which the ledger's state has the fingerprint of `rows`, in order.

    A fingerprint is the sum of the rows' hashes and their number, whatever their order: an operation
    adds its row's and takes that of the row before it. Equal states have equal fingerprints, and may
    recur; equal fingerprints are as good as equal states, but not proof. `rows` has the ledger's types.
    """
    row = f"hash({', '.join(_columns(ledger))})::HUGEINT"  # 64 bits each: so many sums fit into 128
    with engine() as database:
        database.register("ledger", ledger)
        database.register("actual", rows)
        found = database.execute(
            f"""
            WITH hashed AS (
              SELECT operation, "{key}" AS key, kind <> '{DELETE}' AS lives,
                     CASE WHEN kind <> '{DELETE}' THEN {row} ELSE 0 END AS print
              FROM ledger
            ), steps AS (
              SELECT operation, print - coalesce(lag(print) OVER earlier, 0) AS print,
                     lives::INT - coalesce(lag(lives) OVER earlier, false)::INT AS rows
              FROM hashed WINDOW earlier AS (PARTITION BY key ORDER BY operation)
            ), states AS (
              SELECT operation, sum(print) OVER until AS print, sum(rows) OVER until AS rows
              FROM steps WINDOW until AS (ORDER BY operation)
            ), wanted AS (
              SELECT coalesce(sum({row}), 0) AS print, count(*) AS rows FROM actual
            )
            SELECT operation FROM states JOIN wanted USING (print, rows) ORDER BY operation
            """  # noqa: S608 - the names are columns of the ledger itself
        ).fetchall()
    return [number for (number,) in found]


def last_shown(ledger: pa.Table, rows: pa.Table) -> int:
    """The last operation whose row is among `rows`, 0 for none: where a table stands that is no state."""
    columns = ", ".join(_columns(ledger))
    with engine() as database:
        database.register("ledger", ledger)
        database.register("actual", rows)
        found = database.execute(
            f"SELECT max(operation) FROM ledger WHERE kind <> '{DELETE}' "  # noqa: S608 - as above
            f"AND hash({columns}) IN (SELECT hash({columns}) FROM actual)"
        ).fetchone()
    return found[0] or 0 if found else 0


def _columns(ledger: pa.Table) -> list[str]:
    return [f'"{name}"' for name in ledger.column_names if name not in OPERATION_SCHEMA.names]
