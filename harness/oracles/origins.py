"""Which snapshot brought which row of an append-only table: to name duplicates and losses by.

Only rows that an APPEND snapshot's delta adds count as added. What came or went otherwise is told apart.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cached_property
from typing import TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from harness.model import TableHistory
from harness.oracles.exhibits import OpenTable
from harness.replay import DELTA

Key: TypeAlias = int | str


class Origins:
    """The additions to a table. `keys` are those of its ledger, in order.

    `error` says why nothing is known of them, `gaps` of which snapshots nothing is; both are empty when
    all were read.
    """

    def __init__(self, table: OpenTable, keys: pa.ChunkedArray) -> None:
        self._name = table.contract.source_key
        self._keys = keys
        self._records = {record.snapshot_id: record for record in table.snapshots}
        history = table.history
        self._whole = history.whole if history else ()
        self._unread = {gap.snapshot_id for gap in history.gaps} if history else set()
        self.error, self.gaps = _unknown(history)
        changes = None if self.error or not history else table.raw_rows(history.changes)
        self._added, self._otherwise = self._sorted_out(changes)

    @property
    def added(self) -> pa.ChunkedArray:
        """The key of every row that was added, each time that it was."""
        return self._added[self._name]

    @cached_property
    def without_delta(self) -> tuple[Key, ...]:
        """The keys of rows that came or went by no added row of a delta, each time that one did.

        A whole read that says so is no witness where a snapshot before it was not read: nor is the first
        of all, unless every snapshot from 1 on is known.
        """
        return tuple(self._otherwise[self._name].to_pylist())

    def of(self, key: Key) -> str:
        """Every snapshot that added a row."""
        return f"{self._name} {key}: added by {self._shown(key)}"

    def of_loss(self, key: Key) -> str:
        """Where a row should have come: beside the rows next to it in the ledger.

        A row that was added after all, and is gone, names the snapshot that added it.
        """
        if self._snapshots(key):
            return f"{self.of(key)}, gone since"
        position = pc.index(self._keys, pa.scalar(key, self._keys.type)).as_py()
        after = bisect_left(self._seen, position, key=lambda seen: seen.as_py())
        beside = (
            ("before", self._seen[after - 1] if after else None),
            ("after", self._seen[after] if after < len(self._seen) else None),
        )
        return f"{self._name} {key}: " + "; ".join(
            f"{where} it {'none' if other is None else self.of(self._keys[other.as_py()].as_py())}"
            for where, other in beside
        )

    def of_change(self, key: Key) -> str:
        """How a row came or went that no delta added."""
        found = self._otherwise.filter(pc.equal(self._otherwise[self._name], key)).to_pylist()
        return f"{self._name} {key}: " + " and ".join(
            f"{_how(row['part'], row['rowkind'])} {self._snapshot(row['snapshot_id'])}" for row in found
        )

    @cached_property
    def _seen(self) -> pa.Array:
        """The positions in the ledger of rows that were added, ascending."""
        seen = pc.indices_nonzero(pc.is_in(self._keys, value_set=self.added))
        return seen.combine_chunks() if isinstance(seen, pa.ChunkedArray) else seen

    def _sorted_out(self, changes: pa.Table | None) -> tuple[pa.Table, pa.Table]:
        """The rows that deltas added, and all others that count."""
        schema = pa.schema(
            [
                ("snapshot_id", pa.int64()),
                ("part", pa.string()),
                ("rowkind", pa.string()),
                (self._name, self._keys.type),
            ]
        )
        known = schema.empty_table() if changes is None else changes.select(schema.names).cast(schema)
        of_delta = pc.equal(known["part"], DELTA)
        adds = pc.and_(of_delta, pc.equal(known["rowkind"], "+I"))
        witnessed = [number for number in self._whole if self._is_witness(number)]
        counts = pc.or_(of_delta, pc.is_in(known["snapshot_id"], value_set=pa.array(witnessed, pa.int64())))
        return known.filter(adds), known.filter(pc.and_(counts, pc.invert(adds)))

    def _is_witness(self, whole: int) -> bool:
        """Whether every snapshot since the whole read before this one is known."""
        before = max((number for number in self._whole if number < whole), default=0)
        between = range(before + 1, whole + 1)
        return all(number in self._records and number not in self._unread for number in between)

    def _snapshots(self, key: Key) -> list[int]:
        found = self._added.filter(pc.equal(self._added[self._name], key))
        return sorted(found["snapshot_id"].to_pylist())

    def _shown(self, key: Key) -> str:
        return " and ".join(self._snapshot(number) for number in self._snapshots(key)) or (
            "no snapshot" if not self.error else f"a snapshot unknown: {self.error}"
        )

    def _snapshot(self, number: int) -> str:
        record = self._records.get(number)
        if record is None:
            return f"snapshot {number}, which is not in the table's history"
        return (
            f"snapshot {number} ({record.kind}, checkpoint {record.commit_identifier}, "
            f"commit user {record.commit_user})"
        )


def _unknown(history: TableHistory | None) -> tuple[str, tuple[str, ...]]:
    """Why nothing is known of a table's additions, and which of them are not."""
    if history is None:
        return "no deltas were read", ()
    if history.error or not history.changes:
        return history.error or "no rows kept", ()
    return "", tuple(f"snapshot {gap.snapshot_id}: {gap.error}" for gap in history.gaps)


def _how(part: str, rowkind: str) -> str:
    """What a change says of a row; the snapshot's number comes next."""
    if part == DELTA:
        return f"{rowkind} in the delta of"
    return "there, though no delta added it, in" if rowkind.startswith("+") else "gone from"
