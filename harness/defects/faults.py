"""Defects of faults: toothless, or unproven."""

from __future__ import annotations

import random
from dataclasses import replace

from harness.defects.defect import Defect, unknown
from harness.defects.parts import any_of, one, put, without
from harness.errors import NoPlace
from harness.model import Evidence


def fault_without_a_bite(evidence: Evidence, rng: random.Random) -> Evidence:
    """A fault was injected and had no effect."""
    proof = any_of([proof for proof in evidence.faults if proof.checks], rng, "fault")
    first, *others = proof.checks
    missed = replace(first, actual="no effect", held=False)
    return replace(evidence, faults=put(evidence.faults, proof, checks=(missed, *others)))


def fault_unproven(evidence: Evidence, rng: random.Random) -> Evidence:
    """A fault was injected, and nothing was looked at to see whether it bit."""
    proof = any_of(evidence.faults, rng, "fault")
    return replace(evidence, faults=put(evidence.faults, proof, checks=()))


def fault_proof_missing(evidence: Evidence, rng: random.Random) -> Evidence:
    """The proof of the last fault is missing."""
    return replace(evidence, faults=without(evidence.faults, one(evidence.faults, "fault")))


def bulk_update_missed(evidence: Evidence, rng: random.Random) -> Evidence:
    """No restore was seen after the fault that was to strike inside a bulk update."""
    if not evidence.bulks:
        raise NoPlace("the run has no bulk update")
    first, *others = evidence.bulks
    return replace(evidence, bulks=(replace(first, restored_checkpoint=0), *others))


DEFECTS: tuple[Defect, ...] = (
    unknown(fault_without_a_bite, "fault_effect"),
    unknown(fault_unproven, "fault_effect"),
    unknown(fault_proof_missing, "fault_effect", "completeness"),
    unknown(bulk_update_missed, "fault_effect"),
)
