"""Waiting: it ends with the value, or says what was awaited, for how long, and what was seen last."""

from __future__ import annotations

import time

import pytest

from harness.errors import FlinkUnreachable, StackError, WaitTimeout
from harness.waiting import pause, wait_until


def test_the_first_true_value_is_returned() -> None:
    answers = iter([None, 0, "", "there"])

    assert "there" == wait_until("an answer", lambda: next(answers), timeout_s=5, every_s=0.001)


def test_a_value_that_is_there_at_once_is_not_waited_for() -> None:
    started = time.monotonic()
    wait_until("nothing", lambda: True, timeout_s=60, every_s=30)

    assert time.monotonic() - started < 5


def test_the_bound_is_kept() -> None:
    started = time.monotonic()
    with pytest.raises(WaitTimeout):
        wait_until("never", lambda: False, timeout_s=0.1, every_s=0.01)

    assert 0.1 <= time.monotonic() - started < 5


def test_a_timeout_says_what_was_awaited_how_long_and_the_last_value() -> None:
    with pytest.raises(WaitTimeout) as caught:
        wait_until("3 more checkpoints", lambda: 0, timeout_s=0.01, every_s=0.001)

    assert "waited 0 s for 3 more checkpoints; last seen: 0" == caught.value.what


def test_what_was_seen_can_be_told_by_another_look() -> None:
    with pytest.raises(WaitTimeout, match="last seen: 2 of 4 tasks run"):
        wait_until("tasks", lambda: None, timeout_s=0.01, every_s=0.001, seen=lambda: "2 of 4 tasks run")


def test_an_exception_that_counts_as_not_yet_is_waited_out() -> None:
    answers = iter([FlinkUnreachable("starting"), FlinkUnreachable("starting"), None])

    def look() -> str:
        error = next(answers)
        if error is not None:
            raise error
        return "up"

    found = wait_until("Flink", look, timeout_s=5, every_s=0.001, retry_on=(FlinkUnreachable,))

    assert "up" == found


def test_a_timeout_of_exceptions_names_the_last_one_and_is_caused_by_it() -> None:
    def look() -> None:
        raise FlinkUnreachable("connection refused")

    with pytest.raises(WaitTimeout) as caught:
        wait_until("Flink", look, timeout_s=0.01, every_s=0.001, retry_on=(FlinkUnreachable,))

    assert caught.value.what.endswith("for Flink; last seen: FlinkUnreachable: connection refused")
    assert isinstance(caught.value.__cause__, FlinkUnreachable)


@pytest.mark.parametrize("error", [StackError("gone"), KeyboardInterrupt()])
def test_any_other_exception_passes_through_at_once(error: BaseException) -> None:
    looks = []

    def look() -> None:
        looks.append(1)
        raise error

    with pytest.raises(type(error)) as caught:
        wait_until("Flink", look, timeout_s=60, every_s=0.001, retry_on=(FlinkUnreachable,))

    assert error is caught.value
    assert 1 == len(looks)


def test_a_pause_lets_time_pass() -> None:
    started = time.monotonic()
    pause(0.02)

    assert time.monotonic() - started >= 0.02
