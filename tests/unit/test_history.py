"""The history: what was told is passed on, and kept with its times."""

from __future__ import annotations

from fakes import FakeListener

from harness.history import History
from harness.model import Event, Phase


def test_phases_have_a_start_of_day_and_a_duration_of_the_steady_clock() -> None:
    clock = [100.0]
    history = History(FakeListener(), now_ms=lambda: 5_000, clock_s=lambda: clock[0])
    history.phase("stack up")
    clock[0] += 20.5
    history.phase("judge")
    clock[0] += 1

    expected = (
        Phase(name="stack up", started_at_ms=5_000, seconds=20.5),
        Phase(name="judge", started_at_ms=5_000, seconds=1.0),
    )
    assert expected == history.phases()


def test_asking_twice_tells_the_same() -> None:
    history = History(FakeListener())
    history.phase("judge")

    assert history.phases() == history.phases()
    assert ["judge"] == [phase.name for phase in history.phases()]


def test_a_run_without_phases_has_none() -> None:
    assert () == History(FakeListener()).phases()


def test_events_are_kept_in_order_with_their_times() -> None:
    times = iter([1, 2])
    history = History(FakeListener(), now_ms=lambda: next(times))
    history.event("inject", "kill -9", "taskmanager-1")
    history.event("recovered", "all run")

    expected = (
        Event(at_ms=1, kind="inject", text="kill -9", node="taskmanager-1"),
        Event(at_ms=2, kind="recovered", text="all run"),
    )
    assert expected == history.events()


def test_everything_is_passed_on_to_the_listener() -> None:
    listener = FakeListener()
    history = History(listener)
    history.phase("steady")
    history.progress("checkpoints", 1, 2)
    history.event("job", "runs")

    expected = [("phase", "steady"), ("progress", "checkpoints"), ("event", "job", "runs", "")]
    assert expected == listener.told
