"""A fake of the workload: it keeps the promises of its Protocol, without a source."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import evidence_folders as folders
import factories
import pyarrow as pa
from evidence_folders import Change
from factories import BEHAVIOR_LOG, TABLES
from ledger_times import committed_at

from harness.ledger import INSERT
from harness.model import FenceMark, WorkloadOutcome
from harness.ports import BulkMarks
from harness.watching import now_ms

BULK_BEGIN, BULK_END = 901, 902
"""The numbers of the markers around a bulk update."""


class FakeWorkload:
    """Implements `ports.Workload`: some rows in both tables at once, then one in each at each look at
    `committed`.

    None is added while it is paused, before it was started and once it was stopped.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        """`note` is told of each call."""
        self._note = note
        self._changes: dict[str, list[Change]] = {table.name: [] for table in TABLES}
        self._times: dict[str, list[int]] = {table.name: [] for table in TABLES}
        self._fences = self._looks = 0
        self._goes_on = False

    def prepare(self) -> None:
        for table in self._changes:
            self._commit(table, *folders.first_changes(table))

    def start(self) -> None:
        self._note("start")
        self._goes_on = True

    def fence(self) -> tuple[FenceMark, ...]:
        self._note("fence")
        self._goes_on = False
        self._fences += 1
        for table in self._changes:
            self._commit(table, folders.marker(table, self._fences))
        return tuple(
            self._mark(table, self._fences, len(changes)) for table, changes in self._changes.items()
        )

    def probe(self) -> tuple[FenceMark, ...]:
        self._note("probe")
        return tuple(folders.mark(table, 0, len(changes)) for table, changes in self._changes.items())

    def fill(self) -> None:
        self._note("fill")

    def bulk_update(self) -> BulkMarks:
        self._note("bulk_update")
        self._goes_on = False
        changes = self._changes["orders"]
        self._commit("orders", folders.marker("orders", BULK_BEGIN))
        first = len(changes)
        self._commit("orders", *folders.bulk_update(changes))
        self._commit("orders", folders.marker("orders", BULK_END))
        return BulkMarks(
            begin=replace(self._mark("orders", BULK_BEGIN, first), number=0),
            end=replace(self._mark("orders", BULK_END, len(changes)), number=0),
        )

    def resume(self) -> None:
        self._note("resume")
        self._goes_on = True

    def stop(self) -> WorkloadOutcome:
        self._note("stop")
        self._goes_on = False
        return replace(factories.WORKLOAD, operations=self.committed())

    def committed(self) -> int:
        if self._goes_on:
            self._looks += 1
            for table in self._changes:
                self._commit(table, _later(table, self._looks))
        return sum(len(changes) for changes in self._changes.values())

    def ledger(self, table: str) -> pa.Table:
        return committed_at(folders.ledger(table, self._changes[table]), self._times[table])

    def _commit(self, table: str, *changes: Change) -> None:
        self._changes[table] += changes
        self._times[table] += [now_ms()] * len(changes)

    def _mark(self, table: str, number: int, operation: int) -> FenceMark:
        mark = folders.mark(table, number, operation)
        return replace(mark, committed_at_ms=self._times[table][operation - 1])


def _later(table: str, number: int) -> Change:
    """A row that comes under the load, one for each number."""
    row = (
        folders.log(f"later-{number}", minute=23)
        if table == BEHAVIOR_LOG.name
        else folders.order(1_000 + number, minute=23)
    )
    return Change(INSERT, row)
