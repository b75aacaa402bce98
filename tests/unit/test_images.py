"""Whether images are pulled or built, what is said of it, and what an image is named."""

from __future__ import annotations

import io
import re
import tarfile
import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import ImageError, UsageError
from harness.model import Component
from harness.stacks.artifacts import Artifacts
from harness.stacks.bases import KINDS
from harness.stacks.contents import jars
from harness.stacks.contexts import context_key, write_context
from harness.stacks.images import Workshop
from harness.stacks.pins import Pin

BASES = {"mysql": "mysql:8.0", "minio": "minio/minio:RELEASE", "flink": "flink:1.20"}
FLINK_HAS = "lib:\nflink-dist-1.20.3.jar\nopt:\nflink-s3-fs-presto-1.20.3.jar\n"
FIRST = ("mysql", "minio", "flink")


class FakeEngine:
    """A registry and a builder in one; images are names, their tag says what they were made from."""

    def __init__(
        self,
        *,
        local: Iterable[str] = (),
        offered: Iterable[str] = (),
        built: Iterable[str] = (),
        failing: Iterable[str] = (),
    ) -> None:
        self.images = set(local) | set(built)
        self.offered = set(offered)
        self.failing = set(failing)
        self.pulled: list[str] = []
        self.made: list[str] = []
        self.asked: list[str] = []
        self._lock = threading.Lock()

    def local(self, reference: str) -> bool:
        return reference in self.images

    def refused(self, references: Iterable[str], *, timeout_s: float) -> Mapping[str, str]:
        self.asked += references
        return {reference: "no such host" for reference in references if reference not in self.offered}

    def pull(self, reference: str) -> None:
        with self._lock:
            self.images.add(reference)
            self.pulled.append(reference)

    def digest(self, reference: str) -> str:
        return f"{reference}@sha256:0"

    def find(self, name: str, base: str) -> str | None:
        tag = f"{name}({base})"
        return tag if tag in self.images else None

    def build(self, name: str, base: str) -> str:
        tag = f"{name}({base})"
        if name in self.failing:
            raise ImageError(f"image {name} was not built: no space left\nthe last lines")
        with self._lock:
            if tag not in self.images:
                self.images.add(tag)
                self.made.append(name)
        return tag


def workshop(engine: FakeEngine, *, told: list[str] | None = None, lies: Iterable[str] = ()) -> Workshop:
    def verify(image: str, kind: str) -> str:
        if image in lies:
            raise ImageError(f"{image} is not what it says")
        return "1"

    return Workshop(
        registry=engine,
        builder=engine,
        bases=BASES,
        origins={
            "mysql": "npm m",
            "minio": "go m",
            "flink": "pypi f",
            "mariadb": "Debian",
            "seaweedfs": "pypi s",
        },
        verify=verify,
        tell=(told if told is not None else []).append,
    )


def everything_built() -> FakeEngine:
    engine = FakeEngine()
    workshop(engine).make("build", FIRST)
    return FakeEngine(built=engine.images)


def test_auto_pulls_every_base_when_every_base_is_offered() -> None:
    engine = FakeEngine(offered=BASES.values())

    made = workshop(engine).make("auto", FIRST)

    assert [one.origin for one in made] == [f"pulled {reference}@sha256:0" for reference in BASES.values()]
    assert sorted(engine.made) == ["flink", "minio", "mysql"]


def test_auto_builds_every_base_when_one_is_not_offered_and_says_so() -> None:
    told: list[str] = []
    engine = FakeEngine(offered=["mysql:8.0", "flink:1.20"])

    made = workshop(engine, told=told).make("auto", FIRST)

    assert [one.origin for one in made] == ["built from npm m", "built from go m", "built from pypi f"]
    assert engine.pulled == []
    assert told == ["minio/minio:RELEASE cannot be pulled (no such host): building all images instead"]


def test_auto_takes_pulled_bases_that_are_there_without_asking_a_registry() -> None:
    engine = FakeEngine(local=BASES.values())

    made = workshop(engine).make("auto", FIRST)

    assert [one.base for one in made] == list(BASES.values())
    assert engine.asked == []


def test_auto_takes_built_images_that_are_there_without_asking_or_making_anything() -> None:
    engine = everything_built()

    made = workshop(engine).make("auto", FIRST)

    assert [one.tag for one in made] == [
        "mysql(mysql-base(debian()))",
        "minio(minio-base(debian()))",
        "flink(flink-base(debian()))",
    ]
    assert (engine.asked, engine.made) == ([], [])


def test_build_never_asks_a_registry_even_if_bases_were_pulled() -> None:
    engine = FakeEngine(local=BASES.values())

    made = workshop(engine).make("build", FIRST)

    assert engine.asked == []
    assert made[0].origin == "built from npm m"


def test_pull_refuses_with_the_registry_s_reason_when_a_base_is_not_offered() -> None:
    engine = FakeEngine(offered=["mysql:8.0", "flink:1.20"])

    with pytest.raises(ImageError, match=r"minio/minio:RELEASE cannot be pulled: no such host"):
        workshop(engine).make("pull", FIRST)

    assert engine.made == []


def test_a_pulled_base_that_is_not_what_it_says_is_refused_and_nothing_is_derived_from_it() -> None:
    engine = FakeEngine(offered=BASES.values())

    with pytest.raises(ImageError, match=r"mysql:8\.0 is not what it says"):
        workshop(engine, lies=["mysql:8.0"]).make("pull", FIRST)

    assert "mysql" not in engine.made


def test_a_built_base_that_is_not_what_it_says_gives_way_to_the_second_choice() -> None:
    engine = FakeEngine()

    made = workshop(engine, lies=["mysql-base(debian())"]).make("build", FIRST)

    assert made[0].kind == "mariadb"


def test_mariadb_takes_the_place_of_a_mysql_that_cannot_be_built_and_it_is_said() -> None:
    told: list[str] = []
    engine = FakeEngine(failing=["mysql-base"])

    made = workshop(engine, told=told).make("build", FIRST)

    assert made[0].tag == "mysql(mariadb-base(debian()))"
    assert made[0].origin == "built from Debian"
    assert told == [
        "MySQL could not be built (image mysql-base was not built: no space left): using MariaDB instead"
    ]


def test_seaweedfs_takes_the_place_of_a_minio_that_cannot_be_built() -> None:
    engine = FakeEngine(failing=["minio-base"])

    made = workshop(engine).make("build", FIRST)

    assert made[1].tag == "minio(seaweedfs-base(debian()))"
    assert made[1].origin == "built from pypi s"


def test_flink_has_no_second_choice() -> None:
    with pytest.raises(ImageError, match=r"image flink-base was not built"):
        workshop(FakeEngine(failing=["flink-base"])).make("build", FIRST)


def test_without_the_debian_base_no_second_choice_is_tried() -> None:
    told: list[str] = []

    with pytest.raises(ImageError, match=r"image debian was not built"):
        workshop(FakeEngine(failing=["debian"]), told=told).make("build", FIRST)

    assert told == []


def test_a_second_choice_asked_for_is_built_whatever_is_offered() -> None:
    engine = FakeEngine(offered=BASES.values())

    made = workshop(engine).make("auto", ("mariadb", "seaweedfs", "flink"))

    assert [one.kind for one in made] == ["mariadb", "seaweedfs", "flink"]
    assert engine.pulled == []


def test_a_second_choice_cannot_be_pulled() -> None:
    with pytest.raises(UsageError, match="mariadb can only be built"):
        workshop(FakeEngine(offered=BASES.values())).make("pull", ("mariadb", "minio", "flink"))


def test_the_key_of_an_image_changes_with_its_files_its_pins_and_its_base(tmp_path: Path) -> None:
    pin = Pin(name="A", kind="maven", coordinate="g:a:1", checksum="1", image="flink", destination="lib")
    (tmp_path / "Dockerfile").write_text("FROM x\n")
    first = context_key(tmp_path, [pin], "sha256:1")
    again = context_key(tmp_path, [pin], "sha256:1")
    other_base = context_key(tmp_path, [pin], "sha256:2")
    other_pin = context_key(tmp_path, [replace(pin, checksum="2")], "sha256:1")
    (tmp_path / "Dockerfile").write_text("FROM y\n")
    other_file = context_key(tmp_path, [pin], "sha256:1")

    assert again == first
    assert len({first, other_base, other_pin, other_file}) == 4
    assert len(first) == 12


def test_a_context_has_components_at_their_places_readable_programs_runnable_and_leaves_out(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "image"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM x\n")
    (folder / "entrypoint.sh").write_text("#!/bin/bash\n")
    (folder / "entrypoint.sh").chmod(0o600)

    def fetch(pin: Pin, into: Path) -> Path:
        target = into / "site-packages"
        (target / "thing" / "tests").mkdir(parents=True)
        (target / "thing" / "code.py").write_text("")
        (target / "thing" / "run").write_text("")
        (target / "thing" / "run").chmod(0o700)
        (target / "thing" / "tests" / "test.py").write_text("")
        return target

    pin = Pin(
        name="Thing",
        kind="go",
        coordinate="thing",
        image="image",
        destination="site",
        leave_out=("*/tests/*",),
    )
    written = io.BytesIO()
    write_context(written, folder, [pin], Artifacts(tmp_path / "cache", fetchers={"go": fetch}))
    written.seek(0)
    with tarfile.open(fileobj=written) as archive:
        modes = {member.name: member.mode for member in archive}

    assert modes == {
        "Dockerfile": 0o644,
        "entrypoint.sh": 0o755,
        "site/thing/code.py": 0o644,
        "site/thing/run": 0o755,
    }


@pytest.mark.parametrize(
    ("kind", "said", "version"),
    [
        ("mysql", "mysqld  Ver 8.0.43 for Linux on x86_64 (MySQL Community Server - GPL)", "8.0.43"),
        ("mysql", "mysqld  Ver 5.6.24 for Linux on x86_64 (Source distribution)", "5.6.24"),
        ("mysql", "mysqld  Ver 8.4.3 for Linux on x86_64 (MySQL Community Server - GPL)", None),
        ("mysql", "mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64 (Debian 12)", None),
        ("mysql", "exec: mysqld: not found", None),
        ("mariadb", "mysqld  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64", "10.11.19"),
        ("mariadb", "mysqld  Ver 8.0.43 for Linux on x86_64", None),
        (
            "minio",
            "minio version RELEASE.2025-09-07T16-13-09Z (commit-id=07c3a42)",
            "RELEASE.2025-09-07T16-13-09Z",
        ),
        ("minio", "bash: line 1: minio: command not found", None),
        ("seaweedfs", "version 8000GB 4.48 pypi linux amd64", "4.48"),
        ("flink", f'{FLINK_HAS}flink-sql-gateway-1.20.3.jar\nopenjdk version "17"', "1.20.3"),
        ("flink", f'{FLINK_HAS}openjdk version "17"', None),
        ("flink", f"{FLINK_HAS}flink-sql-gateway-1.20.3.jar\njava: command not found", None),
        (
            "flink",
            'flink-dist-1.19.1.jar\nflink-s3-fs-presto-1.jar\nflink-sql-gateway-1.jar\nversion "17"',
            None,
        ),
    ],
)
def test_a_program_is_known_by_what_it_says(kind: str, said: str, version: str | None) -> None:
    found = re.search(KINDS[kind].version, said)

    assert (found.group(1) if found else None) == version


def test_jars_have_the_version_in_their_file_name_and_come_from_their_pin_or_from_a_pulled_base() -> None:
    pins = (
        Pin(
            name="Paimon", kind="maven", coordinate="g:paimon-flink-1.20:1.3.1", image="f", destination="lib"
        ),
        Pin(
            name="Gateway",
            kind="maven",
            coordinate="g:flink-sql-gateway:1.20.3",
            image="f-base",
            destination="opt",
        ),
        Pin(name="Absent", kind="maven", coordinate="g:absent:1", image="f", destination="lib"),
    )
    listing = "\n".join(
        [
            "lib:",
            "paimon-flink-1.20-1.3.1.jar",
            "flink-sql-gateway-api-1.20.5.jar",
            "flink-sql-gateway-1.20.5.jar",
        ]
    )

    assert jars(listing, pins, base_origin="pulled flink@sha256:0") == (
        Component(name="Paimon", version="1.3.1", origin="maven g:paimon-flink-1.20:1.3.1"),
        Component(name="Gateway", version="1.20.5", origin="pulled flink@sha256:0"),
    )
