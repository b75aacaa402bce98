"""Seeded draws of the numbers and days in a table's rows."""

from __future__ import annotations

import random

from harness.source.days import FIRST_ROWS_MS, LATE, PARTITIONS, START_MS, TODAY

_FIRST_DAYS = tuple(day for day, weight in PARTITIONS.items() for _ in range(weight))
_OTHER_DAYS = tuple(day for day in PARTITIONS if day != TODAY)


class Draws:
    """One table's draws. Tables share the run's seed but no draw: each is the same without the others."""

    def __init__(self, *, seed: int, table: str) -> None:
        self._random = random.Random(f"{table} {seed}")

    def fraction(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()

    def below(self, bound: int) -> int:
        """An integer in [0, bound): four times as fast as randrange, and even enough."""
        return int(self._random.random() * bound)

    def day(self) -> str:
        """Mostly today."""
        if self._random.random() >= LATE:
            return TODAY
        return _OTHER_DAYS[self.below(len(_OTHER_DAYS))]

    def other_day(self, day: str) -> str:
        """Any day but this one."""
        others = [other for other in PARTITIONS if other != day]
        return others[self.below(len(others))]

    def first_day(self) -> str:
        """The day of one of the first rows."""
        return _FIRST_DAYS[self.below(len(_FIRST_DAYS))]

    def first_ms(self) -> int:
        """The time of one of the first rows, before the clock starts (epoch ms)."""
        return START_MS - 1 - self.below(FIRST_ROWS_MS)
