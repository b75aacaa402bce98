"""The JVM inside a node: which process it is, whether it stands still, and signals to it.

Source: proc(5), /proc/<pid>/stat.
"""

from __future__ import annotations

from dataclasses import dataclass

from harness.errors import FaultError
from harness.ports import Stack

STOPPED = "T"
"""The state of a process that SIGSTOP has stopped."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """A process at one moment. `began` (clock ticks since the machine started) tells it from another one
    with its number; `ran` is the CPU time of all its threads so far, in clock ticks.
    """

    number: str
    began: int
    state: str
    ran: int

    @property
    def stopped(self) -> bool:
        return self.state == STOPPED

    def same_as(self, other: Process) -> bool:
        """Whether both are one process, at whatever moments."""
        return (self.number, self.began) == (other.number, other.began)

    def __str__(self) -> str:
        return f"process {self.number} in state {self.state}"


def jvm(stack: Stack, node: str) -> str:
    """The number of a node's only JVM. Raises FaultError when there is none, or more."""
    found = _jvms(stack, node)
    if len(found) != 1:
        raise FaultError(f"{node}: expected one JVM, found {found or 'none'}")
    return found[0]


def look(stack: Stack, node: str) -> tuple[Process, ...]:
    """The JVMs of a node as they are now. Raises StackError when the node is down."""
    seen = [_read(stack, node, number) for number in _jvms(stack, node)]
    return tuple(process for process in seen if process is not None)


def only(stack: Stack, node: str) -> Process | None:
    """A node's only JVM as it is now; None when there is none, or more. Raises StackError as `look`."""
    seen = look(stack, node)
    return seen[0] if len(seen) == 1 else None


def signal(stack: Stack, node: str, name: str, number: str) -> None:
    """Send a signal to a process of a node. Raises FaultError when it is not there."""
    sent = stack.execute(node, ["kill", f"-{name}", number], user="root", timeout_s=10)
    if sent.status != 0:
        raise FaultError(f"kill -{name} {number} in {node} failed: {sent.output.strip()}")


def _jvms(stack: Stack, node: str) -> list[str]:
    found = stack.execute(node, ["pgrep", "-x", "java"], user="root", repeatable=True)
    return found.output.split() if found.status == 0 else []


def _read(stack: Stack, node: str, number: str) -> Process | None:
    """None for a process that has ended meanwhile."""
    told = stack.execute(node, ["cat", f"/proc/{number}/stat"], user="root", repeatable=True)
    if told.status != 0:
        return None
    # The name stands in brackets and may hold spaces; what follows it begins with field 3.
    fields = told.output.rpartition(")")[2].split()
    try:
        return Process(
            number=number, state=fields[0], ran=int(fields[11]) + int(fields[12]), began=int(fields[19])
        )
    except (IndexError, ValueError) as error:
        raise FaultError(f"{node}: can't read /proc/{number}/stat: {told.output!r}") from error
