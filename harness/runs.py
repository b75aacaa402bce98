"""Runs that are over: where a run's folder is, and what its result says of itself."""

from __future__ import annotations

import difflib
from pathlib import Path

from harness.errors import UsageError
from harness.model import HARNESS_FAILED, RunResult, Verdict
from harness.report import result_json
from harness.report.wording import run_verdict

LATEST = "latest"


def folder_of(reference: str, reports: Path) -> Path:
    """The folder of a run: `latest`, a run's name below `reports`, or the folder itself by its path.

    Raises UsageError that names the nearest run when there is none.
    """
    for place in (reports / reference, Path(reference)):
        if reference and place.is_dir() and place.resolve() != reports.resolve():
            return place.resolve()  # `latest` would lead elsewhere later
    names = run_names(reports)
    near = difflib.get_close_matches(reference, names, n=1)
    meant = f", did you mean {near[0]!r}" if near else ""
    raise UsageError(
        f"no run {reference!r} in {reports}{meant}",
        todo=f"the newest there: {', '.join(names[-3:])}" if names else "nothing has run there yet",
    )


def run_names(reports: Path) -> tuple[str, ...]:
    """The runs in a folder of reports that have a result, by name and so by time."""
    found = sorted(path.parent for path in reports.glob(f"*/{result_json.NAME}"))
    return tuple(folder.name for folder in found if not folder.is_symlink())


def exit_code(result: RunResult) -> int:
    """The exit code that a result stands for: its own, and never 0 when any part of it is not VALID."""
    if result.failure or result.exit_code == HARNESS_FAILED:
        return HARNESS_FAILED
    verdict = run_verdict(result)
    if verdict is not Verdict.VALID:
        return verdict.exit_code
    return result.exit_code if result.exit_code in (0, 1, 2) else HARNESS_FAILED


def was_interrupted(result: RunResult) -> bool:
    """Whether somebody stopped the run, as with Ctrl-C."""
    return any(event.kind == "interrupted" for event in result.events)
