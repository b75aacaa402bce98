"""The pull path against a registry on loopback: a base under an official name is pulled, but not believed."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass

import docker
import psutil
import pytest
import requests

from harness.errors import ImageError
from harness.stacks import engine
from harness.stacks.artifacts import Artifacts
from harness.stacks.building import DEBIAN, EngineBuilder
from harness.stacks.images import LOOK_UP_S, provide
from harness.stacks.pins import images_folder, load_pins
from harness.stacks.pulling import EngineRegistry
from harness.waiting import wait_until

pytestmark = pytest.mark.docker


@dataclass(frozen=True, kw_only=True)
class LocalRegistry:
    """A registry that runs for these tests only, and the engine that it serves."""

    client: docker.DockerClient
    address: str
    bases: dict[str, str]

    def publish(self, folder: str, images_of: dict[str, str]) -> str:
        """Push an image for each kind under its official name, forget it here; return what to prefix."""
        prefix = f"{self.address}/{folder}"
        for kind, image in images_of.items():
            repository, _, tag = f"{prefix}/{self.bases[kind]}".rpartition(":")
            self.client.images.get(image).tag(repository, tag=tag)
            for line in self.client.api.push(repository, tag=tag, stream=True, decode=True):
                assert "error" not in line, line
            self.client.images.remove(f"{repository}:{tag}")
        return prefix


def test_official_names_are_pulled_and_the_origin_of_each_component_says_so(
    registry: LocalRegistry, stand_ins: dict[str, str]
) -> None:
    prefix = registry.publish("official", stand_ins)

    pulled = provide(registry.client, mode="pull", registry=prefix, tell=ignore)
    again = provide(registry.client, mode="auto", registry=prefix, tell=ignore)
    origins = {component.name: component.origin for component in pulled.components}
    versions = {component.name: component.version for component in pulled.components}

    assert origins["MySQL"].startswith(f"pulled {prefix}/mysql:8.0@sha256:")
    assert origins["MinIO"].startswith(f"pulled {prefix}/minio/minio:RELEASE.")
    assert origins["Flink"].startswith(f"pulled {prefix}/flink:1.20")
    assert (versions["MySQL"], versions["Flink"], versions["Paimon"]) == ("5.6.24", "1.20.3", "1.3.1")
    assert origins["Flink S3 plugin"] == origins["Flink"]
    assert again == pulled


def test_a_base_that_is_not_what_it_says_is_refused(
    registry: LocalRegistry, stand_ins: dict[str, str]
) -> None:
    prefix = registry.publish("lying", {**stand_ins, "mysql": stand_ins["minio"]})

    with pytest.raises(ImageError) as caught:
        provide(registry.client, mode="pull", registry=prefix, tell=ignore)

    assert f"{prefix}/mysql:8.0 is not what it says: expected MySQL 5.6|5.7|8.0, actual" in caught.value.what
    assert "mysqld: command not found" in caught.value.what


def test_a_base_that_the_registry_lacks_is_refused_within_seconds(registry: LocalRegistry) -> None:
    started = time.monotonic()

    with pytest.raises(ImageError, match=r"cannot be pulled"):
        provide(registry.client, mode="pull", registry=f"{registry.address}/empty", tell=ignore)

    assert time.monotonic() - started < LOOK_UP_S + 2


def test_what_a_registry_offers_is_not_refused_and_what_it_lacks_is(
    registry: LocalRegistry, stand_ins: dict[str, str]
) -> None:
    prefix = registry.publish("partial", {"minio": stand_ins["minio"]})
    offered, lacking = f"{prefix}/{registry.bases['minio']}", f"{prefix}/{registry.bases['mysql']}"

    refused = EngineRegistry(registry.client).refused([offered, lacking], timeout_s=LOOK_UP_S)

    assert list(refused) == [lacking]


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = engine.connect(may_install=True, ask=None, tell=ignore)
    yield client
    client.close()


@pytest.fixture(scope="module")
def stand_ins(client: docker.DockerClient) -> dict[str, str]:
    """The bases that the build path makes: of the official layout."""
    provide(client, mode="build", tell=ignore)
    builder = EngineBuilder(
        client,
        folder=images_folder(),
        pins=load_pins(images_folder() / "artifacts.toml"),
        artifacts=Artifacts(),
        tell=ignore,
    )
    debian = builder.build(DEBIAN, "")
    return {kind: builder.build(f"{kind}-base", debian) for kind in ("mysql", "minio", "flink")}


@pytest.fixture(scope="module")
def registry(
    client: docker.DockerClient, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LocalRegistry]:
    if shutil.which("docker-registry") is None:
        if not shutil.which("apt-get"):
            pytest.fail("docker-registry is not installed, and there is no apt-get to install it")
        engine.install(["docker-registry"])
    folder = tmp_path_factory.mktemp("registry")
    port = free_port()
    configuration = folder / "registry.yml"
    configuration.write_text(
        "version: 0.1\n"
        "log: {level: warn}\n"
        f"storage: {{filesystem: {{rootdirectory: {folder / 'blobs'}}}}}\n"
        f"http: {{addr: '127.0.0.1:{port}'}}\n"
    )
    process = psutil.Popen(
        ["docker-registry", "serve", str(configuration)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    bases = load_pins(images_folder() / "artifacts.toml").bases
    address = f"127.0.0.1:{port}"
    try:
        wait_until(
            "the registry to answer",
            lambda: requests.get(f"http://{address}/v2/", timeout=2).ok,
            timeout_s=30,
            retry_on=(requests.ConnectionError,),
        )
        yield LocalRegistry(client=client, address=address, bases=bases)
    finally:
        process.terminate()
        process.wait(timeout=20)
        forget(client, address)


def forget(client: docker.DockerClient, address: str) -> None:
    """Remove the names that came from the registry; the layers are those of the stand-ins."""
    for image in client.images.list():
        for name in image.tags:
            if name.startswith(f"{address}/"):
                client.images.remove(name)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ignore(_text: str) -> None:
    """Progress is not what these tests are about."""
