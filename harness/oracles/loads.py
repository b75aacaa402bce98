"""Whether the source was written to while a fault was on and after it: part of the oracle `fault_effect`.

A fault under which nothing was committed could hurt nothing, and a workload that stopped looks like a sink
that is well. It can't see whether there were as many operations as the scenario wants: one is enough.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from harness.model import Check, FaultProof
from harness.oracles.exhibits import Exhibits, OpenTable

AT_LEAST = "at least 1 operation besides markers"


@dataclass(frozen=True, kw_only=True)
class Load:
    """What a table's source committed in a time around a fault; `when` says which, in words."""

    table: str
    when: str
    check: Check


@dataclass(frozen=True, kw_only=True)
class _Time:
    """From one moment to another, both included (epoch ms); `until_ms` is 0 when it never ended."""

    when: str
    since_ms: int
    until_ms: int


def loads(exhibits: Exhibits, proof: FaultProof) -> tuple[Load, ...]:
    """What each table's source committed while a fault was on, and from then to the table's next fence.

    Nothing for a fault that was never injected. Where a fence is missing, the oracle `completeness` says so.
    """
    if not proof.injected_at_ms:
        return ()
    return tuple(
        _load(table, time, _markers(exhibits, table))
        for table in exhibits.tables()
        for time in _times(table, proof)
    )


def _times(table: OpenTable, proof: FaultProof) -> tuple[_Time, ...]:
    """The workload is paused only between a fence's marker and its reading, so never in all of one of these.

    Before a fault inside a bulk update it is paused too, but goes on as soon as that was injected.
    """
    since, over = proof.injected_at_ms, max(proof.healed_at_ms, proof.recovered_at_ms)
    fence = next((at for each in table.fences if (at := each.mark.committed_at_ms) >= since), 0)
    ends = [at for at in (over, fence) if at]
    on = _Time(when="while it was on", since_ms=since, until_ms=min(ends, default=0))
    if not over or not fence:
        return (on,)
    return (on, _Time(when="from its end to the next fence", since_ms=over, until_ms=fence))


def _markers(exhibits: Exhibits, table: OpenTable) -> set[int]:
    """The operations that are rows of the harness: the fences', and those around a bulk update."""
    bulks = [bulk for bulk in exhibits.evidence.bulks if bulk.table == table.name]
    return {
        *(fence.mark.operation for fence in table.fences),
        *(bulk.first_operation - 1 for bulk in bulks),
        *(bulk.last_operation + 1 for bulk in bulks),
    }


def _load(table: OpenTable, time: _Time, markers: set[int]) -> Load:
    at = table.ledger["committed_at_ms"]
    inside = pc.greater_equal(at, time.since_ms)
    lasted = ""
    if time.until_ms:
        inside = pc.and_(inside, pc.less_equal(at, time.until_ms))
        lasted = f" in {(time.until_ms - time.since_ms) / 1000:.1f} s"
    operations = table.ledger["operation"].filter(inside)
    marked = pc.is_in(operations, value_set=pa.array(sorted(markers), pa.int64()))
    count = len(operations) - (pc.sum(marked).as_py() or 0)
    return Load(
        table=table.name,
        when=time.when,
        check=Check(
            name=f"{table.name}: committed {time.when}",
            expected=AT_LEAST,
            actual=f"{count:,}{lasted}",
            held=count > 0,
        ),
    )
