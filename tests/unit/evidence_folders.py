"""Evidence folders to judge: a small ledger, fences with Parquet files, and a place to plant a defect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import factories
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from harness.ledger import DELETE, INSERT, ROW_SCHEMA, UPDATE, Ledger, Operation, Row, state_after
from harness.model import Evidence, Fence, FenceMark, JobHistory, Reading, TimeWindow
from harness.oracles.comparison import totals
from harness.source.orders import CONTRACT

Rows = list[dict[str, Any]]
Edit = Callable[[Rows], Rows]

FIRST_DAY, SECOND_DAY = "2026-07-05", "2026-07-06"


def row(key: int, *, cents: int = 1000, status: int = 1, dt: str = SECOND_DAY, minute: int = 0) -> Row:
    """An order that was last changed `minute` minutes after the start."""
    at_ms = factories.START_MS + minute * 60_000
    return Row(key, 7, cents, status, factories.START_MS, at_ms, dt)


def first_orders() -> list[Operation]:
    """Twelve orders in two partitions, of which one is changed, one moves, and one is deleted."""
    inserted = [
        Operation(INSERT, row(key, cents=100 * key, dt=FIRST_DAY if key % 2 else SECOND_DAY, minute=key))
        for key in range(1, 13)
    ]
    return [
        *inserted,
        Operation(UPDATE, row(3, cents=999, status=2, dt=FIRST_DAY, minute=20)),
        Operation(UPDATE, row(4, cents=400, dt=FIRST_DAY, minute=21)),
        Operation(DELETE, row(5, cents=500, dt=FIRST_DAY, minute=5)),
    ]


def marker(number: int) -> Operation:
    """The row that is committed last before a fence."""
    return Operation(INSERT, row(-number, cents=0, dt=FIRST_DAY, minute=22))


def mark(number: int, operation: int) -> FenceMark:
    """Where a marker row is found."""
    return FenceMark(
        number=number,
        operation=operation,
        partition=FIRST_DAY,
        key=-number,
        committed_at_ms=factories.START_MS + number * 40_000,
    )


def edited(table: pa.Table, edit: Edit) -> pa.Table:
    """The table after an edit of its rows."""
    return pa.Table.from_pylist(edit(table.to_pylist()), schema=ROW_SCHEMA)


def fence(ledger: pa.Table, at: FenceMark, folder: Path) -> Fence:
    """A fence whose source and sink are the ledger's state."""
    state = state_after(ledger, at.operation, key=CONTRACT.source_key)
    window = middle_of(state)
    source_file, sink_file = f"fence-{at.number}-source.parquet", f"fence-{at.number}-sink.parquet"
    pq.write_table(state, folder / source_file)
    pq.write_table(state, folder / sink_file)
    seen = totals(state, window, CONTRACT)
    return Fence(
        mark=at,
        baseline=at.number == 1,
        visible=True,
        visible_at_ms=at.committed_at_ms + 3_000,
        snapshot_id=40 + at.number,
        snapshot_at_ms=at.committed_at_ms + 2_000,
        window=window,
        source=Reading(reader="mysql", totals=seen),
        sink=(Reading(reader="pypaimon-rust", totals=seen), Reading(reader="flink-sql", totals=seen)),
        source_rows=source_file,
        sink_rows=sink_file,
    )


def middle_of(state: pa.Table) -> TimeWindow:
    """The middle half of the rows' times."""
    bounds = pc.min_max(state[CONTRACT.time]).as_py()
    quarter: timedelta = (bounds["max"] - bounds["min"]) / 4
    return TimeWindow(start=bounds["min"] + quarter, end=bounds["max"] - quarter)


def living_job(**changes: Any) -> JobHistory:
    """A job that restarted once and completed a checkpoint after the fault of factories.proof()."""
    done = factories.job().checkpoints[0]
    later = replace(done, checkpoint_id=9, triggered_at_ms=factories.START_MS + 60_000)
    return replace(factories.job(), checkpoints=(done, later), **changes)


def evidence(folder: Path) -> Evidence:
    """A clean run with one fault and two fences."""
    ledger = Ledger()
    ledger.append([*first_orders(), marker(1)], transaction=1, committed_at_ms=factories.START_MS)
    before = len(ledger)
    changed = [
        Operation(UPDATE, row(6, cents=650, status=3, minute=30)),
        Operation(INSERT, row(13, minute=9)),
    ]
    ledger.append([*changed, marker(2)], transaction=2, committed_at_ms=factories.START_MS + 1)
    table = ledger.table()
    pq.write_table(table, folder / "ledger.parquet")
    return Evidence(
        folder=str(folder),
        contract=CONTRACT,
        expected_faults=1,
        expected_fences=2,
        fences=(fence(table, mark(1, before), folder), fence(table, mark(2, len(ledger)), folder)),
        faults=(factories.proof(),),
        jobs=(living_job(),),
        workload=factories.WORKLOAD,
    )


def spoiled(clean: Evidence, *, sink: Edit | None = None, source: Edit | None = None) -> Evidence:
    """The evidence with a defect planted at its last fence, in the files of its folder too."""
    folder, last = Path(clean.folder), clean.fences[-1]
    changes: dict[str, Any] = {}
    for edit, file in ((sink, last.sink_rows), (source, last.source_rows)):
        if edit is None:
            continue
        rows = edited(pq.read_table(folder / file), edit)
        pq.write_table(rows, folder / file)
        seen = totals(rows, last.window, CONTRACT)
        if edit is sink:
            changes["sink"] = tuple(replace(reading, totals=seen) for reading in last.sink)
        if edit is source:
            changes["source"] = replace(last.source, totals=seen)
    return with_last_fence(clean, **changes)


def with_last_fence(clean: Evidence, **changes: Any) -> Evidence:
    """The evidence with its last fence changed."""
    return replace(clean, fences=(*clean.fences[:-1], replace(clean.fences[-1], **changes)))
