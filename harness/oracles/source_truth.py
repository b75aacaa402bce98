"""Oracle: the ledger is what the source really holds, so that a bug of ours can't be blamed on the pipeline.

It can't see a change that was made and undone between two fences by somebody else.
"""

from __future__ import annotations

from harness.model import Check, Evidence, Finding, OracleResult, PartitionTotals, Severity, Verdict
from harness.oracles.comparison import against_source, ledger_of

NAME = "source_truth"


def judge(evidence: Evidence) -> OracleResult:
    """At each fence the ledger's state equals the source table, row by row and in the guide's sums.

    Never INVALID: a ledger that is not the source says nothing about the sink.
    """
    findings: list[Finding] = []
    checks: list[Check] = []
    outcome = evidence.workload
    if outcome is None or outcome.error or outcome.unresolved:
        findings.append(
            Finding(
                code="workload-broken",
                severity=Severity.ERROR,
                what="the workload did not end as it should, so it is not known what the source committed",
                expected="every transaction resolved, no error",
                actual=(outcome.error or f"unresolved transactions {outcome.unresolved}")
                if outcome
                else "no outcome",
                todo="see logs/source.log",
            )
        )
    examined = 0
    ledger = ledger_of(evidence)
    for fence in evidence.fences:
        where = f"fence {fence.mark.number}"
        compared = against_source(evidence, ledger, fence)
        found, sums = compared.rows, compared.sums
        if fence.source.error or found is None:
            findings.append(
                Finding(
                    code="source-unread",
                    severity=Severity.ERROR,
                    what="the source could not be read at a fence",
                    where=where,
                    actual=fence.source.error or "no rows kept",
                )
            )
            continue
        examined += found.rows_actual
        checks.append(
            Check(
                name=f"{where}: the source's rows are the ledger's",
                expected=f"{found.rows_expected} rows",
                actual=f"{found.rows_actual} rows; {found}",
                held=found.is_empty,
            )
        )
        checks.append(
            Check(
                name=f"{where}: the source's own sums are the ledger's",
                expected=_line(sums),
                actual=_line(fence.source.totals),
                held=compared.sums_agree,
            )
        )
        if not (found.is_empty and compared.sums_agree):
            findings.append(
                Finding(
                    code="ledger-is-not-source",
                    severity=Severity.ERROR,
                    what="ledger and source disagree: someone else writes there, or the harness is wrong",
                    where=where,
                    expected=f"{found.rows_expected} rows as in the ledger",
                    actual=str(found),
                    examples=found.examples,
                )
            )
    verdict = Verdict.VALID if examined and not findings else Verdict.UNKNOWN
    return OracleResult(
        oracle=NAME,
        verdict=verdict,
        examined=examined,
        unit="source rows",
        checks=tuple(checks),
        findings=tuple(findings),
    )


def _line(sums: tuple[PartitionTotals, ...]) -> str:
    rows = sum(total.rows for total in sums)
    window = sum(total.window_keys for total in sums)
    return f"{len(sums)} partitions, {rows} rows, {window} keys in the window"
