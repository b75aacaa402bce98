"""A table's history, collected: every snapshot's delta and changelog, and corrections by whole reads.

One snapshot that can't be read does not stop the rest: it is a gap, and the next one that can be read whole
makes the rows known again. A delta must have as many rows as the snapshot's metadata says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from harness.errors import ReaderError, SinkFilesMissing
from harness.model import SnapshotGap, SnapshotRecord, TableContract
from harness.replay import CHANGE_COLUMNS, CHANGELOG_COLUMNS, CORRECTION, DELTA, corrections

EVERY = 10
"""One APPEND snapshot of so many is read whole; every snapshot of another kind is."""

NO_CHANGELOG = "none"
"""The changelog producer of a table that has none."""


class SnapshotReader(Protocol):
    """Reads the snapshots of one table. Every method raises SinkFilesMissing or ReaderError.

    Increments have `rowkind`, `sequence` and the columns of `row_schema`, a whole read has the latter.
    """

    @property
    def row_schema(self) -> pa.Schema: ...

    def delta(self, snapshot_id: int) -> pa.Table: ...

    def changelog(self, snapshot_id: int) -> pa.Table: ...

    def whole(self, snapshot_id: int) -> pa.Table: ...


@dataclass(frozen=True, kw_only=True)
class ReadHistory:
    """What model.TableHistory is made of. `changelog` is None when the table has no producer of one."""

    changelog_producer: str
    changes: pa.Table
    changelog: pa.Table | None
    whole: tuple[int, ...]
    gaps: tuple[SnapshotGap, ...]


def read_history(
    reader: SnapshotReader,
    contract: TableContract,
    snapshots: Sequence[SnapshotRecord],
    *,
    base: int,
    changelog_producer: str,
) -> ReadHistory:
    """Read all of a table's `snapshots`; those from `base` on are corrected by whole reads.

    `base` is 0 when no snapshot is to be read whole. A snapshot between the first and the last that is in
    neither is expired, and a gap.
    """
    collected = _Collected(reader, contract, with_changelog=changelog_producer != NO_CHANGELOG)
    due, records = _due(snapshots, base), {record.snapshot_id: record for record in snapshots}
    first, last = min([*records, *([base] if base else [])]), max(records)
    for number in range(first, last + 1):
        record = records.get(number)
        if record is None:
            collected.expired(number)
            continue
        collected.increments(record)
        if base and number >= base and (number in due or collected.in_doubt):
            collected.read_whole(number)
    return collected.history(changelog_producer)


def _due(snapshots: Sequence[SnapshotRecord], base: int) -> set[int]:
    """The snapshots to be read whole in any case: base, last, every tenth APPEND, and all other kinds."""
    later = [record for record in snapshots if record.snapshot_id > base]
    appended = sorted(record.snapshot_id for record in later if record.kind == "APPEND")
    others = {record.snapshot_id for record in later if record.kind != "APPEND"}
    return {base, max(record.snapshot_id for record in snapshots), *appended[EVERY - 1 :: EVERY], *others}


class _Collected:
    """What was read of a table so far. `in_doubt`: the rows are not known since the last whole read."""

    def __init__(self, reader: SnapshotReader, contract: TableContract, *, with_changelog: bool) -> None:
        self._reader = reader
        self._contract = contract
        self._with_changelog = with_changelog
        self._changes = [pa.schema([*CHANGE_COLUMNS, *reader.row_schema]).empty_table()]
        self._changelog = [pa.schema([*CHANGELOG_COLUMNS, *reader.row_schema]).empty_table()]
        self._since = list(self._changes)
        """What gives the rows of a snapshot when it is replayed: all changes, or those since a whole read."""
        self._keys_unique = True
        self._whole: list[int] = []
        self._gaps: dict[int, list[ReaderError]] = {}
        self.in_doubt = False

    def expired(self, number: int) -> None:
        self._gap(number, ReaderError("it is expired: the table has no such snapshot any more"))
        self.in_doubt = True

    def increments(self, record: SnapshotRecord) -> None:
        """Read what an APPEND snapshot added, and any snapshot's changelog."""
        number = record.snapshot_id
        if record.kind == "APPEND":
            delta = self._read(self._reader.delta, number, "delta", rows=record.delta_records)
            if delta is None:
                self.in_doubt = True
            else:
                self._change(_at(number, _part(DELTA, delta)))
        if self._with_changelog:
            changelog = self._read(self._reader.changelog, number, "changelog", rows=record.changelog_records)
            if changelog is not None:
                self._changelog.append(_at(number, changelog))

    def read_whole(self, number: int) -> None:
        """Correct the changes by what a snapshot really holds."""
        try:
            whole = self._reader.whole(number)
        except ReaderError as error:
            self._gap(number, _told("it could not be read whole", error))
            self.in_doubt = True
            return
        self._change(corrections(pa.concat_tables(self._since), whole, number, self._contract))
        # To replay every change for each correction would take longer and longer. With a key twice it must
        # be so, since a later delta takes the place of one of its rows only.
        self._keys_unique = self._keys_unique and (self._contract.append_only or self._has_keys_once(whole))
        if self._keys_unique:
            self._since = [_at(number, _part(CORRECTION, _inserted(whole)))]
        self._whole.append(number)
        self.in_doubt = False

    def history(self, changelog_producer: str) -> ReadHistory:
        return ReadHistory(
            changelog_producer=changelog_producer,
            changes=pa.concat_tables(self._changes),
            changelog=pa.concat_tables(self._changelog) if self._with_changelog else None,
            whole=tuple(self._whole),
            gaps=tuple(self._told_gap(number) for number in sorted(self._gaps)),
        )

    def _read(self, read: Callable[[int], pa.Table], number: int, what: str, *, rows: int) -> pa.Table | None:
        try:
            found = read(number)
        except ReaderError as error:
            self._gap(number, _told(f"its {what} could not be read", error))
            return None
        if found.num_rows != rows:
            self._gap(
                number,
                ReaderError(f"its {what} has {found.num_rows} rows, and its metadata says {rows}"),
            )
            return None
        return found

    def _gap(self, number: int, error: ReaderError) -> None:
        self._gaps.setdefault(number, []).append(error)

    def _told_gap(self, number: int) -> SnapshotGap:
        said = [error.what for error in self._gaps[number]]
        read = ["its rows are known from a whole read"] if number in self._whole else []
        return SnapshotGap(
            snapshot_id=number,
            error="; ".join([*said, *read]),
            files_missing=any(isinstance(error, SinkFilesMissing) for error in self._gaps[number]),
        )

    def _change(self, rows: pa.Table) -> None:
        self._changes.append(rows)
        self._since.append(rows)

    def _has_keys_once(self, whole: pa.Table) -> bool:
        keys = whole.group_by([self._contract.partition, self._contract.source_key]).aggregate([])
        return bool(keys.num_rows == whole.num_rows)


def _told(what: str, error: ReaderError) -> ReaderError:
    return type(error)(f"{what}: {error.what}")


def _at(number: int, rows: pa.Table) -> pa.Table:
    ids = pa.repeat(pa.scalar(number, pa.int64()), rows.num_rows)
    return rows.add_column(0, CHANGE_COLUMNS.field("snapshot_id"), ids)


def _part(part: str, rows: pa.Table) -> pa.Table:
    return rows.add_column(0, CHANGE_COLUMNS.field("part"), pa.repeat(pa.scalar(part), rows.num_rows))


def _inserted(rows: pa.Table) -> pa.Table:
    """Rows of a whole read as an increment that inserts them."""
    sequence = pa.repeat(pa.scalar(0, pa.int64()), rows.num_rows)
    kinds = pa.repeat(pa.scalar("+I"), rows.num_rows)
    return rows.add_column(0, CHANGE_COLUMNS.field("sequence"), sequence).add_column(
        0, CHANGE_COLUMNS.field("rowkind"), kinds
    )
