"""Flink's REST API: a client, and what the cluster says of itself.

Source: Flink 1.20 docs, "REST API" (paths under /v1).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import requests

from harness.errors import FlinkError, FlinkUnreachable
from harness.model import Address

STALE_S = 3.0
"""How old the counters may be that the API tells (web.refresh-interval)."""


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
        return self._ask("GET", path, None, timeout_s)

    def post(self, path: str, body: Mapping[str, object], *, timeout_s: float = 10) -> Any:
        """The parsed JSON of POST /v1<path>. Raises FlinkError with Flink's own message."""
        return self._ask("POST", path, body, timeout_s)

    def patch(self, path: str, *, timeout_s: float = 10) -> Any:
        """The parsed JSON of PATCH /v1<path>. Raises FlinkError with Flink's own message."""
        return self._ask("PATCH", path, None, timeout_s)

    def _ask(self, method: str, path: str, body: Mapping[str, object] | None, timeout_s: float) -> Any:
        url = f"http://{self._address()}/v1{path}"
        try:
            answer = self._session.request(method, url, json=body, timeout=timeout_s)
        except requests.RequestException as error:
            raise FlinkUnreachable(f"{method} {path}: the JobManager does not answer: {error}") from error
        if not answer.ok:
            raise FlinkError(f"{method} {path}: status {answer.status_code}: {_message(answer)}")
        try:
            return answer.json()
        except ValueError as error:
            raise FlinkError(f"{method} {path}: not JSON: {answer.text[:200]!r}") from error

    def cluster(self) -> Cluster:
        """Version, the host names of the registered TaskManagers, and all slots."""
        overview = self.get("/overview")
        managers = self.get("/taskmanagers")["taskmanagers"]
        return Cluster(
            version=overview["flink-version"],
            taskmanagers=tuple(sorted(host_of(manager["id"]) for manager in managers)),
            slots=overview["slots-total"],
        )


class Awaited(Protocol):
    """What can be awaited of a job, in one life or through all."""

    def raise_if_ended(self) -> None: ...

    def all_running(self) -> bool: ...


def every_task_runs(job: Awaited) -> bool:
    """Whether every task of the job runs; raises JobEnded when it never will again. To be awaited."""
    job.raise_if_ended()
    return job.all_running()


def host_of(taskmanager_id: str) -> str:
    """The host name in a TaskManager id: `taskmanager-1:36041-3ae237` → `taskmanager-1`."""
    return taskmanager_id.partition(":")[0]


def causes(stacktrace: str, *, most: int = 6) -> str:
    """The exception and its causes without the frames; of many, the outermost and the innermost."""
    lines = [line.strip() for line in stacktrace.splitlines()]
    kept = [line for line in lines if line and not line.startswith(("at ", "..."))]
    if len(kept) > most:
        kept = [kept[0], *kept[1 - most :]]
    return "\n".join(line[:300] for line in kept)


def _message(answer: requests.Response) -> str:
    try:
        return causes("\n".join(answer.json()["errors"]))
    except (ValueError, KeyError, TypeError):
        return answer.text[:500]
