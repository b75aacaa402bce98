"""The native reader: pypaimon-rust (Apache DataFusion), independent of Flink and of the JVM."""

from __future__ import annotations

import calendar
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pypaimon_rust.datafusion import PaimonCatalog, SQLContext, Table

from harness.errors import ReaderError
from harness.model import AggregateContract, Reading, SnapshotId, SnapshotRecord, TableContract
from harness.paimon.asking import Answer, ask_patiently
from harness.paimon.failures import failed_reading
from harness.paimon.history import NO_CHANGELOG, ReadHistory, read_history
from harness.paimon.increments import CHANGELOG, DELTA, read_increment
from harness.paimon.totals import Branch, totals_from, totals_query
from harness.paimon.warehouse import Warehouse
from harness.ports import TotalsRequest

_PATIENCE_S = 30


class NativeReader:
    """Reads the sink's tables from this machine. Implements `ports.TableReader`.

    It merges primary-key files by itself. It can't see what is not in object storage yet. Every method
    raises SinkFilesMissing when object storage says that a file is not there, else ReaderError.
    """

    name = "pypaimon-rust"

    def __init__(self, warehouse: Callable[[], Warehouse]) -> None:
        self._warehouse = warehouse

    def query(self, sql: str) -> pa.Table:
        """Run SQL on a fresh context, so that nothing cached is read. No rows: a table without columns."""

        def ask() -> list[pa.RecordBatch]:
            context = SQLContext()
            context.register_catalog("paimon", catalog_options(self._warehouse()))
            return list(context.sql(sql))

        batches = self._ask(ask)
        return pa.Table.from_batches(batches) if batches else pa.table({})

    def _ask(self, ask: Callable[[], Answer]) -> Answer:
        return ask_patiently(ask, reader=self.name, patience_s=_PATIENCE_S)

    def _open(self, contract: TableContract) -> Table:
        return self._ask(lambda: PaimonCatalog(catalog_options(self._warehouse())).get_table(contract.sink))

    def latest(self, contract: TableContract) -> SnapshotId | None:
        """The newest snapshot, or None while the table has none."""
        table = self._open(contract)
        found = self._ask(table.latest_snapshot)
        if found is None:
            return None
        return SnapshotId(snapshot_id=found.id(), committed_at_ms=found.commit_time_ms())

    def snapshots(self, contract: TableContract | AggregateContract) -> tuple[SnapshotRecord, ...]:
        """Every snapshot that is there, the oldest first."""
        found = self.query(f"SELECT * FROM paimon.{contract.sink}$snapshots ORDER BY snapshot_id")
        return tuple(
            SnapshotRecord(
                table=contract.name,
                snapshot_id=row["snapshot_id"],
                kind=row["commit_kind"],
                commit_user=row["commit_user"],
                commit_identifier=row["commit_identifier"],
                committed_at_ms=_epoch_ms(row["commit_time"]),
                total_records=row["total_record_count"] or 0,
                delta_records=row["delta_record_count"] or 0,
                changelog_records=row["changelog_record_count"] or 0,
            )
            for row in found.to_pylist()
        )

    def options(self, contract: TableContract) -> dict[str, str]:
        """The table options in force, from the table's schema file."""
        rows = self.query(f"SELECT key, value FROM paimon.{contract.sink}$options").to_pylist()
        return {row["key"]: row["value"] for row in rows}

    def consumers(self, contract: TableContract) -> dict[str, int]:
        """The table's consumers, and from which snapshot on each keeps them from expiring."""
        rows = self.query(f"SELECT * FROM paimon.{contract.sink}$consumers").to_pylist()
        return {row["consumer_id"]: row["next_snapshot_id"] for row in rows}

    def count(self, contract: TableContract, snapshot_id: int) -> int:
        """The rows of a snapshot. Metadata may answer this: it proves nothing of the files."""
        found = self.query(f"SELECT COUNT(*) AS row_count FROM {_at(contract, snapshot_id)}")
        return int(found["row_count"][0].as_py())

    def has_row(self, contract: TableContract, *, partition: str, key: int | str, snapshot_id: int) -> bool:
        """Whether a snapshot shows a row with this source key in this partition."""
        found = self.query(
            f"SELECT {contract.source_key} FROM {_at(contract, snapshot_id)} "
            f"WHERE {contract.partition} = {_literal(partition)} AND {contract.source_key} = {_literal(key)}"
        )
        return bool(found.num_rows)

    def rows(self, contract: TableContract, snapshot_id: int) -> pa.Table:
        """Every row of a snapshot, in the contract's columns."""
        found = self.query(f"SELECT {', '.join(contract.columns)} FROM {_at(contract, snapshot_id)}")
        if not found.num_rows:
            return pa.table({name: pa.array([], type=pa.null()) for name in contract.columns})
        return found

    def keep(self, contract: TableContract, snapshot_id: int, file: Path) -> str:
        """Write every row of a snapshot to a Parquet file; the error when they can't be read."""
        try:
            pq.write_table(self.rows(contract, snapshot_id), file)
        except ReaderError as error:
            return str(error)
        return ""

    def row_schema(self, contract: TableContract) -> pa.Schema:
        """The types in which rows are read, in the contract's columns; no file of the table is read."""
        columns = ", ".join(f"t.{name}" for name in contract.columns)
        found = self.query(
            f"SELECT {columns} FROM (SELECT 1) LEFT JOIN "
            f"(SELECT * FROM paimon.{contract.sink} WHERE false) AS t ON true"
        )
        return pa.schema([(field.name, field.type) for field in found.schema])

    def history(
        self, contract: TableContract, snapshots: Sequence[SnapshotRecord], *, base: int
    ) -> ReadHistory:
        """What all these snapshots brought, and held from `base` on; see `paimon.history`."""
        if not snapshots:
            raise ReaderError(f"{self.name}: no snapshot of {contract.sink} is known")
        return read_history(
            _Snapshots(self, contract, self._open(contract), self._ask),
            contract,
            snapshots,
            base=base,
            changelog_producer=self.options(contract).get("changelog-producer", NO_CHANGELOG),
        )

    def totals(self, requests: Sequence[TotalsRequest]) -> tuple[Reading, ...]:
        """One query per request, each at its snapshot's id. A request by time is refused: the engine's
        TIMESTAMP AS OF knows whole seconds only (pypaimon-rust 0.4).
        """
        return tuple(self._reading(request) for request in requests)

    def _reading(self, request: TotalsRequest) -> Reading:
        begun = time.monotonic()
        if request.at_ms:
            return Reading(reader=self.name, error=f"{self.name} can't read by time, only by a snapshot's id")
        branch = Branch(request=request, table=_at(request.table, request.snapshot_id))
        try:
            answer = self.query(totals_query([branch], text_type="VARCHAR"))
            (totals,) = totals_from((tuple(row.values()) for row in answer.to_pylist()), 1)
        except ReaderError as error:
            return failed_reading(self.name, error, begun=begun)
        return Reading(reader=self.name, totals=totals, seconds=time.monotonic() - begun)


class _Snapshots:
    """The snapshots of one table. Implements `history.SnapshotReader`."""

    def __init__(
        self,
        reader: NativeReader,
        contract: TableContract,
        table: Table,
        ask: Callable[[Callable[[], pa.Table]], pa.Table],
    ) -> None:
        self._reader = reader
        self._contract = contract
        self._table = table
        self._ask = ask
        self.row_schema = reader.row_schema(contract)

    def delta(self, snapshot_id: int) -> pa.Table:
        return self._increment(snapshot_id, DELTA)

    def changelog(self, snapshot_id: int) -> pa.Table:
        return self._increment(snapshot_id, CHANGELOG)

    def whole(self, snapshot_id: int) -> pa.Table:
        return self._reader.rows(self._contract, snapshot_id).cast(self.row_schema)

    def _increment(self, snapshot_id: int, mode: str) -> pa.Table:
        return self._ask(
            lambda: read_increment(self._table, self._contract, snapshot_id, mode, self.row_schema)
        )


def catalog_options(warehouse: Warehouse) -> dict[str, str]:
    """A warehouse as pypaimon-rust's catalogs take it."""
    return {
        "type": "paimon",
        "warehouse": warehouse.path,
        "s3.endpoint": warehouse.outside,
        "s3.access-key": warehouse.credentials.user,
        "s3.secret-key": warehouse.credentials.secret,
        "s3.path-style-access": "true",
        "s3.region": "us-east-1",
    }


def _at(contract: TableContract, snapshot_id: int) -> str:
    return f"paimon.{contract.sink} VERSION AS OF {snapshot_id}"


def _literal(value: int | str) -> str:
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def _epoch_ms(committed: datetime) -> int:
    """pypaimon-rust gives the commit time in UTC, whatever the machine's zone; as naive milliseconds."""
    return calendar.timegm(committed.utctimetuple()) * 1000 + committed.microsecond // 1000
