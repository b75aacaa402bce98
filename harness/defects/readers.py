"""Defects of readers: one that fails, lies or is missing, two that agree on a lie, and what was not read."""

from __future__ import annotations

import random
from dataclasses import replace

from harness.defects.defect import Defect, invalid, unknown
from harness.defects.parts import last_fence, one, put, some
from harness.errors import NoPlace
from harness.model import Evidence, Fence, PartitionTotals, Reading, TimeTravel


def reader_without_an_answer(evidence: Evidence, rng: random.Random) -> Evidence:
    """One of the two readers finds no rows at all."""
    return _reading(evidence, _picked(evidence, rng), totals=())


def reader_that_lies(evidence: Evidence, rng: random.Random) -> Evidence:
    """One of the two readers counts a row too many."""
    reading = _picked(evidence, rng)
    return _reading(evidence, reading, totals=_one_more(reading.totals))


def readers_that_agree_on_a_lie(evidence: Evidence, rng: random.Random) -> Evidence:
    """Both readers count a row more than the source has."""
    fence = _last(evidence)
    sink = tuple(replace(reading, totals=_one_more(reading.totals)) for reading in fence.sink)
    return replace(evidence, fences=put(evidence.fences, fence, sink=sink))


def reader_failed(evidence: Evidence, rng: random.Random) -> Evidence:
    """One of the two readers failed at a fence."""
    return _reading(evidence, _picked(evidence, rng), totals=(), error="the gateway did not answer in 60 s")


def reader_missing(evidence: Evidence, rng: random.Random) -> Evidence:
    """A fence was read by one reader only, so that nothing confirms it."""
    fence = _last(evidence)
    return replace(evidence, fences=put(evidence.fences, fence, sink=(rng.choice(fence.sink),)))


def files_gone_at_a_fence(evidence: Evidence, rng: random.Random) -> Evidence:
    """The sink can't be read at the last fence: files that its snapshot refers to are gone."""
    fence = _last(evidence)
    sink = tuple(
        replace(reading, totals=(), error="FileNotFoundException: data-1.orc", files_missing=True)
        for reading in fence.sink
    )
    return replace(evidence, fences=put(evidence.fences, fence, sink=sink, sink_rows=""))


def rows_unread_at_a_fence(evidence: Evidence, rng: random.Random) -> Evidence:
    """The sink's sums were read at the last fence, and not its rows."""
    return replace(evidence, fences=put(evidence.fences, _last(evidence), sink_rows=""))


def marker_invisible(evidence: Evidence, rng: random.Random) -> Evidence:
    """The row that was committed last never became visible, and all that is older is there."""
    return replace(evidence, fences=put(evidence.fences, _last(evidence), visible=False, visible_at_ms=0))


def time_leads_elsewhere(evidence: Evidence, rng: random.Random) -> Evidence:
    """The time of a fence's snapshot leads to another snapshot, which Paimon does not say."""
    travel = _travel(evidence)
    return replace(evidence, travels=put(evidence.travels, travel, resolved_id=travel.resolved_id - 1))


def time_and_id_disagree(evidence: Evidence, rng: random.Random) -> Evidence:
    """By its time and by its id the same snapshot gives two answers."""
    travel = _travel(evidence)
    by_time = replace(travel.by_time, totals=_one_more(travel.by_time.totals))
    return replace(evidence, travels=put(evidence.travels, travel, by_time=by_time))


def snapshot_not_read_again(evidence: Evidence, rng: random.Random) -> Evidence:
    """A fence's snapshot was not read again at the end."""
    travel = _travel(evidence)
    return replace(evidence, travels=tuple(item for item in evidence.travels if item is not travel))


def _last(evidence: Evidence) -> Fence:
    fence = last_fence(evidence, some(evidence).name)
    if not fence.sink or not all(reading.totals for reading in fence.sink):
        raise NoPlace("no reader answered at the last fence")
    return fence


def _travel(evidence: Evidence) -> TimeTravel:
    table = some(evidence).name
    numbers = [fence.mark.number for fence in evidence.fences_of(table)]
    found = [item for item in evidence.travels if item.table == table and item.fence in numbers]
    return one(found, "fence that was travelled to")


def _picked(evidence: Evidence, rng: random.Random) -> Reading:
    return rng.choice(_last(evidence).sink)


def _reading(
    evidence: Evidence, old: Reading, *, totals: tuple[PartitionTotals, ...], error: str = ""
) -> Evidence:
    """The evidence with another answer of a reader at the last fence."""
    fence = _last(evidence)
    sink = tuple(
        replace(reading, totals=totals, error=error) if reading is old else reading for reading in fence.sink
    )
    return replace(evidence, fences=put(evidence.fences, fence, sink=sink))


def _one_more(totals: tuple[PartitionTotals, ...]) -> tuple[PartitionTotals, ...]:
    first, *others = totals
    return (replace(first, rows=first.rows + 1, keys=first.keys + 1), *others)


DEFECTS: tuple[Defect, ...] = (
    unknown(reader_without_an_answer, "reconciliation"),
    unknown(reader_that_lies, "reconciliation"),
    invalid(readers_that_agree_on_a_lie, "reconciliation"),
    unknown(reader_failed, "reconciliation"),
    unknown(reader_missing, "reconciliation"),
    invalid(files_gone_at_a_fence, "reconciliation"),
    unknown(rows_unread_at_a_fence, "reconciliation"),
    invalid(marker_invisible, "reconciliation"),
    unknown(time_leads_elsewhere, "time_travel"),
    unknown(time_and_id_disagree, "time_travel"),
    unknown(snapshot_not_read_again, "time_travel"),
)
