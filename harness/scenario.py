"""Scenario files: their fields, and how one is read, checked and overridden."""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from harness import resources
from harness.errors import ScenarioError, UsageError
from harness.scenario_file import Known, Source, nearest, problems, read

FOLDER = Path(__file__).resolve().parent / "scenarios"
MOST_CHANGES_PER_S = 2000
REWRITABLE = "orders"
"""The job whose source rows may be changed and deleted; the behavior log is only inserted into."""

Slug = Annotated[str, Field(pattern=r"^[a-z0-9]+(-[a-z0-9]+)*$", max_length=60)]
Parameter = str | int | float | bool


def _plain(value: object) -> object:
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise PydanticCustomError("plain", "expected a text, a number, true or false")


class Part(BaseModel):
    """What every part of a scenario has in common: it is frozen and takes no unknown field."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class WorkloadPlan(Part):
    """The source transactions to make: `rate` in row changes per second, null is flat out."""

    rate: Annotated[int, Field(strict=True, ge=1, le=MOST_CHANGES_PER_S)] | None
    initial_rows: Annotated[int, Field(strict=True, ge=0)]


class FaultStep(Part):
    """One fault of the order: its name in the registry and its parameters (`with` in the file).

    `during: initial-load` strikes while the source's first rows are still being read, without a
    baseline; `bulk-update` strikes while one UPDATE of every order, a single transaction, is being read,
    once a checkpoint inside it has completed. By default a fault strikes a steady pipeline.
    """

    fault: str
    during: Literal["steady", "initial-load", "bulk-update"] = "steady"
    parameters: dict[str, Annotated[Parameter, BeforeValidator(_plain)]] = Field(default={}, alias="with")

    @field_validator("fault")
    @classmethod
    def _known(cls, name: str, info: ValidationInfo) -> str:
        return _word("fault", name, _known_words(info).faults)


class Scenario(Part):
    """A scenario: what runs, what breaks in which order, and what is judged.

    `jobs` names folders in jobs/, each of which feeds the table of its name. `cycles` counts the
    checkpoint cycles awaited after each recovery, `steady_checkpoints` those awaited before the first
    fault. `startup` is where the jobs begin to read the source (`scan.startup.mode`): with
    `latest-offset`, `initial_rows` are committed after the jobs have begun to read, since what is there
    before never arrives. `chunk_size` is how many rows the source reads at once in the initial load. `flink`,
    `cluster` and `catalog` give settings of the jobs, of the cluster and of the jobs' Paimon catalog other
    values than the profile. `oracles` is never empty; "all" in the file has been resolved. `accepts` are
    known limits of the components that don't cost a run its VALID; the report warns of each that it met.
    """

    name: Slug
    description: str
    jobs: Annotated[tuple[Slug, ...], Field(min_length=1)] = ("orders", "behavior-log")
    profile: Literal["fast", "guide"]
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**63)]
    workload: WorkloadPlan
    startup: Literal["initial", "latest-offset"] = "initial"
    parallelism: Annotated[int, Field(strict=True, ge=1)] = 2
    chunk_size: Annotated[int, Field(strict=True, ge=2)] = 8096
    steady_checkpoints: Annotated[int, Field(strict=True, ge=1)] = 2
    cycles: Annotated[int, Field(strict=True, ge=1)] = 3
    flink: dict[str, str] = {}
    cluster: dict[str, str] = {}
    catalog: dict[str, str] = {}
    faults: tuple[FaultStep, ...]
    accepts: tuple[Literal["torn-late-commits"], ...] = ()
    oracles: tuple[str, ...]

    @field_validator("jobs")
    @classmethod
    def _jobs_exist(cls, names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        for position, name in enumerate(names):
            _word("job", name, _known_words(info).jobs)
            if name in names[:position]:
                raise PydanticCustomError("jobs", "job '{name}' is named twice", {"name": name})
        return names

    @field_validator("oracles", mode="before")
    @classmethod
    def _all_or_known(cls, value: object, info: ValidationInfo) -> object:
        known = tuple(_known_words(info).oracles)
        if value == "all":
            value = list(known)
        if isinstance(value, str) or not isinstance(value, list | tuple):
            raise PydanticCustomError("oracles", "expected a list of oracles, or the word all")
        if not value:
            raise PydanticCustomError("oracles", "expected at least one oracle: with none, nothing is judged")
        for position, name in enumerate(value):
            _word("oracle", name, known)
            if name in value[:position]:
                raise PydanticCustomError("oracles", "oracle '{name}' is named twice", {"name": name})
        return value

    @model_validator(mode="after")
    def _the_load_comes_first(self) -> Scenario:
        during = [step.during for step in self.faults]
        if during != sorted(during, key=lambda when: when != "initial-load"):
            raise PydanticCustomError(
                "load_order",
                "faults: expected those during: initial-load before all others, since the load is over then",
            )
        return self

    @model_validator(mode="after")
    def _the_latest_offset_has_no_load(self) -> Scenario:
        if self.startup == "initial":
            return self
        if self.jobs != (REWRITABLE,):
            raise PydanticCustomError(
                "startup_jobs",
                "startup: latest-offset is for jobs: [{job}] alone: rows that were committed before the job "
                "began to read are deleted again, which no other table allows",
                {"job": REWRITABLE},
            )
        if any(step.during == "initial-load" for step in self.faults):
            raise PydanticCustomError(
                "no_load", "faults: during: initial-load needs startup: initial, since else nothing is loaded"
            )
        return self

    @model_validator(mode="after")
    def _a_bulk_update_has_rows(self) -> Scenario:
        bulk = any(step.during == "bulk-update" for step in self.faults)
        if bulk and (REWRITABLE not in self.jobs or not self.workload.initial_rows):
            raise PydanticCustomError(
                "no_bulk",
                "faults: during: bulk-update needs {job} among the jobs, and initial_rows of it to update",
                {"job": REWRITABLE},
            )
        return self

    @model_validator(mode="after")
    def _no_fault_flat_out(self) -> Scenario:
        if self.faults and self.workload.rate is None:
            raise PydanticCustomError(
                "flat_out",
                "workload.rate: expected a rate from 1 to {most}, since faults run at a load that "
                "leaves the heartbeats alone; null (flat out) is for a scenario without faults",
                {"most": MOST_CHANGES_PER_S},
            )
        return self


def built_in() -> dict[str, Path]:
    """The scenarios that come with the harness: name → file."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.yaml"))}


def load(
    reference: str,
    *,
    faults: Collection[str],
    oracles: Collection[str],
    jobs: Collection[str] | None = None,
) -> Scenario:
    """The scenario that `reference` names: a built-in one by its name, or a file by its path.

    `faults` and `oracles` are the names in the registries, in whose order "all" is resolved; `jobs`
    are the folders in jobs/ by default. Raises ScenarioError, which names file, line and field of
    every problem, what was expected, and the nearest valid word.
    """
    path = _find(reference)
    known = Known(faults=faults, oracles=oracles, jobs=_jobs() if jobs is None else jobs)
    source = read(path)
    try:
        return Scenario.model_validate(source.content, context=known)
    except ValidationError as error:
        raise _malformed(source, error) from error


def with_overrides(
    scenario: Scenario,
    *,
    profile: str | None = None,
    seed: int | None = None,
    rate: int | None = None,
) -> Scenario:
    """The scenario with another profile, seed or rate (row changes per second); None keeps its own.

    Raises UsageError when a value can't be.
    """
    content = scenario.model_dump(by_alias=True)
    content |= {key: value for key, value in (("profile", profile), ("seed", seed)) if value is not None}
    if rate is not None:
        content["workload"] |= {"rate": rate}
    known = Known(
        faults=[step.fault for step in scenario.faults], oracles=scenario.oracles, jobs=scenario.jobs
    )
    try:
        return Scenario.model_validate(content, context=known)
    except ValidationError as error:
        lines = [problem.text for problem in problems(error, content, FIELDS)]
        raise UsageError(
            f"scenario {scenario.name} can't be overridden like this: {'; '.join(lines)}",
            todo="give another value, or leave the option away to keep the scenario's own",
        ) from error


FIELDS: dict[str, tuple[str, ...]] = {
    "": tuple(Scenario.model_fields),
    "workload": tuple(WorkloadPlan.model_fields),
    "faults": ("fault", "during", "with"),
}
"""The fields there are at the top, in `workload`, and in an entry of `faults`."""


def _find(reference: str) -> Path:
    if reference in built_in():
        return built_in()[reference]
    path = Path(reference)
    if reference and (os.path.exists(path) or path.suffix in (".yaml", ".yml") or len(path.parts) > 1):
        return path
    raise ScenarioError(
        f"no scenario {reference!r}: expected the name of a built-in scenario or the path of a file"
        f"{nearest(reference, built_in())}",
        todo=f"built in are: {', '.join(built_in())}",
    )


def _jobs() -> tuple[str, ...]:
    folders = (path for path in resources.folder("jobs").iterdir() if path.is_dir())
    return tuple(sorted(path.name for path in folders if path.name != "profiles"))


def _known_words(info: ValidationInfo) -> Known:
    if not isinstance(info.context, Known):
        raise TypeError("a scenario is validated by load() or with_overrides(), which say what is known")
    return info.context


def _word(kind: str, name: object, known: Collection[str]) -> str:
    if isinstance(name, str) and name in known:
        return name
    raise PydanticCustomError(
        "unknown_word",
        "unknown {kind} {name}{near}; there are: {known}",
        {
            "kind": kind,
            "name": repr(name),
            "near": nearest(str(name), known),
            "known": ", ".join(known) or "none",
        },
    )


def _malformed(source: Source, error: ValidationError) -> ScenarioError:
    found = problems(error, source.content, FIELDS)
    lines = [f"{source.path}:{source.line(problem.location)}: {problem.text}" for problem in found]
    head = "" if len(lines) == 1 else f"{source.path} has {len(lines)} problems:\n"
    return ScenarioError(
        head + "\n".join(lines),
        todo=f"mend the file; {built_in().get('kill-taskmanager', FOLDER)} shows every field",
    )
