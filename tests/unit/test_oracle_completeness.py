"""The completeness oracle: a run that was cut short proves nothing about the rest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from judging import codes, finding, judged

from harness.model import Evidence, Verdict


def test_every_fence_of_every_table_is_counted(evidence: Evidence) -> None:
    result = judged(evidence, "completeness")

    assert (Verdict.VALID, 6) == (result.verdict, result.examined)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"interrupted": "stopped by the user"}, "interrupted"),
        ({"ended_early": "job a1b2 is FAILED"}, "ended-early"),
        ({"expected_fences": 4}, "incomplete"),
        ({"expected_faults": 3}, "incomplete"),
        ({"expected_faults": 1}, "incomplete"),
        ({"expected_fences": 0, "fences": ()}, ""),
    ],
)
def test_a_run_that_did_not_go_its_whole_way_is_unknown(
    evidence: Evidence, changes: dict[str, Any], code: str
) -> None:
    result = judged(replace(evidence, **changes), "completeness")

    assert Verdict.UNKNOWN == result.verdict
    assert ({code} if code else set()) == codes(result)


@pytest.mark.parametrize("lacking", range(6))
def test_one_table_unread_at_one_fence_is_incomplete(evidence: Evidence, lacking: int) -> None:
    fences = tuple(at for position, at in enumerate(evidence.fences) if position != lacking)

    result = judged(replace(evidence, fences=fences), "completeness")

    assert Verdict.UNKNOWN == result.verdict
    incomplete = finding(result, "incomplete")
    assert ("6", "5") == (incomplete.expected, incomplete.actual)


def test_a_fence_that_was_read_twice_does_not_stand_for_another(evidence: Evidence) -> None:
    fences = (*evidence.fences[:-1], evidence.fences[0])

    result = judged(replace(evidence, fences=fences), "completeness")

    assert {"incomplete"} == codes(result)
