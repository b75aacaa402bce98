"""Oracle: each fault proved that it bit. Without that the run proves nothing (DESIGN, rule 4).

It can't see whether a fault did more than its proof looks for.
"""

from __future__ import annotations

from harness.model import OracleResult, Verdict
from harness.oracles.exhibits import Exhibits
from harness.oracles.judgement import Judgement

NAME = "fault_effect"


def judge(exhibits: Exhibits) -> OracleResult:
    """VALID when as many faults as expected were injected and every check of each held; else UNKNOWN."""
    evidence = exhibits.evidence
    judgement = Judgement(NAME, unit="faults")
    judgement.examined = len(evidence.faults)
    all_held = True
    for number, proof in enumerate(evidence.faults, start=1):
        struck = f"{number} {proof.fault} {proof.node}".strip()
        for check in proof.checks:
            name = f"{struck}: {check.name}"
            if judgement.check(name, expected=check.expected, actual=check.actual, held=check.held):
                continue
            all_held = False
            judgement.find(
                Verdict.UNKNOWN,
                "fault-did-not-bite",
                f"{proof.fault}: {check.name}: not so",
                where=proof.node,
                expected=check.expected,
                actual=check.actual,
                todo="a fault without an effect proves nothing; see events and logs/",
            )
    landed = sum(proof.bit for proof in evidence.faults)
    if all_held and not landed == evidence.expected_faults == len(evidence.faults):
        judgement.find(
            Verdict.UNKNOWN,
            "fault-missing",
            "not every fault of the scenario was proved",
            expected=f"{evidence.expected_faults} faults",
            actual=f"{landed} faults",
        )
    return judgement.result()
