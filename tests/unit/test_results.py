"""Results: the exit code of each verdict, a hash of what counts, and the files in the run's folder."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import evidence_folders
import factories
import pytest
from fakes import FakeListener

from harness import faults, oracles, results
from harness.errors import HarnessError
from harness.history import History
from harness.model import Component, Evidence, OracleResult, RunResult, Setting, Verdict
from harness.oracles.exhibits import Exhibits
from harness.oracles.prefixes import positions_of
from harness.profiles import load_profile
from harness.report import result_json
from harness.runner import Outcome
from harness.scenario import Scenario, load, with_overrides

SETTING = Setting(scope="job", key="state.checkpoints.dir", value="s3://flink/checkpoints/r1", origin="p")
FLINK = Component(name="flink", version="1.20.3", origin="built")


def scenario() -> Scenario:
    return load("kill-taskmanager", faults=faults.FAULTS, oracles=oracles.ORACLES)


def result_of(
    *verdicts: Verdict, failure: HarnessError | None = None, examined: int = 9, **changes: Any
) -> RunResult:
    evidence: Evidence = replace(factories.evidence(), **changes)
    history = History(FakeListener(), now_ms=lambda: factories.START_MS)
    history.phase("preflight")
    history.event("inject", "kill -9", "taskmanager-1")
    judged: tuple[OracleResult, ...] = tuple(factories.oracle(item, examined=examined) for item in verdicts)
    return results.result_of(
        Outcome(
            evidence=evidence,
            oracles=judged,
            positions=positions_of(Exhibits(evidence)),
            failure=failure,
        ),
        run="r1",
        scenario=scenario(),
        profile=load_profile("fast", run="r1"),
        components=(FLINK,),
        settings=(SETTING,),
        history=history,
        logs=("logs/jobmanager.log",),
        reproduce="./run harness accept",
    )


def hashed(
    run: str = "r1", *, of: Scenario | None = None, setting: Setting = SETTING, component: Component = FLINK
) -> str:
    return results.config_hash(run, of or scenario(), [setting], [component])


@pytest.mark.parametrize(
    ("verdicts", "verdict", "code"),
    [
        ([Verdict.VALID, Verdict.VALID], Verdict.VALID, 0),
        ([Verdict.VALID, Verdict.INVALID, Verdict.UNKNOWN], Verdict.INVALID, 1),
        ([Verdict.VALID, Verdict.UNKNOWN], Verdict.UNKNOWN, 2),
        ([], Verdict.UNKNOWN, 2),
    ],
)
def test_the_worst_verdict_wins_and_has_its_exit_code(
    verdicts: list[Verdict], verdict: Verdict, code: int
) -> None:
    result = result_of(*verdicts)

    assert (verdict, code) == (result.verdict, result.exit_code)


def test_a_failure_of_the_harness_is_exit_code_3_and_never_valid() -> None:
    result = result_of(Verdict.VALID, failure=HarnessError("no engine", todo="start one"))

    assert (Verdict.UNKNOWN, 3) == (result.verdict, result.exit_code)
    assert ("no engine", "start one") == (result.failure, result.failure_todo)


def test_a_failure_without_words_is_exit_code_3_too() -> None:
    result = result_of(Verdict.VALID, failure=HarnessError(""))

    assert (Verdict.UNKNOWN, 3) == (result.verdict, result.exit_code)


@pytest.mark.parametrize(
    "changes",
    [{"interrupted": "stopped by the user"}, {"faults": (factories.proof(bit=False),)}],
    ids=["interrupted", "a fault did not bite"],
)
def test_what_proves_nothing_is_unknown_although_all_oracles_are_content(changes: dict[str, Any]) -> None:
    result = result_of(Verdict.VALID, **changes)

    assert (Verdict.UNKNOWN, 2) == (result.verdict, result.exit_code)


def test_a_valid_that_examined_nothing_is_unknown() -> None:
    assert 2 == result_of(Verdict.VALID, examined=0).exit_code


def test_a_result_says_when_it_began_in_utc_and_what_it_holds_for() -> None:
    result = result_of(Verdict.VALID)

    assert "2026-07-06T10:15:00+00:00" == result.started_at
    assert (FLINK,) == result.components
    assert (SETTING,) == result.settings
    assert any("execution.checkpointing.interval" in line for line in result.profile_differences)
    assert result.unapplied_options
    assert 12 == len(result.config_hash)


def test_the_hash_is_the_same_for_another_run() -> None:
    other = replace(SETTING, value="s3://flink/checkpoints/r2")

    assert hashed("r1") == hashed("r2", setting=other)


@pytest.mark.parametrize(
    "changes",
    [
        {"setting": replace(SETTING, value="s3://elsewhere/r1")},
        {"setting": replace(SETTING, key="state.savepoints.dir")},
        {"setting": replace(SETTING, scope="table")},
        {"component": replace(FLINK, version="1.20.4")},
        {"of": with_overrides(scenario(), rate=999)},
        {"of": with_overrides(scenario(), seed=1)},
    ],
    ids=["value", "key", "scope", "version", "rate", "seed"],
)
def test_the_hash_changes_with_what_counts(changes: dict[str, Any]) -> None:
    assert hashed() != hashed(**changes)


def test_the_hash_does_not_change_with_where_a_value_or_an_image_came_from() -> None:
    assert hashed() == hashed(setting=replace(SETTING, origin="guide"), component=replace(FLINK, origin="x"))


def test_saving_writes_the_reports_and_latest_points_at_the_run(tmp_path: Path) -> None:
    result = result_of(Verdict.VALID)
    results.save(result, tmp_path / "r1")

    assert result == result_json.load(tmp_path / "latest")
    expected = {"result.json", "junit.xml", "report.html", "summary.md", "events.jsonl"}
    assert expected == {path.name for path in (tmp_path / "r1").iterdir()}
    assert {"r1", "latest"} == {path.name for path in tmp_path.iterdir()}


def test_latest_moves_to_the_newest_run_and_the_older_one_stays(tmp_path: Path) -> None:
    for run in ("r1", "r2"):
        results.save(factories.result(run=run), tmp_path / run)

    assert "r2" == (tmp_path / "latest").resolve().name
    assert "r1" == result_json.load(tmp_path / "r1").run


def test_latest_still_leads_to_the_run_when_reports_are_moved(tmp_path: Path) -> None:
    results.save(factories.result(run="r1"), tmp_path / "reports" / "r1")
    moved = (tmp_path / "reports").rename(tmp_path / "moved")

    assert "r1" == result_json.load(moved / "latest").run


def test_events_are_one_json_object_a_line(tmp_path: Path) -> None:
    results.save(result_of(Verdict.VALID), tmp_path / "r1")

    lines = (tmp_path / "r1" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    expected = {
        "at_ms": factories.START_MS,
        "kind": "inject",
        "node": "taskmanager-1",
        "text": "kill -9",
    }
    assert [expected] == [json.loads(line) for line in lines]


def test_an_event_of_several_lines_stays_one_line(tmp_path: Path) -> None:
    event = replace(factories.result().events[0], text="first\nsecond \udcff")
    results.save(factories.result(run="r1", events=(event,)), tmp_path / "r1")

    lines = (tmp_path / "r1" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert ["first\nsecond \udcff"] == [json.loads(line)["text"] for line in lines]


def test_a_result_says_where_each_snapshot_stands_in_the_ledger(tmp_path: Path) -> None:
    evidence = evidence_folders.evidence(tmp_path)
    names = [field.name for field in fields(evidence)]

    found = result_of(Verdict.VALID, **{name: getattr(evidence, name) for name in names}).positions

    assert {table.name for table in evidence.tables} == {position.table for position in found}
    assert all(position.operation > 0 for position in found)


def test_a_run_without_files_of_evidence_has_no_positions() -> None:
    assert () == result_of(Verdict.VALID).positions
