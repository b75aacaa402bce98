"""The first load, while a fault strikes it: waited for, and proved to have been under way."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from harness.errors import FlinkUnreachable, ReaderError, WaitTimeout
from harness.model import Check
from harness.waiting import wait_until

SHARE = 0.9
"""A load with more rows than this share of the first rows counts as over: later deletes may hide its end."""


class FirstLoad:
    """The load of the rows that each source table began with. `sink_rows` counts a sink's rows now."""

    def __init__(self, tables: Sequence[str], *, rows: int, sink_rows: Callable[[str], int]) -> None:
        self._tables = tables
        self._rows = rows
        self._sink_rows = sink_rows

    def await_begun(self, *, timeout_s: float) -> None:
        """Until every table's load has begun, or one is over, or the time is: `checks` tell which."""

        def begun() -> bool:
            found = [self._sink_rows(table) for table in self._tables]
            return min(found) > 0 or any(self._over(rows) for rows in found)

        try:
            wait_until(
                "rows of every table's first load",
                begun,
                timeout_s=timeout_s,
                retry_on=(FlinkUnreachable, ReaderError),
            )
        except WaitTimeout:
            return

    def checks(self) -> tuple[Check, ...]:
        """Whether each table's load is under way now: to be asked right after a fault was injected."""
        return tuple(self._check(table) for table in self._tables)

    def _check(self, table: str) -> Check:
        try:
            rows = self._sink_rows(table)
        except ReaderError as error:
            said, held = f"its rows could not be counted: {error.what}", False
        else:
            over = self._over(rows)
            said = f"{rows:,} rows" + ("; it was over" if over else "" if rows else "; it had not begun")
            held = rows > 0 and not over
        most = int(SHARE * self._rows)
        return Check(
            name=f"{table}: its first load was under way",
            expected=f"more than 0 and less than {most:,} of {self._rows:,} rows in the sink",
            actual=said,
            held=held,
        )

    def _over(self, rows: int) -> bool:
        return rows >= SHARE * self._rows
