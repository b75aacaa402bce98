"""Run a scenario on a stack of its own, from its name to its report: what the CLI and tests call."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from harness import faults, results
from harness.errors import HarnessError
from harness.history import History
from harness.model import Component, RunResult, Setting
from harness.pipeline import ComposePipeline, StackOptions
from harness.ports import Listener
from harness.profiles import load_profile
from harness.runner import Run
from harness.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class Accepted:
    """A run that is over: its result, its folder, and how to reach the stack if it was kept."""

    result: RunResult
    folder: Path
    kept: str


def run_scenario(
    scenario: Scenario,
    *,
    options: StackOptions,
    reports: Path,
    listener: Listener,
    keep: bool = False,
    reproduce: str,
    before_reconcile: Callable[[ComposePipeline, int], None] | None = None,
) -> Accepted:
    """Run a scenario and write its reports into a new folder under `reports`.

    `before_reconcile` is called at every fence, with its number, between its visibility and its reading.
    Returns whatever the verdict is, and also when the harness itself failed (exit code 3 in the
    result). Raises UsageError only, before anything was started.
    """
    run = new_run(scenario.name)
    profile = load_profile(scenario.profile, run=run).with_settings(
        flink=scenario.flink, cluster=scenario.cluster, catalog=scenario.catalog, why="the scenario's"
    )
    broken = [faults.make(step.fault, step.parameters) for step in scenario.faults]
    pipeline = ComposePipeline(run=run, scenario=scenario, profile=profile, options=options)
    history = History(listener)
    folder = reports / run
    outcome = Run(
        scenario=scenario,
        profile=profile,
        pipeline=pipeline,
        faults=broken,
        folder=folder,
        history=history,
        before_reconcile=(lambda number: before_reconcile(pipeline, number)) if before_reconcile else None,
    ).execute(keep=keep)
    settings: tuple[Setting, ...] = pipeline.settings()
    components: tuple[Component, ...] = pipeline.components()
    result = results.result_of(
        outcome,
        run=run,
        scenario=scenario,
        profile=profile,
        components=components,
        settings=settings,
        history=history,
        logs=sorted(str(log.relative_to(folder)) for log in (folder / "logs").glob("*.log")),
        reproduce=reproduce,
    )
    results.save(result, folder)
    return Accepted(result=result, folder=folder, kept=_kept(pipeline) if keep else "")


def new_run(name: str) -> str:
    """A name for a run that no other has: UTC time, scenario, four random hex digits."""
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{name}-{secrets.token_hex(2)}"


def _kept(pipeline: ComposePipeline) -> str:
    try:
        return pipeline.kept()
    except HarnessError:
        return ""  # the stack did not get that far
