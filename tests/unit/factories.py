"""Results and evidence to test with: a whole run that went well, and parts to spoil it with."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from harness.model import (
    AggregateContract,
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
    JobMoment,
    OracleResult,
    OutageBudget,
    PartitionTotals,
    Phase,
    Pin,
    Progress,
    Reading,
    Restore,
    RunResult,
    Setting,
    Severity,
    SinkState,
    SnapshotRecord,
    TableContract,
    TableHistory,
    TimeTravel,
    TimeWindow,
    Verdict,
    WorkloadOutcome,
)

RUN = "20260706-101500-kill-taskmanager"
START_MS = 1783332900000
SAVEPOINT = "s3://flink/savepoints/savepoint-a1b2-0011"

ORDERS = TableContract(
    name="orders",
    source="shop.source_orders",
    sink="dwd.dwd_order_detail",
    columns=("order_id", "user_id", "order_amount", "order_status", "create_time", "update_time", "dt"),
    source_key="order_id",
    partition="dt",
    amount="order_amount",
    time="update_time",
    append_only=False,
)

LOG_SUMS = AggregateContract(
    name="behavior-totals",
    sink="dwd.dwd_behavior_totals",
    groups=("dt", "event_type"),
    count="events",
    total="users",
    summed="user_id",
)

BEHAVIOR_LOG = TableContract(
    name="behavior-log",
    source="shop.behavior_log",
    sink="dwd.dwd_behavior_log",
    columns=("log_id", "user_id", "event_type", "event_time", "dt"),
    source_key="log_id",
    partition="dt",
    amount="user_id",
    time="event_time",
    append_only=True,
    aggregate=LOG_SUMS,
)

TABLES = (ORDERS, BEHAVIOR_LOG)

MISSING_ROWS = Finding(
    code="PK-MISSING",
    severity=Severity.ERROR,
    what="3 rows of the source are missing from the sink",
    where="orders, fence 2, snapshot 42",
    expected="5,012 rows",
    actual="5,009 rows",
    examples=("dt=2026-07-01 order_id=17", "dt=2026-07-02 order_id=[18]"),
    todo="compare ledger-orders.parquet with the rows of fence 2",
)

WINDOW = TimeWindow(start=datetime(2026, 7, 1), end=datetime(2026, 7, 2, 0, 0, 0, 999000))  # noqa: DTZ001 - the model's windows are naive UTC

TOTALS = (
    PartitionTotals(
        partition="2026-07-01",
        rows=5012,
        keys=5012,
        amount="99.50",
        window_keys=5000,
        window_amount="98.00",
    ),
)

WORKLOAD = WorkloadOutcome(
    seed=20260706, transactions=400, operations=900, reconnects=0, unresolved=(), seconds=60.0
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


def stop_proof() -> FaultProof:
    """The proof of a stop with a savepoint, which strikes no node."""
    return FaultProof(
        fault="stop-with-savepoint",
        node="",
        injected_at_ms=START_MS + 70_000,
        healed_at_ms=START_MS + 75_000,
        recovered_at_ms=START_MS + 80_000,
        checks=(Check(name="orders came back from", expected=SAVEPOINT, actual=SAVEPOINT, held=True),),
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


def mark(table: str = "orders", number: int = 1, *, operation: int = 812) -> FenceMark:
    """A fence's marker: fence 1 is before the kill, 2 after it, 3 after the stop with a savepoint."""
    return FenceMark(
        table=table,
        number=number,
        operation=operation,
        partition="2026-07-01",
        key=-number if table == "orders" else f"marker-{number}",
        committed_at_ms=START_MS - 20_000 + number * 40_000,
    )


def fence(table: str = "orders", number: int = 1) -> Fence:
    """A fence of a table with its marker visible and both sides equal."""
    at = mark(table, number)
    return Fence(
        mark=at,
        baseline=number == 1,
        visible=True,
        visible_at_ms=at.committed_at_ms + 3_000,
        snapshot_id=40 + number,
        snapshot_at_ms=at.committed_at_ms + 2_900,
        window=WINDOW,
        source=Reading(reader="mysql", totals=TOTALS, seconds=0.1),
        sink=(Reading(reader="pypaimon-rust", totals=TOTALS), Reading(reader="flink-sql", totals=TOTALS)),
        source_rows=f"{table}-fence-{number}-source.parquet",
        sink_rows=f"{table}-fence-{number}-sink.parquet",
        job=JobMoment(life=1 if number < 3 else 2, restarts=0, source_records=-1),
    )


def travel(table: str = "orders", number: int = 1) -> TimeTravel:
    """A fence's snapshot read again at the end of the run, and found as it was."""
    at = fence(table, number)
    return TimeTravel(
        table=table,
        fence=number,
        snapshot_id=at.snapshot_id,
        at_ms=at.snapshot_at_ms,
        resolved_id=at.snapshot_id,
        by_time=Reading(reader="flink-sql", totals=TOTALS),
        by_id=Reading(reader="pypaimon-rust", totals=TOTALS),
        sink_rows=f"{table}-travel-{number}-sink.parquet",
    )


def snapshot(table: str = "orders", number: int = 1) -> SnapshotRecord:
    """The snapshot of a fence, as the table's history has it."""
    at = fence(table, number)
    return SnapshotRecord(
        table=table,
        snapshot_id=at.snapshot_id,
        kind="APPEND",
        commit_user="5f1c8f8e-0000-4000-8000-000000000001",
        commit_identifier=10 * number,
        committed_at_ms=at.snapshot_at_ms,
        total_records=5012,
        delta_records=12,
        changelog_records=12,
    )


def pin(table: str = "orders") -> Pin:
    """A consumer that keeps a table's snapshots from the first fence on."""
    return Pin(table=table, consumer="harness", first_snapshot=41)


def history(table: str = "orders") -> TableHistory:
    """What every snapshot of a table held from the first fence on."""
    keyed = table == ORDERS.name
    return TableHistory(
        table=table,
        changelog_producer="input" if keyed else "none",
        base_snapshot=41,
        whole=(41,),
        changes=f"{table}-changes.parquet",
        changelog=f"{table}-changelog.parquet" if keyed else "",
    )


def state(table: str = "orders") -> SinkState:
    """A table while its job was down, in the second fault."""
    return SinkState(
        table=table,
        fault=2,
        snapshot_id=42,
        savepoint=SAVEPOINT,
        committed=900,
        sink_rows=f"{table}-stopped-2-sink.parquet",
    )


def checkpoint(number: int, *, after_ms: int) -> CheckpointRecord:
    """A checkpoint that completed in 40 ms, triggered so long after the start."""
    return CheckpointRecord(
        checkpoint_id=number,
        status="COMPLETED",
        triggered_at_ms=START_MS + after_ms,
        duration_ms=40,
        state_size_bytes=9000,
        is_savepoint=False,
    )


def job(name: str = "orders", life: int = 1, *, lives: int = 1) -> JobHistory:
    """A life of a job: the first was restarted once, by the kill; all but the last ended in a savepoint."""
    first, last = life == 1, life == lives
    restore = Restore(checkpoint_id=11, at_ms=START_MS + 79_000, is_savepoint=True, path=SAVEPOINT)
    killed = JobFailure(at_ms=START_MS + 30_500, exception="TaskManager lost", taskmanager="taskmanager-1")
    return JobHistory(
        job_id=f"a1b{life}",
        name=name,
        life=life,
        restored_from="" if first else SAVEPOINT,
        ended_by="" if last else "stopped with a savepoint",
        state="RUNNING" if last else "FINISHED",
        restarts=1 if first else 0,
        restart_attempts=20,
        counts=CheckpointCounts(completed=23, failed=1, in_progress=0, restored=1),
        last_restore=None if first else restore,
        checkpoints=(checkpoint(1, after_ms=0) if first else checkpoint(12, after_ms=81_000),),
        failures=(killed,) if first else (),
    )


def evidence() -> Evidence:
    """The evidence of a run with one fault and something of every kind; no files belong to it."""
    return Evidence(
        folder="reports/somewhere",
        tables=TABLES,
        oracles=("completeness", "liveness"),
        expected_faults=1,
        expected_fences=2,
        fences=tuple(fence(table.name) for table in TABLES),
        faults=(proof(),),
        jobs=tuple(job(table.name) for table in TABLES),
        workload=WORKLOAD,
        travels=tuple(travel(table.name) for table in TABLES),
        states=(state(),),
        snapshots=tuple(snapshot(table.name) for table in TABLES),
        histories=tuple(history(table.name) for table in TABLES),
        pins=tuple(pin(table.name) for table in TABLES),
    )


def result(**changes: object) -> RunResult:
    """A VALID run over two tables, with a kill and a stop of one job with a savepoint; any field changed."""
    fences = [(table.name, number) for number in (1, 2, 3) for table in TABLES]
    valid = RunResult(
        schema_version=3,
        run=RUN,
        scenario="kill-taskmanager",
        description="A TaskManager is killed under load",
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
        budget=OutageBudget(
            restart_attempts=20,
            restart_delay_s=1.0,
            tolerable_failed_checkpoints=3,
            checkpoint_interval_s=3.0,
            checkpoint_timeout_s=10.0,
            fail_fast_s=20.0,
            stalled_s=52.0,
        ),
        tables=TABLES,
        oracles=(oracle(),),
        faults=(proof(), stop_proof()),
        fences=tuple(fence(table, number) for table, number in fences),
        travels=tuple(travel(table, number) for table, number in fences),
        jobs=(job(lives=2), job(life=2, lives=2), job("behavior-log")),
        snapshots=tuple(snapshot(table, number) for table, number in fences),
        progress=tuple(
            Progress(table=table.name, at_ms=START_MS + second * 1_000, committed=committed, visible=visible)
            for table in TABLES
            for second, committed, visible in ((0, 0, 0), (20, 400, -1), (23, -1, 400), (100, 900, -1))
        ),
        positions=(),
        workload=WORKLOAD,
        phases=(
            Phase(name="stack up", started_at_ms=START_MS, seconds=20.5),
            Phase(name="judge", started_at_ms=START_MS + 70_000, seconds=4.0),
        ),
        events=(Event(at_ms=START_MS + 30_000, kind="inject", text="kill -9", node="taskmanager-1"),),
        logs=("logs/jobmanager.log", "logs/taskmanager-1.log"),
        reproduce="harness run kill-taskmanager --seed 20260706 --profile fast",
    )
    return replace(valid, **changes)  # type: ignore[arg-type]
