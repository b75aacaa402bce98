"""Live progress of a run: a bar per phase on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Column
from rich.text import Text

from harness.ports import Listener
from harness.report.wording import duration, one_line

PROGRESS_EVERY_S = 5.0
NAME_WIDTH = 18


def utc_now() -> datetime:
    """The time of day in UTC."""
    return datetime.now(UTC)


class ShownListener(Listener, Protocol):
    """A Listener that shows something from entering until leaving it."""

    def __enter__(self) -> ShownListener: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


def listener_for(console: Console) -> ShownListener:
    """Bars when the console is a terminal that can move its cursor, else plain lines."""
    if console.is_terminal and not console.is_dumb_terminal:
        return BarListener(console)
    return LineListener(console)


class LineListener:
    """One plain line per phase and event, with UTC time; progress at most every 5 s; no escape codes.

    `clock` gives seconds that only grow, `now` the time of day in UTC.
    """

    def __init__(
        self,
        console: Console,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._console = console
        self._clock = clock
        self._now = now
        self._phase = ""
        self._phase_at = clock()
        self._progress_at: float | None = None

    def __enter__(self) -> LineListener:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end_phase("ended" if kind is None else f"broke off ({kind.__name__})")
        self._phase = ""

    def phase(self, name: str) -> None:
        """Tell how long the phase before took, and that this one began."""
        self._end_phase("done")
        self._phase, self._phase_at = name, self._clock()
        self._line(f"{name} …")

    def progress(self, text: str, done: float, total: float) -> None:
        """Tell how far the phase is, unless that was told less than 5 s ago."""
        now = self._clock()
        if self._progress_at is not None and now - self._progress_at < PROGRESS_EVERY_S:
            return
        self._progress_at = now
        amount = f" {done:,.0f} of {total:,.0f}" if total > 0 else ""
        self._line(f"  {self._phase}: {text}{amount}")

    def event(self, kind: str, text: str, node: str = "") -> None:
        """Tell what happened."""
        self._line(f"  {_event(kind, text, node)}")

    def _end_phase(self, how: str) -> None:
        if self._phase:
            self._line(f"{self._phase} {how} after {duration(self._clock() - self._phase_at)}")

    def _line(self, text: str) -> None:
        indent = "  " if text.startswith("  ") else ""
        line = f"{self._now():%H:%M:%SZ}  {indent}{one_line(text)}"
        self._console.print(Text(line), soft_wrap=True)


class BarListener:
    """A bar per phase while it runs, a spinner while its total is not known.

    Events and ended phases scroll by above it, each on a line. `clock` and `now` as in LineListener.
    """

    def __init__(
        self,
        console: Console,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._clock = clock
        self._now = now
        self._task: TaskID | None = None
        self._phase = ""
        self._phase_at = clock()
        self._text = ""
        self._bars = Progress(
            SpinnerColumn(finished_text="•"),
            TextColumn("{task.description}", markup=False, table_column=_column(width=NAME_WIDTH)),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[text]}", markup=False, table_column=_column(ratio=1)),
            TimeElapsedColumn(),
            console=console,
            get_time=clock,
            expand=True,
            transient=True,
        )

    def __enter__(self) -> BarListener:
        self._bars.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._text = f"broke off ({kind.__name__})"
        self._finish("✓" if kind is None else "✗")
        self._bars.stop()

    def phase(self, name: str) -> None:
        """Leave a line for the phase before and begin the bar of this one."""
        self._finish("✓")
        self._phase, self._phase_at = one_line(name), self._clock()
        self._task = self._bars.add_task(self._phase, total=None, text="")

    def progress(self, text: str, done: float, total: float) -> None:
        """Show how far the phase is; a total of 0 leaves the spinner."""
        if self._task is None:
            return
        self._text = one_line(text) + (f" {done:,.0f}/{total:,.0f}" if total > 0 else "")
        total_known = total > 0
        self._bars.update(
            self._task,
            total=total if total_known else None,
            completed=done if total_known else None,
            text=self._text,
        )

    def event(self, kind: str, text: str, node: str = "") -> None:
        """Leave a line that tells what happened."""
        self._bars.console.print(Text(f"{self._now():%H:%M:%SZ}  {_event(kind, text, node)}"))

    def _finish(self, mark: str) -> None:
        if self._task is None:
            return
        took = duration(self._clock() - self._phase_at)
        line = Text(f"{mark} {self._phase:<{NAME_WIDTH}} {took:>9}  {self._text}".rstrip())
        self._bars.remove_task(self._task)
        self._bars.console.print(line, no_wrap=True, overflow="ellipsis")
        self._task, self._text = None, ""


def _column(*, width: int | None = None, ratio: int | None = None) -> Column:
    return Column(width=width, ratio=ratio, no_wrap=True, overflow="ellipsis")


def _event(kind: str, text: str, node: str) -> str:
    return one_line(f"{kind} {node}: {text}" if node else f"{kind}: {text}")
