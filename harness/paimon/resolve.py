"""Which snapshot a moment means: the newest that was committed at or before it."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import SnapshotRecord


def resolved_id(snapshots: Iterable[SnapshotRecord], at_ms: int) -> int:
    """The id of the newest of one table's snapshots committed at or before `at_ms`; 0 for none.

    Source: Paimon's SnapshotManager.earlierOrEqualTimeMills, which FOR SYSTEM_TIME AS OF goes by.
    """
    return max((s.snapshot_id for s in snapshots if s.committed_at_ms <= at_ms), default=0)
