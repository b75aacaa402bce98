"""The commands for stacks without a run: bring one up, look at it, heal it, remove it."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from harness import acceptance, faults
from harness.cli.options import (
    ImagesOption,
    ProfileOption,
    RegistryOption,
    SourceOption,
    StorageOption,
    UiPortOption,
    YesOption,
    console,
    scenario_of,
    stack_options,
)
from harness.errors import UsageError
from harness.pipeline import ComposePipeline
from harness.profiles import load_profile
from harness.report.progress import listener_for
from harness.scenario import with_overrides
from harness.stacks import engine
from harness.stacks.compose import ComposeStack, runs_present


def up(
    profile: ProfileOption = None,
    images: ImagesOption = "auto",
    registry: RegistryOption = "",
    source_image: SourceOption = "mysql",
    storage_image: StorageOption = "minio",
    ui_port: UiPortOption = None,
    yes: YesOption = False,
) -> None:
    """Bring up a stack with the jobs and their tables on it, and leave it; `harness down` removes it."""
    scenario = with_overrides(scenario_of("clean"), profile=profile)
    run_name = acceptance.new_run("up")
    options = stack_options(images, registry, source_image, storage_image, ui_port, yes)
    pipeline = ComposePipeline(
        run=run_name, scenario=scenario, profile=load_profile(scenario.profile, run=run_name), options=options
    )
    with listener_for(console) as listener:
        try:
            listener.phase("preflight")
            pipeline.preflight(lambda text: listener.event("preflight", text))
            listener.phase("stack up")
            pipeline.stack.up()
            listener.phase("tables and jobs")
            pipeline.prepare()
            pipeline.submit()
        except BaseException:  # also Ctrl-C: nothing is left running
            pipeline.discard()
            raise
    console.print(f"{pipeline.kept()}\n{pipeline.credentials()}\nrun {run_name} is up", highlight=False)


def down(
    run_name: Annotated[
        str, typer.Argument(metavar="[RUN]", help="A run; without it, every run that is there.")
    ] = "",
    stop_engine: Annotated[
        bool, typer.Option(help="Also stop a Docker Engine that the harness started.")
    ] = False,
) -> None:
    """Remove stacks: also those of a harness that was killed."""
    stacks = _stacks(run_name)
    for stack in stacks:
        stack.down()
        console.print(f"removed {stack.run}", highlight=False)
    if not stacks:
        console.print("no stack is there")
    if stop_engine:
        console.print("Docker Engine stopped" if engine.stop_ours() else "no Docker Engine of ours runs")


def heal(
    run_name: Annotated[
        str, typer.Argument(metavar="[RUN]", help="A run; without it, every run that is there.")
    ] = "",
) -> None:
    """Undo every fault in stacks that are up: also those of a harness that was killed."""
    stacks = _stacks(run_name)
    for stack in stacks:
        for fault, kind in faults.FAULTS.items():
            kind.make().heal(stack)
            console.print(f"{stack.run}: {fault} healed", highlight=False)
    if not stacks:
        console.print("no stack is there")


def status() -> None:
    """List stacks that are there, with their nodes."""
    stacks = _stacks("")
    for stack in stacks:
        table = Table(box=None, title=f"run {stack.run}", title_justify="left", title_style="bold")
        for column in ("node", "role", "state", "restarts", "address"):
            table.add_column(column)
        for row in stack.overview():
            table.add_row(*row)
        console.print(table)
    if not stacks:
        console.print("no stack is there")


def _stacks(name: str) -> tuple[ComposeStack, ...]:
    """The stack of one run, or of every run that is there. Raises UsageError when there is no such run."""
    client = engine.connect(may_install=False, ask=None, tell=lambda _: None)
    present = runs_present(client)
    if name and name not in present:
        raise UsageError(f"there is no run {name!r}", todo=f"there are: {', '.join(present) or 'none'}")
    return tuple(ComposeStack(client, run) for run in ((name,) if name else present))
