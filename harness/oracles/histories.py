"""What a run saw of a table's snapshots: of which the content is known, and what no delta explains.

Shared by the oracles that judge every snapshot from the first fence's on, the base.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow.compute as pc

from harness.model import SnapshotRecord, TableHistory, Verdict
from harness.oracles.comparison import MAX_EXAMPLES, engine
from harness.oracles.exhibits import OpenTable
from harness.oracles.judgement import Judgement
from harness.replay import CORRECTION

APPEND = "APPEND"

WHOLE_WITHIN = 10
"""Of so many snapshots in a row at least one must have been read whole."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """The snapshots of a table from the base to the last one that anything tells of.

    `known` are those whose content is known. The others are `unseen`: not in the history, or of a gap, or
    after one, since their deltas say nothing until the table was read whole again; `after_gap` are the
    snapshots where it was.
    """

    base: int
    last: int
    known: tuple[SnapshotRecord, ...]
    whole: frozenset[int]
    unseen: tuple[int, ...]
    after_gap: frozenset[int]


def seen(table: OpenTable) -> Seen | None:
    """What was seen of a table; None when its base is not known, which must have been read whole."""
    return table.once(_seen)


def _seen(table: OpenTable) -> Seen | None:
    history = table.history
    records = {record.snapshot_id: record for record in table.snapshots}
    if history is None or not history.changes or history.base_snapshot not in {*records} & {*history.whole}:
        return None
    base, gaps = history.base_snapshot, {gap.snapshot_id for gap in history.gaps}
    told = {*records, *gaps, *history.whole, *(fence.snapshot_id for fence in table.fences)}
    last = max(base, *told, pc.max(table.changes["snapshot_id"]).as_py() or 0)
    known, unseen, after_gap, lost = list[SnapshotRecord](), list[int](), set[int](), False
    for number in range(base, last + 1):
        lost |= number in gaps or number not in records
        if number in records and number in history.whole:
            after_gap |= {number} if lost else set()
            lost = False
        if lost:
            unseen.append(number)
        else:
            known.append(records[number])
    return Seen(
        base=base,
        last=last,
        known=tuple(known),
        whole=frozenset(history.whole),
        unseen=tuple(unseen),
        after_gap=frozenset(after_gap),
    )


def require_history(judgement: Judgement, table: OpenTable) -> Seen | None:
    """What was seen of a table, and findings of all that was not; None when nothing can be judged by it.

    UNKNOWN unless the base is the first fence's snapshot, every snapshot from there on is known, and often
    enough one was read whole. A snapshot whose files are gone is INVALID.
    """
    history, found = table.history, seen(table)
    if history is not None:
        _files_that_are_gone(judgement, table.name, history)
    if not table.fences:
        return None  # which the judgement of fences says
    if history is None or found is None:
        judgement.find(
            Verdict.UNKNOWN,
            "history-unread",
            "it is not known what each snapshot of the table held",
            where=table.name,
            actual=_why(history),
        )
        return None
    first = table.fences[0].snapshot_id
    if found.base != first:
        judgement.find(
            Verdict.UNKNOWN,
            "base-elsewhere",
            "the snapshots are not known from the first fence on",
            where=table.name,
            expected=f"from snapshot {first} on",
            actual=f"from snapshot {found.base} on",
        )
    if found.unseen:
        errors = {gap.snapshot_id: gap.error for gap in history.gaps}
        judgement.find(
            Verdict.UNKNOWN,
            "snapshots-unseen",
            f"of {len(found.unseen)} snapshots it is not known what they held",
            where=table.name,
            expected=f"every snapshot from {found.base} to {found.last}",
            actual=f"not known: {named(found.unseen)}",
            examples=tuple(
                f"snapshot {number}: {errors.get(number, 'not in the history, or after one that is unknown')}"
                for number in found.unseen[:MAX_EXAMPLES]
            ),
        )
    _often_enough_whole(judgement, table.name, found)
    return found


def require_source(judgement: Judgement, table: OpenTable, *, subject: str) -> bool:
    """Whether the ledger is what the source held at every fence; else UNKNOWN, and no `subject` is judged."""
    wrong = next((fence for fence in table.fences if table.at(fence).contradiction), None)
    if wrong is None:
        return True
    judgement.find(
        Verdict.UNKNOWN,
        "ledger-is-not-source",
        f"{subject} can't be judged by the ledger: {table.at(wrong).contradiction}",
        where=f"{table.name}, fence {wrong.mark.number}",
    )
    return False


def judge_corrections(judgement: Judgement, table: OpenTable, found: Seen) -> None:
    """INVALID where a table that was read whole is not what its deltas say, unless one of them is missing."""
    changes = table.changes
    later = pc.greater(changes["snapshot_id"], found.base)
    corrections = changes.filter(pc.and_(pc.equal(changes["part"], CORRECTION), later))
    kinds = {record.snapshot_id: record.kind for record in table.snapshots}
    read = sum(record.snapshot_id in found.whole for record in found.known[1:])
    wrong = sorted(corrections["snapshot_id"].unique().to_pylist())
    judgement.check(
        f"{table.name}: what was read whole is what the deltas say",
        expected=f"{read} snapshots read whole after the first, each explained by the deltas since then",
        actual=f"not explained: {named(wrong)}" if wrong else f"{read} explained",
        held=not wrong,
    )
    packed = ", ".join(f'"{name}" := "{name}"' for name in table.contract.columns)
    with engine() as database:
        database.register("corrections", corrections)
        for number in wrong:
            rows = database.execute(
                f"SELECT rowkind, struct_pack({packed})::VARCHAR, count(*) OVER () FROM corrections "  # noqa: S608 - names are ours
                f"WHERE snapshot_id = ? LIMIT {MAX_EXAMPLES}",
                [number],
            ).fetchall()
            by_a_gap = number in found.after_gap or number in found.unseen
            judgement.find(
                Verdict.UNKNOWN if by_a_gap else Verdict.INVALID,
                "unexplained-change",
                "the table changed in a way that no delta shows"
                + (", but deltas before it are not known" if by_a_gap else ""),
                where=f"{table.name}, snapshot {number} ({kinds.get(number, 'of an unknown kind')})",
                expected="exactly the rows that the deltas until then leave",
                actual=f"{rows[0][2]} rows differ",
                examples=tuple(f"{'+' if kind == '+I' else '-'} {row}" for kind, row, _ in rows),
            )


def named(numbers: tuple[int, ...] | list[int]) -> str:
    """The first of these numbers, and how many more there are."""
    more = f" and {len(numbers) - MAX_EXAMPLES} more" if len(numbers) > MAX_EXAMPLES else ""
    return ", ".join(str(number) for number in numbers[:MAX_EXAMPLES]) + more


def _why(history: TableHistory | None) -> str:
    """Why there is no base."""
    if history is None:
        return "no history was kept"
    at_base = [gap.error for gap in history.gaps if gap.snapshot_id == history.base_snapshot]
    return history.error or "; ".join(["no snapshot to begin with that was read whole", *at_base])


def _files_that_are_gone(judgement: Judgement, name: str, history: TableHistory) -> None:
    gone = [gap for gap in history.gaps if gap.files_missing and gap.snapshot_id >= history.base_snapshot]
    if gone:
        judgement.find(
            Verdict.INVALID,
            "sink-files-missing",
            "snapshots can't be read because their files are gone",
            where=f"{name}, snapshot {gone[0].snapshot_id}",
            actual=named([gap.snapshot_id for gap in gone]),
            examples=tuple(f"snapshot {gap.snapshot_id}: {gap.error}" for gap in gone[:MAX_EXAMPLES]),
        )


def _often_enough_whole(judgement: Judgement, name: str, found: Seen) -> None:
    unread, since = [], 0
    for record in found.known:
        number = record.snapshot_id
        since = 0 if number in found.whole else since + 1
        must = number in (found.base, found.last) or record.kind != APPEND or since == WHOLE_WITHIN
        if must and since:
            unread.append(f"snapshot {number} ({record.kind})")
            since = 0
    if unread:
        judgement.find(
            Verdict.UNKNOWN,
            "not-read-whole",
            "deltas were not checked against the whole table as often as they must be",
            where=name,
            expected=f"read whole: the first and the last, each that is not {APPEND}, one in {WHOLE_WITHIN}",
            actual=f"{len(unread)} not read whole",
            examples=tuple(unread[:MAX_EXAMPLES]),
        )
