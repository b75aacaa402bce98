"""Results and evidence to test with: a whole run that went well, and parts to spoil it with."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from harness.model import (
    Check,
    CheckpointCounts,
    CheckpointRecord,
    Component,
    Event,
    Evidence,
    FaultProof,
    Fence,
    FenceMark,
    Finding,
    JobFailure,
    JobHistory,
    OracleResult,
    PartitionTotals,
    Phase,
    Reading,
    RunResult,
    Setting,
    Severity,
    TableContract,
    TimeWindow,
    Verdict,
    WorkloadOutcome,
)

RUN = "20260706-101500-kill-taskmanager"
START_MS = 1783332900000

MISSING_ROWS = Finding(
    code="PK-MISSING",
    severity=Severity.ERROR,
    what="3 rows of the source are missing from the sink",
    where="fence 2, snapshot 41",
    expected="5,012 rows",
    actual="5,009 rows",
    examples=("dt=2026-07-01 order_id=17", "dt=2026-07-02 order_id=[18]"),
    todo="compare ledger.parquet with the rows of fence 2",
)


def proof(*, bit: bool = True) -> FaultProof:
    """The proof of a kill that bit, or of one whose victim held no task."""
    return FaultProof(
        fault="kill-taskmanager",
        node="taskmanager-1",
        injected_at_ms=START_MS + 30_000,
        healed_at_ms=START_MS + 31_000,
        recovered_at_ms=START_MS + 42_500,
        checks=(
            Check(name="pid gone", expected="no pid 77", actual="no pid 77", held=True),
            Check(name="tasks lost", expected="at least 1", actual="2" if bit else "0", held=bit),
        ),
    )


def oracle(
    verdict: Verdict = Verdict.VALID, *, examined: int = 5012, findings: tuple[Finding, ...] = ()
) -> OracleResult:
    """The primary-key oracle's word."""
    return OracleResult(
        oracle="primary-key",
        verdict=verdict,
        examined=examined,
        unit="rows",
        checks=(Check(name="rows", expected="5012", actual="5012", held=verdict is Verdict.VALID),),
        findings=findings,
    )


def fence() -> Fence:
    """A fence with its marker visible and both sides equal."""
    totals = (
        PartitionTotals(
            partition="2026-07-01",
            rows=5012,
            keys=5012,
            amount="99.50",
            window_keys=5000,
            window_amount="98.00",
        ),
    )
    return Fence(
        mark=FenceMark(
            number=1, operation=812, partition="2026-07-01", key=-1, committed_at_ms=START_MS + 50_000
        ),
        baseline=False,
        visible=True,
        visible_at_ms=START_MS + 53_000,
        snapshot_id=41,
        snapshot_at_ms=START_MS + 52_900,
        window=TimeWindow(start=datetime(2026, 7, 1), end=datetime(2026, 7, 2, 0, 0, 0, 999000)),  # noqa: DTZ001 - the model's windows are naive UTC
        source=Reading(reader="mysql", totals=totals, seconds=0.1),
        sink=(Reading(reader="native", totals=totals), Reading(reader="flink-sql", error="no slot")),
        source_rows="source-1.parquet",
        sink_rows="sink-1.parquet",
    )


def job() -> JobHistory:
    """A job that was restarted once and restored once."""
    return JobHistory(
        job_id="a1b2",
        name="orders",
        state="RUNNING",
        restarts=1,
        restart_attempts=20,
        counts=CheckpointCounts(completed=23, failed=1, in_progress=0, restored=1),
        checkpoints=(
            CheckpointRecord(
                checkpoint_id=1,
                status="COMPLETED",
                triggered_at_ms=START_MS,
                duration_ms=40,
                state_size_bytes=9000,
                is_savepoint=False,
            ),
        ),
        failures=(
            JobFailure(at_ms=START_MS + 30_500, exception="TaskManager lost", taskmanager="taskmanager-1"),
        ),
    )


WORKLOAD = WorkloadOutcome(
    seed=20260706, transactions=400, operations=900, reconnects=0, unresolved=(), seconds=60.0
)


def evidence() -> Evidence:
    """The evidence of a run with one fault."""
    return Evidence(
        folder="reports/somewhere",
        contract=TableContract(
            source="shop.orders",
            sink="dwd.dwd_order_detail",
            columns=("order_id", "dt"),
            source_key="order_id",
            partition="dt",
            amount="order_amount",
            time="create_time",
        ),
        expected_faults=1,
        expected_fences=2,
        fences=(fence(),),
        faults=(proof(),),
        jobs=(job(),),
        workload=WORKLOAD,
    )


def result(**changes: object) -> RunResult:
    """A VALID run of kill-taskmanager, with any field changed."""
    valid = RunResult(
        schema_version=1,
        run=RUN,
        scenario="kill-taskmanager",
        profile="fast",
        seed=20260706,
        started_at="2026-07-06T10:15:00Z",
        seconds=74.2,
        verdict=Verdict.VALID,
        exit_code=0,
        failure="",
        failure_todo="",
        config_hash="sha256:0123abcd",
        components=(
            Component(name="flink", version="1.20.3", origin="built from PyPI and Maven Central"),
            Component(name="paimon", version="1.3.1", origin="Maven Central"),
        ),
        settings=(Setting(scope="flink", key="state.backend", value="rocksdb", origin="profile guide"),),
        profile_differences=("execution.checkpointing.interval: 120s → 3s (a cycle in seconds)",),
        unapplied_options=("write-mode (§3.3): unknown to Paimon 1.3",),
        oracles=(oracle(),),
        faults=(proof(),),
        fences=(fence(),),
        jobs=(job(),),
        workload=WORKLOAD,
        phases=(
            Phase(name="stack up", started_at_ms=START_MS, seconds=20.5),
            Phase(name="judge", started_at_ms=START_MS + 70_000, seconds=4.0),
        ),
        events=(Event(at_ms=START_MS + 30_000, kind="inject", text="kill -9", node="taskmanager-1"),),
        reproduce="harness run kill-taskmanager --seed 20260706 --profile fast",
    )
    return replace(valid, **changes)  # type: ignore[arg-type]
