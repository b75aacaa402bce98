"""Faults without teeth on the real stack: each proof must fail, and the run must end UNKNOWN."""

from __future__ import annotations

import threading

import pytest
from findings import failed, why

from harness.errors import HarnessError
from harness.faults.firewall import CHAIN
from harness.model import RunResult, Verdict
from harness.pipeline import ComposePipeline
from harness.pytest_plugin import Accept
from harness.waiting import wait_until

pytestmark = pytest.mark.docker

TOOTHLESS = """
name: toothless
description: A rule on a port that nobody uses, a savepoint that is not used, and a rule that a restart loses
seed: 7
profile: fast
workload: {rate: 500, initial_rows: 1000}
steady_checkpoints: 1
cycles: 1
faults:
  - fault: cut-storage
    with: {port: 9999}
  - fault: stop-with-savepoint
    with: {start_from: checkpoint}
  - fault: cut-storage
accepts: [torn-late-commits]
oracles: all
"""

IDLE_VICTIM = """
name: idle-victim
description: The killed TaskManager holds no task of the job, so nothing was tested
jobs: [orders]
profile: fast
seed: 7
parallelism: 1
workload: {rate: 500, initial_rows: 1000}
faults:
  - fault: kill-taskmanager
    with: {victim: idle}
oracles: all
"""

VICTIM = "taskmanager-2"


class Restarter:
    """Restarts a node as soon as the cut is there, once the last fault's turn has come."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self.error: Exception | None = None

    def __call__(self, pipeline: ComposePipeline, fence: int) -> None:
        if fence == 3:  # the next fault is the second cut
            self._thread = threading.Thread(target=self._run, args=(pipeline,), daemon=True)
            self._thread.start()

    def _run(self, pipeline: ComposePipeline) -> None:
        stack = pipeline.stack

        def is_cut() -> bool:
            rules = stack.execute(VICTIM, ["iptables", "-w", "-S", "OUTPUT"], user="root")
            return CHAIN in rules.output

        try:
            wait_until("the cut", is_cut, timeout_s=300, every_s=0.5, retry_on=(HarnessError,))
            processes = stack.execute(VICTIM, ["pgrep", "-x", "java"], user="root").output.split()
            stack.execute(VICTIM, ["kill", "-KILL", *processes], user="root")
        except HarnessError as error:
            self.error = error

    def join(self) -> None:
        assert self._thread is not None, "the third fence was not reached"
        self._thread.join(60)
        assert self.error is None


@pytest.fixture(scope="module")
def toothless(accept: Accept) -> RunResult:
    """One run with three faults without teeth."""
    restarter = Restarter()
    result = accept(TOOTHLESS, before_reconcile=restarter).result
    restarter.join()
    return result


def test_faults_without_teeth_leave_the_run_unknown_although_all_data_are_right(toothless: RunResult) -> None:
    assert [Verdict.UNKNOWN, 2] == [toothless.verdict, toothless.exit_code], why(toothless)
    assert [False, False, False] == [proof.bit for proof in toothless.faults]
    judged = {oracle.oracle: oracle.verdict for oracle in toothless.oracles}
    assert [Verdict.VALID, Verdict.VALID] == [judged["reconciliation"], judged["append_exactly_once"]]


def test_a_rule_on_a_wrong_port_stops_no_packet_and_no_checkpoint(toothless: RunResult) -> None:
    names = failed(toothless.faults[0].checks)

    assert [name for name in names if "packets between it and the storage were stopped" in name]
    assert [
        "orders: a checkpoint failed or was late",
        "behavior-log: a checkpoint failed or was late",
    ] == names[-2:]


def test_a_savepoint_that_is_not_used_is_told_by_what_the_job_was_restored_from(toothless: RunResult) -> None:
    assert "orders: restored from its savepoint" in failed(toothless.faults[1].checks)
    assert "behavior-log: restored from its savepoint" in failed(toothless.faults[1].checks)


def test_a_rule_that_a_restart_of_its_container_lost_is_missed_at_the_end(toothless: RunResult) -> None:
    assert f"{VICTIM}: the rules were there until they were removed" in failed(toothless.faults[2].checks)


def test_a_kill_that_hits_no_task_of_the_job_leaves_the_run_unknown(accept: Accept) -> None:
    result = accept(IDLE_VICTIM).result

    assert [Verdict.UNKNOWN, 2] == [result.verdict, result.exit_code], why(result)
    assert "the victim held tasks of the jobs" in failed(result.faults[0].checks)
