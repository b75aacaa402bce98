"""kill-taskmanager: it bites only when every effect was seen, and each that is missing is told."""

from __future__ import annotations

import time

import pytest
from fakes import FakeJob, FakeStack
from fault_contexts import context

from harness import faults
from harness.errors import FaultError, UsageError
from harness.faults.kill_taskmanager import KillTaskManager
from harness.model import Restore, Role

HELD = "the victim held tasks of the jobs"
LIVES_AGAIN = "its process is gone, its node lives again"
RESTARTED = "orders: lost tasks and restarted"
RESTORED = "orders: restored from a checkpoint"


def restore_at(at_ms: int) -> Restore:
    return Restore(checkpoint_id=12, at_ms=at_ms, is_savepoint=False, path="s3://checkpoints/12")


def now_ms() -> int:
    return int(time.time() * 1000)


def surviving(stack: FakeStack, *jobs: FakeJob) -> None:
    """From now on a kill makes each job restart and restore, as it should."""

    def lose() -> None:
        for job in jobs:
            job.restarted += 1
            job.restore = restore_at(now_ms() + 1)

    stack.when_killed = lose


def both() -> tuple[FakeJob, FakeJob]:
    return FakeJob(), FakeJob(name="behavior-log")


def missing(fault: KillTaskManager) -> list[str]:
    return [check.name for check in fault.proof().checks if not check.held]


def struck(stack: FakeStack, *jobs: FakeJob, seed: int = 1, victim: str = "holding") -> KillTaskManager:
    fault = KillTaskManager(victim=victim)
    fault.inject(context(stack, jobs, seed=seed))
    fault.prove(context(stack, jobs, seed=seed))
    return fault


def test_it_bites_when_every_effect_was_seen() -> None:
    stack, jobs = FakeStack(), both()
    surviving(stack, *jobs)
    fault = struck(stack, *jobs)

    proof = fault.proof()
    assert proof.bit
    assert ["taskmanager-1"] == stack.killed
    assert ("kill-taskmanager", "taskmanager-1") == (proof.fault, proof.node)
    assert 0 <= now_ms() - proof.injected_at_ms < 60_000
    assert [
        HELD,
        LIVES_AGAIN,
        RESTARTED,
        RESTORED,
        "behavior-log: lost tasks and restarted",
        "behavior-log: restored from a checkpoint",
    ] == [check.name for check in proof.checks]
    assert "orders 1 tasks, behavior-log 1 tasks" == proof.checks[0].actual
    assert "checkpoint 12, s3://checkpoints/12" == proof.checks[-1].actual


def test_a_fault_that_was_never_injected_did_not_bite() -> None:
    fault = KillTaskManager()

    assert not fault.proof().bit
    assert 0 == fault.proof().injected_at_ms


def test_a_victim_that_held_no_task_proves_nothing() -> None:
    stack, jobs = FakeStack(), both()
    surviving(stack, *jobs)
    fault = struck(stack, *jobs, victim="idle")

    assert ["taskmanager-2"] == stack.killed
    assert [HELD] == missing(fault)


def test_the_victim_holds_tasks_of_every_job_if_there_is_such() -> None:
    def killed(seed: int) -> str:
        stack = FakeStack()
        jobs = (
            FakeJob(hosts=("taskmanager-1", "taskmanager-2")),
            FakeJob(name="b", hosts=("taskmanager-2",)),
        )
        surviving(stack, *jobs)
        struck(stack, *jobs, seed=seed)
        return stack.killed[0]

    assert {"taskmanager-2"} == {killed(seed) for seed in range(8)}


def test_else_it_holds_tasks_of_some_and_only_those_must_restart() -> None:
    stack = FakeStack()
    jobs = (FakeJob(hosts=("taskmanager-1",)), FakeJob(name="behavior-log", hosts=("gateway",)))
    surviving(stack, jobs[0])
    proof = struck(stack, *jobs).proof()

    assert proof.bit
    assert [HELD, LIVES_AGAIN, RESTARTED, RESTORED] == [check.name for check in proof.checks]
    assert "orders 1 tasks, behavior-log 0 tasks" == proof.checks[0].actual


def test_a_node_that_does_not_come_back_proves_nothing() -> None:
    stack, jobs = FakeStack(revives=False), both()
    surviving(stack, *jobs)

    assert [LIVES_AGAIN] == missing(struck(stack, *jobs))


def test_a_job_that_did_not_restart_proves_nothing_whatever_the_other_did() -> None:
    stack, jobs = FakeStack(), both()
    jobs[0].restarted = 3
    jobs[0].restore = restore_at(now_ms() + 60_000)
    surviving(stack, jobs[1])

    assert [RESTARTED] == missing(struck(stack, *jobs))


@pytest.mark.parametrize("restore", [None, restore_at(now_ms() - 60_000)], ids=["none", "an older one"])
def test_a_job_that_was_not_restored_after_the_kill_proves_nothing(restore: Restore | None) -> None:
    stack, job = FakeStack(), FakeJob()
    job.restore = restore

    def lose() -> None:
        job.restarted += 1

    stack.when_killed = lose

    assert [RESTORED] == missing(struck(stack, job))


def test_the_same_seed_kills_the_same_victim_and_seeds_differ() -> None:
    def victim(seed: int) -> str:
        stack, job = FakeStack(), FakeJob(hosts=("taskmanager-1", "taskmanager-2"))
        surviving(stack, job)
        struck(stack, job, seed=seed)
        return stack.killed[0]

    assert [victim(seed) for seed in range(8)] == [victim(seed) for seed in range(8)]
    assert {"taskmanager-1", "taskmanager-2"} == {victim(seed) for seed in range(8)}


@pytest.mark.parametrize("host", ["gateway", "jobmanager"])
def test_the_gateway_and_the_jobmanager_are_never_the_victim(host: str) -> None:
    stack = FakeStack()
    with pytest.raises(FaultError, match="no TaskManager is holding"):
        KillTaskManager().inject(context(stack, [FakeJob(hosts=(host,))]))

    assert [] == stack.killed


def test_no_idle_taskmanager_is_told_with_what_each_holds() -> None:
    job = FakeJob(hosts=("taskmanager-1", "taskmanager-2", "taskmanager-2"))
    with pytest.raises(FaultError) as caught:
        KillTaskManager(victim="idle").inject(context(FakeStack(), [job]))

    held = "{'taskmanager-1': {'orders': 1}, 'taskmanager-2': {'orders': 2}}"
    expected = f"no TaskManager is idle: tasks per TaskManager are {held}"
    assert expected == caught.value.what


@pytest.mark.parametrize(("processes", "found"), [("", "none"), ("77\n78\n", "['77', '78']")])
def test_anything_but_one_process_is_refused(processes: str, found: str) -> None:
    stack = FakeStack(processes=processes)
    with pytest.raises(FaultError) as caught:
        KillTaskManager().inject(context(stack, [FakeJob()]))

    assert caught.value.what.startswith("taskmanager-1: expected one ")
    assert caught.value.what.endswith(f", found {found}")
    assert [] == stack.killed


def test_a_kill_that_fails_is_an_error_and_not_an_injection() -> None:
    stack, fault = FakeStack(), KillTaskManager()
    stack.kill_status = 1
    with pytest.raises(FaultError, match="kill -9 77 in taskmanager-1 failed: no such process"):
        fault.inject(context(stack, [FakeJob()]))

    assert 0 == fault.proof().injected_at_ms


def test_heal_starts_stopped_workers_once_and_nothing_else() -> None:
    stack = FakeStack(revives=False)
    fault = KillTaskManager()
    fault.inject(context(stack, [FakeJob()]))
    fault.heal(stack)
    fault.heal(stack)

    assert ["ensure_running taskmanager-1"] == stack.calls.made
    assert all(stack.state(node.name).running for node in stack.nodes())


def test_heal_in_another_process_finds_what_to_start() -> None:
    stack = FakeStack(revives=False)
    KillTaskManager().inject(context(stack, [FakeJob()]))
    KillTaskManager().heal(stack)

    workers = [node.name for node in stack.nodes() if node.role is Role.TASKMANAGER]
    assert [True, True] == [stack.state(name).running for name in workers]


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(UsageError, match=r"fault kill-taskmanager: .*'node'"):
        faults.make("kill-taskmanager", {"node": "taskmanager-1"})


def test_an_unknown_victim_is_refused_with_what_there_is() -> None:
    with pytest.raises(UsageError) as caught:
        faults.make("kill-taskmanager", {"victim": "jobmanager"})

    assert "kill-taskmanager: victim is 'jobmanager'" == caught.value.what
    assert "use one of holding, idle" == caught.value.todo


def test_an_unknown_fault_is_refused_with_what_there_is() -> None:
    with pytest.raises(UsageError) as caught:
        faults.make("kill-everything", {})

    known = "cut-storage, kill-taskmanager, noop, pause-taskmanager, stop-with-savepoint"
    assert f"known are: {known}" == caught.value.todo
