"""The commands that run scenarios: accept, run, soak."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from harness import acceptance
from harness import soak as soaking
from harness.acceptance import Accepted
from harness.cli.options import (
    REPORTS,
    ImagesOption,
    KeepOption,
    ProfileOption,
    RateOption,
    RegistryOption,
    ReportsOption,
    SeedOption,
    SourceOption,
    StorageOption,
    UiPortOption,
    YesOption,
    console,
    file_link,
    scenario_of,
    stack_options,
)
from harness.pipeline import StackOptions
from harness.profiles import load_profile
from harness.report import console as console_report
from harness.report.progress import listener_for
from harness.report.wording import duration, one_line
from harness.scenario import Scenario, with_overrides
from harness.soak import Chapter

MAIN_SCENARIO = "acceptance"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A scenario as it is to be run, and how to run it again: `command` is what names it."""

    scenario: Scenario
    command: str
    options: StackOptions
    reports: Path

    def reproduce(self) -> str:
        """The command that runs the same again."""
        scenario, options = self.scenario, self.options
        words = ["./run", "harness", *shlex.split(self.command)]
        words += ["--profile", scenario.profile, "--seed", str(scenario.seed)]
        words += ["--rate", str(scenario.workload.rate)] if scenario.workload.rate else []
        words += ["--images", options.images]
        words += ["--registry", options.registry] if options.registry else []
        words += ["--source-image", options.source] if options.source != "mysql" else []
        words += ["--storage-image", options.storage] if options.storage != "minio" else []
        return shlex.join(words)


def accept(
    profile: ProfileOption = None,
    seed: SeedOption = None,
    rate: RateOption = None,
    images: ImagesOption = "auto",
    registry: RegistryOption = "",
    source_image: SourceOption = "mysql",
    storage_image: StorageOption = "minio",
    ui_port: UiPortOption = None,
    reports: ReportsOption = REPORTS,
    keep: KeepOption = False,
    yes: YesOption = False,
) -> None:
    """The main job: the guide's acceptance on both tables, broken three times, reconciled, judged."""
    options = stack_options(images, registry, source_image, storage_image, ui_port, yes)
    scenario = _scenario(MAIN_SCENARIO, profile, seed, rate)
    _show(Plan(scenario=scenario, command="accept", options=options, reports=reports), keep=keep)


def run(
    scenario: Annotated[str, typer.Argument(help="A built-in scenario's name, or the path of a file.")],
    profile: ProfileOption = None,
    seed: SeedOption = None,
    rate: RateOption = None,
    images: ImagesOption = "auto",
    registry: RegistryOption = "",
    source_image: SourceOption = "mysql",
    storage_image: StorageOption = "minio",
    ui_port: UiPortOption = None,
    reports: ReportsOption = REPORTS,
    keep: KeepOption = False,
    yes: YesOption = False,
) -> None:
    """Run one scenario on a stack of its own."""
    options = stack_options(images, registry, source_image, storage_image, ui_port, yes)
    planned = _scenario(scenario, profile, seed, rate)
    command = f"run {shlex.quote(scenario)}"
    _show(Plan(scenario=planned, command=command, options=options, reports=reports), keep=keep)


def soak(
    chapters: Annotated[int, typer.Argument(metavar="N", help="How many runs.", min=1)],
    scenario: Annotated[
        str, typer.Option("--scenario", help="A built-in scenario's name, or the path of a file.")
    ] = MAIN_SCENARIO,
    minutes: Annotated[
        float | None, typer.Option("--minutes", help="No run begins after so many minutes.", min=0)
    ] = None,
    profile: ProfileOption = None,
    seed: SeedOption = None,
    rate: RateOption = None,
    images: ImagesOption = "auto",
    registry: RegistryOption = "",
    source_image: SourceOption = "mysql",
    storage_image: StorageOption = "minio",
    ui_port: UiPortOption = None,
    reports: ReportsOption = REPORTS,
    yes: YesOption = False,
) -> None:
    """Run a scenario N times in a row with the seeds seed, seed+1, …, and write one table of them all.

    It goes on after a run that is not VALID. The exit code is that of the worst run.
    """
    options = stack_options(images, registry, source_image, storage_image, ui_port, yes)
    first = _scenario(scenario, profile, seed, rate)
    _scenario(scenario, profile, first.seed + chapters - 1, rate)  # the last seed must be possible too
    command = f"run {shlex.quote(scenario)}"
    folder = reports / f"soak-{datetime.now(UTC):%Y%m%d-%H%M%S}"

    def chapter(seed: int) -> Accepted:
        console.rule(f"{scenario}, seed {seed}")
        planned = with_overrides(first, seed=seed)
        return _run(Plan(scenario=planned, command=command, options=options, reports=reports), keep=False)

    def tell(done: Chapter) -> None:
        said = (
            f"{done.outcome}  chapter {done.number} of {chapters}, seed {done.seed}, {duration(done.seconds)}"
        )
        where = f"{reports / done.run}/" if done.run else ""
        console.print(escape(one_line(f"{said}  {done.failure}  {where}")), highlight=False, soft_wrap=True)

    again = Plan(scenario=first, command=f"soak {chapters}", options=options, reports=reports).reproduce()
    head = soaking.head_of(
        scenario=first.name,
        profile=first.profile,
        seed=first.seed,
        reproduce=again if scenario == MAIN_SCENARIO else f"{again} --scenario {shlex.quote(scenario)}",
    )
    done = soaking.soak(chapter, head=head, wanted=chapters, folder=folder, minutes=minutes, tell=tell)
    console.print(f"table: {file_link(folder / 'soak.md')}", highlight=False, soft_wrap=True)
    console.print(escape(done.counts), highlight=False, soft_wrap=True)
    raise typer.Exit(done.exit_code)


def _scenario(reference: str, profile: str | None, seed: int | None, rate: int | None) -> Scenario:
    """The scenario as asked for. Raises UsageError before anything is started."""
    scenario = with_overrides(scenario_of(reference), profile=profile, seed=seed, rate=rate)
    load_profile(scenario.profile, run="check")
    return scenario


def _run(plan: Plan, *, keep: bool) -> Accepted:
    with listener_for(console) as listener:
        return acceptance.run_scenario(
            plan.scenario,
            options=plan.options,
            reports=plan.reports,
            listener=listener,
            keep=keep,
            reproduce=plan.reproduce(),
        )


def _show(plan: Plan, *, keep: bool) -> None:
    done = _run(plan, keep=keep)
    if done.kept:
        console.print(f"kept: {done.kept}\n`harness down {done.result.run}` removes it", highlight=False)
    # The report's path stands above the summary, whose last line is the verdict.
    page = done.folder / "report.html"
    if page.is_file():
        console.print(f"report: {file_link(page)}", highlight=False, soft_wrap=True)
    console.print(console_report.summary(done.result, str(done.folder)))
    raise typer.Exit(done.result.exit_code)
