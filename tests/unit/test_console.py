"""The end of a run on the console: right at 80 columns, plain where there is no terminal."""

from __future__ import annotations

import io
import shlex
from dataclasses import replace

import factories
import pytest
from rich.console import Console, RenderableType

from harness.model import HARNESS_FAILED, Finding, RunResult, Severity, Verdict
from harness.report import console

FOLDER = "reports/20260706-101500-kill-taskmanager"


def shown(renderable: RenderableType, *, terminal: bool = False, width: int = 80) -> str:
    output = io.StringIO()
    Console(file=output, width=width, force_terminal=terminal, _environ={"TERM": "xterm"}).print(renderable)
    return output.getvalue()


def rows(text: str) -> list[list[str]]:
    """The rows of a table, a row that was folded put together again."""
    found: list[list[str]] = []
    for line in text.splitlines():
        if not line.startswith("│"):
            continue
        cells = [cell.strip() for cell in line.strip("│").split("│")]
        if cells[1] or not found:
            found.append(cells)
        else:
            found[-1] = [f"{old} {new}".strip() for old, new in zip(found[-1], cells, strict=True)]
    return found


def invalid() -> RunResult:
    spoiled = factories.oracle(Verdict.INVALID, findings=(factories.MISSING_ROWS,))
    return factories.result(
        verdict=Verdict.INVALID, exit_code=1, oracles=(spoiled,), faults=(factories.proof(bit=False),)
    )


def test_the_verdict_table_has_a_row_per_oracle_fault_and_life_of_a_job() -> None:
    table = rows(shown(console.verdict_table(factories.result())))

    expected = [
        ["what", "verdict", "examined", "finding"],
        ["primary-key", "VALID", "5,012 rows", ""],
        ["kill-taskmanager on taskmanager-1", "bit", "2 of 2 checks", "recovered in 12 s"],
        ["stop-with-savepoint on the jobs", "bit", "1 of 1 checks", "recovered in 10 s"],
        [
            "job orders, life 1",
            "FINISHED",
            "23 checkpoints",
            "1 restart, 1 restored; stopped with a savepoint; last: TaskManager lost",
        ],
        ["job orders, life 2", "RUNNING", "23 checkpoints", "0 restarts, 1 restored"],
        ["job behavior-log", "RUNNING", "23 checkpoints", "1 restart, 1 restored; last: TaskManager lost"],
    ]
    assert expected == table


def test_the_verdict_table_shows_first_findings_and_failed_checks() -> None:
    table = rows(shown(console.verdict_table(invalid())))

    expected = [
        [
            "primary-key",
            "INVALID",
            "5,012 rows",
            "PK-MISSING: 3 rows of the source are missing from the sink",
        ],
        [
            "kill-taskmanager on taskmanager-1",
            "no bite",
            "1 of 2 checks",
            "tasks lost: expected at least 1, got 0",
        ],
    ]
    assert expected == table[1:3]


def test_the_heaviest_finding_is_the_one_in_the_table() -> None:
    note = Finding(code="NOTE", severity=Severity.INFO, what="slow")
    result = factories.result(
        oracles=(factories.oracle(Verdict.INVALID, findings=(note, factories.MISSING_ROWS)),)
    )

    text = shown(console.verdict_table(result))

    assert "PK-MISSING" in text
    assert "NOTE" not in text


def test_a_valid_that_examined_nothing_is_shown_as_unknown() -> None:
    result = factories.result(oracles=(factories.oracle(examined=0),))

    expected = ["primary-key", "UNKNOWN", "0 rows", "nothing was examined"]
    assert expected == rows(shown(console.verdict_table(result)))[1]
    assert shown(console.last_line(result, FOLDER)).startswith("UNKNOWN")


def test_no_oracle_is_shown_as_unknown() -> None:
    result = factories.result(oracles=())

    expected = ["oracles", "UNKNOWN", "0", "no oracle judged this run"]
    assert expected == rows(shown(console.verdict_table(result)))[1]
    assert shown(console.last_line(result, FOLDER)).startswith("UNKNOWN")


def test_a_valid_run_has_no_findings_panel() -> None:
    assert console.findings_panel(factories.result()) is None


def test_the_findings_panel_tells_each_cause_whole() -> None:
    panel = console.findings_panel(invalid())
    assert panel is not None

    text = shown(panel)

    finding = factories.MISSING_ROWS
    for part in ("Why INVALID", finding.what, finding.where, finding.expected, finding.actual, finding.todo):
        assert part in text
    assert all(example in text for example in finding.examples)
    assert "kill-taskmanager on taskmanager-1 did not bite" in text
    assert text.index("PK-MISSING") < text.index("did not bite")


def test_a_failure_of_the_harness_is_told_with_what_to_do() -> None:
    result = factories.result(
        verdict=Verdict.UNKNOWN, exit_code=HARNESS_FAILED, failure="no engine", failure_todo="start it"
    )
    panel = console.findings_panel(result)
    assert panel is not None

    text = shown(panel)

    assert "The harness failed" in text
    assert "no engine" in text
    assert "→ start it" in text


def test_an_unknown_without_any_cause_says_so() -> None:
    panel = console.findings_panel(factories.result(verdict=Verdict.UNKNOWN, exit_code=2))
    assert panel is not None

    assert "gives no reason" in shown(panel)


def test_the_command_to_reproduce_can_be_copied_from_80_columns() -> None:
    command = "harness run kill-taskmanager --seed 20260706 --profile fast --rate 1000 --label 'a  b' --keep"

    text = shown(console.reproduce(factories.result(reproduce=command)))

    copied = text.removeprefix("Reproduce it:\n").replace("\\\n", "")
    assert shlex.split(command) == shlex.split(copied)
    assert max(len(line) for line in text.splitlines()) <= 80
    assert " \\\n" in text


def test_the_phase_table_tells_start_in_utc_time_and_share() -> None:
    table = rows(shown(console.phase_table(factories.result())))

    expected = [
        ["phase", "from (UTC)", "time", "share"],
        ["stack up", "10:15:00", "20 s", "28%"],
        ["judge", "10:16:10", "4.0 s", "5%"],
        ["whole run", "-", "74 s", "100%"],
    ]
    assert expected == table


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (factories.result(), f"VALID  kill-taskmanager  in 74 s  {FOLDER}/\n"),
        (invalid(), f"INVALID  kill-taskmanager  in 74 s  {FOLDER}/\n"),
        (
            factories.result(verdict=Verdict.UNKNOWN, exit_code=HARNESS_FAILED, failure="x", seconds=125.0),
            f"HARNESS FAILED  kill-taskmanager  in 2 min 05 s  {FOLDER}/\n",
        ),
    ],
)
def test_the_last_line_is_verdict_scenario_time_and_folder(result: RunResult, expected: str) -> None:
    assert expected == shown(console.last_line(result, FOLDER + "/"), width=120)


@pytest.mark.parametrize("terminal", [True, False])
def test_the_summary_ends_with_the_last_line_and_fits_80_columns(terminal: bool) -> None:
    text = shown(console.summary(invalid(), FOLDER), terminal=terminal)

    plain = shown(console.summary(invalid(), FOLDER))
    assert plain.splitlines()[-1].startswith("INVALID  kill-taskmanager")
    assert max(len(line) for line in plain.splitlines()) <= 80
    assert terminal == ("\x1b[" in text)


def test_a_valid_summary_says_what_ran_and_not_how_to_reproduce_a_failure() -> None:
    text = shown(console.summary(factories.result(), FOLDER))

    assert "1.20.3 (built from PyPI and Maven Central)" in text
    assert "execution.checkpointing.interval: 120s → 3s" in text
    assert "Reproduce it" not in text


def test_text_from_outside_is_never_taken_for_markup_or_escape_codes() -> None:
    nasty = "[red]a[/red] \x1b[31mb [/nope]"
    finding = Finding(code="X", severity=Severity.ERROR, what=nasty, examples=(nasty,), todo=nasty)
    result = factories.result(
        scenario=nasty,
        failure=nasty,
        oracles=(replace(factories.oracle(Verdict.INVALID, findings=(finding,)), oracle=nasty),),
        reproduce=nasty,
    )

    text = shown(console.summary(result, nasty), width=200)

    assert "[red]a[/red] b [/nope]" in text
    assert "\x1b" not in text
