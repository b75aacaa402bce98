"""The look back at the end of a run: fences read again, every snapshot read, and what else tells of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow.parquet as pq

from harness.errors import ReaderError
from harness.model import (
    Binlog,
    CommitLog,
    Fence,
    Pin,
    Reading,
    SnapshotRecord,
    TableContract,
    TableHistory,
    TimeTravel,
)
from harness.paimon.aggregates import read_aggregates
from harness.paimon.commit_log import read_commits
from harness.paimon.flink_sql import FlinkSqlReader
from harness.paimon.mirror import copy_table
from harness.paimon.native import NativeReader
from harness.paimon.resolve import resolved_id
from harness.paimon.stored_files import stored_files
from harness.paimon.warehouse import Warehouse
from harness.ports import TotalsRequest, Travelled
from harness.source import mysql
from harness.source.binlog import keep_binlogs
from harness.source.templates import TEMPLATES


class LookBack:
    """Reads the tables of one run after its last fence, into Parquet files in the folder of a call.

    Flink reads the sink where it is. The native reader reads a copy of its files, which is made once.
    """

    def __init__(
        self,
        *,
        tables: Sequence[TableContract],
        native: NativeReader,
        flink_sql: FlinkSqlReader,
        connect: Callable[[], mysql.Connection],
        warehouse: Callable[[], Warehouse],
    ) -> None:
        """`connect` opens the source, `warehouse` is the sink's, which `native` reads."""
        self._tables = {table.name: table for table in tables}
        self._native = native
        self._flink_sql = flink_sql
        self._connect = connect
        self._warehouse = warehouse

    def travel(self, fences: Sequence[Fence], pins: Sequence[Pin], folder: Path) -> Travelled:
        """See ports.Pipeline."""
        requests = [
            TotalsRequest(
                table=self._tables[fence.mark.table],
                window=fence.window,
                snapshot_id=fence.snapshot_id,
                at_ms=fence.snapshot_at_ms,
            )
            for fence in fences
        ]
        with (
            ThreadPoolExecutor(max_workers=2, thread_name_prefix="reads") as beside,
            TemporaryDirectory(prefix="harness-sink-") as copy,
        ):
            by_time = beside.submit(self._flink_sql.totals, requests)
            binlogs = beside.submit(self._binlogs, folder)
            warehouse = self._copied(Path(copy))
            native = NativeReader(lambda: warehouse)
            by_id = native.totals([replace(one, at_ms=0) for one in requests])
            files = [f"travel-{fence.mark.number}-{fence.mark.table}.parquet" for fence in fences]
            errors = [
                native.keep(request.table, request.snapshot_id, folder / file)
                for request, file in zip(requests, files, strict=True)
            ]
            snapshots = {name: _snapshots(native, table) for name, table in self._tables.items()}
            histories = tuple(
                _history(native, table, snapshots[name], _first_snapshot(fences, name), folder)
                for name, table in self._tables.items()
            )
            commits = tuple(_commits(warehouse, table, folder) for table in self._tables.values())
            aggregates = read_aggregates(
                self._native, tuple(self._tables.values()), fences, snapshots, folder
            )
            return Travelled(
                travels=tuple(
                    _travel(fence, snapshots[fence.mark.table], timed, numbered, "" if error else file)
                    for fence, timed, numbered, file, error in zip(
                        fences, by_time.result(), by_id, files, errors, strict=True
                    )
                ),
                snapshots=tuple(record for records in snapshots.values() for record in records),
                pins=tuple(pins),
                histories=histories,
                commits=commits,
                aggregates=aggregates,
                binlogs=binlogs.result(),
            )

    def _copied(self, folder: Path) -> Warehouse:
        """The warehouse of a copy of the tables; the sink's own, which is slower, when it can't be copied."""
        warehouse = self._warehouse()
        try:
            for table in self._tables.values():
                database, name = table.sink.split(".")
                copy_table(stored_files(warehouse, table), folder / f"{database}.db" / name)
        except ReaderError:
            return warehouse
        return replace(warehouse, path=str(folder))

    def _binlogs(self, folder: Path) -> tuple[Binlog, ...]:
        tables = {name: (table, TEMPLATES[name].row_schema) for name, table in self._tables.items()}
        return keep_binlogs(self._connect, tables, folder)


def _travel(
    fence: Fence, snapshots: Sequence[SnapshotRecord], by_time: Reading, by_id: Reading, file: str
) -> TimeTravel:
    return TimeTravel(
        table=fence.mark.table,
        fence=fence.mark.number,
        snapshot_id=fence.snapshot_id,
        at_ms=fence.snapshot_at_ms,
        resolved_id=resolved_id(snapshots, fence.snapshot_at_ms),
        by_time=by_time,
        by_id=by_id,
        sink_rows=file,
    )


def _snapshots(native: NativeReader, table: TableContract) -> tuple[SnapshotRecord, ...]:
    try:
        return native.snapshots(table)
    except ReaderError:
        return ()  # then no time resolves to a snapshot, which the oracle does not let pass


def _history(
    native: NativeReader,
    table: TableContract,
    snapshots: Sequence[SnapshotRecord],
    base: int,
    folder: Path,
) -> TableHistory:
    """What a table's snapshots brought and held, in files."""
    changes, changelog = f"changes-{table.name}.parquet", f"changelog-{table.name}.parquet"
    try:
        found = native.history(table, snapshots, base=base)
    except ReaderError as error:
        return TableHistory(table=table.name, changelog_producer="", base_snapshot=base, error=error.what)
    pq.write_table(found.changes, folder / changes, compression="zstd")
    if found.changelog is not None:
        pq.write_table(found.changelog, folder / changelog, compression="zstd")
    return TableHistory(
        table=table.name,
        changelog_producer=found.changelog_producer,
        base_snapshot=base,
        whole=found.whole,
        gaps=found.gaps,
        changes=changes,
        changelog="" if found.changelog is None else changelog,
    )


def _commits(warehouse: Warehouse, table: TableContract, folder: Path) -> CommitLog:
    """What a table's snapshots and manifests say of its commits, in files."""
    entries, files = f"commits-{table.name}.parquet", f"files-{table.name}.parquet"
    try:
        found, stored = read_commits(stored_files(warehouse, table))
    except ReaderError as error:
        return CommitLog(table=table.name, error=error.what)
    pq.write_table(found, folder / entries, compression="zstd")
    pq.write_table(stored, folder / files, compression="zstd")
    return CommitLog(table=table.name, entries=entries, files=files)


def _first_snapshot(fences: Sequence[Fence], table: str) -> int:
    """The snapshot of a table's first fence; 0 when there is none."""
    own = [fence for fence in fences if fence.mark.table == table]
    return min(own, key=lambda fence: fence.mark.number).snapshot_id if own else 0
