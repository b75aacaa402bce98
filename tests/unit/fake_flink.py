"""What Flink's REST API answers of one job, as JSON; a test changes what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fake_http import ADDRESS, FakeHttp, Series

from harness.flink.rest import FlinkRest

JOB = "0afc1e62f3d9d1b7a8a4e6c0d5b9f123"
PATH = f"/v1/jobs/{JOB}"
CPU = "metrics?get=Status.JVM.CPU.Time"


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


def fetches(count: int = 30) -> Series:
    """A process's CPU time, newer at each look."""
    return Series(*([{"id": "Status.JVM.CPU.Time", "value": str(number)}] for number in range(count)))


def answers_of(job_id: str = JOB, **changed: Any) -> dict[str, Any]:
    """The answers to `METHOD path`; `changed` by the path below the job's."""
    path = f"GET /v1/jobs/{job_id}"
    known: dict[str, Any] = {
        path: job(),
        f"{path}/checkpoints": CHECKPOINTS,
        f"{path}/exceptions": EXCEPTIONS,
        f"{path}/exceptions?maxExceptions=50": EXCEPTIONS,
        **{
            path + "/vertices/" + found["id"].replace(" ", "%20"): {"subtasks": [{"attempt": 3}]}
            for found in job()["vertices"]
        },
        f"POST /v1/jobs/{job_id}/stop": {"request-id": "t1"},
    }
    return known | {f"{path}{below}": value for below, value in changed.items()}


def client(answers: Mapping[str, Any] | FakeHttp) -> FlinkRest:
    transport = answers if isinstance(answers, FakeHttp) else FakeHttp(answers)
    return FlinkRest(lambda: ADDRESS, session=transport.session())
