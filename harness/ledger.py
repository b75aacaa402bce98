"""The ledger: the exact, ordered record of what the source committed, one operation per binlog row change."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import duckdb
import pyarrow as pa

INSERT, UPDATE, DELETE = "insert", "update", "delete"

Row: TypeAlias = tuple[int | str, ...]
"""A source row in the order of its table's columns: integers and texts; a decimal is its unscaled value
(cents, of two places), a timestamp epoch milliseconds in UTC."""

OPERATION_SCHEMA = pa.schema(
    [
        ("operation", pa.int64()),
        ("transaction", pa.int64()),
        ("committed_at_ms", pa.int64()),
        ("kind", pa.string()),
    ]
)
"""What the ledger says of an operation beside its row."""

_SEAL_AT = 8192


def schema_for(row_schema: pa.Schema) -> pa.Schema:
    """A ledger's columns: the operation, then the row after an insert or update, or before a delete."""
    return pa.schema([*OPERATION_SCHEMA, *row_schema])


class Operation(NamedTuple):
    """One row change: its kind, and the row after it (before it, for a delete)."""

    kind: str
    row: Row


_Entry: TypeAlias = tuple[int, int, str, Row]


class Ledger:
    """One table's ledger, append-only. One thread appends, any thread may take a `table`."""

    def __init__(self, row_schema: pa.Schema) -> None:
        self._schema = schema_for(row_schema)
        self._lock = threading.Lock()
        self._sealed: list[pa.RecordBatch] = []
        self._sealed_operations = 0
        self._pending: list[_Entry] = []

    def __len__(self) -> int:
        with self._lock:
            return self._sealed_operations + len(self._pending)

    def append(self, operations: Sequence[Operation], *, transaction: int, committed_at_ms: int) -> None:
        """Record a table's part of a committed transaction whole, in the order of the binlog."""
        with self._lock:
            self._pending.extend((transaction, committed_at_ms, kind, row) for kind, row in operations)
            if len(self._pending) >= _SEAL_AT:
                # Python rows take ten times the memory of Arrow's: a long run must not grow so.
                self._sealed.append(_batch(self._pending, self._schema, first=self._sealed_operations + 1))
                self._sealed_operations += len(self._pending)
                self._pending = []

    def table(self) -> pa.Table:
        """Everything recorded so far, in the columns of `schema_for`; whole transactions only."""
        with self._lock:
            batches, pending, first = list(self._sealed), list(self._pending), self._sealed_operations + 1
        if pending:
            batches.append(_batch(pending, self._schema, first=first))
        return pa.Table.from_batches(batches, schema=self._schema)


def _batch(pending: list[_Entry], schema: pa.Schema, *, first: int) -> pa.RecordBatch:
    transactions, committed, kinds, rows = zip(*pending, strict=True)
    numbers = range(first, first + len(pending))
    columns = (numbers, transactions, committed, kinds, *zip(*rows, strict=True))
    arrays = [_array(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(values: Sequence[int | str], kind: pa.DataType) -> pa.Array:
    if not pa.types.is_decimal128(kind):
        return pa.array(values, kind)
    # Unscaled values are what a decimal's buffers hold: take the buffers, divide nothing.
    unscaled = pa.array(values, pa.int64()).cast(pa.decimal128(19, 0))
    return pa.Array.from_buffers(kind, len(values), unscaled.buffers())


def state_after(ledger: pa.Table, operation: int, *, key: str) -> pa.Table:
    """The rows of the source right after `operation`, sorted by `key`; after 0 there are none.

    Pure: the last operation of each key up to `operation` counts, unless it is a delete. Takes any
    ledger whose columns begin as OPERATION_SCHEMA; returns its other columns. Text keys are sorted by
    their bytes in UTF-8. Raises ValueError when the ledger does not reach that far, since the state is
    not known then.
    """
    if not 0 <= operation <= ledger.num_rows:
        raise ValueError(
            f"the ledger holds operations 1 to {ledger.num_rows}; state after {operation} unknown"
        )
    columns = [name for name in ledger.column_names if name not in OPERATION_SCHEMA.names]
    schema = pa.schema([ledger.schema.field(name) for name in columns])
    with duckdb.connect(":default:").cursor() as database:  # a database of its own takes 20 ms
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
