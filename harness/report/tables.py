"""Tables for the README and `harness list`, generated from the registries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from harness.model import Verdict

Rows = Sequence[tuple[str, ...]]
"""The first row is the head."""


class FaultRow(Protocol):
    """What a fault's registry entry says of it."""

    @property
    def summary(self) -> str: ...

    @property
    def proof(self) -> str: ...

    @property
    def guide(self) -> str: ...


class OracleRow(Protocol):
    """What an oracle's registry entry says of it."""

    @property
    def summary(self) -> str: ...

    @property
    def blind_to(self) -> str: ...

    @property
    def guide(self) -> str: ...


class DefectRow(Protocol):
    """What a planted defect's registry entry says of it."""

    @property
    def what(self) -> str: ...

    @property
    def verdict(self) -> Verdict: ...

    @property
    def caught_by(self) -> tuple[str, ...]: ...


def fault_rows(registry: Mapping[str, FaultRow]) -> Rows:
    """One row per fault."""
    rows = [(f"`{name}`", kind.summary, kind.proof, kind.guide) for name, kind in registry.items()]
    return [("fault", "what it does", "proof that it bit", "guide"), *rows]


def oracle_rows(registry: Mapping[str, OracleRow]) -> Rows:
    """One row per oracle."""
    rows = [(f"`{name}`", kind.summary, kind.blind_to, kind.guide) for name, kind in registry.items()]
    return [("oracle", "what must hold", "what it can't see", "guide"), *rows]


def defect_rows(registry: Mapping[str, DefectRow]) -> Rows:
    """One row per planted defect."""
    rows = [
        (f"`{name}`", one.what, one.verdict.value, ", ".join(f"`{oracle}`" for oracle in one.caught_by))
        for name, one in registry.items()
    ]
    return [("defect", "what is wrong", "verdict", "must be caught by"), *rows]


def markdown(rows: Rows) -> str:
    """A Markdown table."""
    head, *body = rows
    lines = [head, tuple("---" for _ in head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
