"""Metrics: only what was fetched since it was asked for counts, and what is not reported is not zero."""

from __future__ import annotations

from typing import Any

import pytest
from fake_flink import CPU, JOB, answers_of, client, fetches, job, vertex
from fake_http import FakeHttp, Series

from harness.errors import FlinkError
from harness.flink import metrics

SOURCE = vertex("Source: behavior_log[1] -> Map -> Writer : dwd_behavior_log", running=2) | {"id": "v1"}
VERTEX = f"GET /v1/jobs/{JOB}/vertices/v1"
EMITTED = "Source__behavior_log[1].numRecordsOut"
REPORTED = [
    "0.numRecordsOut",  # the chained writer's
    f"0.{EMITTED}",
    "0.Source__behavior_log[1].numRecordsIn",
    "1.Map.numRecordsOut",
    f"1.{EMITTED}",
]
ASKED = f"{VERTEX}/metrics?get=0.{EMITTED},1.{EMITTED}".replace("[1]", "%5B1%5D")


def task(number: int, *, status: str = "RUNNING") -> dict[str, Any]:
    return {"subtask": number, "status": status, "taskmanager-id": f"taskmanager-{number + 1}:1-a"}


def values(*emitted: int) -> list[dict[str, str]]:
    return [{"id": f"{number}.{EMITTED}", "value": str(value)} for number, value in enumerate(emitted)]


def transport(**changed: Any) -> FakeHttp:
    known = {
        f"GET /v1/jobs/{JOB}": job() | {"vertices": [SOURCE, vertex("Global Committer : dwd", running=1)]},
        VERTEX: {"subtasks": [task(0), task(1)]},
        f"{VERTEX}/metrics": [{"id": name} for name in REPORTED],
        ASKED: values(3000, 17),
        f"GET /v1/taskmanagers/taskmanager-1:1-a/{CPU}": fetches(),
        f"GET /v1/taskmanagers/taskmanager-2:1-a/{CPU}": fetches(),
    }
    return FakeHttp(answers_of() | known | changed)


def test_the_source_operators_own_counts_are_summed_over_its_subtasks() -> None:
    assert 3017 == metrics.source_records(client(transport()), JOB)


def test_counts_are_read_only_after_each_of_their_processes_was_fetched_from_again() -> None:
    slow = f"GET /v1/taskmanagers/taskmanager-2:1-a/{CPU}"
    old = [{"id": "Status.JVM.CPU.Time", "value": "7"}]
    http = transport(**{slow: Series(old, old, old, [{"id": "Status.JVM.CPU.Time", "value": "8"}])})
    metrics.source_records(client(http), JOB)

    assert 4 == http.asked[: http.asked.index(ASKED)].count(slow)


def test_metrics_that_stay_old_are_an_error_and_no_number() -> None:
    old = [{"id": "Status.JVM.CPU.Time", "value": "7"}]
    http = transport(**{f"GET /v1/taskmanagers/taskmanager-1:1-a/{CPU}": old})

    with pytest.raises(FlinkError, match=r"the metrics of .*taskmanager-1:1-a.* stay old"):
        metrics.source_records(client(http), JOB, fresh_s=0.3)


@pytest.mark.parametrize("status", ["INITIALIZING", "DEPLOYING", "FAILED"])
def test_while_a_subtask_does_not_run_nothing_is_known(status: str) -> None:
    http = transport(**{VERTEX: {"subtasks": [task(0), task(1, status=status)]}})

    assert -1 == metrics.source_records(client(http), JOB)


def test_a_subtask_that_does_not_report_makes_the_sum_unknown() -> None:
    assert -1 == metrics.source_records(client(transport(**{ASKED: values(3000)})), JOB)


def test_a_source_that_reports_nothing_is_unknown() -> None:
    http = transport(**{f"{VERTEX}/metrics": [{"id": "0.numRecordsOut"}]})

    assert -1 == metrics.source_records(client(http), JOB)


def test_a_job_without_a_source_is_unknown() -> None:
    http = transport(**{f"GET /v1/jobs/{JOB}": job() | {"vertices": [vertex("Writer", running=1)]}})

    assert -1 == metrics.source_records(client(http), JOB)
