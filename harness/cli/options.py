"""What several commands have in common: their options, the scenario they name, and where they print."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from harness import faults, oracles
from harness.pipeline import StackOptions
from harness.scenario import Scenario, load
from harness.stacks.images import Mode, Source, Storage

EPILOG = "Exit codes: 0 valid, 1 invalid, 2 unknown, 3 the harness itself failed."
REPORTS = Path("reports")

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
RunArgument = Annotated[
    str,
    typer.Argument(metavar="RUN", help="A run's name below --reports, the path of its folder, or `latest`."),
]


def scenario_of(reference: str) -> Scenario:
    """The scenario of a built-in name or a file's path. Raises ScenarioError."""
    return load(reference, faults=faults.FAULTS, oracles=oracles.ORACLES)


def stack_options(
    images: Mode, registry: str, source: Source, storage: Storage, ui_port: int | None, yes: bool
) -> StackOptions:
    """How the stack is to be made; at a terminal a person is asked before anything is installed."""
    may_ask = console.is_terminal and sys.stdin.isatty() and not yes
    return StackOptions(
        images=images,
        registry=registry,
        source=source,
        storage=storage,
        ui_port=ui_port,
        ask=(lambda question: typer.confirm(question, default=True)) if may_ask else None,
    )


def file_link(path: Path) -> str:
    """A path as a link that a terminal opens."""
    return path.resolve().as_uri()
