"""Provides the images of a stack: from pulled official bases, or from bases built of package registries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, as_completed
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeVar

import docker

from harness.errors import HarnessError, ImageError, UsageError
from harness.model import Component
from harness.stacks.artifacts import Artifacts
from harness.stacks.bases import KINDS, verify_base
from harness.stacks.building import DEBIAN, Builder, EngineBuilder
from harness.stacks.contents import Contents
from harness.stacks.engine import only_one
from harness.stacks.fetching import end_go
from harness.stacks.pins import Pins, cache_folder, images_folder, load_pins
from harness.stacks.pulling import EngineRegistry, Registry

Mode = Literal["auto", "pull", "build"]
Source = Literal["mysql", "mariadb"]
Storage = Literal["minio", "seaweedfs"]

FOLDER = {"mysql": "mysql", "mariadb": "mysql", "minio": "minio", "seaweedfs": "minio", "flink": "flink"}
"""The image folder of each kind; what is derived from a second choice is the same as from a first."""

SECOND_CHOICE = {"mysql": "mariadb", "minio": "seaweedfs"}

LOOK_UP_S = 5.0
BUILD_S = 3600.0

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class ImageSet:
    """The images of a stack by tag, and what is in them: versions as the programs say, origins."""

    source: str
    storage: str
    flink: str
    components: tuple[Component, ...]


@dataclass(frozen=True, kw_only=True)
class Made:
    """An image of the stack: its kind, its tag, its base, and where the base came from."""

    kind: str
    tag: str
    base: str
    origin: str


def provide(
    client: docker.DockerClient,
    *,
    mode: Mode,
    registry: str = "",
    tell: Callable[[str], None],
    source: Source = "mysql",
    storage: Storage = "minio",
) -> ImageSet:
    """The images of a stack, pulled or built if they are not there. A second call is a look-up.

    `auto` takes what is there; else pulls if every base is offered within seconds; else builds.
    A second choice (MariaDB, SeaweedFS) is always built. Raises ImageError or ArtifactError.
    """
    pins = load_pins(images_folder() / "artifacts.toml")
    with only_one("images", tell=tell):
        builder = EngineBuilder(client, folder=images_folder(), pins=pins, artifacts=Artifacts(), tell=tell)
        workshop = Workshop(
            registry=EngineRegistry(client),
            builder=builder,
            bases={kind: _prefixed(registry, reference) for kind, reference in pins.bases.items()},
            origins=_origins(pins),
            verify=lambda image, kind: verify_base(client, image, kind),
            tell=tell,
        )
        made = workshop.make(mode, (source, storage, "flink"))
        contents = Contents(client, cache_folder() / "contents", pins)
        components = [
            component
            for image in made
            for component in contents.components(image.tag, image.kind, image.origin)
        ]
    return ImageSet(source=made[0].tag, storage=made[1].tag, flink=made[2].tag, components=tuple(components))


def ready(client: docker.DockerClient, *, mode: Mode, registry: str = "") -> bool:
    """Whether `provide` would find all images there: what preflight needs to know about disk."""
    pins = load_pins(images_folder() / "artifacts.toml")
    builder = EngineBuilder(client, folder=images_folder(), pins=pins, artifacts=Artifacts(), tell=_silent)
    bases = {kind: _prefixed(registry, reference) for kind, reference in pins.bases.items()}
    if mode != "build" and all(EngineRegistry(client).local(reference) for reference in bases.values()):
        return True
    return mode != "pull" and all(found_built(builder, kind) for kind in ("mysql", "minio", "flink"))


class Workshop:
    """Decides between pulling and building, and makes the images side by side."""

    def __init__(
        self,
        *,
        registry: Registry,
        builder: Builder,
        bases: Mapping[str, str],
        origins: Mapping[str, str],
        verify: Callable[[str, str], str],
        tell: Callable[[str], None],
    ) -> None:
        self._registry = registry
        self._builder = builder
        self._bases = bases
        self._origins = origins
        self._verify = verify
        self._tell = tell

    def make(self, mode: Mode, kinds: tuple[str, ...]) -> tuple[Made, ...]:
        """The image of each kind, in that order. The first failure is raised, the rest abandoned."""
        if self._pulls(mode, kinds):
            return _side_by_side([partial(self._from_pulled, kind) for kind in kinds])
        debian = in_background(lambda: self._builder.build(DEBIAN, ""))
        return _side_by_side([partial(self._from_built, kind, debian) for kind in kinds])

    def _pulls(self, mode: Mode, kinds: tuple[str, ...]) -> bool:
        second = [kind for kind in kinds if kind not in self._bases]
        if mode == "pull" and second:
            raise UsageError(f"{', '.join(second)} can only be built", todo="use --images build")
        if mode == "build" or second:
            return False
        missing = [self._bases[kind] for kind in kinds if not self._registry.local(self._bases[kind])]
        if mode == "auto":
            if not missing:
                return True
            if all(found_built(self._builder, kind) for kind in kinds):
                return False
        refused = self._registry.refused(missing, timeout_s=LOOK_UP_S)
        if not refused:
            return True
        reference, reason = next(iter(refused.items()))
        if mode == "pull":
            raise ImageError(
                f"{reference} cannot be pulled: {reason}",
                todo="name a registry that has it with --registry, or use --images build",
            )
        self._tell(f"{reference} cannot be pulled ({_short(reason)}): building all images instead")
        return False

    def _from_pulled(self, kind: str) -> Made:
        reference = self._bases[kind]
        if not self._registry.local(reference):
            self._tell(f"pulling {reference}")
            self._registry.pull(reference)
        tag = self._derive(kind, reference)
        return Made(kind=kind, tag=tag, base=reference, origin=f"pulled {self._registry.digest(reference)}")

    def _from_built(self, kind: str, debian: Future[str]) -> Made:
        try:
            base = self._builder.build(f"{kind}-base", debian.result(timeout=BUILD_S))
            tag = self._derive(kind, base)
        except HarnessError as error:
            second = SECOND_CHOICE.get(kind)
            if second is None or debian.exception(timeout=0) is not None:
                raise
            first, other = KINDS[kind].program, KINDS[second].program
            self._tell(f"{first} could not be built ({_short(str(error))}): using {other} instead")
            return self._from_built(second, debian)
        return Made(kind=kind, tag=tag, base=base, origin=f"built from {self._origins[kind]}")

    def _derive(self, kind: str, base: str) -> str:
        # An image that was derived earlier had its base verified then: the base's id is in its tag.
        found = self._builder.find(FOLDER[kind], base)
        if found:
            return found
        self._verify(base, kind)
        return self._builder.build(FOLDER[kind], base)


def found_built(builder: Builder, kind: str) -> bool:
    """Whether the image of a kind is there, made from the bases that would be built now."""
    debian = builder.find(DEBIAN, "")
    base = builder.find(f"{kind}-base", debian) if debian else None
    return base is not None and builder.find(FOLDER[kind], base) is not None


def in_background(work: Callable[[], Value]) -> Future[Value]:
    """Start work in a thread that does not keep the process from ending, as an executor's would."""
    future: Future[Value] = Future()

    def carry_out() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - handed on to whoever asks for the result
            future.set_exception(error)

    threading.Thread(target=carry_out, daemon=True).start()
    return future


def _side_by_side(works: list[Callable[[], Made]]) -> tuple[Made, ...]:
    futures = [in_background(work) for work in works]
    try:
        for future in as_completed(futures, timeout=BUILD_S):
            future.result()
    except BaseException:
        end_go()  # else a compiler would run on for minutes
        raise
    return tuple(future.result() for future in futures)


def _silent(_text: str) -> None:
    """Looking up tells nothing."""


def _prefixed(registry: str, reference: str) -> str:
    return f"{registry.rstrip('/')}/{reference}" if registry else reference


def _origins(pins: Pins) -> dict[str, str]:
    built = {pin.image.removesuffix("-base"): pin.origin for pin in reversed(pins.components)}
    return {**built, "mariadb": f"Debian {pins.debian_suite}"}


def _short(text: str) -> str:
    return text.strip().splitlines()[0][:160] if text.strip() else "no reason given"
