"""Defects of the history that was read: what is not known of snapshots proves nothing about them."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from harness.defects.defect import Defect, unknown
from harness.defects.files import remove, write
from harness.defects.parts import history_of, keyed, put, some, without
from harness.defects.sink import Sink
from harness.errors import NoPlace
from harness.model import Evidence, SnapshotGap
from harness.replay import corrections


def snapshot_expired(evidence: Evidence, rng: random.Random) -> Evidence:
    """A snapshot between two fences had expired before it could be read, and the next was read whole."""
    sink = Sink(evidence, some(evidence))
    history, at = sink.history, sink.between_fences(rng)
    known = sink.changes.filter(pc.not_equal(sink.changes["snapshot_id"], at))
    corrected = corrections(known, sink.at(at + 1), at + 1, sink.contract)
    write(evidence, history.changes, pa.concat_tables([known, corrected]))
    if history.changelog:
        write(
            evidence,
            history.changelog,
            sink.changelog.filter(pc.not_equal(sink.changelog["snapshot_id"], at)),
        )
    gap = SnapshotGap(snapshot_id=at, error="it is expired: the table has no such snapshot any more")
    return replace(
        evidence,
        snapshots=tuple(
            record
            for record in evidence.snapshots
            if (record.table, record.snapshot_id) != (history.table, at)
        ),
        histories=put(
            evidence.histories,
            history,
            gaps=(*history.gaps, gap),
            whole=tuple(sorted({*history.whole, at + 1})),
        ),
    )


def history_unread(evidence: Evidence, rng: random.Random) -> Evidence:
    """The snapshots of a table could not be read at the end."""
    history = history_of(evidence, some(evidence).name)
    return replace(
        evidence,
        histories=put(
            evidence.histories,
            history,
            base_snapshot=0,
            whole=(),
            changes="",
            changelog="",
            error="timed out",
        ),
    )


def history_of_a_table_missing(evidence: Evidence, rng: random.Random) -> Evidence:
    """Nothing at all was kept of a table's snapshots."""
    return replace(evidence, histories=without(evidence.histories, history_of(evidence, some(evidence).name)))


def whole_reads_skipped(evidence: Evidence, rng: random.Random) -> Evidence:
    """No snapshot but the first was read whole, so that nothing confirms the deltas."""
    history = history_of(evidence, some(evidence).name)
    return replace(evidence, histories=put(evidence.histories, history, whole=(history.base_snapshot,)))


def changelog_unread(evidence: Evidence, rng: random.Random) -> Evidence:
    """The table has a changelog, and it was not read."""
    history = history_of(evidence, keyed(evidence).name)
    if not history.changelog:
        raise NoPlace(f"{history.table} has no changelog")
    return replace(evidence, histories=put(evidence.histories, history, changelog=""))


def history_file_missing(evidence: Evidence, rng: random.Random) -> Evidence:
    """The file with what each snapshot brought is not there any more."""
    remove(evidence, history_of(evidence, some(evidence).name).changes)
    return evidence


DEFECTS: tuple[Defect, ...] = (
    unknown(snapshot_expired, "snapshot_prefix", "partition_atomicity"),
    unknown(history_unread, "snapshot_prefix", "partition_atomicity", "changelog"),
    unknown(history_of_a_table_missing, "snapshot_prefix", "partition_atomicity", "changelog"),
    unknown(whole_reads_skipped, "snapshot_prefix", "partition_atomicity"),
    unknown(changelog_unread, "changelog"),
    unknown(history_file_missing, "snapshot_prefix"),
)
