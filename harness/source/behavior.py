"""The behavior log of guide §3.3: its DDL, its contract with the sink, and its insert-only seeded stream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pyarrow as pa

from harness.ledger import INSERT, Operation
from harness.model import AggregateContract, TableContract
from harness.source.days import MARKER_PARTITION, START_MS, sql_time
from harness.source.draws import Draws
from harness.source.stream import DATABASE, INITIAL_BATCH, Statement

ROW_SCHEMA = pa.schema(
    [
        ("log_id", pa.string()),
        ("user_id", pa.int64()),
        ("event_type", pa.string()),
        ("event_time", pa.timestamp("ms")),
        ("dt", pa.string()),
    ]
)
"""The columns of a log row, in the order of the contract."""

CONTRACT = TableContract(
    name="behavior-log",
    source=f"{DATABASE}.behavior_log",
    sink="dwd.dwd_behavior_log",
    columns=tuple(ROW_SCHEMA.names),
    source_key="log_id",
    partition="dt",
    amount="user_id",  # a log has no amount: the sum of its users' ids is a checksum
    time="event_time",
    append_only=True,
    aggregate=AggregateContract(
        name="behavior-totals",
        sink="dwd.dwd_behavior_totals",
        groups=("dt", "event_type"),
        count="events",
        total="users",
        summed="user_id",
    ),
)

# The key is compared by its bytes, as the ledger and the sink do; the server's collation ignores case.
DDL = f"""
CREATE TABLE {CONTRACT.source} (
  log_id VARCHAR(40) COLLATE utf8mb4_bin NOT NULL PRIMARY KEY,
  user_id BIGINT,
  event_type VARCHAR(20),
  event_time DATETIME(3),
  dt VARCHAR(10)
) ENGINE = InnoDB
"""

EVENT_TYPES = ("view", "view", "view", "view", "click", "click", "search", "cart", "favorite", "pay")
"""What users do; a type is drawn as often as it stands here."""

_INSERT = f"INSERT INTO {CONTRACT.source} ({', '.join(CONTRACT.columns)}) VALUES "  # noqa: S608 - names are ours


class LogRow(NamedTuple):
    """A log row as integers and text: the time as epoch milliseconds in UTC."""

    log_id: str
    user_id: int
    event_type: str
    event_ms: int
    dt: str


class BehaviorStream:
    """Transactions that insert into the log. The same seed gives the same ones, one after another.

    A row is never updated or deleted: Paimon's append writer ends the job at a -U or -D. Values are
    integers and texts of this file, so their SQL needs no escaping. `largest` is the most operations
    that a transaction may have.
    """

    def __init__(self, *, seed: int, largest: int) -> None:
        self._draws = Draws(seed=seed, table=CONTRACT.name)
        self._largest = largest
        self._longest_insert = (largest + 1) // 2
        self._now_ms = START_MS
        self._next_number = 1

    def initial(self, rows: int) -> Iterator[tuple[Statement, ...]]:
        """Transactions that insert the first rows, logged within the two hours before START."""
        draws = self._draws
        while rows > 0:
            batch = min(rows, INITIAL_BATCH)
            yield (_insert([self._row(draws.first_ms(), draws.first_day()) for _ in range(batch)]),)
            rows -= batch

    def transaction(self) -> tuple[Statement, ...]:
        """The next transaction: a few INSERTs with one to `largest` rows in all."""
        self._now_ms += 1 + self._draws.below(9)
        remaining = 1 + self._draws.below(self._largest)
        statements = []
        while remaining > 0:
            count = min(remaining, 1 + self._draws.below(self._longest_insert))
            day = self._draws.day()  # one for the statement: a late device sends all it kept at once
            statements.append(_insert([self._row(self._now_ms, day) for _ in range(count)]))
            remaining -= count
        return tuple(statements)

    def marker(self, number: int) -> Statement:
        """A fence's marker: a row of its own. Draws nothing."""
        return _insert([LogRow(f"marker-{number}", 0, "marker", self._now_ms, MARKER_PARTITION)])

    def _row(self, at_ms: int, day: str) -> LogRow:
        number = self._next_number
        self._next_number += 1
        user = 1 + self._draws.below(50_000)
        return LogRow(f"l-{number:09d}", user, EVENT_TYPES[self._draws.below(len(EVENT_TYPES))], at_ms, day)


def _insert(rows: list[LogRow]) -> Statement:
    """One INSERT: the binlog keeps the order of VALUES."""
    text = _INSERT + ", ".join(
        f"('{key}', {user}, '{event}', {sql_time(at_ms)}, '{day}')" for key, user, event, at_ms, day in rows
    )
    return Statement(text, len(rows), tuple(Operation(INSERT, row) for row in rows))
