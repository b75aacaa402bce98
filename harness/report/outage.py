"""The outage budget in plain words (guide §3.1)."""

from __future__ import annotations

from harness.model import OutageBudget
from harness.report.wording import duration


def outage_sentences(budget: OutageBudget) -> tuple[str, ...]:
    """What the configuration survives by itself, and when a person has to act."""
    more = budget.tolerable_failed_checkpoints + 1
    return (
        f"In each of its lives a job may restart itself {budget.restart_attempts} times, "
        f"{_time(budget.restart_delay_s)} after each failure. The next failure ends it.",
        "Storage that refuses connections: every attempt fails at once. An outage longer than about "
        f"{_time(budget.fail_fast_s)} ends the job, and a person must start it again from its last "
        "checkpoint.",
        f"Storage that hangs: only checkpoints fail, each at its timeout of "
        f"{_time(budget.checkpoint_timeout_s)} (one every {_time(budget.checkpoint_interval_s)} otherwise). "
        f"The {_ordinal(more)} in a row that fails costs the first restart: after about "
        f"{_time(budget.stalled_s)}. Until then data is late, not lost.",
    )


def _time(seconds: float) -> str:
    """As durations are told, but whole seconds without a place."""
    return f"{seconds:.0f} s" if seconds < 10 and seconds == round(seconds) else duration(seconds)


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 not in (11, 12, 13) else "th"
    return f"{number}{ending}"
