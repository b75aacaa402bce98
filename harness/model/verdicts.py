"""Verdicts: the three words, findings and checks, and what an oracle says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Verdict(Enum):
    """VALID, UNKNOWN or INVALID. The worst of several wins; each has its exit code."""

    VALID = "VALID"
    UNKNOWN = "UNKNOWN"
    INVALID = "INVALID"

    @property
    def exit_code(self) -> int:
        """0 valid, 1 invalid, 2 unknown (3, a failure of the harness, is not a verdict)."""
        return {Verdict.VALID: 0, Verdict.INVALID: 1, Verdict.UNKNOWN: 2}[self]


def worst(verdicts: list[Verdict]) -> Verdict:
    """INVALID before UNKNOWN before VALID. Of nothing: UNKNOWN, since nothing was examined."""
    if not verdicts:
        return Verdict.UNKNOWN
    order = [Verdict.VALID, Verdict.UNKNOWN, Verdict.INVALID]
    return max(verdicts, key=order.index)


class Severity(Enum):
    """How much a finding weighs."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing an oracle says: what, where, expected, actual, at most 20 examples, what to do."""

    code: str
    severity: Severity
    what: str
    where: str = ""
    expected: str = ""
    actual: str = ""
    examples: tuple[str, ...] = ()
    todo: str = ""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One comparison: a name, what was expected, what was seen, and whether they agree."""

    name: str
    expected: str
    actual: str
    held: bool


@dataclass(frozen=True, kw_only=True)
class OracleResult:
    """What one oracle says of the evidence. `examined` counts what it looked at; 0 is never VALID."""

    oracle: str
    verdict: Verdict
    examined: int
    unit: str
    checks: tuple[Check, ...] = ()
    findings: tuple[Finding, ...] = ()


HARNESS_FAILED = 3
"""Exit code when the harness itself failed; usage errors too."""
