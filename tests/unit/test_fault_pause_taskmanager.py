"""pause-taskmanager: it bites only when all of a zombie's life was seen, and what is missing is told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
from fault_contexts import context
from paused_stack import VICTIM, PausedJob, PausedStack

from harness import faults
from harness.errors import FaultError, StackError, UsageError
from harness.faults.pause_taskmanager import PauseTaskManager
from harness.model import ExecResult

OTHER = "taskmanager-2"
STOPPED = "its process was stopped"
STOOD = "it stood still until its tasks ran elsewhere"
STOOD_SHORT = "it stood still until it was resumed"
RAN_ON = "it ran on once it was resumed"
JOINED = "it joined the cluster again"
RESTARTED = "orders: lost tasks and restarted"
RESTORED = "orders: restored from a checkpoint"
ELSEWHERE = "orders: ran elsewhere before the victim was resumed"
HUNG = "orders: a checkpoint hung"
NO_RESTART = "orders: did not restart"

Spoil = Callable[["Zombie"], None]


class Zombie:
    """A stack with two jobs on the victim; they leave it once it stands still."""

    def __init__(self) -> None:
        self.stack = PausedStack()
        self.jobs = (PausedJob(), PausedJob(name="behavior-log"))
        self.orders = self.jobs[0]
        self.stack.when_stopped = self.leave
        self.before_heal: Callable[[], None] = lambda: None

    def leave(self) -> None:
        for job in self.jobs:
            job.restart_on(OTHER)

    def struck(self, fault: PauseTaskManager) -> PauseTaskManager:
        given = context(self.stack, self.jobs)
        fault.inject(given)
        fault.prove(given)
        self.before_heal()
        fault.heal(self.stack)
        fault.recover(given)
        return fault


class Short(Zombie):
    """The same, for a pause that is too short for anybody to leave: checkpoints hang until it is over."""

    def leave(self) -> None:
        for job in self.jobs:
            job.hangs = True
        self.stack.when_resumed = self.go_on

    def go_on(self) -> None:
        for job in self.jobs:
            job.hangs = False

    def struck(self, fault: PauseTaskManager | None = None) -> PauseTaskManager:
        return super().struck(fault or PauseTaskManager(hold="short", short_s=0.02))


def missing(fault: PauseTaskManager) -> list[str]:
    return [check.name for check in fault.proof().checks if not check.held]


def actual(fault: PauseTaskManager, name: str) -> str:
    return next(check.actual for check in fault.proof().checks if check.name == name)


def test_a_zombie_bites_when_all_of_its_life_was_seen() -> None:
    zombie = Zombie()
    fault = zombie.struck(PauseTaskManager())

    proof = fault.proof()
    assert proof.bit
    assert ("pause-taskmanager", VICTIM) == (proof.fault, proof.node)
    assert proof.injected_at_ms > 0
    assert [f"{VICTIM} -STOP 77", f"{VICTIM} -CONT 77"] == zombie.stack.signals
    assert [
        "the victim held tasks of the jobs",
        STOPPED,
        STOOD,
        RAN_ON,
        RESTARTED,
        RESTORED,
        ELSEWHERE,
        "behavior-log: lost tasks and restarted",
        "behavior-log: restored from a checkpoint",
        "behavior-log: ran elsewhere before the victim was resumed",
        JOINED,
    ] == [check.name for check in proof.checks]
    assert "process 77 in state S, 7 clock ticks of CPU time more" == actual(fault, RAN_ON)
    assert "2 tasks on taskmanager-2" == actual(fault, ELSEWHERE)
    assert "2 registrations" == actual(fault, JOINED)


def test_a_fault_that_was_never_injected_did_not_bite() -> None:
    for hold in ("past-heartbeat", "short"):
        proof = PauseTaskManager(hold=hold).proof()

        assert not proof.bit
        assert 0 == proof.injected_at_ms


def test_a_zombie_that_ends_itself_and_is_replaced_bites_too() -> None:
    zombie = Zombie()
    zombie.stack.when_resumed = lambda: zombie.stack.another_life(VICTIM)
    fault = zombie.struck(PauseTaskManager())

    assert [] == missing(fault)
    assert "process 77 in state S, another one" == actual(fault, RAN_ON)


def never_stopped(zombie: Zombie) -> None:
    zombie.stack.stops = False
    zombie.leave()


def resumed_too_early(zombie: Zombie) -> None:
    def resume() -> None:
        zombie.stack.stat[VICTIM] = "S"

    zombie.before_heal = resume


def replaced_while_it_stood(zombie: Zombie) -> None:
    """With the old number, and stopped as well: only its start tells it apart."""

    def replace_it() -> None:
        zombie.stack.another_life(VICTIM)
        zombie.stack.stat[VICTIM] = "T"

    zombie.before_heal = replace_it


def no_cpu_time(zombie: Zombie) -> None:
    zombie.stack.runs = False


def does_not_join(zombie: Zombie) -> None:
    zombie.stack.registers = False


def goes_down_for_good(zombie: Zombie) -> None:
    zombie.stack.when_resumed = lambda: zombie.stack.goes_down(VICTIM)


def no_restart(zombie: Zombie) -> None:
    def restarted_before() -> None:
        zombie.leave()
        zombie.orders.restarted = 0

    zombie.stack.when_stopped = restarted_before


def old_restore(zombie: Zombie) -> None:
    def left() -> None:
        zombie.leave()
        assert zombie.orders.restore
        zombie.orders.restore = replace(zombie.orders.restore, at_ms=1)

    zombie.stack.when_stopped = left


def one_task_stays(zombie: Zombie) -> None:
    def left() -> None:
        zombie.leave()
        zombie.orders.hosts = (VICTIM, OTHER)

    zombie.stack.when_stopped = left


def not_all_run(zombie: Zombie) -> None:
    zombie.orders.runs = False


def nowhere(zombie: Zombie) -> None:
    def left() -> None:
        zombie.leave()
        zombie.orders.hosts = ()

    zombie.stack.when_stopped = left


@pytest.mark.parametrize(
    ("spoil", "expected"),
    [
        (never_stopped, [STOPPED, STOOD, RAN_ON, RESTARTED, ELSEWHERE, JOINED]),
        (resumed_too_early, [STOOD, RAN_ON, JOINED]),
        (replaced_while_it_stood, [STOOD]),
        (no_cpu_time, [RAN_ON, JOINED]),
        (does_not_join, [JOINED]),
        (goes_down_for_good, [RAN_ON, JOINED]),
        (no_restart, [RESTARTED, ELSEWHERE]),
        (old_restore, [RESTORED, ELSEWHERE]),
        (one_task_stays, [ELSEWHERE]),
        (not_all_run, [ELSEWHERE]),
        (nowhere, [ELSEWHERE]),
    ],
)
def test_each_effect_that_is_missing_is_told(spoil: Spoil, expected: list[str]) -> None:
    zombie = Zombie()
    spoil(zombie)
    only_orders = [name for name in missing(zombie.struck(PauseTaskManager())) if "behavior" not in name]

    assert expected == only_orders


def test_a_restart_after_it_was_resumed_does_not_count() -> None:
    zombie = Zombie()
    zombie.stack.when_stopped = lambda: None
    zombie.stack.when_resumed = zombie.leave
    found = missing(zombie.struck(PauseTaskManager()))

    assert {RESTARTED, RESTORED, ELSEWHERE} <= set(found)


def test_only_jobs_that_lost_tasks_have_to_come_back() -> None:
    zombie = Zombie()
    zombie.jobs[1].hosts = (OTHER,)
    zombie.stack.when_stopped = lambda: zombie.orders.restart_on(OTHER)
    fault = PauseTaskManager()
    given = context(zombie.stack, zombie.jobs, seed=_seed_for(VICTIM))
    fault.inject(given)
    fault.prove(given)
    fault.heal(zombie.stack)
    fault.recover(given)

    assert fault.proof().bit
    assert [] == [check.name for check in fault.proof().checks if "behavior" in check.name]


def _seed_for(victim: str) -> int:
    """A seed that chooses this one of the two."""

    def chosen(seed: int) -> str:
        stack, job = PausedStack(), PausedJob(hosts=(VICTIM, OTHER))
        fault = PauseTaskManager()
        fault.inject(context(stack, [job], seed=seed))
        return fault.proof().node

    return next(seed for seed in range(20) if chosen(seed) == victim)


def test_the_seed_chooses_the_victim() -> None:
    assert _seed_for(VICTIM) != _seed_for(OTHER)


def test_a_short_pause_bites_when_checkpoints_hung_and_nothing_restarted() -> None:
    short = Short()
    fault = short.struck()

    assert fault.proof().bit
    assert [
        "the victim held tasks of the jobs",
        STOPPED,
        STOOD_SHORT,
        RAN_ON,
        HUNG,
        NO_RESTART,
        "behavior-log: a checkpoint hung",
        "behavior-log: did not restart",
    ] == [check.name for check in fault.proof().checks]
    assert "1 under way, 0 completed" == actual(fault, HUNG)
    assert "0 restarts" == actual(fault, NO_RESTART)


def test_a_short_pause_that_makes_a_job_restart_was_too_long() -> None:
    short = Short()

    def restart() -> None:
        short.leave()
        short.orders.restart_on(OTHER)

    short.stack.when_stopped = restart

    assert [NO_RESTART] == missing(short.struck())


def test_a_short_pause_that_lets_checkpoints_go_on_is_toothless() -> None:
    short = Short()
    short.stack.when_stopped = lambda: None

    assert [HUNG, "behavior-log: a checkpoint hung"] == missing(short.struck())


def test_a_short_pause_between_checkpoints_is_toothless() -> None:
    short = Short()
    short.orders.under_way = 0

    assert [HUNG] == missing(short.struck())


def test_a_short_pause_after_which_no_checkpoint_completes_proves_no_lack_of_restarts() -> None:
    short = Short()

    def hang_for_good() -> None:
        for job in short.jobs:
            job.hangs = True

    short.stack.when_stopped = hang_for_good
    fault = short.struck()

    assert [NO_RESTART, "behavior-log: did not restart"] == missing(fault)
    assert "not seen" == actual(fault, NO_RESTART)


def test_a_short_pause_that_is_resumed_too_early_or_ends_the_process_did_not_bite() -> None:
    early, ended = Short(), Short()
    fault = PauseTaskManager(hold="short", short_s=60)
    given = context(early.stack, early.jobs)
    fault.inject(given)
    fault.heal(early.stack)  # as when the run is interrupted

    def end() -> None:
        ended.go_on()
        ended.stack.another_life(VICTIM)

    ended.stack.when_stopped = lambda: None
    ended.stack.when_resumed = end

    assert STOOD_SHORT in missing(fault)
    assert RAN_ON in missing(ended.struck())


def test_heal_resumes_what_stands_still_once_and_nothing_else() -> None:
    zombie = Zombie()
    fault = PauseTaskManager()
    fault.inject(context(zombie.stack, zombie.jobs))
    zombie.stack.stat["gateway"] = "T"
    fault.heal(zombie.stack)
    fault.heal(zombie.stack)

    assert [f"{VICTIM} -STOP 77", f"{VICTIM} -CONT 77"] == zombie.stack.signals


def test_heal_in_another_process_finds_what_to_resume() -> None:
    zombie = Zombie()
    PauseTaskManager().inject(context(zombie.stack, zombie.jobs))
    PauseTaskManager().heal(zombie.stack)

    assert "S" == zombie.stack.stat[VICTIM]


def test_heal_leaves_a_node_that_is_down_and_resumes_the_others() -> None:
    stack = PausedStack()
    stack.goes_down(VICTIM)
    stack.stat[OTHER] = "T"
    PauseTaskManager().heal(stack)

    assert "S" == stack.stat[OTHER]


def test_heal_tries_every_node_before_it_tells_what_failed() -> None:
    def refuse(node: str, argv: Sequence[str]) -> ExecResult:
        if node == VICTIM:
            raise StackError(f"{node}: no answer")
        return ExecResult(status=0, output="77\n")

    stack = PausedStack()
    stack.programs["pgrep"] = refuse
    stack.stat[OTHER] = "T"
    with pytest.raises(FaultError, match="taskmanager-1: no answer"):
        PauseTaskManager().heal(stack)

    assert "S" == stack.stat[OTHER]


def test_a_signal_that_fails_is_an_error_and_not_an_injection() -> None:
    zombie, fault = Zombie(), PauseTaskManager()
    zombie.stack.signal_status = 1
    with pytest.raises(FaultError, match="kill -STOP 77 in taskmanager-1 failed: no such process"):
        fault.inject(context(zombie.stack, zombie.jobs))

    assert 0 == fault.proof().injected_at_ms


def test_a_process_that_can_not_be_read_is_an_error() -> None:
    zombie = Zombie()
    cat = zombie.stack.programs["cat"]
    zombie.stack.programs["cat"] = lambda node, argv: replace(cat(node, argv), output="77 (java) S 1")
    with pytest.raises(FaultError, match="can't read /proc/77/stat"):
        PauseTaskManager().inject(context(zombie.stack, zombie.jobs))


@pytest.mark.parametrize(
    ("parameters", "told"),
    [
        ({"hold": "long"}, "hold is 'long'"),
        ({"short_s": 0}, "short_s is 0"),
        ({"short_s": True}, "short_s is True"),
        ({"short_s": "8"}, "short_s is '8'"),
    ],
)
def test_a_value_that_can_not_be_is_refused(parameters: dict[str, str | int], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        faults.make("pause-taskmanager", parameters)

    assert f"pause-taskmanager: {told}" == caught.value.what
