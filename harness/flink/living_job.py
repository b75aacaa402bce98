"""A job under test through all its lives: each submission begins one, each end is kept with its history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from harness.errors import FlinkError, FlinkUnreachable, WaitTimeout
from harness.flink.rest import every_task_runs
from harness.flink.rest_job import ENDED, RestJob
from harness.model import CheckpointCounts, JobHistory, JobMoment, Restore, TaskPlace
from harness.waiting import wait_until

READY_S = 120.0


@dataclass(frozen=True, kw_only=True)
class _Life:
    job: RestJob
    restored_from: str


class LivingJob:
    """Implements `ports.Job`. It has no life before the first `start_from`."""

    def __init__(
        self,
        name: str,
        *,
        submit: Callable[[str], RestJob],
        savepoints: str,
        ready_s: float = READY_S,
    ) -> None:
        """`submit` starts the job from a path, or from nothing when that is empty. `savepoints` is the
        directory of its savepoints; `ready_s` is how long its tasks may take to run.
        """
        self._name = name
        self._submit = submit
        self._savepoints = savepoints
        self._ready_s = ready_s
        self._life: _Life | None = None
        self._past: list[JobHistory] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def job_id(self) -> str:
        return self._job.job_id

    @property
    def _job(self) -> RestJob:
        return self._current().job

    def _current(self) -> _Life:
        if self._life is None:
            raise FlinkError(f"job {self._name} was not submitted")
        return self._life

    def state(self) -> str:
        return self._job.state()

    def restarts(self) -> int:
        return self._job.restarts()

    def places(self) -> tuple[TaskPlace, ...]:
        return self._job.places()

    def counts(self) -> CheckpointCounts:
        return self._job.counts()

    def last_restore(self) -> Restore | None:
        return self._job.last_restore()

    def all_running(self) -> bool:
        return self._job.all_running()

    def raise_if_ended(self) -> None:
        self._job.raise_if_ended()

    def checkpoint_config(self) -> dict[str, object]:
        """The checkpoint configuration in force in the life that is on."""
        return dict(self._job.checkpoint_config())

    def moment(self) -> JobMoment:
        """Both counts as they are now, not as Flink knew them before."""
        job = self._job
        return JobMoment(
            life=len(self._past) + 1, restarts=job.restarts(), source_records=job.source_records()
        )

    def stop_with_savepoint(self, *, timeout_s: float) -> str:
        """Take a savepoint, end this life, and return the savepoint's path.

        Raises FlinkError with the engine's message when that fails, WaitTimeout when it takes longer.
        """
        return self._job.stop_with_savepoint(self._savepoints, timeout_s=timeout_s)

    def cancel(self, *, timeout_s: float) -> None:
        self._job.cancel(timeout_s=timeout_s)

    def retained_checkpoint(self) -> str:
        return self._job.retained_checkpoint()

    def start_from(self, path: str, *, why: str) -> None:
        """Begin a life from a savepoint or retained checkpoint; without a path, from nothing.

        Returns once every task runs. Raises FlinkError with the engine's message when the job ends or
        does not get that far, and when the life before it is still on.
        """
        if self._life is not None:
            state = self._life.job.state()
            if state not in ENDED:
                raise FlinkError(f"job {self._name}: expected an ended life before another, actual {state}")
            self._past.append(self._history(self._life, ended_by=why))
            self._life = None
        self._life = _Life(job=self._submit(path), restored_from=path)
        job = self._life.job
        try:
            wait_until(
                f"every task of {self._name} to run",
                lambda: every_task_runs(job),
                timeout_s=self._ready_s,
                every_s=0.5,
                retry_on=(FlinkUnreachable,),
            )
        except WaitTimeout as error:
            raise FlinkError(
                f"{job.title} does not get to run: {error.what}; its last failure:\n{job.root_exception()}"
            ) from error

    def histories(self, *, restart_attempts: int) -> tuple[JobHistory, ...]:
        """Each life of the job, the first one first; the one that is on as it is at this moment."""
        lives = [*self._past]
        if self._life is not None:
            lives.append(self._history(self._life, ended_by=""))
        return tuple(replace(life, restart_attempts=restart_attempts) for life in lives)

    def _history(self, life: _Life, *, ended_by: str) -> JobHistory:
        return life.job.history(
            name=self._name,
            life=len(self._past) + 1,
            restored_from=life.restored_from,
            ended_by=ended_by,
            restart_attempts=0,  # known where histories are asked for
        )
