"""The outage budget: how long each profile's job survives without its storage, by the formula told."""

from __future__ import annotations

import pytest

from harness.budget import outage_budget
from harness.model import OutageBudget
from harness.profiles import load_profile


def test_the_guides_values_give_a_minute_and_a_half_when_attempts_fail_at_once() -> None:
    # Stalled: three failed checkpoints are tolerated, each 600 s and a pause of 60 s, and a fourth ends it.
    expected = OutageBudget(
        restart_attempts=3,
        restart_delay_s=30,
        tolerable_failed_checkpoints=3,
        checkpoint_interval_s=120,
        checkpoint_timeout_s=600,
        fail_fast_s=90,
        stalled_s=3 * (600 + 60) + 600,
    )

    assert expected == outage_budget(load_profile("guide", run="r1").flink)


def test_the_fast_values_give_twenty_seconds_when_attempts_fail_at_once() -> None:
    budget = outage_budget(load_profile("fast", run="r1").flink)

    assert (20, 3 * (15 + 1.5) + 15) == (budget.fail_fast_s, budget.stalled_s)


@pytest.mark.parametrize(
    ("key", "value", "stalled_s"),
    [
        ("execution.checkpointing.tolerable-failed-checkpoints", "0", 600.0),
        ("execution.checkpointing.interval", "1000s", 3 * 1000 + 600.0),  # longer than timeout and pause
    ],
    ids=["none tolerated", "a long interval"],
)
def test_a_stall_lasts_until_one_more_checkpoint_failed_than_tolerated(
    key: str, value: str, stalled_s: float
) -> None:
    flink = dict(load_profile("guide", run="r1").flink) | {key: value}

    assert stalled_s == outage_budget(tuple(flink.items())).stalled_s
