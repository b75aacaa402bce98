"""A source database in memory that knows the workload's few statements and can lose connections."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

import pymysql
from pymysql.constants import CLIENT

TABLES = {
    "shop.source_orders": (
        "order_id",
        "user_id",
        "order_amount",
        "order_status",
        "create_time",
        "update_time",
        "dt",
    ),
    "shop.behavior_log": ("log_id", "user_id", "event_type", "event_time", "dt"),
}
"""The columns of each table; the first is its key."""
LOST = pymysql.err.OperationalError(2013, "Lost connection to MySQL server during query")

Row = tuple[str, ...]
"""A row as the SQL literals it was written with, in the order of its table's columns."""


class FakeServer:
    """Commits whole transactions and keeps the row changes they made, in order, as a binlog does: each the
    number of its transaction, its table, its kind and its row.

    `losses` maps the n-th packet (from 1) to where its connection is lost: "before" it runs,
    "executed" but not committed, or "committed" but not acknowledged.
    """

    def __init__(self, *, losses: dict[int, str] | None = None) -> None:
        self.rows: dict[str, dict[str, Row]] = {table: {} for table in TABLES}
        self.number = 0
        self.binlog: list[tuple[int, str, str, Row]] = []
        self.losses = losses or {}
        self.packets = 0
        self.sessions: dict[int, FakeConnection] = {}
        self.killed: list[int] = []
        self.reachable = True
        self.client_flag = CLIENT.MULTI_STATEMENTS
        self.commit_gate = threading.Event()
        self.commit_gate.set()
        self.after_loss: Callable[[], None] = lambda: None
        self._next_thread = 1

    def connect(self) -> FakeConnection:
        if not self.reachable:
            raise pymysql.err.OperationalError(2003, "Can't connect to MySQL server")
        connection = FakeConnection(self, self._next_thread)
        self.sessions[self._next_thread] = connection
        self._next_thread += 1
        return connection

    def changes(self, table: str) -> list[tuple[str, Row]]:
        """One table's changes in the binlog: kind and row."""
        return [(kind, row) for _, changed, kind, row in self.binlog if changed == table]

    def restart(self) -> None:
        """End all sessions and count connections from 1 again, as a server does."""
        self.sessions.clear()
        self._next_thread = 1


class FakeConnection:
    """The part of pymysql's Connection that the workload uses; its own cursor."""

    def __init__(self, server: FakeServer, thread: int) -> None:
        self._server = server
        self._thread = thread
        self._host = f"10.0.0.1:{40000 + id(self) % 20000}"
        self._results: list[int] = []
        self._answer: list[tuple[object, ...]] = []
        self._loses = ""
        self._began = False
        self.client_flag = server.client_flag
        self.open = True

    def __enter__(self) -> FakeConnection:
        return self

    def __exit__(self, *_: object) -> None: ...

    def cursor(self) -> FakeConnection:
        return self

    def autocommit(self, on: bool) -> None:
        assert not on

    def fetchall(self) -> list[tuple[object, ...]]:
        return self._answer

    def execute(self, text: str) -> None:
        self._answer = []
        if match := re.search(r"processlist WHERE id = (\S+)", text):
            mine = match[1] == "CONNECTION_ID()"
            found = self._server.sessions.get(self._thread if mine else int(match[1]))
            if found:
                self._answer = [(found._thread, found._host)] if mine else [(found._host,)]
        elif text.startswith("KILL"):
            thread = int(text.split()[1])
            self._server.killed.append(thread)
            del self._server.sessions[thread]
        elif text.endswith("FOR UPDATE"):
            self._answer = [(self._server.number,)]
        elif not text.lstrip().startswith(
            ("CREATE", "SET SESSION wait_timeout", "INSERT INTO shop.harness_transactions")
        ):
            raise AssertionError(f"the fake does not know: {text}")

    def query(self, packet: str) -> int:
        self._server.packets += 1
        self._loses = self._server.losses.get(self._server.packets, "")
        if self._loses == "before":
            self._lose()
        self._begin()
        self._results = [self._change(text) for text in packet.split(";\n")]
        return self._results.pop(0)

    def next_result(self) -> int:
        if self._loses == "executed" and len(self._results) == 1:
            self._lose()
        return self._results.pop(0)

    def ping(self, *, reconnect: bool) -> None:
        assert not reconnect

    def commit(self) -> None:
        self._server.commit_gate.wait(30)
        if self._began:
            self._server.rows, self._server.number = self._rows, self._number
            self._server.binlog += [(self._number, *change) for change in self._changes]
            self._began = False
        if self._loses == "committed":
            self._lose()

    def close(self) -> None:
        """A lost session stays at the server until it is killed; a closed one goes."""
        self.open = False
        if not self._loses:
            self._server.sessions.pop(self._thread, None)

    def _begin(self) -> None:
        self._began = True
        self._rows = {table: dict(rows) for table, rows in self._server.rows.items()}
        self._number = self._server.number
        self._changes: list[tuple[str, str, Row]] = []

    def _lose(self) -> None:
        self._server.after_loss()
        raise LOST

    def _change(self, text: str) -> int:
        """Run one statement; return how many rows it changed."""
        if match := re.fullmatch(r"UPDATE shop.harness_transactions SET number = (\d+) WHERE id = 1", text):
            self._number = int(match[1])
            return 1
        if match := re.fullmatch(r"INSERT INTO (\S+) \((.*?)\) VALUES (.*)", text):
            table, columns, values = match.groups()
            assert tuple(columns.split(", ")) == TABLES[table]
            return self._insert(
                table, [tuple(row.split(", ")) for row in re.findall(r"\(([^()]*)\)", values)]
            )
        if match := re.fullmatch(r"DELETE FROM (\S+) WHERE (\S+) = (\S+)", text):
            table, column, key = match.groups()
            assert column == TABLES[table][0]
            row = self._rows[table].pop(key, None)
            self._changes += [(table, "delete", row)] if row else []
            return 1 if row else 0
        if match := re.fullmatch(
            r"UPDATE (\S+) SET order_status = \(order_status \+ 1\) % 6, update_time = (.*) "
            r"WHERE order_id > 0",
            text,
        ):
            return self._update_all(*match.groups())
        match = re.fullmatch(r"UPDATE (\S+) SET (.*) WHERE (\S+) = (\S+)", text)
        assert match, f"the fake does not know: {text}"
        table, assignments, column, key = match.groups()
        assert column == TABLES[table][0]
        return self._update(table, key, dict(text.split(" = ") for text in assignments.split(", ")))

    def _insert(self, table: str, rows: list[Row]) -> int:
        for row in rows:
            assert row[0] not in self._rows[table], f"duplicate key {row[0]}"
            self._rows[table][row[0]] = row
            self._changes.append((table, "insert", row))
        return len(rows)

    def _update_all(self, table: str, time: str) -> int:
        """As InnoDB does: by the key, whatever the order in which rows were inserted."""
        keys = sorted((key for key in self._rows[table] if int(key) > 0), key=int)
        status = TABLES[table].index("order_status")
        return sum(
            self._update(
                table,
                key,
                {"order_status": str((int(self._rows[table][key][status]) + 1) % 6), "update_time": time},
            )
            for key in keys
        )

    def _update(self, table: str, key: str, assignments: dict[str, str]) -> int:
        rows = self._rows[table]
        before = rows.get(key)
        if before is None:
            return 0
        after = tuple((dict(zip(TABLES[table], before, strict=True)) | assignments).values())
        if after == before:
            return 0
        if after[0] == before[0]:
            self._changes.append((table, "update", after))
        else:
            assert after[0] not in rows, f"duplicate key {after[0]}"
            self._changes += [(table, "delete", before), (table, "insert", after)]
        del rows[key]
        rows[after[0]] = after
        return 1
