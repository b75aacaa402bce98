"""A judgement in the making: an oracle's checks and findings, and the verdict that they come to."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.model import (
    Check,
    Evidence,
    Finding,
    OracleResult,
    PartitionTotals,
    Reading,
    Severity,
    TableContract,
    Verdict,
    worst,
)
from harness.oracles.comparison import Difference, shown


class Judgement:
    """Collects what one oracle sees. VALID only if it examined something and found nothing against it."""

    def __init__(self, oracle: str, *, unit: str) -> None:
        self._oracle = oracle
        self._unit = unit
        self._verdicts: list[Verdict] = []
        self._checks: list[Check] = []
        self._findings: list[Finding] = []
        self.examined = 0

    def check(self, name: str, *, expected: str, actual: str, held: bool) -> bool:
        """Record a comparison. One that does not hold should be explained by a finding."""
        self._checks.append(Check(name=name, expected=expected, actual=actual, held=held))
        return held

    def check_rows(self, name: str, found: Difference) -> bool:
        """Record a comparison of rows, and count the rows that were looked at."""
        self.examined += found.rows_actual
        return self.check(
            name,
            expected=f"{found.rows_expected} rows",
            actual=f"{found.rows_actual} rows; {found}",
            held=found.is_empty,
        )

    def find(
        self,
        verdict: Verdict,
        code: str,
        what: str,
        *,
        where: str = "",
        expected: str = "",
        actual: str = "",
        examples: tuple[str, ...] = (),
        todo: str = "",
    ) -> None:
        """Record a finding and the verdict that it means; one that leaves a VALID as it is is a warning."""
        self._verdicts.append(verdict)
        self._findings.append(
            Finding(
                code=code,
                severity=Severity.WARNING if verdict is Verdict.VALID else Severity.ERROR,
                what=what,
                where=where,
                expected=expected,
                actual=actual,
                examples=examples,
                todo=todo,
            )
        )

    def result(self) -> OracleResult:
        """The oracle's word: the worst of what was found. A check that failed unexplained is UNKNOWN."""
        held = self.examined > 0 and all(check.held for check in self._checks)
        return OracleResult(
            oracle=self._oracle,
            verdict=worst([*self._verdicts, Verdict.VALID if held else Verdict.UNKNOWN]),
            examined=self.examined,
            unit=self._unit,
            checks=tuple(self._checks),
            findings=tuple(self._findings),
        )


def judge_reading(
    find: Callable[..., None],
    reading: Reading,
    sums: tuple[PartitionTotals, ...],
    *,
    subject: str,
    differs: str,
) -> None:
    """What a reading says against its subject; `find` is Judgement.find, with its place.

    Files that are gone and other totals than `sums` are INVALID, any other failure is UNKNOWN.
    """
    if reading.files_missing:
        find(
            Verdict.INVALID,
            "sink-files-missing",
            f"{reading.reader} can't read {subject} because its files are gone",
            actual=reading.error,
        )
    elif reading.error:
        find(Verdict.UNKNOWN, "reader-failed", f"{reading.reader} failed", actual=reading.error)
    elif reading.totals != sums:
        find(Verdict.INVALID, "totals-differ", differs, expected=shown(sums), actual=shown(reading.totals))


def require_every_fence(judgement: Judgement, evidence: Evidence, tables: Sequence[TableContract]) -> None:
    """UNKNOWN unless each of these tables was read at each fence: of the rest nothing is known."""
    read = {(fence.mark.table, fence.mark.number) for fence in evidence.fences}
    numbers = set(range(1, evidence.expected_fences + 1)) | {number for _, number in read}
    unread = [
        f"{table.name}, fence {number}"
        for number in sorted(numbers)
        for table in tables
        if (table.name, number) not in read
    ]
    if unread:
        others = f" and {len(unread) - 1} more" if unread[1:] else ""
        judgement.find(
            Verdict.UNKNOWN,
            "fence-unread",
            "not every table was read at every fence, so what it held there is not known",
            expected=f"{len(numbers)} fences of {', '.join(table.name for table in tables)}",
            actual=f"not read: {unread[0]}{others}",
        )
