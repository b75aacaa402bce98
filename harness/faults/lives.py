"""Beginning lives of several jobs at once, and whether each began from the right place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from harness.errors import FlinkError, WaitTimeout
from harness.flink.together import of_each
from harness.model import Check, Restore
from harness.ports import Job
from harness.waiting import wait_until

REST_CACHE_S = 10.0
"""Flink's REST API answers from a cache that may be 3 s old (web.refresh-interval)."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """A new life to begin: from `path` (empty: from nothing), to be restored from `wanted`.

    The two differ only where a test spoils a start on purpose. `kind` names what `wanted` is.
    """

    job: Job
    path: str
    wanted: str
    kind: str
    why: str


def start_all(starts: Sequence[Start], *, bound_s: float) -> dict[str, Check]:
    """Begin every life at the same time; by the job's name, whether it was restored as wanted.

    A job that can't be started is a check that does not hold, with the engine's message.
    """
    by_name = {start.job.name: start for start in starts}
    return of_each([start.job for start in starts], lambda job: _started(by_name[job.name], bound_s))


def not_restored(name: str, wanted: str, kind: str, actual: str) -> Check:
    """The check of a job whose restore was not seen."""
    return Check(name=f"{name}: restored from its {kind}", expected=wanted, actual=actual, held=False)


def same_place(one: str, other: str) -> bool:
    """Whether two paths name one savepoint or checkpoint; `_metadata`, a last slash and s3a don't matter."""
    return bool(one) and bool(other) and _place(one) == _place(other)


def _started(start: Start, bound_s: float) -> Check:
    job = start.job
    try:
        job.start_from(start.path, why=start.why)
        # At once: a job that restarts later is restored from its own newer checkpoint then.
        restore = wait_until(
            f"{job.name}: a restore",
            job.last_restore,
            timeout_s=min(REST_CACHE_S, bound_s),
            retry_on=(FlinkError,),
        )
    except WaitTimeout:
        return not_restored(job.name, start.wanted, start.kind, "started from nothing")
    except FlinkError as error:
        return not_restored(job.name, start.wanted, start.kind, f"not started: {error.what}")
    return Check(
        name=f"{job.name}: restored from its {start.kind}",
        expected=start.wanted,
        actual=_told(restore),
        held=same_place(restore.path, start.wanted) and (restore.is_savepoint or start.kind != "savepoint"),
    )


def _told(restore: Restore) -> str:
    kind = "savepoint" if restore.is_savepoint else "checkpoint"
    return f"{kind} {restore.checkpoint_id}, {restore.path or 'path not reported'}"


def _place(path: str) -> str:
    bare = path.rstrip("/").removesuffix("/_metadata").rstrip("/")
    return re.sub(r"^s3[an]?:/+", "s3://", bare)
