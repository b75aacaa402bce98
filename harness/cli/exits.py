"""The ways out of the program: each is one of the four exit codes, with one message that says why."""

from __future__ import annotations

import signal
import traceback
from collections.abc import Sequence

import typer
from rich.console import Console
from rich.markup import escape
from typer.exceptions import Abort, TyperException

from harness.errors import HarnessError
from harness.model import HARNESS_FAILED


def listen_to_stops() -> None:
    """Take a SIGTERM like Ctrl-C: a CI job that is stopped cleans up, a background job too."""
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.default_int_handler)


def code_of(program: typer.Typer, arguments: Sequence[str] | None) -> int:
    """Run the program and return its exit code; whatever it raises is said on stderr."""
    try:
        # Not standalone, typer hands back the code of an Exit, and its own 130 for Ctrl-C.
        code = program(args=arguments, standalone_mode=False) or 0
    except Abort:
        return failed("stopped", "")
    except TyperException as error:
        return failed(error.format_message() or "no command was given", "--help says what there is")
    except HarnessError as error:
        return failed(error.what, error.todo)
    except Exception as error:  # noqa: BLE001 - Python's own code for a crash is 1, which would say INVALID
        said = "".join(traceback.format_exception(error))
        return failed(f"the harness crashed:\n{said}", "this is a bug of the harness, please report it")
    return int(code) if code in (0, 1, 2, HARNESS_FAILED) else failed("stopped", "")


def failed(what: str, todo: str) -> int:
    """Say on stderr what went wrong and what to do; returns the exit code for that."""
    error = Console(stderr=True, highlight=False)
    error.print(f"[bold red]error[/]: {escape(what)}", soft_wrap=True)
    if todo:
        error.print(f"  → {escape(todo)}", soft_wrap=True)
    return HARNESS_FAILED
