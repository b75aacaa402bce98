"""On a real source: each ledger equals its table at every fence, whatever happens to the connection."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from source_server import ROOT, kill_others

from harness.errors import SourceError
from harness.ledger import state_after
from harness.model import Address, Credentials, TimeWindow
from harness.source import mysql
from harness.source.days import START
from harness.source.orders import CONTRACT, ROW_SCHEMA
from harness.source.templates import TEMPLATES
from harness.source.workload import SourceWorkload
from harness.waiting import pause, wait_until

pytestmark = pytest.mark.docker


@pytest.fixture
def connection(address: Address) -> Iterator[mysql.Connection]:
    """A connection of the test's own, to a source without the workload's tables."""
    made = mysql.connect(address, ROOT)
    mysql.query(made, "DROP DATABASE IF EXISTS shop")
    yield made
    made.close()


def workload(address: Address, *, rate: int | None, seed: int = 11) -> SourceWorkload:
    made = SourceWorkload(
        connect=lambda: mysql.connect(address, ROOT), seed=seed, rate=rate, initial_rows=700, bound_s=60
    )
    made.prepare()
    made.start()
    return made


def create_tables(address: Address) -> None:
    """The workload's tables, without rows."""
    made = SourceWorkload(connect=lambda: mysql.connect(address, ROOT), seed=1, rate=None, initial_rows=0)
    made.prepare()
    made.stop()


def until_committed(made: SourceWorkload, operations: int) -> None:
    wait_until(f"{operations} operations", lambda: made.committed() >= operations, timeout_s=60, every_s=0.02)


def table_rows(connection: mysql.Connection, table: str) -> pa.Table:
    template = TEMPLATES[table]
    mysql.hold_view(connection)
    return mysql.rows(connection, template.contract, template.row_schema)


def state(made: SourceWorkload, table: str, operation: int) -> pa.Table:
    return state_after(made.ledger(table), operation, key=TEMPLATES[table].contract.source_key)


def assert_the_source_is_the_ledger(made: SourceWorkload, connection: mysql.Connection) -> None:
    for table in TEMPLATES:
        rows = table_rows(connection, table)

        assert rows.num_rows >= 700
        assert state(made, table, made.ledger(table).num_rows) == rows


@pytest.mark.parametrize("rate", [4000, None], ids=["paced", "flat out"])
def test_the_state_after_each_fence_is_the_source_table(
    address: Address, connection: mysql.Connection, rate: int | None
) -> None:
    made = workload(address, rate=rate)
    for number in (1, 2, 3):
        until_committed(made, 3000 * number)
        marks = made.fence()

        assert [mark.table for mark in marks] == ["orders", "behavior-log"]
        for mark in marks:
            template = TEMPLATES[mark.table]
            rows = table_rows(connection, mark.table)

            assert rows.schema == template.row_schema
            assert state(made, mark.table, mark.operation) == rows
            assert mark.key in rows.column(template.contract.source_key).to_pylist()
        assert [mark.key for mark in marks] == [-number, f"marker-{number}"]
        made.resume()
    outcome = made.stop()

    assert (outcome.error, outcome.unresolved, outcome.reconnects) == ("", (), 0)
    assert_the_source_is_the_ledger(made, connection)


def test_first_rows_by_the_ten_thousands_are_loaded_into_each_table(
    address: Address, connection: mysql.Connection
) -> None:
    made = SourceWorkload(
        connect=lambda: mysql.connect(address, ROOT), seed=11, rate=None, initial_rows=50_001
    )
    made.prepare()
    made.stop()

    assert [made.ledger(table).num_rows for table in TEMPLATES] == [50_001, 50_001]
    assert_the_source_is_the_ledger(made, connection)


def test_probes_and_a_bulk_update_leave_the_ledger_exact(
    address: Address, connection: mysql.Connection
) -> None:
    made = SourceWorkload(
        connect=lambda: mysql.connect(address, ROOT),
        seed=11,
        rate=500,
        initial_rows=700,
        rows_later=True,
        tables=("orders",),
        bound_s=60,
    )
    made.prepare()
    made.probe()
    made.fill()
    made.start()
    wait_until("operations", lambda: made.committed() >= 1000, timeout_s=60)
    marks = made.bulk_update()
    made.resume()
    (mark,) = made.fence()
    mysql.hold_view(connection)
    rows = mysql.rows(connection, CONTRACT, ROW_SCHEMA)
    outcome = made.stop()

    assert marks.end.operation - marks.begin.operation - 1 > 600
    assert state_after(made.ledger("orders"), mark.operation, key=CONTRACT.source_key) == rows
    assert (outcome.error, outcome.unresolved) == ("", ())


@pytest.mark.parametrize("table", TEMPLATES)
def test_one_table_can_be_written_to_alone(
    address: Address, connection: mysql.Connection, table: str
) -> None:
    made = SourceWorkload(
        connect=lambda: mysql.connect(address, ROOT), seed=11, rate=None, initial_rows=700, tables=(table,)
    )
    made.prepare()
    made.start()
    (mark,) = made.fence()

    assert state(made, table, mark.operation) == table_rows(connection, table)
    assert made.stop().error == ""


def test_killed_connections_leave_the_ledger_exact(address: Address, connection: mysql.Connection) -> None:
    made = workload(address, rate=None)
    kills = 0
    while kills < 40:
        kills += kill_others(connection)
        if kills % 20 == 0:
            made.fence()
            assert_the_source_is_the_ledger(made, connection)
            made.resume()
        pause(0.01 + 0.003 * (kills % 17))
    outcome = made.stop()

    assert (outcome.error, outcome.unresolved) == ("", ())
    assert outcome.reconnects >= 20
    assert outcome.operations == sum(made.ledger(table).num_rows for table in TEMPLATES)
    assert_the_source_is_the_ledger(made, connection)
    assert mysql.query(connection, "SELECT number FROM shop.harness_transactions") == [
        (outcome.transactions,)
    ]


@pytest.mark.parametrize("table", TEMPLATES)
def test_the_guides_totals_are_those_of_the_rows(
    address: Address, connection: mysql.Connection, table: str
) -> None:
    made = workload(address, rate=None)
    until_committed(made, 5000)
    made.fence()
    contract = TEMPLATES[table].contract
    window = TimeWindow(start=START, end=START.replace(microsecond=120_000))
    mysql.hold_view(connection)
    totals = {total.partition: total for total in mysql.guide_totals(connection, contract, window)}
    rows = table_rows(connection, table).to_pylist()
    made.stop()

    assert set(totals) == {row["dt"] for row in rows}
    inside_any = 0
    for partition, total in totals.items():
        whole = [row for row in rows if row["dt"] == partition]
        inside = [row for row in whole if window.start <= row[contract.time] <= window.end]
        inside_any += len(inside)

        assert (total.rows, total.keys, total.window_keys) == (len(whole), len(whole), len(inside))
        assert total.amount == str(sum((row[contract.amount] for row in whole), Decimal("0.00")))
        assert total.window_amount == str(sum((row[contract.amount] for row in inside), Decimal("0.00")))
    assert 0 < inside_any < len(rows)


def test_a_held_view_is_of_its_moment_whatever_is_committed_later(
    address: Address, connection: mysql.Connection
) -> None:
    made = workload(address, rate=None)
    until_committed(made, 2000)
    marks = {mark.table: mark.operation for mark in made.fence()}
    mysql.hold_view(connection)
    made.resume()
    until_committed(made, 6000)
    made.stop()

    for name, template in TEMPLATES.items():
        seen = mysql.rows(connection, template.contract, template.row_schema)
        assert state(made, name, marks[name]) == seen


def test_an_empty_window_sums_to_zero_with_two_places(address: Address, connection: mysql.Connection) -> None:
    workload(address, rate=None).stop()
    mysql.hold_view(connection)
    empty = datetime(1999, 1, 1)  # noqa: DTZ001 - the source's times have no zone
    for template in TEMPLATES.values():
        totals = mysql.guide_totals(connection, template.contract, TimeWindow(start=empty, end=empty))

        assert {(total.window_keys, total.window_amount) for total in totals} == {(0, "0.00")}


def test_an_empty_table_reads_as_no_rows_in_the_ledgers_types(
    address: Address, connection: mysql.Connection
) -> None:
    create_tables(address)
    for table, template in TEMPLATES.items():
        rows = table_rows(connection, table)

        assert (rows.num_rows, rows.schema) == (0, template.row_schema)


def test_values_are_read_exactly_in_the_ledgers_types(address: Address, connection: mysql.Connection) -> None:
    create_tables(address)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO shop.source_orders VALUES"
            " (-7, NULL, -1234567890123456.78, -128,"
            " '1969-12-31 23:59:59.999', '9999-12-31 23:59:59.007', ''),"
            " (9223372036854775807, 0, 0.1, NULL, NULL, '2026-07-06', NULL)"
        )
    connection.commit()
    first, second = (tuple(row.values()) for row in table_rows(connection, "orders").to_pylist())

    assert first == (
        -7,
        None,
        Decimal("-1234567890123456.78"),
        -128,
        datetime(1969, 12, 31, 23, 59, 59, 999_000),  # noqa: DTZ001
        datetime(9999, 12, 31, 23, 59, 59, 7_000),  # noqa: DTZ001
        "",
    )
    assert second == (
        2**63 - 1,
        0,
        Decimal("0.10"),
        None,
        None,
        datetime(2026, 7, 6),  # noqa: DTZ001
        None,
    )


def test_a_value_that_does_not_fit_its_type_fails_the_read(
    address: Address, connection: mysql.Connection
) -> None:
    create_tables(address)
    mysql.query(connection, "ALTER TABLE shop.source_orders MODIFY order_amount DECIMAL(18,3)")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO shop.source_orders (order_id, order_amount) VALUES (1, 0.125)")
    connection.commit()

    with pytest.raises(SourceError, match=r"a value of shop.source_orders does not fit its type: .*"):
        table_rows(connection, "orders")


def test_text_keys_are_read_in_the_order_of_their_bytes_and_told_apart_by_case(
    address: Address, connection: mysql.Connection
) -> None:
    create_tables(address)
    keys = ["L-3", "l-10", "l-2", "l-3", "marker-1", "\u00e9"]
    with connection.cursor() as cursor:
        for key in reversed(keys):
            cursor.execute("INSERT INTO shop.behavior_log (log_id) VALUES (%s)", (key,))
    connection.commit()

    assert table_rows(connection, "behavior-log").column("log_id").to_pylist() == keys


def test_our_image_is_readable_by_cdc(connection: mysql.Connection) -> None:
    component = mysql.check_cdc_readable(connection)

    assert component.name == "MySQL"
    assert component.version.startswith(("5.6.", "8.0."))


def test_a_server_with_wrong_settings_is_refused_naming_each(connection: mysql.Connection) -> None:
    mysql.query(
        connection, "SET GLOBAL binlog_format = 'MIXED', GLOBAL sql_mode = '', GLOBAL time_zone = '+08:00'"
    )
    try:
        with pytest.raises(SourceError) as raised:
            mysql.check_cdc_readable(connection)
    finally:
        mysql.query(
            connection,
            "SET GLOBAL binlog_format = 'ROW', GLOBAL sql_mode = 'STRICT_TRANS_TABLES',"
            " GLOBAL time_zone = '+00:00'",
        )

    assert [line.split(":")[0] for line in raised.value.what.splitlines()[1:]] == [
        "  - binlog_format",
        "  - sql_mode",
        "  - time_zone",
    ]


def test_the_cdc_user_may_read_and_replicate_and_nothing_more(
    address: Address, connection: mysql.Connection
) -> None:
    user = Credentials(user="cdc", secret='it\'s; "quoted"')
    mysql.create_cdc_user(connection, user)
    workload(address, rate=None).stop()
    reading = mysql.connect(address, user)
    try:
        assert len(mysql.query(reading, "SHOW MASTER STATUS")) == 1
        assert mysql.rows(reading, CONTRACT, ROW_SCHEMA).num_rows > 0
        with pytest.raises(SourceError, match="denied"):
            mysql.query(reading, "DELETE FROM shop.source_orders")
    finally:
        reading.close()


def test_a_source_that_has_the_tables_already_is_refused(
    address: Address, connection: mysql.Connection
) -> None:
    workload(address, rate=None).stop()
    with pytest.raises(SourceError, match="could not be created"):
        workload(address, rate=None)


def test_a_wrong_password_says_where_and_who(address: Address) -> None:
    with pytest.raises(SourceError, match=rf"no connection to the source at {address} as root: .*denied"):
        mysql.connect(address, Credentials(user="root", secret="wrong"))
