"""Oracle: a snapshot shows all partitions as of one operation, none ahead of the others and none behind.

Each partition is found in the ledger by itself, and the operations after which it was so must have one in
common. A partition in which nothing remains is as one that was never written. It can't see a state that
no snapshot held, and a table of one partition can't be torn.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow.compute as pc

from harness.model import OracleResult, SnapshotRecord, Verdict
from harness.oracles import late_commits
from harness.oracles.comparison import MAX_EXAMPLES, difference
from harness.oracles.exhibits import Exhibits, OpenTable
from harness.oracles.fingerprints import Content, Stretches
from harness.oracles.histories import Seen, named, require_history, require_source
from harness.oracles.judgement import Judgement, require_every_fence
from harness.oracles.prefixes import known_contents, most_agreed, positions
from harness.replay import rows_at

NAME = "partition_atomicity"

TORN, NO_STATE, FOREIGN, BACK = "partitions-torn", "partition-no-state", "partition-foreign", "went-back"

_WHAT: Mapping[str, str] = {
    TORN: "partitions stand at different operations of the source",
    NO_STATE: "a partition holds what the source never held there",
    FOREIGN: "a partition has rows that the source never had",
    BACK: "all partitions went back to an earlier operation",
}


@dataclass(frozen=True, kw_only=True)
class _Torn:
    """A snapshot whose partitions have no operation in common, not before `floor`."""

    record: SnapshotRecord
    code: str
    floor: int


def judge(exhibits: Exhibits) -> OracleResult:
    """VALID when the partitions of every snapshot from the first fence on agree on an operation, in order."""
    judgement = Judgement(NAME, unit="partitions of snapshots")
    for table in exhibits.tables():
        found = require_history(judgement, table)
        if found is None:
            continue
        if require_source(judgement, table, subject="partitions"):
            accepted = late_commits.LIMIT in exhibits.evidence.accepts
            _judge_table(judgement, table, found, spared=_torn(table) if accepted else frozenset())
    require_every_fence(judgement, exhibits.evidence, exhibits.evidence.tables)
    return judgement.result()


def in_common(partitions: Mapping[str, Stretches], *, first: int) -> int | None:
    """The first operation, not before `first`, after which each partition is as it is; None for none."""
    operation, waiting = first, len(partitions)
    while waiting:
        waiting = 0
        for when in partitions.values():
            there = when.first_from(operation)
            if there is None:
                return None
            if there > operation:
                operation, waiting = there, 1
    return operation


def _torn(table: OpenTable) -> frozenset[int]:
    return frozenset(one.snapshot_id for one in positions(table) if one.torn)


def _judge_table(judgement: Judgement, table: OpenTable, found: Seen, *, spared: frozenset[int]) -> None:
    holds, floor, bad = known_contents(table, found), 0, list[_Torn]()
    most = 0
    for record in found.known:
        content = holds[record.snapshot_id]
        judgement.examined += len(content.partitions)
        most = max(most, len(content.partitions))
        operation = in_common(content.partitions, first=floor)
        if operation is None and record.snapshot_id not in spared:
            bad.append(_Torn(record=record, code=_code(content), floor=floor))
        floor = floor if operation is None else operation
    judgement.check(
        f"{table.name}: all partitions of a snapshot are as of one operation",
        expected=f"one operation in each snapshot from {found.base} to {found.last}",
        actual=f"{len(found.known) - len(bad) - len(spared)} of {len(found.known)} snapshots, "
        f"{most} partitions, until operation {floor}"
        + (f"; {len(spared)} torn late commits, which the scenario accepts" if spared else ""),
        held=not bad and not found.unseen,
    )
    for code in dict.fromkeys(torn.code for torn in bad):
        alike = [torn for torn in bad if torn.code == code]
        _tell(judgement, table, alike[0], holds[alike[0].record.snapshot_id], [torn.record for torn in alike])


def _code(content: Content) -> str:
    if content.foreign:
        return FOREIGN
    if not all(when.starts for when in content.partitions.values()):
        return NO_STATE
    return TORN if in_common(content.partitions, first=0) is None else BACK


def _tell(
    judgement: Judgement, table: OpenTable, torn: _Torn, content: Content, records: list[SnapshotRecord]
) -> None:
    most = in_common(content.partitions, first=0) if torn.code == BACK else None
    if most is None:
        most = most_agreed(content.partitions, first=torn.floor)
    agreed = {name: when for name, when in content.partitions.items() if when.first_from(most) == most}
    others = [name for name in content.partitions if name not in agreed]
    stands = {name: _stands(content.partitions[name], most, agreed) for name in others}
    stands |= {name: f"{rows} rows, of which the source had none" for name, rows in content.foreign.items()}
    first, *rest = (f"{name}: {how}" for name, how in stands.items()) if stands else ("all went back",)
    judgement.find(
        Verdict.INVALID,
        torn.code,
        f"in {len(records)} of the snapshots {_WHAT[torn.code]}",
        where=f"{table.name}, snapshot {torn.record.snapshot_id} ({torn.record.kind})",
        expected=f"all {len(content.partitions)} partitions after one operation, {torn.floor} or later",
        actual=f"{len(agreed)} partitions after operation {most}; {first}"
        + (f" and {len(rest)} more" if rest else "")
        + f"; snapshots {named([record.snapshot_id for record in records])}",
        examples=(*(f"{name}: {how}" for name, how in stands.items()), *_rows(table, torn, content, most))[
            :MAX_EXAMPLES
        ],
    )


def _stands(when: Stretches, most: int, agreed: Mapping[str, Stretches]) -> str:
    """Where a partition stands, seen from the operation that most of them agree on."""
    if not when.starts:
        return "as after no operation"
    behind, ahead = when.last_until(most), when.first_from(most)
    if ahead is None or (behind is not None and most - behind <= ahead - most):
        return f"behind by {most - (behind or 0)} operations, as after operation {behind}"
    until = min(end for other in agreed.values() for end in other.ends if end >= most) if agreed else most
    return f"ahead by {ahead - until} operations, as after operation {ahead}"


def _rows(table: OpenTable, torn: _Torn, content: Content, most: int) -> tuple[str, ...]:
    """How the rows of partitions that are no state differ from the operation that others agree on."""
    names = [name for name, when in content.partitions.items() if not when.starts]
    if not names:
        return ()
    of = table.contract.partition
    rows, state = (
        part.filter(pc.is_in(part[of].cast("string"), value_set=pc.cast(names, "string")))
        for part in (rows_at(table.changes, torn.record.snapshot_id, table.contract), table.state(most))
    )
    return difference(state, rows, table.contract).examples
