"""Read-back: every setting that is not in force is a check that does not hold."""

from __future__ import annotations

from typing import Any

import pytest

from harness.flink.readback import checkpoint_checks, restart_checks, table_checks
from harness.model import Check
from harness.profiles import load_profile

JOB, OTHER_JOB = "0afc1e62f3d9", "ffffffffffff"
SETTINGS = dict(load_profile("guide", run="r1").flink)
IN_FORCE: dict[str, Any] = {
    "mode": "exactly_once",
    "interval": 120_000,
    "timeout": 600_000,
    "min_pause": 60_000,
    "max_concurrent": 1,
    "externalization": {"enabled": True, "delete_on_cancellation": False},
    "state_backend": "EmbeddedRocksDBStateBackend",
    "checkpoint_storage": "FileSystemCheckpointStorage",
    "unaligned_checkpoints": False,
    "tolerable_failed_checkpoints": 3,
    "checkpoints_after_tasks_finish": True,
}


def logged(attempts: int, delay_ms: int, job: str) -> str:
    return (
        "2026-07-06 10:15:00,123 INFO  org.apache.flink.runtime.jobmaster.JobMaster [] - Using restart "
        f"back off time strategy FixedDelayRestartBackoffTimeStrategy(maxNumberRestartAttempts={attempts}, "
        f"backoffTimeMS={delay_ms}) for orders ({job}).\n"
    )


def wrong(checks: tuple[Check, ...]) -> list[str]:
    return [check.name for check in checks if not check.held]


def test_the_guides_settings_hold_when_flink_reports_them() -> None:
    checks = checkpoint_checks(SETTINGS, IN_FORCE)

    assert 8 == len(checks)
    assert [] == wrong(checks)


@pytest.mark.parametrize(
    ("name", "value", "key"),
    [
        ("mode", "at_least_once", "execution.checkpointing.mode"),
        ("interval", 119_999, "execution.checkpointing.interval"),
        ("timeout", 1, "execution.checkpointing.timeout"),
        ("min_pause", 0, "execution.checkpointing.min-pause"),
        ("max_concurrent", 2, "execution.checkpointing.max-concurrent-checkpoints"),
        ("tolerable_failed_checkpoints", 0, "execution.checkpointing.tolerable-failed-checkpoints"),
        ("state_backend", "HashMapStateBackend", "state.backend"),
        (
            "externalization",
            {"enabled": True, "delete_on_cancellation": True},
            "execution.checkpointing.externalized-checkpoint-retention",
        ),
    ],
)
def test_each_setting_that_differs_does_not_hold(name: str, value: object, key: str) -> None:
    assert [key] == wrong(checkpoint_checks(SETTINGS, IN_FORCE | {name: value}))


def test_a_setting_that_flink_does_not_report_does_not_hold() -> None:
    assert 8 == len(wrong(checkpoint_checks(SETTINGS, {})))


def test_a_value_that_the_harness_cannot_compare_does_not_hold() -> None:
    assert ["state.backend"] == wrong(checkpoint_checks({"state.backend": "hashmap"}, {}))


def test_a_setting_that_was_not_made_is_not_checked() -> None:
    assert () == checkpoint_checks({"state.backend.incremental": "true"}, IN_FORCE)


def test_the_restart_strategy_is_read_from_the_log_of_the_right_job() -> None:
    log = logged(20, 1000, OTHER_JOB) + logged(3, 30_000, JOB) + logged(7, 7, OTHER_JOB)

    assert [] == wrong(restart_checks(SETTINGS, JOB, log))


@pytest.mark.parametrize(
    ("log", "actual"),
    [
        (logged(20, 30_000, JOB), "20 attempts, 30000 ms apart"),
        (logged(3, 1000, JOB), "3 attempts, 1000 ms apart"),
        (logged(3, 30_000, OTHER_JOB), "not logged attempts, not logged ms apart"),
        ("", "not logged attempts, not logged ms apart"),
        (logged(3, 30_000, JOB) + logged(1, 1, JOB), "1 attempts, 1 ms apart"),
    ],
    ids=["attempts", "delay", "another job's", "nothing logged", "the newest counts"],
)
def test_another_restart_strategy_does_not_hold(log: str, actual: str) -> None:
    (check,) = restart_checks(SETTINGS, JOB, log)

    assert not check.held
    assert ("3 attempts, 30000 ms apart", actual) == (check.expected, check.actual)


def test_table_options_hold_when_the_schema_has_them_among_others() -> None:
    assert [] == wrong(table_checks({"bucket": "16"}, {"bucket": "16", "path": "s3://w"}))


def test_a_table_option_that_is_absent_or_different_does_not_hold() -> None:
    checks = table_checks({"bucket": "16", "merge-engine": "deduplicate"}, {"bucket": "4"})

    assert [("bucket", "4"), ("merge-engine", "absent")] == [(check.name, check.actual) for check in checks]
    assert ["bucket", "merge-engine"] == wrong(checks)
