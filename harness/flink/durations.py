"""Flink's duration texts: `120s`, `10 min`, `1500ms`, a bare number is milliseconds."""

from __future__ import annotations

import re

from harness.errors import UsageError

_UNITS_MS = {
    **dict.fromkeys(("", "ms", "milli", "millis"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("min", "m", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}


def milliseconds(text: str) -> int:
    """The duration in milliseconds. Raises UsageError. Source: Flink's TimeUtils.parseDuration."""
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]*)\s*", text.lower())
    if match is None or match[2] not in _UNITS_MS:
        raise UsageError(f"{text!r} is not a duration", todo="write it like 3s, 10 min or 1500ms")
    return int(match[1]) * _UNITS_MS[match[2]]
