"""Flink's REST API: its answers become the harness's words, and its errors say what Flink said."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from fake_http import ADDRESS, FakeHttp, answer

from harness.errors import FlinkError, FlinkUnreachable, JobEnded
from harness.flink.rest import FlinkRest, RestJob, host_of
from harness.model import CheckpointCounts, Restore, TaskPlace

JOB = "0afc1e62f3d9d1b7a8a4e6c0d5b9f123"
PATH = f"GET /v1/jobs/{JOB}"


def vertex(name: str, *, running: int, parallelism: int = 2) -> dict[str, Any]:
    return {
        "id": f"id-{name}",
        "name": name,
        "maxParallelism": 128,
        "parallelism": parallelism,
        "status": "RUNNING",
        "tasks": {"CREATED": parallelism - running, "RUNNING": running, "FINISHED": 0, "FAILED": 0},
    }


def job(state: str = "RUNNING", *, running: int = 2) -> dict[str, Any]:
    return {
        "jid": JOB,
        "name": "orders",
        "state": state,
        "vertices": [vertex("Source: orders", running=2), vertex("Writer : dwd", running=running)],
    }


def checkpoint(number: int, status: str = "COMPLETED") -> dict[str, Any]:
    return {
        "className": "completed",
        "id": number,
        "status": status,
        "is_savepoint": False,
        "trigger_timestamp": 1783332900000 + number,
        "latest_ack_timestamp": 1783332900100 + number,
        "state_size": 9000,
        "end_to_end_duration": 40,
    }


CHECKPOINTS: dict[str, Any] = {
    "counts": {"restored": 1, "total": 9, "in_progress": 0, "completed": 8, "failed": 1},
    "latest": {
        "completed": checkpoint(9),
        "restored": {
            "id": 5,
            "restore_timestamp": 1783332955000,
            "is_savepoint": False,
            "external_path": "s3://checkpoints/5",
        },
    },
    "history": [checkpoint(9), checkpoint(8, "FAILED"), checkpoint(7)],
}
STACK = (
    "org.apache.flink.runtime.JobException: Recovery is suppressed\n"
    "\tat org.apache.flink.runtime.Some.frame(Some.java:12)\n"
    "\t... 4 more\n"
    "Caused by: java.lang.IllegalStateException: disk full\n"
    "\tat java.base/Other.frame(Other.java:9)\n"
)
EXCEPTIONS: dict[str, Any] = {
    "root-exception": STACK,
    "timestamp": 1783332950000,
    "exceptionHistory": {
        "entries": [
            {
                "exceptionName": "org.apache.flink.util.FlinkException",
                "stacktrace": STACK,
                "timestamp": 1783332990000,
                "taskName": "Writer",
                "endpoint": "taskmanager-2:39001",
                "taskManagerId": "taskmanager-2:39001-aa11",
            },
            {
                "exceptionName": "HeartbeatTimeout",
                "stacktrace": "",
                "timestamp": 1783332950000,
                "taskManagerId": None,
                "endpoint": None,
            },
        ],
        "truncated": False,
    },
}


def rest(answers: dict[str, Any]) -> FlinkRest:
    return FlinkRest(lambda: ADDRESS, session=FakeHttp(answers).session())


def running_job(**answers: Any) -> RestJob:
    known: dict[str, Any] = {
        PATH: job(),
        f"{PATH}/checkpoints": CHECKPOINTS,
        f"{PATH}/exceptions": EXCEPTIONS,
        f"{PATH}/exceptions?maxExceptions=50": EXCEPTIONS,
        f"{PATH}/metrics?get=numRestarts": [{"id": "numRestarts", "value": "3"}],
    }
    return RestJob(rest(known | {f"{PATH}{path}": value for path, value in answers.items()}), JOB)


def subtasks(*hosts: str) -> dict[str, Any]:
    return {"subtasks": [{"subtask": number, "taskmanager-id": host} for number, host in enumerate(hosts)]}


def test_the_cluster_names_its_version_its_workers_and_its_slots() -> None:
    cluster = rest(
        {
            "GET /v1/overview": {"flink-version": "1.20.3", "taskmanagers": 2, "slots-total": 4},
            "GET /v1/taskmanagers": {
                "taskmanagers": [{"id": "taskmanager-2:39001-aa11"}, {"id": "taskmanager-1:36041-3ae237"}]
            },
        }
    ).cluster()

    assert ("1.20.3", ("taskmanager-1", "taskmanager-2"), 4) == (
        cluster.version,
        cluster.taskmanagers,
        cluster.slots,
    )


def test_the_host_of_a_worker_is_what_its_id_begins_with() -> None:
    assert "taskmanager-1" == host_of("taskmanager-1:36041-3ae237")


def test_subtasks_without_a_place_are_left_out() -> None:
    found = running_job(
        **{
            "/vertices/id-Source: orders".replace(" ", "%20"): subtasks("taskmanager-1:1-a", "(unassigned)"),
            "/vertices/id-Writer : dwd".replace(" ", "%20"): {"subtasks": [{"subtask": 0}]},
        }
    ).places()

    assert (TaskPlace(vertex="Source: orders", subtask=0, taskmanager="taskmanager-1"),) == found


@pytest.mark.parametrize(
    ("metrics", "restarts"),
    [([], 0), ([{"id": "numRestarts", "value": "3"}], 3), ([{"id": "other", "value": "9"}], 0)],
)
def test_restarts_are_none_while_they_are_not_reported_yet(metrics: list[Any], restarts: int) -> None:
    assert restarts == running_job(**{"/metrics?get=numRestarts": metrics}).restarts()


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
        f"job {JOB} is {state}:\norg.apache.flink.runtime.JobException: Recovery is suppressed\n"
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
    history = running_job().history(restart_attempts=20)

    assert (JOB, "orders", "RUNNING", 3, 20) == (
        history.job_id,
        history.name,
        history.state,
        history.restarts,
        history.restart_attempts,
    )
    assert [(7, "COMPLETED"), (8, "FAILED"), (9, "COMPLETED")] == [
        (record.checkpoint_id, record.status) for record in history.checkpoints
    ]
    assert [("HeartbeatTimeout", ""), ("taskmanager-2",)] == [
        (history.failures[0].exception, history.failures[0].taskmanager),
        (history.failures[1].taskmanager,),
    ]
    assert "at " not in history.failures[1].exception


def test_an_error_of_flink_is_told_with_its_status_and_message() -> None:
    with pytest.raises(FlinkError) as caught:
        rest({}).get("/jobs/unknown")

    assert "GET /jobs/unknown: status 404: Not found: /v1/jobs/unknown" == caught.value.what
    assert not isinstance(caught.value, FlinkUnreachable)


def test_an_error_that_is_not_flinks_is_told_as_it_came() -> None:
    with pytest.raises(FlinkError, match="status 502: <html>bad gateway"):
        rest({"GET /v1/overview": answer(502, "<html>bad gateway</html>")}).get("/overview")


def test_an_answer_that_is_not_json_is_told() -> None:
    with pytest.raises(FlinkError, match="GET /overview: not JSON: '<html>'"):
        rest({"GET /v1/overview": answer(200, "<html>")}).get("/overview")


@pytest.mark.parametrize("error", [requests.ConnectionError("refused"), requests.ReadTimeout("slow")])
def test_no_answer_at_all_is_unreachable(error: Exception) -> None:
    with pytest.raises(FlinkUnreachable, match="the JobManager does not answer"):
        rest({"GET /v1/overview": error}).get("/overview")


def test_the_address_is_asked_for_at_each_call() -> None:
    asked = []

    def address() -> Any:
        asked.append(1)
        return ADDRESS

    client = FlinkRest(address, session=FakeHttp({"GET /v1/config": {}}).session())
    client.get("/config")
    client.get("/config")

    assert 2 == len(asked)
