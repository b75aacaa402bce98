"""PyFlink programs: no secret in the command, and failures told in the engine's words."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

import pytest
from fake_flink import answers_of, client

from harness import resources
from harness.errors import FlinkError, SqlError
from harness.flink.pyflink import JOBS_IN_NODE, PyFlinkProgram, failure
from harness.model import ExecResult

ID = "0b895fad5cef6a25de4da1acb2853949"
SUBMITTED = f"Picked up JAVA_TOOL_OPTIONS: -X\nJob has been submitted with JobID {ID}\n"
PROGRAM = f"{JOBS_IN_NODE}/behavior-log/job.py"
SECRET = "s3cr3t-of-cdc"

CODE = "java.lang.RuntimeException: Python process exits with code: 1"
ABORT = f"""org.apache.flink.client.program.ProgramAbortException: {CODE}
\tat org.apache.flink.client.python.PythonDriver.main(PythonDriver.java:134)
Caused by: {CODE}
\t... 17 more
"""
# As `flink run` of Flink 1.20.3 prints them, with fewer frames.
LOGGED = """Picked up JAVA_TOOL_OPTIONS: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
2026-11-30 08:01:06,401 INFO  org.apache.hadoop.metrics2.impl.MetricsSystemImpl [] - metrics system started
"""
OF_PYTHON = f"""{LOGGED}Traceback (most recent call last):
  File "{PROGRAM}", line 93, in <module>
    main()
  File "{PROGRAM}", line 88, in main
    log = tabels.from_path("behavior_log")
          ^^^^^^
NameError: name 'tabels' is not defined. Did you mean: 'tables'?
{ABORT}"""
OF_THE_ENGINE = f"""{LOGGED}Traceback (most recent call last):
  File "{PROGRAM}", line 93, in <module>
    main()
  File "{PROGRAM}", line 83, in main
    tables.execute_sql(SINK.format(**known))
  File "/usr/local/lib/python3.11/dist-packages/pyflink/table/table_environment.py", line 837, in execute_sql
    return TableResult(self._j_tenv.executeSql(stmt))
                       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
py4j.protocol.Py4JJavaError: An error occurred while calling o8.executeSql.
: org.apache.flink.table.api.ValidationException: Column types of query result and sink do not match.
Cause: Different number of columns.

Query schema: [user_id: BIGINT]
\tat org.apache.flink.table.planner.operations.Some.frame(Some.java:333)
\t... 12 more
Caused by: java.lang.IllegalStateException: the innermost
\tat java.base/java.lang.Thread.run(Thread.java:840)

{ABORT}"""
OF_SYS_EXIT = f"""{LOGGED}{PROGRAM}: missing in the environment: JOB_CHUNK_SIZE
{ABORT}"""


class GatewayNode:
    """A stack of which only `execute` is used: it ends as planned, and notes what it was asked."""

    def __init__(self, output: str, *, status: int = 0) -> None:
        self._ends = ExecResult(status=status, output=output)
        self.node = ""
        self.argv: tuple[str, ...] = ()
        self.environment: dict[str, str] = {}

    def execute(
        self, node: str, argv: Sequence[str], *, environment: Mapping[str, str], timeout_s: float
    ) -> ExecResult:
        self.node, self.argv, self.environment = node, tuple(argv), dict(environment)
        return self._ends


def program(node: GatewayNode) -> PyFlinkProgram:
    return PyFlinkProgram(
        node,  # type: ignore[arg-type]
        client(answers_of(ID)),
        program="behavior-log/job.py",
        variables={"source_user": "cdc", "source_password": SECRET, "chunk_size": "8096"},
        settings={"pipeline.name": "behavior-log", "parallelism.default": "2"},
    )


def test_a_program_is_submitted_detached_in_the_gateway_with_its_settings() -> None:
    node = GatewayNode(SUBMITTED)
    started = program(node)("")

    assert ID == started.job_id
    assert "gateway" == node.node
    assert ("flink", "run", "--detached") == node.argv[:3]
    assert {"-Dpipeline.name=behavior-log", "-Dparallelism.default=2"} < set(node.argv)
    assert ("--python", PROGRAM) == node.argv[-2:]


def test_what_a_program_needs_to_know_is_in_its_environment_and_no_secret_in_its_command() -> None:
    node = GatewayNode(SUBMITTED)
    program(node)("")

    assert ("cdc", SECRET) == (node.environment["JOB_SOURCE_USER"], node.environment["JOB_SOURCE_PASSWORD"])
    assert not [word for word in node.argv if SECRET in word]


def test_a_program_starts_from_a_savepoint_when_told_and_else_from_nothing() -> None:
    fresh, restored = GatewayNode(SUBMITTED), GatewayNode(SUBMITTED)
    program(fresh)("")
    program(restored)("s3://sp/savepoint-a")

    assert {"-Dexecution.savepoint.path=s3://sp/savepoint-a"} == set(restored.argv) - set(fresh.argv)


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (
            OF_PYTHON,
            "jobs/behavior-log/job.py:88: NameError: name 'tabels' is not defined. Did you mean: 'tables'?",
        ),
        (
            OF_THE_ENGINE,
            "jobs/behavior-log/job.py:83: org.apache.flink.table.api.ValidationException: "
            "Column types of query result and sink do not match.\nCause: Different number of columns.\n"
            "Query schema: [user_id: BIGINT]\n"
            "java.lang.IllegalStateException: the innermost",
        ),
        (OF_SYS_EXIT, f"jobs/behavior-log/job.py: {PROGRAM}: missing in the environment: JOB_CHUNK_SIZE"),
    ],
    ids=["of Python", "of the engine", "of the program's own words"],
)
def test_a_failure_is_told_with_file_line_and_message_and_without_frames(output: str, told: str) -> None:
    with pytest.raises(SqlError) as caught:
        program(GatewayNode(output, status=31))("")

    assert told == caught.value.what


def test_a_failure_before_python_is_told_in_the_engines_words() -> None:
    refused = (
        "org.apache.flink.client.program.ProgramInvocationException: The main method caused an error\n"
        "\tat org.apache.flink.Some.frame(Some.java:1)\n"
        "Caused by: java.net.ConnectException: Connection refused: jobmanager/172.19.0.3:8081\n"
    )

    assert 0 == failure(refused, program=PROGRAM)[0]
    assert failure(refused, program=PROGRAM)[1].endswith("Connection refused: jobmanager/172.19.0.3:8081")


def test_a_failure_of_which_only_the_abort_is_known_is_told_as_that() -> None:
    assert failure(ABORT, program=PROGRAM)[1].endswith("Python process exits with code: 1")


def test_a_secret_in_the_output_is_not_told() -> None:
    with pytest.raises(SqlError) as caught:
        program(GatewayNode(f"Access denied, password {SECRET}", status=1))("")

    assert "jobs/behavior-log/job.py: Access denied, password ***" == caught.value.what


@pytest.mark.parametrize(("output", "count"), [("done\n", 0), (SUBMITTED * 2, 2)])
def test_a_program_that_starts_not_exactly_one_job_is_refused(output: str, count: int) -> None:
    with pytest.raises(FlinkError, match=f"job.py: started {count} jobs, expected exactly one"):
        program(GatewayNode(output))("")


def test_a_submission_that_was_killed_says_so() -> None:
    with pytest.raises(FlinkError, match="`flink run` in node gateway was killed"):
        program(GatewayNode("Picked up", status=137))("")


def test_the_behavior_log_program_asks_for_no_variable_that_the_orders_script_does_not_have() -> None:
    tree = ast.parse((resources.folder("jobs") / "behavior-log" / "job.py").read_text(encoding="utf-8"))
    needed = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "NEEDED"
    )
    script = (resources.folder("jobs") / "orders" / "job.sql").read_text(encoding="utf-8")

    assert [] == [name for name in needed if f"${{{name.lower()}}}" not in script]
