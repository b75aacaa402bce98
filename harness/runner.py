"""A run: stack up → jobs → workload ∥ (steady → baseline → inject → prove → heal → recovered → cycles →
fence → reconcile)* → time travel → judge → down. And nothing else: all it touches is behind a Protocol.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow.parquet as pq

from harness import evidence as evidence_files
from harness import oracles
from harness.bulk_update import BulkUpdateRead
from harness.errors import (
    FaultError,
    FlinkError,
    HarnessError,
    SourceError,
    WaitTimeout,
)
from harness.first_load import FirstLoad
from harness.history import History
from harness.knock import knock
from harness.model import (
    BulkUpdate,
    Check,
    Evidence,
    FaultProof,
    Fence,
    JobHistory,
    OracleResult,
    SinkState,
    SnapshotPosition,
    WorkloadOutcome,
)
from harness.oracles.exhibits import Exhibits
from harness.oracles.prefixes import positions_of
from harness.ports import Fault, FaultContext, Pipeline, Seen, Travelled
from harness.profiles import Profile
from harness.scenario import FaultStep, Scenario
from harness.waiting import pause
from harness.watching import Bounds, Watch, now_ms

CHECKPOINTS_WITHOUT_MARKER = 10
"""After so many completed checkpoints a marker that isn't visible is lost, not late."""

CHECKPOINTS_OF_A_LOAD = 30
"""The same, when the source's first rows or a bulk update may still be on their way."""

LOAD_S = 60.0
"""At least for so long, however short the interval of the checkpoints."""

NOTHING_SEEN = Travelled(travels=(), snapshots=(), pins=())


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a run brought: evidence, verdicts, where each snapshot stands in its ledger, and the failure of
    the harness if there was one.
    """

    evidence: Evidence
    oracles: tuple[OracleResult, ...]
    positions: tuple[SnapshotPosition, ...]
    failure: HarnessError | None


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
        before_reconcile: Callable[[int], None] | None = None,
    ) -> None:
        """`faults` are the scenario's, in its order. `before_reconcile` runs between a fence's visibility
        and its reading, with the fence's number: tests damage there.
        """
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
        self._watch = Watch(pipeline, (), self._bounds, history)
        self._begun: list[Fault] = []
        self._proofs: list[FaultProof] = []
        self._bulks: list[BulkUpdate] = []
        self._fences: list[Fence] = []
        self._states: list[SinkState] = []
        self._keeping: list[Callable[[], tuple[SinkState, ...]]] = []
        self._travelled = NOTHING_SEEN
        self._reading: Callable[[], tuple[Fence, ...]] | None = None
        self._fences_begun = 0
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
            exhibits = Exhibits(evidence)
            results = oracles.judge_exhibits(exhibits, evidence.oracles)
            positions = positions_of(exhibits)
        finally:
            still_up = None if keep else self._down()
        return Outcome(evidence=evidence, oracles=results, positions=positions, failure=failure or still_up)

    @property
    def _strikes_the_load(self) -> bool:
        return any(step.during == "initial-load" for step in self._scenario.faults)

    def _drive(self) -> None:
        pipeline, history = self._pipeline, self._history
        history.phase("preflight")
        pipeline.preflight(lambda text: history.event("preflight", text))
        history.phase("stack up")
        pipeline.stack.up()
        history.phase("tables and jobs")
        pipeline.prepare()
        if self._strikes_the_load:  # the load is to be under writes
            self._start_workload()
        self._watch = Watch(pipeline, pipeline.submit(), self._bounds, history)
        for job in self._watch.jobs:
            history.event("job", f"{job.name}: job {job.job_id} runs")
        try:
            if not self._strikes_the_load:
                self._start_workload()
            self._under_load()
        except (FlinkError, WaitTimeout, SourceError, FaultError) as error:
            # Not a failure of the harness: the oracles say what it means.
            self._ended_early = error.what
            history.event("ended early", error.what)
        self._end_reading()
        self._look_back()

    @property
    def _knocks(self) -> bool:
        return self._scenario.startup != "initial"

    def _start_workload(self) -> None:
        if self._knocks:
            self._history.phase("knock")
            knock(self._pipeline, self._watch.jobs, self._history, timeout_s=self._bounds.recovery_s)
            self._history.phase("first rows")
            self._pipeline.workload.fill()
        self._pipeline.workload.start()
        self._workload_started = True

    def _under_load(self) -> None:
        steps = list(zip(self._scenario.faults, self._faults, strict=True))
        if not self._strikes_the_load:
            self._watch.checkpoints(self._scenario.steady_checkpoints, phase="steady")
            self._fence(baseline=True, last=not steps)
        for number, (step, fault) in enumerate(steps, start=1):
            self._strike(step, fault, number)
            self._fence(baseline=False, last=number == len(steps))

    def _strike(self, step: FaultStep, fault: Fault, number: int) -> None:
        stack, history = self._pipeline.stack, self._history
        struck: FirstLoad | BulkUpdateRead | None = None
        bulk: BulkUpdateRead | None = None
        if step.during == "initial-load":
            struck = self._first_load()
            struck.await_begun(timeout_s=self._bounds.recovery_s)
        else:
            if fault.spends_attempts:
                self._watch.renew_attempts(number)
            history.phase(f"load before fault {number}")
            # Somewhere in a checkpoint's cycle, and not always at its start.
            pause(self._rng.uniform(0, self._bounds.interval_s))
        if step.during == "bulk-update":
            history.phase(f"bulk update {number}")
            struck = bulk = BulkUpdateRead(self._pipeline, history, fault=number)
            bulk.await_begun(timeout_s=self._bounds.recovery_s)
        context = self._context(number)
        history.phase(f"fault {number}")
        self._begun.append(fault)
        healed_at_ms = recovered_at_ms = 0
        under_way: tuple[Check, ...] = ()
        try:
            fault.inject(context)
            under_way = struck.checks() if struck else ()
            history.event("inject", fault.proof().fault, fault.proof().node)
            if bulk:
                self._pipeline.workload.resume()
            fault.prove(context)
            history.phase(f"recovery {number}")
            fault.heal(stack)
            healed_at_ms = now_ms()
            history.event("heal", fault.proof().fault, fault.proof().node)
            fault.recover(context)
            self._watch.running()
            recovered_at_ms = now_ms()
        finally:
            proof = fault.proof()
            proof = replace(
                proof,
                healed_at_ms=healed_at_ms,
                recovered_at_ms=recovered_at_ms,
                checks=(*under_way, *proof.checks),
            )
            self._proofs.append(proof)
            if bulk:
                self._bulks.append(bulk.outcome(self._watch.jobs, since_ms=proof.injected_at_ms))
            for check in proof.checks:
                held = "" if check.held else "NOT HELD: "
                history.event("proof", f"{held}{check.name}: {check.actual}", proof.node)
        self._watch.checkpoints(self._scenario.cycles, phase=f"cycles {number}")

    def _first_load(self) -> FirstLoad:
        return FirstLoad(
            [job.name for job in self._watch.jobs],
            rows=self._scenario.workload.initial_rows,
            sink_rows=self._pipeline.sink_rows,
        )

    def _context(self, number: int) -> FaultContext:
        pipeline = self._pipeline

        def keep_sink(savepoints: Mapping[str, str]) -> None:
            self._keeping.append(pipeline.keep_sink(number, savepoints, self._evidence_folder))

        return FaultContext(
            stack=pipeline.stack,
            jobs=self._watch.jobs,
            rng=self._rng,
            bound_s=self._bounds.recovery_s,
            checkpoint_s=self._bounds.checkpoint_s,
            late_s=self._bounds.late_s,
            committed=pipeline.workload.committed,
            keep_sink=keep_sink,
        )

    def _fence(self, *, baseline: bool, last: bool) -> None:
        pipeline, history = self._pipeline, self._history
        self._end_reading()
        self._fences_begun += 1
        number = self._fences_begun
        history.phase(f"fence {number}")
        marks = pipeline.workload.fence()
        visible_at = self._watch.markers(marks, limit=self._patience())
        if self._before_reconcile:
            self._before_reconcile(number)
        seen = []
        for mark in marks:
            snapshot = pipeline.newest_snapshot(mark.table)
            if snapshot is None:
                raise WaitTimeout(f"the sink of {mark.table} has no snapshot")
            seen.append(Seen(mark=mark, snapshot=snapshot, visible_at_ms=visible_at[mark.table]))
        finish = pipeline.read_fence(seen, baseline=baseline, folder=self._evidence_folder)
        moments = self._watch.moments()  # while the source stands still
        self._reading = lambda: tuple(replace(fence, job=moments.get(fence.mark.table)) for fence in finish())
        if not last:
            pipeline.workload.resume()

    def _patience(self) -> int:
        """How many checkpoints may complete before a marker that isn't visible is lost."""
        if self._knocks or any(step.during != "steady" for step in self._scenario.faults):
            return max(CHECKPOINTS_OF_A_LOAD, math.ceil(LOAD_S / self._bounds.interval_s))
        return CHECKPOINTS_WITHOUT_MARKER

    def _end_reading(self) -> None:
        """Wait for the reads of the last fence and of stopped jobs, if any are under way."""
        if self._reading is not None or self._keeping:
            self._history.phase(f"reconcile {self._fences_begun}")
        while self._keeping:
            self._states += self._keeping.pop(0)()
        if self._reading is not None:
            finish, self._reading = self._reading, None
            self._fences += finish()

    def _look_back(self) -> None:
        if self._fences:
            self._history.phase("time travel")
            self._travelled = self._pipeline.travel(self._fences, self._evidence_folder)

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
            workload = self._pipeline.workload
            outcome = workload.stop()
            for table in self._pipeline.tables:
                pq.write_table(workload.ledger(table.name), self._evidence_folder / table.ledger_file)
        evidence = Evidence(
            folder=str(self._evidence_folder),
            tables=self._pipeline.tables,
            oracles=self._scenario.oracles,
            accepts=self._scenario.accepts,
            startup=self._scenario.startup,
            expected_faults=len(self._faults),
            expected_fences=len(self._faults) + (0 if self._strikes_the_load else 1),
            fences=tuple(self._fences),
            faults=tuple(self._proofs),
            jobs=self._job_histories(),
            workload=outcome,
            travels=self._travelled.travels,
            states=tuple(self._states),
            snapshots=self._travelled.snapshots,
            pins=self._travelled.pins,
            histories=self._travelled.histories,
            commits=self._travelled.commits,
            binlogs=self._travelled.binlogs,
            aggregates=self._travelled.aggregates,
            bulks=tuple(self._bulks),
            interrupted=self._interrupted,
            ended_early=self._ended_early,
        )
        evidence_files.save(evidence, self._evidence_folder)
        self._collect_logs()
        return evidence

    def _job_histories(self) -> tuple[JobHistory, ...]:
        histories: list[JobHistory] = []
        for job in self._watch.jobs:
            try:
                histories += job.histories(restart_attempts=self._attempts)
            except FlinkError as error:
                self._history.event("failure", f"the history of {job.name} can't be read: {error.what}")
        return tuple(histories)

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
