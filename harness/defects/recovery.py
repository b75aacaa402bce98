"""Defects of recovery: jobs that came back wrong, or not at all."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa

from harness.defects.defect import Defect, invalid, unknown
from harness.defects.files import read, write
from harness.defects.parts import keyed, last_life, one, put, some, without
from harness.defects.sink import Sink
from harness.defects.source import QUIET
from harness.errors import NoPlace
from harness.ledger import state_after
from harness.model import Evidence, Fence, JobFailure, SinkState

_MANY = 400
"""How many deleted rows may stay: 386 were seen to, once."""


def restarted_without_state(evidence: Evidence, rng: random.Random) -> Evidence:
    """The job read the source anew after its stop: rows that were deleted meanwhile stay for ever."""
    sink = Sink(evidence, keyed(evidence))
    state = _stop(evidence, sink.contract.name)
    life = next(
        (job for job in evidence.jobs if state.savepoint and job.restored_from == state.savepoint), None
    )
    deleted = sink.source.operations(
        f"kind = 'delete' AND {QUIET}", after=state.committed, until=sink.last.mark.operation
    )[:_MANY]
    if life is None or not deleted:
        raise NoPlace(f"no row of {sink.contract.name} was deleted after a stop with a savepoint")
    rows = [sink.source.row(number) for number in deleted]
    sink.put(sink.snapshot_of_last(), *rows)
    settled = sink.settled()
    return replace(settled, jobs=put(settled.jobs, life, restored_from=""))


def savepoint_not_used(evidence: Evidence, rng: random.Random) -> Evidence:
    """A job began from another savepoint than the one that it was stopped with."""
    state = _stop(evidence, some(evidence).name)
    life = one(
        [job for job in evidence.jobs if state.savepoint and job.restored_from == state.savepoint],
        "life that began from a savepoint",
    )
    return replace(evidence, jobs=put(evidence.jobs, life, restored_from=f"{state.savepoint}-older"))


def source_read_again(evidence: Evidence, rng: random.Random) -> Evidence:
    """After the restart the source emitted changes again that the sink had, and the upsert swallowed them."""
    fence, emitted = _counted(evidence)
    return _emitting(evidence, fence, emitted + rng.randrange(1, 1000))


def source_skipped(evidence: Evidence, rng: random.Random) -> Evidence:
    """After the restart the source emitted fewer changes than there were."""
    fence, emitted = _counted(evidence)
    return _emitting(evidence, fence, emitted - 1)


def stopped_between_states(evidence: Evidence, rng: random.Random) -> Evidence:
    """The stopped sink lacks one row of the state that it stands at."""
    state = _stop(evidence, some(evidence).name)
    rows = read(evidence, state.sink_rows)
    gone = rng.randrange(rows.num_rows)
    write(evidence, state.sink_rows, pa.concat_tables([rows.slice(0, gone), rows.slice(gone + 1)]))
    return evidence


def stopped_sink_behind(evidence: Evidence, rng: random.Random) -> Evidence:
    """The stopped sink is a state of the source from before the last fence: commits were taken back."""
    contract = some(evidence)
    state = _stop(evidence, contract.name)
    before = [fence for fence in evidence.fences_of(contract.name) if fence.mark.operation <= state.committed]
    if not before:
        raise NoPlace(f"{contract.name} was stopped before its first fence")
    rows = read(evidence, state.sink_rows)
    older = state_after(
        read(evidence, contract.ledger_file), before[-1].mark.operation // 2, key=contract.source_key
    )
    write(evidence, state.sink_rows, older.select(rows.column_names).cast(rows.schema))
    return evidence


def stopped_sink_unread(evidence: Evidence, rng: random.Random) -> Evidence:
    """The rows of a stopped sink were not kept."""
    return replace(evidence, states=without(evidence.states, _stop(evidence, some(evidence).name)))


def job_failed(evidence: Evidence, rng: random.Random) -> Evidence:
    """A job is FAILED at the end."""
    return replace(
        evidence, jobs=put(evidence.jobs, last_life(evidence, some(evidence).name), state="FAILED")
    )


def no_checkpoint_after_the_fault(evidence: Evidence, rng: random.Random) -> Evidence:
    """A job completed no checkpoint any more after the last fault was healed."""
    proof = one(evidence.faults, "fault")
    name = some(evidence).name
    return replace(
        evidence,
        jobs=tuple(
            replace(
                job,
                checkpoints=tuple(c for c in job.checkpoints if c.triggered_at_ms <= proof.healed_at_ms),
            )
            if job.name == name
            else job
            for job in evidence.jobs
        ),
    )


def restart_without_a_fault(evidence: Evidence, rng: random.Random) -> Evidence:
    """A job was restarted when no fault was on."""
    life = last_life(evidence, some(evidence).name)
    last = max((checkpoint.triggered_at_ms for checkpoint in life.checkpoints), default=0)
    failure = JobFailure(
        at_ms=last + rng.randrange(1, 1000),
        exception="java.lang.OutOfMemoryError",
        taskmanager="taskmanager-1",
    )
    return replace(
        evidence,
        jobs=put(evidence.jobs, life, restarts=life.restarts + 1, failures=(*life.failures, failure)),
    )


def job_unknown(evidence: Evidence, rng: random.Random) -> Evidence:
    """It is not known what became of a job."""
    name = some(evidence).name
    return replace(evidence, jobs=tuple(job for job in evidence.jobs if job.name != name))


def _stop(evidence: Evidence, table: str) -> SinkState:
    return one(
        [state for state in evidence.states if state.table == table and state.sink_rows], "stopped job"
    )


def _counted(evidence: Evidence) -> tuple[Fence, int]:
    """The fence after a stop, and what the source had emitted there since."""
    table = some(evidence).name
    state = _stop(evidence, table)
    after = [fence for fence in evidence.fences_of(table) if fence.mark.operation > state.committed][:1]
    fence = one(after, "fence after the stop")
    if fence.job is None or fence.job.restarts or fence.job.source_records <= 0:
        raise NoPlace("it is not known what the source emitted after the stop")
    return fence, fence.job.source_records


def _emitting(evidence: Evidence, fence: Fence, records: int) -> Evidence:
    moment = fence.job and replace(fence.job, source_records=records)
    return replace(evidence, fences=put(evidence.fences, fence, job=moment))


DEFECTS: tuple[Defect, ...] = (
    invalid(restarted_without_state, "reconciliation", "snapshot_prefix"),
    unknown(savepoint_not_used, "continuity"),
    invalid(source_read_again, "continuity"),
    invalid(source_skipped, "continuity"),
    invalid(stopped_between_states, "continuity"),
    invalid(stopped_sink_behind, "continuity"),
    unknown(stopped_sink_unread, "continuity"),
    invalid(job_failed, "liveness"),
    invalid(no_checkpoint_after_the_fault, "liveness"),
    unknown(restart_without_a_fault, "liveness"),
    unknown(job_unknown, "liveness"),
)
