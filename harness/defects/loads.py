"""Defects of the load: nothing was committed when it mattered, so that nothing could have gone wrong."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from harness.defects.aggregates import sums_of
from harness.defects.counts import growth, recounted
from harness.defects.defect import Defect, unknown
from harness.defects.files import read, write
from harness.defects.parts import any_of, history_of, put
from harness.errors import NoPlace
from harness.ledger import OPERATION_SCHEMA, state_after
from harness.model import Evidence, Fence, TableContract
from harness.oracles.comparison import totals
from harness.replay import DELTA


def no_load_during_a_fault(evidence: Evidence, rng: random.Random) -> Evidence:
    """Nothing was committed while a fault was on: there was nothing that it could have hurt."""
    proof = any_of([proof for proof in evidence.faults if proof.injected_at_ms > 0], rng, "fault")
    until = max(proof.healed_at_ms, proof.recovered_at_ms)
    moved = 0
    for contract in evidence.tables:
        ledger = read(evidence, contract.ledger_file)
        at = ledger["committed_at_ms"]
        during = pc.and_(pc.greater_equal(at, proof.injected_at_ms), pc.less_equal(at, until))
        moved += pc.sum(during).as_py() or 0
        earlier = pc.if_else(during, pa.scalar(proof.injected_at_ms - 1, pa.int64()), at)
        place = ledger.column_names.index("committed_at_ms")
        write(evidence, contract.ledger_file, ledger.set_column(place, "committed_at_ms", earlier))
    if not moved:
        raise NoPlace("nothing was committed during that fault anyhow")
    return evidence


def no_load_before_the_last_fence(evidence: Evidence, rng: random.Random) -> Evidence:
    """After the last fence but one the workload stood still: only the last marker was committed."""
    for contract in evidence.tables:
        evidence = _silenced(evidence, contract)
    return evidence


def _silenced(evidence: Evidence, contract: TableContract) -> Evidence:
    """One table whose source committed nothing but a marker between its last two fences."""
    fences = evidence.fences_of(contract.name)
    if len(fences) < 2:
        raise NoPlace(f"{contract.name} has fewer than two fences")
    before, last = fences[-2:]
    until = before.mark.operation
    silent, ledger = _without_the_chapter(evidence, contract, before, last)
    state = state_after(ledger, until + 1, key=contract.source_key)
    seen = totals(state, last.window, contract)
    evidence = replace(
        silent,
        fences=put(
            silent.fences,
            last,
            mark=replace(last.mark, operation=until + 1),
            source=replace(last.source, totals=seen),
            sink=tuple(replace(reading, totals=seen) for reading in last.sink),
            job=last.job and replace(last.job, source_records=1),
        ),
        travels=tuple(
            replace(
                travel,
                by_time=replace(travel.by_time, totals=seen),
                by_id=replace(travel.by_id, totals=seen),
            )
            if (travel.table, travel.fence) == (contract.name, last.mark.number)
            else travel
            for travel in silent.travels
        ),
        states=tuple(
            replace(kept, committed=until)
            if kept.table == contract.name and kept.committed >= until
            else kept
            for kept in silent.states
        ),
    )
    shown = [last.source_rows, last.sink_rows]
    shown += [
        t.sink_rows for t in evidence.travels if (t.table, t.fence) == (contract.name, last.mark.number)
    ]
    for file in filter(None, shown):
        _rewrite(evidence, file, state)
    for kept in evidence.states:
        if kept.table == contract.name and kept.committed == until and kept.sink_rows:
            _rewrite(evidence, kept.sink_rows, state_after(ledger, until, key=contract.source_key))
    return evidence


def _without_the_chapter(
    evidence: Evidence, contract: TableContract, before: Fence, last: Fence
) -> tuple[Evidence, pa.Table]:
    """The evidence with ledger, binlog and history cut short, and the ledger."""
    until = before.mark.operation
    ledger = read(evidence, contract.ledger_file)
    if last.mark.operation == until + 1:
        raise NoPlace("nothing was committed between the last two fences anyhow")
    marker = ledger.slice(last.mark.operation - 1, 1).set_column(
        0, OPERATION_SCHEMA.field("operation"), pa.array([until + 1], pa.int64())
    )
    ledger = pa.concat_tables([ledger.slice(0, until), marker])
    write(evidence, contract.ledger_file, ledger)
    for log in evidence.binlogs:
        if log.table == contract.name and log.operations:
            rows = read(evidence, log.operations)
            write(
                evidence,
                log.operations,
                pa.concat_tables([rows.slice(0, until), rows.slice(last.mark.operation - 1, 1)]),
            )
    _cut_sums(evidence, contract, ledger, until)
    history = history_of(evidence, contract.name)
    grown = {}
    for file in filter(None, (history.changes, history.changelog)):
        rows = read(evidence, file)
        of_marker = pc.and_(
            pc.equal(rows[contract.source_key], marker[contract.source_key][0]),
            pc.less_equal(rows["snapshot_id"], last.snapshot_id),
        )
        kept = rows.filter(pc.or_(pc.less_equal(rows["snapshot_id"], before.snapshot_id), of_marker))
        write(evidence, file, kept)
        grown[file] = growth(_deltas(rows), _deltas(kept))
    return (
        recounted(
            evidence,
            contract.name,
            deltas=grown[history.changes],
            changelogs=grown.get(history.changelog, {}),
        ),
        ledger,
    )


def _cut_sums(evidence: Evidence, contract: TableContract, ledger: pa.Table, until: int) -> None:
    """Let no sums be of more than all that was committed."""
    for kept in evidence.aggregates:
        if kept.table == contract.name and kept.rows and contract.aggregate:
            rows, all_of_it = read(evidence, kept.rows), sums_of(ledger, contract.aggregate)
            counted = rows.group_by("snapshot_id").aggregate([(contract.aggregate.count, "sum")])
            beyond = pc.greater(counted[f"{contract.aggregate.count}_sum"], until)
            ids = counted.filter(beyond)["snapshot_id"].to_pylist()
            others = [
                all_of_it.add_column(
                    0, "snapshot_id", pa.repeat(pa.scalar(number, pa.int64()), len(all_of_it))
                )
                .select(rows.column_names)
                .cast(rows.schema)
                for number in sorted(ids)
            ]
            fewer = rows.filter(pc.invert(pc.is_in(rows["snapshot_id"], value_set=pa.array(ids, pa.int64()))))
            write(evidence, kept.rows, pa.concat_tables([fewer, *others]))


def _deltas(rows: pa.Table) -> pa.Table:
    return rows.filter(pc.equal(rows["part"], DELTA)) if "part" in rows.column_names else rows


def _rewrite(evidence: Evidence, file: str, rows: pa.Table) -> None:
    old = read(evidence, file).schema
    write(evidence, file, rows.select(old.names).cast(pa.schema([f.with_nullable(True) for f in old])))


DEFECTS: tuple[Defect, ...] = (
    unknown(no_load_during_a_fault, "fault_effect"),
    unknown(no_load_before_the_last_fence, "fault_effect"),
)
