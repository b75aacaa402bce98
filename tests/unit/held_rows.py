"""Histories of sinks that held other rows at a snapshot than they should: the deltas are made to match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from evidence_folders import ROW_SCHEMAS, Edit, Row, Rows, contract_of, cuts, history_of, rewritten

from harness.ledger import state_after
from harness.model import Evidence
from harness.replay import CORRECTION, DELTA, corrections


def at_operation(clean: Evidence, table: str, operation: int) -> Rows:
    """The rows of the source after an operation."""
    ledger = pq.read_table(Path(clean.folder) / contract_of(table).ledger_file)
    rows: Rows = state_after(ledger, operation, key=contract_of(table).source_key).to_pylist()
    return rows


def cuts_of(clean: Evidence, table: str) -> dict[int, int]:
    """The operation that each snapshot of a clean table stands at."""
    return cuts([fence for fence in clean.fences if fence.mark.table == table])


def holding(clean: Evidence, table: str, states: Mapping[int, Rows]) -> Evidence:
    """A sink that held these rows at these snapshots, and at the others what it should."""
    held = {number: at_operation(clean, table, cut) for number, cut in cuts_of(clean, table).items()}
    held |= states
    deltas, before = list[Row](), list[Row]()
    for number, rows in sorted(held.items()):
        changed = _appended(before, rows) if contract_of(table).append_only else _merged(table, before, rows)
        deltas += [{"snapshot_id": number, "part": DELTA, "sequence": 0} | row for row in changed]
        before = rows
    rewritten(clean, history_of(clean, table).changes, lambda _: deltas)
    return clean


def standing(clean: Evidence, table: str, operations: Mapping[int, int]) -> Evidence:
    """A sink that stood at these operations at these snapshots."""
    return holding(
        clean, table, {number: at_operation(clean, table, cut) for number, cut in operations.items()}
    )


def spoiled_at(clean: Evidence, table: str, edits: Mapping[int, Edit]) -> Evidence:
    """A sink that at these snapshots held what it should but for an edit."""
    at = cuts_of(clean, table)
    return holding(
        clean, table, {number: edit(at_operation(clean, table, at[number])) for number, edit in edits.items()}
    )


def corrected(clean: Evidence, table: str, snapshot: int, *rows: tuple[str, Row]) -> Evidence:
    """A history with corrections (kind and row) at a snapshot."""
    found = [
        {"snapshot_id": snapshot, "part": CORRECTION, "rowkind": kind, "sequence": 0} | row
        for kind, row in rows
    ]
    rewritten(clean, history_of(clean, table).changes, lambda deltas: [*deltas, *found])
    return clean


def reread(clean: Evidence, table: str, snapshot: int) -> Evidence:
    """A history in which a snapshot, read whole, held what it should whatever the deltas say."""
    contract, path = contract_of(table), Path(clean.folder) / history_of(clean, table).changes
    deltas, rows = pq.read_table(path), at_operation(clean, table, cuts_of(clean, table)[snapshot])
    whole = pa.Table.from_pylist(rows, schema=pa.schema(ROW_SCHEMAS[table]))
    pq.write_table(pa.concat_tables([deltas, corrections(deltas, whole, snapshot, contract)]), path)
    return clean


def without_delta(clean: Evidence, table: str, *snapshots: int) -> Evidence:
    """A history without the deltas of these snapshots."""
    rewritten(
        clean,
        history_of(clean, table).changes,
        lambda deltas: [row for row in deltas if row["snapshot_id"] not in snapshots],
    )
    return clean


def with_record(clean: Evidence, table: str, snapshot: int, **changes: Any) -> Evidence:
    """The evidence with one snapshot of a table's history changed."""
    return replace(
        clean,
        snapshots=tuple(
            replace(record, **changes) if (record.table, record.snapshot_id) == (table, snapshot) else record
            for record in clean.snapshots
        ),
    )


def with_transaction(clean: Evidence, table: str, operation: int, transaction: int) -> Evidence:
    """The ledger says of an operation that it belongs to another transaction."""
    file = contract_of(table).ledger_file
    rewritten(
        clean,
        file,
        lambda rows: [
            row | {"transaction": transaction} if row["operation"] == operation else row for row in rows
        ],
    )
    return clean


def retyped(clean: Evidence, file: str, **types: pa.DataType) -> Evidence:
    """A file of the evidence whose columns have other types."""
    path = Path(clean.folder) / file
    rows = pq.read_table(path)
    fields = [field.with_type(types.get(field.name, field.type)) for field in rows.schema]
    pq.write_table(rows.cast(pa.schema(fields)), path)
    return clean


def _merged(table: str, before: Rows, after: Rows) -> Rows:
    contract = contract_of(table)
    old, new = (
        {(row[contract.partition], row[contract.source_key]): row for row in rows} for rows in (before, after)
    )
    gone = [{"rowkind": "-D"} | row for key, row in old.items() if key not in new]
    return gone + [{"rowkind": "+U"} | row for key, row in new.items() if old.get(key) != row]


def _appended(before: Rows, after: Rows) -> Rows:
    old, new = (Counter(tuple(row.items()) for row in rows) for rows in (before, after))
    return [
        {"rowkind": kind} | dict(row)
        for kind, rows in (("-D", old - new), ("+I", new - old))
        for row in rows.elements()
    ]
