"""The orders pipeline: MySQL → Flink CDC → Paimon on a Compose stack, put together for the runner."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import docker
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.errors import (
    FlinkError,
    FlinkUnreachable,
    HarnessError,
    ReaderError,
    SinkFilesMissing,
    StackError,
)
from harness.flink import readback, sql_script
from harness.flink.gateway import GatewaySession, SqlGateway
from harness.flink.rest import FlinkRest, RestJob, every_task_runs
from harness.ledger import state_after
from harness.model import (
    Check,
    Component,
    Credentials,
    Fence,
    FenceMark,
    Reading,
    Setting,
    SnapshotId,
    TableContract,
    TimeWindow,
)
from harness.paimon.flink_sql import FlinkSqlReader
from harness.paimon.native import NativeReader
from harness.paimon.warehouse import Warehouse
from harness.ports import TableReader, Workload
from harness.profiles import Profile
from harness.resources import folder
from harness.scenario import Scenario
from harness.source import mysql, orders
from harness.source.workload import OrdersWorkload
from harness.stacks import engine, images
from harness.stacks.compose import CLUSTER_SETTINGS, JAVA_OPTIONS, ComposeStack
from harness.stacks.images import Mode, Source, Storage
from harness.waiting import wait_until

WAREHOUSE_PATH = "s3://warehouse/"
SERVER_ID_RANGE = "5400-5499"
READY_S = 120


@dataclass(frozen=True, kw_only=True)
class StackOptions:
    """How a stack is to be made: where images come from, and which choices a person took."""

    images: Mode = "auto"
    registry: str = ""
    source: Source = "mysql"
    storage: Storage = "minio"
    ui_port: int | None = None
    may_install: bool = True
    ask: Callable[[str], bool] | None = None


class OrdersPipeline:
    """Implements `ports.Pipeline`. Nothing is touched before `preflight`."""

    contract: TableContract = orders.CONTRACT

    def __init__(self, *, run: str, scenario: Scenario, profile: Profile, options: StackOptions) -> None:
        self._run = run
        self._scenario = scenario
        self._profile = profile
        self._options = options
        self._stack: ComposeStack | None = None
        self._workload: Workload | None = None
        self._cdc = Credentials(user="cdc", secret=f"cdc-{run}")
        self._source_component: Component | None = None
        self._rest = FlinkRest(lambda: self.stack.address("jobmanager", 8081))
        self._gateway = SqlGateway(lambda: self.stack.address("gateway", 8083))
        self._native = NativeReader(self._warehouse, self.contract)
        self._flink_sql = FlinkSqlReader(
            self._gateway, self._warehouse, self.contract, renew=lambda: self.stack.renew_gateway()
        )

    @property
    def stack(self) -> ComposeStack:
        if self._stack is None:
            raise StackError("the stack is not made yet")
        return self._stack

    @property
    def workload(self) -> Workload:
        if self._workload is None:
            raise StackError("the source is not prepared yet")
        return self._workload

    def preflight(self, tell: Callable[[str], None]) -> None:
        options = self._options
        client: docker.DockerClient = engine.connect(
            may_install=options.may_install, ask=options.ask, tell=tell
        )
        building = not images.ready(client, mode=options.images, registry=options.registry)
        engine.check_resources(client, building=building)
        provided = images.provide(
            client,
            mode=options.images,
            registry=options.registry,
            source=options.source,
            storage=options.storage,
            tell=tell,
        )
        self._stack = ComposeStack(
            client, self._run, images=provided, cluster=dict(self._profile.cluster), ui_port=options.ui_port
        )

    def prepare(self) -> None:
        root = wait_until("the source to let root in", self._connect, timeout_s=60, retry_on=(HarnessError,))
        try:
            self._source_component = mysql.check_cdc_readable(root)
            mysql.create_cdc_user(root, self._cdc)
        finally:
            root.close()
        load = self._scenario.workload
        self._workload = OrdersWorkload(
            connect=self._connect, seed=self._scenario.seed, rate=load.rate, initial_rows=load.initial_rows
        )
        self._workload.prepare()

    def submit(self) -> RestJob:
        settings = dict(self._profile.flink)
        session = self._gateway.open(
            {
                **settings,
                "pipeline.name": self._scenario.job,
                "parallelism.default": str(self._scenario.parallelism),
            }
        )
        script = folder("jobs") / self._scenario.job / "job.sql"
        statements = sql_script.load(script, self._variables())
        job = RestJob(self._rest, sql_script.submit(session, script, statements))

        wait_until(
            "every task of the job to run",
            lambda: every_task_runs(job),
            timeout_s=READY_S,
            every_s=0.5,
            retry_on=(FlinkUnreachable,),
        )
        self._require_in_force(job, settings)
        return job

    def _variables(self) -> dict[str, str]:
        warehouse = self._warehouse()
        options = ",\n    ".join(f"'{key}' = '{value}'" for key, value in self._profile.table)
        return {
            "warehouse": warehouse.path,
            "s3_endpoint": warehouse.inside,
            "s3_access_key": warehouse.credentials.user,
            "s3_secret_key": warehouse.credentials.secret,
            "table_options": options,
            "source_host": "source",
            "source_port": "3306",
            "source_user": self._cdc.user,
            "source_password": self._cdc.secret,
            "server_id_range": SERVER_ID_RANGE,
        }

    def _require_in_force(self, job: RestJob, settings: dict[str, str]) -> None:
        checks: tuple[Check, ...] = (
            *readback.checkpoint_checks(settings, job.checkpoint_config()),
            *readback.restart_checks(settings, job.job_id, self.stack.log("jobmanager")),
            *readback.table_checks(dict(self._profile.table), self._native.options()),
        )
        wrong = [f"{c.name}: set {c.expected}, in force {c.actual}" for c in checks if not c.held]
        if wrong:
            raise FlinkError(
                "settings of the profile are not in force:\n  " + "\n  ".join(wrong),
                todo="a job that runs with other settings proves nothing about these",
            )

    def settings(self) -> tuple[Setting, ...]:
        profile, origin = self._profile, f"profile {self._profile.name}"
        sized = {key: value for key, value in CLUSTER_SETTINGS.items() if not key.startswith("s3.")}
        return (
            *(Setting(scope="job", key=key, value=value, origin=origin) for key, value in profile.flink),
            *(Setting(scope="table", key=key, value=value, origin=origin) for key, value in profile.table),
            *(
                Setting(scope="cluster", key=key, value=value, origin=origin)
                for key, value in profile.cluster
            ),
            *(Setting(scope="cluster", key=key, value=value, origin="stack") for key, value in sized.items()),
            Setting(scope="cluster", key="JAVA_TOOL_OPTIONS", value=JAVA_OPTIONS, origin="stack"),
            Setting(
                scope="job",
                key="parallelism.default",
                value=str(self._scenario.parallelism),
                origin="scenario",
            ),
        )

    def newest_snapshot(self) -> SnapshotId | None:
        return self._native.latest()

    def shows(self, mark: FenceMark, snapshot: SnapshotId) -> bool:
        return self._native.has_row(partition=mark.partition, key=mark.key, snapshot_id=snapshot.snapshot_id)

    def read_fence(
        self, mark: FenceMark, snapshot: SnapshotId, *, baseline: bool, visible_at_ms: int, folder: Path
    ) -> Callable[[], Fence]:
        state = state_after(self.workload.ledger(), mark.operation, key=self.contract.source_key)
        window = _middle(state[self.contract.time])
        source_file, sink_file = f"fence-{mark.number}-source.parquet", f"fence-{mark.number}-sink.parquet"
        beside = ThreadPoolExecutor(max_workers=2, thread_name_prefix="reads")
        by_flink = beside.submit(self._read, self._flink_sql, window, snapshot)
        source = self._read_source(window, folder / source_file)
        by_native = beside.submit(self._read, self._native, window, snapshot)
        kept_rows = beside.submit(
            self._keep, lambda: self._native.rows(snapshot.snapshot_id), folder / sink_file
        )

        def finish() -> Fence:
            with beside:
                readings, kept = (by_native.result(), by_flink.result()), kept_rows.result()
            return Fence(
                mark=mark,
                baseline=baseline,
                visible=visible_at_ms > 0,
                visible_at_ms=visible_at_ms,
                snapshot_id=snapshot.snapshot_id,
                snapshot_at_ms=snapshot.committed_at_ms,
                window=window,
                source=source,
                sink=readings,
                source_rows=source_file if not source.error else "",
                sink_rows=sink_file if kept else "",
            )

        return finish

    def _read_source(self, window: TimeWindow, file: Path) -> Reading:
        started = time.monotonic()
        try:
            connection = self._connect()
            try:
                found = mysql.guide_totals(connection, self.contract, window)
                pq.write_table(mysql.rows(connection, self.contract), file)
            finally:
                connection.close()
        except HarnessError as error:
            return Reading(reader="mysql", error=str(error), seconds=time.monotonic() - started)
        return Reading(reader="mysql", totals=found, seconds=time.monotonic() - started)

    def _read(self, reader: TableReader, window: TimeWindow, snapshot: SnapshotId) -> Reading:
        started = time.monotonic()
        try:
            found = reader.totals(window, snapshot.snapshot_id)
        except ReaderError as error:
            return Reading(
                reader=reader.name,
                error=str(error),
                files_missing=isinstance(error, SinkFilesMissing),
                seconds=time.monotonic() - started,
            )
        return Reading(reader=reader.name, totals=found, seconds=time.monotonic() - started)

    def _keep(self, read: Callable[[], pa.Table], file: Path) -> bool:
        try:
            pq.write_table(read(), file)
        except ReaderError:
            return False  # the same reader's totals say why
        return True

    def components(self) -> tuple[Component, ...]:
        source = (self._source_component,) if self._source_component else ()
        return (*source, *self.stack.components()) if self._stack else ()

    def kept(self) -> str:
        stack = self.stack
        return (
            f"Flink UI http://{stack.address('jobmanager', 8081)}   "
            f"SQL gateway http://{stack.address('gateway', 8083)}   "
            f"MySQL {stack.address('source', 3306)}   S3 http://{stack.address('storage', 9000)}"
        )

    def sink_session(self) -> GatewaySession:
        """A batch SQL session with the sink's catalog current, not on the cluster under test."""
        return self._flink_sql.session()

    def credentials(self) -> str:
        """Names and passwords of the stack, made anew for each; for a person at a terminal only."""
        root, storage = self.stack.source_root, self.stack.storage_root
        return f"MySQL {root.user} / {root.secret}   S3 {storage.user} / {storage.secret}"

    def discard(self) -> None:
        """Take down what there is of the stack."""
        if self._stack is not None:
            self._stack.down()

    def _connect(self) -> mysql.Connection:
        return mysql.connect(self.stack.address("source", 3306), self.stack.source_root)

    def _warehouse(self) -> Warehouse:
        return Warehouse(
            path=WAREHOUSE_PATH,
            inside="http://storage:9000",
            outside=f"http://{self.stack.address('storage', 9000)}",
            credentials=self.stack.storage_root,
        )


def _middle(times: pa.ChunkedArray) -> TimeWindow:
    """The middle half of the rows' times: a window that neither holds everything nor nothing."""
    bounds = pc.min_max(times).as_py()
    start, end = bounds["min"], bounds["max"]
    quarter = timedelta(milliseconds=int((end - start).total_seconds() * 250))
    return TimeWindow(start=start + quarter, end=end - quarter)
