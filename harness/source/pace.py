"""The pace of a workload: changes per second on average, with bounded bursts."""

from __future__ import annotations

import time
from collections.abc import Callable

BURST_S = 1.0
"""How much time a workload that fell behind may catch up by going faster than its rate."""


class Pace:
    """Tells how long to wait after each transaction. No rate: never."""

    def __init__(self, rate: int | None, *, now: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._now = now
        self._due = now()

    def restart(self) -> None:
        """Forget the past: time spent paused is not caught up."""
        self._due = self._now()

    def delay_s(self, changes: int) -> float:
        """Seconds to wait after these changes, so that the average stays at the rate."""
        if self._rate is None:
            return 0.0
        now = self._now()
        self._due = max(self._due, now - BURST_S) + changes / self._rate
        return max(0.0, self._due - now)
