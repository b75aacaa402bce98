"""Which snapshot brought which row of an append-only table: to name duplicates and losses by."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TypeAlias

from harness.model import Evidence
from harness.oracles.exhibits import OpenTable

Key: TypeAlias = int | str


class Origins:
    """The additions to a table. `keys` are those of its ledger, in order.

    `error` says why nothing is known of them; empty when they were read.
    """

    def __init__(self, evidence: Evidence, table: OpenTable, keys: Sequence[Key]) -> None:
        self._name = table.contract.source_key
        self._keys = keys
        self._records = {
            record.snapshot_id: record for record in evidence.snapshots if record.table == table.name
        }
        self._snapshots: defaultdict[Key, list[int]] = defaultdict(list)
        self.error = "no deltas were read"
        for additions in evidence.additions:
            if additions.table != table.name:
                continue
            self.error = additions.error or ("" if additions.rows else "no rows kept")
            if not self.error:
                rows = table.raw_rows(additions.rows)
                added = zip(rows[self._name].to_pylist(), rows["snapshot_id"].to_pylist(), strict=True)
                for key, snapshot in added:
                    self._snapshots[key].append(snapshot)

    def counts(self) -> Counter[Key]:
        """How often each row was added."""
        return Counter({key: len(snapshots) for key, snapshots in self._snapshots.items()})

    def of(self, key: Key) -> str:
        """Every snapshot that added a row."""
        return f"{self._name} {key}: added by {self._shown(key)}"

    def of_loss(self, key: Key) -> str:
        """Where a row should have come: beside the rows next to it in the ledger.

        A row that was added after all, and is gone, names the snapshot that added it.
        """
        if key in self._snapshots:
            return f"{self.of(key)}, gone since"
        position = self._keys.index(key)
        before = next((other for other in reversed(self._keys[:position]) if other in self._snapshots), None)
        after = next((other for other in self._keys[position + 1 :] if other in self._snapshots), None)
        return f"{self._name} {key}: " + "; ".join(
            f"{where} it {'none' if other is None else self.of(other)}"
            for where, other in (("before", before), ("after", after))
        )

    def _shown(self, key: Key) -> str:
        return " and ".join(self._snapshot(number) for number in sorted(self._snapshots.get(key, ()))) or (
            "no snapshot" if not self.error else f"a snapshot unknown: {self.error}"
        )

    def _snapshot(self, number: int) -> str:
        record = self._records.get(number)
        if record is None:
            return f"snapshot {number}, which is not in the table's history"
        return f"snapshot {number} (checkpoint {record.commit_identifier}, commit user {record.commit_user})"
