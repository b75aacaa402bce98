"""A JVM that stands still between SIGSTOP and SIGCONT, and the proof that it did and then ran on."""

from __future__ import annotations

import time

from harness.errors import FaultError, HarnessError, StackError, WaitTimeout
from harness.faults import processes
from harness.faults.processes import Process
from harness.model import Check, Role
from harness.ports import Stack
from harness.waiting import wait_until

SIGNAL_S = 10.0
"""A signal is delivered in milliseconds; looking takes a second on a busy machine."""


class Standstill:
    """One JVM's: `begin`, then `end` just before it is resumed, then `ran_on` until it is true.

    `may_end`: once resumed it may end itself, and its node start another one.
    """

    def __init__(self, *, may_end: bool) -> None:
        self._may_end = may_end
        self._began_s = 0.0
        self._stood_s = 0.0
        self._ended = False
        self._first: Process | None = None
        self._last: Process | None = None
        self._after: Process | None = None
        self._ran_on = False

    @property
    def passed_s(self) -> float:
        """How long ago it was stopped."""
        return time.monotonic() - self._began_s

    def begin(self, stack: Stack, node: str, *, bound_s: float) -> None:
        """Stop the node's JVM, and wait until it stands still; if it never does, a check does not hold."""
        number = processes.jvm(stack, node)
        processes.signal(stack, node, "STOP", number)
        self._began_s = time.monotonic()

        def stands() -> bool:
            self._first = processes.only(stack, node)
            return self._first is not None and self._first.stopped

        try:
            wait_until(f"{node}: the JVM to stand still", stands, timeout_s=min(SIGNAL_S, bound_s))
        except WaitTimeout:
            return

    def end(self, stack: Stack, node: str) -> None:
        """Note what is to be resumed now. Only the first call counts, and only after `begin`."""
        if self._ended or not self._began_s:
            return
        self._ended = True
        self._stood_s = self.passed_s
        try:
            self._last = processes.only(stack, node)
        except HarnessError:
            self._last = None  # it must be resumed in any case; the check says that it was not seen

    def ran_on(self, stack: Stack, node: str) -> bool:
        """Whether what stood still has used CPU time since, or another one is there if that may be."""
        self._ran_on, last = False, self._last
        self._after = after = processes.only(stack, node)
        if after is None or last is None or after.stopped:
            return False
        if after.same_as(last):
            self._ran_on = after.ran > last.ran
        else:
            self._ran_on = self._may_end
        return self._ran_on

    def checks(self, *, until: str, at_least_s: float) -> list[Check]:
        """Its three checks; `until` names the moment of `end`."""
        first, last, after = self._first, self._last, self._after
        same = first is not None and last is not None and last.same_as(first)
        more = after.ran - last.ran if after and last and after.same_as(last) else None
        return [
            Check(
                name="its process was stopped",
                expected=f"state {processes.STOPPED}",
                actual=str(first or "not seen"),
                held=first is not None and first.stopped,
            ),
            Check(
                name=f"it stood still {until}",
                expected=f"the same process in state {processes.STOPPED}, for {at_least_s:g} s or more",
                actual=f"{'the same' if same else 'not the same'}: {last or 'not seen'}, "
                f"{self._stood_s:.1f} s",
                held=same and last is not None and last.stopped and self._stood_s >= at_least_s,
            ),
            Check(
                name="it ran on once it was resumed",
                expected="more CPU time of this process" + (", or another one" if self._may_end else ""),
                actual=f"{after or 'not seen'}, "
                + ("another one" if more is None else f"{more} clock ticks of CPU time more"),
                held=self._ran_on,
            ),
        ]


def resume_all(stack: Stack) -> None:
    """Resume every JVM that stands still in a TaskManager's node. Idempotent.

    Raises FaultError when one goes on standing still, after all nodes were tried.
    """
    failures: list[HarnessError] = []
    for node in (node.name for node in stack.nodes() if node.role is Role.TASKMANAGER):
        try:
            _resume(stack, node)
        except StackError as error:
            if stack.state(node).running:  # else its processes have ended
                failures.append(error)
        except WaitTimeout as error:
            failures.append(error)
    if failures:
        raise FaultError("; ".join(failure.what for failure in failures), todo="heal again")


def _resume(stack: Stack, node: str) -> None:
    def none_stands() -> bool:
        still = [process for process in processes.look(stack, node) if process.stopped]
        for process in still:
            processes.signal(stack, node, "CONT", process.number)
        return not still

    # A process may end between the look and the signal, which is a FaultError then.
    wait_until(f"{node}: every JVM to run", none_stands, timeout_s=SIGNAL_S, retry_on=(FaultError,))
