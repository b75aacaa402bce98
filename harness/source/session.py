"""The workload's session with the source: numbered transactions, each committed once or known not to be."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

import pymysql
import tenacity
from pymysql.constants import CLIENT, ER

from harness.errors import SourceError, WaitTimeout
from harness.source.mysql import Connection
from harness.source.stream import DATABASE, Statement
from harness.waiting import pause, wait_until

NUMBERS = f"{DATABASE}.harness_transactions"
"""One row that holds the number of the last committed transaction. Not captured by CDC."""

# A lost connection shows as any of these; the server's own refusals of a statement as others.
_LOST = (pymysql.err.OperationalError, pymysql.err.InterfaceError, pymysql.err.InternalError, OSError)

_IDLE_S = 10
"""The server ends a session of ours that is idle so long. A KILL that meets MySQL 5.6 between two packets
leaves the session waiting on a closed socket, with its locks: else for wait_timeout's eight hours."""

_LEAVE_S = 2.0
_KILL_S = 10.0


class Session:
    """One connection at a time. When it is lost, the next one first finds out what became of the commit.

    `in_flight` is the number of a transaction whose commit is not known, None when all are known.
    `bound_s` bounds each search for that, and how long one transaction is tried again.
    """

    def __init__(self, *, connect: Callable[[], Connection], bound_s: float) -> None:
        self._connect = connect
        self._bound_s = bound_s
        self._connection: Connection | None = None
        # (id, client address) of the connection in use and of lost ones whose transaction may still hold
        # locks. The address tells them from strangers that got the same id after the server restarted.
        self._identity: tuple[int, str] | None = None
        self._lost: list[tuple[int, str]] = []
        self.reconnects = 0
        self.in_flight: int | None = None

    def open(self, *tables: str) -> None:
        """Create the database, the row of numbers, and the tables. Raises SourceError, also if they exist."""
        connection = self._connect()
        try:
            self._adopt(connection)
            for text in (
                f"CREATE DATABASE IF NOT EXISTS {DATABASE} DEFAULT CHARACTER SET utf8mb4",
                f"CREATE TABLE {NUMBERS} (id INT NOT NULL PRIMARY KEY, number BIGINT NOT NULL) ENGINE=InnoDB",
                f"INSERT INTO {NUMBERS} (id, number) VALUES (1, 0)",  # noqa: S608 - a name of ours
                *tables,
            ):
                _ask(connection, text)
            connection.commit()
        except (pymysql.err.Error, OSError) as error:
            connection.close()
            raise SourceError(
                f"the workload's tables could not be created in {DATABASE}: {error}",
                todo="the workload needs a source of its own, without these tables",
            ) from error

    def commit(self, number: int, statements: Sequence[Statement]) -> None:
        """Commit these statements as transaction `number`, once, whatever becomes of the connection.

        Raises SourceError when the source refuses one or changes other rows than expected (rolled
        back, not in flight), WaitTimeout or SourceError with `in_flight` set when the commit stays unknown.
        """
        if self._connection is None:
            raise SourceError("the session with the source is not open", todo="prepare the workload first")
        self.in_flight = number
        retrying = tenacity.Retrying(
            sleep=pause,
            wait=tenacity.wait_exponential(multiplier=0.02, max=1),
            stop=tenacity.stop_after_delay(self._bound_s),
            retry=tenacity.retry_if_result(lambda committed: not committed),
        )
        try:
            retrying(self._attempt, number, statements)
        except tenacity.RetryError as error:
            self.in_flight = None  # the last attempt is known not to be committed
            raise SourceError(
                f"transaction {number} was tried for {self._bound_s:.0f} s and its connection lost each time",
                todo="look at the source's log: what ends the connections?",
            ) from error
        self.in_flight = None

    def keep(self) -> None:
        """Keep the session from idling out. A lost one is left for the next commit to resolve."""
        if self._connection is not None and self._connection.open:
            with contextlib.suppress(pymysql.err.Error, OSError):
                self._connection.ping(reconnect=False)

    def close(self) -> None:
        """Leave the source. Idempotent."""
        if self._connection is not None and self._connection.open:
            self._connection.close()
        self._connection = None

    def _attempt(self, number: int, statements: Sequence[Statement]) -> bool:
        """True when committed, False when known not to be."""
        connection = self._connection
        assert connection is not None  # noqa: S101 - commit looked
        try:
            _execute(connection, number, statements)
        except _LOST as error:
            return self._resolve(number, error)
        except (pymysql.err.Error, SourceError) as error:
            self.in_flight = None  # COMMIT was not sent: closing rolls back
            self.close()
            raise SourceError(f"transaction {number} was refused and rolled back: {error}") from error
        try:
            connection.commit()
        except (pymysql.err.Error, OSError) as error:
            return self._resolve(number, error)
        return True

    def _resolve(self, number: int, lost: Exception) -> bool:
        """Reconnect, end what is left of the lost connection, and ask which number was committed last."""
        self.close()
        if self._identity:
            self._lost.append(self._identity)
            self._identity = None
        (last,) = wait_until(
            f"the source to say whether transaction {number} is committed (connection lost: {lost})",
            self._reconnect,
            timeout_s=self._bound_s,
            retry_on=(SourceError, WaitTimeout, pymysql.err.Error, OSError),
        )
        if last not in (number - 1, number):
            raise SourceError(
                f"transaction {number} is unresolved: {NUMBERS} should say {number - 1} or that, says {last}",
                todo="another workload writes to this source, or it lost data; start with a new source",
            )
        return last == number

    def _reconnect(self) -> tuple[int]:
        """A new connection, and the number of the last committed transaction as it sees it."""
        connection = self._connect()
        try:
            self._adopt(connection)
            for identity in self._lost:
                _end(connection, identity, leave_s=min(_LEAVE_S, self._bound_s / 20))
            # Waits for a commit that is still under way, if any: it holds this row.
            ((last,),) = _ask(connection, f"SELECT number FROM {NUMBERS} WHERE id = 1 FOR UPDATE")  # noqa: S608
            connection.commit()
        except Exception:
            if self._identity:
                self._lost.append(self._identity)
                self._identity = None
            self.close()
            if connection.open:
                connection.close()
            raise
        self._lost.clear()
        self.reconnects += 1
        return (int(last),)  # type: ignore[call-overload]

    def _adopt(self, connection: Connection) -> None:
        """Take the connection into use; refuse one that counts other than changed rows."""
        if connection.client_flag & CLIENT.FOUND_ROWS or not connection.client_flag & CLIENT.MULTI_STATEMENTS:
            connection.close()
            raise SourceError(
                "the workload's connection must have MULTI_STATEMENTS and not FOUND_ROWS",
                todo="connect with harness.source.mysql.connect",
            )
        connection.autocommit(False)
        _ask(connection, f"SET SESSION wait_timeout = {_IDLE_S}")
        self._connection = connection
        ((thread, host),) = _ask(
            connection, "SELECT id, host FROM information_schema.processlist WHERE id = CONNECTION_ID()"
        )
        self._identity = (int(str(thread)), str(host))


def _ask(connection: Connection, text: str) -> list[tuple[object, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(text)
        return list(cursor.fetchall())


def _execute(connection: Connection, number: int, statements: Sequence[Statement]) -> None:
    """Send all statements in one packet and check what each changed. Raises SourceError at a difference."""
    mark = Statement(f"UPDATE {NUMBERS} SET number = {number} WHERE id = 1", 1, ())  # noqa: S608 - ours
    sent = (mark, *statements)
    for place, statement in enumerate(sent):
        changed = connection.next_result() if place else connection.query(";\n".join(s.text for s in sent))
        if changed != statement.changed:
            raise SourceError(
                f"expected {statement.changed} rows changed, got {changed}, by `{statement.text[:300]}`",
                todo="nothing but the workload may write to its tables",
            )


def _end(connection: Connection, identity: tuple[int, str], *, leave_s: float) -> None:
    """Wait until a lost connection is gone from the server; kill it if it does not go by itself."""
    thread, host = identity

    def gone() -> bool:
        found = _ask(connection, f"SELECT host FROM information_schema.processlist WHERE id = {thread}")  # noqa: S608
        return (host,) not in found

    # Most go as soon as the server sees our end closed. Killing those at once is what _IDLE_S is about.
    with contextlib.suppress(WaitTimeout):
        wait_until(f"the lost connection {thread} to leave", gone, timeout_s=leave_s, every_s=0.02)
        return
    try:
        _ask(connection, f"KILL {thread}")
    except pymysql.err.Error as error:
        if error.args[0] != ER.NO_SUCH_THREAD:
            raise
    wait_until(f"the lost connection {thread} to end", gone, timeout_s=_KILL_S, every_s=0.05)
