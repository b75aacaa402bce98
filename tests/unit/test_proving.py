"""The proof that oracles can fail: every planted defect is caught by name, and nothing undamaged is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import provable_folders
import pytest
from recorded_runs import record

from harness import evidence as evidence_files
from harness import oracles, proving
from harness.defects import DEFECTS
from harness.defects.control import written_anew
from harness.defects.defect import invalid, unknown
from harness.defects.rows import row_lost
from harness.defects.runs import fence_missing
from harness.errors import UsageError
from harness.model import Verdict
from harness.proving import Score, Trial, prove


def recorded(folder: Path, **changes: object) -> Path:
    """The folder of a VALID run that has a place for every defect, with some of its evidence changed."""
    (folder / "evidence").mkdir(parents=True)
    evidence = provable_folders.evidence(folder / "evidence")
    record(folder, replace(evidence, **{"oracles": tuple(oracles.ORACLES), **changes}))  # type: ignore[arg-type]
    return folder


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A VALID run; tests don't change it."""
    return recorded(tmp_path_factory.mktemp("runs") / "run")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A VALID run that asks three oracles only, since a test has no time to lose."""
    few = ("completeness", "reconciliation", "liveness")
    return recorded(tmp_path_factory.mktemp("runs") / "run", oracles=few)


@pytest.fixture(scope="module")
def score(run: Path) -> Score:
    """All defects, each judged by the oracles that must catch it."""
    return prove(run)


def trial(score: Score, name: str) -> Trial:
    return next(trial for trial in score.trials if trial.defect == name)


@pytest.mark.parametrize("name", DEFECTS)
def test_a_planted_defect_is_caught_by_each_oracle_that_must(score: Score, name: str) -> None:
    tried = trial(score, name)

    assert "" == tried.not_applicable
    assert tried.caught, (tried.verdict, tried.alarms)


def test_evidence_that_is_written_anew_without_a_defect_raises_no_alarm(score: Score) -> None:
    assert () == score.false_alarms


def test_every_oracle_is_proven_able_to_fail() -> None:
    assert set(oracles.ORACLES) == {name for defect in DEFECTS.values() for name in defect.caught_by}


def test_a_defect_that_only_the_history_shows_is_caught_by_no_oracle_of_fences(run: Path) -> None:
    (tried,) = prove(run, only="row-deleted-and-put-back", every_oracle=True).trials
    said = {alarm.oracle for alarm in tried.alarms}

    assert "snapshot_prefix" in said
    assert said.isdisjoint({"reconciliation", "time_travel"})


def test_the_same_seed_plants_the_same_whatever_else_is_planted(small: Path) -> None:
    alone = prove(small, seed=3, only="row-stale")
    among = prove(small, seed=3, only="row-*")
    again = trial(among, "row-stale")

    assert 1 == len(alone.trials) < len(among.trials)
    assert replace(again, seconds=alone.trials[0].seconds) == alone.trials[0]


def test_only_oracles_that_must_catch_a_defect_are_asked_unless_told_otherwise(small: Path) -> None:
    defects = {"fence-missing": unknown(fence_missing, "completeness")}
    few, all_of_them = (
        {alarm.oracle for alarm in prove(small, defects=defects, every_oracle=every).trials[0].alarms}
        for every in (False, True)
    )

    assert ({"completeness"}, {"completeness", "reconciliation"}) == (few, all_of_them)


def test_a_defect_that_the_oracle_does_not_see_is_missed(small: Path) -> None:
    blind = {"harmless": invalid(written_anew, "reconciliation")}
    score = prove(small, defects=blind)

    assert not score.holds
    assert "caught 0 of 1, false alarms 0 of 1" == str(score)
    assert "MISSED: VALID" == proving.cells(score.trials[0])[3]


def test_the_wrong_word_is_not_a_catch(small: Path) -> None:
    score = prove(small, defects={"row-lost": unknown(row_lost, "reconciliation")})

    assert [Verdict.INVALID] == [trial.verdict for trial in score.missed]


def test_an_oracle_that_must_catch_a_defect_and_does_not_is_a_miss_although_another_one_does(
    small: Path,
) -> None:
    score = prove(small, defects={"row-lost": invalid(row_lost, "reconciliation", "liveness")})

    assert "reconciliation; not by liveness" == proving.cells(score.missed[0])[4]


def test_an_alarm_at_undamaged_evidence_is_a_false_one(small: Path) -> None:
    score = prove(small, only="row-lost", control=row_lost)

    assert ["reconciliation"] == [alarm.oracle for alarm in score.false_alarms]
    assert "caught 1 of 1, false alarms 1 of 1" == str(score)
    assert not score.holds


def test_a_defect_without_a_place_is_not_counted_as_caught(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run", bulks=(), oracles=("completeness", "fault_effect"))
    names = ("bulk-update-missed", "row-lost", "fault-proof-missing")
    score = prove(folder, defects={name: DEFECTS[name] for name in names})

    assert [
        "the run has no bulk update",
        "the run asks for none of reconciliation, time_travel, snapshot_prefix",
        "",
    ] == [trial.not_applicable for trial in score.trials]
    assert "caught 1 of 1, false alarms 0 of 1" == str(score)


def test_where_nothing_could_be_planted_nothing_is_proven(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run", bulks=(), oracles=("completeness", "fault_effect"))
    score = prove(folder, only="bulk-update-missed")

    assert "caught 0 of 0, false alarms 0 of 1" == str(score)
    assert not score.holds


def test_a_run_that_is_not_valid_is_refused(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run", interrupted="Ctrl-C", oracles=("completeness",))

    with pytest.raises(UsageError, match="recorded UNKNOWN, judged again UNKNOWN; expected VALID both times"):
        prove(folder)


def test_a_run_that_is_not_judged_valid_any_more_is_refused(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "run", oracles=("completeness", "source_truth"))
    evidence = evidence_files.load(folder / "evidence")
    evidence_files.save(replace(evidence, binlogs=()), folder / "evidence")

    with pytest.raises(UsageError, match="recorded VALID, judged again UNKNOWN"):
        prove(folder)


def test_a_name_that_no_defect_has_is_refused_and_the_nearest_is_named(small: Path) -> None:
    with pytest.raises(UsageError, match="no defect has a name like 'row-losst', did you mean 'row-lost'"):
        prove(small, only="row-losst")


def test_the_score_is_kept_beside_the_run_for_machines_and_for_people(small: Path) -> None:
    score = prove(small, only="row-l*")
    proving.save(score, small)
    kept = json.loads((small / "prove.json").read_text())
    page = (small / "prove.md").read_text()

    assert ["row-lost"] == [trial["defect"] for trial in kept["trials"]]
    assert "INVALID" == kept["trials"][0]["verdict"]
    assert "of all defects those named row-l*; " in page
    assert "caught 1 of 1, false alarms 0 of 1." in page
    assert "| row-lost | An inserted row never reaches the sink | INVALID | INVALID | reconciliation" in page


def test_whoever_waits_is_told_what_is_planted(small: Path) -> None:
    told = list[tuple[str, int, int]]()
    prove(small, only="row-lost", tell=lambda what, done, total: told.append((what, done, total)))

    assert [("nothing", 0, 2), ("row-lost", 1, 2)] == told
