"""When the operations of a ledger were committed: a source that never stood still for long."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from factories import START_MS

from harness.model import FenceMark

COLUMN = "committed_at_ms"


def spread(ledger: pa.Table, marks: Sequence[FenceMark]) -> pa.Table:
    """The ledger, with the operations of each chapter spread evenly over the time until its fence."""
    times, before, since = list[int](), 0, START_MS
    for mark in marks:
        until, count = mark.committed_at_ms, mark.operation - before
        times += [since + (until - since) * (number + 1) // count for number in range(count)]
        before, since = mark.operation, until
    return committed_at(ledger, times)


def committed_at(ledger: pa.Table, times: Sequence[int]) -> pa.Table:
    """The ledger, with these times of its operations (epoch ms)."""
    place = ledger.column_names.index(COLUMN)
    return ledger.set_column(place, COLUMN, pa.array(times, pa.int64()))
