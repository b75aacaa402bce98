"""The workload: one thread that commits seeded transactions on all tables, and knows what it committed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import pyarrow as pa

from harness.errors import SourceError, WaitTimeout
from harness.ledger import Ledger
from harness.model import FenceMark, WorkloadOutcome
from harness.ports import BulkMarks
from harness.source.mysql import Connection
from harness.source.pace import Pace
from harness.source.session import Session
from harness.source.stream import RewritableStream, Statement, Stream
from harness.source.templates import TEMPLATES, Template

LARGEST_PACED, LARGEST_FLAT_OUT = 20, 200
"""The most operations of a transaction on the template with the largest share; on others in proportion.
Flat out they are larger: a commit costs a sync of the disk."""

FIRST_PROBE, FIRST_BULK = 1_000_001, 2_000_001
"""The first numbers of markers that are no fence's, so that each marker row has a key of its own."""

_CHECK_S = 1.0

Done = TypeVar("Done")


@dataclass(frozen=True, kw_only=True)
class _Feed:
    """A table with what is written to it and what was."""

    template: Template
    stream: Stream
    ledger: Ledger


class SourceWorkload:
    """Implements ports.Workload on the tables of these templates.

    Each transaction changes rows in every table: the next transactions of their streams, in one.
    `rate` is row changes per second in all tables, None means flat out. The same seed, kind of rate and
    number of transactions give a table the same operations (but for fences, which depend on the
    caller), whichever other tables there are. Each table begins with `initial_rows`; with `rows_later`,
    `prepare` leaves them to `fill`. `bound_s` is how long one transaction may take to commit, with
    reconnecting. The methods are for one calling thread; `committed` and `ledger` for any.
    """

    def __init__(
        self,
        *,
        connect: Callable[[], Connection],
        seed: int,
        rate: int | None,
        initial_rows: int,
        rows_later: bool = False,
        tables: Sequence[str] = tuple(TEMPLATES),
        bound_s: float = 60,
    ) -> None:
        self._seed = seed
        self._initial_rows = initial_rows
        self._rows_later = rows_later
        self._bound_s = bound_s
        self._feeds = _feeds(tables, seed=seed, largest=LARGEST_FLAT_OUT if rate is None else LARGEST_PACED)
        self._pace = Pace(rate)
        self._session = Session(connect=connect, bound_s=bound_s)
        self._transactions = 0
        self._committed_at_ms = 0
        self._prepared = self._filled = False
        self._probes: list[dict[str, Statement]] = []
        self._thread: threading.Thread | None = None
        self._started = 0.0
        self._outcome: WorkloadOutcome | None = None
        # What the calling thread and the workload's thread say to each other, under this condition.
        self._told = threading.Condition()
        self._fences = self._bulks = 0
        self._errand: Callable[[], None] | None = None
        self._paused = False
        self._stopping = False
        self._error: Exception | None = None

    def prepare(self) -> None:
        """Create the tables and commit the initial rows, unless they come later.

        Raises SourceError, also if the tables exist.
        """
        if self._prepared:
            raise SourceError("the workload was prepared before", todo="make a new workload for a new source")
        self._session.open(*(feed.template.ddl for feed in self._feeds.values()))
        self._prepared = True
        if not self._rows_later:
            self.fill()

    def probe(self) -> tuple[FenceMark, ...]:
        """Commit a row in each table, in one transaction, to see whether it arrives in the sink.

        Only between `prepare` and `fill`. Raises SourceError, also for a table whose rows can't be deleted.
        """
        self._require_unfilled("probe")
        streams = self._rewritable()
        if len(streams) < len(self._feeds):
            raise SourceError(
                f"no probe: rows of {', '.join(self._feeds.keys() - streams.keys())} can't be deleted again",
                todo="leave such tables to a scenario whose jobs read the first rows",
            )
        number = FIRST_PROBE + len(self._probes)
        probes = {table: stream.marker(number) for table, stream in streams.items()}
        self._commit({table: (probe,) for table, probe in probes.items()})
        self._probes.append(probes)
        return tuple(self._mark(table, 0, probe) for table, probe in probes.items())

    def fill(self) -> None:
        """Delete the probes, and commit the initial rows. Once, after `prepare`. Raises SourceError."""
        self._require_unfilled("first rows")
        streams = self._rewritable()
        for probes in self._probes:
            self._commit({table: (streams[table].withdraw(probe),) for table, probe in probes.items()})
        for table, feed in self._feeds.items():
            for statements in feed.stream.initial(self._initial_rows):
                self._commit({table: statements})
        self._filled = True

    def start(self) -> None:
        """Begin to commit transactions, in a thread of its own."""
        if not self._filled or self._thread or self._outcome:
            raise SourceError(
                "the workload can't start: it was not prepared and filled, or started or stopped before",
                todo="call prepare, start and stop in this order, once each",
            )
        self._started = time.monotonic()
        self._pace.restart()
        # A daemon: a harness that was interrupted must not hang on it.
        self._thread = threading.Thread(target=self._run, name="workload", daemon=True)
        self._thread.start()

    def fence(self) -> tuple[FenceMark, ...]:
        """Pause at a transaction border and commit the marker rows of all tables last, in one transaction.

        Raises SourceError when the workload has ended, WaitTimeout after two bounds: stop it then.
        """
        self._fences += 1
        number = self._fences
        return self._at_border(
            "fence", lambda: self._commit_markers(number), awaited=f"the markers of fence {number} to commit"
        )

    def bulk_update(self) -> BulkMarks:
        """Pause at a transaction border, and change every row of a table by one UPDATE that is a transaction
        of its own with a marker row before it and one after it.

        Of the first table whose rows may be changed. Raises as `fence` does.
        """
        streams = self._rewritable()
        if not streams:
            raise SourceError(
                f"no bulk update: rows of {', '.join(self._feeds)} can't be changed",
                todo="use a scenario with the job orders",
            )
        table, stream = next(iter(streams.items()))
        number = FIRST_BULK + 2 * self._bulks
        self._bulks += 1
        return self._at_border(
            "bulk update",
            lambda: self._commit_bulk(table, stream, number),
            awaited=f"the bulk update of {table} to commit",
        )

    def resume(self) -> None:
        """Go on after a fence or bulk update. What the pause cost is not caught up."""
        with self._told:
            self._require_running("resume")
            self._pace.restart()
            self._paused = False
            self._told.notify_all()

    def stop(self) -> WorkloadOutcome:
        """Stop for good, at a transaction border, and say what was done. Idempotent; never raises."""
        if self._outcome:
            return self._outcome
        timeout_s = 3 * self._bound_s
        with self._told:
            self._stopping = True
            self._told.notify_all()
        if self._thread:
            self._thread.join(timeout_s)
        seconds = time.monotonic() - self._started if self._thread else 0.0
        error = str(self._error) if self._error else ""
        if self._thread and self._thread.is_alive():
            error = error or f"the workload did not stop within {timeout_s:.0f} s"
        else:
            self._session.close()
        in_flight = self._session.in_flight
        self._outcome = WorkloadOutcome(
            seed=self._seed,
            transactions=self._transactions,
            operations=self.committed(),
            reconnects=self._session.reconnects,
            unresolved=() if in_flight is None else (in_flight,),
            seconds=seconds,
            error=error,
        )
        return self._outcome

    def committed(self) -> int:
        """Operations committed so far, in all tables."""
        return sum(len(feed.ledger) for feed in self._feeds.values())

    def ledger(self, table: str) -> pa.Table:
        """A table's ledger so far, its part of whole transactions only."""
        return self._feeds[table].ledger.table()

    def _at_border(self, what: str, errand: Callable[[], Done], *, awaited: str) -> Done:
        """Let the workload's thread run an errand at its next transaction border and pause there."""
        done: list[Done] = []

        def run() -> None:
            done.append(errand())

        timeout_s = 2 * self._bound_s
        with self._told:
            self._require_running(what)
            self._errand = run
            self._told.notify_all()
            self._told.wait_for(lambda: self._ended() or self._errand is None, timeout=timeout_s)
            if self._errand is not None:
                self._require_running(what)
                raise WaitTimeout(
                    f"waited {timeout_s:.0f} s for {awaited}; last seen: "
                    f"{self._transactions} transactions committed, in flight: {self._session.in_flight}",
                    todo="look at the source: it does not answer, or a lock holds the workload up",
                )
        return done[0]

    def _ended(self) -> bool:
        return self._stopping or self._error is not None

    def _require_running(self, what: str) -> None:
        if self._error:
            raise SourceError(f"no {what}: the workload ended with {self._error}") from self._error
        if not self._thread or self._stopping:
            raise SourceError(
                f"no {what}: the workload does not run", todo="start it first; a stopped one stays"
            )

    def _require_unfilled(self, what: str) -> None:
        if not self._prepared or self._filled:
            raise SourceError(
                f"no {what}: the workload was not prepared, or has its first rows already",
                todo="call prepare, probe, fill and start in this order",
            )

    def _rewritable(self) -> dict[str, RewritableStream]:
        return {
            table: feed.stream
            for table, feed in self._feeds.items()
            if isinstance(feed.stream, RewritableStream)
        }

    def _run(self) -> None:
        try:
            while self._await_turn():
                errand = self._errand
                if errand is not None:
                    errand()
                    self._pause_after(errand)
                else:
                    changes = self._commit(
                        {table: feed.stream.transaction() for table, feed in self._feeds.items()}
                    )
                    self._pause(self._pace.delay_s(changes))
        except Exception as error:  # noqa: BLE001 - the thread's death is told to whoever calls next
            with self._told:
                self._error = error
                self._told.notify_all()

    def _await_turn(self) -> bool:
        """Wait while paused. False when the workload is to stop."""
        while True:
            with self._told:
                called = self._told.wait_for(
                    lambda: not self._paused or self._stopping or self._errand is not None,
                    timeout=_CHECK_S,
                )
                if called:
                    return not self._stopping
            self._session.keep()

    def _pause_after(self, errand: Callable[[], None]) -> None:
        with self._told:
            self._paused = True
            if self._errand is errand:  # else its caller gave up, and there is another
                self._errand = None
            self._told.notify_all()

    def _pause(self, delay_s: float) -> None:
        while delay_s > 0:
            with self._told:
                step_s = min(delay_s, _CHECK_S)
                if self._told.wait_for(lambda: self._stopping or self._errand is not None, timeout=step_s):
                    return
            delay_s -= step_s
            if delay_s > 0:
                self._session.keep()

    def _commit_markers(self, number: int) -> tuple[FenceMark, ...]:
        markers = {table: feed.stream.marker(number) for table, feed in self._feeds.items()}
        self._commit({table: (marker,) for table, marker in markers.items()})
        return tuple(self._mark(table, number, marker) for table, marker in markers.items())

    def _commit_bulk(self, table: str, stream: RewritableStream, number: int) -> BulkMarks:
        begin, end = stream.marker(number), stream.marker(number + 1)
        # A row before the update, so that no batch of it ends where one of its row events does: Flink CDC
        # checkpoints between batches of 2,048 rows, and MySQL logs an even 78 updates in an event of 8 KiB.
        before = len(self._feeds[table].ledger)
        self._commit({table: (begin, stream.bulk_update(), end)})
        return BulkMarks(
            begin=replace(self._mark(table, 0, begin), operation=before + 1), end=self._mark(table, 0, end)
        )

    def _mark(self, table: str, number: int, marker: Statement) -> FenceMark:
        """A marker that was just committed, last of all in its table."""
        feed = self._feeds[table]
        contract = feed.template.contract
        ((_, row),) = marker.operations
        values = dict(zip(contract.columns, row, strict=True))
        return FenceMark(
            table=table,
            number=number,
            operation=len(feed.ledger),
            partition=str(values[contract.partition]),
            key=values[contract.source_key],
            committed_at_ms=self._committed_at_ms,
        )

    def _commit(self, parts: Mapping[str, Sequence[Statement]]) -> int:
        """Commit each table's part in one transaction and record it; return its number of operations."""
        statements = [statement for part in parts.values() for statement in part]
        self._session.commit(self._transactions + 1, statements)
        self._transactions += 1
        self._committed_at_ms = time.time_ns() // 1_000_000
        changes = 0
        for table, part in parts.items():
            operations = [operation for statement in part for operation in statement.operations]
            self._feeds[table].ledger.append(
                operations, transaction=self._transactions, committed_at_ms=self._committed_at_ms
            )
            changes += len(operations)
        return changes


def _feeds(tables: Sequence[str], *, seed: int, largest: int) -> dict[str, _Feed]:
    unknown = [table for table in tables if table not in TEMPLATES]
    if unknown or not tables:
        raise SourceError(
            f"the workload needs tables to write to, got {', '.join(unknown) or 'none'}",
            todo=f"name one or more of {', '.join(TEMPLATES)}",
        )
    # Of all templates, so that a table's transactions are the same without the others.
    largest_share = max(template.share for template in TEMPLATES.values())
    return {
        table: _Feed(
            template=template,
            stream=template.make_stream(seed=seed, largest=largest * template.share // largest_share),
            ledger=Ledger(template.row_schema),
        )
        for table, template in TEMPLATES.items()
        if table in tables
    }
