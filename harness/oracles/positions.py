"""Where in a ledger a table stands: the operations after which the source was as the table is."""

from __future__ import annotations

import pyarrow as pa

from harness.ledger import DELETE
from harness.oracles.comparison import engine
from harness.oracles.fingerprints import row_columns, row_hashes, stretches_like


def operations_like(ledger: pa.Table, rows: pa.Table, *, key: str) -> list[int]:
    """The operations after which the ledger's state has the fingerprint of `rows`, in order.

    Equal states may recur; 0 is before the first operation. `rows` has the ledger's types.
    """
    like = stretches_like(ledger, rows, key=key)
    return [
        number for start, end in zip(like.starts, like.ends, strict=True) for number in range(start, end + 1)
    ]


def last_shown(ledger: pa.Table, rows: pa.Table) -> int:
    """The last operation whose row is among `rows`, 0 for none: where a table stands that is no state."""
    hashes = row_hashes(row_columns(ledger))
    with engine() as database:
        database.register("ledger", ledger)
        database.register("actual", rows)
        found = database.execute(
            f"SELECT max(operation) FROM (SELECT operation, {hashes} FROM ledger WHERE kind <> '{DELETE}') "  # noqa: S608 - the names are columns of the ledger itself
            f"SEMI JOIN (SELECT {hashes} FROM actual) USING (first, second)"
        ).fetchone()
    return found[0] or 0 if found else 0
