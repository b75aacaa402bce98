"""A job's metrics as they are now: the records that its source emitted.

Flink's JobManager fetches metrics only when somebody asks for one, at most every
metrics.fetcher.update-interval, and answers with those of the fetch before: minutes old when nobody
asked meanwhile (seen 2026-11-30: 5 min). So each reading here first waits until the process that the
metric comes from has been fetched from again: its CPU time, part of the same fetch, has changed.
Source: Flink 1.20, MetricFetcherImpl and MetricStore; docs "Metrics / REST API integration".
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.errors import FlinkError, WaitTimeout
from harness.flink.rest import FlinkRest
from harness.waiting import wait_until

FRESH_S = 10.0

_CPU = "Status.JVM.CPU.Time"
_EMITTED = re.compile(r"(\d+)\.Source__.*\.numRecordsOut")


def source_records(rest: FlinkRest, job_id: str, *, fresh_s: float = FRESH_S) -> int:
    """What the source operator's subtasks emitted since each of them last started, summed.

    The operator's own numRecordsOut: it is exact, also where the source is chained with the sink's
    writer, whose output the vertex counts. -1 when a subtask does not run or does not report.
    An insert or delete is one record, an update two (-U, +U); a row of the initial load is one.
    Raises FlinkError when the metrics stay old.
    """
    total = 0
    sources = [v for v in rest.get(f"/jobs/{job_id}")["vertices"] if v["name"].startswith("Source:")]
    for vertex in sources:
        path = f"/jobs/{job_id}/vertices/{vertex['id']}"
        tasks = rest.get(path)["subtasks"]
        if any(task["status"] != "RUNNING" for task in tasks):
            return -1  # until a task runs, the store holds what it counted before its restart
        _await_fetch(rest, sorted({f"/taskmanagers/{task['taskmanager-id']}" for task in tasks}), fresh_s)
        reported = (entry["id"] for entry in rest.get(f"{path}/metrics"))
        found = _values(rest, path, [name for name in reported if _EMITTED.fullmatch(name)])
        if len(found) != vertex["parallelism"]:
            return -1
        total += sum(int(value) for value in found.values())
    return total if sources else -1


def _await_fetch(rest: FlinkRest, processes: Iterable[str], fresh_s: float) -> None:
    """Wait until the metrics of each process have been fetched again."""
    before = {process: _values(rest, process, (_CPU,)) for process in processes}

    def fetched() -> bool:
        now = {process: _values(rest, process, (_CPU,)) for process in before}
        return all(now[process] and now[process] != before[process] for process in before)

    try:
        wait_until("newer metrics", fetched, timeout_s=fresh_s, every_s=0.1)
    except WaitTimeout as error:
        raise FlinkError(f"the metrics of {' and '.join(before)} stay old: {error.what}") from error


def _values(rest: FlinkRest, path: str, names: Iterable[str]) -> dict[str, str]:
    wanted = ",".join(names)
    if not wanted:
        return {}
    return {entry["id"]: entry["value"] for entry in rest.get(f"{path}/metrics?get={wanted}")}
