"""A table's stream: the seeded sequence of its transactions, and what each statement must change."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol, runtime_checkable

from harness.ledger import Operation

DATABASE = "shop"

INITIAL_BATCH = 2000
"""Rows in each transaction of the first rows: larger ones are hardly faster."""


class Statement(NamedTuple):
    """One SQL statement, how many rows it must change, and the operations that makes in the binlog."""

    text: str
    changed: int
    operations: tuple[Operation, ...]


class Stream(Protocol):
    """Statements on one table. The same seed gives the same transactions, one after another."""

    def initial(self, rows: int) -> Iterator[tuple[Statement, ...]]:
        """Transactions that insert the first rows."""
        ...

    def transaction(self) -> tuple[Statement, ...]:
        """The next transaction: one operation at least."""
        ...

    def marker(self, number: int) -> Statement:
        """Fence `number`'s marker: a row of its own that no later transaction touches. Draws nothing."""
        ...


@runtime_checkable
class RewritableStream(Stream, Protocol):
    """Statements on a table whose rows may be changed and deleted, unlike those of an append-only one."""

    def withdraw(self, marker: Statement) -> Statement:
        """Delete the row of a marker again. Draws nothing."""
        ...

    def bulk_update(self) -> Statement:
        """One UPDATE that changes every row but the markers, in the order in which it is logged. Draws
        nothing.
        """
        ...
