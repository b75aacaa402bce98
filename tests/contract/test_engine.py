"""A Docker Engine that the harness starts is the one that it stops, and it has what compose needs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import docker
import psutil
import pytest
import requests
from docker.errors import DockerException

from harness import shell
from harness.errors import PreflightError
from harness.stacks import engine
from harness.waiting import wait_until

# A daemon is meant to outlive whoever started it.
outlives = pytest.mark.filterwarnings("ignore:subprocess .* is still running:ResourceWarning")


@outlives
@pytest.mark.docker
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start an engine")
def test_an_engine_that_was_started_answers_and_is_stopped_by_its_record(tmp_path: Path) -> None:
    socket = f"unix://{tmp_path}/engine.sock"
    places = {"--data-root": "data", "--exec-root": "exec", "--pidfile": "pid"}
    # In a network namespace of its own: with --bridge=none dockerd deletes the docker0 that it finds.
    command = ["unshare", "--net", "dockerd", "--host", socket, "--bridge=none", "--iptables=false"]
    command += [word for option, name in places.items() for word in (option, str(tmp_path / name))]

    pid = engine.start_engine(tmp_path, command)
    try:
        answered = wait_until("it to answer", lambda: answers(socket), timeout_s=60)
    finally:
        stopped = engine.stop_ours(tmp_path)

    assert answered
    assert stopped
    assert not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    assert not engine.stop_ours(tmp_path)


@outlives
def test_a_process_that_took_over_a_recorded_number_is_left_alone(tmp_path: Path) -> None:
    pid = shell.start_daemon([sys.executable, "-c", "import time; time.sleep(60)"], log=tmp_path / "log")
    other = psutil.Process(pid)
    (tmp_path / "dockerd.json").write_text(json.dumps({"pid": pid, "started": other.create_time()}))

    try:
        stopped = engine.stop_ours(tmp_path)
        running = other.is_running()
    finally:
        other.kill()

    assert not stopped
    assert running


def test_the_compose_program_of_the_environment_runs() -> None:
    said = shell.run([str(engine.compose_program()), "version"], timeout_s=30)

    assert "Docker Compose version" in said.stdout


def test_an_engine_that_docker_host_names_is_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere.sock")

    with pytest.raises(PreflightError, match=r"DOCKER_HOST says unix:///nowhere\.sock"):
        engine.connect(may_install=True, ask=None, tell=ignore)


@pytest.mark.parametrize(
    ("memory_gib", "disk_gib", "building", "complaint"),
    [
        (9, 13, True, ""),
        (9, 6, False, ""),
        (7, 13, True, "memory: expected 8.0 GiB available for the stack, actual 7.0 GiB"),
        (9, 6, True, "disk: expected 12.0 GiB free"),
        (9, 4, False, "disk: expected 5.0 GiB free"),
    ],
)
def test_too_little_memory_or_disk_is_said_with_how_much_is_needed(
    tmp_path: Path, memory_gib: int, disk_gib: int, building: bool, complaint: str
) -> None:
    def check() -> None:
        engine.check_room(
            tmp_path,
            building=building,
            memory_bytes=memory_gib * engine.GIB,
            disk_bytes=disk_gib * engine.GIB,
        )

    if not complaint:
        check()
        return
    with pytest.raises(PreflightError, match=complaint):
        check()


def ignore(_text: str) -> None:
    """Progress is not what these tests are about."""


def answers(socket: str) -> bool:
    if engine.socket_silence(socket):
        return False
    client = docker.DockerClient(base_url=socket, timeout=5)
    try:
        return bool(client.ping())
    except (DockerException, requests.RequestException):
        return False
    finally:
        client.close()
