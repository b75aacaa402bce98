"""The orders table: its DDL, its contract with the sink, and the seeded stream of its transactions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pyarrow as pa

from harness.ledger import DELETE, INSERT, UPDATE, Operation
from harness.model import TableContract
from harness.source.days import MARKER_PARTITION, PARTITIONS, START_MS, TODAY, sql_time
from harness.source.draws import Draws
from harness.source.stream import DATABASE, INITIAL_BATCH, Statement

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
"""The columns of an order, in the order of the contract."""

CONTRACT = TableContract(
    name="orders",
    source=f"{DATABASE}.source_orders",
    sink="dwd.dwd_order_detail",
    columns=tuple(ROW_SCHEMA.names),
    source_key="order_id",
    partition="dt",
    amount="order_amount",
    time="update_time",
    append_only=False,
)

DDL = f"""
CREATE TABLE {CONTRACT.source} (
  order_id BIGINT NOT NULL PRIMARY KEY,
  user_id BIGINT,
  order_amount DECIMAL(18,2),
  order_status TINYINT,
  create_time DATETIME(3),
  update_time DATETIME(3),
  dt VARCHAR(10)
) ENGINE = InnoDB
"""

WEIGHTS = {
    "insert": 170,  # one to five rows in one statement; more in large transactions
    "update": 480,
    "move": 4,  # to another partition, with the same key
    "same_values": 60,  # no binlog row, no operation
    "rekey": 40,  # one UPDATE, two operations
    "delete": 110,
    "recreate": 30,  # delete and insert the same key in one transaction
    "revive": 40,  # insert a key that was deleted before
}
"""How often each kind of action is drawn: the mix of the workload, in one place."""

RECENT = 5
"""The skew: a draw u of [0, 1) picks the order that u**RECENT of the day's live orders are younger than."""

STATUSES = 6
_INSERT = f"INSERT INTO {CONTRACT.source} ({', '.join(CONTRACT.columns)}) VALUES "  # noqa: S608 - names are ours


class OrderRow(NamedTuple):
    """An order as integers and text: the amount in cents, times as epoch milliseconds in UTC."""

    order_id: int
    user_id: int
    amount_cents: int
    order_status: int
    create_ms: int
    update_ms: int
    dt: str


class OrderStream:
    """Transactions on the orders table. The same seed gives the same transactions, one after another.

    Values are integers and texts of this file, so their SQL needs no escaping. `largest` is the most
    operations that a transaction may have.
    """

    def __init__(self, *, seed: int, largest: int) -> None:
        self._draws = Draws(seed=seed, table=CONTRACT.name)
        self._largest = largest
        # A statement costs more than a row: flat out, transactions are large and so are their inserts.
        self._longest_insert = max(5, largest // 10)
        self._now_ms = START_MS
        self._next_key = 1
        self._rows: dict[int, OrderRow] = {}
        self._live: dict[str, list[int]] = {day: [] for day in PARTITIONS}  # oldest first
        self._gone: list[int] = []
        self._actions = {
            "insert": self._insert,
            "update": self._update,
            "move": self._move,
            "same_values": self._same_values,
            "rekey": self._rekey,
            "delete": self._delete,
            "recreate": self._recreate,
            "revive": self._revive,
        }
        # Each name as often as its weight: one draw is then one look-up.
        self._mix = [name for name, weight in WEIGHTS.items() for _ in range(weight)]

    def initial(self, rows: int) -> Iterator[tuple[Statement, ...]]:
        """Transactions that insert the first rows, last changed within the two hours before START."""
        while rows > 0:
            batch = min(rows, INITIAL_BATCH)
            fresh = [
                self._row(self._new_key(), self._draws.first_ms(), self._draws.first_day())
                for _ in range(batch)
            ]
            yield (self._insert_rows(fresh),)
            rows -= batch

    def transaction(self) -> tuple[Statement, ...]:
        """The next transaction: one to `largest` operations."""
        self._now_ms += 1 + self._draws.below(9)
        remaining = 1 + self._draws.below(self._largest)
        statements: list[Statement] = []
        while remaining > 0:
            name = self._mix[self._draws.below(len(self._mix))]
            if not self._live[TODAY] or (remaining == 1 and name in ("rekey", "recreate")):
                name = "insert"
            for statement in self._actions[name](remaining):
                statements.append(statement)
                remaining -= len(statement.operations)
        return tuple(statements)

    def marker(self, number: int) -> Statement:
        """A fence's marker: a row of its own that no later transaction touches. Draws nothing."""
        row = OrderRow(-number, 0, 0, 0, self._now_ms, self._now_ms, MARKER_PARTITION)
        return Statement(_INSERT + _values(row), 1, (Operation(INSERT, row),))

    def withdraw(self, marker: Statement) -> Statement:
        """Delete the row of a marker again. Draws nothing."""
        ((_, row),) = marker.operations
        key = row[0]
        return Statement(_delete_text(int(key)), 1, (Operation(DELETE, row),))

    def bulk_update(self) -> Statement:
        """One UPDATE that changes every order but the markers. Draws nothing.

        Its rows are logged by their keys, since InnoDB keeps them so and no key changes. The next status
        always differs: MySQL logs no row for one that stays as it is.
        """
        self._now_ms += 1
        for key in sorted(self._rows):
            row = self._rows.pop(key)
            self._rows[key] = row._replace(
                order_status=(row.order_status + 1) % STATUSES, update_ms=self._now_ms
            )
        text = (
            f"UPDATE {CONTRACT.source} SET order_status = (order_status + 1) % {STATUSES}, "  # noqa: S608 - ours
            f"update_time = {sql_time(self._now_ms)} WHERE order_id > 0"
        )
        operations = tuple(Operation(UPDATE, row) for row in self._rows.values())
        return Statement(text, len(operations), operations)

    def _insert(self, remaining: int) -> list[Statement]:
        count = min(remaining, 1 + self._draws.below(self._longest_insert))
        return [self._insert_rows([self._fresh(self._now_ms) for _ in range(count)])]

    def _update(self, _remaining: int) -> list[Statement]:
        before = self._pick()
        # The next status always differs, so the row changes even when it was updated this very millisecond.
        after = before._replace(order_status=(before.order_status + 1) % STATUSES, update_ms=self._now_ms)
        if self._draws.fraction() < 0.5:
            after = after._replace(amount_cents=self._amount())
        return [self._change(before, after)]

    def _move(self, _remaining: int) -> list[Statement]:
        before = self._take()
        after = before._replace(dt=self._draws.other_day(before.dt), update_ms=self._now_ms)
        self._remember(after)
        return [Statement(_update_text(before, after), 1, (Operation(UPDATE, after),))]

    def _same_values(self, _remaining: int) -> list[Statement]:
        row = self._pick()
        return [Statement(_update_text(row, row), 0, ())]

    def _rekey(self, _remaining: int) -> list[Statement]:
        before = self._take()
        self._gone.append(before.order_id)
        after = before._replace(order_id=self._new_key(), update_ms=self._now_ms)
        if self._draws.fraction() < 0.05:
            after = after._replace(dt=self._draws.other_day(before.dt))
        self._remember(after)
        operations = (Operation(DELETE, before), Operation(INSERT, after))
        return [Statement(_update_text(before, after), 1, operations)]

    def _delete(self, _remaining: int) -> list[Statement]:
        row = self._take()
        self._gone.append(row.order_id)
        return [_delete_statement(row)]

    def _recreate(self, _remaining: int) -> list[Statement]:
        row = self._take()
        return [_delete_statement(row), self._insert_rows([self._row(row.order_id, self._now_ms, row.dt)])]

    def _revive(self, remaining: int) -> list[Statement]:
        if not self._gone:
            return self._insert(remaining)
        key = self._gone.pop(self._draws.below(len(self._gone)))
        return [self._insert_rows([self._row(key, self._now_ms, self._draws.day())])]

    def _insert_rows(self, rows: list[OrderRow]) -> Statement:
        """One INSERT: the binlog keeps the order of VALUES."""
        for row in rows:
            self._remember(row)
        text = _INSERT + ", ".join(_values(row) for row in rows)
        return Statement(text, len(rows), tuple(Operation(INSERT, row) for row in rows))

    def _change(self, before: OrderRow, after: OrderRow) -> Statement:
        self._rows[after.order_id] = after
        return Statement(_update_text(before, after), 1, (Operation(UPDATE, after),))

    def _pick(self) -> OrderRow:
        live = self._live_of_a_day()
        return self._rows[live[self._skewed(live)]]

    def _take(self) -> OrderRow:
        live = self._live_of_a_day()
        return self._rows.pop(live.pop(self._skewed(live)))

    def _live_of_a_day(self) -> list[int]:
        """The live orders of today, seldom those of another day; never an empty list."""
        return self._live[self._draws.day()] or next(live for live in self._live.values() if live)

    def _skewed(self, live: list[int]) -> int:
        younger = int(len(live) * self._draws.fraction() ** RECENT)
        return len(live) - 1 - younger

    def _remember(self, row: OrderRow) -> None:
        self._rows[row.order_id] = row
        self._live[row.dt].append(row.order_id)

    def _fresh(self, at_ms: int) -> OrderRow:
        return self._row(self._new_key(), at_ms, self._draws.day())

    def _row(self, key: int, at_ms: int, day: str) -> OrderRow:
        return OrderRow(key, 1 + self._draws.below(50_000), self._amount(), 0, at_ms, at_ms, day)

    def _new_key(self) -> int:
        key = self._next_key
        self._next_key += 1
        return key

    def _amount(self) -> int:
        return 1 + self._draws.below(500_000)


def _amount(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def _values(row: OrderRow) -> str:
    key, user, cents, status, created, updated, day = row
    return f"({key}, {user}, {_amount(cents)}, {status}, {sql_time(created)}, {sql_time(updated)}, '{day}')"


_LITERALS: tuple[Callable[[Any], str], ...] = (
    str,
    str,
    _amount,
    str,
    sql_time,
    sql_time,
    "'{}'".format,
)
"""How each column of a row is written in SQL."""


def _update_text(before: OrderRow, after: OrderRow) -> str:
    """Set what differs; of two equal rows, set all to what it is."""
    changed = [index for index in range(len(after)) if before[index] != after[index]] or range(len(after))
    assignments = ", ".join(f"{CONTRACT.columns[i]} = {_LITERALS[i](after[i])}" for i in changed)
    return f"UPDATE {CONTRACT.source} SET {assignments} WHERE order_id = {before.order_id}"  # noqa: S608 - ours


def _delete_statement(row: OrderRow) -> Statement:
    return Statement(_delete_text(row.order_id), 1, (Operation(DELETE, row),))


def _delete_text(key: int) -> str:
    return f"DELETE FROM {CONTRACT.source} WHERE order_id = {key}"  # noqa: S608 - values are ours
