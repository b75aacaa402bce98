"""Progress: bars on a terminal, plain lines elsewhere, never too many of them."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta

import pytest
from rich.console import Console

from harness.report.progress import BarListener, LineListener, listener_for


class FakeTime:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def clock(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime(2026, 7, 6, 10, 15, tzinfo=UTC) + timedelta(seconds=self.seconds)


def plain_console(width: int = 80) -> tuple[Console, io.StringIO]:
    output = io.StringIO()
    return Console(file=output, width=width, force_terminal=False), output


def terminal_console() -> tuple[Console, io.StringIO]:
    output = io.StringIO()
    console = Console(
        file=output, width=80, force_terminal=True, color_system=None, _environ={"TERM": "xterm"}
    )
    return console, output


def test_a_terminal_gets_bars() -> None:
    console, _ = terminal_console()

    assert isinstance(listener_for(console), BarListener)


def test_what_is_no_terminal_gets_lines() -> None:
    console, _ = plain_console()

    assert isinstance(listener_for(console), LineListener)


def test_a_terminal_that_cannot_move_its_cursor_gets_lines() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})

    assert isinstance(listener_for(console), LineListener)


def test_lines_tell_phases_progress_and_events_with_utc_time() -> None:
    console, output = plain_console()
    time = FakeTime()

    with LineListener(console, clock=time.clock, now=time.now) as listener:
        listener.phase("stack up")
        time.seconds = 2
        listener.progress("nodes", 1, 4)
        time.seconds = 12
        listener.phase("inject")
        listener.event("inject", "kill -9 of pid 77", "taskmanager-1")
        listener.event("note", "nothing")
        listener.progress("waiting", 0, 0)
        time.seconds = 13.5

    expected = [
        "10:15:00Z  stack up …",
        "10:15:02Z    stack up: nodes 1 of 4",
        "10:15:12Z  stack up done after 12 s",
        "10:15:12Z  inject …",
        "10:15:12Z    inject taskmanager-1: kill -9 of pid 77",
        "10:15:12Z    note: nothing",
        "10:15:12Z    inject: waiting",
        "10:15:13Z  inject ended after 1.5 s",
    ]
    assert expected == output.getvalue().splitlines()


def test_progress_is_told_at_most_every_five_seconds() -> None:
    console, output = plain_console()
    time = FakeTime()

    with LineListener(console, clock=time.clock, now=time.now) as listener:
        for second in range(60):
            time.seconds = float(second)
            listener.progress("rows", second, 60)

    expected = 12
    assert expected == len(output.getvalue().splitlines())


def test_a_line_stays_one_line_without_escape_codes_even_on_a_terminal() -> None:
    output = io.StringIO()
    console = Console(file=output, width=20, force_terminal=True, color_system="truecolor")

    with LineListener(console) as listener:
        listener.event("log", "\x1b[31mlong [red]text[/red]\n" + "x" * 200)

    text = output.getvalue()
    expected = 1
    assert expected == len(text.splitlines())
    assert "\x1b" not in text
    assert "[red]text[/red] " + "x" * 200 in text


def break_off(listener: LineListener | BarListener) -> None:
    with listener:
        listener.phase("steady")
        raise KeyboardInterrupt


def test_lines_tell_that_a_phase_broke_off() -> None:
    console, output = plain_console()

    with pytest.raises(KeyboardInterrupt):
        break_off(LineListener(console))

    assert "steady broke off (KeyboardInterrupt) after 0.0 s" in output.getvalue()


def test_bars_leave_a_line_per_ended_phase_and_per_event() -> None:
    console, output = terminal_console()
    time = FakeTime()

    with BarListener(console, clock=time.clock, now=time.now) as listener:
        listener.progress("before any phase", 1, 2)
        listener.phase("stack up")
        listener.progress("nodes [b]", 4, 4)
        time.seconds = 12
        listener.phase("steady")
        listener.event("note", "look [red]here", "mysql")
        time.seconds = 15

    text = output.getvalue()
    assert "✓ stack up                12 s  nodes [b] 4/4" in text
    assert "10:15:12Z  note mysql: look [red]here" in text
    assert "✓ steady                 3.0 s" in text


def test_bars_tell_that_a_phase_broke_off_and_give_the_cursor_back() -> None:
    console, output = terminal_console()

    with pytest.raises(KeyboardInterrupt):
        break_off(BarListener(console))

    text = output.getvalue()
    assert "✗ steady                 0.0 s  broke off (KeyboardInterrupt)" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")


def test_a_bar_fills_as_far_as_the_phase_is() -> None:
    console, output = terminal_console()

    with BarListener(console) as listener:
        listener.phase("load")
        listener.progress("rows", 1000, 2000)

    assert "rows 1,000/2,000" in output.getvalue()
