"""Defects of the sums that a job keeps of an append-only table: what is applied twice can't hide there."""

from __future__ import annotations

import random
from dataclasses import replace

import duckdb
import pyarrow as pa

from harness.defects.defect import Defect, invalid, unknown
from harness.defects.files import read, write
from harness.defects.parts import last_fence
from harness.defects.source import Source
from harness.errors import NoPlace
from harness.model import Aggregate, AggregateContract, Evidence, TableContract


def operation_summed_twice(evidence: Evidence, rng: random.Random) -> Evidence:
    """A row was added to the sums twice."""
    return _applied(evidence, rng, times=1)


def operation_not_summed(evidence: Evidence, rng: random.Random) -> Evidence:
    """A row was never added to the sums."""
    return _applied(evidence, rng, times=-1)


def sums_unread(evidence: Evidence, rng: random.Random) -> Evidence:
    """The sums that the job keeps were not read."""
    _, aggregate, _ = _kept(evidence)
    return _with(evidence, aggregate, replace(aggregate, rows="", error="timed out"))


def sums_of(ledger: pa.Table, contract: AggregateContract) -> pa.Table:
    """The sums of all operations of a ledger."""
    names = ", ".join(f'"{name}"' for name in contract.groups)
    with duckdb.connect(":default:").cursor() as database:
        database.register("ledger", ledger)
        found: pa.Table = database.sql(
            f'SELECT {names}, count(*) AS "{contract.count}", sum("{contract.summed}")::BIGINT '
            f'AS "{contract.total}" FROM ledger GROUP BY ALL ORDER BY ALL'
        ).to_arrow_table()
    return found


def _applied(evidence: Evidence, rng: random.Random, *, times: int) -> Evidence:
    """An operation counts so many times more, from the snapshot on that the last fence's sums are of."""
    table, aggregate, contract = _kept(evidence)
    fence = last_fence(evidence, table.name)
    at_fence = (table.name, fence.snapshot_id)
    commits = [r.commit_identifier for r in evidence.snapshots if (r.table, r.snapshot_id) == at_fence]
    since = [r.snapshot_id for r in aggregate.snapshots if commits and r.commit_identifier <= commits[0]][-1:]
    if not since:
        raise NoPlace(f"it is not known which sums of {table.name} are those of its last fence")
    source = Source(evidence, table)
    (operation,) = source.pick(rng, f'"{contract.summed}" <> 0', until=fence.mark.operation)
    row = source.row(operation)
    here = " AND ".join(["snapshot_id >= ?", *(f'"{name}" = ?' for name in contract.groups)])
    rows = read(evidence, aggregate.rows)
    with duckdb.connect(":default:").cursor() as database:
        database.register("sums", rows)
        found: pa.Table = database.sql(
            f'SELECT * REPLACE ("{contract.count}" + {times} * ({here})::INT AS "{contract.count}", '
            f'"{contract.total}" + ? * ({here})::INT AS "{contract.total}") FROM sums',
            params=[
                *(key := [since[0], *(row[name] for name in contract.groups)]),
                times * row[contract.summed],
                *key,
            ],
        ).to_arrow_table()
    write(evidence, aggregate.rows, found.cast(rows.schema))
    return evidence


def _kept(evidence: Evidence) -> tuple[TableContract, Aggregate, AggregateContract]:
    for table in evidence.tables:
        for aggregate in evidence.aggregates:
            if table.aggregate and aggregate.table == table.name and aggregate.rows:
                return table, aggregate, table.aggregate
    raise NoPlace("no job of the run keeps sums")


def _with(evidence: Evidence, old: Aggregate, new: Aggregate) -> Evidence:
    return replace(evidence, aggregates=tuple(new if one is old else one for one in evidence.aggregates))


DEFECTS: tuple[Defect, ...] = (
    invalid(operation_summed_twice, "apply_once"),
    invalid(operation_not_summed, "apply_once"),
    unknown(sums_unread, "apply_once"),
)
