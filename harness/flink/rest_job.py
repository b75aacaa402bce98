"""One life of a job, as Flink's REST API shows it.

Source: Flink 1.20 docs, "REST API". Times are epoch milliseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.errors import FlinkError, JobEnded
from harness.flink import metrics
from harness.flink.rest import FlinkRest, causes, host_of
from harness.model import (
    CheckpointCounts,
    CheckpointRecord,
    JobFailure,
    JobHistory,
    Restore,
    TaskPlace,
)
from harness.waiting import wait_until

ENDED = frozenset({"FINISHED", "FAILED", "CANCELED", "SUSPENDED"})

RESTORE_FROM = "execution.savepoint.path"
"""The option that names the savepoint or retained checkpoint that a submission starts from."""


class RestJob:
    """A job from its submission to its end."""

    def __init__(self, rest: FlinkRest, job_id: str, *, program: str = "") -> None:
        """`program` is the file that the job was made from, and the line if known, for error messages."""
        self._rest = rest
        self._job_id = job_id
        self.title = f"{program}: job {job_id}" if program else f"job {job_id}"

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
            raise JobEnded(f"{self.title} is {state}:\n{self.root_exception()}", state=state)

    def root_exception(self) -> str:
        """The newest failure, with its causes, as Flink tells it."""
        return causes(str(self._get("/exceptions").get("root-exception") or "no exception recorded"))

    def restarts(self) -> int:
        """How often the job's tasks were restarted since it was submitted, also when it has ended.

        Each restart is a new attempt of every task, since the pipelined tasks of a streaming job fail over
        together. Flink has a metric for it too (numRestarts), but with the storage or a TaskManager gone
        its metrics stay old for minutes.
        """
        subtasks = [task for vertex in self._get("")["vertices"] for task in self._subtasks(vertex["id"])]
        return max((int(task.get("attempt") or 0) for task in subtasks), default=0)

    def _subtasks(self, vertex_id: str) -> list[Mapping[str, Any]]:
        return list(self._get(f"/vertices/{vertex_id}")["subtasks"])

    def source_records(self) -> int:
        """What the source emitted since its tasks last started; -1 when Flink does not report it."""
        return metrics.source_records(self._rest, self._job_id)

    def places(self) -> tuple[TaskPlace, ...]:
        """Where each subtask runs; a subtask that has no place yet is left out."""
        places = []
        for vertex in self._get("")["vertices"]:
            for subtask in self._subtasks(vertex["id"]):
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
        return _restore(self._get("/checkpoints")["latest"]["restored"])

    def retained_checkpoint(self) -> str:
        """The path of the last completed checkpoint, also of a job that failed; empty when there is none."""
        completed = self._get("/checkpoints")["latest"]["completed"]
        return str((completed or {}).get("external_path") or "")

    def stop_with_savepoint(self, directory: str, *, timeout_s: float) -> str:
        """Take a savepoint below `directory`, end the job, and return the savepoint's path.

        Raises FlinkError with the engine's message when either fails, WaitTimeout when both take longer
        than `timeout_s`. Source: Flink 1.20 docs, "REST API", /jobs/:jobid/stop.
        """
        path = f"/jobs/{self._job_id}"
        request = self._rest.post(f"{path}/stop", {"drain": False, "targetDirectory": directory})
        status = f"{path}/savepoints/{request['request-id']}"

        def completed() -> Mapping[str, Any] | None:
            found = self._rest.get(status)
            return dict(found["operation"]) if found["status"]["id"] == "COMPLETED" else None

        operation = wait_until(f"a savepoint of {self.title}", completed, timeout_s=timeout_s, every_s=0.1)
        if "location" not in operation:
            cause = operation.get("failure-cause") or {}
            said = str(cause.get("stack-trace") or cause.get("class") or "no cause given")
            raise FlinkError(f"{self.title}: can't be stopped with a savepoint:\n{causes(said)}")
        state = wait_until(f"{self.title} to end", self._end, timeout_s=timeout_s, every_s=0.1)
        if state != "FINISHED":
            raise JobEnded(
                f"{self.title} is {state} after its savepoint {operation['location']}, expected FINISHED:\n"
                f"{self.root_exception()}",
                state=state,
            )
        return str(operation["location"])

    def cancel(self, *, timeout_s: float) -> None:
        """End the job without a savepoint; its retained checkpoint stays. An ended job is left as it is.

        Raises FlinkError when Flink refuses, WaitTimeout when it takes longer than `timeout_s`.
        Source: Flink 1.20 docs, "REST API", PATCH /jobs/:jobid.
        """
        if self._end() is None:
            self._rest.patch(f"/jobs/{self._job_id}?mode=cancel")
            wait_until(f"{self.title} to end", self._end, timeout_s=timeout_s, every_s=0.1)

    def _end(self) -> str | None:
        state = self.state()
        return state if state in ENDED else None

    def checkpoint_config(self) -> Mapping[str, object]:
        """The checkpoint configuration in force, as /checkpoints/config gives it."""
        config: Mapping[str, object] = self._get("/checkpoints/config")
        return config

    def history(
        self, *, name: str, life: int, restored_from: str, ended_by: str, restart_attempts: int
    ) -> JobHistory:
        """Everything an oracle needs to know of this life, at this moment."""
        checkpoints = self._get("/checkpoints")
        exceptions = self._get("/exceptions?maxExceptions=50")["exceptionHistory"]["entries"]
        return JobHistory(
            job_id=self._job_id,
            name=name,
            life=life,
            restored_from=restored_from,
            ended_by=ended_by,
            state=self.state(),
            restarts=self.restarts(),
            restart_attempts=restart_attempts,
            counts=self.counts(),
            last_restore=_restore(checkpoints["latest"]["restored"]),
            checkpoints=tuple(_record(entry) for entry in reversed(checkpoints["history"])),
            failures=tuple(
                JobFailure(
                    at_ms=entry["timestamp"],
                    exception=causes(str(entry.get("stacktrace") or entry["exceptionName"])),
                    taskmanager=host_of(str(entry.get("taskManagerId") or entry.get("endpoint") or "")),
                )
                for entry in reversed(exceptions)
            ),
        )


def _restore(restored: Mapping[str, Any] | None) -> Restore | None:
    if restored is None:
        return None
    return Restore(
        checkpoint_id=restored["id"],
        at_ms=restored["restore_timestamp"],
        is_savepoint=restored["is_savepoint"],
        path=restored.get("external_path") or "",
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
