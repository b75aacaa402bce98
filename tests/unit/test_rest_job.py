"""One life of a job: what Flink's REST API says of it, and how it is stopped with a savepoint."""

from __future__ import annotations

from typing import Any

import pytest
from fake_flink import CHECKPOINTS, JOB, PATH, STACK, answers_of, checkpoint, client, job
from fake_http import FakeHttp, Series, answer

from harness.errors import FlinkError, JobEnded, WaitTimeout
from harness.flink.rest_job import RestJob
from harness.model import CheckpointCounts, Restore, TaskPlace

IN_PROGRESS = {"status": {"id": "IN_PROGRESS"}}


def running_job(**changed: Any) -> RestJob:
    return RestJob(client(answers_of(**changed)), JOB, program="jobs/orders/job.sql:52")


def stopping(savepoint: Any, *, states: tuple[str, ...] = ("RUNNING", "FINISHED"), **changed: Any) -> RestJob:
    """A job that takes a savepoint when it is asked to stop, and goes through `states` then."""
    return running_job(
        **{"/savepoints/t1": savepoint, "": Series(*(job(state) for state in states)), **changed}
    )


def subtasks(*hosts: str) -> dict[str, Any]:
    return {"subtasks": [{"subtask": number, "taskmanager-id": host} for number, host in enumerate(hosts)]}


def test_subtasks_without_a_place_are_left_out() -> None:
    found = running_job(
        **{
            "/vertices/id-Source: orders".replace(" ", "%20"): subtasks("taskmanager-1:1-a", "(unassigned)"),
            "/vertices/id-Writer : dwd".replace(" ", "%20"): {"subtasks": [{"subtask": 0}]},
        }
    ).places()

    assert (TaskPlace(vertex="Source: orders", subtask=0, taskmanager="taskmanager-1"),) == found


def attempts(*numbers: int) -> dict[str, Any]:
    return {"subtasks": [{"subtask": index, "attempt": number} for index, number in enumerate(numbers)]}


@pytest.mark.parametrize(
    ("source", "writer", "restarts"), [((0, 0), (0,), 0), ((2, 2), (2,), 2), ((1, 2), (1,), 2), ((), (), 0)]
)
def test_restarts_are_the_most_attempts_of_any_task(
    source: tuple[int, ...], writer: tuple[int, ...], restarts: int
) -> None:
    found = running_job(
        **{
            "/vertices/id-Source:%20orders": attempts(*source),
            "/vertices/id-Writer%20:%20dwd": attempts(*writer),
        }
    )

    assert restarts == found.restarts()


@pytest.mark.parametrize(
    ("answer_of_job", "all_running"),
    [
        (job(), True),
        (job(running=1), False),
        (job("RESTARTING"), False),
        (job() | {"vertices": []}, False),
    ],
    ids=["all", "one not", "restarting", "no task at all"],
)
def test_all_runs_when_the_job_and_each_of_its_tasks_does(
    answer_of_job: dict[str, Any], all_running: bool
) -> None:
    assert all_running == running_job(**{"": answer_of_job}).all_running()


@pytest.mark.parametrize("state", ["RUNNING", "RESTARTING", "FAILING", "CREATED"])
def test_a_job_that_is_not_at_its_end_raises_nothing(state: str) -> None:
    running_job(**{"": job(state)}).raise_if_ended()


@pytest.mark.parametrize("state", ["FAILED", "FINISHED", "CANCELED", "SUSPENDED"])
def test_a_job_that_ended_is_told_with_its_root_exception_and_no_frames(state: str) -> None:
    with pytest.raises(JobEnded) as caught:
        running_job(**{"": job(state)}).raise_if_ended()

    assert state == caught.value.state
    assert (
        f"jobs/orders/job.sql:52: job {JOB} is {state}:\n"
        "org.apache.flink.runtime.JobException: Recovery is suppressed\n"
        "Caused by: java.lang.IllegalStateException: disk full"
    ) == caught.value.what


def test_a_job_that_ended_without_an_exception_says_so() -> None:
    with pytest.raises(JobEnded, match="no exception recorded"):
        running_job(**{"": job("FINISHED"), "/exceptions": {"root-exception": None}}).raise_if_ended()


def test_counts_and_restore_are_read() -> None:
    found = running_job()

    assert CheckpointCounts(completed=8, failed=1, in_progress=0, restored=1) == found.counts()
    expected = Restore(checkpoint_id=5, at_ms=1783332955000, is_savepoint=False, path="s3://checkpoints/5")
    assert expected == found.last_restore()


def test_a_job_that_was_never_restored_has_no_restore() -> None:
    fresh = CHECKPOINTS | {"latest": {"completed": None, "restored": None}}

    assert None is running_job(**{"/checkpoints": fresh}).last_restore()


def test_the_history_goes_from_old_to_new() -> None:
    history = running_job().history(
        name="orders", life=2, restored_from="s3://sp", ended_by="a fault", restart_attempts=20
    )

    assert (JOB, "orders", 2, "s3://sp", "a fault") == (
        history.job_id,
        history.name,
        history.life,
        history.restored_from,
        history.ended_by,
    )
    assert ("RUNNING", 3, 20) == (history.state, history.restarts, history.restart_attempts)
    assert Restore(checkpoint_id=5, at_ms=1783332955000, is_savepoint=False, path="s3://checkpoints/5") == (
        history.last_restore
    )
    assert [(7, "COMPLETED"), (8, "FAILED"), (9, "COMPLETED")] == [
        (record.checkpoint_id, record.status) for record in history.checkpoints
    ]
    assert [("HeartbeatTimeout", ""), ("taskmanager-2",)] == [
        (history.failures[0].exception, history.failures[0].taskmanager),
        (history.failures[1].taskmanager,),
    ]
    assert "at " not in history.failures[1].exception


@pytest.mark.parametrize("state", ["RUNNING", "FAILED"])
def test_the_retained_checkpoint_is_the_last_completed_one(state: str) -> None:
    path = f"s3://flink/checkpoints/{JOB}/chk-9"
    latest = {"latest": {"completed": checkpoint(9) | {"external_path": path}, "restored": None}}

    assert path == running_job(**{"": job(state), "/checkpoints": CHECKPOINTS | latest}).retained_checkpoint()


@pytest.mark.parametrize("completed", [None, checkpoint(9)], ids=["none completed", "not retained"])
def test_without_a_retained_checkpoint_its_path_is_empty(completed: Any) -> None:
    latest = {"latest": {"completed": completed, "restored": None}}

    assert "" == running_job(**{"/checkpoints": CHECKPOINTS | latest}).retained_checkpoint()


SAVED = {"status": {"id": "COMPLETED"}, "operation": {"location": "s3://flink/savepoints/r1/savepoint-a"}}


def test_a_stop_asks_for_a_savepoint_in_the_directory_without_draining_and_returns_its_path() -> None:
    transport = FakeHttp(
        answers_of(
            **{
                "": Series(job(), job(), job("FINISHED")),
                "/savepoints/t1": Series(IN_PROGRESS, SAVED),
            }
        )
    )
    path = RestJob(client(transport), JOB).stop_with_savepoint("s3://flink/savepoints/r1", timeout_s=5)

    assert "s3://flink/savepoints/r1/savepoint-a" == path
    assert {"drain": False, "targetDirectory": "s3://flink/savepoints/r1"} in transport.bodies
    assert f"GET {PATH}" == transport.asked[-1]  # it waited for the job's end, too


def test_a_savepoint_that_fails_is_told_with_the_engines_causes() -> None:
    cause = {"class": "java.util.concurrent.CompletionException", "stack-trace": STACK}
    failed = {"status": {"id": "COMPLETED"}, "operation": {"failure-cause": cause}}

    with pytest.raises(FlinkError) as caught:
        stopping(failed).stop_with_savepoint("s3://sp", timeout_s=5)

    assert (
        f"jobs/orders/job.sql:52: job {JOB}: can't be stopped with a savepoint:\n"
        "org.apache.flink.runtime.JobException: Recovery is suppressed\n"
        "Caused by: java.lang.IllegalStateException: disk full"
    ) == caught.value.what


def test_a_job_that_does_not_finish_after_its_savepoint_is_told_with_its_state() -> None:
    with pytest.raises(
        JobEnded, match=r"is FAILED after its savepoint s3://\S+, expected FINISHED:\n.*suppressed"
    ):
        stopping(SAVED, states=("RUNNING", "FAILED")).stop_with_savepoint("s3://sp", timeout_s=5)


def test_a_savepoint_that_never_completes_is_waited_for_no_longer_than_asked() -> None:
    with pytest.raises(WaitTimeout, match=r"for a savepoint of jobs/orders/job\.sql:52"):
        stopping(IN_PROGRESS).stop_with_savepoint("s3://sp", timeout_s=0.3)


def test_a_cancelled_job_has_ended_when_that_returns() -> None:
    transport = FakeHttp(answers_of(**{"": Series(job(), job(), job("CANCELLING"), job("CANCELED"))}))
    transport.answers[f"PATCH {PATH}?mode=cancel"] = {}
    cancelled = RestJob(client(transport), JOB)
    cancelled.cancel(timeout_s=5)

    assert "CANCELED" == cancelled.state()
    assert 1 == transport.asked.count(f"PATCH {PATH}?mode=cancel")


def test_a_job_that_has_ended_is_not_cancelled_again() -> None:
    transport = FakeHttp(answers_of(**{"": job("FAILED")}))
    RestJob(client(transport), JOB).cancel(timeout_s=5)

    assert [f"GET {PATH}"] == transport.asked


def test_a_job_that_refuses_to_stop_is_told_with_flinks_message() -> None:
    transport = FakeHttp(answers_of())
    transport.answers[f"POST {PATH}/stop"] = answer(404, {"errors": ["Job could not be found"]})

    with pytest.raises(FlinkError, match="status 404: Job could not be found"):
        RestJob(client(transport), JOB).stop_with_savepoint("s3://sp", timeout_s=5)
