"""A run: stack up → job → workload ∥ (steady → baseline → inject → prove → heal → recovered → cycles →
fence → reconcile)* → judge → down. And nothing else: everything it touches is behind a Protocol.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from harness import evidence as evidence_files
from harness import oracles
from harness.errors import (
    FaultError,
    FlinkError,
    FlinkUnreachable,
    HarnessError,
    JobEnded,
    SourceError,
    WaitTimeout,
)
from harness.flink.durations import milliseconds
from harness.flink.rest import every_task_runs
from harness.history import History
from harness.model import (
    Evidence,
    FaultProof,
    Fence,
    JobHistory,
    OracleResult,
    WorkloadOutcome,
)
from harness.ports import Fault, FaultContext, Job, Pipeline
from harness.profiles import Profile
from harness.scenario import Scenario
from harness.waiting import pause, wait_until

CHECKPOINTS_WITHOUT_MARKER = 10
"""After so many completed checkpoints a marker that isn't visible is lost, not late."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run brought: evidence, verdicts, and the failure of the harness if there was one."""

    evidence: Evidence
    oracles: tuple[OracleResult, ...]
    failure: HarnessError | None


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How long a run waits for Flink, in seconds, from the profile's own times."""

    interval_s: float
    checkpoint_s: float
    recovery_s: float

    @classmethod
    def of(cls, profile: Profile) -> Bounds:
        """`checkpoint_s` is one cycle at its slowest; `recovery_s` covers detection, delays and a restore."""
        flink, cluster = dict(profile.flink), dict(profile.cluster)
        interval = milliseconds(flink["execution.checkpointing.interval"]) / 1000
        slowest = interval + milliseconds(flink["execution.checkpointing.timeout"]) / 1000
        detection = milliseconds(cluster["heartbeat.timeout"]) / 1000
        delay = milliseconds(flink["restart-strategy.fixed-delay.delay"]) / 1000
        return cls(interval_s=interval, checkpoint_s=slowest + 10, recovery_s=detection + 3 * delay + 90)


class Run:
    """One execution of a scenario. `execute` returns whatever happens, but for bugs."""

    def __init__(
        self,
        *,
        scenario: Scenario,
        profile: Profile,
        pipeline: Pipeline,
        faults: Sequence[Fault],
        folder: Path,
        history: History,
        before_reconcile: Callable[[], None] | None = None,
    ) -> None:
        """`before_reconcile` runs between the last fence's visibility and its reading: tests damage there."""
        self._scenario = scenario
        self._bounds = Bounds.of(profile)
        self._attempts = int(dict(profile.flink)["restart-strategy.fixed-delay.attempts"])
        self._pipeline = pipeline
        self._faults = faults
        self._evidence_folder = folder / "evidence"
        self._logs_folder = folder / "logs"
        self._history = history
        self._before_reconcile = before_reconcile
        self._rng = random.Random(scenario.seed)
        self._job: Job | None = None
        self._begun: list[Fault] = []
        self._proofs: list[FaultProof] = []
        self._fences: list[Fence] = []
        self._reading: Callable[[], Fence] | None = None
        self._workload_started = False
        self._interrupted = ""
        self._ended_early = ""

    def execute(self, *, keep: bool) -> Outcome:
        """Run the scenario; heal, collect, judge and (unless `keep`) take the stack down whatever happens."""
        failure: HarnessError | None = None
        self._evidence_folder.mkdir(parents=True, exist_ok=True)
        try:
            try:
                self._drive()
            except KeyboardInterrupt:
                self._interrupted = "stopped by the user"
                self._history.event("interrupted", "stopped by the user; healing and cleaning up")
            except HarnessError as error:
                failure = error
                self._history.event("failure", error.what)
            finally:  # also after a bug
                not_healed = self._heal()
            failure = failure or not_healed
            evidence = self._collect()
            self._history.phase("judge")
            results = oracles.judge(evidence, self._scenario.oracles)
        finally:
            still_up = None if keep else self._down()
        return Outcome(evidence=evidence, oracles=results, failure=failure or still_up)

    def _drive(self) -> None:
        pipeline, history = self._pipeline, self._history
        history.phase("preflight")
        pipeline.preflight(lambda text: history.event("preflight", text))
        history.phase("stack up")
        pipeline.stack.up()
        history.phase("tables and job")
        pipeline.prepare()
        self._job = pipeline.submit()
        history.event("job", f"job {self._job.job_id} runs")
        pipeline.workload.start()
        self._workload_started = True
        try:
            self._under_load(self._job)
        except (JobEnded, WaitTimeout, SourceError, FaultError) as error:
            # Not a failure of the harness: the oracles say what it means.
            self._ended_early = error.what
            history.event("ended early", error.what)

    def _under_load(self, job: Job) -> None:
        self._checkpoints(job, self._scenario.steady_checkpoints, phase="steady")
        self._fence(job, baseline=True, last=not self._faults)
        for number, fault in enumerate(self._faults, start=1):
            self._strike(job, fault, number)
            self._fence(job, baseline=False, last=number == len(self._faults))
        self._end_reading()

    def _strike(self, job: Job, fault: Fault, number: int) -> None:
        stack, history = self._pipeline.stack, self._history
        context = FaultContext(stack=stack, job=job, rng=self._rng, bound_s=self._bounds.recovery_s)
        self._end_reading()  # reads cost processor time, which a fault must not share
        history.phase(f"load before fault {number}")
        # Somewhere in a checkpoint's cycle, and not always at its start.
        pause(self._rng.uniform(0, self._bounds.interval_s))
        history.phase(f"fault {number}")
        self._begun.append(fault)
        try:
            fault.inject(context)
            history.event("inject", fault.proof().fault, fault.proof().node)
            fault.prove(context)
        finally:
            self._proofs.append(fault.proof())
        for check in fault.proof().checks:
            history.event("proof", f"{check.name}: {check.actual}", fault.proof().node)
        history.phase(f"recovery {number}")
        fault.heal(stack)
        self._proofs[-1] = replace(self._proofs[-1], healed_at_ms=_now_ms())
        wait_until(
            "every task of the job to run again",
            lambda: every_task_runs(job),
            timeout_s=self._bounds.recovery_s,
            retry_on=(FlinkUnreachable,),
        )
        self._proofs[-1] = replace(self._proofs[-1], recovered_at_ms=_now_ms())
        history.event("recovered", f"every task runs again, {job.restarts()} restarts so far")
        self._checkpoints(job, self._scenario.cycles, phase=f"cycles {number}")

    def _checkpoints(self, job: Job, wanted: int, *, phase: str) -> None:
        """Wait until so many more checkpoints have completed."""
        self._history.phase(phase)
        before = job.counts().completed

        def completed() -> bool:
            job.raise_if_ended()
            done = job.counts().completed - before
            self._history.progress(
                f"checkpoints, {self._pipeline.workload.committed()} changes committed", done, wanted
            )
            return done >= wanted

        wait_until(
            f"{wanted} more checkpoints",
            completed,
            timeout_s=wanted * self._bounds.checkpoint_s,
            retry_on=(FlinkUnreachable,),
        )

    def _fence(self, job: Job, *, baseline: bool, last: bool) -> None:
        pipeline, history = self._pipeline, self._history
        number = len(self._fences) + 1
        history.phase(f"fence {number}")
        mark = pipeline.workload.fence()
        before = job.counts().completed

        def settled() -> tuple[bool, int] | None:
            job.raise_if_ended()
            newest = pipeline.newest_snapshot()
            if newest is not None and pipeline.shows(mark, newest):
                return True, _now_ms()
            done = job.counts().completed - before
            history.progress("checkpoints since the marker", done, CHECKPOINTS_WITHOUT_MARKER)
            return (False, 0) if done >= CHECKPOINTS_WITHOUT_MARKER else None

        visible, visible_at_ms = wait_until(
            f"the marker of fence {number} in the sink",
            settled,
            timeout_s=CHECKPOINTS_WITHOUT_MARKER * self._bounds.checkpoint_s,
            retry_on=(FlinkUnreachable,),
        )
        history.event(
            "fence",
            f"marker {mark.key} is {'visible' if visible else 'lost'} after operation {mark.operation}",
        )
        if last and self._before_reconcile:
            self._before_reconcile()
        snapshot = pipeline.newest_snapshot()
        if snapshot is None:
            raise WaitTimeout("the sink has no snapshot")
        self._reading = pipeline.read_fence(
            mark, snapshot, baseline=baseline, visible_at_ms=visible_at_ms, folder=self._evidence_folder
        )
        if not last:
            pipeline.workload.resume()

    def _end_reading(self) -> None:
        """Wait for the reads of the last fence, if any are under way."""
        if self._reading is not None:
            self._history.phase(f"reconcile {len(self._fences) + 1}")
            finish, self._reading = self._reading, None
            self._fences.append(finish())

    def _heal(self) -> HarnessError | None:
        """Undo every fault that was begun, the last one first; return the first failure."""
        first: HarnessError | None = None
        for fault in reversed(self._begun):
            try:
                fault.heal(self._pipeline.stack)
            except HarnessError as error:
                self._history.event("failure", f"healing failed: {error.what}")
                first = first or error
        return first

    def _collect(self) -> Evidence:
        self._end_reading()
        self._history.phase("collect")
        outcome: WorkloadOutcome | None = None
        if self._workload_started:
            outcome = self._pipeline.workload.stop()
            pq.write_table(self._pipeline.workload.ledger(), self._evidence_folder / "ledger.parquet")
        evidence = Evidence(
            folder=str(self._evidence_folder),
            contract=self._pipeline.contract,
            expected_faults=len(self._faults),
            expected_fences=len(self._faults) + 1,
            fences=tuple(self._fences),
            faults=tuple(self._proofs),
            jobs=self._job_histories(),
            workload=outcome,
            interrupted=self._interrupted,
            ended_early=self._ended_early,
        )
        evidence_files.save(evidence, self._evidence_folder)
        self._collect_logs()
        return evidence

    def _job_histories(self) -> tuple[JobHistory, ...]:
        if self._job is None:
            return ()
        try:
            return (self._job.history(restart_attempts=self._attempts),)
        except FlinkError as error:
            self._history.event("failure", f"the job's history can't be read: {error.what}")
            return ()

    def _collect_logs(self) -> None:
        try:
            nodes = self._pipeline.stack.nodes()
        except HarnessError:
            return  # no stack was made, so there are no logs
        self._logs_folder.mkdir(parents=True, exist_ok=True)
        for node in nodes:
            try:
                (self._logs_folder / f"{node.name}.log").write_text(
                    self._pipeline.stack.log(node.name), encoding="utf-8", errors="replace"
                )
            except HarnessError as error:
                self._history.event("failure", f"no log of {node.name}: {error.what}")

    def _down(self) -> HarnessError | None:
        self._history.phase("stack down")
        try:
            stack = self._pipeline.stack
        except HarnessError:
            return None  # it never came to a stack
        try:
            stack.down()
        except HarnessError as error:
            self._history.event("failure", f"the stack is still there: {error.what}")
            return error
        return None


def _now_ms() -> int:
    return int(time.time() * 1000)
