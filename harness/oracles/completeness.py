"""Oracle: the run went its whole way. What was cut short proves nothing about the rest.

It can't see whether the scenario itself asks enough.
"""

from __future__ import annotations

from harness.model import Check, Evidence, Finding, OracleResult, Severity, Verdict

NAME = "completeness"


def judge(evidence: Evidence) -> OracleResult:
    """VALID when nobody stopped the run and every fault and fence of the scenario was reached."""
    checks = (
        _count("faults injected", evidence.expected_faults, len(evidence.faults)),
        _count("fences read", evidence.expected_fences, len(evidence.fences)),
    )
    findings = []
    for code, said in (("interrupted", evidence.interrupted), ("ended-early", evidence.ended_early)):
        if said:
            findings.append(
                Finding(code=code, severity=Severity.ERROR, what=f"the run was cut short: {said}")
            )
    if not findings:
        findings = [
            Finding(
                code="incomplete",
                severity=Severity.ERROR,
                what=f"not all {check.name}",
                expected=check.expected,
                actual=check.actual,
            )
            for check in checks
            if not check.held
        ]
    return OracleResult(
        oracle=NAME,
        verdict=Verdict.VALID if evidence.fences and not findings else Verdict.UNKNOWN,
        examined=len(evidence.fences),
        unit="fences",
        checks=checks,
        findings=tuple(findings),
    )


def _count(name: str, expected: int, actual: int) -> Check:
    return Check(name=name, expected=str(expected), actual=str(actual), held=expected == actual)
