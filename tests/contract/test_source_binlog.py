"""On a real source: the binlog, read by somebody else, is the ledger, operation by operation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from source_server import ROOT, kill_others

from harness.model import Address, Binlog, Credentials
from harness.source import mysql
from harness.source.binlog import keep_binlogs
from harness.source.orders import CONTRACT, ROW_SCHEMA
from harness.source.templates import TEMPLATES
from harness.source.workload import SourceWorkload
from harness.waiting import pause, wait_until

pytestmark = pytest.mark.docker

TABLES = {name: (template.contract, template.row_schema) for name, template in TEMPLATES.items()}


@pytest.fixture
def connection(address: Address) -> Iterator[mysql.Connection]:
    """A connection of the test's own, to a source without the workload's tables, and with a new binlog."""
    made = mysql.connect(address, ROOT)
    mysql.query(made, "DROP DATABASE IF EXISTS shop")
    mysql.query(made, "RESET MASTER")
    yield made
    made.close()


def workload(address: Address, *, rate: int | None = None, initial_rows: int = 700) -> SourceWorkload:
    """A workload that runs."""
    made = SourceWorkload(
        connect=lambda: mysql.connect(address, ROOT), seed=11, rate=rate, initial_rows=initial_rows
    )
    made.prepare()
    made.start()
    return made


def until_committed(made: SourceWorkload, operations: int) -> None:
    wait_until(f"{operations} operations", lambda: made.committed() >= operations, timeout_s=60, every_s=0.02)


def kept(address: Address, folder: Path, user: Credentials = ROOT) -> dict[str, Binlog]:
    """What the reader kept of each table, by its name."""
    found = keep_binlogs(lambda: mysql.connect(address, user), TABLES, folder)
    return {binlog.table: binlog for binlog in found}


def operations(binlog: Binlog, folder: Path) -> pa.Table:
    assert binlog.error == ""
    return pq.read_table(folder / binlog.operations)


def assert_the_binlog_is_the_ledger(made: SourceWorkload, address: Address, folder: Path) -> None:
    for name, binlog in kept(address, folder).items():
        ledger = made.ledger(name).select(["kind", *TEMPLATES[name].contract.columns])
        logged = operations(binlog, folder)

        assert ledger.num_rows >= 700
        assert ledger.schema == logged.schema
        assert ledger.equals(logged)


@pytest.mark.parametrize("rate", [4000, None], ids=["paced", "flat out"])
def test_the_binlog_is_the_ledger_operation_by_operation(
    address: Address, connection: mysql.Connection, tmp_path: Path, rate: int | None
) -> None:
    made = workload(address, rate=rate)
    for number in (1, 2):
        until_committed(made, 4000 * number)
        made.fence()
        made.resume()
    outcome = made.stop()

    assert (outcome.error, outcome.unresolved) == ("", ())
    assert_the_binlog_is_the_ledger(made, address, tmp_path)


def test_a_binlog_in_many_files_is_read_through_all(
    address: Address, connection: mysql.Connection, tmp_path: Path
) -> None:
    made = workload(address)
    for number in range(1, 6):
        until_committed(made, 1500 * number)
        mysql.query(connection, "FLUSH LOGS")
    made.stop()

    assert len(mysql.query(connection, "SHOW BINARY LOGS")) > 5
    assert_the_binlog_is_the_ledger(made, address, tmp_path)


def test_tables_that_were_made_anew_are_read_from_there_on(
    address: Address, connection: mysql.Connection, tmp_path: Path
) -> None:
    workload(address).stop()
    mysql.query(connection, "DROP DATABASE shop")
    made = workload(address)
    made.stop()

    assert_the_binlog_is_the_ledger(made, address, tmp_path)


def test_the_reader_stops_at_where_the_binlog_was_while_others_go_on(
    address: Address, connection: mysql.Connection, tmp_path: Path
) -> None:
    made = workload(address, rate=4000)
    until_committed(made, 4000)
    read = kept(address, tmp_path)
    made.stop()

    for name, binlog in read.items():
        logged = operations(binlog, tmp_path)
        ledger = made.ledger(name).select(logged.column_names)
        assert 0 < logged.num_rows
        assert ledger.slice(0, logged.num_rows).equals(logged)


def test_killed_connections_leave_ledger_and_binlog_the_same(
    address: Address, connection: mysql.Connection, tmp_path: Path
) -> None:
    made = workload(address)
    kills = 0
    while kills < 20:
        kills += kill_others(connection)
        pause(0.01 + 0.003 * (kills % 17))
    outcome = made.stop()

    assert (outcome.error, outcome.unresolved) == ("", ())
    assert_the_binlog_is_the_ledger(made, address, tmp_path)


def test_what_somebody_else_did_and_undid_is_in_the_binlog(
    address: Address, connection: mysql.Connection, tmp_path: Path
) -> None:
    made = workload(address)
    made.stop()
    before = made.ledger("orders").num_rows
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO shop.source_orders (order_id, dt) VALUES (987654321, 'x')")
        cursor.execute("UPDATE shop.source_orders SET order_id = 987654322 WHERE order_id = 987654321")
        cursor.execute("UPDATE shop.source_orders SET dt = 'x' WHERE order_id = 987654322")
        cursor.execute("DELETE FROM shop.source_orders WHERE order_id = 987654322")
    connection.commit()
    more = operations(kept(address, tmp_path)["orders"], tmp_path).slice(before)

    assert more["kind"].to_pylist() == ["insert", "delete", "insert", "delete"]
    assert more["order_id"].to_pylist() == [987654321, 987654321, 987654322, 987654322]


def test_values_are_those_that_the_table_reads_as(
    address: Address, connection: mysql.Connection, tmp_path: Path
) -> None:
    SourceWorkload(connect=lambda: mysql.connect(address, ROOT), seed=1, rate=None, initial_rows=0).prepare()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO shop.source_orders VALUES"
            " (-7, NULL, -1234567890123456.78, -128,"
            " '1969-12-31 23:59:59.999', '9999-12-31 23:59:59.007', ''),"
            " (1, -1, -0.01, 0, '1000-01-01', '2026-07-06 00:00:00.1', '\u00e9\u4e2d'),"
            " (9223372036854775807, 0, 0.1, NULL, NULL, '2026-07-06', NULL)"
        )
    connection.commit()
    mysql.hold_view(connection)
    read = mysql.rows(connection, CONTRACT, ROW_SCHEMA)
    connection.rollback()
    logged = operations(kept(address, tmp_path)["orders"], tmp_path)

    assert read.num_rows == 3
    assert logged.drop_columns("kind").equals(read)


@pytest.mark.parametrize(
    "statement", ["TRUNCATE TABLE shop.source_orders", "ALTER TABLE shop.source_orders COMMENT 'x'"]
)
def test_a_change_by_another_statement_is_named(
    address: Address, connection: mysql.Connection, tmp_path: Path, statement: str
) -> None:
    workload(address).stop()
    mysql.query(connection, statement)
    found = kept(address, tmp_path)

    assert statement in found["orders"].error
    assert found["behavior-log"].error == ""


def test_other_columns_than_the_contracts_are_an_error(
    address: Address, connection: mysql.Connection, tmp_path: Path
) -> None:
    workload(address).stop()
    mysql.query(connection, "ALTER TABLE shop.source_orders ADD COLUMN more INT FIRST")

    assert "the table has more, order_id" in kept(address, tmp_path)["orders"].error


def test_a_user_that_may_not_replicate_is_an_error(
    address: Address, connection: mysql.Connection, tmp_path: Path
) -> None:
    workload(address).stop()
    poor = Credentials(user="poor", secret="none")
    mysql.query(connection, "CREATE USER 'poor'@'%' IDENTIFIED BY 'none'")
    try:
        mysql.query(connection, "GRANT SELECT, REPLICATION CLIENT ON *.* TO 'poor'@'%'")
        error = kept(address, tmp_path, poor)["orders"].error
    finally:
        mysql.query(connection, "DROP USER 'poor'@'%'")

    assert "the binlog can't be read from" in error


def test_a_binlog_whose_beginning_was_purged_is_an_error(
    address: Address, connection: mysql.Connection, tmp_path: Path
) -> None:
    workload(address).stop()
    mysql.query(connection, "FLUSH LOGS")
    newest = mysql.query(connection, "SHOW MASTER STATUS")[0][0]
    mysql.query(connection, f"PURGE BINARY LOGS TO '{newest}'")

    for binlog in kept(address, tmp_path).values():
        assert "its first files are gone" in binlog.error
