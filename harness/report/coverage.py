"""In which phase of its jobs' checkpoint cycles each fault landed, and what so many faults can show.

Times are those of three processes: a checkpoint's of the JobManager, a snapshot's of the committer, a
fault's of the harness. They can be set against each other where all of them run on one machine. Of what
happens in the milliseconds of a commit itself they say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from harness.model import CheckpointRecord, JobHistory, RunResult, SnapshotRecord, Verdict
from harness.report.wording import run_verdict

NOT_TESTED = "not tested"
CONFIDENCE = 0.95

CAVEAT = (
    "A fault counts for every job that was under test then, and in both phases where two hold: a checkpoint "
    "may begin before the snapshot of the one before it is there. A checkpoint is complete here when its "
    "last task has acknowledged it. The three times are told by the JobManager, the committer and the "
    "harness, which share one machine's clock in the compose stack; where they do not, a phase is as sure as "
    "their clocks are alike. A bound takes each fault of a kind for as likely to do harm as any other, "
    "whatever the phase, and holds for this load and configuration; for many faults it is about 3 divided "
    "by their number."
)


class CyclePhase(Enum):
    """A stretch of a job's checkpoint cycle."""

    BETWEEN = "between checkpoints"
    FLOWING = "barriers flowing"
    COMPLETE = "checkpoint complete, commit not yet visible"
    COMMITTING = "during the commit"


TOLD_APART = (CyclePhase.BETWEEN, CyclePhase.FLOWING, CyclePhase.COMPLETE)
"""COMMITTING is not: nothing that a run records says when a commit's requests began."""


@dataclass(frozen=True, kw_only=True)
class CoverageRow:
    """How often faults of a kind met each phase of a job's cycle; two may hold at one moment.

    `unplaced` are faults that landed, but at a moment of which the job's history does not say enough.
    """

    fault: str
    job: str
    counts: Mapping[CyclePhase, int]
    unplaced: int

    @property
    def cells(self) -> tuple[str, ...]:
        """A text for each phase."""
        return tuple(str(self.counts.get(phase, 0) or NOT_TESTED) for phase in CyclePhase)


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The most that the probability of a violation per fault can be, with CONFIDENCE."""

    fault: str
    landed: int
    probability: float


def coverage(result: RunResult) -> tuple[CoverageRow, ...]:
    """One row per kind of fault and job, in the order of the run; only faults that bit are counted."""
    rows = []
    for kind in dict.fromkeys(proof.fault for proof in result.faults):
        moments = [item.injected_at_ms for item in result.faults if item.bit and item.fault == kind]
        for name in dict.fromkeys(job.name for job in result.jobs):
            lives = [job for job in result.jobs if job.name == name]
            own = [snapshot for snapshot in result.snapshots if snapshot.table == name]
            met = [phases_at(moment, lives, own) for moment in moments]
            rows.append(
                CoverageRow(
                    fault=kind,
                    job=name,
                    counts={phase: sum(phase in phases for phases in met) for phase in TOLD_APART},
                    unplaced=sum(not phases for phases in met),
                )
            )
    return tuple(rows)


def bounds(result: RunResult) -> tuple[Bound, ...]:
    """One per kind of fault that landed in a VALID run; of any other run, none.

    The exact bound: with probability p, so many faults pass without a violation with (1 - p) to their
    power, which is 5 % at the bound. For many it is about 3 divided by their number (rule of three).
    """
    if run_verdict(result) is not Verdict.VALID:
        return ()
    landed = [proof.fault for proof in result.faults if proof.bit]
    return tuple(
        Bound(fault=kind, landed=landed.count(kind), probability=_upper_bound(landed.count(kind)))
        for kind in dict.fromkeys(landed)
    )


def bound_sentence(bound: Bound) -> str:
    """What a bound says, in one sentence."""
    many = "1 fault" if bound.landed == 1 else f"{bound.landed} faults"
    return (
        f"{bound.fault}: {many} landed and no violation was seen, so with {CONFIDENCE:.0%} confidence the "
        f"probability of a violation per fault of this kind is at most {bound.probability:.1%}."
    )


def phases_at(
    at_ms: int, lives: Sequence[JobHistory], snapshots: Sequence[SnapshotRecord]
) -> frozenset[CyclePhase]:
    """The phases that a job was in at a time (epoch ms); none when its history does not say.

    `lives` are those of one job, `snapshots` those of its table. FLOWING: a checkpoint or savepoint had
    been triggered, and not every task had acknowledged it. COMPLETE: all had, and the snapshot that it led
    to came later. A checkpoint may be triggered before the snapshot of the one before it is there: so both.
    """
    records = sorted(
        (record for life in lives for record in life.checkpoints), key=lambda record: record.triggered_at_ms
    )
    before = [record for record in records if record.triggered_at_ms <= at_ms]
    found = set()
    if any(at_ms < _end_ms(record, records, lives) for record in before):
        found.add(CyclePhase.FLOWING)
    completed = [r for r in before if r.status == "COMPLETED" and _end_ms(r, records, lives) <= at_ms]
    if any(_commit_ms(record, snapshots) > at_ms for record in completed):
        found.add(CyclePhase.COMPLETE)
    if not found and at_ms > 0 and not _something_missing(records, before, completed, snapshots):
        found.add(CyclePhase.BETWEEN)
    return frozenset(found)


def _end_ms(
    record: CheckpointRecord, records: Sequence[CheckpointRecord], lives: Sequence[JobHistory]
) -> float:
    """When a checkpoint was over: the duration of one whose end nobody told may be 0, or until the last
    acknowledgement so far. Such a one was in progress until the next restore or checkpoint.
    """
    told = record.status == "COMPLETED" or (record.status == "FAILED" and record.duration_ms > 0)
    if told:
        return record.triggered_at_ms + record.duration_ms
    later = [
        *(other.triggered_at_ms for other in records),
        *(life.last_restore.at_ms for life in lives if life.last_restore is not None),
    ]
    return min((at for at in later if at > record.triggered_at_ms), default=float("inf"))


def _commit_ms(record: CheckpointRecord, snapshots: Sequence[SnapshotRecord]) -> int:
    """When the snapshot of a checkpoint was committed; 0 for none: with nothing to commit there is none."""
    return min(
        (
            snapshot.committed_at_ms
            for snapshot in snapshots
            if snapshot.kind == "APPEND"
            and snapshot.commit_identifier == record.checkpoint_id
            and snapshot.committed_at_ms >= record.triggered_at_ms  # the job may have begun anew, from 1
        ),
        default=0,
    )


def _something_missing(
    records: Sequence[CheckpointRecord],
    before: Sequence[CheckpointRecord],
    completed: Sequence[CheckpointRecord],
    snapshots: Sequence[SnapshotRecord],
) -> bool:
    """Whether a checkpoint or a snapshot that is not among those known may have been under way."""
    if not records or not snapshots:
        return True
    last = before[-1].checkpoint_id if before else 0
    after = records[len(before)].checkpoint_id if len(before) < len(records) else last + 1
    oldest = min(snapshots, key=lambda snapshot: snapshot.snapshot_id)
    expired = oldest.snapshot_id > 1 and any(
        record.checkpoint_id < oldest.commit_identifier for record in completed[-1:]
    )
    return after > last + 1 or expired


def _upper_bound(landed: int) -> float:
    return float(1 - (1 - CONFIDENCE) ** (1 / landed))
