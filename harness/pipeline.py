"""MySQL → Flink CDC → Paimon on a Compose stack, put together for the runner."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import docker

from harness.errors import HarnessError, StackError
from harness.flink.gateway import GatewaySession, SqlGateway
from harness.flink.rest import FlinkRest
from harness.looking_back import LookBack
from harness.model import (
    Component,
    Credentials,
    Fence,
    FenceMark,
    Setting,
    SinkState,
    SnapshotId,
    TableContract,
)
from harness.paimon.flink_sql import FlinkSqlReader
from harness.paimon.native import NativeReader
from harness.paimon.warehouse import Warehouse
from harness.ports import Job, Seen, Travelled, Workload
from harness.profiles import Profile
from harness.reading import Readings
from harness.scenario import Scenario
from harness.source import mysql
from harness.source.templates import TEMPLATES
from harness.source.workload import SourceWorkload
from harness.stacks import engine, images
from harness.stacks.compose import CLUSTER_SETTINGS, JAVA_OPTIONS, ComposeStack
from harness.stacks.images import Mode, Source, Storage
from harness.submission import Submission
from harness.waiting import wait_until

WAREHOUSE_PATH = "s3://warehouse/"
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


class ComposePipeline:
    """Implements `ports.Pipeline`. Nothing is touched before `preflight`."""

    def __init__(self, *, run: str, scenario: Scenario, profile: Profile, options: StackOptions) -> None:
        self._run = run
        self._scenario = scenario
        self._profile = profile
        self._options = options
        self._contracts = {name: TEMPLATES[name].contract for name in scenario.jobs}
        self._stack: ComposeStack | None = None
        self._workload: Workload | None = None
        self._cdc = Credentials(user="cdc", secret=f"cdc-{run}")
        self._source_component: Component | None = None
        self._rest = FlinkRest(lambda: self.stack.address("jobmanager", 8081))
        self._gateway = SqlGateway(lambda: self.stack.address("gateway", 8083))
        self._native = NativeReader(self._warehouse)
        self._flink_sql = FlinkSqlReader(
            self._gateway, self._warehouse, renew=lambda: self.stack.renew_gateway()
        )
        self._readings = Readings(
            tables=self.tables,
            native=self._native,
            flink_sql=self._flink_sql,
            connect=self._connect,
            ledger=lambda table: self.workload.ledger(table),
            consumer=f"harness-{run}",
        )
        self._look_back = LookBack(
            tables=self.tables,
            native=self._native,
            flink_sql=self._flink_sql,
            connect=self._connect,
            warehouse=self._warehouse,
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

    @property
    def tables(self) -> tuple[TableContract, ...]:
        return tuple(self._contracts.values())

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
        self._workload = SourceWorkload(
            connect=self._connect,
            seed=self._scenario.seed,
            rate=load.rate,
            initial_rows=load.initial_rows,
            rows_later=self._scenario.startup != "initial",
            tables=self._scenario.jobs,
        )
        self._workload.prepare()

    def submit(self) -> tuple[Job, ...]:
        submission = Submission(
            run=self._run,
            stack=self.stack,
            rest=self._rest,
            gateway=self._gateway,
            profile=self._profile,
            parallelism=self._scenario.parallelism,
            chunk_size=self._scenario.chunk_size,
            startup=self._scenario.startup,
            warehouse=self._warehouse(),
            source=self._cdc,
            table_options=lambda name: self._native.options(self._contracts[name]),
        )
        with ThreadPoolExecutor(max_workers=len(self._contracts), thread_name_prefix="submit") as beside:
            return tuple(beside.map(submission.start, self._contracts))

    def settings(self) -> tuple[Setting, ...]:
        profile, origin = self._profile, f"profile {self._profile.name}"
        sized = {key: value for key, value in CLUSTER_SETTINGS.items() if not key.startswith("s3.")}
        scenario = {
            "parallelism.default": str(self._scenario.parallelism),
            "scan.incremental.snapshot.chunk.size": str(self._scenario.chunk_size),
            "scan.startup.mode": self._scenario.startup,
        }
        return (
            *(Setting(scope="job", key=key, value=value, origin=origin) for key, value in profile.flink),
            *(
                Setting(scope=f"table {name}", key=key, value=value, origin=origin)
                for name in self._contracts
                for key, value in profile.table(name).items()
            ),
            *(
                Setting(scope="cluster", key=key, value=value, origin=origin)
                for key, value in profile.cluster
            ),
            *(
                Setting(scope="catalog", key=key, value=value, origin=origin)
                for key, value in profile.catalog
            ),
            *(Setting(scope="cluster", key=key, value=value, origin="stack") for key, value in sized.items()),
            Setting(scope="cluster", key="JAVA_TOOL_OPTIONS", value=JAVA_OPTIONS, origin="stack"),
            *(
                Setting(scope="job", key=key, value=value, origin="scenario")
                for key, value in scenario.items()
            ),
        )

    def newest_snapshot(self, table: str) -> SnapshotId | None:
        return self._native.latest(self._contracts[table])

    def sink_rows(self, table: str) -> int:
        newest = self.newest_snapshot(table)
        return self._native.count(self._contracts[table], newest.snapshot_id) if newest else 0

    def shows(self, mark: FenceMark, snapshot: SnapshotId) -> bool:
        return self._native.has_row(
            self._contracts[mark.table],
            partition=mark.partition,
            key=mark.key,
            snapshot_id=snapshot.snapshot_id,
        )

    def read_fence(
        self, seen: Sequence[Seen], *, baseline: bool, folder: Path
    ) -> Callable[[], tuple[Fence, ...]]:
        return self._readings.fence(seen, baseline=baseline, folder=folder)

    def keep_sink(
        self, fault: int, savepoints: Mapping[str, str], folder: Path
    ) -> Callable[[], tuple[SinkState, ...]]:
        return self._readings.keep_sink(fault, savepoints, folder)

    def travel(self, fences: Sequence[Fence], folder: Path) -> Travelled:
        return self._look_back.travel(fences, self._readings.pins, folder)

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
