"""summary.md: the verdict first, causes folded, and no text that means anything to Markdown."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import factories
import report_sample

from harness.model import Verdict
from harness.report import markdown


def test_the_first_line_is_the_verdict() -> None:
    expected = "## ✓ VALID: accept"
    assert expected == markdown.render(report_sample.run()).splitlines()[0]


def test_a_valid_run_says_what_it_holds_for_and_what_voids_it() -> None:
    text = markdown.render(report_sample.run())

    assert "**What it holds for**" in text
    assert "- Seed: 20260706" in text
    assert "**What voids it**" in text
    assert "| reconciliation | ✓ VALID | 98,304 sink rows | 8 of 8 |  |" in text
    assert "| stop-with-savepoint on the jobs | ✓ bit | 5.2 s | 7.5 s |  |" in text
    assert "```\n./run harness run accept --seed 20260706 --profile fast --rate 500\n```" in text


def test_what_is_not_valid_names_its_causes_and_voids_nothing() -> None:
    text = markdown.render(report_sample.invalid())

    assert text.startswith("## ✕ INVALID: accept")
    assert "**append_only: INVALID**" in text
    assert "<details><summary>1 finding</summary>" in text
    assert "  expected: 66,123 rows" in text
    assert "- its process is gone: expected no process 7, got process 7 lives" in text
    assert "| kill-taskmanager on taskmanager-1 | ✕ did not bite |" in text
    assert "What voids it" not in text


def test_no_oracle_and_nothing_examined_are_unknown() -> None:
    nothing = factories.result(oracles=(), faults=())
    hollow = factories.result(oracles=(factories.oracle(Verdict.VALID, examined=0),))

    assert markdown.render(nothing).startswith("## ? UNKNOWN")
    assert "| none | ? UNKNOWN | 0 | 0 of 0 | no oracle judged this run |" in markdown.render(nothing)
    assert markdown.render(hollow).startswith("## ? UNKNOWN")


def test_texts_of_a_run_have_no_meaning_outside_of_code_blocks() -> None:
    nasty = "a | b\n# <b> *c* _d_ `e` [f](https://g) @h ~i~ &amp; \\| 12 reconciliation"
    result = factories.result(
        scenario=nasty, config_hash=nasty, oracles=(replace(factories.oracle(), oracle=nasty, unit=nasty),)
    )

    text = markdown.render(result)

    outside = text.split("```")[0]
    for part in ("<b>", "*c*", "_d_", "`e`", "[f]", "https://", "@h", "~i~", "\n# "):
        assert part not in outside
    assert "reconciliation" in outside
    rows = [line for line in outside.splitlines() if line.startswith("| a ")]
    assert [6] == [line.count("|") for line in rows]


def test_a_code_block_cannot_be_left_from_inside() -> None:
    text = markdown.render(factories.result(reproduce="x\n```\n<b>\n````"))

    assert "`````\nx\n```\n<b>\n````\n`````" in text


def test_the_file_lies_in_the_folder_of_the_run(tmp_path: Path) -> None:
    path = markdown.save(factories.result(failure="bad \udcff byte"), tmp_path)

    assert tmp_path / "summary.md" == path
    assert path.read_text(encoding="utf-8").startswith("## ! HARNESS FAILED")
