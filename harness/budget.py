"""The outage budget: how long an outage of the storage a configuration survives by itself (guide §3.1)."""

from __future__ import annotations

from harness.flink.durations import milliseconds
from harness.model import OutageBudget
from harness.profiles import Settings


def outage_budget(flink: Settings) -> OutageBudget:
    """The budget that these settings of a job give, from its restart strategy and tolerable failures.

    `fail_fast_s`: every attempt fails at once, so the job lives for attempts times delay: the least that
    an outage may last. `stalled_s`: nothing fails but checkpoints, each at its timeout, the next one
    triggered an interval after the one before or when that has ended: until one more than tolerated has
    failed and the first restart is due. Source: Flink 1.20 docs, "Task Failure Recovery" and
    "Checkpointing / tolerable-failed-checkpoints".
    """
    settings = dict(flink)
    attempts = int(settings["restart-strategy.fixed-delay.attempts"])
    delay_s = milliseconds(settings["restart-strategy.fixed-delay.delay"]) / 1000
    tolerable = int(settings["execution.checkpointing.tolerable-failed-checkpoints"])
    interval_s = milliseconds(settings["execution.checkpointing.interval"]) / 1000
    timeout_s = milliseconds(settings["execution.checkpointing.timeout"]) / 1000
    pause_s = milliseconds(settings["execution.checkpointing.min-pause"]) / 1000
    between_s = max(interval_s, timeout_s + pause_s)
    return OutageBudget(
        restart_attempts=attempts,
        restart_delay_s=delay_s,
        tolerable_failed_checkpoints=tolerable,
        checkpoint_interval_s=interval_s,
        checkpoint_timeout_s=timeout_s,
        fail_fast_s=attempts * delay_s,
        stalled_s=tolerable * between_s + timeout_s,
    )
