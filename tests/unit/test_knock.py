"""Promises of knocking: nothing is taken for read before a probe has arrived."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import factories
import pytest
from fakes import Calls, FakeListener, FakePipeline

from harness.errors import JobEnded, ReaderError, WaitTimeout
from harness.history import History
from harness.knock import knock
from harness.model import FenceMark, SnapshotId


class Deaf(FakePipeline):
    """A pipeline whose jobs hear nothing before probe number `hears`; each probe has its number as key.

    The first `refusals` looks into the sink fail.
    """

    def __init__(self, *, hears: int, refusals: int = 0) -> None:
        super().__init__(Calls())
        self.hears = hears
        self.refusals = refusals
        self.probes = 0
        self.workload.probe = self.probe  # type: ignore[method-assign]

    def probe(self) -> tuple[FenceMark, ...]:
        self.probes += 1
        return tuple(
            replace(factories.mark(table, 0), key=self.probes, committed_at_ms=self.probes)
            for table in ("orders", "behavior-log")
        )

    def shows(self, mark: FenceMark, snapshot: SnapshotId) -> bool:
        self.refusals -= 1
        if self.refusals >= 0:
            raise ReaderError("no such table yet")
        return int(mark.key) >= self.hears


def told(pipeline: FakePipeline, *, every_s: float = 0, timeout_s: float = 10) -> Sequence[str]:
    history = History(FakeListener())
    knock(pipeline, pipeline.fake_jobs, history, timeout_s=timeout_s, every_s=every_s)
    return [event.text for event in history.events()]


def test_probes_are_committed_again_until_one_has_arrived() -> None:
    pipeline = Deaf(hears=3)

    assert ["probe 3 of 3 arrived first, committed at 3 ms"] == told(pipeline)


def test_a_probe_gets_some_time_to_arrive_before_there_is_another() -> None:
    pipeline = Deaf(hears=1, refusals=2)

    assert ["probe 1 of 1 arrived first, committed at 1 ms"] == told(pipeline, every_s=60)


def test_a_job_that_hears_nothing_is_told_with_the_probes_that_were_committed() -> None:
    pipeline = Deaf(hears=1_000_000)
    with pytest.raises(WaitTimeout, match=r"for a probe row in every sink; last seen: [1-9]\d* probes"):
        told(pipeline, timeout_s=0.4)


def test_a_sink_without_a_snapshot_has_no_probe() -> None:
    pipeline = Deaf(hears=1)
    pipeline.has_snapshots = False
    with pytest.raises(WaitTimeout):
        told(pipeline, timeout_s=0.1)


def test_a_job_that_ends_is_not_knocked_at_any_longer() -> None:
    pipeline = Deaf(hears=1_000_000)
    pipeline.fake_jobs[1].ended = "FAILED"
    with pytest.raises(JobEnded):
        told(pipeline)
