"""The history of a run: its phases and events, told to a listener and kept for the report."""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.model import Event, Phase
from harness.ports import Listener


class History:
    """Implements `ports.Listener`: passes everything on, and remembers phases and events."""

    def __init__(
        self,
        listener: Listener,
        *,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1000),
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._listener = listener
        self._now_ms = now_ms
        self._clock_s = clock_s
        self._ended: list[Phase] = []
        self._current: tuple[str, int, float] | None = None
        self._events: list[Event] = []

    def phase(self, name: str) -> None:
        self._end_phase()
        self._current = (name, self._now_ms(), self._clock_s())
        self._listener.phase(name)

    def progress(self, text: str, done: float, total: float) -> None:
        self._listener.progress(text, done, total)

    def event(self, kind: str, text: str, node: str = "") -> None:
        self._events.append(Event(at_ms=self._now_ms(), kind=kind, text=text, node=node))
        self._listener.event(kind, text, node)

    def phases(self) -> tuple[Phase, ...]:
        """The phases so far; the one that runs counts up to now."""
        self._end_phase()
        return tuple(self._ended)

    def events(self) -> tuple[Event, ...]:
        return tuple(self._events)

    def _end_phase(self) -> None:
        if self._current is not None:
            name, started_at_ms, started_s = self._current
            self._ended.append(
                Phase(name=name, started_at_ms=started_at_ms, seconds=self._clock_s() - started_s)
            )
            self._current = None
