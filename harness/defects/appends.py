"""Defects of an append-only table: duplicates and losses, which no key hides."""

from __future__ import annotations

import random
from itertools import pairwise

import pyarrow.compute as pc

from harness.defects.defect import Defect, invalid
from harness.defects.parts import appended
from harness.defects.sink import Sink
from harness.errors import NoPlace
from harness.model import Evidence


def row_appended_twice(evidence: Evidence, rng: random.Random) -> Evidence:
    """A row is appended once more by a later snapshot."""
    sink = Sink(evidence, appended(evidence))
    (operation,) = sink.source.pick(rng, "true", until=sink.last.mark.operation - 1)
    sink.put(sink.snapshot_of_last(), sink.source.row(operation))
    return sink.settled()


def row_never_appended(evidence: Evidence, rng: random.Random) -> Evidence:
    """A row of the source never reaches the log."""
    sink = Sink(evidence, appended(evidence))
    (operation,) = sink.source.pick(rng, "true", after=sink.before_last, until=sink.last.mark.operation)
    key = sink.source.row(operation)[sink.contract.source_key]
    sink.drop(f'"{sink.contract.source_key}" = ?', key)
    return sink.settled()


def block_appended_twice(evidence: Evidence, rng: random.Random) -> Evidence:
    """After a restart from an older state the rows of a whole snapshot are appended once more."""
    sink = Sink(evidence, appended(evidence))
    struck = max((proof.injected_at_ms for proof in evidence.faults), default=0)
    committed = {record.snapshot_id: record.committed_at_ms for record in sink.records}
    brought = sink.brought(until=sink.last.snapshot_id)
    pairs = [
        (block, again)
        for block, again in pairwise(brought)
        if committed[again] > struck and again > sink.history.base_snapshot
    ]
    if not pairs:
        raise NoPlace(f"no snapshot of {sink.contract.name} brought rows after the last fault")
    block, again = rng.choice(pairs)
    rows = sink.changes.filter(pc.equal(sink.changes["snapshot_id"], block)).select(sink.contract.columns)
    sink.put(again, *rows.to_pylist())
    return sink.settled()


def duplicate_taken_back(evidence: Evidence, rng: random.Random) -> Evidence:
    """A row is appended twice, and one of the two is gone again before the next fence."""
    sink = Sink(evidence, appended(evidence))
    at = sink.between_fences(rng)
    held = sink.at(at)
    row = held.slice(rng.randrange(held.num_rows), 1).to_pylist()[0]
    sink.hold(at, sink.rows_with(held, row))
    return sink.settled()


DEFECTS: tuple[Defect, ...] = (
    invalid(row_appended_twice, "reconciliation", "time_travel", "append_exactly_once", "snapshot_prefix"),
    invalid(row_never_appended, "reconciliation", "time_travel", "append_exactly_once", "snapshot_prefix"),
    invalid(block_appended_twice, "reconciliation", "time_travel", "append_exactly_once", "snapshot_prefix"),
    invalid(duplicate_taken_back, "append_exactly_once", "snapshot_prefix"),
)
