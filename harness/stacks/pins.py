"""What the images are made of: the pins in compose/images/artifacts.toml, and where files are kept."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass
from pathlib import Path

import platformdirs

from harness import resources
from harness.errors import ArtifactError

KINDS = ("maven", "npm", "go", "pypi")


@dataclass(frozen=True, kw_only=True)
class Pin:
    """One component from a package registry; the fields are explained in artifacts.toml."""

    name: str
    kind: str
    coordinate: str
    image: str
    destination: str
    checksum: str = ""
    take: str = ""
    leave_out: tuple[str, ...] = ()

    @property
    def requirements(self) -> Path:
        """For pypi: the file that locks the coordinate and all it depends on."""
        return images_folder() / self.image / "requirements.txt"

    @property
    def origin(self) -> str:
        """The registry and the coordinate, as a report shows them."""
        return f"{self.kind} {self.coordinate}"


@dataclass(frozen=True, kw_only=True)
class Pins:
    """The whole of artifacts.toml."""

    bases: dict[str, str]
    debian_suite: str
    components: tuple[Pin, ...]

    def of_image(self, image: str) -> tuple[Pin, ...]:
        """The components that go into the build context of an image folder."""
        return tuple(pin for pin in self.components if pin.image == image)


def images_folder() -> Path:
    """The folder of image folders."""
    return resources.folder("compose") / "images"


def cache_folder() -> Path:
    """Where components and records are kept: PAIMON_HARNESS_CACHE, else the user's cache folder."""
    chosen = os.environ.get("PAIMON_HARNESS_CACHE", "")
    folder = Path(chosen) if chosen else Path(platformdirs.user_cache_dir("paimon-harness"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder.resolve()


def load_pins(file: Path) -> Pins:
    """Read artifacts.toml. Raises ArtifactError that names the entry when something in it can't be."""
    try:
        document = tomllib.loads(file.read_text())
        entries = document["component"]
        return Pins(
            bases={str(kind): str(reference) for kind, reference in document["bases"].items()},
            debian_suite=str(document["debian"]["suite"]),
            components=tuple(_pin(entry, file) for entry in entries),
        )
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise ArtifactError(f"{file}: cannot be read: {error!r}", todo="restore the file from git") from error


def _pin(entry: dict[str, object], file: Path) -> Pin:
    where = f"{file}: component {entry.get('name', '?')!r}"
    fields = {**entry, "leave_out": tuple(entry.get("leave_out", ()))}  # type: ignore[arg-type]
    try:
        pin = Pin(**fields)  # type: ignore[arg-type]
    except TypeError as error:
        raise ArtifactError(f"{where}: {error}", todo="see the head of the file for the fields") from None
    if pin.kind not in KINDS:
        raise ArtifactError(f"{where}: expected a kind of {', '.join(KINDS)}, actual {pin.kind!r}")
    if pin.kind != "pypi" and not pin.checksum:
        raise ArtifactError(f"{where}: expected a checksum, actual none")
    return pin
