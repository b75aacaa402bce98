"""What the acceptance tests share: one way to run a scenario on the real stack."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from running import Accept

from harness import faults, oracles
from harness.acceptance import Accepted, run_scenario
from harness.pipeline import OrdersPipeline, StackOptions
from harness.report.progress import LineListener
from harness.scenario import load


@pytest.fixture
def accept(tmp_path: Path, request: pytest.FixtureRequest) -> Accept:
    """Run a scenario (a built-in name or a file's text); its report goes into the test's folder."""

    def accepted(
        scenario: str, *, before_reconcile: Callable[[OrdersPipeline], None] | None = None
    ) -> Accepted:
        reference = scenario
        if "\n" in scenario:
            file = tmp_path / "scenario.yaml"
            file.write_text(scenario)
            reference = str(file)
        told = io.StringIO()
        console = Console(file=told, width=120)
        with LineListener(console) as listener:
            done = run_scenario(
                load(reference, faults=faults.FAULTS, oracles=oracles.ORACLES),
                options=StackOptions(),
                reports=tmp_path / "reports",
                listener=listener,
                reproduce=f"pytest {request.node.nodeid}",
                before_reconcile=before_reconcile,
            )
        request.node.add_report_section("call", "run", told.getvalue())
        return done

    return accepted
