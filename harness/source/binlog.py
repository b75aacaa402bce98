"""The source's binlog, read by python-mysql-replication: a witness of the commits beside the workload.

Reads every row change of some tables from the first binlog file on, in the form of a ledger. MySQL 5.6
writes no column names and no signs of integers, so columns are taken by their place, which is checked
against information_schema. It needs the ROW format with full images, which the preflight asks for.
"""

from __future__ import annotations

import logging
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
import pymysql
from pymysqlreplication import BinLogStreamReader
from pymysqlreplication.event import FormatDescriptionEvent, QueryEvent
from pymysqlreplication.exceptions import BinLogNotEnabled, MalformedBinLogEvent, StatusVariableMismatch
from pymysqlreplication.row_event import (
    DeleteRowsEvent,
    PartialUpdateRowsEvent,
    UpdateRowsEvent,
    WriteRowsEvent,
)

from harness.errors import HarnessError, SourceError
from harness.ledger import DELETE, INSERT, UPDATE
from harness.model import Binlog, TableContract
from harness.source import mysql

KIND = pa.field("kind", pa.string())
"""The column before the table's own: INSERT, UPDATE or DELETE of harness.ledger."""

SERVER_ID = 4_000_000_001
"""As whom the server knows this reader. It ends an older reader with the same id, so this is nobody else's:
Flink CDC draws its own below 6,400."""

EVENTS = (
    FormatDescriptionEvent,
    QueryEvent,
    WriteRowsEvent,
    UpdateRowsEvent,
    PartialUpdateRowsEvent,
    DeleteRowsEvent,
)

_SEAL_AT = 8192

# What the library lets through: the connection's errors, and those of events that it can't take apart.
_UNREADABLE = (
    pymysql.err.Error,
    OSError,
    ValueError,
    AssertionError,
    IndexError,
    KeyError,
    struct.error,
    NotImplementedError,
    BinLogNotEnabled,
    MalformedBinLogEvent,
    StatusVariableMismatch,
)

Position: TypeAlias = tuple[str, int]
"""A binlog file and a place in it. Names of files sort by their age."""


class Stream(Protocol):
    """What is needed of BinLogStreamReader: its events, how far it has come, and the tables it knows."""

    log_file: str
    log_pos: int
    table_map: dict[int, Any]

    def __iter__(self) -> Iterator[Any]: ...

    def close(self) -> None: ...


class OpenStream(Protocol):
    """Makes a stream with the options of BinLogStreamReader."""

    def __call__(self, **options: Any) -> Stream: ...


def keep_binlogs(
    connect: Callable[[], mysql.Connection],
    tables: Mapping[str, tuple[TableContract, pa.Schema]],
    folder: Path,
    *,
    open_stream: OpenStream = BinLogStreamReader,
) -> tuple[Binlog, ...]:
    """Read the binlog until where it is now, and keep each table's row changes as `binlog-<table>.parquet`.

    `tables` maps names to contracts and the types of their rows. The user needs REPLICATION SLAVE and
    REPLICATION CLIENT. What goes wrong is in the Binlog; nothing is raised.
    """
    logs = {name: _TableLog(contract, schema) for name, (contract, schema) in tables.items()}
    error = ""
    try:
        _read(connect, list(logs.values()), open_stream)
    except HarnessError as failed:
        error = str(failed)
    return tuple(_kept(name, log, folder, error) for name, log in logs.items())


def _kept(name: str, log: _TableLog, folder: Path, error: str) -> Binlog:
    file = f"binlog-{name}.parquet"
    try:
        if not error:
            pq.write_table(log.table(), folder / file)
    except HarnessError as failed:
        error = str(failed)
    return Binlog(table=name, operations="" if error else file, error=error)


def _read(
    connect: Callable[[], mysql.Connection], logs: Sequence[_TableLog], open_stream: OpenStream
) -> None:
    """Give each log the events of its table. Raises SourceError."""
    connection = connect()
    try:
        for log in logs:
            log.check_columns(connection)
        first, until = _bounds(connection)
    finally:
        connection.close()
    by_name = {log.full_name: log for log in logs}
    # Without a handler its warning goes to the terminal: that binlog_row_metadata should be FULL, which 5.6
    # does not know and this does not need.
    if not (logger := logging.getLogger("pymysqlreplication")).handlers:
        logger.addHandler(logging.NullHandler())
    stream: Stream | None = None
    try:
        stream = open_stream(
            connection_settings={},
            pymysql_wrapper=_Connections(connect).open,
            server_id=SERVER_ID,
            blocking=False,
            log_file=first,
            log_pos=4,
            only_events=list(EVENTS),
            only_schemas=sorted({log.schema_name for log in logs}),
            only_tables=sorted({log.table_name for log in logs}),
            freeze_schema=True,  # a table's columns are taken apart once a file, a fifth faster
            enable_logging=False,
        )
        for event in stream:
            if (stream.log_file, stream.log_pos) > until:
                break
            if isinstance(event, FormatDescriptionEvent):
                stream.table_map = {}  # a file begins: after a restart the server numbers its tables anew
            elif isinstance(event, QueryEvent):
                for log in logs:
                    log.statement(_text(event.query), schema=_text(event.schema))
            elif event.schema + "." + event.table in by_name:
                by_name[event.schema + "." + event.table].rows(event)
        reached = (stream.log_file, stream.log_pos)
    except _UNREADABLE as error:
        raise SourceError(
            f"the binlog can't be read from {first} on"
            + (f", at {stream.log_file} position {stream.log_pos}" if stream else "")
            + f": {type(error).__name__}: {error}",
            todo="see whether mysqlbinlog can read the file, and what the server's log says",
        ) from error
    finally:
        if stream is not None:
            stream.close()
    if reached < until:
        raise SourceError(
            f"the binlog ended at {reached[0]} position {reached[1]}, before {until[0]} position {until[1]}, "
            "where the server says that it is",
            todo="see the server's log",
        )


def _bounds(connection: mysql.Connection) -> tuple[str, Position]:
    """The oldest binlog file, and where the newest one ends now."""
    files = mysql.query(connection, "SHOW BINARY LOGS")
    status = mysql.query(connection, "SHOW MASTER STATUS")
    if not files or not status:
        raise SourceError(
            "the server has no binlog", todo="set log_bin; see compose/images/mysql/harness.cnf"
        )
    return str(files[0][0]), (str(status[0][0]), int(status[0][1]))


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", errors="backslashreplace") if isinstance(value, bytes) else value


class _Connections:
    """Opens the two connections of a stream, one for the binlog and one for questions, and no third.

    The library connects again for ever when one is lost, be it that the server does not answer in time.
    """

    def __init__(self, connect: Callable[[], mysql.Connection]) -> None:
        self._connect = connect
        self._opened = 0

    def open(self, **settings: Any) -> mysql.Connection:
        """As pymysql.connect; of the settings only the class of the cursors counts."""
        if self._opened == 2:
            raise SourceError("the connection was lost or got no answer while the binlog was read")
        self._opened += 1
        connection = self._connect()
        if "cursorclass" in settings:
            connection.cursorclass = settings["cursorclass"]
        return connection


class _TableLog:
    """The row changes of one table, as they come."""

    def __init__(self, contract: TableContract, row_schema: pa.Schema) -> None:
        self.full_name = contract.source
        self.schema_name, self.table_name = contract.source.split(".")
        self._columns = contract.columns
        self._key = contract.columns.index(contract.source_key)
        self._schema = pa.schema([KIND, *(row_schema.field(name) for name in contract.columns)])
        self._created = False
        self._changed_by = ""
        self._batches: list[pa.RecordBatch] = []
        self._kinds: list[str] = []
        self._rows: list[tuple[object, ...]] = []
        self._names = re.compile(rf"(?<![\w$]){re.escape(self.table_name)}(?![\w$])", re.IGNORECASE)
        self._drops_schema = re.compile(
            rf"\s*DROP\s+(DATABASE|SCHEMA)\s.*(?<![\w$]){re.escape(self.schema_name)}(?![\w$])",
            re.IGNORECASE | re.DOTALL,
        )
        self._creates = re.compile(
            rf"\s*CREATE\s+TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?(?:`?(?P<schema>[\w$]+)`?\s*\.\s*)?"
            rf"`?{re.escape(self.table_name)}`?(?![\w$])",
            re.IGNORECASE,
        )

    def check_columns(self, connection: mysql.Connection) -> None:
        """Raises SourceError unless the table has the contract's columns in its order, all signed."""
        found = mysql.query(
            connection,
            "SELECT column_name, column_type FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            (self.schema_name, self.table_name),
        )
        names = tuple(str(name) for name, _ in found)
        unsigned = [str(name) for name, kind in found if "unsigned" in str(kind).lower()]
        if names != self._columns or unsigned:
            raise SourceError(
                f"the binlog of {self.full_name} can't be read by the places of its columns: expected "
                f"{', '.join(self._columns)}, all signed; the table has {', '.join(names) or 'no columns'}"
                + (f", unsigned {', '.join(unsigned)}" if unsigned else ""),
                todo="the workload needs a source of its own, with its own tables",
            )

    def statement(self, text: str, *, schema: str) -> None:
        """A statement in the binlog, made while `schema` was current: mostly BEGIN."""
        if text == "BEGIN":
            return
        text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
        created = self._creates.match(text)
        if created and (created["schema"] or schema).lower() == self.schema_name.lower():
            if not self._created or self._changed_by:  # else it said IF NOT EXISTS, and it did exist
                self._created, self._changed_by = True, ""
                self._batches, self._kinds, self._rows = [], [], []
        elif self._names.search(text) or self._drops_schema.match(text):
            self._changed_by = self._changed_by or " ".join(text.split())[:200]

    def rows(self, event: Any) -> None:
        """The rows of an event, in its order."""
        if event.number_of_columns != len(self._columns):
            raise SourceError(
                f"a row of {self.full_name} in the binlog has {event.number_of_columns} columns, "
                f"expected {len(self._columns)}"
            )
        if isinstance(event, UpdateRowsEvent):
            self._updates(event.rows)
        else:
            kind = INSERT if isinstance(event, WriteRowsEvent) else DELETE
            rows = [tuple(row["values"].values()) for row in event.rows]
            self._kinds += [kind] * len(rows)
            self._rows += rows
        if len(self._rows) >= _SEAL_AT:
            self._seal()

    def _updates(self, rows: Iterable[Mapping[str, Mapping[str, object]]]) -> None:
        for row in rows:
            before = tuple(row["before_values"].values())
            after = tuple(row["after_values"].values())
            if before[self._key] == after[self._key]:
                self._kinds.append(UPDATE)
                self._rows.append(after)
            else:
                self._kinds += (DELETE, INSERT)
                self._rows += (before, after)

    def table(self) -> pa.Table:
        """All row changes, in the columns of KIND and of the table. Raises SourceError when some may lack."""
        if not self._created:
            raise SourceError(
                f"the binlog does not begin before {self.full_name} was created: its first files are gone",
                todo="raise expire_logs_days, and purge or reset no binlog while a run is on",
            )
        if self._changed_by:
            raise SourceError(
                f"{self.full_name} was changed by what is no change of a row: {self._changed_by}",
                todo="nothing but the workload may write to its tables",
            )
        self._seal()
        return pa.Table.from_batches(self._batches, schema=self._schema)

    def _seal(self) -> None:
        if not self._rows:
            return
        columns = (self._kinds, *zip(*self._rows, strict=True))
        try:
            arrays = [
                pa.array(values, field.type) for values, field in zip(columns, self._schema, strict=True)
            ]
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SourceError(f"a value of {self.full_name} in the binlog does not fit: {error}") from error
        self._batches.append(pa.RecordBatch.from_arrays(arrays, schema=self._schema))
        self._kinds, self._rows = [], []
