"""The commands for runs that are over: report, recheck, prove, bundle. None of them needs an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from harness import bundle as bundling
from harness import proving, results, runs
from harness import recheck as rechecking
from harness.cli.options import (
    REPORTS,
    ReportsOption,
    RunArgument,
    console,
    file_link,
)
from harness.defects import DEFECTS
from harness.errors import UsageError
from harness.model import FaultProof, RunResult
from harness.proving import Score
from harness.recheck import Rechecked
from harness.report import console as console_report
from harness.report import result_json
from harness.report.progress import listener_for
from harness.report.tables import defect_rows, markdown
from harness.report.wording import one_line

MB = 1_000_000


def report(run_name: RunArgument, reports: ReportsOption = REPORTS) -> None:
    """Write a run's reports anew from its result.json, and show its summary. Ends with its exit code."""
    folder = runs.folder_of(run_name, reports)
    result = result_json.load(folder)
    results.render(result, folder)
    console.print(f"report: {file_link(folder / 'report.html')}", highlight=False, soft_wrap=True)
    console.print(console_report.summary(result, str(folder)))
    raise typer.Exit(runs.exit_code(result))


def recheck(run_name: RunArgument, reports: ReportsOption = REPORTS) -> None:
    """Judge a run again from its evidence alone, without Docker, and compare.

    Ends with the verdict's exit code, judged again; with 3 when that is not what was recorded, or the
    evidence is not whole.
    """
    folder = runs.folder_of(run_name, reports)
    done = rechecking.recheck(folder)
    console.print(_comparison(done))
    if done.carried:
        console.print(f"carried over from the run: {escape(one_line(done.carried))}", highlight=False)
    if not done.agrees:
        raise UsageError(
            f"{folder.name}: recorded {_outcome(done.recorded)}, "
            f"judged again {_outcome(done.again)}: "
            f"{_differing(done)}",
            todo="trust neither: evidence or result were changed, or another version of the harness judged",
        )
    console.print(
        f"{done.again.verdict.value}  judged again from its evidence, as recorded  {escape(str(folder))}/",
        highlight=False,
        soft_wrap=True,
    )
    raise typer.Exit(done.exit_code)


def prove(
    run_name: RunArgument = runs.LATEST,
    reports: ReportsOption = REPORTS,
    seed: Annotated[
        int | None, typer.Option("--seed", help="Chooses rows and snapshots; the run's own by default.")
    ] = None,
    only: Annotated[
        str, typer.Option("--only", metavar="PATTERN", help="Plant these defects only, as in 'row-*'.")
    ] = "*",
    all_oracles: Annotated[
        bool,
        typer.Option("--all-oracles", help="Ask every oracle of the run, not only those that must catch it."),
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="List the defects as a Markdown table.")] = False,
) -> None:
    """Plant defects into copies of a VALID run's evidence, and see whether the oracles catch each.

    Needs no Docker. Writes prove.json and prove.md into the run's folder. Ends with 0 when every defect that
    has a place in the run was caught, with 1 when one was missed or undamaged evidence raised an alarm.
    """
    if list_:
        print(markdown(defect_rows(DEFECTS)))
        return
    folder = runs.folder_of(run_name, reports)
    with listener_for(console) as listener:
        listener.phase("planting defects")
        score = proving.prove(folder, seed=seed, only=only, every_oracle=all_oracles, tell=listener.progress)
    proving.save(score, folder)
    console.print(_score(score))
    for alarm in score.false_alarms:
        console.print(f"false alarm of {alarm.oracle}: {escape(alarm.said)}", highlight=False)
    console.print(f"proof: {file_link(folder / proving.MARKDOWN)}", highlight=False, soft_wrap=True)
    console.print(str(score), highlight=False)
    raise typer.Exit(0 if score.holds else 1)


def bundle(
    run_name: RunArgument,
    reports: ReportsOption = REPORTS,
    to: Annotated[
        Path | None, typer.Option("--to", help="The file to write; <run>.tar.gz in --reports by default.")
    ] = None,
    max_mb: Annotated[
        float, typer.Option("--max-mb", help="How large it may be (10⁶ bytes).", min=0.01)
    ] = 20,
) -> None:
    """Pack a run into one file to attach to a ticket: reports, evidence and logs, without secrets."""
    folder = runs.folder_of(run_name, reports)
    file = to or reports / f"{folder.name}.tar.gz"
    if not file.parent.is_dir():
        raise UsageError(f"{file}: there is no folder {file.parent}", todo="make it, or give another --to")
    done = bundling.write(folder, file, max_bytes=int(max_mb * MB))
    for item in done.left_out:
        console.print(
            f"left out: {escape(item.name)} ({item.size_bytes:,} bytes): {item.why}", highlight=False
        )
    for name in done.missing:
        console.print(f"missing in the run: {name}", highlight=False)
    shortened = sum(member.shortened for member in done.members)
    console.print(
        f"bundled {len(done.members)} files, {done.size_bytes / MB:.1f} MB: {shortened} logs shortened, "
        f"{len(done.left_out)} files left out, {done.redacted} secrets redacted: {escape(str(file))}",
        highlight=False,
        soft_wrap=True,
    )


def _comparison(done: Rechecked) -> Table:
    table = Table(
        title=Text(f"{one_line(done.recorded.run)}, judged again"), title_justify="left", box=box.ROUNDED
    )
    for column in ("what", "recorded", "again", ""):
        table.add_column(column, overflow="fold")
    for row in done.comparisons:
        table.add_row(row.oracle, row.recorded, row.again, _agreement(row.agrees))
    for before, after in zip(done.recorded.faults, done.again.faults, strict=True):
        table.add_row(one_line(before.fault), _bite(before), _bite(after), _agreement(before == after))
    table.add_section()
    recorded, again = _outcome(done.recorded), _outcome(done.again)
    table.add_row("run", recorded, again, _agreement(recorded == again))
    return table


def _score(score: Score) -> Table:
    table = Table(
        title=Text(f"defects planted into {one_line(score.run)}, seed {score.seed}"),
        title_justify="left",
        box=box.ROUNDED,
    )
    for column in ("defect, and what is wrong", "expected", "verdict", "caught by"):
        table.add_column(column, overflow="fold")
    for trial in score.trials:
        name, what, expected, verdict, caught_by = proving.cells(trial)
        style = "dim" if trial.verdict is None else "green" if trial.caught else "bold red"
        first = Text.assemble((name, "bold"), "\n", what)
        table.add_row(first, expected, Text(verdict, style=style), Text(caught_by))
    return table


def _differing(done: Rechecked) -> str:
    names = [row.oracle for row in done.comparisons if not row.agrees]
    return f"{', '.join(names)} differ" if names else "the run's own verdict or exit code differs"


def _agreement(agrees: bool) -> Text:
    return Text("same", style="green") if agrees else Text("differs", style="bold red")


def _bite(proof: FaultProof) -> str:
    return "bit" if proof.bit else "no bite"


def _outcome(result: RunResult) -> str:
    return f"{result.verdict.value}, exit code {result.exit_code}"
