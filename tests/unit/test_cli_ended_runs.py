"""The commands for runs that are over: each ends with one line that says what happened, and its exit code."""

from __future__ import annotations

import json
import tarfile
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from recorded_runs import clean, record
from test_cli import Ended

from harness.model import Verdict

RUN = "20260706-101500-acceptance-ab12"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A VALID run in a folder of reports, which `latest` points at."""
    folder = tmp_path / "reports" / RUN
    (folder / "evidence").mkdir(parents=True)
    record(folder, clean(folder))
    (tmp_path / "reports" / "latest").symlink_to(RUN)
    return folder


def ended(run: Path, *arguments: str, captured: pytest.CaptureFixture[str]) -> Ended:
    return Ended(*arguments, "--reports", str(run.parent), captured=captured)


def last_line(said: str) -> str:
    return said.strip().splitlines()[-1]


@pytest.mark.parametrize("reference", [RUN, "latest"])
def test_report_writes_every_report_anew_and_says_where(
    capsys: pytest.CaptureFixture[str], run: Path, reference: str
) -> None:
    before = (run / "result.json").read_bytes()
    done = ended(run, "report", reference, captured=capsys)

    assert 0 == done.code, done.err
    assert {"report.html", "summary.md", "junit.xml", "events.jsonl"} <= {path.name for path in run.iterdir()}
    assert f"report: {(run / 'report.html').as_uri()}" in done.out
    assert "VALID  kill-taskmanager" in done.out
    assert before == (run / "result.json").read_bytes()
    assert RUN == (run.parent / "latest").resolve().name


@pytest.mark.parametrize(
    ("verdict", "exit_code"), [(Verdict.INVALID, 1), (Verdict.UNKNOWN, 2), (Verdict.UNKNOWN, 3)]
)
def test_report_ends_with_the_exit_code_of_the_run(
    capsys: pytest.CaptureFixture[str], run: Path, verdict: Verdict, exit_code: int
) -> None:
    record(run, clean(run), verdict=verdict, exit_code=exit_code)

    assert exit_code == ended(run, "report", "latest", captured=capsys).code


def test_recheck_compares_every_oracle_and_gives_the_same_verdict(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    done = ended(run, "recheck", str(run), captured=capsys)

    assert 0 == done.code, done.err
    for name in ("completeness", "reconciliation", "time_travel", "liveness", "kill-taskmanager", "run"):
        assert name in done.out
    assert "differs" not in done.out
    assert last_line(done.out).startswith("VALID  judged again from its evidence, as recorded")


def test_recheck_of_evidence_that_lost_a_row_shows_what_differs_and_is_exit_code_3(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    file = sorted((run / "evidence").glob("*fence*sink.parquet"))[0]
    pq.write_table(pq.read_table(file).slice(1), file)
    done = ended(run, "recheck", "latest", captured=capsys)

    assert 3 == done.code
    assert "differs" in done.out
    assert "recorded VALID, exit code 0, judged again INVALID, exit code 1: reconciliation" in done.err
    assert "VALID  judged again" not in done.out


def test_recheck_of_truncated_evidence_is_exit_code_3_and_names_the_file(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    file = run / "evidence" / "ledger-orders.parquet"
    file.write_bytes(file.read_bytes()[:-100])
    done = ended(run, "recheck", "latest", captured=capsys)

    assert 3 == done.code
    assert "the evidence is not whole:\n  ledger-orders.parquet: " in done.err


def test_recheck_of_a_run_that_the_harness_failed_in_says_so_and_is_exit_code_3(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    record(run, clean(run), failure="no room left", verdict=Verdict.UNKNOWN, exit_code=3)
    done = ended(run, "recheck", "latest", captured=capsys)

    assert 3 == done.code
    assert "carried over from the run: the harness failed: no room left" in done.out


@pytest.mark.parametrize("reference", [(), (RUN,)])
def test_prove_shows_what_caught_each_defect_and_ends_with_the_count(
    capsys: pytest.CaptureFixture[str], run: Path, reference: tuple[str, ...]
) -> None:
    done = ended(run, "prove", *reference, "--only", "run-*", captured=capsys)

    assert 0 == done.code, done.err
    for word in ("run-interrupted", "Somebody stopped the run", "UNKNOWN", "completeness"):
        assert word in done.out
    assert f"proof: {(run / 'prove.md').as_uri()}" in done.out
    assert (run / "prove.json").is_file()
    assert "caught 2 of 2, false alarms 0 of 1" == last_line(done.out)


def test_prove_ends_with_1_where_nothing_could_be_planted(
    capsys: pytest.CaptureFixture[str], run: Path
) -> None:
    done = ended(run, "prove", "--only", "bulk-update-missed", captured=capsys)

    assert 1 == done.code
    assert "not applicable" in done.out
    assert "caught 0 of 0, false alarms 0 of 1" == last_line(done.out)


def test_prove_refuses_a_run_that_is_not_valid(capsys: pytest.CaptureFixture[str], run: Path) -> None:
    record(run, replace(clean(run), interrupted="Ctrl-C"))
    done = ended(run, "prove", captured=capsys)

    assert 3 == done.code
    assert "recorded UNKNOWN, judged again UNKNOWN; expected VALID both times" in done.err
    assert not (run / "prove.json").exists()


def test_prove_lists_the_defects_and_what_must_catch_them(capsys: pytest.CaptureFixture[str]) -> None:
    done = Ended("prove", "--list", captured=capsys)

    assert 0 == done.code, done.err
    assert "| `run-interrupted` | Somebody stopped the run | UNKNOWN | `completeness` |" in done.out


def test_bundle_writes_one_file_beside_the_run_and_it_can_be_judged_again(
    capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
    done = ended(run, "bundle", "latest", captured=capsys)
    file = run.parent / f"{RUN}.tar.gz"
    with tarfile.open(file) as tar:
        tar.extractall(tmp_path / "elsewhere", filter="data")
    again = Ended("recheck", str(tmp_path / "elsewhere" / RUN), captured=capsys)

    assert [0, 0] == [done.code, again.code], done.err + again.err
    assert "missing in the run: report.html" in done.out
    assert str(file) in last_line(done.out)
    assert "0 files left out" in last_line(done.out)


def test_bundle_names_what_it_left_out_and_such_a_bundle_is_not_judged_valid(
    capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
    to = tmp_path / "small.tar.gz"
    ended(run, "bundle", RUN, "--to", str(to), captured=capsys)
    smaller_mb = to.stat().st_size * 0.9 / 1e6
    done = ended(run, "bundle", RUN, "--to", str(to), "--max-mb", str(smaller_mb), captured=capsys)
    with tarfile.open(to) as tar:
        tar.extractall(tmp_path / "elsewhere", filter="data")
    again = Ended("recheck", str(tmp_path / "elsewhere" / RUN), captured=capsys)
    listed = json.loads((tmp_path / "elsewhere" / RUN / "MANIFEST.json").read_text())["left_out"]

    assert [0, 3] == [done.code, again.code]
    assert listed
    assert all(f"left out: {item['name']}" in done.out for item in listed)


def test_bundle_into_a_folder_that_is_not_there_is_refused(
    capsys: pytest.CaptureFixture[str], run: Path, tmp_path: Path
) -> None:
    done = ended(run, "bundle", RUN, "--to", str(tmp_path / "gone" / "b.tar.gz"), captured=capsys)

    assert 3 == done.code
    assert "there is no folder" in done.err
