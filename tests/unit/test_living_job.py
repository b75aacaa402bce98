"""A job's lives: each begins with a submission, and what it was is kept when the next one begins."""

from __future__ import annotations

from typing import Any

import pytest
from fake_flink import CHECKPOINTS, answers_of, client, job
from fake_http import Series

from harness.errors import FlinkError, JobEnded, SqlError
from harness.flink.living_job import LivingJob
from harness.flink.rest_job import RestJob
from harness.model import JobMoment

SAVED = {"status": {"id": "COMPLETED"}, "operation": {"location": "s3://savepoints/savepoint-a"}}


class Submissions:
    """Starts one planned job after another, and notes from which paths."""

    def __init__(self, *lives: dict[str, Any]) -> None:
        self.paths: list[str] = []
        self._jobs = [
            RestJob(client(answers_of(f"life{number}", **life)), f"life{number}", program="jobs/a/job.py")
            for number, life in enumerate(lives, start=1)
        ]

    def __call__(self, path: str) -> RestJob:
        self.paths.append(path)
        return self._jobs.pop(0)


def living(submissions: Submissions, *, ready_s: float = 5) -> LivingJob:
    return LivingJob("orders", submit=submissions, savepoints="s3://savepoints", ready_s=ready_s)


def stopped_later() -> dict[str, Any]:
    """A life that is asked for its state twice while it starts, and is FINISHED once it was stopped."""
    return {"": Series(job(), job(), job("FINISHED")), "/savepoints/t1": SAVED}


def test_the_first_life_begins_from_nothing() -> None:
    submissions = Submissions({})
    found = living(submissions)
    found.start_from("", why="")

    assert [""] == submissions.paths
    assert ("orders", "life1") == (found.name, found.job_id)


def test_a_life_before_the_first_submission_is_an_error() -> None:
    with pytest.raises(FlinkError, match="job orders was not submitted"):
        living(Submissions()).state()


def test_a_stopped_job_lives_again_from_its_savepoint_with_another_id() -> None:
    submissions = Submissions(stopped_later(), {})
    found = living(submissions)
    found.start_from("", why="")
    path = found.stop_with_savepoint(timeout_s=5)
    found.start_from(path, why="a restart on purpose")

    assert ["", "s3://savepoints/savepoint-a"] == submissions.paths
    assert "life2" == found.job_id


def test_each_life_keeps_its_history_with_how_it_began_and_why_it_ended() -> None:
    found = living(Submissions(stopped_later(), {}))
    found.start_from("", why="")
    found.start_from(found.stop_with_savepoint(timeout_s=5), why="a restart on purpose")
    first, second = found.histories(restart_attempts=20)

    assert ("orders", 1, "life1", "", "a restart on purpose", "FINISHED") == (
        first.name,
        first.life,
        first.job_id,
        first.restored_from,
        first.ended_by,
        first.state,
    )
    assert ("orders", 2, "life2", "s3://savepoints/savepoint-a", "", "RUNNING") == (
        second.name,
        second.life,
        second.job_id,
        second.restored_from,
        second.ended_by,
        second.state,
    )
    assert [20, 20] == [first.restart_attempts, second.restart_attempts]


def test_the_moment_counts_the_lives() -> None:
    deploying = {"/vertices/id-Source:%20orders": {"subtasks": [{"subtask": 0, "status": "DEPLOYING"}]}}
    found = living(Submissions(stopped_later(), deploying))
    found.start_from("", why="")
    found.start_from(found.stop_with_savepoint(timeout_s=5), why="a restart on purpose")

    assert JobMoment(life=2, restarts=3, source_records=-1) == found.moment()


def test_a_life_does_not_begin_while_the_one_before_is_on() -> None:
    submissions = Submissions({}, {})
    found = living(submissions)
    found.start_from("", why="")

    with pytest.raises(FlinkError, match="expected an ended life before another, actual RUNNING"):
        found.start_from("s3://x", why="too early")
    assert [""] == submissions.paths


def test_a_job_that_failed_lives_again_from_its_retained_checkpoint() -> None:
    path = "s3://checkpoints/chk-9"
    latest = {"latest": {"completed": {"external_path": path}, "restored": None}}
    failed = {"": Series(job(), job(), job("FAILED")), "/checkpoints": CHECKPOINTS | latest}
    submissions = Submissions(failed, {})
    found = living(submissions)
    found.start_from("", why="")
    found.start_from(found.retained_checkpoint(), why="its attempts were spent")

    assert ["", path] == submissions.paths
    assert "FAILED" == found.histories(restart_attempts=3)[0].state


def test_a_job_that_ends_before_its_tasks_run_is_told_with_its_program_and_exception() -> None:
    with pytest.raises(JobEnded, match=r"^jobs/a/job\.py: job life1 is FAILED:\n.*\n.*disk full"):
        living(Submissions({"": job("FAILED")})).start_from("", why="")


def test_a_job_whose_tasks_do_not_run_in_time_is_told_with_its_program_and_last_failure() -> None:
    expected = r"jobs/a/job\.py: job life1 does not get to run: waited .*; its last failure:\n.*\n.*disk full"
    with pytest.raises(FlinkError, match=expected):
        living(Submissions({"": job("RESTARTING")}), ready_s=0.3).start_from("", why="")


def test_a_life_that_could_not_be_submitted_leaves_the_past_as_it_was() -> None:
    def refuse(path: str) -> RestJob:
        if path:
            raise SqlError("jobs/a/job.py:3: no such table")
        return first("")

    first = Submissions(stopped_later())
    found = LivingJob("orders", submit=refuse, savepoints="s3://savepoints")
    found.start_from("", why="")
    with pytest.raises(SqlError, match="no such table"):
        found.start_from(found.stop_with_savepoint(timeout_s=5), why="a restart on purpose")

    assert ["a restart on purpose"] == [life.ended_by for life in found.histories(restart_attempts=3)]
