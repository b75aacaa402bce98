"""The Flink SQL reader: batch queries through the SQL gateway, in a MiniCluster of the gateway's own."""

from __future__ import annotations

from collections.abc import Callable

from harness.errors import FlinkError, ReaderError, SinkFilesMissing, SqlError, WaitTimeout
from harness.flink.gateway import GatewaySession, SqlGateway
from harness.model import PartitionTotals, TableContract, TimeWindow
from harness.paimon.totals import totals_from, totals_query
from harness.paimon.warehouse import Warehouse

READ_SETTINGS = {
    "execution.runtime-mode": "batch",
    "execution.target": "local",  # not on the cluster under test: its slots are for the job
    "parallelism.default": "4",
    "table.dml-sync": "true",  # a statement that writes has ended when it returns
}

READS_PER_PROCESS = 10
"""Each read's MiniCluster leaves some 35 MB of classes behind in the gateway (measured 2026-11-30)."""


class FlinkSqlReader:
    """Reads the sink through Flink. Implements `ports.TableReader`."""

    name = "flink-sql"

    def __init__(
        self,
        gateway: SqlGateway,
        warehouse: Callable[[], Warehouse],
        contract: TableContract,
        *,
        renew: Callable[[], None],
    ) -> None:
        """`renew` gives the gateway a new process; called after READS_PER_PROCESS reads."""
        self._gateway = gateway
        self._renew = renew
        self._reads = 0
        self._warehouse = warehouse
        self._contract = contract
        self._session: GatewaySession | None = None

    def session(self) -> GatewaySession:
        """The batch session, opened at first use, with the catalog `paimon` current.

        The current catalog matters: FOR SYSTEM_TIME AS OF fails to plan otherwise.
        """
        if self._session is None:
            session = self._gateway.open(READ_SETTINGS)
            session.execute(create_catalog(self._warehouse()))
            session.execute("USE CATALOG paimon")
            self._session = session
        return self._session

    def _keep_small(self) -> None:
        self._reads += 1
        if self._reads > READS_PER_PROCESS:
            self._renew()
            self._session, self._reads = None, 1

    def totals(self, window: TimeWindow, snapshot_id: int) -> tuple[PartitionTotals, ...]:
        table = f"{self._contract.sink} /*+ OPTIONS('scan.snapshot-id'='{snapshot_id}') */"
        statement = totals_query(self._contract, table, window, text_type="STRING")
        try:
            self._keep_small()
            return totals_from(self.session().execute(statement).rows)
        except SqlError as error:
            if "FileNotFoundException" in error.what or "NoSuchKey" in error.what:
                raise SinkFilesMissing(f"a file of the sink is gone: {error.what}") from error
            raise ReaderError(f"Flink SQL could not read the sink: {error.what}") from error
        except (FlinkError, WaitTimeout) as error:
            raise ReaderError(f"Flink SQL could not read the sink: {error.what}") from error


def create_catalog(warehouse: Warehouse) -> str:
    """The statement that makes the warehouse known to a session as catalog `paimon`."""
    return (
        f"CREATE CATALOG paimon WITH ('type' = 'paimon', 'warehouse' = '{warehouse.path}', "
        f"'s3.endpoint' = '{warehouse.inside}', 's3.access-key' = '{warehouse.credentials.user}', "
        f"'s3.secret-key' = '{warehouse.credentials.secret}', 's3.path.style.access' = 'true')"
    )
