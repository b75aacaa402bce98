"""Flink's REST API: its answers become the harness's words, and its errors say what Flink said."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from fake_http import ADDRESS, FakeHttp, answer

from harness.errors import FlinkError, FlinkUnreachable
from harness.flink.rest import FlinkRest, causes, host_of


def rest(answers: dict[str, Any]) -> FlinkRest:
    return FlinkRest(lambda: ADDRESS, session=FakeHttp(answers).session())


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


def test_a_body_is_posted_as_json_and_the_answer_parsed() -> None:
    transport = FakeHttp({"POST /v1/jobs/a/stop": {"request-id": "t1"}})
    found = FlinkRest(lambda: ADDRESS, session=transport.session()).post("/jobs/a/stop", {"drain": False})

    assert {"request-id": "t1"} == found
    assert [{"drain": False}] == transport.bodies


def test_a_refused_post_is_told_with_flinks_message() -> None:
    refusal = answer(409, {"errors": ["java.lang.IllegalStateException: not stoppable\n\tat a.B(C.java:1)"]})

    with pytest.raises(FlinkError, match=r"POST /jobs/a/stop: status 409: .*not stoppable$"):
        rest({"POST /v1/jobs/a/stop": refusal}).post("/jobs/a/stop", {})


def test_of_many_causes_the_outermost_and_the_innermost_are_told() -> None:
    trace = "\n".join(f"Caused by: cause {number}\n\tat frame" for number in range(9))

    told = causes(trace, most=3).splitlines()

    assert ["Caused by: cause 0", "Caused by: cause 7", "Caused by: cause 8"] == told
