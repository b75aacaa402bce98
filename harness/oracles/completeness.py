"""Oracle: the run went its whole way. What was cut short proves nothing about the rest.

It can't see whether the scenario itself asks enough.
"""

from __future__ import annotations

from harness.model import OracleResult, Verdict
from harness.oracles import changelog
from harness.oracles.exhibits import Exhibits
from harness.oracles.judgement import Judgement

NAME = "completeness"


def judge(exhibits: Exhibits) -> OracleResult:
    """VALID when nobody stopped the run, and every fault and every table's every fence was reached."""
    evidence = exhibits.evidence
    judgement = Judgement(NAME, unit="fences")
    judgement.examined = len({(fence.mark.table, fence.mark.number) for fence in evidence.fences})
    fences = evidence.expected_fences * len(evidence.tables)
    counts = [("faults injected", evidence.expected_faults, len(evidence.faults))]
    counts.append((f"fences read of {len(evidence.tables)} tables", fences, judgement.examined))
    cut_short = {"interrupted": evidence.interrupted, "ended-early": evidence.ended_early}
    for code, said in cut_short.items():
        if said:
            judgement.find(Verdict.UNKNOWN, code, f"the run was cut short: {said}")
    for name, expected, actual in counts:
        complete = judgement.check(name, expected=str(expected), actual=str(actual), held=expected == actual)
        if not complete and not any(cut_short.values()):
            judgement.find(
                Verdict.UNKNOWN,
                "incomplete",
                f"not all {name}",
                expected=str(expected),
                actual=str(actual),
            )
    if changelog.NAME in evidence.oracles and not changelog.applies(evidence):
        tables = ", ".join(changelog.without_producer(evidence)) or "no table with a primary key"
        judgement.find(
            Verdict.VALID,
            "changelog-not-applicable",
            f"no changelog was judged, since no table has one: {tables}",
            expected="a table with a primary key and a changelog producer",
        )
    return judgement.result()
