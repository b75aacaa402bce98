"""The days and times of the source's rows: partitions, the virtual clock, and how SQL writes a time."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache

PARTITIONS = {"2026-07-05": 1, "2026-07-06": 3, "2026-07-07": 1}
"""The days that rows belong to, and how often each is drawn for the first rows."""

TODAY = "2026-07-06"
LATE = 0.002
"""How often something is of another day than today. Each partition that a checkpoint touches costs as
many files as it has buckets, and a real day's rows are that day's."""

MARKER_PARTITION = "2026-07-05"

START = datetime(2026, 7, 6, 10)  # noqa: DTZ001 - DATETIME has no zone; the source's is UTC
"""Where the virtual clock starts. It advances by transactions, so that a seed gives the same times."""

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - as START
_MILLISECOND = timedelta(milliseconds=1)
START_MS = (START - _EPOCH) // _MILLISECOND
FIRST_ROWS_MS = 2 * 60 * 60 * 1000
"""How long before START the times of the first rows begin."""


@lru_cache(maxsize=1024)  # all rows of a transaction share one time
def sql_time(at_ms: int) -> str:
    """A DATETIME(3) as SQL, from epoch milliseconds."""
    return f"'{(_EPOCH + at_ms * _MILLISECOND).isoformat(sep=' ', timespec='milliseconds')}'"
