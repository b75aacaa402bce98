"""stop-with-savepoint: each job is stopped, stays down, and is restored from its own savepoint."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping

import pytest
from fakes import Calls, FakeJob, FakeStack
from fault_contexts import context

from harness import faults
from harness.errors import FlinkError, UsageError, WaitTimeout
from harness.faults.lives import same_place
from harness.faults.stop_with_savepoint import StopWithSavepoint
from harness.model import Restore
from harness.ports import FaultContext

WENT_ON = "orders: was down while the source went on"
RESTORED = "orders: restored from its savepoint"


class Stop:
    """Two jobs to stop, a source that commits 600 operations between two looks, and what was kept."""

    def __init__(self, *, committed: Callable[[], int] | None = None) -> None:
        self.stack = FakeStack()
        self.jobs = (FakeJob(), FakeJob(name="behavior-log"))
        self.kept: list[Mapping[str, str]] = []
        self.states_when_kept: list[list[str]] = []
        self._committed = committed or itertools.count(0, 600).__next__

    @property
    def context(self) -> FaultContext:
        def keep(savepoints: Mapping[str, str]) -> None:
            self.kept.append(savepoints)
            self.states_when_kept.append([job.state() for job in self.jobs])

        return context(self.stack, self.jobs, committed=self._committed, keep_sink=keep)

    def struck(self, fault: StopWithSavepoint) -> StopWithSavepoint:
        fault.inject(self.context)
        fault.prove(self.context)
        return fault

    def whole(self, fault: StopWithSavepoint) -> StopWithSavepoint:
        self.struck(fault).heal(self.stack)
        fault.recover(self.context)
        return fault


class RestoredElsewhere(FakeJob):
    """A job that says another restore than the one it was started with."""

    def __init__(self, restore: Restore | None) -> None:
        super().__init__()
        self.says = restore

    def last_restore(self) -> Restore | None:
        return self.says


def restore(path: str, *, is_savepoint: bool = True) -> Restore:
    return Restore(checkpoint_id=9, at_ms=1, is_savepoint=is_savepoint, path=path)


def missing(fault: StopWithSavepoint) -> list[str]:
    return [check.name for check in fault.proof().checks if not check.held]


def test_it_bites_when_every_effect_was_seen() -> None:
    stop = Stop()
    proof = stop.whole(StopWithSavepoint()).proof()

    assert proof.bit
    assert ("stop-with-savepoint", "") == (proof.fault, proof.node)
    assert proof.injected_at_ms > 0
    assert [
        "behavior-log: stopped with a savepoint",
        "behavior-log: was down while the source went on",
        "behavior-log: restored from its savepoint",
        "orders: stopped with a savepoint",
        WENT_ON,
        RESTORED,
    ] == [check.name for check in proof.checks]


def test_every_job_is_started_from_its_own_savepoint() -> None:
    stop = Stop()
    stop.whole(StopWithSavepoint())

    for job in stop.jobs:
        path = f"s3://flink/savepoints/{job.name}-1"
        assert [("", ""), (path, f"stopped with savepoint {path}")] == job.lives


def test_the_sink_is_kept_once_with_every_savepoint_while_the_jobs_are_down() -> None:
    stop = Stop()
    stop.whole(StopWithSavepoint())

    savepoints = {name: f"s3://flink/savepoints/{name}-1" for name in ("orders", "behavior-log")}
    assert [savepoints] == stop.kept
    assert [["FINISHED", "FINISHED"]] == stop.states_when_kept


def test_a_fault_that_was_never_injected_did_not_bite() -> None:
    assert not StopWithSavepoint().proof().bit
    assert 0 == StopWithSavepoint().proof().injected_at_ms


def test_a_start_without_the_savepoint_proves_nothing() -> None:
    stop = Stop()
    fault = stop.whole(StopWithSavepoint(start_from="nothing"))

    assert ["behavior-log: restored from its savepoint", RESTORED] == missing(fault)
    assert "started from nothing" == fault.proof().checks[-1].actual
    assert ["", ""] == [job.lives[-1][0] for job in stop.jobs]


@pytest.mark.parametrize(
    "said",
    [
        None,
        restore("s3://flink/savepoints/orders-0"),
        restore("s3://flink/savepoints/orders-1", is_savepoint=False),
        restore(""),
    ],
    ids=["nothing", "another savepoint", "a checkpoint", "no path"],
)
def test_a_job_restored_from_anything_else_proves_nothing(said: Restore | None) -> None:
    stop = Stop()
    stop.jobs = (RestoredElsewhere(said), stop.jobs[1])

    assert [RESTORED] == missing(stop.whole(StopWithSavepoint()))


@pytest.mark.parametrize(
    "path",
    [
        "s3://flink/savepoints/orders-1/",
        "s3a://flink/savepoints/orders-1",
        "s3://flink/savepoints/orders-1/_metadata",
    ],
)
def test_another_spelling_of_the_savepoint_is_the_savepoint(path: str) -> None:
    stop = Stop()
    stop.jobs = (RestoredElsewhere(restore(path)), stop.jobs[1])

    assert [] == missing(stop.whole(StopWithSavepoint()))


def test_a_job_that_was_not_started_again_proves_nothing() -> None:
    fault = Stop().struck(StopWithSavepoint())

    assert ["behavior-log: restored from its savepoint", RESTORED] == missing(fault)


def test_a_source_that_stood_still_proves_nothing() -> None:
    stop = Stop(committed=lambda: 5000)
    fault = stop.whole(StopWithSavepoint())

    assert ["behavior-log: was down while the source went on", WENT_ON] == missing(fault)
    assert "FINISHED, 0 operations meanwhile" == fault.proof().checks[1].actual


def test_operations_from_before_the_stop_do_not_count() -> None:
    looks = iter([10_000, 10_999, *([10_999] * 1000)])

    assert WENT_ON in missing(Stop(committed=lambda: next(looks)).whole(StopWithSavepoint()))


def test_a_job_that_was_not_down_proves_nothing() -> None:
    stop = Stop()
    fault = StopWithSavepoint()
    fault.inject(stop.context)
    stop.jobs[0].ended = "RESTARTING"
    fault.prove(stop.context)
    fault.recover(stop.context)

    assert [WENT_ON] == missing(fault)


@pytest.mark.parametrize("error", [FlinkError("a task does not run"), WaitTimeout("waited 90 s")])
def test_a_job_that_refuses_to_stop_is_told_and_the_others_are_started_again(error: Exception) -> None:
    stop = Stop()
    stop.jobs[0].calls = Calls(stop_with_savepoint=error)
    fault = stop.whole(StopWithSavepoint())

    assert {"orders: stopped with a savepoint", WENT_ON, RESTORED} == set(missing(fault))
    assert str(error) in [check.actual for check in fault.proof().checks]
    assert [1, 2] == [len(job.lives) for job in stop.jobs]
    assert [{"behavior-log": "s3://flink/savepoints/behavior-log-1"}] == stop.kept


def test_a_stop_without_a_path_proves_nothing_and_starts_nothing_from_nothing() -> None:
    stop = Stop()
    stop.jobs[0].savepoint = ""
    fault = stop.whole(StopWithSavepoint())

    assert {"orders: stopped with a savepoint", RESTORED} == set(missing(fault))
    assert [("", "")] == stop.jobs[0].lives


def test_a_job_that_cannot_be_started_is_told_with_the_engines_message() -> None:
    stop = Stop()
    stop.jobs[0].calls = Calls(start_from=FlinkError("the savepoint has state of another operator"))
    fault = stop.whole(StopWithSavepoint())

    assert [RESTORED] == missing(fault)
    assert "not started: the savepoint has state of another operator" == fault.proof().checks[-1].actual


@pytest.mark.parametrize(("one", "other"), [("", ""), ("s3://a/b", ""), ("", "s3://a/b")])
def test_a_path_that_is_not_known_is_no_place(one: str, other: str) -> None:
    assert not same_place(one, other)


def test_healing_starts_and_stops_nothing() -> None:
    stop = Stop()
    fault = stop.struck(StopWithSavepoint())
    fault.heal(stop.stack)
    fault.heal(stop.stack)
    StopWithSavepoint().heal(stop.stack)

    assert [] == stop.stack.calls.made
    assert ["FINISHED", "FINISHED"] == [job.state() for job in stop.jobs]


@pytest.mark.parametrize("operations", [0, -1, True, 2.5, "1000"])
def test_a_wrong_number_of_operations_is_refused(operations: int | float | str) -> None:
    with pytest.raises(UsageError, match="stop-with-savepoint: operations is "):
        faults.make("stop-with-savepoint", {"operations": operations})


def test_a_job_that_was_cancelled_and_started_from_a_checkpoint_used_no_savepoint() -> None:
    stop = Stop()
    fault = stop.whole(StopWithSavepoint(start_from="checkpoint"))

    expected = [
        f"{name}: {what}"
        for name in ("behavior-log", "orders")
        for what in (
            "stopped with a savepoint",
            "was down while the source went on",
            "restored from its savepoint",
        )
    ]
    assert expected == missing(fault)
    assert [job.retained for job in stop.jobs] == [job.lives[-1][0] for job in stop.jobs]
    assert [] == stop.kept


def test_a_start_from_anything_unknown_is_refused() -> None:
    with pytest.raises(UsageError, match="start_from is 'memory'"):
        StopWithSavepoint(start_from="memory")
