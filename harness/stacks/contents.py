"""What is in an image of the stack: the version of each program, as it says itself, and its origin."""

from __future__ import annotations

import json
import re
from pathlib import Path

import docker

from harness.errors import ImageError
from harness.model import Component
from harness.stacks.bases import KINDS, ask
from harness.stacks.pins import Pin, Pins

JAVA = r'version "([^"]+)"'


class Contents:
    """Asks each image once and keeps the answer in `folder` under the image's id, which names its content."""

    def __init__(self, client: docker.DockerClient, folder: Path, pins: Pins) -> None:
        self._client = client
        self._folder = folder
        self._pins = pins

    def components(self, image: str, kind: str, origin: str) -> tuple[Component, ...]:
        """The components of an image; `origin` is that of its base. Raises ImageError."""
        said = self._said(image, kind)
        return (
            *self._program(said, kind, image, origin),
            *jars(said, self._pins.components, base_origin=origin),
        )

    def _said(self, image: str, kind: str) -> str:
        identity = str(self._client.images.get(image).id).removeprefix("sha256:")
        file = self._folder / f"{identity}-{kind}.json"
        if file.is_file():
            return str(json.loads(file.read_text()))
        said = ask(self._client, image, KINDS[kind].command)
        self._folder.mkdir(parents=True, exist_ok=True)
        aside = file.with_suffix(".new")
        aside.write_text(json.dumps(said))
        aside.replace(file)
        return said

    def _program(self, said: str, kind: str, image: str, origin: str) -> tuple[Component, ...]:
        wanted = KINDS[kind]
        version = re.search(wanted.version, said)
        if version is None:
            raise ImageError(
                f"{image}: expected {wanted.program} {wanted.expected}, actual {said.strip()[:300]!r}"
            )
        program = Component(name=wanted.program, version=version.group(1), origin=origin)
        java = re.search(JAVA, said) if kind == "flink" else None
        if java is None:
            return (program,)
        of_java = origin if origin.startswith("pulled") else f"built from Debian {self._pins.debian_suite}"
        return (program, Component(name="Java", version=java.group(1), origin=of_java))


def jars(listing: str, pins: tuple[Pin, ...], *, base_origin: str) -> tuple[Component, ...]:
    """The pinned jars that a listing of folders names, with the version in the file's name.

    What belongs to the base comes from where the base does, unless that was built with the pinned jar.
    """
    found = []
    for pin in pins:
        if pin.kind == "maven":
            artifact = pin.coordinate.split(":")[1]
            jar = re.search(rf"^{re.escape(artifact)}-(\d\S*)\.jar$", listing, re.MULTILINE)
            if jar:
                of_pulled = pin.image.endswith("-base") and base_origin.startswith("pulled")
                origin = base_origin if of_pulled else pin.origin
                found.append(Component(name=pin.name, version=jar.group(1), origin=origin))
    return tuple(found)
