"""The proof of a table's snapshots in numbers and in one sentence: where they stand in the ledger."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from harness.model import NO_OPERATION, RunResult, SnapshotPosition
from harness.report.wording import duration, first_finding, one_line

ORACLE = "snapshot_prefix"

_NAMED_AT_MOST = 6


@dataclass(frozen=True, kw_only=True)
class TableProof:
    """A table's snapshots. `nowhere` hold the source after no operation, `torn` a part of a failed checkpoint
    that was committed late, `back` the source after an earlier operation than one before them; `unseen` are
    those from the first on of which it is not known what they held: all are numbers of snapshots. `whole`
    counts those that were read whole.

    Waits are in seconds, of the snapshots that brought an operation; None when none is known to have.
    """

    table: str
    snapshots: int
    whole: int
    inside: int
    nowhere: tuple[int, ...]
    torn: tuple[int, ...]
    back: tuple[int, ...]
    unseen: tuple[int, ...]
    median_s: float | None
    longest_s: float | None

    @property
    def bad(self) -> int:
        """How many do not stand where they should."""
        return len(self.nowhere) + len(self.back)

    @property
    def proven(self) -> bool:
        """Whether there were snapshots, and every one of them is known and stands where it should."""
        return self.snapshots > 0 and not self.bad and not self.unseen


def proofs(result: RunResult) -> tuple[TableProof, ...]:
    """One per table; none when no snapshot of the run has a position."""
    if not result.positions:
        return ()
    names = dict.fromkeys([*(item.name for item in result.tables), *(p.table for p in result.positions)])
    return tuple(_proof(result, name) for name in names)


def positions_of_table(result: RunResult, table: str) -> tuple[SnapshotPosition, ...]:
    """The table's positions by the number of the snapshot."""
    own = (position for position in result.positions if position.table == table)
    return tuple(sorted(own, key=lambda position: position.snapshot_id))


def gone_back(positions: Sequence[SnapshotPosition]) -> frozenset[int]:
    """The snapshots that hold an earlier operation than one before them."""
    found, newest = set(), 0
    for position in positions:
        if position.operation == NO_OPERATION:
            continue
        if position.operation < newest:
            found.add(position.snapshot_id)
        newest = max(newest, position.operation)
    return frozenset(found)


def sentence(proof: TableProof, *, counted: bool = True) -> str:
    """The proof of a table in one sentence, without its name and the full stop; `counted`: with the number
    of its snapshots.
    """
    if not proof.snapshots:
        return "no snapshot could be set against the ledger"
    if not proof.bad and not proof.torn:
        count, parts = ", ", ["each equal to the source after one operation, in order"]
    else:
        right = proof.snapshots - len(proof.nowhere) - len(proof.torn)
        count, parts = ": ", [f"{right:,} equal to the source after one operation"]
        if proof.nowhere:
            parts[0] += f", {len(proof.nowhere):,} to none ({listed(proof.nowhere)})"
        if proof.torn:
            parts.append(f"{len(proof.torn):,} torn, a part of a failed checkpoint ({listed(proof.torn)})")
        if proof.back:
            parts.append(f"not in order: {len(proof.back):,} went back ({listed(proof.back)})")
    if proof.unseen:
        parts.append(f"of {len(proof.unseen):,} more it is not known what they held ({listed(proof.unseen)})")
    parts.append(f"{proof.inside:,} fell inside a source transaction")
    if proof.median_s is not None and proof.longest_s is not None:
        waits = f"{duration(proof.median_s)} median, {duration(proof.longest_s)} at most"
        parts.append(f"wait from commit to visible: {waits}")
    many = "1 snapshot" if proof.snapshots == 1 else f"{proof.snapshots:,} snapshots"
    return (many + count if counted else "") + "; ".join(parts)


def why_none(result: RunResult) -> str:
    """Why no snapshot of a run has a position, in one sentence."""
    judged = next((item for item in result.oracles if item.oracle == ORACLE), None)
    if not result.fences:
        return "No fence was reached, and snapshots are set against the ledger from the first one on."
    if not any(fence.visible for fence in result.fences):
        return "No fence became visible in the sink, and snapshots count from the first one that does."
    if judged is not None and first_finding(judged):
        return f"Not known: {first_finding(judged)}."
    return "Not known: this run has no evidence of what each snapshot held."


def listed(snapshots: Sequence[int]) -> str:
    """`snapshots 31-34, 40`: numbers with runs drawn together, at most six of them."""
    runs = [f"{first}" if first == last else f"{first}-{last}" for first, last in _runs(snapshots)]
    more = f" and {len(runs) - _NAMED_AT_MOST} more" if len(runs) > _NAMED_AT_MOST else ""
    word = "snapshot" if len(snapshots) == 1 else "snapshots"
    return f"{word} {', '.join(runs[:_NAMED_AT_MOST])}{more}"


def _runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def _proof(result: RunResult, table: str) -> TableProof:
    positions = positions_of_table(result, table)
    back = gone_back(positions)
    waits = _waits(positions)
    return TableProof(
        table=one_line(table),
        snapshots=len(positions),
        whole=sum(position.whole for position in positions),
        inside=sum(position.inside_transaction for position in positions),
        nowhere=tuple(
            item.snapshot_id for item in positions if item.operation == NO_OPERATION and not item.torn
        ),
        torn=tuple(item.snapshot_id for item in positions if item.torn),
        back=tuple(sorted(back)),
        unseen=_unseen(result, table, [position.snapshot_id for position in positions]),
        median_s=statistics.median(waits) if waits else None,
        longest_s=max(waits, default=None),
    )


def _unseen(result: RunResult, table: str, placed: Sequence[int]) -> tuple[int, ...]:
    if not placed:
        return ()
    newest = max(*placed, *(item.snapshot_id for item in result.snapshots if item.table == table), 0)
    return tuple(sorted({*range(placed[0], newest + 1)} - {*placed}))


def _waits(positions: Sequence[SnapshotPosition]) -> list[float]:
    """Of snapshots that brought an operation: the same one shown again says nothing of a wait.

    The first is left out, since one before it may have shown its operation.
    """
    newest, waits = None, []
    for position in positions:
        if position.operation == NO_OPERATION:
            continue
        if newest is not None and position.operation > newest:
            waits.append(position.lag_ms / 1000)
        newest = max(newest or 0, position.operation)
    return waits
