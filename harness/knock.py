"""Knocking: finding out whether jobs that start at the source's latest offset have begun to read."""

from __future__ import annotations

import time
from collections.abc import Sequence

from harness.errors import FlinkUnreachable, ReaderError
from harness.history import History
from harness.model import FenceMark
from harness.ports import Job, Pipeline
from harness.waiting import wait_until

EVERY_S = 2.0


def knock(
    pipeline: Pipeline,
    jobs: Sequence[Job],
    history: History,
    *,
    timeout_s: float,
    every_s: float = EVERY_S,
) -> None:
    """Commit a probe row in each table again and again, until all rows of one probe are in the sinks.

    A job that says RUNNING looks for the latest offset only when its reader connects, seconds later, and
    what is committed before that never arrives. Once a probe has arrived, all later ones and all that
    follows must. Raises WaitTimeout when none has, JobEnded, SourceError.
    """
    probes: list[tuple[FenceMark, ...]] = []
    probed_s = 0.0

    def heard() -> int | None:
        nonlocal probed_s
        for job in jobs:
            job.raise_if_ended()
        if not probes or time.monotonic() - probed_s >= every_s:
            probes.append(pipeline.workload.probe())
            probed_s = time.monotonic()
        history.progress("probes committed", len(probes), len(probes))
        arrived = (number for number, marks in enumerate(probes, start=1) if _shown(pipeline, marks))
        return next(arrived, None)

    number = wait_until(
        "a probe row in every sink",
        heard,
        timeout_s=timeout_s,
        retry_on=(FlinkUnreachable, ReaderError),
        seen=lambda: f"{len(probes)} probes committed",
    )
    committed_at_ms = probes[number - 1][0].committed_at_ms
    history.event(
        "knock", f"probe {number} of {len(probes)} arrived first, committed at {committed_at_ms} ms"
    )


def _shown(pipeline: Pipeline, marks: Sequence[FenceMark]) -> bool:
    for mark in marks:
        newest = pipeline.newest_snapshot(mark.table)
        if newest is None or not pipeline.shows(mark, newest):
            return False
    return True
