"""Oracle: primary-key reconciliation at each fence (guide §5.1, method 1), made exact.

The guide's two queries by two independent readers, with the same predicates on both sides, then every
row key by key. It can't see a wrong state that healed before the fence, nor a change applied twice with
the same outcome: an upsert swallows both.
"""

from __future__ import annotations

from harness.model import (
    Check,
    Evidence,
    Fence,
    Finding,
    OracleResult,
    PartitionTotals,
    Reading,
    Severity,
    Verdict,
    worst,
)
from harness.oracles.comparison import AgainstSource, against_source, difference, ledger_of, rows_of

NAME = "primary_key"


def judge(evidence: Evidence) -> OracleResult:
    """VALID when at every fence both readers and every row agree with the ledger."""
    ledger = ledger_of(evidence)
    verdicts, checks, findings, examined = [], [], [], 0
    for fence in evidence.fences:
        judged = _Fence(evidence, fence, against_source(evidence, ledger, fence))
        verdicts.append(judged.verdict())
        checks += judged.checks
        findings += judged.findings
        examined += judged.examined
    if not examined and worst(verdicts) is Verdict.VALID:
        verdicts.append(Verdict.UNKNOWN)
    return OracleResult(
        oracle=NAME,
        verdict=worst(verdicts),
        examined=examined,
        unit="sink rows",
        checks=tuple(checks),
        findings=tuple(findings),
    )


class _Fence:
    """One fence under judgement; collects checks and findings, each with what it means."""

    def __init__(self, evidence: Evidence, fence: Fence, source: AgainstSource) -> None:
        self._evidence = evidence
        self._fence = fence
        self._source = source
        self._sums = source.sums
        self._verdicts: list[Verdict] = []
        self.checks: list[Check] = []
        self.findings: list[Finding] = []
        self.examined = 0

    def verdict(self) -> Verdict:
        fence = self._fence
        if not self._ledger_is_source():
            return Verdict.UNKNOWN
        if not fence.visible:
            self._find(
                Verdict.INVALID,
                "marker-lost",
                "the marker row, committed last, never became visible although checkpoints completed",
                expected=f"key {fence.mark.key} in snapshot {fence.snapshot_id}",
                actual="not there",
            )
        if not sum(total.window_keys for total in self._sums):
            self._find(
                Verdict.UNKNOWN, "window-empty", "the time window holds no row, so it compares nothing"
            )
        readers = {reading.reader for reading in fence.sink}
        if len(readers) < 2:
            self._find(
                Verdict.UNKNOWN,
                "reader-missing",
                "fewer than two readers were asked, so none is confirmed by another",
                expected="2 readers",
                actual=", ".join(sorted(readers)) or "none",
            )
        for reading in fence.sink:
            self._reading(reading)
        if len({reading.totals for reading in fence.sink if not reading.error}) > 1:
            self._disagreement()
            return Verdict.UNKNOWN
        self._rows()
        return worst(self._verdicts)

    def _ledger_is_source(self) -> bool:
        fence = self._fence
        if not self._source.sums_agree:
            self._find(
                Verdict.UNKNOWN,
                "ledger-is-not-source",
                "the ledger's sums are not the source's, so the sink can't be judged by it",
                expected=_shown(fence.source.totals),
                actual=_shown(self._sums),
            )
            return False
        found = self._source.rows
        if found is not None and not found.is_empty:
            self._find(
                Verdict.UNKNOWN,
                "ledger-is-not-source",
                f"the ledger's rows are not the source's, so the sink can't be judged by it: {found}",
                examples=found.examples,
            )
            return False
        return True

    def _reading(self, reading: Reading) -> None:
        if reading.files_missing:
            self._find(
                Verdict.INVALID,
                "sink-files-missing",
                f"{reading.reader} can't read the sink because its files are gone",
                actual=reading.error,
            )
            return
        if reading.error:
            self._find(Verdict.UNKNOWN, "reader-failed", f"{reading.reader} failed", actual=reading.error)
            return
        where = f"fence {self._fence.mark.number}, {reading.reader}"
        seen = {total.partition: total for total in reading.totals}
        wanted = {total.partition: total for total in self._sums}
        for partition in sorted(seen.keys() | wanted.keys()):
            expected, actual = wanted.get(partition), seen.get(partition)
            self.checks.append(
                Check(
                    name=f"{where}, {partition}",
                    expected=_total(expected),
                    actual=_total(actual),
                    held=expected == actual,
                )
            )
        if reading.totals != self._sums:
            self._find(
                Verdict.INVALID,
                "totals-differ",
                f"the guide's query by {reading.reader} does not match the source",
                expected=_shown(self._sums),
                actual=_shown(reading.totals),
            )
        else:
            self._verdicts.append(Verdict.VALID)

    def _disagreement(self) -> None:
        self._find(
            Verdict.UNKNOWN,
            "readers-disagree",
            f"two readers of snapshot {self._fence.snapshot_id} disagree",
            expected=_shown(self._sums),
            actual=" · ".join(f"{reading.reader}: {_shown(reading.totals)}" for reading in self._fence.sink),
        )

    def _rows(self) -> None:
        fence, contract = self._fence, self._evidence.contract
        if not fence.sink_rows:
            self._find(
                Verdict.UNKNOWN, "rows-unread", "the sink's rows were not read, so keys were not compared"
            )
            return
        found = difference(self._source.expected, rows_of(self._evidence, fence.sink_rows), contract)
        self.examined = found.rows_actual
        self.checks.append(
            Check(
                name=f"fence {fence.mark.number}, every row by {contract.source_key}",
                expected=f"{found.rows_expected} rows",
                actual=f"{found.rows_actual} rows; {found}",
                held=found.is_empty,
            )
        )
        if found.is_empty:
            self._verdicts.append(Verdict.VALID if found.rows_actual else Verdict.UNKNOWN)
            return
        self._find(
            Verdict.INVALID,
            "rows-differ",
            f"the sink is not the source: {found}",
            expected=f"{found.rows_expected} rows as in the ledger after operation {fence.mark.operation}",
            actual=f"{found.rows_actual} rows in snapshot {fence.snapshot_id}",
            examples=found.examples,
        )

    def _find(
        self,
        verdict: Verdict,
        code: str,
        what: str,
        *,
        expected: str = "",
        actual: str = "",
        examples: tuple[str, ...] = (),
    ) -> None:
        self._verdicts.append(verdict)
        self.findings.append(
            Finding(
                code=code,
                severity=Severity.ERROR,
                what=what,
                where=f"fence {self._fence.mark.number}, snapshot {self._fence.snapshot_id}",
                expected=expected,
                actual=actual,
                examples=examples,
            )
        )


def _total(total: PartitionTotals | None) -> str:
    if total is None:
        return "no such partition"
    return (
        f"{total.rows} rows, {total.keys} keys, sum {total.amount}; "
        f"in the window {total.window_keys} keys, sum {total.window_amount}"
    )


def _shown(totals: tuple[PartitionTotals, ...]) -> str:
    return " | ".join(f"{total.partition}: {_total(total)}" for total in totals) or "no rows"
