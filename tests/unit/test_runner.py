"""The runner: whatever happens, faults are healed, evidence is judged, and the stack goes down."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from executions import PROFILE, Execution, failed_with, findings, verdict_of
from fakes import NODES, FakeFault

from harness import evidence, oracles
from harness.errors import FaultError, HarnessError, SourceError, StackError
from harness.model import JobMoment, Verdict
from harness.watching import Bounds

STEPS = (
    "preflight",
    "up",
    "prepare",
    "start",
    "submit",
    "fence",
    "shows orders",
    "read_fence",
    "resume",
    "inject",
    "prove",
    "recover",
    "all_running",
    "travel",
)


def test_a_run_that_goes_well_is_valid_and_goes_in_this_order(tmp_path: Path) -> None:
    execution = Execution(tmp_path, ask=tuple(oracles.ORACLES))
    outcome = execution.execute()

    up = ["preflight", "up", "prepare", "submit", "start"]
    shown = ["shows orders", "shows behavior-log"]
    baseline = ["fence", *shown, "read_fence", "resume"]
    running = ["all_running", "all_running"]  # of two jobs
    fault = ["inject", "prove", "heal", "recover", *running, "fence", *shown, "read_fence", "travel"]
    end = ["heal", "stop", "job history", "job history", "down"]
    assert up + baseline + fault + end == execution.calls.made
    assert None is outcome.failure
    assert {"VALID"} == {result.verdict.value for result in outcome.oracles}


def test_a_run_says_where_each_snapshot_of_its_tables_stands_in_the_ledger(tmp_path: Path) -> None:
    outcome = Execution(tmp_path).execute()

    assert {"orders", "behavior-log"} == {position.table for position in outcome.positions}
    assert all(position.operation > 0 for position in outcome.positions)


def test_a_run_without_faults_has_one_fence_that_is_the_baseline(tmp_path: Path) -> None:
    execution = Execution(tmp_path, ask=tuple(oracles.ORACLES), faults_wanted=0)
    outcome = execution.execute()

    assert [True, True] == [fence.baseline for fence in outcome.evidence.fences]
    assert ["orders", "behavior-log"] == [fence.mark.table for fence in outcome.evidence.fences]
    assert "resume" not in execution.calls.made
    assert Verdict.VALID is verdict_of(outcome)


def test_each_of_several_faults_has_a_fence_and_one_proof_of_its_own(tmp_path: Path) -> None:
    outcome = Execution(tmp_path, faults_wanted=2).execute()

    orders = [fence for fence in outcome.evidence.fences if fence.mark.table == "orders"]
    assert [True, False, False] == [fence.baseline for fence in orders]
    assert 2 == len(outcome.evidence.faults)
    assert all(0 < proof.healed_at_ms <= proof.recovered_at_ms for proof in outcome.evidence.faults)


def test_the_same_seed_draws_the_same_for_the_faults(tmp_path: Path) -> None:
    draws = []
    for name in ("first", "second"):
        execution = Execution(tmp_path / name, faults_wanted=2)
        execution.execute()
        draws.append([fault.draws for fault in execution.faults])

    assert draws[0] == draws[1]
    assert draws[0][0] != draws[0][1]


def test_everything_is_kept_in_the_folder_of_the_run(tmp_path: Path) -> None:
    execution = Execution(tmp_path)
    outcome = execution.execute()

    kept = tmp_path / "evidence"
    assert outcome.evidence == evidence.load(kept)
    rows = [pq.read_table(kept / table.ledger_file).num_rows for table in outcome.evidence.tables]
    assert execution.pipeline.workload.committed() == sum(rows)
    assert {f"{node.name}.log" for node in NODES} == {path.name for path in (tmp_path / "logs").iterdir()}
    assert "log of gateway\n" == (tmp_path / "logs" / "gateway.log").read_text()


@pytest.mark.parametrize("step", STEPS)
def test_ctrl_c_anywhere_heals_before_the_stack_goes_down_and_is_unknown(tmp_path: Path, step: str) -> None:
    execution = Execution(tmp_path, **{step: KeyboardInterrupt()})
    outcome = execution.execute()

    made = execution.calls.made
    begun, there = "inject" in made, step != "preflight"
    assert (begun, there) == ("heal" in made, made[-1] == "down")
    assert "stopped by the user" == outcome.evidence.interrupted
    assert None is outcome.failure
    assert Verdict.UNKNOWN is verdict_of(outcome)
    assert outcome.evidence == evidence.load(tmp_path / "evidence")


@pytest.mark.parametrize("step", ["inject", "prove", "recover", "all_running"])
def test_a_failure_under_a_fault_heals_collects_and_takes_the_stack_down(tmp_path: Path, step: str) -> None:
    execution = Execution(tmp_path, **{step: StackError("the engine is gone")})
    outcome = execution.execute()

    assert isinstance(outcome.failure, StackError)
    assert ["heal", "stop", "job history", "job history", "down"] == execution.calls.made[-5:]
    assert 1 == len(outcome.evidence.faults)
    assert Verdict.UNKNOWN is verdict_of(outcome)


@pytest.mark.parametrize("step", ["inject", "prove"])
def test_a_bug_under_a_fault_heals_and_takes_the_stack_down_too(tmp_path: Path, step: str) -> None:
    execution = Execution(tmp_path, **{step: ZeroDivisionError()})
    with pytest.raises(ZeroDivisionError):
        execution.execute()

    assert ["heal", "down"] == execution.calls.made[-2:]


def test_a_fault_that_cannot_be_injected_ends_the_run_unknown(tmp_path: Path) -> None:
    execution = Execution(tmp_path, inject=FaultError("no TaskManager is idle"))
    outcome = execution.execute()

    assert "no TaskManager is idle" == outcome.evidence.ended_early
    assert None is outcome.failure
    assert "ended-early" in findings(outcome, "completeness")
    assert "fault-did-not-bite" in findings(outcome, "fault_effect")


def test_a_workload_that_died_ends_the_run_unknown(tmp_path: Path) -> None:
    execution = Execution(tmp_path, fence=SourceError("no fence: the workload ended"))
    outcome = execution.execute()

    assert "no fence: the workload ended" == outcome.evidence.ended_early
    assert Verdict.UNKNOWN is verdict_of(outcome)
    assert "down" == execution.calls.made[-1]


def test_a_job_that_ends_while_it_is_awaited_is_judged_and_the_stack_goes_down(tmp_path: Path) -> None:
    execution = Execution(tmp_path)
    execution.pipeline.fake_jobs[1].ends_after_looks = 4
    outcome = execution.execute()

    assert "job a1b2 is FAILED: disk full" == outcome.evidence.ended_early
    assert None is outcome.failure
    assert "travel" in execution.calls.made  # what there is can still be looked at
    assert "job-not-running" in findings(outcome, "liveness")
    assert Verdict.INVALID is verdict_of(outcome)
    assert "down" == execution.calls.made[-1]


def test_a_marker_that_never_shows_is_given_up_after_ten_checkpoints_and_read_all_the_same(
    tmp_path: Path,
) -> None:
    execution = Execution(tmp_path, ask=["reconciliation"], faults_wanted=0)
    execution.pipeline.shows_markers = False
    for job in execution.pipeline.fake_jobs:
        job.step = 4
    outcome = execution.execute()

    fence, _ = outcome.evidence.fences
    assert (False, 0) == (fence.visible, fence.visible_at_ms)
    assert 3 == execution.calls.made.count("shows orders")  # at 4, 8 and 12 checkpoints
    assert "read_fence" in execution.calls.made
    assert "marker-lost" in findings(outcome, "reconciliation")
    assert Verdict.INVALID is verdict_of(outcome)


def test_a_sink_without_any_snapshot_ends_the_run_early(tmp_path: Path) -> None:
    execution = Execution(tmp_path, faults_wanted=0)
    execution.pipeline.has_snapshots = False
    outcome = execution.execute()

    assert "the sink of orders has no snapshot" == outcome.evidence.ended_early
    assert Verdict.UNKNOWN is verdict_of(outcome)


def test_damage_can_be_done_at_each_fence_between_its_markers_and_its_reading(tmp_path: Path) -> None:
    execution = Execution(tmp_path)
    execution.execute(before_reconcile=lambda number: execution.calls.note(f"damage {number}"))

    made = execution.calls.made
    for number in (1, 2):
        at = made.index(f"damage {number}")
        assert ["shows behavior-log", f"damage {number}", "read_fence"] == made[at - 1 : at + 2]


def test_a_fault_during_the_initial_load_strikes_under_writes_and_without_a_baseline(tmp_path: Path) -> None:
    execution = Execution(tmp_path, ask=tuple(oracles.ORACLES))
    execution.during = "initial-load"
    execution.pipeline.loaded = 1_000  # of 2,000
    outcome = execution.execute()

    made = execution.calls.made
    assert ["prepare", "start", "submit", "inject"] == made[2:6]
    assert 1 == outcome.evidence.expected_fences
    assert [False, False] == [fence.baseline for fence in outcome.evidence.fences]
    assert {"VALID"} == {result.verdict.value for result in outcome.oracles}


def test_a_fault_during_an_initial_load_that_was_over_proves_nothing(tmp_path: Path) -> None:
    execution = Execution(tmp_path)
    execution.during = "initial-load"
    execution.pipeline.loaded = 2_000
    outcome = execution.execute()

    assert Verdict.UNKNOWN is verdict_of(outcome)
    assert not outcome.evidence.faults[0].bit


def test_a_job_that_has_restarted_gets_a_new_life_before_a_fault_that_spends_attempts(tmp_path: Path) -> None:
    execution = Execution(tmp_path, faults_wanted=1)
    spent, fresh = execution.pipeline.fake_jobs
    spent.restarted = 1
    execution.execute()

    made = execution.calls.made
    assert ["stop_with_savepoint", "start_from", "inject"] == made[made.index("stop_with_savepoint") :][:3]
    assert [2, 1] == [len(spent.lives), len(fresh.lives)]
    assert spent.savepoint == spent.lives[1][0]


def test_a_job_that_has_restarted_keeps_its_life_before_a_fault_that_spends_none(tmp_path: Path) -> None:
    execution = Execution(tmp_path, faults_wanted=1)
    execution.pipeline.fake_jobs[0].restarted = 1
    execution.faults = [FakeFault(execution.calls, spends_attempts=False)]
    execution.execute()

    assert "start_from" not in execution.calls.made


def test_what_the_jobs_say_at_a_fence_is_kept_with_it(tmp_path: Path) -> None:
    outcome = Execution(tmp_path).execute()

    assert {JobMoment(life=1, restarts=0, source_records=0)} == {
        fence.job for fence in outcome.evidence.fences
    }


def test_a_failure_before_there_is_a_stack_takes_nothing_down(tmp_path: Path) -> None:
    execution = Execution(tmp_path, preflight=HarnessError("no engine", todo="start one"))
    outcome = execution.execute()

    assert "no engine" == failed_with(outcome)
    assert ["preflight"] == execution.calls.made
    assert not (tmp_path / "logs").exists()
    assert Verdict.UNKNOWN is verdict_of(outcome)


@pytest.mark.parametrize("step", ["up", "prepare", "start", "submit"])
def test_a_failure_on_the_way_up_takes_down_what_there_is(tmp_path: Path, step: str) -> None:
    execution = Execution(tmp_path, **{step: StackError(f"{step} failed")})
    outcome = execution.execute()

    assert f"{step} failed" == failed_with(outcome)
    assert "down" == execution.calls.made[-1]
    assert (tmp_path / "logs" / "source.log").is_file()


@pytest.mark.parametrize("raises", [{}, {"prove": StackError("gone")}, {"prove": KeyboardInterrupt()}])
def test_a_stack_that_is_to_be_kept_is_left_but_healed(
    tmp_path: Path, raises: dict[str, BaseException]
) -> None:
    execution = Execution(tmp_path, **raises)
    execution.execute(keep=True)

    assert "down" not in execution.calls.made
    assert "heal" in execution.calls.made


def test_a_fault_that_cannot_be_healed_fails_the_harness_and_the_stack_goes_down(tmp_path: Path) -> None:
    execution = Execution(tmp_path, heal=FaultError("the rule is still there"))
    outcome = execution.execute()

    assert "the rule is still there" == failed_with(outcome)
    assert ["healing failed: the rule is still there"] == execution.events("failure")
    assert "down" == execution.calls.made[-1]


def test_the_first_failure_is_the_one_told(tmp_path: Path) -> None:
    execution = Execution(tmp_path, prove=StackError("first"), heal=FaultError("second"))
    outcome = execution.execute()

    assert "first" == failed_with(outcome)
    assert ["first", "healing failed: second"] == execution.events("failure")


def test_a_stack_that_will_not_go_down_is_a_failure_that_loses_no_verdict(tmp_path: Path) -> None:
    execution = Execution(tmp_path, ask=tuple(oracles.ORACLES), down=StackError("a container is stuck"))
    outcome = execution.execute()

    assert "a container is stuck" == failed_with(outcome)
    assert Verdict.VALID is verdict_of(outcome)


def test_the_bounds_come_from_the_profiles_own_times() -> None:
    expected = Bounds(interval_s=0.02, late_s=4.02, checkpoint_s=11.02, recovery_s=99.0)

    assert expected == Bounds.of(PROFILE)


def test_the_phases_of_a_run_are_these(tmp_path: Path) -> None:
    execution = Execution(tmp_path)
    execution.execute()

    # reads go on meanwhile; they are awaited before the next fence
    expected = [
        "preflight",
        "stack up",
        "tables and jobs",
        "steady",
        "fence 1",
        "load before fault 1",
        "fault 1",
        "recovery 1",
        "cycles 1",
        "reconcile 1",
        "fence 2",
        "reconcile 2",
        "time travel",
        "collect",
        "judge",
        "stack down",
    ]
    assert expected == [phase.name for phase in execution.history.phases()]
