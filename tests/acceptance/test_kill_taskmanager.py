"""The main job on the real stack: it must be VALID when all is well, and not otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest
from running import Accept

from harness.model import RunResult, Verdict
from harness.pipeline import OrdersPipeline

pytestmark = pytest.mark.docker

IDLE_VICTIM = """
name: idle-victim
description: The killed TaskManager holds no task of the job, so nothing was tested
profile: fast
seed: 7
parallelism: 1
workload: {rate: 500, initial_rows: 1000}
faults:
  - fault: kill-taskmanager
    with: {victim: idle}
oracles: all
"""


def test_a_killed_taskmanager_is_survived_exactly_and_the_report_shows_the_restart(accept: Accept) -> None:
    done = accept("kill-taskmanager")

    result = done.result
    assert Verdict.VALID == result.verdict, _why(result)
    assert 0 == result.exit_code
    assert result.faults[0].bit
    assert result.jobs[0].restarts >= 1
    assert result.jobs[0].counts.restored >= 1
    assert any("restored from a checkpoint" in event.text for event in result.events)
    assert {"primary_key", "fault_effect", "liveness", "source_truth", "completeness"} == {
        oracle.oracle for oracle in result.oracles
    }
    assert {"junit.xml", "result.json", "events.jsonl", "evidence", "logs"} <= _names(done.folder)
    assert done.folder.name == (done.folder.parent / "latest").resolve().name


@pytest.mark.parametrize(
    ("damage", "counted"),
    [
        ("DELETE FROM {table} WHERE dt = '{dt}' AND order_id = {key}", "1 keys missing"),
        (
            "UPDATE {table} SET order_amount = order_amount + 0.01 WHERE dt = '{dt}' AND order_id = {key}",
            "1 with another row",
        ),
        (
            "INSERT INTO {table} SELECT order_id + 900000000, user_id, order_amount, order_status, "
            "create_time, update_time, dt FROM {table} WHERE dt = '{dt}' AND order_id = {key}",
            "1 extra",
        ),
    ],
    ids=["deleted", "changed", "added"],
)
def test_one_row_of_the_sink_that_is_not_the_sources_makes_the_run_invalid(
    accept: Accept, damage: str, counted: str
) -> None:
    def behind_its_back(pipeline: OrdersPipeline) -> None:
        table = pipeline.contract.sink
        session = pipeline.sink_session()
        dt, key = session.execute(f"SELECT dt, order_id FROM {table} WHERE order_id > 0 LIMIT 1").rows[0]
        session.execute(damage.format(table=table, dt=dt, key=key))

    result = accept("kill-taskmanager", before_reconcile=behind_its_back).result

    assert Verdict.INVALID == result.verdict, _why(result)
    assert 1 == result.exit_code
    findings = [finding for oracle in result.oracles for finding in oracle.findings]
    rows = [finding for finding in findings if finding.code == "rows-differ"]
    assert [counted in rows[0].what, len(rows[0].examples)] == [True, 1]


def test_a_kill_that_hits_no_task_of_the_job_leaves_the_run_unknown(accept: Accept) -> None:
    result = accept(IDLE_VICTIM).result

    assert Verdict.UNKNOWN == result.verdict, _why(result)
    assert 2 == result.exit_code
    assert not result.faults[0].bit
    assert {"fault-did-not-bite"} == {
        finding.code for oracle in result.oracles for finding in oracle.findings
    }


def _why(result: RunResult) -> str:
    return "\n".join(
        [
            result.failure,
            *(f"{o.oracle}: {f.code}: {f.what} {f.actual}" for o in result.oracles for f in o.findings),
        ]
    )


def _names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}
