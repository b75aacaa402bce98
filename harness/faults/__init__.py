"""The registry of faults. A new fault is one file, one line here, one test, one generated README row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from harness.errors import UsageError
from harness.faults.cut_storage import CutStorage
from harness.faults.kill_taskmanager import KillTaskManager
from harness.faults.noop import Noop
from harness.faults.pause_taskmanager import PauseTaskManager
from harness.faults.stop_with_savepoint import StopWithSavepoint
from harness.ports import Fault


@dataclass(frozen=True, kw_only=True)
class FaultKind:
    """A fault that scenarios can name: how to make one, and its row in the README."""

    make: Callable[..., Fault]
    summary: str
    proof: str
    guide: str


FAULTS: dict[str, FaultKind] = {
    "cut-storage": FaultKind(
        make=CutStorage,
        summary="the storage is cut off by iptables from the JobManager and every TaskManager",
        proof="the rules stopped packets and were there to the end; each job had a checkpoint fail",
        guide="§5.2 test 2",
    ),
    "kill-taskmanager": FaultKind(
        make=KillTaskManager,
        summary="`kill -9` of the JVM of a TaskManager that holds tasks of the jobs",
        proof="it held tasks, its process is gone; each job there restarted, restored from a checkpoint",
        guide="§5.2 test 1",
    ),
    "noop": FaultKind(
        make=Noop,
        summary="nothing at all; shows the shape of a fault",
        proof="none: a run with it is UNKNOWN",
        guide="",
    ),
    "pause-taskmanager": FaultKind(
        make=PauseTaskManager,
        summary="a TaskManager that holds tasks is stopped by SIGSTOP until they run elsewhere, then resumed",
        proof="it stood still until each job there was restored and ran elsewhere; then it ran on, a zombie",
        guide="",
    ),
    "stop-with-savepoint": FaultKind(
        make=StopWithSavepoint,
        summary="every job is stopped with a savepoint, stays down for a while, and is started from it",
        proof="each ended with a savepoint, the source went on, each was restored from that savepoint",
        guide="§5.2 test 3",
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
