"""The registry of faults. A new fault is one file, one line here, one test, one generated README row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.errors import UsageError
from harness.faults.kill_taskmanager import KillTaskManager
from harness.faults.noop import Noop
from harness.ports import Fault


@dataclass(frozen=True, kw_only=True)
class FaultKind:
    """A fault that scenarios can name: how to make one, and its row in the README."""

    make: Callable[..., Fault]
    summary: str
    proof: str
    guide: str


FAULTS: dict[str, FaultKind] = {
    "kill-taskmanager": FaultKind(
        make=KillTaskManager,
        summary="`kill -9` of the JVM of a TaskManager that holds tasks of the job",
        proof="it held tasks, its process is gone, the job restarted, restored from a checkpoint",
        guide="§5.2 test 1",
    ),
    "noop": FaultKind(
        make=Noop,
        summary="nothing at all; shows the shape of a fault",
        proof="none: a run with it is UNKNOWN",
        guide="",
    ),
}


def make(name: str, parameters: Mapping[str, str | int | float | bool]) -> Fault:
    """A fault by its registry name. Raises UsageError on an unknown name or parameter."""
    kind = FAULTS.get(name)
    if kind is None:
        raise UsageError(f"there is no fault {name!r}", todo=f"known are: {', '.join(sorted(FAULTS))}")
    try:
        return kind.make(**parameters)
    except TypeError as error:
        raise UsageError(f"fault {name}: {error}") from error
