"""From a job's folder in jobs/ to a running job whose settings are in force."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.errors import FlinkError, UsageError
from harness.flink import readback
from harness.flink.gateway import SqlGateway
from harness.flink.living_job import LivingJob
from harness.flink.pyflink import PyFlinkProgram
from harness.flink.rest import FlinkRest
from harness.flink.rest_job import RestJob
from harness.flink.sql_script import SqlProgram
from harness.model import Check, Credentials
from harness.paimon.warehouse import Warehouse
from harness.ports import Stack
from harness.profiles import Profile
from harness.resources import folder

SERVER_IDS = {"orders": "5400-5499", "behavior-log": "5500-5599"}
"""The server ids of each job's CDC readers: two readers with one id make MySQL cut one of them off."""


@dataclass(frozen=True, kw_only=True)
class Submission:
    """Submits the jobs of a run. `startup` is where they begin to read: the source's scan.startup.mode.

    `table_options` are those in force, by the table's name.
    """

    run: str
    stack: Stack
    rest: FlinkRest
    gateway: SqlGateway
    profile: Profile
    parallelism: int
    chunk_size: int
    startup: str
    warehouse: Warehouse
    source: Credentials
    table_options: Callable[[str], Mapping[str, str]]

    def start(self, name: str) -> LivingJob:
        """Start the job in jobs/<name>: a SQL script job.sql or a PyFlink program job.py.

        Returns once every task runs. Raises FlinkError or SqlError with file, line and the engine's own
        message, FlinkError when a setting of the profile is not in force.
        """
        job = LivingJob(name, submit=self._program(name), savepoints=f"s3://flink/savepoints/{self.run}")
        job.start_from("", why="")
        self._require_in_force(job)
        return job

    def _program(self, name: str) -> Callable[[str], RestJob]:
        jobs = folder("jobs")
        settings = {
            **dict(self.profile.flink),
            "pipeline.name": name,
            "parallelism.default": str(self.parallelism),
        }
        variables = self._variables(name)
        script = Path(name) / "job.sql"
        if (jobs / script).is_file():
            return SqlProgram(
                self.gateway, self.rest, script=jobs / script, variables=variables, settings=settings
            )
        program = Path(name) / "job.py"
        if (jobs / program).is_file():
            return PyFlinkProgram(
                self.stack, self.rest, program=str(program), variables=variables, settings=settings
            )
        raise UsageError(f"jobs/{name} holds neither job.sql nor job.py", todo="add one of them")

    def _variables(self, name: str) -> dict[str, str]:
        options = ",\n    ".join(f"'{key}' = '{value}'" for key, value in self.profile.table(name).items())
        return {
            "warehouse": self.warehouse.path,
            "s3_endpoint": self.warehouse.inside,
            "s3_access_key": self.warehouse.credentials.user,
            "s3_secret_key": self.warehouse.credentials.secret,
            "catalog_options": "".join(f",\n    '{key}' = '{value}'" for key, value in self.profile.catalog),
            "table_options": options,
            "source_host": "source",
            "source_port": "3306",
            "source_user": self.source.user,
            "source_password": self.source.secret,
            "server_id_range": SERVER_IDS[name],
            "chunk_size": str(self.chunk_size),
            "startup_mode": self.startup,
        }

    def _require_in_force(self, job: LivingJob) -> None:
        settings, log = dict(self.profile.flink), self.stack.log("jobmanager")
        checks: tuple[Check, ...] = (
            *readback.checkpoint_checks(settings, job.checkpoint_config()),
            *readback.restart_checks(settings, job.job_id, log),
            *readback.table_checks(self.profile.table(job.name), self.table_options(job.name)),
        )
        wrong = [f"{c.name}: set {c.expected}, in force {c.actual}" for c in checks if not c.held]
        if wrong:
            raise FlinkError(
                f"{job.name}: settings of the profile are not in force:\n  " + "\n  ".join(wrong),
                todo="a job that runs with other settings proves nothing about these",
            )
