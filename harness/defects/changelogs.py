"""Defects of the changelog: what the table itself does not show, and a reader downstream gets."""

from __future__ import annotations

import random

import pyarrow as pa

from harness.defects.defect import Defect, invalid
from harness.defects.parts import keyed
from harness.defects.sink import Sink
from harness.errors import NoPlace
from harness.model import Evidence


def change_logged_twice(evidence: Evidence, rng: random.Random) -> Evidence:
    """An update was applied twice: the upsert swallowed it, the changelog has it twice."""
    sink = Sink(evidence, keyed(evidence))
    pair = _update(sink, rng)
    sink.emit(pa.concat_tables([sink.changelog, pair]))
    return sink.settled()


def wrong_row_retracted(evidence: Evidence, rng: random.Random) -> Evidence:
    """An update takes back another row than the one that was there."""
    sink = Sink(evidence, keyed(evidence))
    amount = sink.contract.amount
    before = _update(sink, rng).slice(0, 1)
    sink.emit(
        sink.selected(
            "SELECT * REPLACE (CASE WHEN rowkind = '-U' AND sequence = ? AND snapshot_id = ? "
            f'AND "{sink.contract.source_key}" = ? THEN "{amount}" + 1 ELSE "{amount}" END AS "{amount}") '
            "FROM changelog",
            *(before[name][0].as_py() for name in ("sequence", "snapshot_id", sink.contract.source_key)),
        )
    )
    return sink.settled()


def change_not_logged(evidence: Evidence, rng: random.Random) -> Evidence:
    """An update is in the table and not in the changelog."""
    sink = Sink(evidence, keyed(evidence))
    pair = _update(sink, rng)
    sink.unlog(
        f'"{sink.contract.source_key}" = ? AND snapshot_id = ? AND list_contains(?, sequence)',
        pair[sink.contract.source_key][0].as_py(),
        pair["snapshot_id"][0].as_py(),
        pair["sequence"].to_pylist(),
    )
    return sink.settled()


def retraction_not_logged(evidence: Evidence, rng: random.Random) -> Evidence:
    """An update is logged without the row that it takes back."""
    sink = Sink(evidence, keyed(evidence))
    before = _update(sink, rng).slice(0, 1)
    sink.unlog(
        f"rowkind = '-U' AND \"{sink.contract.source_key}\" = ? AND snapshot_id = ? AND sequence = ?",
        *(before[name][0].as_py() for name in (sink.contract.source_key, "snapshot_id", "sequence")),
    )
    return sink.settled()


def _update(sink: Sink, rng: random.Random) -> pa.Table:
    """The -U and the +U of an update: the only one of its key in a snapshot after the first fence."""
    key, log = sink.contract.source_key, sink.changelog
    found = sink.selected(
        f"""
        SELECT * FROM changelog WHERE snapshot_id > ?
        WINDOW of_key AS (PARTITION BY snapshot_id, "{sink.contract.partition}", "{key}")
        QUALIFY count(*) OVER of_key = 2 AND count(*) FILTER (WHERE rowkind = '-U') OVER of_key = 1
            AND count(*) FILTER (WHERE rowkind = '+U') OVER of_key = 1
        ORDER BY snapshot_id, "{key}", rowkind DESC
        """,
        sink.history.base_snapshot,
    )
    if not found.num_rows:
        raise NoPlace(f"the changelog of {sink.contract.name} has no update after the first fence")
    return found.slice(2 * rng.randrange(found.num_rows // 2), 2).cast(log.schema)


DEFECTS: tuple[Defect, ...] = tuple(
    invalid(plant, "changelog")
    for plant in (change_logged_twice, wrong_row_retracted, change_not_logged, retraction_not_logged)
)
