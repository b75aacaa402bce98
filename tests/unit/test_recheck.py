"""A run judged again from its evidence: the same verdict, or exit code 3; never a better one."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import factories
import pyarrow.parquet as pq
import pytest
from recorded_runs import clean, record

from harness import evidence as evidence_files
from harness import oracles
from harness.errors import UsageError
from harness.model import Verdict
from harness.recheck import files_of, recheck
from harness.report import result_json


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """An empty folder for a run, with one for its evidence."""
    (tmp_path / "evidence").mkdir()
    return tmp_path


def test_a_valid_run_is_valid_again_oracle_by_oracle(run: Path) -> None:
    recorded = record(run, clean(run))
    done = recheck(run)

    assert Verdict.VALID is recorded.verdict
    assert (True, 0, Verdict.VALID) == (done.agrees, done.exit_code, done.again.verdict)
    assert recorded == done.again
    assert {oracle.oracle for oracle in recorded.oracles} == {row.oracle for row in done.comparisons}
    assert "" == done.carried


def test_a_run_that_was_moved_elsewhere_is_judged_where_it_is(
    run: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    record(run, clean(run))
    moved = tmp_path_factory.mktemp("elsewhere") / "run"
    shutil.move(run, moved)

    assert 0 == recheck(moved).exit_code


def test_a_row_that_is_lost_from_the_evidence_afterwards_does_not_pass(run: Path) -> None:
    evidence = clean(run)
    record(run, evidence)
    file = run / "evidence" / evidence.fences[-1].sink_rows
    pq.write_table(pq.read_table(file).slice(1), file)
    done = recheck(run)

    assert not done.agrees
    assert (Verdict.INVALID, 3) == (done.again.verdict, done.exit_code)


def test_an_invalid_run_is_invalid_again_with_its_exit_code(run: Path) -> None:
    evidence = clean(run)
    file = run / "evidence" / evidence.fences[-1].sink_rows
    pq.write_table(pq.read_table(file).slice(1), file)
    record(run, evidence)
    done = recheck(run)

    assert (True, 1) == (done.agrees, done.exit_code)


@pytest.mark.parametrize("verdict", [Verdict.VALID, Verdict.UNKNOWN])
def test_a_result_whose_verdict_was_changed_does_not_pass(run: Path, verdict: Verdict) -> None:
    evidence = clean(run)
    file = run / "evidence" / evidence.fences[-1].sink_rows
    pq.write_table(pq.read_table(file).slice(1), file)
    record(run, evidence, verdict=verdict, exit_code=verdict.exit_code)
    done = recheck(run)

    assert (False, 3, Verdict.INVALID) == (done.agrees, done.exit_code, done.again.verdict)


def test_an_oracle_that_is_missing_in_the_result_does_not_pass(run: Path) -> None:
    recorded = record(run, clean(run))
    result_json.save(replace(recorded, oracles=recorded.oracles[1:]), run)
    done = recheck(run)

    assert (False, 3) == (done.agrees, done.exit_code)
    assert "-" == next(row.recorded for row in done.comparisons if not row.agrees)


def test_a_run_in_which_the_harness_failed_is_never_valid(run: Path) -> None:
    record(run, clean(run), failure="the stack is still there", verdict=Verdict.UNKNOWN, exit_code=3)
    done = recheck(run)

    assert (True, 3, Verdict.UNKNOWN) == (done.agrees, done.exit_code, done.again.verdict)
    assert "the harness failed: the stack is still there" == done.carried


def test_exit_code_3_without_a_reason_stays_3(run: Path) -> None:
    record(run, clean(run), verdict=Verdict.UNKNOWN, exit_code=3)

    assert 3 == recheck(run).exit_code


def test_a_run_that_was_interrupted_stays_unknown(run: Path) -> None:
    record(run, replace(clean(run), interrupted="stopped by the user"))
    done = recheck(run, judge=lambda evidence: oracles.judge(evidence, ("liveness",)))

    assert Verdict.UNKNOWN is done.again.verdict
    assert "the run was interrupted: stopped by the user" == done.carried


def test_a_verdict_worse_than_its_parts_is_kept(run: Path) -> None:
    record(run, clean(run), verdict=Verdict.UNKNOWN, exit_code=2)
    done = recheck(run)

    assert (True, 2, Verdict.UNKNOWN) == (done.agrees, done.exit_code, done.again.verdict)
    assert "the run was UNKNOWN though none of its parts was" == done.carried


def test_a_fault_that_did_not_bite_keeps_the_run_unknown(run: Path) -> None:
    evidence = clean(run)
    faults = (*evidence.faults[:-1], replace(evidence.faults[-1], checks=()))
    record(run, replace(evidence, faults=faults))
    done = recheck(run, judge=lambda evidence: oracles.judge(evidence, ("liveness",)))

    assert Verdict.UNKNOWN is done.again.verdict


def test_an_oracle_that_crashes_is_not_valid(run: Path) -> None:
    record(run, clean(run))
    done = recheck(run, judge=lambda evidence: ())

    assert (Verdict.UNKNOWN, 3) == (done.again.verdict, done.exit_code)


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def corrupt(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[:4] + b"\xff" * 200 + content[204:])


@pytest.mark.parametrize("damage", [truncate, corrupt, Path.unlink, lambda file: file.write_bytes(b"")])
def test_evidence_that_is_not_whole_is_refused_whichever_file_it_is(
    run: Path, damage: Callable[[Path], object]
) -> None:
    evidence = clean(run)
    record(run, evidence)
    for name in files_of(evidence):
        file = run / "evidence" / name
        whole = file.read_bytes()
        damage(file)
        with pytest.raises(UsageError, match="the evidence is not whole") as caught:
            recheck(run)
        file.write_bytes(whole)

        assert name in caught.value.what
    assert 0 == recheck(run).exit_code


def test_every_file_of_the_evidence_is_looked_at(run: Path) -> None:
    evidence = clean(run)

    assert {path.name for path in (run / "evidence").glob("*.parquet")} == set(files_of(evidence))


def test_evidence_of_another_run_is_refused(run: Path) -> None:
    recorded = record(run, clean(run))
    result_json.save(replace(recorded, faults=recorded.faults[:1]), run)

    with pytest.raises(UsageError, match=r"not the evidence .* its faults differ"):
        recheck(run)


def test_an_oracle_that_this_harness_does_not_have_is_refused_not_left_out(run: Path) -> None:
    evidence = clean(run)
    record(run, evidence)
    evidence_files.save(replace(evidence, oracles=(*evidence.oracles, "foresight")), run / "evidence")

    with pytest.raises(UsageError, match="asks for foresight"):
        recheck(run)


@pytest.mark.parametrize("name", ["result.json", "evidence/evidence.json"])
@pytest.mark.parametrize("content", [None, "", "{}", '{"schema_version": 999}'])
def test_a_run_without_a_whole_result_or_evidence_is_refused(
    run: Path, name: str, content: str | None
) -> None:
    record(run, clean(run))
    if content is None:
        (run / name).unlink()
    else:
        (run / name).write_text(content)

    with pytest.raises(UsageError):
        recheck(run)


def test_a_run_that_never_came_to_its_workload_has_no_ledger_and_stays_failed(run: Path) -> None:
    nothing = replace(factories.evidence(), workload=None, fences=(), faults=(), jobs=(), travels=())
    nothing = replace(nothing, states=(), histories=(), snapshots=())
    record(run, nothing, failure="no engine", verdict=Verdict.UNKNOWN, exit_code=3)

    assert (True, 3) == (recheck(run).agrees, recheck(run).exit_code)


def test_judging_again_changes_nothing_in_the_run(run: Path) -> None:
    record(run, clean(run))
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    recheck(run)

    assert before == {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    assert json.loads((run / "result.json").read_text())["verdict"] == "VALID"
