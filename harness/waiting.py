"""Waiting: the only place that sleeps. Every wait has a bound and says what was awaited."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import tenacity

from harness.errors import WaitTimeout

Value = TypeVar("Value")


def wait_until(
    what: str,
    look: Callable[[], Value | None],
    *,
    timeout_s: float,
    every_s: float = 0.25,
    retry_on: tuple[type[Exception], ...] = (),
    seen: Callable[[], object] | None = None,
) -> Value:
    """Call `look` until it returns something true, and return that.

    Exceptions in `retry_on` count as "not yet"; any other passes through at once.
    Raises WaitTimeout with what was awaited, for how long, and the last value seen (`seen()` if
    given, else what `look` returned or raised last).
    """
    last: object = None
    started = time.monotonic()

    def attempt() -> Value | None:
        nonlocal last
        try:
            value = look()
        except retry_on as error:
            last = f"{type(error).__name__}: {error}"
            raise
        last = value
        return value

    retrying = tenacity.Retrying(
        stop=tenacity.stop_after_delay(timeout_s),
        wait=tenacity.wait_fixed(every_s),
        retry=tenacity.retry_if_exception_type(retry_on) | tenacity.retry_if_result(lambda v: not v),
    )
    try:
        value = retrying(attempt)
    except tenacity.RetryError as error:
        state = seen() if seen else last
        waited = time.monotonic() - started
        raise WaitTimeout(
            f"waited {waited:.0f} s for {what}; last seen: {state}"
        ) from error.last_attempt.exception()
    assert value is not None  # noqa: S101 - retry_if_result lets only true values through
    return value


def pause(seconds: float) -> None:
    """Let time pass on purpose: a pace, never a hope that something will have happened."""
    time.sleep(seconds)
