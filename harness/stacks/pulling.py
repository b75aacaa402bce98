"""Pulls the official bases, and finds out within seconds whether they can be."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Protocol

import docker
from docker.errors import DockerException, ImageNotFound

from harness.errors import ImageError


class Registry(Protocol):
    """What pulling needs; an engine in fact, a fake in tests."""

    def local(self, reference: str) -> bool:
        """Whether the engine has the image already."""
        ...

    def refused(self, references: Iterable[str], *, timeout_s: float) -> Mapping[str, str]:
        """The references that no registry offers within the time, and why."""
        ...

    def pull(self, reference: str) -> None:
        """Bring the image here. Raises ImageError."""
        ...

    def digest(self, reference: str) -> str:
        """`reference@sha256:…` of a local image; its id where it was never in a registry."""
        ...


class EngineRegistry:
    """The Registry of a Docker Engine: it is the engine that reaches registries, not this process."""

    def __init__(self, client: docker.DockerClient) -> None:
        self._client = client

    def local(self, reference: str) -> bool:
        try:
            self._client.images.get(reference)
        except ImageNotFound:
            return False
        return True

    def refused(self, references: Iterable[str], *, timeout_s: float) -> Mapping[str, str]:
        # The SDK's timeout does not bound the engine's own waiting for DNS and TCP, so threads do.
        wanted = list(references)
        answers: queue.Queue[tuple[str, str]] = queue.Queue()
        for reference in wanted:
            threading.Thread(target=self._look_up, args=(reference, answers), daemon=True).start()
        refused = dict.fromkeys(wanted, f"no answer within {timeout_s:.0f} s")
        end = time.monotonic() + timeout_s
        for _ in wanted:
            try:
                reference, reason = answers.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                break
            if reason:
                refused[reference] = reason
            else:
                del refused[reference]
        return refused

    def _look_up(self, reference: str, answers: queue.Queue[tuple[str, str]]) -> None:
        try:
            self._client.images.get_registry_data(reference)
        except (DockerException, OSError) as error:
            answers.put((reference, str(getattr(error, "explanation", "") or error)))
        else:
            answers.put((reference, ""))

    def pull(self, reference: str) -> None:
        repository, _, tag = reference.rpartition(":")
        failure = ""
        try:
            for line in self._client.api.pull(repository, tag=tag, stream=True, decode=True):
                failure = failure or str(line.get("error", ""))  # read to its end, else it stays open
        except DockerException as error:
            failure = str(error)
        if failure:
            raise ImageError(
                f"{reference} was not pulled: {failure}",
                todo="name a registry that has it with --registry, or use --images build",
            )

    def digest(self, reference: str) -> str:
        image = self._client.images.get(reference)
        repository = reference.rpartition(":")[0]
        for known in image.attrs.get("RepoDigests") or []:
            if str(known).startswith(f"{repository}@"):
                return f"{reference}@{str(known).partition('@')[2]}"
        return f"{reference} {image.id}"
