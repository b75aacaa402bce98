"""A real source server for contract tests: started for a module, removed after it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import docker
import pytest

from harness.errors import SourceError
from harness.model import Address, Credentials
from harness.source import mysql
from harness.stacks.images import provide
from harness.waiting import wait_until

ROOT = Credentials(user="root", secret="harness-contract-test")


def tell(_: str) -> None:
    """Progress is of no interest here."""


@pytest.fixture(scope="module")
def address() -> Iterator[Address]:
    """A source server of our image (or of PAIMON_HARNESS_SOURCE_IMAGE), for this module alone."""
    client = docker.from_env()
    image = os.environ.get("PAIMON_HARNESS_SOURCE_IMAGE") or provide(client, mode="auto", tell=tell).source
    container = client.containers.run(
        image,
        detach=True,
        environment={"MYSQL_ROOT_PASSWORD": ROOT.secret},
        ports={"3306/tcp": ("127.0.0.1", None)},
        labels={"harness.test": "contract"},
    )
    try:
        container.reload()
        port = int(container.ports["3306/tcp"][0]["HostPort"])
        place = Address(host="127.0.0.1", port=port)

        def answers() -> Address:
            mysql.connect(place, ROOT).close()
            return place

        yield wait_until("the source to answer", answers, timeout_s=120, retry_on=(SourceError,))
    finally:
        container.remove(force=True, v=True)
        client.close()


def kill_others(connection: mysql.Connection) -> int:
    """End every other connection of root to the server, and return how many were ended."""
    ((own,),) = mysql.query(connection, "SELECT CONNECTION_ID()")
    kills = 0
    for (thread,) in mysql.query(
        connection, "SELECT id FROM information_schema.processlist WHERE user = 'root' AND id <> %s", [own]
    ):
        with contextlib.suppress(SourceError):  # it may have ended by itself meanwhile
            mysql.query(connection, f"KILL {thread}")
            kills += 1
    return kills
