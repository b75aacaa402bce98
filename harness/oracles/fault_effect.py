"""Oracle: each fault proved that it bit. Without that the run proves nothing (DESIGN, rule 4).

It can't see whether a fault did more than its proof looks for.
"""

from __future__ import annotations

from harness.model import Check, Evidence, Finding, OracleResult, Severity, Verdict

NAME = "fault_effect"


def judge(evidence: Evidence) -> OracleResult:
    """VALID when as many faults as expected were injected and every check of each held; else UNKNOWN."""
    findings = [
        Finding(
            code="fault-did-not-bite",
            severity=Severity.ERROR,
            what=f"{proof.fault}: {check.name}: not so",
            where=proof.node,
            expected=check.expected,
            actual=check.actual,
            todo="a fault without an effect proves nothing; see events and logs/",
        )
        for proof in evidence.faults
        for check in proof.checks
        if not check.held
    ]
    landed = sum(proof.bit for proof in evidence.faults)
    if landed < evidence.expected_faults and not findings:
        findings.append(
            Finding(
                code="fault-missing",
                severity=Severity.ERROR,
                what="not every fault of the scenario was proved",
                expected=f"{evidence.expected_faults} faults",
                actual=f"{landed} faults",
            )
        )
    checks = tuple(
        Check(
            name=f"{proof.fault} {proof.node}: {check.name}",
            expected=check.expected,
            actual=check.actual,
            held=check.held,
        )
        for proof in evidence.faults
        for check in proof.checks
    )
    verdict = Verdict.VALID if landed and not findings else Verdict.UNKNOWN
    return OracleResult(
        oracle=NAME,
        verdict=verdict,
        examined=len(evidence.faults),
        unit="faults",
        checks=checks,
        findings=tuple(findings),
    )
