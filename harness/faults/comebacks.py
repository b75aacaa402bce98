"""How jobs that lost tasks came back: whether each restarted, and was restored from a checkpoint."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model import Check
from harness.ports import Job


class Comebacks:
    """The restarts of jobs before a fault and since, and the first restore of each since then."""

    def __init__(self, jobs: Sequence[Job] = ()) -> None:
        """To be made before the fault strikes."""
        self._before = {job.name: job.restarts() for job in jobs}
        self._now: dict[str, int] = {}
        self._restores: dict[str, str] = {}

    def came_back(self, job: Job, *, since_ms: int) -> bool:
        """Whether the job has restarted and was restored since the fault (epoch ms); what is seen is kept."""
        self._now[job.name] = max(job.restarts(), self._now.get(job.name, 0))
        restore = job.last_restore()
        if job.name not in self._restores and restore and restore.at_ms >= since_ms:
            self._restores[job.name] = (
                f"checkpoint {restore.checkpoint_id}, {restore.path or 'path not reported'}"
            )
        return self._now[job.name] > self._before[job.name] and job.name in self._restores

    def checks(self, name: str, *, since: str) -> list[Check]:
        """A job's two checks; `since` names the moment, as in `the kill`."""
        was, now = self._before.get(name, 0), self._now.get(name, 0)
        restore = self._restores.get(name, "")
        return [
            Check(
                name=f"{name}: lost tasks and restarted",
                expected=f"more than {was} restarts",
                actual=f"{now} restarts",
                held=now > was,
            ),
            Check(
                name=f"{name}: restored from a checkpoint",
                expected=f"a restore after {since}",
                actual=restore or "none",
                held=bool(restore),
            ),
        ]

    def no_restart(self, name: str, *, when: str) -> Check:
        """The check of a job that must not restart; `when` is told with what is expected."""
        was, now = self._before.get(name, 0), self._now.get(name)
        return Check(
            name=f"{name}: did not restart",
            expected=f"{was} restarts, {when}",
            actual="not seen" if now is None else f"{now} restarts",
            held=now == was,
        )
