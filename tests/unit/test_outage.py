"""The outage budget in words that say its numbers."""

from __future__ import annotations

import pytest

from harness.model import OutageBudget
from harness.report.outage import outage_sentences

BUDGET = OutageBudget(
    restart_attempts=3,
    restart_delay_s=30,
    tolerable_failed_checkpoints=3,
    checkpoint_interval_s=120,
    checkpoint_timeout_s=600,
    fail_fast_s=90,
    stalled_s=2880,
)


@pytest.mark.parametrize(
    "part",
    [
        "restart itself 3 times, 30 s after each failure",
        "longer than about 90 s ends the job",
        "timeout of 10 min 00 s",
        "The 4th in a row that fails costs the first restart: after about 48 min 00 s",
    ],
)
def test_each_number_of_the_budget_is_told(part: str) -> None:
    assert part in " ".join(outage_sentences(BUDGET))
