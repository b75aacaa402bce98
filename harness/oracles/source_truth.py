"""Oracle: the ledger is what the source really did, so that a bug of ours can't be blamed on the pipeline.

At each fence the ledger's state is compared with the source's rows; over the whole run its operations with
the row changes in the source's binlog, one by one and in order, so that a change that somebody else made and
undid between two fences shows too. It can't see what a session wrote without a binlog and undid.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from harness.model import Binlog, Fence, OracleResult, PartitionTotals, Verdict
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.judgement import Judgement, require_every_fence

NAME = "source_truth"


def judge(exhibits: Exhibits) -> OracleResult:
    """Each table's ledger equals its source at each fence, by rows and the guide's sums, and its binlog.

    Never INVALID: a ledger that is not the source says nothing about the sink.
    """
    judgement = Judgement(NAME, unit="source rows")
    evidence = exhibits.evidence
    outcome = evidence.workload
    if outcome is None or outcome.error or outcome.unresolved:
        judgement.find(
            Verdict.UNKNOWN,
            "workload-broken",
            "the workload did not end as it should, so it is not known what the source committed",
            expected="every transaction resolved, no error",
            actual=(outcome.error or f"unresolved transactions {outcome.unresolved}")
            if outcome
            else "no outcome",
            todo="see logs/source.log",
        )
    binlogs = {binlog.table: binlog for binlog in evidence.binlogs}
    for table in exhibits.tables():
        for fence in table.fences:
            _compare(judgement, table, fence)
        _compare_binlog(judgement, table, binlogs.get(table.name))
    require_every_fence(judgement, evidence, evidence.tables)
    return judgement.result()


def _compare(judgement: Judgement, table: OpenTable, fence: Fence) -> None:
    where = f"{table.name}, fence {fence.mark.number}"
    compared = table.at(fence)
    found, sums = compared.rows, compared.sums
    if fence.source.error or found is None:
        judgement.find(
            Verdict.UNKNOWN,
            "source-unread",
            "the source could not be read at a fence",
            where=where,
            actual=fence.source.error or "no rows kept",
        )
        return
    judgement.check_rows(f"{where}: the source's rows are the ledger's", found)
    judgement.check(
        f"{where}: the source's own sums are the ledger's",
        expected=_line(sums),
        actual=_line(fence.source.totals),
        held=compared.sums_agree,
    )
    if compared.contradiction:
        judgement.find(
            Verdict.UNKNOWN,
            "ledger-is-not-source",
            "ledger and source disagree: someone else writes there, or the harness is wrong",
            where=where,
            expected=f"{found.rows_expected} rows as in the ledger",
            actual=str(found),
            examples=found.examples,
        )


def _compare_binlog(judgement: Judgement, table: OpenTable, binlog: Binlog | None) -> None:
    """Compare every operation of the ledger with the binlog's; its rows are not counted as examined."""
    if binlog is None or binlog.error or not binlog.operations:
        judgement.find(
            Verdict.UNKNOWN,
            "binlog-unread",
            "the source's binlog was not read, so the order of what it committed is not confirmed",
            where=table.name,
            actual=(binlog.error if binlog else "") or "nothing kept",
        )
        return
    ledger = table.ledger.select(["kind", *table.contract.columns])
    logged = table.raw_rows(binlog.operations).select(ledger.column_names).cast(ledger.schema)
    first = _first_difference(ledger, logged)
    if judgement.check(
        f"{table.name}: the operations of the binlog are the ledger's, in order",
        expected=f"{ledger.num_rows} operations",
        actual=f"{logged.num_rows} operations"
        + ("" if first is None else f"; the first that differs is {first + 1}"),
        held=first is None,
    ):
        return
    place = first or 0
    extra = logged.num_rows - ledger.num_rows
    judgement.find(
        Verdict.UNKNOWN,
        "ledger-is-not-binlog",
        "ledger and binlog disagree: someone else writes there, or the harness is wrong",
        where=f"{table.name}, operation {place + 1}",
        expected=f"{ledger.num_rows} operations as in the ledger; here {_shown(ledger, place)}",
        actual=f"{logged.num_rows} operations ({extra:+}); here {_shown(logged, place)}",
        todo="nothing but the workload may write to its tables while a run is on",
    )


def _first_difference(one: pa.Table, other: pa.Table) -> int | None:
    """The place, from 0, of the first row that is not the same, or that one of them lacks; None for none."""
    if one.equals(other):
        return None
    shorter = min(one.num_rows, other.num_rows)
    places = [
        place
        for name in one.column_names
        if (place := _first_unequal(one[name].slice(0, shorter), other[name].slice(0, shorter))) >= 0
    ]
    return min(places, default=shorter)


def _first_unequal(one: pa.ChunkedArray, other: pa.ChunkedArray) -> int:
    """The first place at which two columns differ, -1 for none; nulls are equal."""
    no = pa.scalar(value=False)
    both_null = pc.and_(pc.is_null(one), pc.is_null(other))
    place: int = pc.index(pc.or_(pc.fill_null(pc.equal(one, other), no), both_null), no).as_py()
    return place


def _shown(operations: pa.Table, place: int) -> str:
    if place >= operations.num_rows:
        return "none"
    row = operations.slice(place, 1).to_pylist()[0]
    return f"{row.pop('kind')} {row}"


def _line(sums: tuple[PartitionTotals, ...]) -> str:
    rows = sum(total.rows for total in sums)
    window = sum(total.window_keys for total in sums)
    return f"{len(sums)} partitions, {rows} rows, {window} keys in the window"
