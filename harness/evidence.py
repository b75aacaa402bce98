"""evidence.json: what a run collected, kept so that it can be judged again without the stack."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from harness.model import Evidence
from harness.record import Record

NAME = "evidence.json"
SCHEMA_VERSION = 3


@dataclass(frozen=True, kw_only=True)
class VersionedEvidence:
    """Evidence with the version of its form."""

    schema_version: int
    evidence: Evidence


_RECORD = Record(VersionedEvidence, version=SCHEMA_VERSION, what="evidence")


def save(evidence: Evidence, folder: Path) -> Path:
    """Write evidence.json into `folder`, which holds the Parquet files that it names; returns its path."""
    path = folder / NAME
    _RECORD.write(VersionedEvidence(schema_version=SCHEMA_VERSION, evidence=evidence), path)
    return path


def load(folder: Path) -> Evidence:
    """The evidence in `folder`; its field `folder` is the given one, since a run's folder may be moved.

    Raises UsageError when there is none, or it is malformed or of an unknown version.
    """
    evidence = _RECORD.read(folder / NAME).evidence
    return replace(evidence, folder=str(folder))
