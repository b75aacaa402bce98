"""Evidence folders to judge: ledgers of two tables, fences with Parquet files, and places to plant defects.

The clean run: fence 1, a kill, fence 2, a stop with a savepoint, fence 3. Its columns are declared here
once more, since the oracles know tables by their contracts alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import factories
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from aggregate_folders import aggregate
from binlog_folders import binlog
from commit_folders import with_commits
from factories import BEHAVIOR_LOG, LOG_SUMS, ORDERS, START_MS, TABLES
from ledger_times import spread

from harness.ledger import DELETE, INSERT, OPERATION_SCHEMA, UPDATE, state_after
from harness.model import (
    Aggregate,
    Evidence,
    Fence,
    FenceMark,
    JobHistory,
    JobMoment,
    Reading,
    SinkState,
    SnapshotRecord,
    TableContract,
    TableHistory,
    TimeTravel,
    TimeWindow,
)
from harness.oracles.comparison import totals
from harness.replay import CHANGE_COLUMNS, CHANGELOG_COLUMNS, DELTA

Row = dict[str, Any]
Rows = list[Row]
Edit = Callable[[Rows], Rows]

FIRST_DAY, SECOND_DAY = "2026-07-05", "2026-07-06"
LAST = 3
"""The number of the last fence."""

STOP = 2
"""The number of the fault that stops the jobs; the fence after it is the last one."""

ROW_SCHEMAS: Mapping[str, pa.Schema] = {
    ORDERS.name: pa.schema(
        [
            ("order_id", pa.int64()),
            ("user_id", pa.int64()),
            ("order_amount", pa.decimal128(18, 2)),
            ("order_status", pa.int8()),
            ("create_time", pa.timestamp("ms")),
            ("update_time", pa.timestamp("ms")),
            ("dt", pa.string()),
        ]
    ),
    BEHAVIOR_LOG.name: pa.schema(
        [
            ("log_id", pa.string()),
            ("user_id", pa.int64()),
            ("event_type", pa.string()),
            ("event_time", pa.timestamp("ms")),
            ("dt", pa.string()),
        ]
    ),
}


class Change(NamedTuple):
    """An operation of a ledger to come: its kind and its row."""

    kind: str
    row: Row


@dataclass(frozen=True, kw_only=True)
class Story:
    """What a table's source committed before each fence, and the operation that its savepoint cut after."""

    chapters: tuple[Sequence[Change], ...]
    cut: int


def order(key: int, *, cents: int = 1000, status: int = 1, dt: str = SECOND_DAY, minute: int = 0) -> Row:
    """An order that was last changed `minute` minutes after the start."""
    return {
        "order_id": key,
        "user_id": 7,
        "order_amount": Decimal(cents) / 100,
        "order_status": status,
        "create_time": time(0),
        "update_time": time(minute),
        "dt": dt,
    }


def log(key: str, *, user: int = 7, kind: str = "click", dt: str = SECOND_DAY, minute: int = 0) -> Row:
    """A logged event, `minute` minutes after the start."""
    return {"log_id": key, "user_id": user, "event_type": kind, "event_time": time(minute), "dt": dt}


def time(minute: int) -> datetime:
    """So many minutes after the start, as the source writes it."""
    return datetime.fromtimestamp(START_MS / 1000, UTC).replace(tzinfo=None) + timedelta(minutes=minute)


def first_changes(table: str) -> list[Change]:
    """Twelve rows in two partitions. One order is changed, one moves, and one is deleted."""
    days = {key: FIRST_DAY if key % 2 else SECOND_DAY for key in range(1, 13)}
    if table == BEHAVIOR_LOG.name:
        return [
            Change(INSERT, log(f"log-{key:02}", user=key, dt=day, minute=key)) for key, day in days.items()
        ]
    return [
        *(Change(INSERT, order(key, cents=100 * key, dt=day, minute=key)) for key, day in days.items()),
        Change(UPDATE, order(3, cents=999, status=2, dt=FIRST_DAY, minute=20)),
        Change(UPDATE, order(4, cents=400, dt=FIRST_DAY, minute=21)),
        Change(DELETE, order(5, cents=500, dt=FIRST_DAY, minute=5)),
    ]


def marker(table: str, number: int) -> Change:
    """The row that is committed last before a fence."""
    if table == BEHAVIOR_LOG.name:
        return Change(INSERT, log(f"marker-{number}", user=0, kind="marker", dt=FIRST_DAY, minute=22))
    return Change(INSERT, order(-number, cents=0, dt=FIRST_DAY, minute=22))


def bulk_update(changes: Sequence[Change]) -> list[Change]:
    """One UPDATE of every order but markers, in the order of their keys."""
    rows: Row = {}
    for kind, row in changes:
        rows[row["order_id"]] = row if kind != DELETE else None
    return [
        Change(UPDATE, row | {"order_status": row["order_status"] + 1})
        for key, row in sorted(rows.items())
        if row and key > 0
    ]


STORIES: Mapping[str, Story] = {
    ORDERS.name: Story(
        chapters=(
            first_changes(ORDERS.name),
            (
                Change(UPDATE, order(6, cents=650, status=3, minute=30)),
                Change(INSERT, order(13, minute=9)),
            ),
            (
                Change(INSERT, order(14, minute=10)),
                Change(UPDATE, order(14, cents=1400, minute=31)),  # the savepoint cuts here
                Change(UPDATE, order(13, cents=1300, minute=32)),
                Change(DELETE, order(2, cents=200, minute=2)),
            ),
        ),
        cut=21,
    ),
    BEHAVIOR_LOG.name: Story(
        chapters=(
            first_changes(BEHAVIOR_LOG.name),
            [Change(INSERT, log(f"log-{key}", user=key, minute=key)) for key in (13, 14, 15)],
            [Change(INSERT, log(f"log-{key}", user=key, minute=key)) for key in (16, 17, 18, 19)],
        ),
        cut=19,
    ),
}


def ledger(table: str, changes: Sequence[Change]) -> pa.Table:
    """The ledger of a source that committed these changes, each in a transaction of its own."""
    rows = [
        {"operation": number, "transaction": number, "committed_at_ms": START_MS + number, "kind": kind} | row
        for number, (kind, row) in enumerate(changes, start=1)
    ]
    return pa.Table.from_pylist(rows, schema=pa.schema([*OPERATION_SCHEMA, *ROW_SCHEMAS[table]]))


def mark(table: str, number: int, operation: int) -> FenceMark:
    """Where a marker row is found."""
    return replace(
        factories.mark(table, number, operation=operation),
        partition=FIRST_DAY,
        key=marker(table, number).row[contract_of(table).source_key],
    )


def contract_of(table: str) -> TableContract:
    """The contract of one of the two tables."""
    return next(contract for contract in TABLES if contract.name == table)


def fence(changes: pa.Table, at: FenceMark, folder: Path) -> Fence:
    """A fence whose source and sink are the ledger's state; `changes` is the ledger."""
    contract = contract_of(at.table)
    state = state_after(changes, at.operation, key=contract.source_key)
    window = middle_of(state, contract)
    files = [f"{at.table}-fence-{at.number}-{side}.parquet" for side in ("source", "sink")]
    for file in files:
        pq.write_table(state, folder / file)
    seen = totals(state, window, contract)
    return replace(
        factories.fence(at.table, at.number),
        mark=at,
        snapshot_id=2 * at.number,
        window=window,
        source=Reading(reader="mysql", totals=seen),
        sink=(Reading(reader="pypaimon-rust", totals=seen), Reading(reader="flink-sql", totals=seen)),
        source_rows=files[0],
        sink_rows=files[1],
    )


def middle_of(state: pa.Table, contract: TableContract) -> TimeWindow:
    """The middle half of the rows' times."""
    bounds = pc.min_max(state[contract.time]).as_py()
    quarter: timedelta = (bounds["max"] - bounds["min"]) / 4
    return TimeWindow(start=bounds["min"] + quarter, end=bounds["max"] - quarter)


def travel(at: Fence, folder: Path) -> TimeTravel:
    """A fence's snapshot read again at the end, and found as it was."""
    native, flink = at.sink
    file = f"{at.mark.table}-travel-{at.mark.number}-sink.parquet"
    pq.write_table(pq.read_table(folder / at.sink_rows), folder / file)
    return replace(
        factories.travel(at.mark.table, at.mark.number),
        snapshot_id=at.snapshot_id,
        resolved_id=at.snapshot_id,
        by_time=flink,
        by_id=native,
        sink_rows=file,
    )


def state(changes: pa.Table, table: str, operation: int, folder: Path) -> SinkState:
    """A sink that its job left as the ledger was after an operation, while the source went on."""
    kept = state_after(changes, operation, key=contract_of(table).source_key)
    state = replace(
        factories.state(table), fault=STOP, snapshot_id=2 * STOP + 1, committed=changes.num_rows - 1
    )
    pq.write_table(kept, folder / state.sink_rows)
    return state


def cuts(fences: Sequence[Fence]) -> dict[int, int]:
    """The operation that each snapshot of a table holds the source after: one half way to each fence."""
    found, before = {}, 0
    for at in fences:
        found[at.snapshot_id - 1] = (before + at.mark.operation) // 2
        found[at.snapshot_id] = before = at.mark.operation
    return found


class Event(NamedTuple):
    """A row of a changelog: the operation that it comes from, its kind and its row."""

    operation: int
    rowkind: str
    row: Row


def events(changes: pa.Table, table: str) -> list[Event]:
    """What the source's connector makes of a ledger: an update is a -U with the row before, and a +U."""
    contract, held, found = contract_of(table), dict[Any, Row](), list[Event]()
    for entry in changes.to_pylist():
        row = {name: entry[name] for name in contract.columns}
        key, operation = row[contract.source_key], entry["operation"]
        if entry["kind"] == UPDATE:
            found += [Event(operation, "-U", held[key]), Event(operation, "+U", row)]
        else:
            found.append(Event(operation, "+I" if entry["kind"] == INSERT else "-D", row))
        held[key] = row
    return found


def history(changes: pa.Table, table: str, fences: Sequence[Fence], folder: Path) -> TableHistory:
    """Every snapshot's delta and changelog, of a sink that each time holds the ledger after `cuts`.

    A key's delta is the last row of it that a writer got, in each partition: one that moved away is gone.
    """
    contract, at = contract_of(table), cuts(fences)
    schema = pa.schema(ROW_SCHEMAS[table])
    deltas, changelog, before = list[Row](), list[Row](), 0
    numbered = list(enumerate(events(changes, table)))
    for snapshot, operation in sorted(at.items()):
        brought = [(number, event) for number, event in numbered if before < event.operation <= operation]
        last = {(e.row[contract.partition], e.row[contract.source_key]): (n, e) for n, e in brought}
        for number, event in last.values():
            sequence = 0 if contract.append_only else number
            deltas.append(
                {"snapshot_id": snapshot, "part": DELTA, "rowkind": event.rowkind, "sequence": sequence}
                | event.row
            )
        changelog += [
            {"snapshot_id": snapshot, "rowkind": event.rowkind, "sequence": number} | event.row
            for number, event in brought
        ]
        before = operation
    files = [f"{table}-changes.parquet", "" if contract.append_only else f"{table}-changelog.parquet"]
    for file, rows, columns in zip(
        files, (deltas, changelog), (CHANGE_COLUMNS, CHANGELOG_COLUMNS), strict=True
    ):
        if file:
            pq.write_table(pa.Table.from_pylist(rows, schema=pa.schema([*columns, *schema])), folder / file)
    whole = sorted({fences[0].snapshot_id, fences[-1].snapshot_id, *range(10, max(at) + 1, 10)}) if at else []
    return TableHistory(
        table=table,
        changelog_producer="none" if contract.append_only else "input",
        base_snapshot=fences[0].snapshot_id if at else 0,
        whole=tuple(number for number in whole if number >= fences[0].snapshot_id),
        changes=files[0],
        changelog=files[1],
    )


def emitted(changes: pa.Table, table: str, fences: Sequence[Fence]) -> dict[int, int]:
    """How many rows each snapshot's changelog has; an append-only table has none."""
    found, before = {}, 0
    for snapshot, operation in sorted(cuts(fences).items()):
        rows = [event for event in events(changes, table) if before < event.operation <= operation]
        found[snapshot] = 0 if contract_of(table).append_only else len(rows)
        before = operation
    return found


def snapshots(table: str, fences: int, changelog: Mapping[int, int]) -> tuple[SnapshotRecord, ...]:
    """A table's history: one snapshot half way to each fence, and one at it."""
    return tuple(
        replace(
            factories.snapshot(table, (number + 1) // 2),
            snapshot_id=number,
            commit_identifier=1_000 + number,
            changelog_records=changelog[number],
            committed_at_ms=factories.fence(table, (number + 1) // 2).snapshot_at_ms - number % 2 * 20_000,
        )
        for number in range(1, 2 * fences + 1)
    )


def jobs() -> tuple[JobHistory, ...]:
    """Both jobs: restarted by the kill, stopped with a savepoint, and started from it."""
    lives = []
    for table in TABLES:
        first, second = factories.job(table.name, lives=2), factories.job(table.name, life=2, lives=2)
        after_the_kill = factories.checkpoint(9, after_ms=60_000)
        lives += [replace(first, checkpoints=(*first.checkpoints, after_the_kill)), second]
    return tuple(lives)


def sums_of(changes: pa.Table, fences: Sequence[Fence], folder: Path) -> Aggregate:
    """The log's table of sums, with a snapshot for each of the log's own."""
    own = snapshots(BEHAVIOR_LOG.name, len(fences), emitted(changes, BEHAVIOR_LOG.name, fences))
    records = tuple(replace(record, table=LOG_SUMS.name) for record in own)
    return aggregate(changes, BEHAVIOR_LOG, records, cuts(fences), folder)


def evidence(folder: Path, stories: Mapping[str, Story] = STORIES) -> Evidence:
    """A clean run over two tables with two faults and a fence after each chapter of their stories."""
    count = len(stories[ORDERS.name].chapters)
    told = {table: _told(table, story, folder) for table, story in stories.items()}
    fences = tuple(told[table][1][number] for number in range(count) for table in stories)
    ledgers = {table: told[table][0] for table in stories}
    clean = Evidence(
        folder=str(folder),
        tables=tuple(contract_of(table) for table in stories),
        oracles=("completeness",),
        expected_faults=2,
        expected_fences=count,
        fences=fences,
        faults=(factories.proof(), factories.stop_proof()),
        jobs=jobs(),
        workload=factories.WORKLOAD,
        travels=tuple(travel(at, folder) for at in fences),
        states=tuple(state(ledgers[table], table, story.cut, folder) for table, story in stories.items()),
        snapshots=tuple(
            record
            for table in stories
            for record in snapshots(table, count, emitted(ledgers[table], table, told[table][1]))
        ),
        histories=tuple(history(ledgers[table], table, told[table][1], folder) for table in stories),
        binlogs=tuple(binlog(ledgers[table], contract_of(table), folder) for table in stories),
        aggregates=tuple(
            sums_of(ledgers[table], told[table][1], folder) for table in stories if table == BEHAVIOR_LOG.name
        ),
        pins=tuple(factories.pin(table) for table in stories),
    )
    return with_commits(clean)


def _told(table: str, story: Story, folder: Path) -> tuple[pa.Table, list[Fence]]:
    changes: list[Change] = []
    marks = []
    for number, chapter in enumerate(story.chapters, start=1):
        changes += [*chapter, marker(table, number)]
        marks.append(mark(table, number, len(changes)))
    written = spread(ledger(table, changes), marks)
    pq.write_table(written, folder / contract_of(table).ledger_file)
    fences = [fence(written, at, folder) for at in marks]
    emitted = sum(2 if kind == UPDATE else 1 for kind, _ in changes[story.cut :])
    moment = JobMoment(life=2, restarts=0, source_records=emitted)
    return written, [*fences[:-1], replace(fences[-1], job=moment)]


def edited(table: pa.Table, edit: Edit) -> pa.Table:
    """The table after an edit of its rows."""
    return pa.Table.from_pylist(edit(table.to_pylist()), schema=table.schema)


def rewritten(clean: Evidence, file: str, edit: Edit) -> pa.Table:
    """Edit a file of the evidence in its folder, and return its rows."""
    path = Path(clean.folder) / file
    rows = edited(pq.read_table(path), edit)
    pq.write_table(rows, path)
    return rows


def spoiled(
    clean: Evidence,
    table: str,
    number: int = LAST,
    *,
    sink: Edit | None = None,
    source: Edit | None = None,
    travelled: Edit | None = None,
) -> Evidence:
    """The evidence with a defect planted at a fence of a table, in the files of its folder too."""
    at = fence_of(clean, table, number)
    contract = contract_of(table)
    if sink is not None:
        seen = totals(rewritten(clean, at.sink_rows, sink), at.window, contract)
        clean = with_fence(clean, table, number, sink=tuple(replace(item, totals=seen) for item in at.sink))
    if source is not None:
        seen = totals(rewritten(clean, at.source_rows, source), at.window, contract)
        clean = with_fence(clean, table, number, source=replace(at.source, totals=seen))
    if travelled is not None:
        then = travel_of(clean, table, number)
        seen = totals(rewritten(clean, then.sink_rows, travelled), at.window, contract)
        by_time, by_id = (replace(item, totals=seen) for item in (then.by_time, then.by_id))
        clean = with_travel(clean, table, number, by_time=by_time, by_id=by_id)
    return clean


def fence_of(clean: Evidence, table: str, number: int) -> Fence:
    """A table's fence."""
    return next(at for at in clean.fences if (at.mark.table, at.mark.number) == (table, number))


def travel_of(clean: Evidence, table: str, number: int) -> TimeTravel:
    """A table's time travel to a fence."""
    return next(then for then in clean.travels if (then.table, then.fence) == (table, number))


def with_fence(clean: Evidence, table: str, number: int, **changes: Any) -> Evidence:
    """The evidence with one fence of a table changed."""
    old = fence_of(clean, table, number)
    return replace(clean, fences=tuple(replace(at, **changes) if at is old else at for at in clean.fences))


def with_travel(clean: Evidence, table: str, number: int, **changes: Any) -> Evidence:
    """The evidence with one time travel of a table changed."""
    old = travel_of(clean, table, number)
    return replace(
        clean, travels=tuple(replace(then, **changes) if then is old else then for then in clean.travels)
    )


def history_of(clean: Evidence, table: str) -> TableHistory:
    """A table's history."""
    return next(history for history in clean.histories if history.table == table)


def with_history(clean: Evidence, table: str, **changes: Any) -> Evidence:
    """The evidence with the history of a table changed."""
    old = history_of(clean, table)
    return replace(
        clean, histories=tuple(replace(one, **changes) if one is old else one for one in clean.histories)
    )
