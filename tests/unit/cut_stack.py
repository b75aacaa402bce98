"""A stack with two jobs to cut off from its storage, and what the cut does to them."""

from __future__ import annotations

from collections.abc import Callable

from fake_firewall import FakeFirewall
from fakes import FakeJob, FakeStack
from fault_contexts import context

from harness.faults.cut_storage import CutStorage
from harness.model import CheckpointCounts
from harness.ports import FaultContext


class CutJob(FakeJob):
    """A job whose checkpoints fail, or whatever `under_cut` does to it, once it is looked at."""

    def __init__(self, under_cut: Callable[[CutJob], None], *, name: str = "orders") -> None:
        super().__init__(name=name, hosts=("taskmanager-1", "taskmanager-2"))
        self.step = 0
        self.under_cut = under_cut
        self.looks = 0

    def counts(self) -> CheckpointCounts:
        self.looks += 1
        if self.looks > 1:  # the first look is before the cut
            self.under_cut(self)
        return super().counts()


def a_checkpoint_fails(job: CutJob) -> None:
    job.failed = 1


def it_restarts(job: CutJob) -> None:
    job.restarted = 1


def it_ends(job: CutJob) -> None:
    job.restarted, job.ended = 0, "FAILED"


def checkpoints_go_on(job: CutJob) -> None:
    job.completed += 1


def nothing(job: CutJob) -> None:
    """The cut does nothing to the job."""


class Cut:
    """A stack with two jobs, and a fault to strike it with. A checkpoint is late after `late_s`."""

    def __init__(
        self,
        orders: Callable[[CutJob], None],
        behavior: Callable[[CutJob], None] | None = None,
        *,
        late_s: float = 60,
    ) -> None:
        self._late_s = late_s
        self.stack = FakeStack()
        self.firewall = FakeFirewall(self.stack)
        self.jobs = (CutJob(orders), CutJob(behavior or orders, name="behavior-log"))

    @property
    def context(self) -> FaultContext:
        return context(self.stack, self.jobs, late_s=self._late_s)

    def struck(self, fault: CutStorage) -> CutStorage:
        fault.inject(self.context)
        fault.prove(self.context)
        return fault

    def whole(self, fault: CutStorage) -> CutStorage:
        self.struck(fault).heal(self.stack)
        fault.recover(self.context)
        return fault


def missing(fault: CutStorage) -> list[str]:
    """The names of the checks that do not hold."""
    return [check.name for check in fault.proof().checks if not check.held]
