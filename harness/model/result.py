"""A run's result: what each report renders."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model.evidence import FaultProof, Fence, TimeTravel, WorkloadOutcome
from harness.model.jobs import JobHistory
from harness.model.stack import Component
from harness.model.tables import SnapshotRecord, TableContract
from harness.model.verdicts import OracleResult, Verdict


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A stretch of a run; where the time went."""

    name: str
    started_at_ms: int
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened in a run, at a time (epoch ms)."""

    at_ms: int
    kind: str
    text: str
    node: str = ""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One configuration entry in force: where it belongs, its key and value, and where it comes from."""

    scope: str
    key: str
    value: str
    origin: str


@dataclass(frozen=True, kw_only=True)
class OutageBudget:
    """How long an outage of the storage the configuration survives by itself (guide §3.1).

    `fail_fast_s`: when each attempt fails at once, as with refused connections: attempts times delay.
    `stalled_s`: when requests hang and only checkpoints fail: until more of them in a row have failed
    than are tolerated, which costs the first restart; a checkpoint is counted as failed at its timeout.
    """

    restart_attempts: int
    restart_delay_s: float
    tolerable_failed_checkpoints: int
    checkpoint_interval_s: float
    checkpoint_timeout_s: float
    fail_fast_s: float
    stalled_s: float


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How much was committed and how much was visible at a time (epoch ms), in change records of one
    table: an update counts two (-U, +U), as in a changelog. One of the two counts is -1: not known then.
    """

    table: str
    at_ms: int
    committed: int
    visible: int


NO_OPERATION = -1
"""The position of a snapshot that holds the source after no operation."""


@dataclass(frozen=True, kw_only=True)
class SnapshotPosition:
    """Where a snapshot of a table stands in the ledger: it holds the source after `operation`.

    `operation` is NO_OPERATION when it holds the source after none, which is what `snapshot_prefix` is
    about. `torn`: it is one of those, and no more than a part of what the next good one holds, committed
    late for a checkpoint that had failed.
    `lag_ms` is how long that operation waited from its commit at the source to the snapshot's.
    `inside_transaction`: the next operation belongs to the same transaction of the source.
    """

    table: str
    snapshot_id: int
    kind: str
    at_ms: int
    operation: int
    lag_ms: int
    inside_transaction: bool
    whole: bool
    torn: bool = False


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """A run, judged. What each report renders. `logs` names files in the run's folder."""

    schema_version: int
    run: str
    scenario: str
    description: str
    profile: str
    seed: int
    started_at: str
    seconds: float
    verdict: Verdict
    exit_code: int
    failure: str
    failure_todo: str
    config_hash: str
    components: tuple[Component, ...]
    settings: tuple[Setting, ...]
    profile_differences: tuple[str, ...]
    unapplied_options: tuple[str, ...]
    budget: OutageBudget | None
    tables: tuple[TableContract, ...]
    oracles: tuple[OracleResult, ...]
    faults: tuple[FaultProof, ...]
    fences: tuple[Fence, ...]
    travels: tuple[TimeTravel, ...]
    jobs: tuple[JobHistory, ...]
    snapshots: tuple[SnapshotRecord, ...]
    progress: tuple[Progress, ...]
    positions: tuple[SnapshotPosition, ...]
    workload: WorkloadOutcome | None
    phases: tuple[Phase, ...]
    events: tuple[Event, ...]
    logs: tuple[str, ...]
    reproduce: str
