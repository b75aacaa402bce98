"""SQL scripts of jobs: split with their line numbers, filled in, and submitted as exactly one job."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from fake_flink import answers_of, client, job
from fake_http import ADDRESS, FakeHttp, Series, answer

from harness import resources
from harness.errors import JobEnded, SqlError
from harness.flink import sql_script
from harness.flink.gateway import GatewaySession, SqlGateway
from harness.flink.sql_script import SqlProgram, Started, Statement

SCRIPT = """-- what it is for
-- in two lines

CREATE CATALOG paimon WITH (
    'warehouse' = '${warehouse}'
);

INSERT INTO a  -- a remark; with a semicolon
SELECT ';', '--' FROM b;
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "job.sql"
    path.write_text(text, encoding="utf-8")
    return path


def gateway(*, jobs: list[str]) -> FakeHttp:
    """A gateway that answers the statements one after the other, each with a job's id or an error."""
    pages: list[Any] = [
        answer(500, {"errors": ["Object 'b' not found"]})
        if job == "error"
        else {"resultType": "EOS", "jobID": job or None, "results": {"data": []}}
        for job in jobs
    ]
    return FakeHttp(
        {
            "POST /v3/sessions": {"sessionHandle": "s"},
            "POST /v3/sessions/s/statements": {"operationHandle": "o"},
            "GET /v3/sessions/s/operations/o/result/0?rowFormat=JSON": Series(*pages),
            "DELETE /v3/sessions/s/operations/o/close": {"status": "CLOSED"},
            "DELETE /v3/sessions/s": {"status": "CLOSED"},
        }
    )


def session(*, jobs: list[str]) -> GatewaySession:
    return SqlGateway(lambda: ADDRESS, http=gateway(jobs=jobs).session()).open()


def program(transport: FakeHttp, script: Path) -> SqlProgram:
    return SqlProgram(
        SqlGateway(lambda: ADDRESS, http=transport.session()),
        client(answers_of("a1b2", **{"": job("FAILED")})),
        script=script,
        variables={"table": "a"},
        settings={"pipeline.name": "orders"},
    )


def test_statements_come_with_the_lines_on_which_they_start(tmp_path: Path) -> None:
    found = sql_script.load(written(tmp_path, SCRIPT), {"warehouse": "s3://w/"})

    assert [4, 8] == [statement.line for statement in found]


def test_variables_are_filled_in_and_comments_left_out_but_not_from_texts(tmp_path: Path) -> None:
    catalog, insert = sql_script.load(written(tmp_path, SCRIPT), {"warehouse": "s3://w/"})

    assert "'warehouse' = 's3://w/'" in catalog.text
    assert "SELECT ';', '--' FROM b" in insert.text
    assert "remark" not in insert.text
    assert not insert.text.endswith(";")


def test_a_hint_is_not_a_comment(tmp_path: Path) -> None:
    text = "SELECT * FROM t /*+ OPTIONS('scan.snapshot-id'='7') */;"
    (statement,) = sql_script.load(written(tmp_path, text), {})

    assert "/*+ OPTIONS('scan.snapshot-id'='7') */" in statement.text


def test_a_value_with_a_semicolon_makes_no_second_statement(tmp_path: Path) -> None:
    found = sql_script.load(written(tmp_path, "SET 'a' = '${value}';"), {"value": "x; DROP TABLE t"})

    assert (Statement(text="SET 'a' = 'x; DROP TABLE t'", line=1),) == found


def test_two_equal_statements_have_lines_of_their_own(tmp_path: Path) -> None:
    found = sql_script.load(written(tmp_path, "USE a;\n\nUSE a;\n"), {})

    assert [1, 3] == [statement.line for statement in found]


def test_an_unknown_variable_is_told_with_file_line_and_the_known_ones(tmp_path: Path) -> None:
    path = written(tmp_path, "USE a;\n-- why\nSELECT '${wherehouse}';\n")
    with pytest.raises(SqlError) as caught:
        sql_script.load(path, {"warehouse": "", "s3_endpoint": ""})

    assert f"{path}:3: unknown variable 'wherehouse'" == caught.value.what
    assert "known are: s3_endpoint, warehouse" == caught.value.todo


@pytest.mark.parametrize("text", ["", "\n\n", "-- only a remark\n", ";;\n"])
def test_a_script_without_a_statement_is_refused(tmp_path: Path, text: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(SqlError) as caught:
        sql_script.load(path, {})

    assert f"{path}: holds no statement" == caught.value.what


def test_a_script_that_is_not_there_is_told_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(SqlError, match=r"gone\.sql: can't be read: No such file"):
        sql_script.load(tmp_path / "gone.sql", {})


def test_the_one_job_that_a_script_starts_is_returned(tmp_path: Path) -> None:
    statements = sql_script.load(written(tmp_path, "USE a;\nINSERT INTO a SELECT 1;"), {})
    started = sql_script.submit(session(jobs=["", "a1b2"]), tmp_path, statements)

    assert Started(job_id="a1b2", line=2) == started


@pytest.mark.parametrize(("jobs", "count"), [(["", ""], 0), (["a1b2", "c3d4"], 2)])
def test_a_script_that_starts_not_exactly_one_job_is_refused(
    tmp_path: Path, jobs: list[str], count: int
) -> None:
    path = written(tmp_path, "INSERT INTO a SELECT 1; INSERT INTO b SELECT 1;")
    with pytest.raises(SqlError) as caught:
        sql_script.submit(session(jobs=jobs), path, sql_script.load(path, {}))

    assert f"{path}: started {count} jobs, expected exactly one" == caught.value.what


def test_a_statement_that_fails_is_told_with_file_line_and_the_engines_words(tmp_path: Path) -> None:
    path = written(tmp_path, "USE a;\nINSERT INTO a SELECT * FROM b;")
    with pytest.raises(SqlError) as caught:
        sql_script.submit(session(jobs=["", "error"]), path, sql_script.load(path, {}))

    assert f"{path}:2: Object 'b' not found" == caught.value.what


@pytest.mark.parametrize(
    ("path", "restore"),
    [("", {}), ("s3://sp/savepoint-a", {"execution.savepoint.path": "s3://sp/savepoint-a"})],
    ids=["from nothing", "from a savepoint"],
)
def test_a_program_is_submitted_in_a_session_with_its_settings_and_where_it_starts(
    tmp_path: Path, path: str, restore: dict[str, str]
) -> None:
    transport = gateway(jobs=["", "a1b2"])
    started = program(transport, written(tmp_path, "USE x;\nINSERT INTO ${table} SELECT 1;"))(path)

    assert "a1b2" == started.job_id
    assert {"properties": {"pipeline.name": "orders"} | restore} == transport.bodies[0]
    assert "DELETE /v3/sessions/s" == transport.asked[-1]


def test_a_programs_job_that_ends_names_the_script_and_the_line_that_started_it(tmp_path: Path) -> None:
    script = written(tmp_path, "USE x;\nINSERT INTO ${table} SELECT 1;")
    started = program(gateway(jobs=["", "a1b2"]), script)("")

    with pytest.raises(JobEnded, match=rf"^{re.escape(str(script))}:2: job a1b2 is FAILED"):
        started.raise_if_ended()


def test_the_session_of_a_program_that_fails_is_closed(tmp_path: Path) -> None:
    transport = gateway(jobs=["error"])
    with pytest.raises(SqlError, match=r"job\.sql:1: Object 'b' not found"):
        program(transport, written(tmp_path, "SELECT * FROM b;"))("")

    assert "DELETE /v3/sessions/s" == transport.asked[-1]


def test_the_orders_script_ends_with_its_one_insert() -> None:
    names = (
        "warehouse s3_endpoint s3_access_key s3_secret_key table_options catalog_options source_host "
        "source_port source_user source_password server_id_range chunk_size startup_mode"
    )
    path = resources.folder("jobs") / "orders" / "job.sql"
    found = sql_script.load(path, dict.fromkeys(names.split(), "'bucket' = '16'"))

    assert ["CREATE"] * 4 + ["INSERT"] == [statement.text.split()[0] for statement in found]
    lines = path.read_text().splitlines()
    assert all(lines[statement.line - 1].split()[0] in ("CREATE", "INSERT") for statement in found)
