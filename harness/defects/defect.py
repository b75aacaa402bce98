"""What a planted defect is: a way in which a pipeline, a reader or the harness fails, put into evidence."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from harness.model import Evidence, Verdict

Plant: TypeAlias = Callable[[Evidence, random.Random], Evidence]
"""Plants a defect in a copy of a run's evidence: it may write into the folder that the evidence names, by
harness.defects.files only. All that is left to chance comes from the generator. Raises NoPlace where the
run has nothing that could be damaged so."""


@dataclass(frozen=True, kw_only=True)
class Defect:
    """A defect, and what must come of it.

    `plant` says in its docstring's first line what is wrong. `caught_by` names oracles each of which, asked
    alone, must come to `verdict`.
    """

    plant: Plant
    caught_by: tuple[str, ...]
    verdict: Verdict

    @property
    def name(self) -> str:
        """The defect's name: its function's, with dashes."""
        return getattr(self.plant, "__name__", "").replace("_", "-")

    @property
    def what(self) -> str:
        """What is wrong, in one line."""
        return (self.plant.__doc__ or "").strip().splitlines()[0].rstrip(".")


def invalid(plant: Plant, *caught_by: str) -> Defect:
    """A defect of the pipeline: each of these oracles must say INVALID."""
    return Defect(plant=plant, caught_by=caught_by, verdict=Verdict.INVALID)


def unknown(plant: Plant, *caught_by: str) -> Defect:
    """A defect of the evidence, which then proves nothing: each of these oracles must say UNKNOWN."""
    return Defect(plant=plant, caught_by=caught_by, verdict=Verdict.UNKNOWN)
