"""The command line: parse, call, print. Exit codes: 0 valid, 1 invalid, 2 unknown, 3 harness failed."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import NoReturn

import typer

from harness.cli import ended_runs, exits, lists, new_runs, stacks
from harness.cli.options import EPILOG

app = typer.Typer(
    help="Break a real Flink + Paimon pipeline on purpose and say, with evidence, whether exactly-once held.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command(epilog=EPILOG)(new_runs.accept)
app.command(epilog=EPILOG)(new_runs.run)
app.command(epilog=EPILOG)(new_runs.soak)
app.command(epilog=EPILOG)(ended_runs.report)
app.command(epilog=EPILOG)(ended_runs.recheck)
app.command(epilog="Exit codes: 0 all caught, 1 missed or a false alarm, 3 the harness itself failed.")(
    ended_runs.prove
)
app.command()(ended_runs.bundle)
app.command()(stacks.up)
app.command()(stacks.down)
app.command()(stacks.heal)
app.command()(stacks.status)
app.command(name="list")(lists.list_)


def main(arguments: Sequence[str] | None = None, *, program: typer.Typer = app) -> NoReturn:
    """The entry point: every way out of the program has one of the four exit codes.

    `arguments` are the process's own by default; another `program` is for tests of the ways out.
    """
    exits.listen_to_stops()
    sys.exit(exits.code_of(program, arguments))
