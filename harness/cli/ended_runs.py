"""The commands for runs that are over: report, recheck, bundle. None of them needs an engine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from harness import bundle as bundling
from harness import recheck as rechecking
from harness import results, runs
from harness.cli.options import REPORTS, ReportsOption, RunArgument, console, file_link
from harness.errors import UsageError
from harness.model import FaultProof, RunResult
from harness.recheck import Rechecked
from harness.report import console as console_report
from harness.report import result_json
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


def _differing(done: Rechecked) -> str:
    names = [row.oracle for row in done.comparisons if not row.agrees]
    return f"{', '.join(names)} differ" if names else "the run's own verdict or exit code differs"


def _agreement(agrees: bool) -> Text:
    return Text("same", style="green") if agrees else Text("differs", style="bold red")


def _bite(proof: FaultProof) -> str:
    return "bit" if proof.bit else "no bite"


def _outcome(result: RunResult) -> str:
    return f"{result.verdict.value}, exit code {result.exit_code}"
