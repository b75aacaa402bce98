"""Jobs under test: where they run, their checkpoints, restores, failures, and their lives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TaskPlace:
    """Where one subtask of a job runs."""

    vertex: str
    subtask: int
    taskmanager: str


@dataclass(frozen=True, kw_only=True)
class CheckpointCounts:
    """Flink's counters of a job's checkpoints since it was submitted."""

    completed: int
    failed: int
    in_progress: int
    restored: int


@dataclass(frozen=True, kw_only=True)
class Restore:
    """The last restore of a job: which checkpoint or savepoint, when (epoch ms), from which path."""

    checkpoint_id: int
    at_ms: int
    is_savepoint: bool
    path: str


@dataclass(frozen=True, kw_only=True)
class CheckpointRecord:
    """One checkpoint of a job's history."""

    checkpoint_id: int
    status: str
    triggered_at_ms: int
    duration_ms: int
    state_size_bytes: int
    is_savepoint: bool


@dataclass(frozen=True, kw_only=True)
class JobFailure:
    """One entry of Flink's exception history."""

    at_ms: int
    exception: str
    taskmanager: str


@dataclass(frozen=True, kw_only=True)
class JobMoment:
    """A job at one moment. `source_records` counts what its source emitted since the last (re)start of
    its tasks: an update is two records (-U, +U); -1 when Flink does not report it.
    """

    life: int
    restarts: int
    source_records: int


@dataclass(frozen=True, kw_only=True)
class JobHistory:
    """What became of a job in one of its lives: its state at the end, restarts, failures, checkpoints.

    `name` is that of the table it feeds. A life begins with a submission, with attempts to restart of
    its own; `life` counts from 1. `restored_from` is the path it was submitted with, empty for the
    first. `ended_by` says why there was another life after it; empty for the last.
    """

    job_id: str
    name: str
    life: int
    restored_from: str
    ended_by: str
    state: str
    restarts: int
    restart_attempts: int
    counts: CheckpointCounts
    last_restore: Restore | None
    checkpoints: tuple[CheckpointRecord, ...]
    failures: tuple[JobFailure, ...]
