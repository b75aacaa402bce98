"""Evidence opened: ledgers, rows and states, each read or worked out once however many oracles ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from harness.ledger import OPERATION_SCHEMA, state_after
from harness.model import Evidence, Fence, PartitionTotals, TableContract, TableHistory
from harness.oracles.comparison import Difference, difference, totals
from harness.oracles.fingerprints import Content, contents
from harness.replay import CHANGE_COLUMNS

Made = TypeVar("Made")


@dataclass(frozen=True, kw_only=True)
class AgainstSource:
    """A ledger's state at a fence, and how the source that was read there compares.

    `rows` is None when the source's rows were not kept. `contradiction` says why no sink can be judged by
    this ledger; empty when the source says what it says, as far as it was read.
    """

    expected: pa.Table
    sums: tuple[PartitionTotals, ...]
    sums_agree: bool
    rows: Difference | None
    contradiction: str


class Exhibits:
    """The evidence of one run, opened for the oracles that judge it. Nothing is kept beyond them."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._tables: dict[str, OpenTable] = {}

    def table(self, name: str) -> OpenTable:
        """A table of the run, by its name."""
        if name not in self._tables:
            self._tables[name] = OpenTable(self.evidence, self.evidence.contract(name))
        return self._tables[name]

    def tables(self) -> list[OpenTable]:
        """Every table of the run."""
        return [self.table(contract.name) for contract in self.evidence.tables]


class OpenTable:
    """One table of a run: its ledger, its fences in the order of time, and its rows."""

    def __init__(self, evidence: Evidence, contract: TableContract) -> None:
        self.contract = contract
        self.name = contract.name
        self.fences = evidence.fences_of(contract.name)
        self.snapshots = evidence.snapshots_of(contract.name)
        self.history: TableHistory | None = next(
            (history for history in evidence.histories if history.table == contract.name), None
        )
        self.failed_checkpoints = evidence.failed_checkpoints(contract.name)
        self._folder = Path(evidence.folder)
        self._contents: dict[tuple[int, ...], dict[int, Content]] = {}
        self._made: dict[Callable[[OpenTable], Any], Any] = {}
        self._at_fences: dict[int, AgainstSource] = {}

    @cached_property
    def ledger(self) -> pa.Table:
        """The table's whole ledger."""
        return pq.read_table(self._folder / self.contract.ledger_file)

    def rows(self, file: str) -> pa.Table:
        """The rows that were kept in a file of the evidence, with the columns and types of the ledger."""
        schema = self._row_schema()
        return self.raw_rows(file).select(schema.names).cast(schema)

    def raw_rows(self, file: str) -> pa.Table:
        """What a file of the evidence holds, as it is."""
        return pq.read_table(self._folder / file)

    @cached_property
    def changes(self) -> pa.Table:
        """What each snapshot changed: CHANGE_COLUMNS, and the columns and types of the ledger's rows.

        Raises ValueError when the run kept no such file.
        """
        if self.history is None or not self.history.changes:
            raise ValueError(f"no changes of {self.name} were kept")
        schema = pa.schema([*CHANGE_COLUMNS, *self._row_schema()])
        return self.raw_rows(self.history.changes).select(schema.names).cast(schema)

    def contents(self, snapshots: Sequence[int]) -> dict[int, Content]:
        """What these snapshots hold, the base first, and when the ledger held the same."""
        asked = tuple(snapshots)
        if asked not in self._contents:
            self._contents[asked] = contents(
                self.ledger, self.changes, self.contract, base=asked[0], snapshots=asked
            )
        return self._contents[asked]

    def once(self, make: Callable[[OpenTable], Made]) -> Made:
        """What a function makes of this table: worked out once, whoever asks."""
        if make not in self._made:
            self._made[make] = make(self)
        made: Made = self._made[make]
        return made

    def state(self, operation: int) -> pa.Table:
        """The rows of the source right after an operation of the ledger."""
        return state_after(self.ledger, operation, key=self.contract.source_key)

    def at(self, fence: Fence) -> AgainstSource:
        """Compare ledger and source at a fence of this table, in the guide's sums and row by row.

        Both, since equal sums hide a changed status or two swapped amounts.
        """
        number = fence.mark.number
        if number not in self._at_fences:
            self._at_fences[number] = self._compared(fence)
        return self._at_fences[number]

    def _row_schema(self) -> pa.Schema:
        schema = self.ledger.schema
        return pa.schema([schema.field(name) for name in schema.names if name not in OPERATION_SCHEMA.names])

    def _compared(self, fence: Fence) -> AgainstSource:
        expected = self.state(fence.mark.operation)
        sums = totals(expected, fence.window, self.contract)
        kept = self.rows(fence.source_rows) if fence.source_rows else None
        found = None if kept is None else difference(expected, kept, self.contract)
        contradiction = ""
        if fence.source.error:
            contradiction = f"the source could not be read: {fence.source.error}"
        elif found is not None and not found.is_empty:
            contradiction = f"the ledger's rows are not the source's: {found}"
        elif sums != fence.source.totals:
            contradiction = "the ledger's sums are not the source's"
        return AgainstSource(
            expected=expected,
            sums=sums,
            sums_agree=sums == fence.source.totals and not fence.source.error,
            rows=found,
            contradiction=contradiction,
        )
