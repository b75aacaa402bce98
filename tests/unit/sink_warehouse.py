"""A Paimon warehouse in a folder, written by pypaimon-rust itself: what the native reader is tested on."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from pypaimon_rust.datafusion import SQLContext

from harness.model import Credentials, TableContract, TimeWindow
from harness.paimon.native import NativeReader
from harness.paimon.warehouse import Warehouse

LOG = TableContract(
    name="behavior-log",
    source="shop.behavior_log",
    sink="dwd.dwd_behavior_log",
    columns=("log_id", "user_id", "event_time", "dt"),
    source_key="log_id",
    partition="dt",
    amount="user_id",
    time="event_time",
    append_only=True,
)
WINDOW = TimeWindow(
    start=datetime(2026, 7, 6, 10),  # noqa: DTZ001 - the model's windows are naive UTC
    end=datetime(2026, 7, 6, 11),  # noqa: DTZ001 - as above
)
INSIDE, OUTSIDE = "2026-07-06 10:30:00.005", "2026-07-06 11:00:00.001"


class SinkWarehouse:
    """An append-only table, and what is committed to it: each insert is a snapshot."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._context = SQLContext()
        self._context.register_catalog("paimon", {"warehouse": str(folder)})
        self.run("CREATE SCHEMA paimon.dwd")
        self.run(
            f"CREATE TABLE paimon.{LOG.sink} "
            "(log_id STRING, user_id BIGINT, event_time TIMESTAMP(3), dt STRING) "
            "PARTITIONED BY (dt) WITH ('bucket' = '-1', 'file.format' = 'parquet')"
        )

    def run(self, sql: str) -> None:
        self._context.sql(sql)

    def insert(self, *rows: tuple[str, int, str, str]) -> None:
        values = ", ".join(f"('{key}', {user}, TIMESTAMP '{at}', '{day}')" for key, user, at, day in rows)
        self.run(f"INSERT INTO paimon.{LOG.sink} VALUES {values}")

    def reader(self) -> NativeReader:
        warehouse = Warehouse(
            path=str(self.folder),
            inside="http://storage",
            outside="http://localhost",
            credentials=Credentials(user="u", secret="s"),
        )
        return NativeReader(lambda: warehouse)

    def data_files(self) -> list[Path]:
        return sorted(self.folder.rglob("bucket-*/data-*"))

    def snapshot_file(self, snapshot_id: int) -> Path:
        return next(self.folder.rglob(f"snapshot-{snapshot_id}"))
