"""Oracle: the ledger is what the source really holds, so that a bug of ours can't be blamed on the pipeline.

It can't see a change that was made and undone between two fences by somebody else.
"""

from __future__ import annotations

from harness.model import Fence, OracleResult, PartitionTotals, Verdict
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.judgement import Judgement, require_every_fence

NAME = "source_truth"


def judge(exhibits: Exhibits) -> OracleResult:
    """At each fence each table's ledger equals its source, row by row and in the guide's sums.

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
    for table in exhibits.tables():
        for fence in table.fences:
            _compare(judgement, table, fence)
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


def _line(sums: tuple[PartitionTotals, ...]) -> str:
    rows = sum(total.rows for total in sums)
    window = sum(total.window_keys for total in sums)
    return f"{len(sums)} partitions, {rows} rows, {window} keys in the window"
