"""The Flink SQL reader: batch queries through the SQL gateway, in a MiniCluster of the gateway's own."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from harness.errors import FlinkError, ReaderError, SqlError, StackError, WaitTimeout
from harness.flink.gateway import GatewaySession, SqlGateway
from harness.model import PartitionTotals, Reading
from harness.paimon.failures import failed_reading, reader_error
from harness.paimon.totals import Branch, totals_from, totals_query
from harness.paimon.warehouse import Warehouse
from harness.ports import TotalsRequest

READ_SETTINGS = {
    "execution.runtime-mode": "batch",
    "execution.target": "local",  # not on the cluster under test: its slots are for the job
    "parallelism.default": "2",
    "paimon.*.*.*.scan.infer-parallelism": "false",  # else a subtask per split: half the time goes there
    "table.dml-sync": "true",  # a statement that writes has ended when it returns
    "table.local-time-zone": "UTC",  # FOR SYSTEM_TIME AS OF reads its literal in the session's zone
}

READS_PER_PROCESS = 10
"""A statement's MiniCluster leaves classes behind in the gateway: some 35 MB with one branch, 80 MB with
eight and 150 MB the first time; a gateway with 2 GB came to its end after 30 statements with eight
(measured 2026-11-30)."""

_STATEMENT_S = 120
_BRANCH_S = 15


class FlinkSqlReader:
    """Reads the sink through Flink. Implements `ports.TableReader`."""

    name = "flink-sql"

    def __init__(
        self, gateway: SqlGateway, warehouse: Callable[[], Warehouse], *, renew: Callable[[], None]
    ) -> None:
        """`renew` gives the gateway a new process; called after READS_PER_PROCESS statements."""
        self._gateway = gateway
        self._renew = renew
        self._reads = 0
        self._warehouse = warehouse
        self._session: GatewaySession | None = None
        self._moments = 0

    def session(self) -> GatewaySession:
        """The batch session, opened at first use, with the catalog `paimon` current.

        The current catalog matters: FOR SYSTEM_TIME AS OF fails to plan otherwise.
        """
        if self._session is None:
            session = self._gateway.open(READ_SETTINGS)
            session.execute(create_catalog(self._warehouse()))
            session.execute("USE CATALOG paimon")
            self._session, self._moments = session, 0
        return self._session

    def totals(self, requests: Sequence[TotalsRequest]) -> tuple[Reading, ...]:
        """All requests in one statement, since each costs seconds; `seconds` is that of the statement.

        When it fails, each request is made on its own, so that those answer that can and the error is
        where it belongs. So is one of which no row came: only a statement of its own can say that a
        table is empty, since of several one may have lost its rows.
        """
        if not requests:
            return ()
        alone = len(requests) == 1
        begun = time.monotonic()
        try:
            answers = self._ask(requests)
        except SqlError as error:
            if alone:
                return (failed_reading(self.name, reader_error(self.name, error.what), begun=begun),)
            return tuple(self.totals([request])[0] for request in requests)
        except (FlinkError, WaitTimeout, StackError, ReaderError) as error:
            # No statement of its own would fare better: the gateway does not answer, or not in sense.
            failure = reader_error(self.name, error.what)
            return tuple(failed_reading(self.name, failure, begun=begun) for _ in requests)
        seconds = time.monotonic() - begun
        return tuple(
            Reading(reader=self.name, totals=totals, seconds=seconds)
            if totals or alone
            else self.totals([request])[0]
            for request, totals in zip(requests, answers, strict=True)
        )

    def _ask(self, requests: Sequence[TotalsRequest]) -> tuple[tuple[PartitionTotals, ...], ...]:
        self._keep_small()
        branches = branches_of(requests)
        statement = totals_query(branches, text_type="STRING")
        timeout_s = _STATEMENT_S + _BRANCH_S * len(branches)
        try:
            session = self.session()
            self._know_moments(session, requests)
            rows = session.execute(statement, timeout_s=timeout_s).rows
        except FlinkError:
            self._session = None  # it may be the session that is gone; the next statement opens one
            raise
        return totals_from(rows, len(branches))

    def _keep_small(self) -> None:
        self._reads += 1
        if self._reads > READS_PER_PROCESS:
            self._renew()
            self._session, self._reads = None, 1

    def _know_moments(self, session: GatewaySession, requests: Sequence[TotalsRequest]) -> None:
        by_time = Counter(request.table.name for request in requests if request.at_ms)
        for number in range(self._moments, max(by_time.values(), default=0)):
            session.execute(create_catalog(self._warehouse(), name=_moment(number)))
            self._moments = number + 1


def branches_of(requests: Sequence[TotalsRequest]) -> tuple[Branch, ...]:
    """Each request with its table as Flink SQL writes it.

    A time that a table is read at has a catalog of its own: within one statement Flink 1.20.3 takes
    every `t FOR SYSTEM_TIME AS OF …` for the same scan, whatever the times, and answers all of them
    with the first's snapshot (seen on 2026-11-30, with the options that reuse sources and plans
    turned off too). The name of the catalog is part of what tells two scans apart, and so is a hint,
    which a scan by time does not heed.
    """
    seen: Counter[str] = Counter()
    branches = []
    for request in requests:
        sink = request.table.sink
        if request.at_ms:
            catalog = _moment(seen[request.table.name])
            seen[request.table.name] += 1
            table = f"{catalog}.{sink} FOR SYSTEM_TIME AS OF TIMESTAMP '{utc_literal(request.at_ms)}'"
        else:
            table = f"paimon.{sink} /*+ OPTIONS('scan.snapshot-id'='{request.snapshot_id}') */"
        branches.append(Branch(request=request, table=table))
    return tuple(branches)


def _moment(number: int) -> str:
    return f"paimon_moment_{number}"


def utc_literal(at_ms: int) -> str:
    """Epoch milliseconds as the text of a SQL timestamp in UTC, exact to the millisecond."""
    moment = datetime.fromtimestamp(at_ms // 1000, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S}.{at_ms % 1000:03d}"


def create_catalog(warehouse: Warehouse, *, name: str = "paimon") -> str:
    """The statement that makes the warehouse known to a session as a catalog."""
    return (
        f"CREATE CATALOG {name} WITH ('type' = 'paimon', 'warehouse' = '{warehouse.path}', "
        f"'s3.endpoint' = '{warehouse.inside}', 's3.access-key' = '{warehouse.credentials.user}', "
        f"'s3.secret-key' = '{warehouse.credentials.secret}', 's3.path.style.access' = 'true')"
    )
