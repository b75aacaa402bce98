"""The ledger: the exact, ordered record of what the source committed, one operation per binlog row change."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

import duckdb
import pyarrow as pa

INSERT, UPDATE, DELETE = "insert", "update", "delete"

ROW_SCHEMA = pa.schema(
    [
        ("order_id", pa.int64()),
        ("user_id", pa.int64()),
        ("order_amount", pa.decimal128(18, 2)),
        ("order_status", pa.int8()),
        ("create_time", pa.timestamp("ms")),
        ("update_time", pa.timestamp("ms")),
        ("dt", pa.string()),
    ]
)
"""The columns of a source row, in the order of the contract."""

OPERATION_SCHEMA = pa.schema(
    [
        ("operation", pa.int64()),
        ("transaction", pa.int64()),
        ("committed_at_ms", pa.int64()),
        ("kind", pa.string()),
    ]
)
"""What the ledger says of an operation beside its row."""

SCHEMA = pa.schema([*OPERATION_SCHEMA, *ROW_SCHEMA])
"""The ledger's columns: the operation, then the row after an insert or update, or before a delete."""

_SEAL_AT = 8192


class Row(NamedTuple):
    """A source row as integers and text: the amount in cents, times as epoch milliseconds in UTC."""

    order_id: int
    user_id: int
    amount_cents: int
    order_status: int
    create_ms: int
    update_ms: int
    dt: str


class Operation(NamedTuple):
    """One row change: its kind, and the row after it (before it, for a delete)."""

    kind: str
    row: Row


class Ledger:
    """Append-only. One thread appends, any thread may take a `table`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sealed: list[pa.RecordBatch] = []
        self._sealed_operations = 0
        self._pending: list[tuple[int, int, str, Row]] = []

    def __len__(self) -> int:
        with self._lock:
            return self._sealed_operations + len(self._pending)

    def append(self, operations: Sequence[Operation], *, transaction: int, committed_at_ms: int) -> None:
        """Record a committed transaction whole, in the order of the binlog."""
        with self._lock:
            self._pending.extend((transaction, committed_at_ms, kind, row) for kind, row in operations)
            if len(self._pending) >= _SEAL_AT:
                # Python rows take ten times the memory of Arrow's: a long run must not grow so.
                self._sealed.append(_batch(self._pending, first=self._sealed_operations + 1))
                self._sealed_operations += len(self._pending)
                self._pending = []

    def table(self) -> pa.Table:
        """Everything recorded so far, in SCHEMA; whole transactions only."""
        with self._lock:
            batches, pending, first = list(self._sealed), list(self._pending), self._sealed_operations + 1
        if pending:
            batches.append(_batch(pending, first=first))
        return pa.Table.from_batches(batches, schema=SCHEMA)


def _batch(pending: list[tuple[int, int, str, Row]], *, first: int) -> pa.RecordBatch:
    transactions, committed, kinds, rows = zip(*pending, strict=True)
    keys, users, cents, statuses, created, updated, partitions = zip(*rows, strict=True)
    values = (range(first, first + len(pending)), transactions, committed, kinds, keys, users, cents)
    arrays = [pa.array(column) for column in values]
    arrays[-1] = _amounts(arrays[-1])
    for column, field in ((statuses, 3), (created, 4), (updated, 5), (partitions, 6)):
        arrays.append(pa.array(column, ROW_SCHEMA.field(field).type))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _amounts(cents: pa.Array) -> pa.Array:
    """Cents are the unscaled values of a decimal with two places: take the buffers, divide nothing."""
    unscaled = cents.cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(ROW_SCHEMA.field("order_amount").type, len(cents), unscaled.buffers())


def state_after(ledger: pa.Table, operation: int, *, key: str) -> pa.Table:
    """The rows of the source right after `operation`, sorted by `key`; after 0 there are none.

    Pure: the last operation of each key up to `operation` counts, unless it is a delete. Takes any
    ledger whose columns begin as OPERATION_SCHEMA; returns its other columns. Raises ValueError when
    the ledger does not reach that far, since the state is not known then.
    """
    if not 0 <= operation <= ledger.num_rows:
        raise ValueError(
            f"the ledger holds operations 1 to {ledger.num_rows}; state after {operation} unknown"
        )
    columns = [name for name in ledger.column_names if name not in OPERATION_SCHEMA.names]
    schema = pa.schema([ledger.schema.field(name) for name in columns])
    with duckdb.connect() as database:
        database.register("ledger", ledger)
        state: pa.Table = database.sql(
            f"""
            SELECT {", ".join(f'l."{name}"' for name in columns)}
            FROM ledger AS l
            JOIN (SELECT max(operation) AS operation FROM ledger WHERE operation <= ? GROUP BY "{key}") AS o
              ON l.operation = o.operation
            WHERE l.kind <> '{DELETE}'
            ORDER BY l."{key}"
            """,  # noqa: S608 - the names are columns of the ledger itself
            params=[operation],
        ).to_arrow_table()
    return state.cast(schema)
