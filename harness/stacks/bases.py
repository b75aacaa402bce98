"""What each kind of image must be: the programs in it are asked, whatever its name says."""

from __future__ import annotations

import re
from dataclasses import dataclass

import docker
import requests
from docker.errors import APIError, DockerException

from harness.errors import ImageError


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of base: the command that makes it say its version, and the answer that is accepted."""

    program: str
    command: str
    version: str
    expected: str


KINDS: dict[str, Kind] = {
    "mysql": Kind(
        program="MySQL",
        command="mysqld --version",
        version=r"mysqld\s+Ver ((?:5\.6|5\.7|8\.0)\.\d+)(?!\S*MariaDB)",
        expected="5.6|5.7|8.0",
    ),
    "mariadb": Kind(
        program="MariaDB",
        command="mysqld --version",
        version=r"mysqld\s+Ver (10\.\d+\.\d+)-MariaDB",
        expected="10.x",
    ),
    "minio": Kind(
        program="MinIO",
        command="minio --version",
        version=r"minio version (\S+)",
        expected="(any release)",
    ),
    "seaweedfs": Kind(
        program="SeaweedFS",
        command="weed version",
        version=r"version \S+ (\d+\.\d+)",
        expected="(any release)",
    ),
    "flink": Kind(
        program="Flink",
        command="ls /opt/flink/lib /opt/flink/opt && java -version",
        version=r"(?s)flink-dist-(1\.20\.\d+)\.jar(?=.*flink-s3-fs-presto-)(?=.*flink-sql-gateway-\d)"
        r'(?=.*version ")',
        expected="1.20.x with flink-s3-fs-presto and flink-sql-gateway in opt/, and Java",
    ),
}


def verify_base(client: docker.DockerClient, image: str, kind: str) -> str:
    """The version that the program in an image says; pulled and built bases are held to the same.

    Raises ImageError when it is not the program, or not a version that the harness works with.
    """
    wanted = KINDS[kind]
    said = ask(client, image, wanted.command)
    found = re.search(wanted.version, said)
    if found is None:
        raise ImageError(
            f"{image} is not what it says: expected {wanted.program} {wanted.expected}, "
            f"actual answer to `{wanted.command}`: {said.strip()[:300]!r}",
            todo="name a registry with the official image, or use --images build",
        )
    return found.group(1)


def ask(client: docker.DockerClient, image: str, command: str) -> str:
    """What a shell command in a throw-away container prints, errors included, whatever its status.

    The shell is bash: the health checks of the stack need it, so an image without it won't do.
    """
    try:
        container = client.containers.create(
            image,
            entrypoint=["bash", "-c", f"{{ {command}; }} 2>&1"],
            command=[],
            network_mode="none",
            labels={"paimon-harness.purpose": "verify"},
        )
    except DockerException as error:
        raise ImageError(f"{image}: no container could be made of it: {error}") from error
    try:
        container.start()
        container.wait(timeout=60)
        return bytes(container.logs()).decode(errors="replace")
    except (APIError, requests.RequestException) as error:
        return str(error)
    finally:
        container.remove(force=True, v=True)
