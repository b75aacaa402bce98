"""A clean run's evidence with a place for every defect: compactions, moves, deletes, sums, a bulk update.

Snapshots of each table: 1 and 2 (fence 1), 3 and 4 (the kill), 5 a compaction, 6 and 7 (fence 2), 8 and 9
(the stop), 10 a compaction, 11 to 14 (fence 3), and 15 that brings nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import evidence_folders as folders
import factories
import pyarrow.parquet as pq
from aggregate_folders import aggregate
from commit_folders import with_commits
from evidence_folders import FIRST_DAY, SECOND_DAY, Change, Story
from factories import BEHAVIOR_LOG, LOG_SUMS, ORDERS, START_MS

from harness.ledger import DELETE, INSERT, UPDATE, state_after
from harness.model import BulkUpdate, Evidence, JobMoment, SnapshotRecord
from harness.replay import DELTA

FENCES = {1: 2, 2: 7, 3: 14}
"""The snapshot of each fence."""

COMPACTIONS, STOPPED, LAST = (5, 10), 9, 15


def _order(key: int, *, minute: int) -> folders.Row:
    return folders.order(key, cents=137 * key, status=1, dt=_day(key), minute=minute)


def _day(key: int) -> str:
    return FIRST_DAY if key % 2 else SECOND_DAY


def orders(first: int, count: int, *, minute: int) -> list[Change]:
    """Rows in two partitions; of those that came three before, some are changed, moved or deleted."""
    found = []
    for number in range(count + 3):
        key, earlier = first + number, first + number - 3
        if number < count:
            found.append(Change(INSERT, _order(key, minute=minute + number)))
        if number < 3:
            continue
        row = _order(earlier, minute=minute + number)
        how = (number - 3) % 4
        if how == 0:
            found.append(Change(UPDATE, row | {"order_status": 3}))
        elif how == 1:
            found.append(Change(UPDATE, row | {"dt": FIRST_DAY if row["dt"] == SECOND_DAY else SECOND_DAY}))
        elif how == 2:
            found.append(Change(DELETE, _order(earlier, minute=minute + number - 3)))
    return found


def bulk(first: int, count: int) -> list[Change]:
    """Every one of these rows is changed, one after the other."""
    return [
        Change(UPDATE, _order(key, minute=80) | {"order_status": 4}) for key in range(first, first + count)
    ]


def logs(first: int, count: int) -> list[Change]:
    """Logged events in two partitions."""
    return [
        Change(
            INSERT,
            folders.log(
                f"log-{key}", user=key, kind=("click", "view")[key % 2], dt=_day(key // 2), minute=key % 60
            ),
        )
        for key in range(first, first + count)
    ]


STORIES: Mapping[str, Story] = {
    ORDERS.name: Story(
        chapters=(
            [
                *folders.first_changes(ORDERS.name),
                *(Change(INSERT, folders.order(key, cents=111 * key)) for key in range(300, 320)),
            ],
            [*bulk(300, 20), *orders(100, 30, minute=10)],
            orders(200, 50, minute=40),
        ),
        cut=0,
    ),
    BEHAVIOR_LOG.name: Story(
        chapters=(folders.first_changes(BEHAVIOR_LOG.name), logs(100, 40), logs(200, 50)), cut=0
    ),
}


def evidence(folder: Path) -> Evidence:
    """The evidence of such a run, in files of this folder."""
    told = folders.evidence(folder, STORIES)
    for table in (ORDERS.name, BEHAVIOR_LOG.name):
        told = _spread(told, table)
    told = with_commits(told)
    log = told.contract(BEHAVIOR_LOG.name)
    records = [replace(one, table=LOG_SUMS.name) for one in told.snapshots if one.table == log.name]
    ledger, cuts = pq.read_table(folder / log.ledger_file), _cuts(_marks(told, log.name))
    return replace(told, aggregates=(aggregate(ledger, log, records, cuts, folder),), bulks=(_bulk(told),))


def _marks(told: Evidence, table: str) -> list[int]:
    return [fence.mark.operation for fence in told.fences if fence.mark.table == table]


def _stops(marks: Sequence[int]) -> list[tuple[int, int]]:
    """Every second snapshot with the operation that it holds the source after; those before are half way."""
    first, second, third = marks
    return [
        (2, first),
        (4, first + (second - first) // 2),
        (7, second),
        (STOPPED, second + (third - second) // 3),
        (12, second + (third - second) * 2 // 3),
        (14, third),
    ]


def _cuts(marks: Sequence[int]) -> dict[int, int]:
    """The operation that every snapshot holds the source after."""
    found, before = dict[int, int](), 0
    for number, operation in _stops(marks):
        found |= {number - 1: (before + operation) // 2, number: operation}
        before = operation
    found |= {number: found[number - 1] for number in (*COMPACTIONS, LAST)}
    return dict(sorted(found.items()))


def _spread(told: Evidence, table: str) -> Evidence:
    """The evidence with more snapshots of a table."""
    folder, contract = Path(told.folder), folders.contract_of(table)
    fences = [fence for fence in told.fences if fence.mark.table == table]
    marks = _marks(told, table)
    cuts = _cuts(marks)
    ledger = pq.read_table(folder / contract.ledger_file)
    like = [
        replace(fences[0], snapshot_id=number, mark=replace(fences[0].mark, operation=operation))
        for number, operation in _stops(marks)
    ]
    history = replace(
        folders.history(ledger, table, like, folder), base_snapshot=2, whole=(2, *COMPACTIONS, LAST)
    )
    after = cuts[STOPPED]
    emitted = sum(2 if kind == UPDATE else 1 for kind in ledger["kind"].to_pylist()[after:])
    moment = JobMoment(life=2, restarts=0, source_records=emitted)
    state = next(state for state in told.states if state.table == table)
    pq.write_table(state_after(ledger, after, key=contract.source_key), folder / state.sink_rows)
    records = _records(folder, told, table)
    times = {record.snapshot_id: record.committed_at_ms for record in records}
    return replace(
        told,
        fences=tuple(
            replace(
                fence,
                snapshot_id=(number := FENCES[fence.mark.number]),
                snapshot_at_ms=times[number],
                job=moment if fence is fences[-1] else fence.job,
            )
            if fence in fences
            else fence
            for fence in told.fences
        ),
        travels=tuple(
            replace(
                travel,
                snapshot_id=(number := FENCES[travel.fence]),
                resolved_id=number,
                at_ms=times[number],
            )
            if travel.table == table
            else travel
            for travel in told.travels
        ),
        states=tuple(
            replace(one, snapshot_id=STOPPED, committed=after + 4) if one is state else one
            for one in told.states
        ),
        histories=tuple(history if one.table == table else one for one in told.histories),
        snapshots=(*(one for one in told.snapshots if one.table != table), *records),
    )


def _records(folder: Path, told: Evidence, table: str) -> list[SnapshotRecord]:
    """The snapshots' metadata; a compaction has the commit identifier of the snapshot before it."""
    history = next(one for one in told.histories if one.table == table)
    changes = pq.read_table(folder / history.changes)
    brought = [
        number
        for number, part in zip(*(changes[n].to_pylist() for n in ("snapshot_id", "part")), strict=True)
        if part == DELTA
    ]
    logged = pq.read_table(folder / history.changelog)["snapshot_id"].to_pylist() if history.changelog else []
    marks = {FENCES[number]: START_MS - 20_000 + number * 40_000 + 2_900 for number in FENCES}
    found, at = list[SnapshotRecord](), START_MS + 1_000
    for number in range(1, LAST + 1):
        at = marks.get(number, at + 2_000)
        compacts = number in COMPACTIONS
        found.append(
            replace(
                factories.snapshot(table),
                snapshot_id=number,
                kind="COMPACT" if compacts else "APPEND",
                commit_identifier=1_000 + number - compacts,
                committed_at_ms=at,
                total_records=brought.count(number) if number == 1 else 0,
                delta_records=brought.count(number),
                changelog_records=logged.count(number),
            )
        )
    return found


def _bulk(told: Evidence) -> BulkUpdate:
    """The update of twenty rows, of which snapshot 3 holds a part."""
    first = _marks(told, ORDERS.name)[0]
    return BulkUpdate(
        table=ORDERS.name,
        fault=1,
        first_operation=first + 1,
        last_operation=first + 20,
        committed_at_ms=START_MS + 25_000,
        restored_checkpoint=1_003,
    )
