"""On a real source: the ledger equals the table at every fence, whatever happens to the connection."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

import docker
import pytest

from harness.errors import SourceError
from harness.ledger import ROW_SCHEMA, state_after
from harness.model import Address, Credentials, TimeWindow
from harness.source import mysql
from harness.source.orders import CONTRACT, START
from harness.source.workload import OrdersWorkload
from harness.stacks.images import provide
from harness.waiting import pause, wait_until

pytestmark = pytest.mark.docker

ROOT = Credentials(user="root", secret="harness-contract-test")


def tell(_: str) -> None:
    """Progress is of no interest here."""


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    """A source server of our image (or of PAIMON_HARNESS_SOURCE_IMAGE), for this module alone."""
    client = docker.from_env()
    image = os.environ.get("PAIMON_HARNESS_SOURCE_IMAGE") or provide(client, mode="auto", tell=tell).source
    container = client.containers.run(
        image,
        detach=True,
        environment={"MYSQL_ROOT_PASSWORD": ROOT.secret},
        ports={"3306/tcp": ("127.0.0.1", None)},
        labels={"harness.test": "contract"},
    )
    try:
        container.reload()
        port = int(container.ports["3306/tcp"][0]["HostPort"])
        place = Address(host="127.0.0.1", port=port)

        def answers() -> Address:
            mysql.connect(place, ROOT).close()
            return place

        yield wait_until("the source to answer", answers, timeout_s=120, retry_on=(SourceError,))
    finally:
        container.remove(force=True, v=True)
        client.close()


@pytest.fixture
def connection(address: Address) -> Iterator[mysql.Connection]:
    """A connection of the test's own, to a source without the workload's tables."""
    made = mysql.connect(address, ROOT)
    mysql.query(made, "DROP DATABASE IF EXISTS shop")
    yield made
    made.close()


def workload(address: Address, *, rate: int | None, seed: int = 11) -> OrdersWorkload:
    made = OrdersWorkload(
        connect=lambda: mysql.connect(address, ROOT), seed=seed, rate=rate, initial_rows=700, bound_s=60
    )
    made.prepare()
    made.start()
    return made


def until_committed(made: OrdersWorkload, operations: int) -> None:
    wait_until(f"{operations} operations", lambda: made.committed() >= operations, timeout_s=60, every_s=0.02)


@pytest.mark.parametrize("rate", [4000, None], ids=["paced", "flat out"])
def test_the_state_after_each_fence_is_the_source_table(
    address: Address, connection: mysql.Connection, rate: int | None
) -> None:
    made = workload(address, rate=rate)
    for number in (1, 2, 3):
        until_committed(made, 3000 * number)
        mark = made.fence()
        rows = mysql.rows(connection, CONTRACT)

        assert rows.schema == ROW_SCHEMA
        assert state_after(made.ledger(), mark.operation, key=CONTRACT.source_key) == rows
        assert rows.column("order_id")[0].as_py() == -number
        made.resume()
    outcome = made.stop()

    assert (outcome.error, outcome.unresolved, outcome.reconnects) == ("", (), 0)
    assert state_after(made.ledger(), outcome.operations, key="order_id") == mysql.rows(connection, CONTRACT)


def test_killed_connections_leave_the_ledger_exact(address: Address, connection: mysql.Connection) -> None:
    made = workload(address, rate=None)
    ((own,),) = mysql.query(connection, "SELECT CONNECTION_ID()")
    kills = 0
    while kills < 40:
        for (thread,) in mysql.query(
            connection,
            "SELECT id FROM information_schema.processlist WHERE user = 'root' AND id <> %s",
            [own],
        ):
            with contextlib.suppress(SourceError):  # it may have ended by itself meanwhile
                mysql.query(connection, f"KILL {thread}")
                kills += 1
        if kills % 20 == 0:
            mark = made.fence()

            assert state_after(made.ledger(), mark.operation, key="order_id") == mysql.rows(
                connection, CONTRACT
            )
            made.resume()
        pause(0.01 + 0.003 * (kills % 17))
    outcome = made.stop()

    assert (outcome.error, outcome.unresolved) == ("", ())
    assert outcome.reconnects >= 20
    assert state_after(made.ledger(), outcome.operations, key="order_id") == mysql.rows(connection, CONTRACT)
    assert mysql.query(connection, "SELECT number FROM shop.harness_transactions") == [
        (outcome.transactions,)
    ]


def test_the_guides_totals_are_those_of_the_rows(address: Address, connection: mysql.Connection) -> None:
    made = workload(address, rate=None)
    until_committed(made, 5000)
    made.fence()
    window = TimeWindow(start=START, end=START.replace(microsecond=120_000))
    totals = {total.partition: total for total in mysql.guide_totals(connection, CONTRACT, window)}
    rows = mysql.rows(connection, CONTRACT).to_pylist()
    made.stop()

    assert set(totals) == {row["dt"] for row in rows}
    for partition, total in totals.items():
        whole = [row for row in rows if row["dt"] == partition]
        inside = [row for row in whole if window.start <= row["update_time"] <= window.end]

        assert (total.rows, total.keys, total.window_keys) == (len(whole), len(whole), len(inside))
        assert total.amount == str(sum((row["order_amount"] for row in whole), Decimal("0.00")))
        assert total.window_amount == str(sum((row["order_amount"] for row in inside), Decimal("0.00")))
        assert 0 < total.window_keys < total.keys


def test_an_empty_window_sums_to_zero_with_two_places(address: Address, connection: mysql.Connection) -> None:
    workload(address, rate=None).stop()
    empty = datetime(1999, 1, 1)  # noqa: DTZ001 - the source's times have no zone
    totals = mysql.guide_totals(connection, CONTRACT, TimeWindow(start=empty, end=empty))

    assert {(total.window_keys, total.window_amount) for total in totals} == {(0, "0.00")}


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
        assert mysql.rows(reading, CONTRACT).num_rows > 0
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
