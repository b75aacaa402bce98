"""What a run reads of source and sink while it goes on: at fences, and while jobs are down."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.errors import HarnessError, ReaderError
from harness.ledger import state_after
from harness.model import (
    Fence,
    Pin,
    Reading,
    SinkState,
    TableContract,
    TimeWindow,
)
from harness.paimon.flink_sql import FlinkSqlReader
from harness.paimon.native import NativeReader
from harness.paimon.pins import pin
from harness.ports import Seen, TotalsRequest
from harness.source import mysql
from harness.source.templates import TEMPLATES


class Readings:
    """Reads tables of one run with two readers. Rows go to Parquet files in the folder of a call."""

    def __init__(
        self,
        *,
        tables: Sequence[TableContract],
        native: NativeReader,
        flink_sql: FlinkSqlReader,
        connect: Callable[[], mysql.Connection],
        ledger: Callable[[str], pa.Table],
        consumer: str,
    ) -> None:
        """`connect` opens the source, `ledger` gives a table's, `consumer` pins the sink's snapshots."""
        self._tables = {table.name: table for table in tables}
        self._native = native
        self._flink_sql = flink_sql
        self._connect = connect
        self._ledger = ledger
        self._consumer = consumer
        self.pins: tuple[Pin, ...] = ()

    def fence(self, seen: Sequence[Seen], *, baseline: bool, folder: Path) -> Callable[[], tuple[Fence, ...]]:
        """Hold the source's state, and begin to read both sides; what is returned waits for that to end.

        See ports.Pipeline.
        """
        requests = [self._request(one) for one in seen]
        views = [self._view() for _ in seen]
        beside = ThreadPoolExecutor(max_workers=3, thread_name_prefix="reads")
        by_flink = beside.submit(self._by_flink, requests, pinned=seen if baseline else ())
        by_native = beside.submit(self._native.totals, requests)
        source = [
            beside.submit(self._source, view, request, folder / _source_file(one))
            for view, one, request in zip(views, seen, requests, strict=True)
        ]
        kept = [
            beside.submit(self._native.keep, request.table, request.snapshot_id, folder / _sink_file(one))
            for one, request in zip(seen, requests, strict=True)
        ]

        def finish() -> tuple[Fence, ...]:
            with beside:
                readings = zip(by_native.result(), by_flink.result(), strict=True)
                return tuple(
                    Fence(
                        mark=one.mark,
                        baseline=baseline,
                        visible=one.visible_at_ms > 0,
                        visible_at_ms=one.visible_at_ms,
                        snapshot_id=one.snapshot.snapshot_id,
                        snapshot_at_ms=one.snapshot.committed_at_ms,
                        window=request.window,
                        source=of_source.result(),
                        sink=tuple(of_sink),
                        source_rows="" if of_source.result().error else _source_file(one),
                        sink_rows="" if rows.result() else _sink_file(one),
                    )
                    for one, request, of_source, of_sink, rows in zip(
                        seen, requests, source, readings, kept, strict=True
                    )
                )

        return finish

    def keep_sink(
        self, fault: int, savepoints: Mapping[str, str], folder: Path
    ) -> Callable[[], tuple[SinkState, ...]]:
        """Note each table's newest snapshot, and begin to read its rows. See ports.Pipeline."""
        noted = [
            (table, self._newest(table), self._ledger(table.name).num_rows) for table in self._tables.values()
        ]
        beside = ThreadPoolExecutor(max_workers=1, thread_name_prefix="states")
        states = [
            beside.submit(
                self._state,
                table,
                newest,
                SinkState(
                    table=table.name,
                    fault=fault,
                    snapshot_id=newest if isinstance(newest, int) else 0,
                    savepoint=savepoints.get(table.name, ""),
                    committed=committed,
                ),
                folder,
            )
            for table, newest, committed in noted
        ]

        def finish() -> tuple[SinkState, ...]:
            with beside:
                return tuple(state.result() for state in states)

        return finish

    def _request(self, one: Seen) -> TotalsRequest:
        table = self._tables[one.mark.table]
        state = state_after(self._ledger(table.name), one.mark.operation, key=table.source_key)
        return TotalsRequest(
            table=table, window=_middle(state[table.time]), snapshot_id=one.snapshot.snapshot_id
        )

    def _by_flink(self, requests: Sequence[TotalsRequest], *, pinned: Sequence[Seen]) -> tuple[Reading, ...]:
        if pinned:  # first of all: a snapshot can only be kept while it is there
            self.pins = tuple(self._pin(one) for one in pinned)
        return self._flink_sql.totals(requests)

    def _pin(self, one: Seen) -> Pin:
        table, first = self._tables[one.mark.table], one.snapshot.snapshot_id
        try:
            session = self._flink_sql.session()
        except HarnessError as error:
            return Pin(table=table.name, consumer=self._consumer, first_snapshot=first, error=error.what)
        return pin(session, self._native, table, consumer=self._consumer, first_snapshot=first)

    def _view(self) -> mysql.Connection | HarnessError:
        """A connection that sees the source as it is now, or why there is none."""
        try:
            connection = self._connect()
            mysql.hold_view(connection)
        except HarnessError as error:
            return error
        return connection

    def _source(self, view: mysql.Connection | HarnessError, request: TotalsRequest, file: Path) -> Reading:
        table, started = request.table, time.monotonic()
        try:
            if isinstance(view, HarnessError):
                raise view
            try:
                found = mysql.guide_totals(view, table, request.window)
                pq.write_table(mysql.rows(view, table, TEMPLATES[table.name].row_schema), file)
            finally:
                view.close()
        except HarnessError as error:
            return Reading(reader="mysql", error=str(error), seconds=time.monotonic() - started)
        return Reading(reader="mysql", totals=found, seconds=time.monotonic() - started)

    def _newest(self, table: TableContract) -> int | str:
        """The id of a table's newest snapshot, or why it is not known."""
        try:
            newest = self._native.latest(table)
        except ReaderError as error:
            return str(error)
        return newest.snapshot_id if newest else "the sink has no snapshot"

    def _state(self, table: TableContract, newest: int | str, state: SinkState, folder: Path) -> SinkState:
        file = f"stopped-{state.fault}-{table.name}.parquet"
        error = newest if isinstance(newest, str) else self._native.keep(table, newest, folder / file)
        return replace(state, sink_rows="" if error else file, error=error)


def _source_file(one: Seen) -> str:
    return f"fence-{one.mark.number}-{one.mark.table}-source.parquet"


def _sink_file(one: Seen) -> str:
    return f"fence-{one.mark.number}-{one.mark.table}-sink.parquet"


def _middle(times: pa.ChunkedArray) -> TimeWindow:
    """The middle half of the rows' times: a window that neither holds everything nor nothing."""
    bounds = pc.min_max(times).as_py()
    start, end = bounds["min"], bounds["max"]
    quarter = timedelta(milliseconds=int((end - start).total_seconds() * 250))
    return TimeWindow(start=start + quarter, end=end - quarter)
