"""A table of the sink as evidence shows it: damaged in its history, and then in all that was read of it."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from harness.defects.counts import growth, recounted
from harness.defects.files import read, write
from harness.defects.parts import history_of
from harness.defects.source import Row, Source
from harness.errors import NoPlace
from harness.model import (
    Evidence,
    Fence,
    PartitionTotals,
    Reading,
    SinkState,
    TableContract,
    TableHistory,
    TimeTravel,
)
from harness.oracles.comparison import totals
from harness.replay import CORRECTION, DELTA, rows_at

FOR_EVER = 2**62
"""The snapshot that never comes."""


class Sink:
    """One table of the sink, at every snapshot. Changes are made here, and are in the evidence of `settled`:
    the history, and the rows and totals of every fence, time travel and stop that shows them.
    """

    def __init__(self, evidence: Evidence, contract: TableContract) -> None:
        self._evidence = evidence
        self.contract = contract
        self.history: TableHistory = history_of(evidence, contract.name)
        self.fences = evidence.fences_of(contract.name)
        if not self.fences:
            raise NoPlace(f"the run has no fence of {contract.name}")
        self.records = evidence.snapshots_of(contract.name)
        self.source = Source(evidence, contract)
        self.changes = self._as_read = read(evidence, self.history.changes)
        self._changelog = self._changelog_as_read = (
            read(evidence, self.history.changelog) if self.history.changelog else None
        )
        self._changed: list[tuple[int, int]] = []

    @property
    def last(self) -> Fence:
        """The last fence."""
        return self.fences[-1]

    @property
    def before_last(self) -> int:
        """The operation that the last chapter began after: the last but one fence's, 0 when there is none."""
        return self.fences[-2].mark.operation if self.fences[1:] else 0

    def brought(self, *, after: int = 0, until: int = FOR_EVER) -> list[int]:
        """The APPEND snapshots after one and until another that brought rows, in order."""
        ids = set(self._as_read["snapshot_id"].to_pylist())
        return [
            record.snapshot_id
            for record in self.records
            if record.kind == "APPEND" and record.snapshot_id in ids and after < record.snapshot_id <= until
        ]

    def snapshot_of_last(self) -> int:
        """The snapshot that brought the last fence's marker or came with it."""
        found = self.brought(until=self.last.snapshot_id)
        if not found:
            raise NoPlace(f"no snapshot of {self.contract.name} brought rows until its last fence")
        return found[-1]

    def between_fences(
        self,
        rng: random.Random,
        *,
        last_brought: bool = False,
        next_brings: bool = False,
        partitions: int = 1,
    ) -> int:
        """A snapshot by chance that nothing but the history shows: no fence was read at it, nor the stop of a
        job, nor was it read whole. It brought rows of so many partitions; when told so, the one before it
        brought rows, too, or the one after it does. What comes next is no compaction, so that it can heal.
        Nor is it of a checkpoint that failed: half of one is a known limit, which a scenario may accept.
        """
        shown = {fence.snapshot_id for fence in self.fences} | set(self.history.whole)
        shown |= {state.snapshot_id for state in self._evidence.states if state.table == self.contract.name}
        counts = self.selected(
            f'SELECT snapshot_id, count(DISTINCT "{self.contract.partition}") AS n FROM changes GROUP BY 1'
        )
        kinds = {record.snapshot_id: record.kind for record in self.records}
        failed = self._evidence.failed_checkpoints(self.contract.name)
        late = {record.snapshot_id for record in self.records if record.commit_identifier in failed}
        spread = dict(zip(counts["snapshot_id"].to_pylist(), counts["n"].to_pylist(), strict=True))
        brought = set(self.brought(after=self.history.base_snapshot))
        found = [
            number
            for number in sorted(brought)
            if number not in shown | late
            and number < self.last.snapshot_id
            and kinds.get(number + 1) == "APPEND"
            and spread[number] >= partitions
            and (not last_brought or number - 1 in brought)
            and (not next_brings or number + 1 in brought)
        ]
        if not found:
            raise NoPlace(f"no snapshot of {self.contract.name} between fences has what this takes")
        return rng.choice(found)

    def at(self, snapshot_id: int) -> pa.Table:
        """What a snapshot holds."""
        return rows_at(self.changes, snapshot_id, self.contract)

    def put(self, snapshot_id: int, *rows: Row) -> None:
        """Let a snapshot's delta bring these rows, as the last that it brings."""
        self._add(snapshot_id, DELTA, "+I", rows)

    def take(self, snapshot_id: int, *rows: Row) -> None:
        """Let a snapshot's delta take these rows away."""
        self._add(snapshot_id, DELTA, "-D", rows)

    def correct(self, snapshot_id: int, rowkind: str, *rows: Row) -> None:
        """Let the whole read of a snapshot show rows, or not show rows, that no delta speaks of."""
        self._add(snapshot_id, CORRECTION, rowkind, rows)

    def drop(self, condition: str, *parameters: object, since: int = 0) -> None:
        """Lose the changes of snapshots from one on that a condition (SQL) holds for."""
        lost = f"(snapshot_id >= {since} AND ({condition}))"
        of_lost = self.selected(f"SELECT snapshot_id FROM changes WHERE {lost}", *parameters)["snapshot_id"]
        if not len(of_lost):
            raise NoPlace(f"no change of {self.contract.name} from snapshot {since} on has {condition}")
        kept = self.selected(f"SELECT * FROM changes WHERE NOT {lost}", *parameters)
        self.replace(kept, since=pc.min(of_lost).as_py())

    def selected(self, query: str, *parameters: object) -> pa.Table:
        """The answer of a query of `changes`, and of `changelog` where there is one, in SQL."""
        with duckdb.connect(":default:").cursor() as database:
            database.register("changes", self.changes)
            if self._changelog is not None:
                database.register("changelog", self._changelog)
            found: pa.Table = database.sql(query, params=list(parameters)).to_arrow_table()
        return found

    def replace(self, changes: pa.Table, *, since: int = 0, until: int = FOR_EVER) -> None:
        """Take other changes; what snapshots hold from one on, and before another, is not what it was."""
        self.changes = changes.cast(self._as_read.schema)
        self._changed.append((since, until))

    def hold(self, snapshot_id: int, rows: pa.Table) -> None:
        """Let one snapshot hold these rows, and the next one what it held anyhow."""
        before = self.at(snapshot_id - 1)
        later = [record.snapshot_id for record in self.records if record.snapshot_id > snapshot_id]
        parts = [(snapshot_id, before, rows)]
        if later:
            parts.append((later[0], rows, self.at(later[0])))
        ids = [number for number, _, _ in parts]
        kept = self.selected(f"SELECT * FROM changes WHERE NOT list_contains({ids}, snapshot_id)")
        brought = [self._delta(number, old, new) for number, old, new in parts]
        until = later[0] if later else FOR_EVER
        self.replace(pa.concat_tables([kept, *brought]), since=snapshot_id, until=until)

    @property
    def changelog(self) -> pa.Table:
        """The changelog."""
        if self._changelog is None:
            raise NoPlace(f"{self.contract.name} has no changelog")
        return self._changelog

    def emit(self, changelog: pa.Table) -> None:
        """Take another changelog."""
        self._changelog = changelog.cast(self.changelog.schema)

    def unlog(self, condition: str, *parameters: object) -> None:
        """Take the rows that a condition (SQL) holds for out of the changelog, where there is one."""
        if self._changelog is not None:
            self.emit(self.selected(f"SELECT * FROM changelog WHERE NOT ({condition})", *parameters))

    def rows_with(self, rows: pa.Table, row: Row) -> pa.Table:
        """The rows and one more."""
        return pa.concat_tables([rows, pa.Table.from_pylist([row], schema=rows.schema)])

    def settled(self) -> Evidence:
        """The evidence as it would be had the sink been so."""
        evidence = self._evidence
        write(evidence, self.history.changes, self.changes)
        deltas = growth(_of_deltas(self._as_read), _of_deltas(self.changes))
        logged: dict[int, int] = {}
        if self._changelog is not None and self._changelog_as_read is not None:
            write(evidence, self.history.changelog, self._changelog)
            logged = growth(self._changelog_as_read, self._changelog)
        evidence = replace(
            evidence,
            fences=tuple(self._fence(fence) for fence in evidence.fences),
            travels=tuple(self._travel(travel) for travel in evidence.travels),
            states=tuple(self._state(state) for state in evidence.states),
        )
        return recounted(evidence, self.contract.name, deltas=deltas, changelogs=logged)

    def _add(self, snapshot_id: int, part: str, rowkind: str, rows: Sequence[Row]) -> None:
        sequence = 0 if self.contract.append_only or part == CORRECTION else FOR_EVER
        entries = [
            {"snapshot_id": snapshot_id, "part": part, "rowkind": rowkind, "sequence": sequence} | row
            for row in rows
        ]
        added = pa.Table.from_pylist(entries, schema=self.changes.schema)
        self.replace(pa.concat_tables([self.changes, added]), since=snapshot_id)

    def _delta(self, snapshot_id: int, old: pa.Table, new: pa.Table) -> pa.Table:
        """The delta that makes one content of another."""
        columns = ", ".join(f'"{name}"' for name in self.contract.columns)
        gone = f"(SELECT {columns} FROM old EXCEPT ALL SELECT {columns} FROM new)"
        if not self.contract.append_only:
            key = f'"{self.contract.partition}", "{self.contract.source_key}"'
            gone = f"(SELECT {columns} FROM old ANTI JOIN new USING ({key}))"
        with duckdb.connect(":default:").cursor() as database:
            database.register("old", old)
            database.register("new", new)
            found: pa.Table = database.sql(
                f"""
                SELECT {snapshot_id}::BIGINT AS snapshot_id, '{DELTA}' AS part, rowkind,
                       0::BIGINT AS sequence, {columns}
                FROM (
                  SELECT '-D' AS rowkind, * FROM {gone} UNION ALL SELECT '+I', * FROM
                    (SELECT {columns} FROM new EXCEPT ALL SELECT {columns} FROM old)
                )
                """
            ).to_arrow_table()
        return found.cast(self._as_read.schema)

    def _shows(self, table: str, snapshot_id: int, file: str) -> bool:
        """Whether a file shows a snapshot of this table that does not hold what it held."""
        changed = any(since <= snapshot_id < until for since, until in self._changed)
        return table == self.contract.name and bool(file) and changed

    def _rewritten(self, snapshot_id: int, file: str) -> pa.Table:
        """Write anew what a file shows of a snapshot; the rows in the ledger's types."""
        rows = self.at(snapshot_id)
        old = read(self._evidence, file).schema
        write(self._evidence, file, rows.select(old.names).cast(_nullable(old)))
        types = self.source.ledger.schema
        return rows.cast(pa.schema([types.field(name) for name in rows.column_names]))

    def _fence(self, fence: Fence) -> Fence:
        if not self._shows(fence.mark.table, fence.snapshot_id, fence.sink_rows):
            return fence
        rows = self._rewritten(fence.snapshot_id, fence.sink_rows)
        seen = totals(rows, fence.window, self.contract)
        return replace(fence, sink=tuple(_answering(reading, seen) for reading in fence.sink))

    def _travel(self, travel: TimeTravel) -> TimeTravel:
        if not self._shows(travel.table, travel.snapshot_id, travel.sink_rows):
            return travel
        window = next(fence.window for fence in self.fences if fence.mark.number == travel.fence)
        seen = totals(self._rewritten(travel.snapshot_id, travel.sink_rows), window, self.contract)
        by_time, by_id = (_answering(reading, seen) for reading in (travel.by_time, travel.by_id))
        return replace(travel, by_time=by_time, by_id=by_id)

    def _state(self, state: SinkState) -> SinkState:
        if self._shows(state.table, state.snapshot_id, state.sink_rows):
            self._rewritten(state.snapshot_id, state.sink_rows)
        return state


def _of_deltas(changes: pa.Table) -> pa.Table:
    return changes.filter(pc.equal(changes["part"], DELTA))


def _answering(reading: Reading, seen: tuple[PartitionTotals, ...]) -> Reading:
    """The answer of a reader that saw these totals; one that failed still fails."""
    return reading if reading.error else replace(reading, totals=seen)


def _nullable(schema: pa.Schema) -> pa.Schema:
    """The schema, and any column may be without a value."""
    return pa.schema([field.with_nullable(True) for field in schema])
