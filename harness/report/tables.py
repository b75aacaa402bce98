"""Tables for the README and `harness list`, generated from the registries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

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


def fault_rows(registry: Mapping[str, FaultRow]) -> Rows:
    """One row per fault."""
    rows = [(f"`{name}`", kind.summary, kind.proof, kind.guide) for name, kind in registry.items()]
    return [("fault", "what it does", "proof that it bit", "guide"), *rows]


def oracle_rows(registry: Mapping[str, OracleRow]) -> Rows:
    """One row per oracle."""
    rows = [(f"`{name}`", kind.summary, kind.blind_to, kind.guide) for name, kind in registry.items()]
    return [("oracle", "what must hold", "what it can't see", "guide"), *rows]


def markdown(rows: Rows) -> str:
    """A Markdown table."""
    head, *body = rows
    lines = [head, tuple("---" for _ in head), *body]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
