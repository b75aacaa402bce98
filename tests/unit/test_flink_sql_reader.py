"""The Flink SQL reader: one statement for many requests, and no request's answer taken for another's."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from harness.errors import FlinkUnreachable, SqlError, WaitTimeout
from harness.flink.gateway import StatementResult
from harness.model import Credentials, Reading
from harness.paimon.flink_sql import (
    READ_SETTINGS,
    READS_PER_PROCESS,
    FlinkSqlReader,
    branches_of,
    utc_literal,
)
from harness.paimon.warehouse import Warehouse
from harness.ports import TotalsRequest
from harness.source.orders import CONTRACT
from tests.unit.sink_warehouse import LOG, WINDOW

Row = tuple[object, ...]
ORDERS = TotalsRequest(table=CONTRACT, window=WINDOW, snapshot_id=1)
LOGS = TotalsRequest(table=LOG, window=WINDOW, snapshot_id=1)
GONE = "The specified scan snapshotId 9 is out of available snapshotId range [1, 6]."


class FakeGateway:
    """One-line answers to queries: per branch of a statement, by its table; sessions are counted.

    `answers` says what comes of a query's branches, each `(number, table text)`; it may raise.
    """

    def __init__(self, answers: Callable[[list[tuple[int, str]]], Sequence[Row]]) -> None:
        self.opened: list[dict[str, str]] = []
        self.queries: list[str] = []
        self.catalogs: list[str] = []
        self._answers = answers

    def open(self, settings: dict[str, str]) -> FakeGateway:
        self.opened.append(settings)
        return self

    def execute(self, statement: str, *, timeout_s: float = 0) -> StatementResult:
        if statement.startswith("CREATE CATALOG"):
            self.catalogs.append(statement.split()[2])
        if not statement.startswith("SELECT"):
            return StatementResult(rows=(("OK",),), job_id="")
        self.queries.append(statement)
        found = re.findall(r"SELECT (\d+) AS branch.*?\n.*?\n  FROM (.*)", statement)
        rows = self._answers([(int(number), table) for number, table in found])
        return StatementResult(rows=tuple(rows), job_id="j")


def one_row_each(branches: list[tuple[int, str]]) -> list[Row]:
    """A row per branch, whose partition is the table's text."""
    return [(number, table, 1, 1, "1", 1, "1") for number, table in branches]


def reader_on(gateway: FakeGateway, renew: Callable[[], None] = lambda: None) -> FlinkSqlReader:
    warehouse = Warehouse(
        path="s3://w/", inside="http://s", outside="http://o", credentials=Credentials(user="u", secret="s")
    )
    return FlinkSqlReader(gateway, lambda: warehouse, renew=renew)  # type: ignore[arg-type]


def at(snapshot_id: int, request: TotalsRequest = ORDERS, *, at_ms: int = 0) -> TotalsRequest:
    return replace(request, snapshot_id=snapshot_id, at_ms=at_ms)


def read_by_id(readings: Sequence[Reading]) -> list[list[int]]:
    """The snapshot ids that each reading's rows came from."""
    return [
        [int(part.partition.split("'scan.snapshot-id'='")[1].split("'")[0]) for part in reading.totals]
        for reading in readings
    ]


def test_all_requests_go_in_one_statement_and_are_answered_in_their_order() -> None:
    gateway = FakeGateway(lambda branches: one_row_each(branches)[::-1])
    readings = reader_on(gateway).totals([at(5), at(3), at(4, LOGS), at(3)])

    assert 1 == len(gateway.queries)
    assert [[5], [3], [4], [3]] == read_by_id(readings)
    assert {"flink-sql"} == {reading.reader for reading in readings}


def test_without_requests_nothing_is_asked() -> None:
    gateway = FakeGateway(one_row_each)

    assert () == reader_on(gateway).totals([])
    assert [] == gateway.opened


def test_reads_run_in_batch_not_on_the_cluster_under_test_and_in_utc() -> None:
    gateway = FakeGateway(one_row_each)
    reader = reader_on(gateway)
    reader.totals([at(1)])
    reader.totals([at(2)])

    assert [READ_SETTINGS] == gateway.opened
    assert ["batch", "local", "UTC"] == [
        READ_SETTINGS[key] for key in ("execution.runtime-mode", "execution.target", "table.local-time-zone")
    ]


def test_two_times_of_one_table_never_share_a_catalog() -> None:
    # Flink takes them for one scan otherwise, and answers both with the first's snapshot.
    requests = [at(1, at_ms=1_000), at(1, LOGS, at_ms=1_001), at(2, at_ms=2_000), at(2, LOGS, at_ms=2_001)]
    tables = [branch.table.split(" FOR ")[0] for branch in branches_of(requests)]

    assert [
        "paimon_moment_0.dwd.dwd_order_detail",
        "paimon_moment_0.dwd.dwd_behavior_log",
        "paimon_moment_1.dwd.dwd_order_detail",
        "paimon_moment_1.dwd.dwd_behavior_log",
    ] == tables


def test_a_read_by_id_and_one_by_time_of_the_same_table_do_not_share_a_catalog() -> None:
    by_id, by_time = branches_of([at(1), at(1, at_ms=1_000)])

    assert "paimon.dwd.dwd_order_detail /*+ OPTIONS('scan.snapshot-id'='1') */" == by_id.table
    assert by_time.table.startswith("paimon_moment_0.")


def test_the_catalog_of_each_time_is_made_once_in_a_session() -> None:
    gateway = FakeGateway(one_row_each)
    reader = reader_on(gateway)
    for _ in range(2):
        reader.totals([at(1, at_ms=1), at(2, at_ms=2)])

    assert ["paimon", "paimon_moment_0", "paimon_moment_1"] == gateway.catalogs


def test_a_time_is_written_in_utc_and_exact_to_the_millisecond() -> None:
    assert "2026-11-30 07:39:42.186" == utc_literal(1_796_024_382_186)
    assert "2026-11-30 07:39:42.000" == utc_literal(1_796_024_382_000)
    assert "AS OF TIMESTAMP '2026-11-30 07:39:42.186'" in (
        branches_of([at(1, at_ms=1_796_024_382_186)])[0].table
    )


def test_when_the_statement_fails_each_request_is_made_alone_and_the_failing_one_is_named() -> None:
    def answers(branches: list[tuple[int, str]]) -> list[Row]:
        if any("'9'" in table for _, table in branches):
            raise SqlError(GONE)
        return one_row_each(branches)

    gateway = FakeGateway(answers)
    first, gone, last = reader_on(gateway).totals([at(1), at(9), at(2)])

    assert 4 == len(gateway.queries)
    assert [[1], [2]] == read_by_id([first, last])
    assert ("", "") == (first.error, last.error)
    assert "expired or was never there" in gone.error
    assert ((), False) == (gone.totals, gone.files_missing)


def test_only_the_request_whose_files_are_gone_says_so() -> None:
    def answers(branches: list[tuple[int, str]]) -> list[Row]:
        if any("behavior" in table for _, table in branches):
            raise SqlError("java.io.FileNotFoundException: File 's3://w/bucket-0/data-1.parquet' not found")
        return one_row_each(branches)

    orders, logs = reader_on(FakeGateway(answers)).totals([ORDERS, LOGS])

    assert [False, True] == [orders.files_missing, logs.files_missing]


def test_an_answer_that_the_union_lost_is_asked_for_again_and_not_taken_for_an_empty_table() -> None:
    def answers(branches: list[tuple[int, str]]) -> list[Row]:
        return [row for row in one_row_each(branches) if len(branches) == 1 or row[0] != 1]

    gateway = FakeGateway(answers)
    readings = reader_on(gateway).totals([at(1), at(2), at(3)])

    assert [[1], [2], [3]] == read_by_id(readings)
    assert 2 == len(gateway.queries)


def test_a_table_that_is_empty_in_a_statement_of_its_own_is_empty() -> None:
    gateway = FakeGateway(
        lambda branches: [row for row in one_row_each(branches) if "behavior" not in str(row)]
    )
    orders, logs = reader_on(gateway).totals([ORDERS, LOGS])

    assert 1 == len(orders.totals)
    assert ((), "") == (logs.totals, logs.error)


def test_a_failure_of_the_second_question_is_not_an_empty_table_either() -> None:
    def answers(branches: list[tuple[int, str]]) -> list[Row]:
        if len(branches) == 1:
            raise SqlError(GONE)
        return one_row_each(branches)[:1]

    _, lost = reader_on(FakeGateway(answers)).totals([at(1), at(9)])

    assert "expired or was never there" in lost.error


def test_a_row_of_no_request_makes_all_answers_worthless() -> None:
    gateway = FakeGateway(lambda branches: [*one_row_each(branches), (7, "x", 1, 1, "1", 1, "1")])
    readings = reader_on(gateway).totals([at(1), at(2)])

    assert [(), ()] == [reading.totals for reading in readings]
    assert ["branch 7" in reading.error for reading in readings] == [True, True]


def test_a_gateway_that_does_not_answer_is_not_asked_for_each_request() -> None:
    for error in (FlinkUnreachable("no answer"), WaitTimeout("waited 120 s")):
        gateway = FakeGateway(raising(error))
        readings = reader_on(gateway).totals([at(1), at(2)])

        assert [True, True] == [error.what in reading.error for reading in readings]
        assert 1 == len(gateway.queries)


def raising(error: Exception) -> Callable[[list[tuple[int, str]]], list[Row]]:
    def answers(branches: list[tuple[int, str]]) -> list[Row]:
        raise error

    return answers


def test_after_a_failure_a_new_session_is_opened_with_catalogs_of_its_own() -> None:
    lost = [SqlError("Session 'a' does not exist.")]

    def answers(branches: list[tuple[int, str]]) -> list[Row]:
        if lost:
            raise lost.pop()
        return one_row_each(branches)

    gateway = FakeGateway(answers)
    readings = reader_on(gateway).totals([at(1, at_ms=1), at(2, at_ms=2)])

    assert ["", ""] == [reading.error for reading in readings]
    assert 2 == len(gateway.opened)
    assert ["paimon", "paimon_moment_0", "paimon_moment_1", "paimon", "paimon_moment_0"] == gateway.catalogs


def test_the_gateway_gets_a_new_process_and_session_after_a_number_of_statements() -> None:
    gateway, renewals = FakeGateway(one_row_each), list[int]()
    reader = reader_on(gateway, lambda: renewals.append(len(gateway.opened)))
    for _ in range(2 * READS_PER_PROCESS + 1):
        reader.totals([at(1), at(2)])

    assert [1, 2] == renewals
    assert 3 == len(gateway.opened)
