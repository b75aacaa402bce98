"""What a command printed inside a node is whole, or the command is run again if it may be."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import docker
import pytest

from harness.errors import WaitTimeout
from harness.model import ExecResult
from harness.stacks.compose import ComposeStack


class Engine:
    """A container that runs commands on this machine; of the first `losses` the output is lost."""

    def __init__(self, *, losses: int = 0) -> None:
        self.losses = losses
        self.runs = 0
        self.containers = self

    def list(self, **_filters: Any) -> Sequence[Engine]:
        return [self]

    def exec_run(self, argv: Sequence[str], *, user: str, environment: Mapping[str, str]) -> object:
        self.runs += 1
        done = subprocess.run(argv, capture_output=True, timeout=30, check=False)
        lost = self.runs <= self.losses
        return SimpleNamespace(exit_code=done.returncode, output=b"" if lost else done.stdout)


def executed(engine: Engine, *argv: str, repeatable: bool, timeout_s: float = 30) -> ExecResult:
    stack = ComposeStack(cast("docker.DockerClient", engine), "20261130-120000-test-aaaa")
    return stack.execute("taskmanager-1", argv, repeatable=repeatable, timeout_s=timeout_s)


@pytest.mark.parametrize("repeatable", [False, True])
def test_a_command_answers_with_its_status_and_what_it_printed(repeatable: bool) -> None:
    done = executed(Engine(), "sh", "-c", "echo 'two words'; exit 3", repeatable=repeatable)

    assert ExecResult(status=3, output="two words\n") == done


def test_a_command_that_only_looks_is_run_again_until_its_output_is_whole() -> None:
    engine = Engine(losses=2)

    assert "rules\n" == executed(engine, "echo", "rules", repeatable=True).output
    assert 3 == engine.runs


def test_a_command_that_only_looks_and_prints_nothing_is_run_once() -> None:
    engine = Engine()

    assert ExecResult(status=1, output="") == executed(engine, "false", repeatable=True)
    assert 1 == engine.runs


def test_a_command_that_changes_something_is_never_run_again() -> None:
    engine = Engine(losses=1)

    assert "" == executed(engine, "echo", "killed", repeatable=False).output
    assert 1 == engine.runs


def test_output_that_is_always_lost_is_an_error_that_says_of_what() -> None:
    with pytest.raises(WaitTimeout, match="all that iptables -S prints in taskmanager-1"):
        executed(Engine(losses=1000), "iptables", "-S", repeatable=True, timeout_s=0.1)
