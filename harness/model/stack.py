"""The stack: nodes, addresses, and the components that really ran."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Role(Enum):
    """What a node is in the stack."""

    SOURCE = "source"
    STORAGE = "storage"
    JOBMANAGER = "jobmanager"
    TASKMANAGER = "taskmanager"
    GATEWAY = "gateway"


@dataclass(frozen=True, kw_only=True)
class Node:
    """One process host of the stack; `name` is its host name inside the stack's network."""

    name: str
    role: Role


@dataclass(frozen=True, kw_only=True)
class NodeState:
    """A node as the engine sees it. Two states with another `started_at` are two lives of the node."""

    running: bool
    started_at: str
    restarts: int
    exit_code: int


@dataclass(frozen=True, kw_only=True)
class ExecResult:
    """What a command inside a node printed, and how it ended."""

    status: int
    output: str


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a node's port is reached from this machine."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """A name and its secret. Never written to evidence or reports."""

    user: str
    secret: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class Component:
    """A component that really ran: its version as it said itself, and where it came from."""

    name: str
    version: str
    origin: str
