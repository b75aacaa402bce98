"""Build contexts: what an image folder and its components come to as one archive, and their key."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import IO

from harness.stacks.artifacts import Artifacts, files_below, pin_text
from harness.stacks.pins import Pin


def context_key(folder: Path, pins: Sequence[Pin], base: str) -> str:
    """12 hex digits over everything that decides the image: the folder's files, the pins, the base's id."""
    total = hashlib.sha256(f"{base}\n".encode())
    for file in files_below(folder):
        total.update(f"{file.relative_to(folder)} {file.stat().st_size}\n".encode())
        total.update(file.read_bytes())
    for pin in pins:
        total.update(pin_text(pin).encode())
    return total.hexdigest()[:12]


def write_context(out: IO[bytes], folder: Path, pins: Sequence[Pin], artifacts: Artifacts) -> None:
    """Write the build context as a tar: the folder's files, and each component at its destination.

    Modes are set here (read for all, run for programs), so that no image layer has to change them.
    """
    with tarfile.open(fileobj=out, mode="w") as archive:
        for file in files_below(folder):
            _add(archive, file, str(file.relative_to(folder)))
        for pin in pins:
            component = artifacts.fetch(pin)
            if pin.kind == "npm":
                _add_from_package(archive, component, f"package/{pin.take}/", pin.destination)
            elif component.is_dir():
                for file in files_below(component):
                    inside = str(file.relative_to(component))
                    if not any(fnmatch(inside, pattern) for pattern in pin.leave_out):
                        _add(archive, file, f"{pin.destination}/{inside}")
            else:
                single = pin.kind == "go"
                _add(archive, component, pin.destination if single else f"{pin.destination}/{component.name}")


def _add(archive: tarfile.TarFile, file: Path, name: str) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = file.stat().st_size
    entry.mode = 0o755 if file.stat().st_mode & 0o100 or file.suffix == ".sh" else 0o644
    with file.open("rb") as content:
        archive.addfile(entry, content)


def _add_from_package(archive: tarfile.TarFile, package: Path, prefix: str, destination: str) -> None:
    with tarfile.open(package) as packed:
        for member in packed:
            if member.isfile() and member.name.startswith(prefix):
                entry = tarfile.TarInfo(f"{destination}/{member.name.removeprefix(prefix)}")
                entry.size = member.size
                entry.mode = 0o755 if member.mode & 0o100 else 0o644
                archive.addfile(entry, packed.extractfile(member) or io.BytesIO())
