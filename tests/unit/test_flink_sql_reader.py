"""The Flink SQL reader: which cluster it reads on, and that its gateway does not grow for ever."""

from __future__ import annotations

from datetime import datetime

from harness.model import Credentials, TimeWindow
from harness.paimon.flink_sql import READ_SETTINGS, READS_PER_PROCESS, FlinkSqlReader
from harness.paimon.warehouse import Warehouse
from harness.source.orders import CONTRACT


class FakeSession:
    """Answers every statement with no rows."""

    class Answer:
        rows: tuple[tuple[object, ...], ...] = ()

    def execute(self, statement: str) -> Answer:
        return self.Answer()


class FakeGateway:
    """Counts the sessions that were opened, and remembers their settings."""

    def __init__(self) -> None:
        self.opened: list[dict[str, str]] = []

    def open(self, settings: dict[str, str]) -> FakeSession:
        self.opened.append(settings)
        return FakeSession()


def reader_on(gateway: FakeGateway, renewals: list[int]) -> FlinkSqlReader:
    warehouse = Warehouse(
        path="s3://w/", inside="http://s", outside="http://o", credentials=Credentials(user="u", secret="s")
    )
    return FlinkSqlReader(
        gateway,  # type: ignore[arg-type]
        lambda: warehouse,
        CONTRACT,
        renew=lambda: renewals.append(len(gateway.opened)),
    )


def read(reader: FlinkSqlReader, times: int) -> None:
    window = TimeWindow(start=datetime(2026, 7, 6), end=datetime(2026, 7, 7))  # noqa: DTZ001 - as in the tables
    for _ in range(times):
        reader.totals(window, 1)


def test_reads_run_in_batch_and_not_on_the_cluster_under_test() -> None:
    gateway = FakeGateway()
    read(reader_on(gateway, []), 2)

    assert [READ_SETTINGS] == gateway.opened
    assert ["batch", "local"] == [
        READ_SETTINGS["execution.runtime-mode"],
        READ_SETTINGS["execution.target"],
    ]


def test_the_gateway_gets_a_new_process_and_session_after_a_number_of_reads() -> None:
    gateway, renewals = FakeGateway(), list[int]()
    read(reader_on(gateway, renewals), 2 * READS_PER_PROCESS + 1)

    assert [1, 2] == renewals
    assert 3 == len(gateway.opened)
