"""Defects of the run as a whole: cut short, or parts of its evidence are gone."""

from __future__ import annotations

import random
from dataclasses import replace

from harness.defects.defect import Defect, unknown
from harness.defects.files import remove
from harness.defects.parts import last_fence, some, without
from harness.errors import NoPlace
from harness.model import Evidence


def run_interrupted(evidence: Evidence, rng: random.Random) -> Evidence:
    """Somebody stopped the run."""
    return replace(evidence, interrupted="Ctrl-C")


def run_ended_early(evidence: Evidence, rng: random.Random) -> Evidence:
    """The run ended before its last step."""
    return replace(evidence, ended_early="a job did not come back in 300 s")


def fence_missing(evidence: Evidence, rng: random.Random) -> Evidence:
    """A table was not read at the last fence."""
    fence = last_fence(evidence, some(evidence).name)
    return replace(evidence, fences=without(evidence.fences, fence))


def rows_file_missing(evidence: Evidence, rng: random.Random) -> Evidence:
    """The file with the sink's rows at the last fence is not there any more."""
    name = last_fence(evidence, some(evidence).name).sink_rows
    if not name:
        raise NoPlace("the sink's rows were not kept at the last fence")
    remove(evidence, name)
    return evidence


DEFECTS: tuple[Defect, ...] = (
    unknown(run_interrupted, "completeness"),
    unknown(run_ended_early, "completeness"),
    unknown(fence_missing, "completeness", "reconciliation"),
    unknown(rows_file_missing, "reconciliation"),
)
