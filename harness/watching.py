"""What a run awaits of its jobs: running tasks, completed checkpoints, and a fence's markers in the sink."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import FlinkError, FlinkUnreachable
from harness.flink.durations import milliseconds
from harness.flink.rest import STALE_S, every_task_runs
from harness.flink.together import of_each
from harness.history import History
from harness.model import FenceMark, JobMoment
from harness.ports import Job, Pipeline
from harness.profiles import Profile
from harness.waiting import wait_until


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """How long a run waits for Flink, in seconds, from the profile's own times."""

    interval_s: float
    late_s: float
    checkpoint_s: float
    recovery_s: float

    @classmethod
    def of(cls, profile: Profile) -> Bounds:
        """`late_s` is one cycle at its slowest as told by REST, `checkpoint_s` has some seconds to spare;
        `recovery_s` covers detection, delays and a restore.
        """
        flink, cluster = dict(profile.flink), dict(profile.cluster)
        interval = milliseconds(flink["execution.checkpointing.interval"]) / 1000
        slowest = interval + milliseconds(flink["execution.checkpointing.timeout"]) / 1000
        detection = milliseconds(cluster["heartbeat.timeout"]) / 1000
        delay = milliseconds(flink["restart-strategy.fixed-delay.delay"]) / 1000
        return cls(
            interval_s=interval,
            late_s=slowest + STALE_S,
            checkpoint_s=slowest + 10,
            recovery_s=detection + 3 * delay + 90,
        )


class Watch:
    """Watches the jobs of a pipeline, and tells the history what it awaits."""

    def __init__(self, pipeline: Pipeline, jobs: tuple[Job, ...], bounds: Bounds, history: History) -> None:
        self.jobs = jobs
        self._pipeline = pipeline
        self._bounds = bounds
        self._history = history

    def renew_attempts(self, number: int) -> None:
        """Give a job that has restarted a new life, whose restart strategy counts from zero."""
        spent = [job for job in self.jobs if job.restarts()]
        if not spent:
            return
        self._history.phase(f"new attempts {number}")

        def renew(job: Job) -> None:
            path = job.stop_with_savepoint(timeout_s=self._bounds.recovery_s)
            job.start_from(path, why=f"given all its restart attempts for fault {number}")

        of_each(spent, renew)
        for job in spent:
            self._history.event("job", f"{job.name}: all restart attempts again, job {job.job_id}")
        self.checkpoints(1, phase=f"new attempts {number}: steady")

    def running(self) -> None:
        for job in self.jobs:
            (restarts,) = wait_until(
                f"every task of {job.name} to run again",
                lambda job=job: (job.restarts(),) if every_task_runs(job) else None,  # type: ignore[misc]
                timeout_s=self._bounds.recovery_s,
                retry_on=(FlinkUnreachable,),
            )
            self._history.event("recovered", f"{job.name}: every task runs, {restarts} restarts in this life")

    def checkpoints(self, wanted: int, *, phase: str) -> None:
        """Wait until each job has completed so many more checkpoints."""
        self._history.phase(phase)
        before = self._completed()

        def completed() -> bool:
            for job in self.jobs:
                job.raise_if_ended()
            now = self._completed()
            done = min(now[name] - before[name] for name in before)
            self._history.progress(
                f"checkpoints, {self._pipeline.workload.committed()} changes committed", done, wanted
            )
            return done >= wanted

        wait_until(
            f"{wanted} more checkpoints of each job",
            completed,
            timeout_s=wanted * self._bounds.checkpoint_s,
            retry_on=(FlinkUnreachable,),
        )

    def _completed(self) -> dict[str, int]:
        return {job.name: job.counts().completed for job in self.jobs}

    def markers(self, marks: Sequence[FenceMark], *, limit: int) -> dict[str, int]:
        """When each table's marker became visible (epoch ms), 0 for one that is lost."""
        pipeline, history = self._pipeline, self._history
        before = self._completed()
        visible_at: dict[str, int] = {}

        def settled() -> bool:
            for job in self.jobs:
                job.raise_if_ended()
            now = self._completed()
            for mark in marks:
                newest = pipeline.newest_snapshot(mark.table) if mark.table not in visible_at else None
                if newest is not None and pipeline.shows(mark, newest):
                    visible_at[mark.table] = now_ms()
                elif mark.table not in visible_at and now[mark.table] - before[mark.table] >= limit:
                    visible_at[mark.table] = 0
            done = max(now[name] - before[name] for name in before)
            history.progress("checkpoints since the marker", done, limit)
            return len(visible_at) == len(marks)

        wait_until(
            f"the markers of fence {marks[0].number} in the sink",
            settled,
            timeout_s=limit * self._bounds.checkpoint_s,
            retry_on=(FlinkUnreachable,),
        )
        for mark in marks:
            word = "visible" if visible_at[mark.table] else "lost"
            history.event("fence", f"{mark.table}: marker {mark.key} {word} after operation {mark.operation}")
        return visible_at

    def moments(self) -> dict[str, JobMoment]:
        """Each job as it is now, by name; one that can't be asked is left out."""

        def ask(job: Job) -> JobMoment | FlinkError:
            try:
                return job.moment()
            except FlinkError as error:
                return error

        moments = {}
        for name, answer in of_each(self.jobs, ask).items():
            if isinstance(answer, FlinkError):
                self._history.event("failure", f"{name} can't be asked: {answer.what}")
            else:
                moments[name] = answer
        return moments


def now_ms() -> int:
    """Epoch milliseconds."""
    return int(time.time() * 1000)
