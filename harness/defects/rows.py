"""Defects of a primary-key table that are there at the last fence: its rows are not the source's."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.compute as pc

from harness.defects.defect import Defect, invalid
from harness.defects.parts import keyed
from harness.defects.sink import Sink
from harness.defects.source import LIVES, QUIET
from harness.errors import NoPlace
from harness.model import Evidence

_TRIED = 200
"""Rows that are looked at for two that go together."""


def row_lost(evidence: Evidence, rng: random.Random) -> Evidence:
    """An inserted row never reaches the sink."""
    sink = Sink(evidence, keyed(evidence))
    (operation,) = sink.source.pick(
        rng, f"kind = 'insert' AND {QUIET}", after=sink.before_last, until=sink.last.mark.operation
    )
    key = sink.source.row(operation)[sink.contract.source_key]
    sink.drop(f'"{sink.contract.source_key}" = ?', key)
    sink.unlog(f'"{sink.contract.source_key}" = ?', key)
    return sink.settled()


def row_added(evidence: Evidence, rng: random.Random) -> Evidence:
    """The sink has a row that the source never had."""
    sink = Sink(evidence, keyed(evidence))
    (operation,) = sink.source.pick(rng, LIVES, until=sink.last.mark.operation)
    key = pc.max(sink.source.ledger[sink.contract.source_key]).as_py() + 1
    sink.put(sink.snapshot_of_last(), sink.source.row(operation) | {sink.contract.source_key: key})
    return sink.settled()


def row_stale(evidence: Evidence, rng: random.Random) -> Evidence:
    """An update is lost: the row stays as it was before."""
    sink = Sink(evidence, keyed(evidence))
    (operation,) = sink.source.pick(
        rng,
        f"kind = 'update' AND {QUIET} AND NOT moved",
        after=sink.before_last,
        until=sink.last.mark.operation,
    )
    sink.put(sink.snapshot_of_last(), sink.source.row_before(operation))
    return sink.settled()


def row_restored(evidence: Evidence, rng: random.Random) -> Evidence:
    """A deleted row comes back."""
    sink = Sink(evidence, keyed(evidence))
    (operation,) = sink.source.pick(rng, f"kind = 'delete' AND {QUIET}", until=sink.last.mark.operation)
    sink.put(sink.snapshot_of_last(), sink.source.row(operation))
    return sink.settled()


def amounts_swapped(evidence: Evidence, rng: random.Random) -> Evidence:
    """Two rows of a partition have each other's amount, so that every sum is right."""
    sink = Sink(evidence, keyed(evidence))
    contract, window = sink.contract, sink.last.window
    found = sink.source.operations(LIVES, until=sink.last.mark.operation)
    rows = [sink.source.row(number) for number in rng.sample(found, min(_TRIED, len(found)))]
    for one, other in ((one, other) for one in rows for other in rows):
        alike = all(
            row[contract.partition] == one[contract.partition]
            and window.start <= row[contract.time] <= window.end
            for row in (one, other)
        )
        if alike and one[contract.amount] != other[contract.amount]:
            sink.put(
                sink.snapshot_of_last(),
                one | {contract.amount: other[contract.amount]},
                other | {contract.amount: one[contract.amount]},
            )
            return sink.settled()
    raise NoPlace(f"{contract.name} has no two rows of a partition with other amounts in the last window")


def status_changed(evidence: Evidence, rng: random.Random) -> Evidence:
    """One row has another value in a column that no sum counts."""
    sink = Sink(evidence, keyed(evidence))
    contract, types = sink.contract, sink.source.ledger.schema
    told = {contract.source_key, contract.partition, contract.amount, contract.time}
    plain = [
        name for name in contract.columns if name not in told and pa.types.is_integer(types.field(name).type)
    ]
    if not plain:
        raise NoPlace(f"{contract.name} has no column of whole numbers that no sum counts")
    (operation,) = sink.source.pick(rng, LIVES, until=sink.last.mark.operation)
    row = sink.source.row(operation)
    sink.put(sink.snapshot_of_last(), row | {plain[-1]: (row[plain[-1]] or 0) + 1})
    return sink.settled()


def amount_rounded(evidence: Evidence, rng: random.Random) -> Evidence:
    """One amount has lost its cents."""
    sink = Sink(evidence, keyed(evidence))
    amount = sink.contract.amount
    (operation,) = sink.source.pick(
        rng, f'{LIVES} AND "{amount}" <> round("{amount}", 0)', until=sink.last.mark.operation
    )
    row = sink.source.row(operation)
    whole = row[amount].to_integral_value().quantize(row[amount])
    sink.put(sink.snapshot_of_last(), row | {amount: whole})
    return sink.settled()


def times_shifted(evidence: Evidence, rng: random.Random) -> Evidence:
    """Every time is 8 hours off: another time zone."""
    sink = Sink(evidence, keyed(evidence))
    shifted = f'SELECT * REPLACE ("{sink.contract.time}" + INTERVAL 8 HOUR AS "{sink.contract.time}") FROM '
    sink.replace(sink.selected(f"{shifted} changes"))
    if sink.history.changelog:
        sink.emit(sink.selected(f"{shifted} changelog"))
    return sink.settled()


def row_in_two_partitions(evidence: Evidence, rng: random.Random) -> Evidence:
    """A row that moved to another partition is still in the old one, too."""
    sink = Sink(evidence, keyed(evidence))
    (operation,) = sink.source.pick(
        rng, f"kind = 'update' AND {QUIET} AND moved", until=sink.last.mark.operation
    )
    sink.put(sink.snapshot_of_last(), sink.source.row_before(operation))
    return sink.settled()


def partition_dropped(evidence: Evidence, rng: random.Random) -> Evidence:
    """A whole partition is gone."""
    sink = Sink(evidence, keyed(evidence))
    name, at = sink.contract.partition, sink.snapshot_of_last()
    held = sink.at(at)
    others = sorted(set(held[name].to_pylist()) - {sink.last.mark.partition})
    if not others:
        raise NoPlace(f"{sink.contract.name} has one partition only")
    sink.take(at, *held.filter(pc.equal(held[name], rng.choice(others))).to_pylist())
    return sink.settled()


_SEEN_BY = ("reconciliation", "time_travel", "snapshot_prefix")

DEFECTS: tuple[Defect, ...] = tuple(
    invalid(plant, *_SEEN_BY)
    for plant in (
        row_lost,
        row_added,
        row_stale,
        row_restored,
        amounts_swapped,
        status_changed,
        amount_rounded,
        times_shifted,
        row_in_two_partitions,
        partition_dropped,
    )
)
