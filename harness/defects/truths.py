"""Defects of what the sink is judged by: a ledger that is not what the source did, or not all of it."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa

from harness.defects.defect import Defect, unknown
from harness.defects.files import read, remove, write
from harness.defects.parts import last_fence, one, put, some, without
from harness.defects.source import LIVES, Source
from harness.errors import NoPlace
from harness.ledger import DELETE, INSERT
from harness.model import Binlog, Evidence


def ledger_altered(evidence: Evidence, rng: random.Random) -> Evidence:
    """The ledger says another amount than the source committed."""
    contract = some(evidence)
    source, fence = Source(evidence, contract), last_fence(evidence, contract.name)
    (operation,) = source.pick(rng, LIVES, until=fence.mark.operation)
    row = source.row(operation)
    write(
        evidence,
        contract.ledger_file,
        _with(source.ledger, operation - 1, {contract.amount: row[contract.amount] + 1}),
    )
    return evidence


def ledger_truncated(evidence: Evidence, rng: random.Random) -> Evidence:
    """The ledger ends before the last fence."""
    contract = some(evidence)
    ledger = read(evidence, contract.ledger_file)
    kept = last_fence(evidence, contract.name).mark.operation - rng.randrange(1, 10)
    write(evidence, contract.ledger_file, ledger.slice(0, max(kept, 0)))
    return evidence


def ledger_missing(evidence: Evidence, rng: random.Random) -> Evidence:
    """The file of a table's ledger is not there any more."""
    remove(evidence, some(evidence).ledger_file)
    return evidence


def foreign_write_undone(evidence: Evidence, rng: random.Random) -> Evidence:
    """Somebody else inserted a row into the source and deleted it again between two fences."""
    log = _binlog(evidence)
    rows, contract = read(evidence, log.operations), some(evidence)
    place = rng.randrange(1, rows.num_rows)
    row = rows.slice(place, 1).to_pylist()[0]
    row[contract.source_key] = 1 + max(rows[contract.source_key].to_pylist())
    strange = pa.Table.from_pylist([row | {"kind": INSERT}, row | {"kind": DELETE}], schema=rows.schema)
    write(evidence, log.operations, pa.concat_tables([rows.slice(0, place), strange, rows.slice(place)]))
    return evidence


def operations_in_another_order(evidence: Evidence, rng: random.Random) -> Evidence:
    """The source committed two changes in another order than the ledger says."""
    log = _binlog(evidence)
    rows = read(evidence, log.operations)
    place = rng.randrange(rows.num_rows - 1)
    turned = [rows.slice(0, place), rows.slice(place + 1, 1), rows.slice(place, 1), rows.slice(place + 2)]
    write(evidence, log.operations, pa.concat_tables(turned))
    return evidence


def binlog_unread(evidence: Evidence, rng: random.Random) -> Evidence:
    """The source's binlog could not be read."""
    return replace(
        evidence, binlogs=put(evidence.binlogs, _binlog(evidence), operations="", error="access denied")
    )


def binlog_of_a_table_missing(evidence: Evidence, rng: random.Random) -> Evidence:
    """Nothing at all was kept of a table's binlog."""
    return replace(evidence, binlogs=without(evidence.binlogs, _binlog(evidence)))


def source_unread(evidence: Evidence, rng: random.Random) -> Evidence:
    """The source could not be read at the last fence."""
    fence = last_fence(evidence, some(evidence).name)
    failed = replace(fence.source, totals=(), error="lost connection")
    return replace(evidence, fences=put(evidence.fences, fence, source=failed, source_rows=""))


def transaction_unresolved(evidence: Evidence, rng: random.Random) -> Evidence:
    """It is not known whether the source committed a transaction."""
    if evidence.workload is None:
        raise NoPlace("the run had no workload")
    number = rng.randrange(1, max(2, evidence.workload.transactions))
    return replace(evidence, workload=replace(evidence.workload, unresolved=(number,)))


def _binlog(evidence: Evidence) -> Binlog:
    name = some(evidence).name
    return one([log for log in evidence.binlogs if log.table == name and log.operations], f"binlog of {name}")


def _with(rows: pa.Table, place: int, values: dict[str, object]) -> pa.Table:
    """The rows, of which one has other values."""
    row = rows.slice(place, 1).to_pylist()[0] | values
    new = pa.Table.from_pylist([row], schema=rows.schema)
    return pa.concat_tables([rows.slice(0, place), new, rows.slice(place + 1)])


DEFECTS: tuple[Defect, ...] = (
    unknown(ledger_altered, "source_truth"),
    unknown(ledger_truncated, "source_truth"),
    unknown(ledger_missing, "source_truth"),
    unknown(foreign_write_undone, "source_truth"),
    unknown(operations_in_another_order, "source_truth"),
    unknown(binlog_unread, "source_truth"),
    unknown(binlog_of_a_table_missing, "source_truth"),
    unknown(source_unread, "source_truth"),
    unknown(transaction_unresolved, "source_truth"),
)
