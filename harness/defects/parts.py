"""The parts of evidence: how one is found, and how another takes its place. NoPlace where there is none."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from harness.errors import NoPlace
from harness.model import (
    Binlog,
    CommitLog,
    Evidence,
    FaultProof,
    Fence,
    JobHistory,
    SinkState,
    SnapshotRecord,
    TableContract,
    TableHistory,
    TimeTravel,
)

Part = TypeVar(
    "Part",
    Binlog,
    CommitLog,
    FaultProof,
    Fence,
    JobHistory,
    SinkState,
    SnapshotRecord,
    TableHistory,
    TimeTravel,
)


def put(items: tuple[Part, ...], old: Part, **changes: Any) -> tuple[Part, ...]:
    """The items with one of them changed."""
    return tuple(replace(item, **changes) if item is old else item for item in items)


def without(items: tuple[Part, ...], old: Part) -> tuple[Part, ...]:
    """The items but one."""
    return tuple(item for item in items if item is not old)


def one(items: Sequence[Part], what: str) -> Part:
    """The only or last one of some items."""
    if not items:
        raise NoPlace(f"the run has no {what}")
    return items[-1]


def any_of(items: Sequence[Part], rng: random.Random, what: str) -> Part:
    """One of some items, by chance."""
    if not items:
        raise NoPlace(f"the run has no {what}")
    return rng.choice(items)


def some(evidence: Evidence) -> TableContract:
    """A table, with a primary key where there is one, for what can happen to any."""
    return next((contract for contract in evidence.tables if not contract.append_only), evidence.tables[0])


def keyed(evidence: Evidence) -> TableContract:
    """A table with a primary key."""
    for contract in evidence.tables:
        if not contract.append_only:
            return contract
    raise NoPlace("the run has no table with a primary key")


def appended(evidence: Evidence) -> TableContract:
    """An append-only table."""
    for contract in evidence.tables:
        if contract.append_only:
            return contract
    raise NoPlace("the run has no append-only table")


def last_fence(evidence: Evidence, table: str) -> Fence:
    """A table's last fence."""
    return one(evidence.fences_of(table), "fence")


def history_of(evidence: Evidence, table: str) -> TableHistory:
    """A table's history, as far as it was read."""
    found = [
        item for item in evidence.histories if item.table == table and item.changes and item.base_snapshot
    ]
    return one(found, f"history of {table}")


def last_life(evidence: Evidence, table: str) -> JobHistory:
    """The last life of a table's job."""
    lives = sorted((job for job in evidence.jobs if job.name == table), key=lambda job: job.life)
    return one(lives, "job")
