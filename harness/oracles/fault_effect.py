"""Oracle: each fault proved that it bit, under load. Without that the run proves nothing (DESIGN, rule 4).

It can't see whether a fault did more than its proof looks for, and how heavy the load was.
"""

from __future__ import annotations

from harness.model import OracleResult, Verdict
from harness.oracles.bulk_updates import landed as landed_inside
from harness.oracles.exhibits import Exhibits
from harness.oracles.judgement import Judgement
from harness.oracles.loads import loads

NAME = "fault_effect"


def judge(exhibits: Exhibits) -> OracleResult:
    """VALID when as many faults as expected were injected, every check of each held, and each table was
    written to under each fault and after it; else UNKNOWN.
    """
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
        for load in loads(exhibits, proof):
            check, name = load.check, f"{struck}: {load.check.name}"
            if not judgement.check(name, expected=check.expected, actual=check.actual, held=check.held):
                judgement.find(
                    Verdict.UNKNOWN,
                    "no-load",
                    f"the source committed nothing {load.when}, so nothing could go wrong",
                    where=f"{load.table}, fault {struck}",
                    expected=check.expected,
                    actual=check.actual,
                    todo="see why the workload stood still; a low rate needs more cycles",
                )
    for bulk in evidence.bulks:
        check = landed_inside(exhibits, bulk)
        name = f"{bulk.fault} {check.name}"
        if not judgement.check(name, expected=check.expected, actual=check.actual, held=check.held):
            judgement.find(
                Verdict.UNKNOWN,
                "bulk-update-missed",
                "the fault did not strike while the bulk update was read",
                where=bulk.table,
                expected=check.expected,
                actual=check.actual,
                todo="run it again; if it misses often, give the scenario more initial_rows",
            )
    landed = sum(proof.bit and proof.injected_at_ms > 0 for proof in evidence.faults)
    if all_held and not landed == evidence.expected_faults == len(evidence.faults):
        judgement.find(
            Verdict.UNKNOWN,
            "fault-missing",
            "not every fault of the scenario was proved",
            expected=f"{evidence.expected_faults} faults",
            actual=f"{landed} faults",
        )
    return judgement.result()
