"""Durations: Flink's texts in milliseconds."""

from __future__ import annotations

import pytest

from harness.errors import UsageError
from harness.flink.durations import milliseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1500", 1500),
        ("1500ms", 1500),
        ("120s", 120_000),
        ("3 s", 3_000),
        ("10 min", 600_000),
        ("2m", 120_000),
        ("48h", 172_800_000),
        ("1 day", 86_400_000),
        (" 5 SECONDS ", 5_000),
        ("0s", 0),
    ],
)
def test_a_duration_is_read_in_any_of_flinks_units(text: str, expected: int) -> None:
    assert expected == milliseconds(text)


@pytest.mark.parametrize("text", ["", "s", "1.5s", "-3s", "3 weeks", "3s 2s"])
def test_what_is_no_duration_is_refused_with_how_to_write_one(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        milliseconds(text)

    assert f"{text!r} is not a duration" == caught.value.what
    assert "write it like 3s, 10 min or 1500ms" == caught.value.todo
