"""Profiles: which values of the guide's configuration a run applies, and what differs from the guide."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness import resources
from harness.errors import HarnessError, UsageError

GUIDE = "guide"

Settings = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """The settings of a run, in the guide's order: SETs of each job, of the cluster, options by table; and
    further options of the jobs' Paimon catalog.

    The other fields are lines to print: `differences` from the guide, one per override;
    `adapted`, applied with another value than the guide prints; `unapplied`, not applied at all.
    """

    name: str
    flink: Settings
    cluster: Settings
    tables: tuple[tuple[str, Settings], ...]
    differences: tuple[str, ...]
    adapted: tuple[str, ...]
    unapplied: tuple[str, ...]
    catalog: Settings = ()

    def with_settings(
        self,
        *,
        flink: Mapping[str, str],
        cluster: Mapping[str, str],
        catalog: Mapping[str, str],
        why: str,
    ) -> Profile:
        """The profile with other values for some settings, or more of them; each is a difference."""
        settings = {
            "flink": dict(self.flink),
            "cluster": dict(self.cluster),
            "catalog": dict(self.catalog),
        }
        differences = list(self.differences)
        for section, changes in (("flink", flink), ("cluster", cluster), ("catalog", catalog)):
            for key, value in changes.items():
                differences.append(f"{key}: {settings[section].get(key, 'not set')} → {value} ({why})")
                settings[section][key] = value
        return replace(
            self,
            flink=tuple(settings["flink"].items()),
            cluster=tuple(settings["cluster"].items()),
            catalog=tuple(settings["catalog"].items()),
            differences=tuple(differences),
        )

    def table(self, name: str) -> dict[str, str]:
        """The options of a table, by its name. Raises UsageError when the profile has none for it."""
        tables = dict(self.tables)
        if name not in tables:
            raise UsageError(
                f"profile {self.name} has no options for table {name!r}", todo=f"it has: {', '.join(tables)}"
            )
        return dict(tables[name])


class Adaptation(BaseModel):
    """An option that is applied with another value than the guide prints."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    guide: str
    why: str = Field(min_length=1)


class Unapplied(BaseModel):
    """An option of the guide that is not applied."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    option: str
    section: str
    why: str = Field(min_length=1)


class GuideFile(BaseModel):
    """jobs/profiles/guide.yaml."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    flink: dict[str, str]
    cluster: dict[str, str]
    tables: dict[str, dict[str, str]]
    adapted: dict[str, Adaptation]
    unapplied: tuple[Unapplied, ...]


class Override(BaseModel):
    """Another value for a setting of the guide, and the reason."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    value: str
    why: str = Field(min_length=1)


class OverrideFile(BaseModel):
    """Any other jobs/profiles/*.yaml: overrides and nothing else."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    flink: dict[str, Override] = {}
    cluster: dict[str, Override] = {}
    tables: dict[str, dict[str, Override]] = {}


File = TypeVar("File", GuideFile, OverrideFile)


def profile_names(*, jobs: Path | None = None) -> tuple[str, ...]:
    """The profiles there are, by name: the files in jobs/profiles."""
    return tuple(sorted(path.stem for path in _folder(jobs).glob("*.yaml")))


def load_profile(name: str, *, run: str, jobs: Path | None = None) -> Profile:
    """The profile `name`, with the name of the run in the place of ${run}.

    `jobs` is the folder of jobs, the harness's own by default. Raises UsageError for an unknown
    profile, HarnessError for a profile's file that is malformed or overrides what the guide hasn't.
    Source: guide §3.1-3.4.
    """
    names = profile_names(jobs=jobs)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UsageError(f"unknown profile {name!r}", todo=f"{hint}profiles are: {', '.join(names)}")
    guide = _parse(GuideFile, _folder(jobs) / f"{GUIDE}.yaml")
    overrides = OverrideFile() if name == GUIDE else _parse(OverrideFile, _folder(jobs) / f"{name}.yaml")
    _refuse_new_tables(name, guide.tables, overrides.tables)
    sections = {
        "flink": (guide.flink, overrides.flink),
        "cluster": (guide.cluster, overrides.cluster),
        **{table: (guide.tables[table], overrides.tables.get(table, {})) for table in guide.tables},
    }
    differences: list[str] = []
    applied: dict[str, Settings] = {}
    for section, (settings, changes) in sections.items():
        _refuse_new_keys(name, section, settings, changes)
        applied[section] = tuple(
            (key, (changes[key].value if key in changes else value).replace("${run}", run))
            for key, value in settings.items()
        )
        where = f"{section}: " if section in guide.tables else ""
        differences += [
            f"{where}{key}: {value} → {changes[key].value} ({changes[key].why})"
            for key, value in settings.items()
            if key in changes
        ]
    return Profile(
        name=name,
        flink=applied["flink"],
        cluster=applied["cluster"],
        tables=tuple((table, applied[table]) for table in guide.tables),
        differences=tuple(differences),
        adapted=tuple(
            f"{key}: {item.guide} → {guide.flink[key].replace('${run}', run)} ({item.why})"
            for key, item in guide.adapted.items()
        ),
        unapplied=tuple(f"{item.option} (§{item.section}): {item.why}" for item in guide.unapplied),
    )


def _folder(jobs: Path | None) -> Path:
    return (jobs or resources.folder("jobs")) / "profiles"


def _parse(form: type[File], path: Path) -> File:
    try:
        return form.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, yaml.YAMLError, ValidationError) as error:
        raise HarnessError(
            f"profile {path} can't be used: {error}", todo="mend the profile's file"
        ) from error


def _refuse_new_tables(name: str, known: Collection[str], changed: Collection[str]) -> None:
    for table in changed:
        if table not in known:
            raise HarnessError(
                f"profile {name}: tables: {table}: expected a table of the guide: {', '.join(known)}",
                todo=f"mend jobs/profiles/{name}.yaml",
            )


def _refuse_new_keys(
    name: str, section: str, settings: Mapping[str, str], changes: Mapping[str, Override]
) -> None:
    for key, change in changes.items():
        if settings.get(key, change.value) == change.value:
            actual = "the guide has no such key" if key not in settings else "that is the guide's own value"
            raise HarnessError(
                f"profile {name}: {section}: {key}: expected an override of a value of the guide; {actual}",
                todo=f"mend jobs/profiles/{name}.yaml",
            )
