"""Builds images with the engine's classic builder, each once: its tag is a digest of what it is made of."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import docker
from docker.errors import APIError, DockerException, ImageNotFound

from harness import shell
from harness.errors import HarnessError, ImageError
from harness.stacks.artifacts import Artifacts
from harness.stacks.contexts import context_key, write_context
from harness.stacks.engine import install
from harness.stacks.pins import Pins

REPOSITORY = "paimon-harness"

DEBIAN = "debian"
"""The image that the stand-in bases stand on; made by debootstrap, not from a folder."""

DOCUMENTS = ("/usr/share/doc/*", "/usr/share/man/*/*", "/usr/share/locale/*")
"""Not wanted in images. The folders man/man1 … stay: Java's installation makes links in them."""

LEFT_OUT = ("/var/cache/apt/*", "/var/lib/apt/lists/*", *DOCUMENTS)


class Builder(Protocol):
    """Finds and builds images by the name of their folder."""

    def find(self, name: str, base: str) -> str | None:
        """The tag of the image if it is there already and is what it would be if built now."""
        ...

    def build(self, name: str, base: str) -> str:
        """The tag of the image; built if it is not there. Raises ImageError or ArtifactError."""
        ...


class EngineBuilder:
    """The Builder of a Docker Engine. `base` is a tag or id; for DEBIAN it is empty."""

    def __init__(
        self,
        client: docker.DockerClient,
        *,
        folder: Path,
        pins: Pins,
        artifacts: Artifacts,
        tell: Callable[[str], None],
    ) -> None:
        self._client = client
        self._folder = folder
        self._pins = pins
        self._artifacts = artifacts
        self._tell = tell

    def find(self, name: str, base: str) -> str | None:
        tag = self._tag(name, base)
        try:
            self._client.images.get(tag)
        except ImageNotFound:
            return None
        return tag

    def build(self, name: str, base: str) -> str:
        found = self.find(name, base)
        if found:
            return found
        tag = self._tag(name, base)
        try:
            if name == DEBIAN:
                self._bootstrap(tag)
            else:
                self._build(name, base, tag)
        except DockerException as error:
            raise ImageError(f"image {tag}: {error}", todo="see the engine's log") from error
        return tag

    def _tag(self, name: str, base: str) -> str:
        if name == DEBIAN:
            recipe = f"{self._pins.debian_suite} minbase {LEFT_OUT}"
            return f"{REPOSITORY}/{DEBIAN}:{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"
        identity = str(self._client.images.get(base).id)
        key = context_key(self._folder / name, self._pins.of_image(name), identity)
        return f"{REPOSITORY}/{name}:{key}"

    def _bootstrap(self, tag: str) -> None:
        if os.geteuid() != 0:
            raise ImageError(
                "debootstrap needs root: the base image cannot be built as this user",
                todo="run as root, or use --images pull with a registry that answers",
            )
        if shutil.which("debootstrap") is None:
            self._tell("installing debootstrap")
            install(["debootstrap"])
        self._tell(f"making the base image: Debian {self._pins.debian_suite}")
        with tempfile.TemporaryDirectory(prefix="paimon-harness-", ignore_cleanup_errors=True) as work:
            root, archive = Path(work) / "root", Path(work) / "root.tar"
            try:
                shell.run(
                    ["debootstrap", "--variant=minbase", self._pins.debian_suite, str(root)], timeout_s=600
                )
                (root / "etc/dpkg/dpkg.cfg.d/no-documents").write_text(
                    "".join(f"path-exclude={path}\n" for path in DOCUMENTS)
                )
                excludes = [f"--exclude=.{path}" for path in LEFT_OUT]
                shell.run(["tar", "-C", str(root), *excludes, "-cf", str(archive), "."], timeout_s=120)
            except HarnessError as error:
                raise ImageError(f"the Debian base could not be made: {error}") from error
            repository, version = tag.split(":")
            self._client.api.import_image_from_file(str(archive), repository=repository, tag=version)

    def _build(self, name: str, base: str, tag: str) -> None:
        with tempfile.TemporaryFile() as context:
            write_context(context, self._folder / name, self._pins.of_image(name), self._artifacts)
            context.seek(0)
            self._tell(f"building {name}")
            said: deque[str] = deque(maxlen=20)
            try:
                lines = self._client.api.build(
                    fileobj=context,
                    custom_context=True,
                    tag=tag,
                    buildargs={"BASE": base},
                    rm=True,
                    forcerm=True,
                    decode=True,
                    timeout=600,  # between two lines; apt is silent for long on a busy machine
                )
                failure = ""
                for line in lines:  # to its end, else the connection stays open
                    failure = failure or str(line.get("error", ""))
                    said.append(str(line.get("stream", "")))
            except APIError as error:
                raise ImageError(f"image {name} was not built: {error}\n{_last(said)}") from error
            if failure:
                raise ImageError(f"image {name} was not built: {failure}\n{_last(said)}")


def _last(said: deque[str]) -> str:
    return "".join(said).rstrip()
