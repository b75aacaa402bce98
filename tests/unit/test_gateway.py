"""The SQL gateway: a statement runs to its end, its rows come in order, and it is closed whatever happens."""

from __future__ import annotations

from typing import Any

import pytest
import requests
from fake_http import ADDRESS, FakeHttp, Series, answer

from harness.errors import FlinkUnreachable, SqlError, WaitTimeout
from harness.flink.gateway import GatewaySession, SqlGateway

SESSION = "/v3/sessions/s1"
OPERATION = f"{SESSION}/operations/o1"
CLOSE = f"DELETE {OPERATION}/close"
NOT_READY = {"resultType": "NOT_READY", "nextResultUri": f"{OPERATION}/result/0?rowFormat=JSON"}
STACK = [
    "Internal server error.",
    "<Exception on server side:\n"
    "org.apache.flink.table.gateway.api.utils.SqlGatewayException: Failed to fetchResults.\n"
    "\tat org.apache.flink.table.gateway.Some.frame(Some.java:91)\n"
    "\t... 8 more\n"
    "Caused by: org.apache.flink.table.api.ValidationException: SQL validation failed.\n"
    "\tat org.apache.flink.Other.frame(Other.java:17)\n"
    "Caused by: org.apache.calcite.sql.validate.SqlValidatorException: Object 'nope' not found\n"
    "\n"
    "End of exception on server side>",
]


def page(kind: str, *rows: list[Any], job_id: str = "") -> dict[str, Any]:
    return {
        "resultType": kind,
        "isQueryResult": True,
        "resultKind": "SUCCESS_WITH_CONTENT",
        **({"jobID": job_id} if job_id else {}),
        "results": {
            "columns": [],
            "rowFormat": "JSON",
            "data": [{"kind": "INSERT", "fields": r} for r in rows],
        },
    }


def result(token: int) -> str:
    return f"GET {OPERATION}/result/{token}?rowFormat=JSON"


def http(**results: Any) -> FakeHttp:
    known: dict[str, Any] = {
        "POST /v3/sessions": {"sessionHandle": "s1"},
        f"POST {SESSION}/statements": {"operationHandle": "o1"},
        CLOSE: {"status": "CLOSED"},
        f"DELETE {SESSION}": {"status": "CLOSED"},
    }
    return FakeHttp(known | {result(int(token)): value for token, value in results.items()})


def session(transport: FakeHttp) -> GatewaySession:
    return SqlGateway(lambda: ADDRESS, http=transport.session()).open({"execution.runtime-mode": "batch"})


def test_a_session_is_opened_with_its_settings() -> None:
    transport = http()
    session(transport)

    assert {"properties": {"execution.runtime-mode": "batch"}} == transport.bodies[0]


def test_pages_are_awaited_and_read_in_order_to_the_end() -> None:
    transport = http(
        **{
            "0": Series(NOT_READY, NOT_READY, page("PAYLOAD", [1, "a"])),
            "1": page("PAYLOAD", [2, "b"], [3, None]),
            "2": page("EOS"),
        }
    )
    found = session(transport).execute("SELECT 1")

    assert ((1, "a"), (2, "b"), (3, None)) == found.rows
    assert "" == found.job_id
    assert CLOSE == transport.asked[-1]


def test_the_id_of_a_job_that_was_submitted_is_kept() -> None:
    transport = http(**{"0": page("PAYLOAD", ["a1b2"], job_id="a1b2"), "1": page("EOS")})

    assert "a1b2" == session(transport).execute("INSERT INTO a SELECT 1").job_id


def test_rows_on_the_last_page_count_too() -> None:
    assert ((1,),) == session(http(**{"0": page("EOS", [1])})).execute("SELECT 1").rows


def test_an_error_has_the_engines_innermost_message_and_no_frames() -> None:
    transport = http(**{"0": answer(500, {"errors": STACK})})
    with pytest.raises(SqlError) as caught:
        session(transport).execute("SELECT nope")

    lines = caught.value.what.splitlines()
    assert "org.apache.calcite.sql.validate.SqlValidatorException: Object 'nope' not found" == lines[-1]
    assert not [line for line in lines if line.startswith(("at ", "...", "<", "End of", "Internal"))]
    assert CLOSE == transport.asked[-1]


def test_a_close_that_fails_hides_no_error_of_the_statement() -> None:
    transport = http(**{"0": answer(500, {"errors": ["disk full"]})})
    transport.answers[CLOSE] = requests.ConnectionError("refused")
    with pytest.raises(SqlError, match="disk full"):
        session(transport).execute("SELECT 1")

    assert CLOSE == transport.asked[-1]


def test_a_statement_that_does_not_end_is_told_by_its_first_line_and_closed() -> None:
    transport = http(**{"0": NOT_READY})
    with pytest.raises(WaitTimeout, match=r"waited 0 s for the statement `SELECT 1 …`"):
        session(transport).execute("\n SELECT 1\nFROM t", timeout_s=0.1)

    assert CLOSE == transport.asked[-1]


@pytest.mark.parametrize("silence", [requests.ConnectionError("refused"), answer(502, "<html>")])
def test_a_gateway_that_does_not_answer_is_unreachable(silence: Any) -> None:
    gateway = SqlGateway(lambda: ADDRESS, http=FakeHttp({"GET /v3/info": silence}).session())
    with pytest.raises(FlinkUnreachable, match="GET /info: the SQL gateway does not answer"):
        gateway.version()


def test_the_gateway_says_its_version() -> None:
    answers = {"GET /v3/info": {"productName": "Apache Flink", "version": "1.20.3"}}

    assert "1.20.3" == SqlGateway(lambda: ADDRESS, http=FakeHttp(answers).session()).version()


def test_closing_the_session_of_a_gateway_that_is_gone_is_no_error() -> None:
    transport = http()
    opened = session(transport)
    transport.answers[f"DELETE {SESSION}"] = requests.ConnectionError("refused")
    opened.close()

    assert f"DELETE {SESSION}" == transport.asked[-1]
