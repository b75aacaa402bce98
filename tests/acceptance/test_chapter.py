"""The guide's acceptance chapter on the real stack: both tables, three faults, both methods."""

from __future__ import annotations

import pytest

from harness.acceptance import Accepted
from harness.oracles import ORACLES
from harness.proving import prove
from harness.recheck import recheck

pytestmark = pytest.mark.docker


@pytest.mark.exactly_once(scenario="acceptance")
def test_the_whole_chapter_is_valid_and_would_not_have_been_with_any_planted_defect(
    accepted: Accepted,
) -> None:
    result, folder = accepted.result, accepted.folder

    faults = ["kill-taskmanager", "stop-with-savepoint", "cut-storage"]
    assert faults == [proof.fault for proof in result.faults]
    assert all(proof.bit for proof in result.faults)
    assert list(ORACLES) == [judged.oracle for judged in result.oracles]
    assert 2 * (len(faults) + 1) == len(result.fences) == len(result.travels)
    assert {"orders", "behavior-log"} == {job.name for job in result.jobs}
    assert {2} == {
        max(job.life for job in result.jobs if job.name == name) for name in ("orders", "behavior-log")
    }
    reports = {"report.html", "summary.md", "junit.xml", "result.json", "events.jsonl", "evidence", "logs"}
    assert reports <= {entry.name for entry in folder.iterdir()}
    again = recheck(folder)
    assert (True, 0) == (again.agrees, again.exit_code)
    score = prove(folder)
    assert ([], ()) == ([trial.defect for trial in score.missed], score.false_alarms)
    assert len(score.planted) > 70
