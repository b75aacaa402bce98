"""What configuration is really in force: asked of the running job, compared with what was set.

Source: Flink REST /jobs/<id>/checkpoints/config, and the JobManager's log for the restart strategy.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from harness.flink.durations import milliseconds
from harness.model import Check

_IN_CHECKPOINT_CONFIG: dict[str, tuple[str, Callable[[str], object]]] = {
    "execution.checkpointing.mode": ("mode", lambda text: text.lower()),
    "execution.checkpointing.interval": ("interval", milliseconds),
    "execution.checkpointing.timeout": ("timeout", milliseconds),
    "execution.checkpointing.min-pause": ("min_pause", milliseconds),
    "execution.checkpointing.max-concurrent-checkpoints": ("max_concurrent", int),
    "execution.checkpointing.tolerable-failed-checkpoints": ("tolerable_failed_checkpoints", int),
    "state.backend": ("state_backend", {"rocksdb": "EmbeddedRocksDBStateBackend"}.get),
    "execution.checkpointing.externalized-checkpoint-retention": (
        "externalization",
        {"RETAIN_ON_CANCELLATION": {"enabled": True, "delete_on_cancellation": False}}.get,
    ),
}
_STRATEGY = re.compile(
    r"FixedDelayRestartBackoffTimeStrategy"
    r"\(maxNumberRestartAttempts=(\d+), backoffTimeMS=(\d+)\) for .*\((\w+)\)"
)


def checkpoint_checks(settings: Mapping[str, str], in_force: Mapping[str, object]) -> tuple[Check, ...]:
    """One check per setting that Flink reports back. Settings that it does not report are left out."""
    checks = []
    for key, (name, parse) in _IN_CHECKPOINT_CONFIG.items():
        if key in settings:
            wanted, actual = parse(settings[key]), in_force.get(name)
            held = wanted is not None and wanted == actual  # two unknowns agree on nothing
            checks.append(Check(name=key, expected=str(wanted), actual=str(actual), held=held))
    return tuple(checks)


def restart_checks(settings: Mapping[str, str], job_id: str, jobmanager_log: str) -> tuple[Check, ...]:
    """The fixed-delay restart strategy of a job, as the JobManager logged it when the job started."""
    wanted = (
        settings["restart-strategy.fixed-delay.attempts"],
        str(milliseconds(settings["restart-strategy.fixed-delay.delay"])),
    )
    logged = [match.groups() for match in _STRATEGY.finditer(jobmanager_log) if match[3] == job_id]
    actual = logged[-1][:2] if logged else ("not logged", "not logged")
    return (
        Check(
            name="restart-strategy.fixed-delay",
            expected=f"{wanted[0]} attempts, {wanted[1]} ms apart",
            actual=f"{actual[0]} attempts, {actual[1]} ms apart",
            held=wanted == actual,
        ),
    )


def table_checks(settings: Mapping[str, str], in_force: Mapping[str, str]) -> tuple[Check, ...]:
    """The options of a table against its schema file."""
    return tuple(
        Check(name=key, expected=value, actual=in_force.get(key, "absent"), held=in_force.get(key) == value)
        for key, value in settings.items()
    )
