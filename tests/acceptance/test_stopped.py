"""A harness that is stopped or killed leaves nothing broken and nothing running."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from harness.pipeline import StackOptions
from harness.stacks import engine
from harness.stacks.compose import RUN_LABEL, runs_present
from harness.waiting import wait_until

pytestmark = pytest.mark.docker

HARNESS = str(Path(sys.executable).parent / "harness")


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    """The engine, installed and started if need be."""
    found = engine.connect(may_install=StackOptions().may_install, ask=None, tell=lambda _: None)
    yield found
    found.close()


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Callable[[str], subprocess.Popen[bytes]]]:
    """Start the main job in a process of its own and wait until it says a certain text."""
    log = tmp_path / "said.txt"
    processes: list[subprocess.Popen[bytes]] = []

    def start(awaited: str) -> subprocess.Popen[bytes]:
        with log.open("wb") as out:
            process = subprocess.Popen(
                [HARNESS, "run", "kill-taskmanager", "--reports", str(tmp_path / "reports")],
                stdout=out,
                stderr=out,
                stdin=subprocess.DEVNULL,
            )
        processes.append(process)

        def said() -> bool:
            assert process.poll() is None, log.read_text()
            return awaited in log.read_text()

        wait_until(f"the run to say {awaited!r}", said, timeout_s=900, seen=log.read_text)
        return process

    yield start
    for process in processes:
        if process.poll() is None:
            process.kill()
        process.wait(timeout=30)


def containers(client: docker.DockerClient, run: str) -> list[str]:
    return [c.name for c in client.containers.list(all=True, filters={"label": f"{RUN_LABEL}={run}"})]


def run_of(tmp_path: Path) -> str:
    return next((tmp_path / "reports").glob("*-kill-taskmanager-*")).name


def test_ctrl_c_takes_the_stack_down_and_writes_the_report_of_what_there_was(
    started: Callable[[str], subprocess.Popen[bytes]], client: docker.DockerClient, tmp_path: Path
) -> None:
    process = started("steady …")
    process.send_signal(signal.SIGINT)
    status = process.wait(timeout=120)

    run = run_of(tmp_path)
    assert 2 == status, (tmp_path / "said.txt").read_text()
    assert [] == containers(client, run)
    assert "UNKNOWN" == json.loads((tmp_path / "reports" / run / "result.json").read_text())["verdict"]
    assert (tmp_path / "reports" / run / "junit.xml").is_file()


def test_after_kill_9_of_the_harness_heal_and_down_work_from_another_process(
    started: Callable[[str], subprocess.Popen[bytes]], client: docker.DockerClient, tmp_path: Path
) -> None:
    process = started("fault 1 …")
    os.kill(process.pid, signal.SIGKILL)
    process.wait(timeout=30)
    run = run_of(tmp_path)
    left = containers(client, run)
    heal = subprocess.run([HARNESS, "heal", run], capture_output=True, text=True, timeout=120, check=False)
    running = client.containers.list(filters={"label": f"{RUN_LABEL}={run}"})
    down = subprocess.run([HARNESS, "down", run], capture_output=True, text=True, timeout=120, check=False)

    assert 6 == len(left)
    assert [0, 0] == [heal.returncode, down.returncode], heal.stderr + down.stderr
    assert 6 == len(running)
    assert [] == containers(client, run)


def test_a_taken_port_is_said_plainly_and_nothing_is_left_running(client: docker.DockerClient) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        up = subprocess.run(
            [HARNESS, "up", "--ui-port", port], capture_output=True, text=True, timeout=1200, check=False
        )

    assert 3 == up.returncode
    assert f"port {port} of 127.0.0.1 is taken" in up.stderr
    assert [] == [run for run in runs_present(client) if "-up-" in run]
    networks = client.networks.list(filters={"label": RUN_LABEL})
    assert [] == [net.name for net in networks if "-up-" in net.attrs["Labels"][RUN_LABEL]]
