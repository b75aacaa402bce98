"""Flink's REST API: the cluster, and one job as `ports.Job`.

Source: Flink 1.20 docs, "REST API" (paths under /v1). Times are epoch milliseconds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import requests

from harness.errors import FlinkError, FlinkUnreachable, JobEnded
from harness.model import (
    Address,
    CheckpointCounts,
    CheckpointRecord,
    JobFailure,
    JobHistory,
    Restore,
    TaskPlace,
)
from harness.ports import Job

ENDED = frozenset({"FINISHED", "FAILED", "CANCELED", "SUSPENDED"})


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """What a Flink cluster says of itself."""

    version: str
    taskmanagers: tuple[str, ...]
    slots: int


class FlinkRest:
    """A client of one JobManager; asks for its address at each call, since a restart may change it."""

    def __init__(self, address: Callable[[], Address], *, session: requests.Session | None = None) -> None:
        self._address = address
        self._session = session or requests.Session()

    def get(self, path: str, *, timeout_s: float = 10) -> Any:
        """The parsed JSON of GET /v1<path>. Raises FlinkError with Flink's own message."""
        url = f"http://{self._address()}/v1{path}"
        try:
            answer = self._session.get(url, timeout=timeout_s)
        except requests.RequestException as error:
            raise FlinkUnreachable(f"GET {path}: the JobManager does not answer: {error}") from error
        if not answer.ok:
            raise FlinkError(f"GET {path}: status {answer.status_code}: {_message(answer)}")
        try:
            return answer.json()
        except ValueError as error:
            raise FlinkError(f"GET {path}: not JSON: {answer.text[:200]!r}") from error

    def cluster(self) -> Cluster:
        """Version, the host names of the registered TaskManagers, and all slots."""
        overview = self.get("/overview")
        managers = self.get("/taskmanagers")["taskmanagers"]
        return Cluster(
            version=overview["flink-version"],
            taskmanagers=tuple(sorted(host_of(manager["id"]) for manager in managers)),
            slots=overview["slots-total"],
        )


def every_task_runs(job: Job) -> bool:
    """Whether every task of the job runs; raises JobEnded when it never will again. To be awaited."""
    job.raise_if_ended()
    return job.all_running()


def host_of(taskmanager_id: str) -> str:
    """The host name in a TaskManager id: `taskmanager-1:36041-3ae237` → `taskmanager-1`."""
    return taskmanager_id.partition(":")[0]


class RestJob:
    """One job, as the REST API shows it. Implements `ports.Job`."""

    def __init__(self, rest: FlinkRest, job_id: str) -> None:
        self._rest = rest
        self._job_id = job_id

    @property
    def job_id(self) -> str:
        return self._job_id

    def _get(self, path: str) -> Any:
        return self._rest.get(f"/jobs/{self._job_id}{path}")

    def state(self) -> str:
        """RUNNING, RESTARTING, FAILED, … as Flink names them."""
        return str(self._get("")["state"])

    def raise_if_ended(self) -> None:
        """Raise JobEnded, with Flink's root exception, when the job is in a terminal state."""
        state = self.state()
        if state in ENDED:
            root = str(self._get("/exceptions").get("root-exception") or "no exception recorded")
            raise JobEnded(f"job {self._job_id} is {state}:\n{_shortened(root)}", state=state)

    def restarts(self) -> int:
        """Restarts since the job was submitted (metric numRestarts); 0 while it isn't reported yet."""
        values = {entry["id"]: entry["value"] for entry in self._get("/metrics?get=numRestarts")}
        return int(values.get("numRestarts", 0))

    def places(self) -> tuple[TaskPlace, ...]:
        """Where each subtask runs; a subtask that has no place yet is left out."""
        places = []
        for vertex in self._get("")["vertices"]:
            for subtask in self._get(f"/vertices/{vertex['id']}")["subtasks"]:
                host = host_of(str(subtask.get("taskmanager-id") or ""))
                if host and not host.startswith("("):  # "(unassigned)" while it is scheduled
                    places.append(
                        TaskPlace(vertex=vertex["name"], subtask=int(subtask["subtask"]), taskmanager=host)
                    )
        return tuple(places)

    def all_running(self) -> bool:
        job = self._get("")
        tasks = [vertex["tasks"] for vertex in job["vertices"]]
        wanted = [vertex["parallelism"] for vertex in job["vertices"]]
        return job["state"] == "RUNNING" and bool(tasks) and [t["RUNNING"] for t in tasks] == wanted

    def counts(self) -> CheckpointCounts:
        counts = self._get("/checkpoints")["counts"]
        return CheckpointCounts(
            completed=counts["completed"],
            failed=counts["failed"],
            in_progress=counts["in_progress"],
            restored=counts["restored"],
        )

    def last_restore(self) -> Restore | None:
        restored = self._get("/checkpoints")["latest"]["restored"]
        if restored is None:
            return None
        return Restore(
            checkpoint_id=restored["id"],
            at_ms=restored["restore_timestamp"],
            is_savepoint=restored["is_savepoint"],
            path=restored.get("external_path") or "",
        )

    def checkpoint_config(self) -> Mapping[str, object]:
        """The checkpoint configuration in force, as /checkpoints/config gives it."""
        config: Mapping[str, object] = self._get("/checkpoints/config")
        return config

    def history(self, *, restart_attempts: int) -> JobHistory:
        """Everything an oracle needs to know of the job, at this moment."""
        job = self._get("")
        checkpoints = self._get("/checkpoints")
        exceptions = self._get("/exceptions?maxExceptions=50")["exceptionHistory"]["entries"]
        return JobHistory(
            job_id=self._job_id,
            name=job["name"],
            state=job["state"],
            restarts=self.restarts(),
            restart_attempts=restart_attempts,
            counts=self.counts(),
            checkpoints=tuple(_record(entry) for entry in reversed(checkpoints["history"])),
            failures=tuple(
                JobFailure(
                    at_ms=entry["timestamp"],
                    exception=_shortened(str(entry.get("stacktrace") or entry["exceptionName"])),
                    taskmanager=host_of(str(entry.get("taskManagerId") or entry.get("endpoint") or "")),
                )
                for entry in reversed(exceptions)
            ),
        )


def _record(entry: Mapping[str, Any]) -> CheckpointRecord:
    return CheckpointRecord(
        checkpoint_id=entry["id"],
        status=entry["status"],
        triggered_at_ms=entry["trigger_timestamp"],
        duration_ms=entry["end_to_end_duration"],
        state_size_bytes=entry["state_size"],
        is_savepoint=entry["is_savepoint"],
    )


def _message(answer: requests.Response) -> str:
    try:
        return _shortened("\n".join(answer.json()["errors"]))
    except (ValueError, KeyError, TypeError):
        return answer.text[:500]


def _shortened(stacktrace: str) -> str:
    """The exception and its causes, without the frames."""
    lines = [line.strip() for line in stacktrace.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("at ", "..."))]
    return "\n".join(line[:300] for line in kept[:6])
