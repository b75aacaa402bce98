"""The source database: connections, the preflight of what CDC needs, and reads for verification."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pymysql
from pymysql.constants import CLIENT

from harness.errors import SourceError
from harness.model import Address, Component, Credentials, PartitionTotals, TableContract, TimeWindow

Connection: TypeAlias = "pymysql.connections.Connection[pymysql.cursors.Cursor]"

LISTED = ((5, 6), (5, 7), (8, 0))
"""The MySQL versions that Flink CDC 3.5.0 lists."""

CDC_PRIVILEGES = "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT, LOCK TABLES"

EXPECTED = {
    "log_bin": "ON",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "gtid_mode": "ON",
    "character_set_server": "utf8mb4",
    "explicit_defaults_for_timestamp": "ON",
}
MYSQL_ONLY = {"gtid_mode"}
STRICT = "STRICT_TRANS_TABLES"
UTC_ZONES = {"+00:00", "UTC"}

_TODO = "set this in the server's configuration (compose/images/mysql/harness.cnf has it all) and restart it"


def connect(
    address: Address, credentials: Credentials, *, connect_timeout_s: int = 10, answer_timeout_s: int = 30
) -> Connection:
    """A connection that runs several statements per packet and counts rows changed, not rows matched.

    Transactions are explicit (no autocommit). Raises SourceError when the server does not let us in.
    """
    try:
        return pymysql.connect(
            host=address.host,
            port=address.port,
            user=credentials.user,
            password=credentials.secret,
            charset="utf8mb4",
            client_flag=CLIENT.MULTI_STATEMENTS,
            connect_timeout=connect_timeout_s,
            read_timeout=answer_timeout_s,
            write_timeout=answer_timeout_s,
            autocommit=False,
        )
    except (pymysql.err.Error, OSError) as error:
        raise SourceError(
            f"no connection to the source at {address} as {credentials.user}: {error}",
            todo="check that the source is up, and its user and password",
        ) from error


def query(
    connection: Connection, text: str, values: Sequence[object] = (), *, held: bool = False
) -> list[tuple[Any, ...]]:
    """All rows of one statement, of what is committed now; `held`: of what was when the view was held.

    Raises SourceError with the server's message.
    """
    try:
        if not held:
            connection.rollback()  # else an older read view of this connection would answer
        with connection.cursor() as cursor:
            cursor.execute(text, tuple(values) or None)
            rows = list(cursor.fetchall())
        if not held:
            connection.rollback()
    except (pymysql.err.Error, OSError) as error:
        raise SourceError(f"the source refused `{' '.join(text.split())}`: {error}") from error
    return rows


def hold_view(connection: Connection) -> None:
    """Let this connection see what is committed now, whatever is committed later (InnoDB).

    Source: MySQL manual, "START TRANSACTION", WITH CONSISTENT SNAPSHOT. Raises SourceError.
    """
    query(connection, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    query(connection, "START TRANSACTION WITH CONSISTENT SNAPSHOT", held=True)


def check_cdc_readable(connection: Connection) -> Component:
    """Read back all that Flink CDC needs of the server; say which server it is.

    Raises SourceError that names every violation at once, with what was expected and what is set.
    """
    variables = {str(name): str(value) for name, value in query(connection, "SHOW GLOBAL VARIABLES")}
    violations = violations_of(variables)
    try:
        if not query(connection, "SHOW MASTER STATUS"):
            violations.append("SHOW MASTER STATUS: expected the position of the binlog, got no row")
    except SourceError as error:
        violations.append(f"SHOW MASTER STATUS, which Flink CDC asks, failed: {error.what}")
    if violations:
        raise SourceError("the source cannot be read by CDC:\n  - " + "\n  - ".join(violations), todo=_TODO)
    mariadb = is_mariadb(variables)
    note = "; its GTIDs have MariaDB's form (domain-server-sequence), not MySQL's" if mariadb else ""
    return Component(
        name="MariaDB" if mariadb else "MySQL",
        version=variables["version"],
        origin=variables.get("version_comment", "") + note,
    )


def is_mariadb(variables: dict[str, str]) -> bool:
    """True when the server calls itself MariaDB."""
    return "mariadb" in (variables.get("version", "") + variables.get("version_comment", "")).lower()


def violations_of(variables: dict[str, str]) -> list[str]:
    """What in the server's global variables CDC or the comparison of rows can't live with."""
    mariadb = is_mariadb(variables)
    violations = [] if mariadb else _version_violations(variables.get("version", ""))
    for name, expected in EXPECTED.items():
        if mariadb and name in MYSQL_ONLY:
            continue
        actual = variables.get(name, "(no such variable)")
        if actual.upper() not in (expected.upper(), "1" if expected == "ON" else expected.upper()):
            violations.append(f"{name}: expected {expected}, is {actual}")
    modes = variables.get("sql_mode", "")
    if STRICT not in modes.split(","):
        violations.append(f"sql_mode: expected {STRICT} in it, is {modes or '(empty)'}")
    zone = variables.get("time_zone", "")
    if zone == "SYSTEM":
        zone = variables.get("system_time_zone", "")
    if zone not in UTC_ZONES:
        violations.append(f"time_zone: expected UTC or +00:00, is {zone or '(empty)'}")
    return violations


def _version_violations(version: str) -> list[str]:
    match = re.match(r"(\d+)\.(\d+)", version)
    release = (int(match[1]), int(match[2])) if match else (0, 0)
    if release in LISTED:
        return []
    why = "Flink CDC 3.5.0 lists no other"
    if release >= (8, 4):
        why = "Flink CDC 3.5.0 asks SHOW MASTER STATUS, which 8.4 and later do not know"
    return [f"version: expected MySQL 5.6, 5.7 or 8.0, is {version or 'unknown'} ({why})"]


def create_cdc_user(connection: Connection, credentials: Credentials) -> None:
    """Create the user that Flink CDC reads with. Raises SourceError, also when it is there already."""
    query(connection, "CREATE USER %s@'%%' IDENTIFIED BY %s", (credentials.user, credentials.secret))
    query(connection, f"GRANT {CDC_PRIVILEGES} ON *.* TO %s@'%%'", (credentials.user,))


def guide_totals(
    connection: Connection, contract: TableContract, window: TimeWindow
) -> tuple[PartitionTotals, ...]:
    """The source's side of the guide's §5.1 method 1, per partition, whole and in the window.

    Of the moment at which this connection's view was held.
    """
    inside = f"{contract.time} BETWEEN CAST(%s AS DATETIME(3)) AND CAST(%s AS DATETIME(3))"
    bounds = [at.isoformat(sep=" ", timespec="milliseconds") for at in (window.start, window.end)]
    rows = query(
        connection,
        f"""
        SELECT {contract.partition}, COUNT(*), COUNT(DISTINCT {contract.source_key}),
               COALESCE(SUM({contract.amount}), 0),
               COUNT(DISTINCT CASE WHEN {inside} THEN {contract.source_key} END),
               COALESCE(SUM(CASE WHEN {inside} THEN {contract.amount} END), 0)
        FROM {contract.source} GROUP BY {contract.partition} ORDER BY {contract.partition}
        """,  # noqa: S608 - the names come from the contract
        bounds * 2,
        held=True,
    )
    return tuple(
        PartitionTotals(
            partition=str(partition),
            rows=count,
            keys=keys,
            amount=f"{amount:.2f}",
            window_keys=window_keys,
            window_amount=f"{window_amount:.2f}",
        )
        for partition, count, keys, amount, window_keys, window_amount in rows
    )


def rows(connection: Connection, contract: TableContract, schema: pa.Schema) -> pa.Table:
    """The whole source table, sorted by its key; the contract's columns in the types of `schema`.

    Of the moment at which this connection's view was held.
    Integer keys sort by value and the text keys of our tables, whose collation is binary, by their bytes.
    Raises SourceError, also when a value does not fit its type.
    """
    fields = [schema.field(name) for name in contract.columns]
    selected = (f"CAST({field.name} AS CHAR)" if _as_text(field.type) else field.name for field in fields)
    fetched = query(
        connection,
        f"SELECT {', '.join(selected)} FROM {contract.source} ORDER BY {contract.source_key}",  # noqa: S608
        held=True,
    )
    columns = zip(*fetched, strict=True) if fetched else ([] for _ in fields)
    try:
        arrays = [_array(column, field.type) for column, field in zip(columns, fields, strict=True)]
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SourceError(f"a value of {contract.source} does not fit its type: {error}") from error
    return pa.Table.from_arrays(arrays, schema=pa.schema(fields))


def _as_text(kind: pa.DataType) -> bool:
    """Whether Arrow parses what the server sends: in half the time that Python objects of it take."""
    return bool(pa.types.is_decimal(kind) or pa.types.is_timestamp(kind))


def _array(values: Sequence[object], kind: pa.DataType) -> pa.Array:
    return pa.array(values, pa.string()).cast(kind) if _as_text(kind) else pa.array(values, kind)
