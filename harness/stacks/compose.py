"""The Docker Compose stack: MySQL, MinIO, a Flink cluster and a SQL gateway, one project per run."""

from __future__ import annotations

import hashlib
import secrets
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import docker
from docker.errors import APIError, NotFound
from docker.models.containers import Container
from minio import Minio
from testcontainers.compose import DockerCompose

from harness.errors import FlinkError, FlinkUnreachable, PreflightError, StackError
from harness.flink.gateway import SqlGateway
from harness.flink.rest import FlinkRest
from harness.model import Address, Component, Credentials, ExecResult, Node, NodeState, Role
from harness.resources import folder
from harness.stacks.engine import compose_program
from harness.stacks.images import ImageSet
from harness.waiting import wait_until

RUN_LABEL = "paimon-harness.run"
ROLE_LABEL = "paimon-harness.role"
WORKERS = ("taskmanager-1", "taskmanager-2")
SLOTS_PER_WORKER = 4
"""One worker holds both jobs while the other is down: else each second without a slot costs a restart
attempt (19 of 20 spent in one kill, measured 2026-11-30 with two slots)."""
BUCKETS = ("warehouse", "flink")
PORTS = {Role.SOURCE: 3306, Role.STORAGE: 9000, Role.JOBMANAGER: 8081, Role.GATEWAY: 8083}

# Sizes for 8 GiB in all, and what the harness needs in order to see everything that happened.
CLUSTER_SETTINGS = {
    "jobmanager.rpc.address": "jobmanager",
    "jobmanager.memory.process.size": "1024m",
    "taskmanager.memory.process.size": "1536m",
    "taskmanager.numberOfTaskSlots": str(SLOTS_PER_WORKER),
    "taskmanager.load-balance.mode": "SLOTS",  # tasks on every worker, so that one can be the victim
    "web.checkpoints.history": "2000",
    "web.exception-history-size": "100",
    "web.refresh-interval": "500",  # how old the REST API's answers about a job may be
    "metrics.fetcher.update-interval": "200",  # who asks for a metric waits for the next fetch
    "cluster.registration.error-delay": "500",  # for a TaskManager that is up first
    "env.java.opts.sql-gateway": "-Xmx512m -XX:MaxDirectMemorySize=256m",
    "s3.endpoint": "http://storage:9000",
    "s3.path.style.access": "true",
}

JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""For every JVM of the stack: on 2 cores the optimising compiler's threads cost more than they bring
(stack up in 18 s instead of 39 s, measured 2026-11-30), and starve heartbeats."""


END = "-- end of output --"
ENDING = ("sh", "-c", f'"$@"; status=$?; printf %s "{END}"; exit $status', "sh")
"""Runs a command and prints END after it: on a busy machine the engine has been seen to return nothing of
what a command printed, with the command's own status."""


class ComposeStack:
    """A stack of containers on this machine. Implements `ports.Stack`."""

    def __init__(
        self,
        client: docker.DockerClient,
        run: str,
        *,
        images: ImageSet | None = None,
        cluster: Mapping[str, str] | None = None,
        ui_port: int | None = None,
    ) -> None:
        """`images` and `cluster` are needed for `up` only; without them the stack is one to find again.

        `ui_port` publishes Flink's web page at that port of 127.0.0.1 instead of a free one.
        """
        self._client = client
        self._run = run
        self._images = images
        self._cluster = dict(cluster or {})
        self._ui_port = ui_port
        self.source_root = Credentials(user="root", secret=secrets.token_hex(12))
        self.storage_root = Credentials(user=f"harness{secrets.token_hex(4)}", secret=secrets.token_hex(16))

    @property
    def run(self) -> str:
        return self._run

    @property
    def project(self) -> str:
        """The Compose project's name."""
        return project_of(self._run)

    def up(self) -> None:
        self._start_containers()
        wait_until("the source to listen", lambda: self._listens("source", 3306), timeout_s=120)
        wait_until("the storage to listen", lambda: self._listens("storage", 9000), timeout_s=60)
        storage = self.minio()
        for bucket in BUCKETS:
            if not storage.bucket_exists(bucket):
                storage.make_bucket(bucket)
        rest = FlinkRest(lambda: self.address("jobmanager", PORTS[Role.JOBMANAGER]))
        wait_until(
            "every TaskManager to register",
            lambda: rest.cluster().taskmanagers == WORKERS,
            timeout_s=120,
            retry_on=(FlinkError,),  # it answers with errors, too, while it starts
        )
        self._await_gateway()

    def _await_gateway(self) -> None:
        gateway = SqlGateway(lambda: self.address("gateway", PORTS[Role.GATEWAY]))
        wait_until(
            "the SQL gateway to answer",
            gateway.version,
            timeout_s=120,
            retry_on=(FlinkUnreachable, StackError),  # without a port while it restarts
        )

    def _start_containers(self) -> None:
        images = self._images
        if images is None:
            raise StackError("this stack was found, not made: it can't be started")
        properties = {
            **CLUSTER_SETTINGS,
            **self._cluster,
            "s3.access-key": self.storage_root.user,
            "s3.secret-key": self.storage_root.secret,
        }
        variables = {
            "COMPOSE_PROJECT_NAME": self.project,
            "HARNESS_RUN": self._run,
            "HARNESS_SOURCE_IMAGE": images.source,
            "HARNESS_STORAGE_IMAGE": images.storage,
            "HARNESS_FLINK_IMAGE": images.flink,
            "HARNESS_SOURCE_PASSWORD": self.source_root.secret,
            "HARNESS_STORAGE_ACCESS_KEY": self.storage_root.user,
            "HARNESS_STORAGE_SECRET_KEY": self.storage_root.secret,
            "HARNESS_JAVA_OPTIONS": JAVA_OPTIONS,
            "HARNESS_JOBS": str(folder("jobs")),
            "HARNESS_UI_PORT": str(self._ui_port or ""),
            "HARNESS_FLINK_PROPERTIES": "\n".join(f"{key}: {value}" for key, value in properties.items()),
        }
        with tempfile.TemporaryDirectory(prefix="paimon-harness-") as private:  # holds secrets: not kept
            env_file = Path(private) / "stack.env"
            env_file.write_text("".join(f'{key}="{value}"\n' for key, value in variables.items()))
            compose = DockerCompose(
                context=folder("compose"),
                compose_file_name=str(folder("compose") / "compose.yaml"),
                env_file=str(env_file),
                wait=False,
                docker_command_path=str(_compose_launcher(Path(private))),
            )
            try:
                compose.start()
            except subprocess.CalledProcessError as error:
                said = error.stderr.decode(errors="replace").strip()
                if "port is already allocated" in said or "address already in use" in said:
                    raise PreflightError(
                        f"port {self._ui_port} of 127.0.0.1 is taken", todo="choose another with --ui-port"
                    ) from error
                raise StackError(f"Docker Compose could not start the stack:\n{said[-1500:]}") from error

    def down(self) -> None:
        label = {"label": f"com.docker.compose.project={self.project}"}
        for container in self._client.containers.list(all=True, filters=label):
            _gone_is_fine(lambda found=container: found.remove(force=True, v=True))
        for network in self._client.networks.list(filters=label):
            _gone_is_fine(network.remove)
        for volume in self._client.volumes.list(filters=label):
            _gone_is_fine(volume.remove)

    def nodes(self) -> tuple[Node, ...]:
        found = [
            Node(name=_service(container), role=Role(container.labels[ROLE_LABEL]))
            for container in self._client.containers.list(
                all=True, filters={"label": [f"{RUN_LABEL}={self._run}", ROLE_LABEL]}
            )
        ]
        return tuple(sorted(found, key=lambda node: node.name))

    def state(self, node: str) -> NodeState:
        container = self._container(node)
        state = container.attrs["State"]
        return NodeState(
            running=state["Running"] and not state["Paused"],
            started_at=state["StartedAt"],
            restarts=container.attrs["RestartCount"],
            exit_code=state["ExitCode"],
        )

    def address(self, node: str, port: int) -> Address:
        published = self._published(node, port)
        if published is None:
            raise StackError(f"node {node} publishes no port {port}", todo="is it running? `harness status`")
        return published

    def _published(self, node: str, port: int) -> Address | None:
        bindings = self._container(node).ports.get(f"{port}/tcp")
        if not bindings:
            return None
        return Address(host=bindings[0]["HostIp"], port=int(bindings[0]["HostPort"]))

    def execute(
        self,
        node: str,
        argv: Sequence[str],
        *,
        user: str = "",
        environment: Mapping[str, str] | None = None,
        timeout_s: float = 30,
        repeatable: bool = False,
    ) -> ExecResult:
        bounded = ["timeout", "--signal=KILL", str(timeout_s), *argv]
        known = dict(environment or {})
        if not repeatable:
            return self._executed(node, bounded, user=user, environment=known)
        return wait_until(
            f"all that {' '.join(argv)} prints in {node}",
            lambda: _whole(self._executed(node, [*ENDING, *bounded], user=user, environment=known)),
            timeout_s=3 * timeout_s,
            every_s=0.2,
        )

    def _executed(
        self, node: str, argv: Sequence[str], *, user: str, environment: dict[str, str]
    ) -> ExecResult:
        try:
            done = self._container(node).exec_run(list(argv), user=user, environment=environment)
        except APIError as error:
            raise StackError(f"node {node}: can't run {' '.join(argv)}: {error.explanation}") from error
        return ExecResult(status=done.exit_code, output=done.output.decode(errors="replace"))

    def ensure_running(self, node: str) -> None:
        container = self._container(node)
        if container.attrs["State"]["Paused"]:
            container.unpause()
        container.start()  # does nothing to a running container

    def log(self, node: str) -> str:
        text: bytes = self._container(node).logs(timestamps=False)
        shown = text.decode(errors="replace")
        for secret in (self.source_root.secret, self.storage_root.secret):
            shown = shown.replace(secret, "***")
        return shown

    def renew_gateway(self) -> None:
        """Restart the SQL gateway and wait until it answers; its sessions are gone."""
        self._container("gateway").restart(timeout=1)
        self._await_gateway()

    def overview(self) -> tuple[tuple[str, str, str, str, str], ...]:
        """Per node: name, role, state, restarts, and where its port is published."""
        rows = []
        for node in self.nodes():
            state, port = self.state(node.name), PORTS.get(node.role)
            published = self._published(node.name, port) if port else None
            word = "running" if state.running else f"not running ({state.exit_code})"
            rows.append((node.name, node.role.value, word, str(state.restarts), str(published or "")))
        return tuple(rows)

    def components(self) -> tuple[Component, ...]:
        return self._images.components if self._images else ()

    def minio(self) -> Minio:
        """An S3 client for the stack's object storage."""
        return Minio(
            str(self.address("storage", 9000)),
            access_key=self.storage_root.user,
            secret_key=self.storage_root.secret,
            secure=False,
        )

    def _container(self, node: str) -> Container:
        found = self._client.containers.list(
            all=True,
            filters={
                "label": [
                    f"com.docker.compose.project={self.project}",
                    f"com.docker.compose.service={node}",
                ]
            },
        )
        if not found:
            raise StackError(
                f"there is no node {node} in run {self._run}", todo="`harness status` lists the nodes"
            )
        return found[0]

    def _listens(self, node: str, port: int) -> bool:
        state = self.state(node)
        if not state.running:
            if state.restarts > 3:
                raise StackError(f"node {node} does not stay up; it said:\n{self.log(node)[-1500:]}")
            return False
        probe = ["bash", "-c", f"echo > /dev/tcp/127.0.0.1/{port}"]
        return self.execute(node, probe, timeout_s=5).status == 0


def project_of(run: str) -> str:
    """The Compose project of a run.

    Short, since a container's name is a DNS label: over 63 characters Docker's resolver gives no answer
    to reverse look-ups, and Flink's JobManager stands still for 10 s at each.
    """
    return f"harness-{hashlib.sha256(run.encode()).hexdigest()[:10]}"


def runs_present(client: docker.DockerClient) -> tuple[str, ...]:
    """Every run that has containers on this engine, running or not."""
    containers = client.containers.list(all=True, filters={"label": RUN_LABEL})
    return tuple(sorted({container.labels[RUN_LABEL] for container in containers}))


def _service(container: Container) -> str:
    return str(container.labels["com.docker.compose.service"])


def _gone_is_fine(remove: object) -> None:
    try:
        remove()  # type: ignore[operator]
    except NotFound:
        return
    except APIError as error:
        if "already in progress" not in str(error):
            raise StackError(f"can't remove a part of the stack: {error.explanation}") from error


def _compose_launcher(where: Path) -> Path:
    """testcontainers calls `docker compose …`; this stands for `docker`, needs no plugin and has a bound."""
    launcher = where / "docker"
    launcher.write_text(f'#!/bin/sh\nshift\nexec timeout 300 "{compose_program()}" "$@"\n')
    launcher.chmod(0o700)
    return launcher


def _whole(done: ExecResult) -> ExecResult | None:
    """The result without the END that its output must have; None when the output was lost."""
    if not done.output.endswith(END):
        return None
    return ExecResult(status=done.status, output=done.output.removesuffix(END))
