"""The command `list`: what can be named in scenarios and options."""

from __future__ import annotations

from typing import Annotated

import typer

from harness import faults, oracles
from harness.cli.options import scenario_of
from harness.errors import UsageError
from harness.profiles import profile_names
from harness.report.tables import fault_rows, markdown, oracle_rows
from harness.scenario import built_in


def list_(
    what: Annotated[str, typer.Argument(help="scenarios, faults, oracles or profiles")],
) -> None:
    """List what can be named in scenarios and options, as a Markdown table."""
    rows = {
        "faults": fault_rows(faults.FAULTS),
        "oracles": oracle_rows(oracles.ORACLES),
        "scenarios": [
            ("scenario", "what it does"),
            *((name, scenario_of(name).description) for name in built_in()),
        ],
        "profiles": [("profile",), *((name,) for name in profile_names())],
    }
    if what not in rows:
        raise UsageError(f"can't list {what!r}", todo=f"one of: {', '.join(rows)}")
    print(markdown(rows[what]))
