"""The native reader: pypaimon-rust (Apache DataFusion), independent of Flink and of the JVM."""

from __future__ import annotations

import calendar
from collections.abc import Callable

import pyarrow as pa
from pypaimon_rust.datafusion import SQLContext

from harness.errors import ReaderError, SinkFilesMissing
from harness.model import PartitionTotals, SnapshotId, TableContract, TimeWindow
from harness.paimon.totals import totals_from, totals_query
from harness.paimon.warehouse import Warehouse


class NativeReader:
    """Reads the sink from this machine. Implements `ports.TableReader`.

    It merges primary-key files by itself. It can't see what is not in object storage yet.
    """

    name = "pypaimon-rust"

    def __init__(self, warehouse: Callable[[], Warehouse], contract: TableContract) -> None:
        self._warehouse = warehouse
        self._contract = contract
        self._table = f"paimon.{contract.sink}"

    def query(self, sql: str) -> pa.Table:
        """Run SQL on a fresh context, so that nothing cached is read. No rows: a table without columns.

        Raises SinkFilesMissing when object storage says that a file is not there, else ReaderError.
        """
        warehouse = self._warehouse()
        options = {
            "type": "paimon",
            "warehouse": warehouse.path,
            "s3.endpoint": warehouse.outside,
            "s3.access-key": warehouse.credentials.user,
            "s3.secret-key": warehouse.credentials.secret,
            "s3.path-style-access": "true",
            "s3.region": "us-east-1",
        }
        try:
            context = SQLContext()
            context.register_catalog("paimon", options)
            batches = context.sql(sql)
        except Exception as error:
            raise _classified(str(error)) from error
        return pa.Table.from_batches(batches) if batches else pa.table({})

    def latest(self) -> SnapshotId | None:
        """The newest snapshot, or None while the table has none."""
        found = self.query(
            f"SELECT snapshot_id, commit_time FROM {self._table}$snapshots ORDER BY snapshot_id DESC LIMIT 1"
        ).to_pylist()
        if not found:
            return None
        committed = found[0]["commit_time"]
        seconds = calendar.timegm(committed.utctimetuple())
        return SnapshotId(
            snapshot_id=found[0]["snapshot_id"],
            committed_at_ms=seconds * 1000 + committed.microsecond // 1000,
        )

    def options(self) -> dict[str, str]:
        """The table options in force, from the table's schema file."""
        rows = self.query(f"SELECT key, value FROM {self._table}$options").to_pylist()
        return {row["key"]: row["value"] for row in rows}

    def has_row(self, *, partition: str, key: int, snapshot_id: int) -> bool:
        """Whether a snapshot shows a row with this source key in this partition."""
        contract = self._contract
        found = self.query(
            f"SELECT {contract.source_key} FROM {self._table} VERSION AS OF {snapshot_id} "
            f"WHERE {contract.partition} = '{partition}' AND {contract.source_key} = {key}"
        )
        return bool(found.num_rows)

    def rows(self, snapshot_id: int) -> pa.Table:
        """Every row of a snapshot, in the contract's columns."""
        columns = ", ".join(self._contract.columns)
        found = self.query(f"SELECT {columns} FROM {self._table} VERSION AS OF {snapshot_id}")
        if not found.num_rows:
            return pa.table({name: pa.array([], type=pa.null()) for name in self._contract.columns})
        return found

    def totals(self, window: TimeWindow, snapshot_id: int) -> tuple[PartitionTotals, ...]:
        table = f"{self._table} VERSION AS OF {snapshot_id}"
        answer = self.query(totals_query(self._contract, table, window, text_type="VARCHAR"))
        return totals_from(tuple(row.values()) for row in answer.to_pylist())


def _classified(message: str) -> ReaderError:
    first = message.split("Backtrace:")[0].strip()[:800]
    if "NotFound (permanent)" in message or "NoSuchKey" in message:
        return SinkFilesMissing(f"a file of the sink is gone: {first}")
    return ReaderError(f"pypaimon-rust could not read the sink: {first}")
