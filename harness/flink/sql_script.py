"""SQL scripts of jobs: fill in their variables, split them, submit them through the SQL gateway."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from string import Template

import sqlparse

from harness.errors import SqlError
from harness.flink.gateway import GatewaySession, SqlGateway
from harness.flink.rest import FlinkRest
from harness.flink.rest_job import RESTORE_FROM, RestJob


@dataclass(frozen=True, kw_only=True)
class Statement:
    """One statement and the line of the script on which it starts."""

    text: str
    line: int


def load(path: Path, variables: Mapping[str, str]) -> tuple[Statement, ...]:
    """Read a script, fill in ${…} variables and split it at its semicolons.

    Raises SqlError naming file and line when a variable is not known or the file can't be read.
    """
    try:
        raw = path.read_text(encoding="utf-8")
    except OSError as error:
        raise SqlError(f"{path}: can't be read: {error.strerror}") from error
    statements = []
    position = 0
    for piece in sqlparse.split(raw):
        code = sqlparse.format(piece, strip_comments=True).strip().rstrip(";")
        start = raw.index(piece, position)
        position = start + len(piece)
        if not code:
            continue
        line = raw.count("\n", 0, start) + 1 + _leading_comment_lines(piece)
        try:
            text = Template(code).substitute(variables)
        except (KeyError, ValueError) as error:
            known = ", ".join(sorted(variables))
            raise SqlError(f"{path}:{line}: unknown variable {error}", todo=f"known are: {known}") from error
        statements.append(Statement(text=text, line=line))
    if not statements:
        raise SqlError(f"{path}: holds no statement")
    return tuple(statements)


class SqlProgram:
    """A script with its variables; called with a path to restore from, it submits."""

    def __init__(
        self,
        gateway: SqlGateway,
        rest: FlinkRest,
        *,
        script: Path,
        variables: Mapping[str, str],
        settings: Mapping[str, str],
    ) -> None:
        """`settings` are Flink's, for this job: those of the session in which the script runs."""
        self._gateway = gateway
        self._rest = rest
        self._script = script
        self._variables = dict(variables)
        self._settings = dict(settings)

    def __call__(self, restore_from: str = "") -> RestJob:
        """Submit the job, from a savepoint or retained checkpoint when a path is given.

        Raises SqlError with file, line and the engine's own message.
        """
        statements = load(self._script, self._variables)
        restore = {RESTORE_FROM: restore_from} if restore_from else {}
        session = self._gateway.open({**self._settings, **restore})
        try:
            started = submit(session, self._script, statements)
        finally:
            session.close()
        return RestJob(self._rest, started.job_id, program=f"{self._script}:{started.line}")


@dataclass(frozen=True, kw_only=True)
class Started:
    """The job that a script started, and the line of the statement that did."""

    job_id: str
    line: int


def submit(session: GatewaySession, path: Path, statements: tuple[Statement, ...]) -> Started:
    """Run the statements in order; return the one job that they started.

    Raises SqlError with file, line and the engine's own message, or when not exactly one job started.
    """
    jobs = []
    for statement in statements:
        try:
            result = session.execute(statement.text)
        except SqlError as error:
            raise SqlError(f"{path}:{statement.line}: {error.what}") from error
        if result.job_id:
            jobs.append(Started(job_id=result.job_id, line=statement.line))
    if len(jobs) != 1:
        raise SqlError(
            f"{path}: started {len(jobs)} jobs, expected exactly one", todo="end the script with one INSERT"
        )
    return jobs[0]


def _leading_comment_lines(piece: str) -> int:
    count = 0
    for line in piece.splitlines():
        if line.strip() and not line.lstrip().startswith("--"):
            return count
        count += 1
    return count
