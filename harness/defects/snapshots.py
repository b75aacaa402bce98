"""Defects that only the history shows: a wrong state that healed before a fence, or came by compaction."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc

from harness.defects.defect import Defect, invalid
from harness.defects.parts import appended, keyed
from harness.defects.sink import Sink
from harness.defects.source import LIVES, QUIET
from harness.errors import NoPlace
from harness.model import Evidence
from harness.replay import rows_at


def row_deleted_and_put_back(evidence: Evidence, rng: random.Random) -> Evidence:
    """A row is gone at one snapshot between two fences, and there again at the next."""
    sink = Sink(evidence, keyed(evidence))
    at = sink.between_fences(rng)
    held = sink.at(at)
    gone = rng.randrange(held.num_rows)
    sink.hold(at, pa.concat_tables([held.slice(0, gone), held.slice(gone + 1)]))
    return sink.settled()


def change_one_snapshot_late(evidence: Evidence, rng: random.Random) -> Evidence:
    """One change of a checkpoint comes a snapshot later than those that were made after it."""
    sink = Sink(evidence, keyed(evidence))
    at = sink.between_fences(rng)
    delta = sink.changes.filter(pc.equal(sink.changes["snapshot_id"], at))
    early = delta.sort_by("sequence").slice(0, 1)
    kept = sink.selected(
        f'SELECT * FROM changes WHERE NOT (snapshot_id = ? AND "{sink.contract.source_key}" = ?)',
        at,
        early[sink.contract.source_key][0].as_py(),
    )
    sink.hold(at, rows_at(kept, at, sink.contract))
    return sink.settled()


def snapshots_in_the_wrong_order(evidence: Evidence, rng: random.Random) -> Evidence:
    """What two snapshots brought came in the wrong order."""
    sink = Sink(evidence, keyed(evidence))
    at = sink.between_fences(rng, next_brings=True)
    order = "CASE snapshot_id WHEN {0} THEN {1} WHEN {1} THEN {0} ELSE snapshot_id END".format(at, at + 1)
    turned = sink.selected(f"SELECT * REPLACE ({order} AS snapshot_id) FROM changes")
    sink.hold(at, rows_at(turned, at, sink.contract))
    return sink.settled()


def rolled_back_and_caught_up(evidence: Evidence, rng: random.Random) -> Evidence:
    """A snapshot holds what an older one held, and the next one catches up."""
    sink = Sink(evidence, keyed(evidence))
    at = sink.between_fences(rng, last_brought=True)
    sink.hold(at, sink.at(at - 2))
    return sink.settled()


def partition_one_checkpoint_behind(evidence: Evidence, rng: random.Random) -> Evidence:
    """At one snapshot one partition is as it was at the snapshot before."""
    sink = Sink(evidence, keyed(evidence))
    name, at = sink.contract.partition, sink.between_fences(rng, partitions=2)
    changed = sink.changes.filter(pc.equal(sink.changes["snapshot_id"], at))
    behind = sorted(set(changed[name].to_pylist()))[0]
    now, before = sink.at(at), sink.at(at - 1)
    others = now.filter(pc.not_equal(now[name], behind))
    sink.hold(at, pa.concat_tables([others, before.filter(pc.equal(before[name], behind))]))
    return sink.settled()


def compaction_drops_a_row(evidence: Evidence, rng: random.Random) -> Evidence:
    """A row is gone since a compaction, which should change nothing."""
    sink = Sink(evidence, keyed(evidence))
    at = _compaction(sink, rng)
    sink.correct(at, "-D", _quiet_row(sink, at, rng))
    return sink.settled()


def compaction_brings_a_row_back(evidence: Evidence, rng: random.Random) -> Evidence:
    """A row that was deleted is there again since a compaction."""
    sink = Sink(evidence, keyed(evidence))
    at = _compaction(sink, rng)
    key, held = sink.contract.source_key, sink.at(at)
    until = max([fence.mark.operation for fence in sink.fences if fence.snapshot_id <= at], default=0)
    deleted = sink.source.operations(f"kind = 'delete' AND {QUIET}", until=until)
    there = set(held[key].to_pylist())
    rows = [sink.source.row(number) for number in rng.sample(deleted, min(len(deleted), 20))]
    rows = [row for row in rows if row[key] not in there]
    if not rows:
        raise NoPlace(f"no row of {sink.contract.name} was deleted before snapshot {at}")
    sink.correct(at, "+I", rows[0])
    return sink.settled()


def compaction_doubles_a_row(evidence: Evidence, rng: random.Random) -> Evidence:
    """A row of the append-only table is there twice since a compaction."""
    sink = Sink(evidence, appended(evidence))
    at = _compaction(sink, rng)
    held = sink.at(at)
    sink.correct(at, "+I", held.slice(rng.randrange(held.num_rows), 1).to_pylist()[0])
    return sink.settled()


def _compaction(sink: Sink, rng: random.Random) -> int:
    """A COMPACT snapshot between the first fence and the last that was read whole."""
    found = [
        record.snapshot_id
        for record in sink.records
        if record.kind == "COMPACT"
        and record.snapshot_id in sink.history.whole
        and sink.history.base_snapshot < record.snapshot_id <= sink.last.snapshot_id
    ]
    if not found:
        raise NoPlace(f"{sink.contract.name} was not compacted between its first and its last fence")
    return rng.choice(found)


def _quiet_row(sink: Sink, at: int, rng: random.Random) -> dict[str, object]:
    """A row that a snapshot holds and that no later one changes."""
    key = sink.contract.source_key
    until = max([fence.mark.operation for fence in sink.fences if fence.snapshot_id <= at], default=0)
    (operation,) = sink.source.pick(rng, LIVES, until=until)
    held = sink.at(at)
    (row,) = held.filter(pc.equal(held[key], sink.source.row(operation)[key])).to_pylist()
    return dict(row)


DEFECTS: tuple[Defect, ...] = (
    invalid(row_deleted_and_put_back, "snapshot_prefix"),
    invalid(change_one_snapshot_late, "snapshot_prefix"),
    invalid(snapshots_in_the_wrong_order, "snapshot_prefix"),
    invalid(rolled_back_and_caught_up, "snapshot_prefix"),
    invalid(partition_one_checkpoint_behind, "snapshot_prefix", "partition_atomicity"),
    invalid(compaction_drops_a_row, "snapshot_prefix", "reconciliation"),
    invalid(compaction_brings_a_row_back, "snapshot_prefix", "reconciliation"),
    invalid(compaction_doubles_a_row, "snapshot_prefix", "append_exactly_once"),
)
