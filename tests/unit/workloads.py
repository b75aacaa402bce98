"""Workloads on a source in memory: how tests make one, wait for it, and read what it did."""

from __future__ import annotations

from typing import Any

from fake_mysql import FakeServer, Row

from harness.errors import SourceError
from harness.source.templates import TEMPLATES
from harness.source.workload import SourceWorkload
from harness.waiting import wait_until

BOTH = ("orders", "behavior-log")
INITIAL_PACKETS = 2


def workload(
    server: FakeServer,
    *,
    tables: tuple[str, ...] = BOTH,
    rate: int | None = 20_000,
    seed: int = 5,
    bound_s: float = 5,
    rows_later: bool = False,
) -> Any:
    # The fake stands in for pymysql's connection as far as the workload uses it.
    connect: Any = server.connect
    return SourceWorkload(
        connect=connect,
        seed=seed,
        rate=rate,
        initial_rows=100,
        rows_later=rows_later,
        tables=tables,
        bound_s=bound_s,
    )


def started(server: FakeServer, **options: Any) -> Any:
    made = workload(server, **options)
    made.prepare()
    made.start()
    return made


def until_committed(made: Any, operations: int) -> None:
    wait_until("operations", lambda: made.committed() >= operations, timeout_s=20, every_s=0.005)


def until_recorded(made: Any, table: str, operations: int) -> None:
    def enough() -> bool:
        return bool(made.ledger(table).num_rows >= operations)

    wait_until("operations of a table", enough, timeout_s=20, every_s=0.02)


def until_ended(made: Any) -> None:
    def refused() -> bool:
        try:
            made.resume()
        except SourceError:
            return True
        return False

    wait_until("the workload to end", refused, timeout_s=20, every_s=0.01)


def literals(table: str, entry: dict[str, Any]) -> Row:
    def text(value: Any) -> str:
        if hasattr(value, "isoformat"):
            return f"'{value.isoformat(sep=' ', timespec='milliseconds')}'"
        return f"'{value}'" if isinstance(value, str) else str(value)

    return tuple(text(entry[name]) for name in TEMPLATES[table].contract.columns)


def recorded(made: Any, *, tables: tuple[str, ...] = BOTH) -> dict[str, list[tuple[int, str, Row]]]:
    """The ledger of each table: transaction, kind and row."""
    return {
        table: [
            (entry["transaction"], entry["kind"], literals(table, entry))
            for entry in made.ledger(table).to_pylist()
        ]
        for table in tables
    }


def logged(server: FakeServer, *, tables: tuple[str, ...] = BOTH) -> dict[str, list[tuple[int, str, Row]]]:
    """What `recorded` must be: the binlog, table by table."""
    return {
        table: [
            (number, kind, row)
            for number, changed, kind, row in server.binlog
            if changed == TEMPLATES[table].contract.source
        ]
        for table in tables
    }


def operations_of(made: Any, table: str) -> list[tuple[str, Row]]:
    """A table's operations without the numbers of their transactions."""
    return [(kind, row) for _, kind, row in recorded(made, tables=(table,))[table]]
