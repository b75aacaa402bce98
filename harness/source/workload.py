"""The orders workload: one thread that commits seeded transactions, and knows exactly what it committed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

import pyarrow as pa

from harness.errors import SourceError, WaitTimeout
from harness.ledger import Ledger
from harness.model import FenceMark, WorkloadOutcome
from harness.source.mysql import Connection
from harness.source.orders import DDL, MARKER_PARTITION, OrderStream, Statement
from harness.source.pace import Pace
from harness.source.session import Session

LARGEST_PACED, LARGEST_FLAT_OUT = 20, 200
"""The most operations in a transaction. Flat out they are larger: a commit costs a sync of the disk."""

_CHECK_S = 1.0


class OrdersWorkload:
    """Implements ports.Workload on the orders table.

    `rate` is row changes per second, None means flat out. The same seed, rate kind and number of
    transactions give the same ledger but for commit times (and fences, which depend on the caller).
    `bound_s` is how long one transaction may take to commit, with reconnecting. The methods are for
    one calling thread; `committed` and `ledger` for any.
    """

    def __init__(
        self,
        *,
        connect: Callable[[], Connection],
        seed: int,
        rate: int | None,
        initial_rows: int,
        bound_s: float = 60,
    ) -> None:
        self._seed = seed
        self._initial_rows = initial_rows
        self._bound_s = bound_s
        self._stream = OrderStream(seed=seed, largest=LARGEST_FLAT_OUT if rate is None else LARGEST_PACED)
        self._pace = Pace(rate)
        self._ledger = Ledger()
        self._session = Session(connect=connect, bound_s=bound_s)
        self._transactions = 0
        self._committed_at_ms = 0
        self._prepared = False
        self._thread: threading.Thread | None = None
        self._started = 0.0
        self._outcome: WorkloadOutcome | None = None
        # What the calling thread and the workload's thread say to each other, under this condition.
        self._told = threading.Condition()
        self._fences_wanted = 0
        self._mark: FenceMark | None = None
        self._paused = False
        self._stopping = False
        self._error: Exception | None = None

    def prepare(self) -> None:
        """Create the tables and commit the initial rows. Raises SourceError, also if the tables exist."""
        if self._prepared:
            raise SourceError("the workload was prepared before", todo="make a new workload for a new source")
        self._session.open(DDL)
        self._prepared = True
        for statements in self._stream.initial(self._initial_rows):
            self._commit(statements)

    def start(self) -> None:
        """Begin to commit transactions, in a thread of its own."""
        if not self._prepared or self._thread or self._outcome:
            raise SourceError(
                "the workload can't start: it was not prepared, or started or stopped before",
                todo="call prepare, start and stop in this order, once each",
            )
        self._started = time.monotonic()
        self._pace.restart()
        # A daemon: a harness that was interrupted must not hang on it.
        self._thread = threading.Thread(target=self._run, name="orders-workload", daemon=True)
        self._thread.start()

    def fence(self) -> FenceMark:
        """Pause at a transaction border and commit the marker row last.

        Raises SourceError when the workload has ended, WaitTimeout after two bounds: stop it then.
        """
        timeout_s = 2 * self._bound_s
        with self._told:
            self._require_running("fence")
            self._fences_wanted += 1
            number = self._fences_wanted
            self._told.notify_all()
            self._told.wait_for(lambda: self._ended() or self._marked(number), timeout=timeout_s)
            mark = self._mark
            if mark is None or mark.number != number:
                self._require_running("fence")
                raise WaitTimeout(
                    f"waited {timeout_s:.0f} s for the marker of fence {number} to commit; last seen: "
                    f"{self._transactions} transactions committed, in flight: {self._session.in_flight}",
                    todo="look at the source: it does not answer, or a lock holds the workload up",
                )
            return mark

    def resume(self) -> None:
        """Go on after a fence. What the pause cost is not caught up."""
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
            operations=len(self._ledger),
            reconnects=self._session.reconnects,
            unresolved=() if in_flight is None else (in_flight,),
            seconds=seconds,
            error=error,
        )
        return self._outcome

    def committed(self) -> int:
        """Operations committed so far."""
        return len(self._ledger)

    def ledger(self) -> pa.Table:
        """The ledger so far, whole transactions only."""
        return self._ledger.table()

    def _ended(self) -> bool:
        return self._stopping or self._error is not None

    def _marked(self, number: int) -> bool:
        return self._mark is not None and self._mark.number == number

    def _require_running(self, what: str) -> None:
        if self._error:
            raise SourceError(f"no {what}: the workload ended with {self._error}") from self._error
        if not self._thread or self._stopping:
            raise SourceError(
                f"no {what}: the workload does not run", todo="start it first; a stopped one stays"
            )

    def _run(self) -> None:
        try:
            while self._await_turn():
                if self._fence_due():
                    self._commit_marker()
                else:
                    self._pause(self._pace.delay_s(self._commit(self._stream.transaction())))
        except Exception as error:  # noqa: BLE001 - the thread's death is told to whoever calls next
            with self._told:
                self._error = error
                self._told.notify_all()

    def _await_turn(self) -> bool:
        """Wait while paused. False when the workload is to stop."""
        while True:
            with self._told:
                called = self._told.wait_for(
                    lambda: not self._paused or self._stopping or self._fence_due(), timeout=_CHECK_S
                )
                if called:
                    return not self._stopping
            self._session.keep()

    def _fence_due(self) -> bool:
        return self._fences_wanted > (self._mark.number if self._mark else 0)

    def _pause(self, delay_s: float) -> None:
        while delay_s > 0:
            with self._told:
                step_s = min(delay_s, _CHECK_S)
                if self._told.wait_for(lambda: self._stopping or self._fence_due(), timeout=step_s):
                    return
            delay_s -= step_s
            if delay_s > 0:
                self._session.keep()

    def _commit_marker(self) -> None:
        number = self._fences_wanted
        statement = self._stream.marker(number)
        self._commit((statement,))
        mark = FenceMark(
            number=number,
            operation=len(self._ledger),
            partition=MARKER_PARTITION,
            key=statement.operations[0].row.order_id,
            committed_at_ms=self._committed_at_ms,
        )
        with self._told:
            self._mark = mark
            self._paused = True
            self._told.notify_all()

    def _commit(self, statements: Sequence[Statement]) -> int:
        """Commit one transaction and record it; return its number of operations."""
        self._session.commit(self._transactions + 1, statements)
        self._transactions += 1
        self._committed_at_ms = time.time_ns() // 1_000_000
        operations = [operation for statement in statements for operation in statement.operations]
        self._ledger.append(operations, transaction=self._transactions, committed_at_ms=self._committed_at_ms)
        return len(operations)
