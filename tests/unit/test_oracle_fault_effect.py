"""The fault-effect oracle: a fault without a proof proves nothing."""

from __future__ import annotations

from dataclasses import replace

import factories
import pytest
from judging import codes, finding, judged

from harness.model import Evidence, FaultProof, Verdict

BIT = factories.proof()


def test_a_fault_that_did_not_bite_is_unknown(evidence: Evidence) -> None:
    faults = (factories.proof(bit=False), factories.stop_proof())

    result = judged(replace(evidence, faults=faults), "fault_effect")

    assert Verdict.UNKNOWN == result.verdict
    assert {"fault-did-not-bite"} == codes(result)
    assert "taskmanager-1" == finding(result, "fault-did-not-bite").where


@pytest.mark.parametrize(
    "faults",
    [(), (BIT,), (BIT, replace(BIT, checks=())), (BIT, BIT, replace(BIT, checks=()))],
    ids=["no proof", "too few", "a proof without checks", "one more, without checks"],
)
def test_a_fault_without_a_proof_is_unknown(evidence: Evidence, faults: tuple[FaultProof, ...]) -> None:
    result = judged(replace(evidence, faults=faults), "fault_effect")

    assert Verdict.UNKNOWN == result.verdict
    assert {"fault-missing"} == codes(result)


def test_the_same_fault_twice_has_checks_of_its_own(evidence: Evidence) -> None:
    result = judged(replace(evidence, faults=(BIT, BIT)), "fault_effect")

    names = [check.name for check in result.checks]
    assert Verdict.VALID == result.verdict
    assert len(names) == len(set(names))
