"""Which snapshot a moment means."""

from __future__ import annotations

import pytest

from harness.model import SnapshotRecord
from harness.paimon.resolve import resolved_id


def snapshot(snapshot_id: int, at_ms: int) -> SnapshotRecord:
    return SnapshotRecord(
        table="orders",
        snapshot_id=snapshot_id,
        kind="APPEND",
        commit_user="u",
        commit_identifier=snapshot_id,
        committed_at_ms=at_ms,
        total_records=0,
        delta_records=0,
        changelog_records=0,
    )


SNAPSHOTS = [snapshot(5, 1_000), snapshot(7, 3_000), snapshot(6, 2_000), snapshot(8, 3_000)]


@pytest.mark.parametrize(
    ("at_ms", "found"), [(999, 0), (1_000, 5), (1_999, 5), (2_000, 6), (3_000, 8), (9_000, 8)]
)
def test_a_moment_means_the_newest_snapshot_committed_at_or_before_it(at_ms: int, found: int) -> None:
    assert found == resolved_id(SNAPSHOTS, at_ms)


def test_without_snapshots_there_is_none() -> None:
    assert 0 == resolved_id([], 1_000)
