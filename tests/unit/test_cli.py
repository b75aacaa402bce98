"""The command line: what it refuses it refuses at once, in one message, with exit code 3."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer

from harness import faults, oracles
from harness.cli import app, main
from harness.errors import WaitTimeout
from harness.scenario import built_in

COMMANDS = (
    *("accept", "run", "soak", "report", "recheck", "prove", "bundle"),
    *("up", "down", "heal", "status", "list"),
)


class Ended:
    """How a command ended: its exit code, and what it said where."""

    def __init__(
        self, *arguments: str, captured: pytest.CaptureFixture[str], program: typer.Typer = app
    ) -> None:
        with pytest.raises(SystemExit) as caught:
            main(arguments, program=program)
        self.code = caught.value.code
        said = captured.readouterr()
        self.out, self.err = said.out, said.err


@pytest.mark.parametrize(
    ("arguments", "what", "todo"),
    [
        (["acept"], "No such command 'acept'", "--help says what there is"),
        (["accept", "--image", "pull"], "No such option", "--help says what there is"),
        (["accept", "--images", "push"], "Invalid value for '--images'", "--help says"),
        (["accept", "--source-image", "oracle"], "Invalid value for '--source-image'", "--help says"),
        (["accept", "--seed", "x"], "Invalid value for '--seed'", "--help says"),
        (["accept", "--ui-port", "70000"], "Invalid value for '--ui-port'", "--help says"),
        (["accept", "--profile", "fsat"], "got 'fsat', did you mean 'fast'", "give another value"),
        (["accept", "--rate", "5000"], "workload.rate: expected at most 2000, got 5000", ""),
        (["run"], "Missing argument", "--help says"),
        (["run", "cleen"], "no scenario 'cleen'", "built in are: acceptance, bulk-update, clean"),
        (["run", "gone.yaml"], "gone.yaml: there is no such file", ""),
        (["soak"], "Missing argument", "--help says"),
        (["soak", "0"], "Invalid value for 'N'", "--help says"),
        (["soak", "2", "--minutes", "-1"], "Invalid value for '--minutes'", "--help says"),
        (
            ["soak", "2", "--scenario", "cleen"],
            "no scenario 'cleen'",
            "built in are: acceptance, bulk-update, clean",
        ),
        (["soak", "2", "--seed", str(2**63 - 1)], "seed: expected", "give another value"),
        (["report", "gone"], "no run 'gone' in reports", ""),
        (["recheck", "gone"], "no run 'gone' in reports", ""),
        (["prove", "gone"], "no run 'gone' in reports", ""),
        (["prove", "--seed", "x"], "Invalid value for '--seed'", "--help says"),
        (["bundle", "gone"], "no run 'gone' in reports", ""),
        (["bundle", "gone", "--max-mb", "0"], "Invalid value for '--max-mb'", "--help says"),
        (["up", "--profile", "slow"], "got 'slow'", ""),
        (["list", "verdicts"], "can't list 'verdicts'", "one of: faults, oracles, scenarios, profiles"),
        (["list"], "Missing argument", "--help says"),
        ([], "no command was given", "--help says what there is"),
    ],
)
def test_what_cannot_be_is_refused_with_one_message_and_exit_code_3(
    capsys: pytest.CaptureFixture[str], arguments: list[str], what: str, todo: str
) -> None:
    ended = Ended(*arguments, captured=capsys)

    assert 3 == ended.code
    assert what in ended.err
    assert todo in ended.err
    assert 1 == ended.err.count("error: ")
    assert "Traceback" not in ended.err


def test_a_malformed_scenario_is_refused_with_file_and_line_before_anything_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text("name: mine\nfautls: []\n")
    ended = Ended("run", str(file), "--reports", str(tmp_path / "reports"), captured=capsys)

    assert 3 == ended.code
    assert f"{file}:2: fautls: unknown field, did you mean 'faults'" in ended.err
    assert not (tmp_path / "reports").exists()


def test_a_scenario_of_an_unknown_fault_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    text = built_in()["kill-taskmanager"].read_text()
    file.write_text(text.replace("fault: kill-taskmanager", "fault: kill-taskmanger"))
    ended = Ended("run", str(file), "--reports", str(tmp_path / "reports"), captured=capsys)

    assert 3 == ended.code
    assert "did you mean 'kill-taskmanager'" in ended.err
    assert not (tmp_path / "reports").exists()


def test_a_parameter_that_a_fault_does_not_have_is_refused_before_anything_starts(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "mine.yaml"
    text = built_in()["kill-taskmanager"].read_text()
    step = "  - fault: kill-taskmanager"
    file.write_text(text.replace(step, f"{step}\n    with: {{victim: gateway}}"))
    ended = Ended("run", str(file), "--reports", str(tmp_path / "reports"), captured=capsys)

    assert 3 == ended.code
    assert "kill-taskmanager: victim is 'gateway'" in ended.err
    assert not (tmp_path / "reports").exists()


def test_what_is_refused_is_printed_as_it_is_and_not_as_markup(capsys: pytest.CaptureFixture[str]) -> None:
    ended = Ended("run", "[bold]x[/bold]", captured=capsys)

    assert "[bold]x[/bold]" in ended.err


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(capsys: pytest.CaptureFixture[str], command: str) -> None:
    ended = Ended(command, "--help", captured=capsys)

    (info,) = (
        info
        for info in app.registered_commands
        if info.callback and (info.name or info.callback.__name__) == command
    )
    doc = (info.callback.__doc__ or "") if info.callback else ""
    assert 0 == ended.code
    assert doc
    assert " ".join(doc.split()[:4]) in " ".join(ended.out.split())


def test_the_help_names_every_command_and_the_exit_codes(capsys: pytest.CaptureFixture[str]) -> None:
    ended = Ended("--help", captured=capsys)

    assert 0 == ended.code
    assert len(COMMANDS) == len(app.registered_commands)
    assert all(f" {command} " in ended.out for command in COMMANDS)
    assert "0 valid, 1 invalid, 2 unknown, 3 the harness itself failed" in ended.out


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("faults", [f"`{name}`" for name in faults.FAULTS]),
        ("oracles", [f"`{name}`" for name in oracles.ORACLES]),
        ("scenarios", list(built_in())),
        ("profiles", ["fast", "guide"]),
    ],
)
def test_a_list_is_a_table_with_a_row_for_each(
    capsys: pytest.CaptureFixture[str], what: str, names: list[str]
) -> None:
    ended = Ended("list", what, captured=capsys)

    lines = ended.out.splitlines()
    assert 0 == ended.code
    assert names == [line.split("|")[1].strip() for line in lines[2:]]
    assert {lines[0].count("|")} == {line.replace("\\|", "").count("|") for line in lines}


@pytest.mark.parametrize(
    ("raised", "code", "said"),
    [
        (typer.Exit(0), 0, ""),
        (typer.Exit(1), 1, ""),
        (typer.Exit(2), 2, ""),
        (typer.Exit(3), 3, ""),
        (KeyboardInterrupt(), 3, "error: stopped"),
        (typer.Abort(), 3, "error: stopped"),
        (
            WaitTimeout("waited 9 s for Flink", todo="see logs"),
            3,
            "error: waited 9 s for Flink\n  → see logs",
        ),
        (ZeroDivisionError("a bug"), 3, "ZeroDivisionError: a bug"),
    ],
    ids=repr,
)
def test_every_way_out_has_its_exit_code(
    capsys: pytest.CaptureFixture[str], raised: BaseException, code: int, said: str
) -> None:
    program = typer.Typer()

    @program.command()
    def ending() -> None:
        raise raised

    ended = Ended(captured=capsys, program=program)

    assert code == ended.code
    assert said in ended.err
    assert bool(said) == bool(ended.err.strip())


def test_a_command_that_just_ends_is_exit_code_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == Ended("list", "profiles", captured=capsys).code
