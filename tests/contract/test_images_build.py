"""Built images, tried: the second choices serve as the first do, and a failing build says why."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import docker
import pymysql
import pytest
import urllib3
from minio import Minio
from minio.error import S3Error

from harness.errors import ImageError
from harness.stacks import engine
from harness.stacks.artifacts import Artifacts
from harness.stacks.bases import verify_base
from harness.stacks.building import DEBIAN, EngineBuilder
from harness.stacks.images import FOLDER
from harness.stacks.pins import images_folder, load_pins
from harness.waiting import wait_until

pytestmark = pytest.mark.docker

SECRET = "a-secret-of-this-test"


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_a_source_answers_on_3306_with_the_root_password_and_logs_whole_rows(
    client: docker.DockerClient, kind: str
) -> None:
    image = derived(client, kind)

    with container(client, image, {"MYSQL_ROOT_PASSWORD": SECRET}, 3306) as port:
        variables = wait_until(
            "the source to answer", lambda: asked(port), timeout_s=90, retry_on=(pymysql.MySQLError,)
        )

    assert variables["binlog_format"] == "ROW"
    assert variables["binlog_row_image"] == "FULL"
    assert variables["time_zone"] == "+00:00"
    assert variables["character_set_server"] == "utf8mb4"


@pytest.mark.parametrize("kind", ["minio", "seaweedfs"])
def test_a_storage_takes_minio_s_arguments_and_credentials_and_keeps_an_object(
    client: docker.DockerClient, kind: str
) -> None:
    image = derived(client, kind)
    credentials = {"MINIO_ROOT_USER": "harnesskey", "MINIO_ROOT_PASSWORD": SECRET}

    with container(client, image, credentials, 9000, ["server", "/data"]) as port:
        wait_until("the storage to keep an object", lambda: kept(port), timeout_s=60, retry_on=RETRIED)
        with pytest.raises(S3Error):
            s3(port, "another-secret").list_buckets()


@pytest.mark.parametrize(("kind", "other"), [("mysql", "MinIO"), ("flink", "MySQL")])
def test_a_base_of_another_kind_is_refused(client: docker.DockerClient, kind: str, other: str) -> None:
    image = derived(client, "minio" if other == "MinIO" else "mysql")

    with pytest.raises(ImageError, match="is not what it says: expected"):
        verify_base(client, image, kind)


def test_a_failing_build_says_what_the_build_said_last(client: docker.DockerClient, tmp_path: Path) -> None:
    folder = tmp_path / "broken"
    folder.mkdir()
    (folder / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nRUN echo the last words && exit 7\n")
    debian = builder(client).build(DEBIAN, "")

    with pytest.raises(ImageError) as caught:
        builder(client, tmp_path).build("broken", debian)

    assert "image broken was not built" in caught.value.what
    assert "non-zero code: 7" in caught.value.what
    assert "the last words" in caught.value.what


@pytest.fixture(scope="module")
def client() -> Iterator[docker.DockerClient]:
    client = engine.connect(may_install=True, ask=None, tell=ignore)
    yield client
    client.close()


@contextmanager
def container(
    client: docker.DockerClient,
    image: str,
    environment: dict[str, str],
    port: int,
    command: list[str] | None = None,
) -> Iterator[int]:
    """A container of the image with one port published on loopback; its number there."""
    running = client.containers.run(
        image,
        command=command,
        environment=environment,
        ports={f"{port}/tcp": ("127.0.0.1", None)},
        detach=True,
        labels={"paimon-harness.purpose": "test"},
    )
    try:

        def published() -> str | None:
            running.reload()
            bound = running.ports.get(f"{port}/tcp")
            return str(bound[0]["HostPort"]) if bound else None

        yield int(wait_until("the port to be published", published, timeout_s=20))
    finally:
        running.remove(force=True, v=True)


def builder(client: docker.DockerClient, folder: Path | None = None) -> EngineBuilder:
    pins = load_pins(images_folder() / "artifacts.toml")
    return EngineBuilder(
        client, folder=folder or images_folder(), pins=pins, artifacts=Artifacts(), tell=ignore
    )


def derived(client: docker.DockerClient, kind: str) -> str:
    """The image of a kind as the stack runs it."""
    making = builder(client)
    base = making.build(f"{kind}-base", making.build(DEBIAN, ""))
    verify_base(client, base, kind)
    return making.build(FOLDER[kind], base)


def asked(port: int) -> dict[str, str]:
    with (
        pymysql.connect(
            host="127.0.0.1", port=port, user="root", password=SECRET, connect_timeout=5, read_timeout=10
        ) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SHOW GLOBAL VARIABLES")
        return {str(name): str(value) for name, value in cursor.fetchall()}


RETRIED = (S3Error, urllib3.exceptions.HTTPError)


def s3(port: int, secret: str = SECRET) -> Minio:
    http = urllib3.PoolManager(timeout=5, retries=False)
    return Minio(
        f"127.0.0.1:{port}", access_key="harnesskey", secret_key=secret, secure=False, http_client=http
    )


def kept(port: int) -> bool:
    """Whether an object that was put is got back."""
    storage = s3(port)
    if not storage.bucket_exists("bucket"):
        storage.make_bucket("bucket")
    storage.put_object("bucket", "folder/object", io.BytesIO(b"content"), 7)
    answer = storage.get_object("bucket", "folder/object")
    try:
        return bool(answer.data == b"content")
    finally:
        answer.close()
        answer.release_conn()


def ignore(_text: str) -> None:
    """Progress is not what these tests are about."""
