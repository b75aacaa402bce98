"""PyFlink programs of jobs: submitted by `flink run` inside a node of the stack.

Source: Flink 1.20 docs, "Command-Line Interface / Submitting PyFlink Jobs".
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from harness.errors import FlinkError, SqlError
from harness.flink.rest import FlinkRest
from harness.flink.rest_job import RESTORE_FROM, RestJob
from harness.ports import Stack

JOBS_IN_NODE = "/opt/harness/jobs"
"""Where compose.yaml mounts the folder jobs/ into each Flink node."""

SUBMIT_S = 120.0

# Small: the node's memory is the SQL gateway's. What is opened is what Flink's own configuration file
# opens, which the stack's replaces.
_CLIENT_JAVA_OPTIONS = (
    "-Xmx256m --add-opens=java.base/java.util=ALL-UNNAMED --add-opens=java.base/java.lang=ALL-UNNAMED"
)
_SUBMITTED = re.compile(r"Job has been submitted with JobID ([0-9a-f]{32})")
_ABORTED = "org.apache.flink.client.program.ProgramAbortException"
_NOISE = re.compile(r"\s+(at |\.\.\. \d|File |[\^~]+$)|Picked up |\d{4}-\d\d-\d\d \d\d:|Traceback ")


class PyFlinkProgram:
    """A program below jobs/ with what it needs to know; called with a path to restore from, it submits."""

    def __init__(
        self,
        stack: Stack,
        rest: FlinkRest,
        *,
        program: str,
        variables: Mapping[str, str],
        settings: Mapping[str, str],
        node: str = "gateway",
    ) -> None:
        """`program` is relative to jobs/. It finds variable `x` in its environment as JOB_X; `settings`
        are Flink's, for this job.
        """
        self._stack = stack
        self._rest = rest
        self._program = program
        self._variables = dict(variables)
        self._settings = dict(settings)
        self._node = node

    def __call__(self, restore_from: str = "") -> RestJob:
        """Submit the job, from a savepoint or retained checkpoint when a path is given.

        Raises SqlError with the program's file, the line, and the engine's own message when the program
        fails, FlinkError when it ends without one job.
        """
        shown = f"jobs/{self._program}"
        done = self._stack.execute(
            self._node, self._command(restore_from), environment=self._environment(), timeout_s=SUBMIT_S
        )
        started = _SUBMITTED.findall(done.output)
        if done.status == 0 and len(started) == 1:
            return RestJob(self._rest, started[0], program=shown)
        output = self._without_secrets(done.output)
        if done.status == 137:  # SIGKILL: our own bound, or the node restarted
            raise FlinkError(
                f"{shown}: `flink run` in node {self._node} was killed, at the latest after "
                f"{SUBMIT_S:.0f} s:\n{output[-500:]}",
                todo="is the machine overloaded, or was the node restarted meanwhile?",
            )
        if done.status != 0:
            line, said = failure(output, program=f"{JOBS_IN_NODE}/{self._program}")
            where = f"{shown}:{line}" if line else shown
            raise SqlError(f"{where}: {said}")
        raise FlinkError(
            f"{shown}: started {len(started)} jobs, expected exactly one",
            todo="end the program with one execute_insert, or one statement set",
        )

    def _command(self, restore_from: str) -> tuple[str, ...]:
        return (
            "flink",
            "run",
            "--detached",
            *("--target", "remote"),
            *(f"-D{key}={value}" for key, value in self._settings.items()),
            # Not --fromSavepoint: the Hadoop jar in lib/ brings a commons-cli that fails at it.
            *((f"-D{RESTORE_FROM}={restore_from}",) if restore_from else ()),
            *("--python", f"{JOBS_IN_NODE}/{self._program}"),
        )

    def _environment(self) -> dict[str, str]:
        return {
            "FLINK_ENV_JAVA_OPTS_CLI": _CLIENT_JAVA_OPTIONS,
            "PYFLINK_CLIENT_EXECUTABLE": "python3",
            **{f"JOB_{name.upper()}": value for name, value in self._variables.items()},
        }

    def _without_secrets(self, text: str) -> str:
        for name, value in self._variables.items():
            if value and ("password" in name or "secret" in name):
                text = text.replace(value, "***")
        return text


def failure(output: str, *, program: str) -> tuple[int, str]:
    """The line of the program that failed, 0 if none is told, and the message with its innermost causes.

    `output` is what `flink run` printed: Python's traceback, in it the engine's exception with its Java
    frames, and at last the abort of the Python process, which says nothing.
    """
    frames = re.findall(rf'File "{re.escape(program)}", line (\d+)', output)
    told = output.partition(_ABORTED)[0]
    _, traceback, after = told.rpartition("Traceback (most recent call last):")
    kept = _messages(after if traceback else told) or _messages(output)
    return int(frames[-1]) if frames else 0, "\n".join(line[:400] for line in kept[-6:])


def _messages(text: str) -> list[str]:
    """The lines that are neither frames, nor source lines of frames, nor logged."""
    kept: list[str] = []
    shows_source = False
    for line in text.splitlines():
        if re.match(r'\s+File "', line):
            shows_source = True
        elif shows_source and line.startswith("    "):
            continue
        elif line.strip() and not _NOISE.match(line) and not line.startswith("py4j.protocol.Py4JJavaError"):
            shows_source = False
            kept.append(line.strip().removeprefix(": ").removeprefix("Caused by: "))
    return list(dict.fromkeys(kept))
