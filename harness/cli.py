"""The command line: parse, call, print. Exit codes: 0 valid, 1 invalid, 2 unknown, 3 harness failed."""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer.exceptions import Abort, TyperException

from harness import acceptance, faults, oracles
from harness.errors import HarnessError, UsageError
from harness.model import HARNESS_FAILED
from harness.pipeline import OrdersPipeline, StackOptions
from harness.profiles import load_profile, profile_names
from harness.report import console as console_report
from harness.report.progress import listener_for
from harness.report.tables import fault_rows, markdown, oracle_rows
from harness.scenario import Scenario, built_in, load, with_overrides
from harness.stacks import engine
from harness.stacks.compose import ComposeStack, runs_present
from harness.stacks.images import Mode, Source, Storage

MAIN_SCENARIO = "kill-taskmanager"
EPILOG = "Exit codes: 0 valid, 1 invalid, 2 unknown, 3 the harness itself failed."

app = typer.Typer(
    help="Break a real Flink + Paimon pipeline on purpose and say, with evidence, whether exactly-once held.",
    epilog=EPILOG,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
console = Console(stderr=False)

ProfileOption = Annotated[
    str | None, typer.Option("--profile", help="fast (for CI) or guide (the guide's own values).")
]
SeedOption = Annotated[int | None, typer.Option("--seed", help="The one seed of all randomness.")]
RateOption = Annotated[int | None, typer.Option("--rate", help="Source row changes per second (1 to 2000).")]
ImagesOption = Annotated[
    Mode, typer.Option("--images", help="auto: pull where a registry answers, else build; pull; build.")
]
RegistryOption = Annotated[
    str, typer.Option("--registry", help="Prefix of the images to pull, such as 127.0.0.1:5000/.")
]
SourceOption = Annotated[Source, typer.Option("--source-image", help="mysql or mariadb.")]
StorageOption = Annotated[Storage, typer.Option("--storage-image", help="minio or seaweedfs.")]
UiPortOption = Annotated[
    int | None,
    typer.Option("--ui-port", help="Flink's web page at this port of 127.0.0.1.", min=1, max=65535),
]
ReportsOption = Annotated[Path, typer.Option("--reports", help="Where run folders go.")]
KeepOption = Annotated[
    bool, typer.Option("--keep", help="Leave the stack up at the end; `harness down` removes it.")
]
YesOption = Annotated[
    bool, typer.Option("--yes", "-y", help="Install and start Docker Engine without asking.")
]


@app.command(epilog=EPILOG)
def accept(
    profile: ProfileOption = None,
    seed: SeedOption = None,
    rate: RateOption = None,
    images: ImagesOption = "auto",
    registry: RegistryOption = "",
    source_image: SourceOption = "mysql",
    storage_image: StorageOption = "minio",
    ui_port: UiPortOption = None,
    reports: ReportsOption = Path("reports"),
    keep: KeepOption = False,
    yes: YesOption = False,
) -> None:
    """The main job: bring up the real pipeline, kill a TaskManager, reconcile, give a verdict."""
    options = _options(images, registry, source_image, storage_image, ui_port, yes)
    _run(MAIN_SCENARIO, "accept", options, profile=profile, seed=seed, rate=rate, reports=reports, keep=keep)


@app.command(epilog=EPILOG)
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
    reports: ReportsOption = Path("reports"),
    keep: KeepOption = False,
    yes: YesOption = False,
) -> None:
    """Run one scenario on a stack of its own."""
    options = _options(images, registry, source_image, storage_image, ui_port, yes)
    _run(
        scenario,
        f"run {scenario}",
        options,
        profile=profile,
        seed=seed,
        rate=rate,
        reports=reports,
        keep=keep,
    )


@app.command()
def up(
    profile: ProfileOption = None,
    images: ImagesOption = "auto",
    registry: RegistryOption = "",
    source_image: SourceOption = "mysql",
    storage_image: StorageOption = "minio",
    ui_port: UiPortOption = None,
    yes: YesOption = False,
) -> None:
    """Bring up a stack with the job and its tables on it, and leave it; `harness down` removes it."""
    scenario = with_overrides(_scenario("clean"), profile=profile)
    run_name = acceptance.new_run("up")
    options = _options(images, registry, source_image, storage_image, ui_port, yes)
    pipeline = OrdersPipeline(
        run=run_name, scenario=scenario, profile=load_profile(scenario.profile, run=run_name), options=options
    )
    with listener_for(console) as listener:
        try:
            listener.phase("preflight")
            pipeline.preflight(lambda text: listener.event("preflight", text))
            listener.phase("stack up")
            pipeline.stack.up()
            listener.phase("tables and job")
            pipeline.prepare()
            pipeline.submit()
        except BaseException:  # also Ctrl-C: nothing is left running
            pipeline.discard()
            raise
    console.print(f"run {run_name} is up\n{pipeline.kept()}\n{pipeline.credentials()}", highlight=False)


@app.command()
def down(
    run_name: Annotated[
        str, typer.Argument(metavar="[RUN]", help="A run; without it, every run that is there.")
    ] = "",
    stop_engine: Annotated[
        bool, typer.Option(help="Also stop a Docker Engine that the harness started.")
    ] = False,
) -> None:
    """Remove stacks: also those of a harness that was killed."""
    for stack in _stacks(run_name):
        stack.down()
        console.print(f"removed {stack.run}", highlight=False)
    if stop_engine:
        console.print("Docker Engine stopped" if engine.stop_ours() else "no Docker Engine of ours runs")


@app.command()
def heal(
    run_name: Annotated[
        str, typer.Argument(metavar="[RUN]", help="A run; without it, every run that is there.")
    ] = "",
) -> None:
    """Undo every fault in stacks that are up: also those of a harness that was killed."""
    for stack in _stacks(run_name):
        for fault, kind in faults.FAULTS.items():
            kind.make().heal(stack)
            console.print(f"{stack.run}: {fault} healed", highlight=False)


@app.command()
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


@app.command(name="list")
def list_(
    what: Annotated[str, typer.Argument(help="scenarios, faults, oracles or profiles")],
) -> None:
    """List what can be named in scenarios and options, as a Markdown table."""
    rows = {
        "faults": fault_rows(faults.FAULTS),
        "oracles": oracle_rows(oracles.ORACLES),
        "scenarios": [
            ("scenario", "what it does"),
            *((name, _scenario(name).description) for name in built_in()),
        ],
        "profiles": [("profile",), *((name,) for name in profile_names())],
    }
    if what not in rows:
        raise UsageError(f"can't list {what!r}", todo=f"one of: {', '.join(rows)}")
    print(markdown(rows[what]))


def main(arguments: Sequence[str] | None = None, *, program: typer.Typer = app) -> NoReturn:
    """The entry point: every way out of the program has one of the four exit codes.

    `arguments` are the process's own by default; another `program` is for tests of the ways out.
    """
    for stop in (signal.SIGINT, signal.SIGTERM):  # a CI job that is stopped cleans up, a background job too
        signal.signal(stop, signal.default_int_handler)
    sys.exit(_exit_code(arguments, program))


def _exit_code(arguments: Sequence[str] | None, program: typer.Typer) -> int:
    try:
        # Not standalone, typer hands back the code of an Exit, and its own 130 for Ctrl-C.
        code = program(args=arguments, standalone_mode=False) or 0
    except Abort:
        return _failed("stopped", "")
    except TyperException as error:
        return _failed(error.format_message() or "no command was given", "--help says what there is")
    except HarnessError as error:
        return _failed(error.what, error.todo)
    except Exception as error:  # noqa: BLE001 - Python's own code for a crash is 1, which would say INVALID
        said = "".join(traceback.format_exception(error))
        return _failed(f"the harness crashed:\n{said}", "this is a bug of the harness, please report it")
    return int(code) if code in (0, 1, 2, HARNESS_FAILED) else _failed("stopped", "")


def _failed(what: str, todo: str) -> int:
    error = Console(stderr=True, highlight=False)
    error.print(f"[bold red]error[/]: {escape(what)}", soft_wrap=True)
    if todo:
        error.print(f"  → {escape(todo)}", soft_wrap=True)
    return HARNESS_FAILED


def _run(
    reference: str,
    command: str,
    options: StackOptions,
    *,
    profile: str | None,
    seed: int | None,
    rate: int | None,
    reports: Path,
    keep: bool,
) -> None:
    scenario = with_overrides(_scenario(reference), profile=profile, seed=seed, rate=rate)
    load_profile(scenario.profile, run="check")
    reproduce = (
        f"./run harness {command} --profile {scenario.profile} --seed {scenario.seed} "
        + (f"--rate {scenario.workload.rate} " if scenario.workload.rate else "")
        + f"--images {options.images}"
    )
    with listener_for(console) as listener:
        done = acceptance.run_scenario(
            scenario, options=options, reports=reports, listener=listener, keep=keep, reproduce=reproduce
        )
    console.print(console_report.summary(done.result, str(done.folder)))
    if done.kept:
        console.print(f"kept: {done.kept}\n`harness down {done.result.run}` removes it", highlight=False)
    raise typer.Exit(done.result.exit_code)


def _scenario(reference: str) -> Scenario:
    return load(reference, faults=faults.FAULTS, oracles=oracles.ORACLES)


def _options(
    images: Mode, registry: str, source: Source, storage: Storage, ui_port: int | None, yes: bool
) -> StackOptions:
    may_ask = console.is_terminal and sys.stdin.isatty() and not yes
    return StackOptions(
        images=images,
        registry=registry,
        source=source,
        storage=storage,
        ui_port=ui_port,
        ask=(lambda question: typer.confirm(question, default=True)) if may_ask else None,
    )


def _stacks(name: str) -> tuple[ComposeStack, ...]:
    """The stack of one run, or of every run that is there. Raises UsageError when there is no such run."""
    client = engine.connect(may_install=False, ask=None, tell=lambda _: None)
    present = runs_present(client)
    if name and name not in present:
        raise UsageError(f"there is no run {name!r}", todo=f"there are: {', '.join(present) or 'none'}")
    return tuple(ComposeStack(client, run) for run in ((name,) if name else present))


if __name__ == "__main__":
    main()
