"""The binlog reader: every row change in order, in the ledger's form and types, and no silence about gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pymysql
import pytest
from pymysqlreplication.event import FormatDescriptionEvent, QueryEvent
from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

from harness.errors import SourceError
from harness.ledger import DELETE, INSERT, UPDATE
from harness.model import Binlog
from harness.source import behavior, orders
from harness.source.binlog import SERVER_ID, keep_binlogs

TABLES = {template.CONTRACT.name: (template.CONTRACT, template.ROW_SCHEMA) for template in (orders, behavior)}
AT = datetime(2026, 7, 6, 10, 15, 0, 7_000)  # noqa: DTZ001 - the source's times have no zone
CREATE = "\nCREATE TABLE shop.source_orders (order_id BIGINT)"
CREATE_LOG = "CREATE TABLE IF NOT EXISTS `behavior_log` (log_id VARCHAR(40))"
ORDERS_COLUMNS = [(name, "bigint(20)") for name in orders.CONTRACT.columns]

Values = tuple[object, ...]


def order(key: int, *, status: int = 1, dt: str = "2026-07-06") -> Values:
    return (key, 7, Decimal("10.00"), status, AT, AT, dt)


def log(key: str) -> Values:
    return (key, 7, "click", AT, "2026-07-06")


def named(values: Values) -> dict[str, object]:
    """A row as the library gives it when the binlog has no column names."""
    return {f"UNKNOWN_COL{place}": value for place, value in enumerate(values)}


class Rows:
    """What the events of rows have in common, without a packet to take them from."""

    def __init__(self, *rows: Mapping[str, Any], table: str = "source_orders") -> None:
        self.schema, self.table = "shop", table
        self.taken = list(rows)
        first = next(iter(rows[0].values()))
        self.number_of_columns = len(first)

    @property
    def rows(self) -> Sequence[Mapping[str, Any]]:
        return self.taken


class Write(Rows, WriteRowsEvent):  # type: ignore[misc] # the library has no types
    """Rows were inserted."""


class Delete(Rows, DeleteRowsEvent):  # type: ignore[misc] # as above
    """Rows were deleted."""


class Update(Rows, UpdateRowsEvent):  # type: ignore[misc] # as above
    """Rows were changed."""


class Query(QueryEvent):  # type: ignore[misc] # as above
    """A statement was logged."""

    def __init__(self, query: str, schema: bytes = b"shop") -> None:
        self.query, self.schema = query, schema


class Begin(FormatDescriptionEvent):  # type: ignore[misc] # as above
    """A file of the binlog begins."""

    def __init__(self) -> None:
        """Without a packet."""


def write(*rows: Values, table: str = "source_orders") -> Write:
    return Write(*({"values": named(row)} for row in rows), table=table)


def delete(*rows: Values) -> Delete:
    return Delete(*({"values": named(row)} for row in rows))


def update(*pairs: tuple[Values, Values]) -> Update:
    return Update(
        *({"before_values": named(before), "after_values": named(after)} for before, after in pairs)
    )


class FakeCursor:
    def __init__(self, source: FakeSource) -> None:
        self._source = source
        self._answer: list[tuple[object, ...]] = []

    def __enter__(self) -> FakeCursor:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def execute(self, text: str, values: Sequence[object] | None = None) -> None:
        if text == "SHOW BINARY LOGS":
            self._answer = list(self._source.files)
        elif text == "SHOW MASTER STATUS":
            self._answer = [self._source.until]
        else:
            assert values is not None
            self._answer = list(self._source.columns[str(values[1])])

    def fetchall(self) -> list[tuple[object, ...]]:
        return self._answer


class FakeSource:
    """A server with a binlog of so many events, each 100 bytes long, in one or more files."""

    def __init__(self, *files: Sequence[object]) -> None:
        names = [f"mysql-bin.{number:06}" for number in range(1, len(files) + 1)]
        self.events = [
            (name, 4 + 100 * place, event)
            for name, events in zip(names, files, strict=True)
            for place, event in enumerate(events, start=1)
        ]
        self.files: list[tuple[object, ...]] = [(name, 100) for name in names]
        self.until: tuple[object, ...] = (names[-1], 4 + 100 * len(files[-1]))
        self.columns: dict[str, list[tuple[str, str]]] = {
            "source_orders": list(ORDERS_COLUMNS),
            "behavior_log": [(name, "varchar(40)") for name in behavior.CONTRACT.columns],
        }
        self.cursorclass: object = None
        self.opened = 0
        self.closed = 0
        self.options: dict[str, Any] = {}
        self.known: list[dict[int, Any]] = []

    def connect(self) -> Any:
        self.opened += 1
        return self

    def cursor(self) -> FakeCursor:
        return FakeCursor(self)

    def rollback(self) -> None:
        """Nothing is held here."""

    def close(self) -> None:
        self.closed += 1

    def open_stream(self, **options: Any) -> FakeStream:
        self.options = options
        return FakeStream(self, options)


class FakeStream:
    """Gives the events of a source, and fails or connects again where an event says so."""

    def __init__(self, source: FakeSource, options: dict[str, Any]) -> None:
        self._source = source
        self._open = options["pymysql_wrapper"]
        self.log_file, self.log_pos = options["log_file"], options["log_pos"]
        self.table_map: dict[int, Any] = {}

    def __iter__(self) -> Iterator[Any]:
        self._open()
        self._open(cursorclass="dictionaries")
        for file, end, event in self._source.events:
            if event == "connection lost":
                self._open()
            if isinstance(event, Exception):
                raise event
            self.log_file, self.log_pos = file, end
            if isinstance(event, Rows):
                self._source.known.append(dict(self.table_map))
                self.table_map[70] = event.table
            if event is not None:
                yield event

    def close(self) -> None:
        self._source.close()


def kept(source: FakeSource, folder: Path) -> dict[str, Binlog]:
    found = keep_binlogs(source.connect, TABLES, folder, open_stream=source.open_stream)
    return {binlog.table: binlog for binlog in found}


def operations(source: FakeSource, folder: Path, table: str = "orders") -> list[Values]:
    """A table's row changes, as they were kept."""
    binlog = kept(source, folder)[table]
    assert binlog.error == ""
    return [tuple(row.values()) for row in pq.read_table(folder / binlog.operations).to_pylist()]


def test_row_changes_of_each_table_are_kept_in_order_in_the_ledgers_form(tmp_path: Path) -> None:
    source = FakeSource(
        [
            Query(CREATE, b""),
            Query(CREATE_LOG),
            Query("BEGIN"),
            write(order(1), order(2)),
            write(log("a"), table="behavior_log"),
            update((order(2), order(2, status=2)), (order(1), order(1, dt="2026-07-05"))),
            delete(order(2, status=2)),
        ]
    )

    assert [
        (INSERT, *order(1)),
        (INSERT, *order(2)),
        (UPDATE, *order(2, status=2)),
        (UPDATE, *order(1, dt="2026-07-05")),
        (DELETE, *order(2, status=2)),
    ] == operations(source, tmp_path)
    assert [(INSERT, *log("a"))] == operations(source, tmp_path, "behavior-log")


def test_an_update_of_the_key_is_a_delete_and_an_insert_as_in_a_ledger(tmp_path: Path) -> None:
    source = FakeSource([Query(CREATE), Query(CREATE_LOG), update((order(1), order(9, status=2)))])

    assert [(DELETE, *order(1)), (INSERT, *order(9, status=2))] == operations(source, tmp_path)


def test_types_are_those_of_the_ledger_and_nothing_may_be_null_as_well(tmp_path: Path) -> None:
    nothing = (5, None, None, None, None, None, None)
    source = FakeSource([Query(CREATE), Query(CREATE_LOG), write(nothing)])

    assert [(INSERT, *nothing)] == operations(source, tmp_path)
    schema = pq.read_schema(tmp_path / "binlog-orders.parquet")
    assert ["kind", *orders.CONTRACT.columns] == schema.names
    assert list(orders.ROW_SCHEMA.types) == schema.types[1:]


def test_tens_of_thousands_of_rows_are_all_kept(tmp_path: Path) -> None:
    many = [write(*(order(100 * event + row) for row in range(100))) for event in range(300)]
    source = FakeSource([Query(CREATE), Query(CREATE_LOG), *many[:100]], many[100:])

    assert list(range(30_000)) == [row[1] for row in operations(source, tmp_path)]


def test_the_whole_binlog_is_read_once_without_waiting_for_more(tmp_path: Path) -> None:
    source = FakeSource([Query(CREATE), Query(CREATE_LOG)], [write(order(1))])
    source.files = [("mysql-bin.000001", 100), ("mysql-bin.000002", 100)]
    kept(source, tmp_path)

    wanted = {"blocking": False, "log_file": "mysql-bin.000001", "log_pos": 4, "server_id": SERVER_ID}
    assert wanted == {name: source.options[name] for name in wanted}
    assert ["behavior_log", "source_orders"] == source.options["only_tables"]
    assert "dictionaries" == source.cursorclass
    assert 2 == source.closed  # the connection that asked, and the stream


def test_what_is_committed_after_the_reading_began_is_left_out(tmp_path: Path) -> None:
    source = FakeSource([Query(CREATE), Query(CREATE_LOG), write(order(1)), write(order(2))])
    source.until = ("mysql-bin.000001", 304)

    assert [(INSERT, *order(1))] == operations(source, tmp_path)


def test_a_table_that_is_made_anew_begins_anew(tmp_path: Path) -> None:
    source = FakeSource(
        [
            Query(CREATE),
            write(order(1)),
            Query("DROP DATABASE IF EXISTS `shop`"),
            Query(CREATE),
            Query(CREATE_LOG),
            write(order(2)),
            Query("CREATE TABLE IF NOT EXISTS shop.source_orders (order_id BIGINT)"),
        ]
    )

    assert [(INSERT, *order(2))] == operations(source, tmp_path)


def test_a_table_of_the_same_name_in_another_database_is_another(tmp_path: Path) -> None:
    source = FakeSource([Query("CREATE TABLE source_orders (x INT)", b"other"), Query(CREATE_LOG)])

    found = kept(source, tmp_path)

    assert "does not begin before shop.source_orders was created" in found["orders"].error
    assert ("", "") == (found["behavior-log"].error, found["orders"].operations)


def test_a_binlog_whose_beginning_is_gone_is_an_error(tmp_path: Path) -> None:
    source = FakeSource([write(order(1)), write(log("a"), table="behavior_log")])

    for binlog in kept(source, tmp_path).values():
        assert "its first files are gone" in binlog.error
        assert "" == binlog.operations


@pytest.mark.parametrize(
    "statement",
    [
        "TRUNCATE TABLE shop.source_orders",
        "ALTER TABLE `source_orders` ADD COLUMN x INT FIRST",
        "/* x */ DROP DATABASE shop",
        "DELETE FROM source_orders",
    ],
)
def test_a_change_that_is_no_change_of_a_row_is_an_error_of_its_table(tmp_path: Path, statement: str) -> None:
    source = FakeSource([Query(CREATE), Query(CREATE_LOG), write(order(1)), Query(statement)])

    assert statement.removeprefix("/* x */ ") in kept(source, tmp_path)["orders"].error


def test_statements_about_other_tables_are_nothing_to_us(tmp_path: Path) -> None:
    others = ("COMMIT", "DROP TABLE source_orders_old", "DROP DATABASE workshop", "CREATE DATABASE x")
    source = FakeSource(
        [Query(CREATE), Query(CREATE_LOG), write(order(1)), *(Query(text) for text in others)]
    )

    assert [(INSERT, *order(1))] == operations(source, tmp_path)


@pytest.mark.parametrize(
    "columns",
    [
        [],
        ORDERS_COLUMNS[::-1],
        [*ORDERS_COLUMNS, ("more", "int(11)")],
        [("order_id", "bigint(20) unsigned"), *ORDERS_COLUMNS[1:]],
    ],
    ids=["no table", "another order", "one more", "unsigned"],
)
def test_columns_that_are_not_the_contracts_are_an_error(
    tmp_path: Path, columns: list[tuple[str, str]]
) -> None:
    source = FakeSource([Query(CREATE), Query(CREATE_LOG)])
    source.columns["source_orders"] = columns

    assert "can't be read by the places of its columns" in kept(source, tmp_path)["orders"].error


def test_a_row_with_other_columns_than_the_table_has_now_is_an_error(tmp_path: Path) -> None:
    source = FakeSource([Query(CREATE), Query(CREATE_LOG), write((1, 2))])

    assert "has 2 columns, expected 7" in kept(source, tmp_path)["orders"].error


def test_numbers_of_tables_are_forgotten_where_a_file_begins(tmp_path: Path) -> None:
    """A server that restarted may give the number of a table to another one."""
    first = [Begin(), Query(CREATE), Query(CREATE_LOG), write(order(1)), write(order(2))]
    source = FakeSource(first, [Begin(), write(order(3))])

    assert [1, 2, 3] == [row[1] for row in operations(source, tmp_path)]
    assert [{}, {70: "source_orders"}, {}] == source.known


def test_a_value_that_does_not_fit_is_an_error_of_its_table_alone(tmp_path: Path) -> None:
    source = FakeSource(
        [Query(CREATE), Query(CREATE_LOG), write(order(1, status=300)), write(log("a"), table="behavior_log")]
    )

    found = kept(source, tmp_path)

    assert "a value of shop.source_orders in the binlog does not fit" in found["orders"].error
    assert "" == found["behavior-log"].error


@pytest.mark.parametrize(
    "failure",
    [
        pymysql.err.OperationalError(1236, "Could not find first log file name"),
        ValueError("'utf-8' codec can't decode byte 0xff"),
        OSError("timed out"),
    ],
)
def test_a_binlog_that_cannot_be_read_says_where_and_why(tmp_path: Path, failure: Exception) -> None:
    source = FakeSource([Query(CREATE), Query(CREATE_LOG), failure])

    for binlog in kept(source, tmp_path).values():
        assert "from mysql-bin.000001 on, at mysql-bin.000001 position 204" in binlog.error
        assert str(failure) in binlog.error


def test_a_connection_that_is_lost_is_not_replaced_for_ever(tmp_path: Path) -> None:
    source = FakeSource([Query(CREATE), Query(CREATE_LOG), "connection lost"])

    assert "the connection was lost" in kept(source, tmp_path)["orders"].error


def test_a_binlog_that_ends_before_it_should_is_an_error(tmp_path: Path) -> None:
    source = FakeSource([Query(CREATE), Query(CREATE_LOG), write(order(1))])
    source.until = ("mysql-bin.000002", 404)

    assert "before mysql-bin.000002 position 404" in kept(source, tmp_path)["orders"].error


def test_a_source_that_lets_nobody_in_is_an_error_and_not_raised(tmp_path: Path) -> None:
    def refuse() -> Any:
        raise SourceError("no connection to the source")

    found = keep_binlogs(refuse, TABLES, tmp_path)

    assert ["no connection to the source"] * 2 == [binlog.error for binlog in found]


def test_a_server_without_a_binlog_is_an_error(tmp_path: Path) -> None:
    source = FakeSource([None])
    source.files = []

    assert "the server has no binlog" in kept(source, tmp_path)["orders"].error


def test_events_of_other_kinds_move_the_position_and_are_nothing_else(tmp_path: Path) -> None:
    source = FakeSource([Query(CREATE), Query(CREATE_LOG), None, write(order(1)), None])

    assert [(INSERT, *order(1))] == operations(source, tmp_path)


def test_the_table_names_of_the_contract_may_have_signs_in_them(tmp_path: Path) -> None:
    contract = replace(orders.CONTRACT, source="shop.orders$1")
    source = FakeSource([Query("CREATE TABLE shop.`orders$1` (x INT)")])
    source.columns["orders$1"] = list(ORDERS_COLUMNS)

    (found,) = keep_binlogs(
        source.connect, {"orders": (contract, orders.ROW_SCHEMA)}, tmp_path, open_stream=source.open_stream
    )

    assert "" == found.error
