"""Components are fetched once, verified on every use, and deleted when they are not what was pinned."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from harness.errors import ArtifactError, HarnessError
from harness.stacks.artifacts import Artifacts, digest
from harness.stacks.fetching import go_linker_flags
from harness.stacks.pins import Pin, cache_folder, images_folder, load_pins

CONTENT = b"a jar"
RIGHT = hashlib.sha256(CONTENT).hexdigest()


class FakeRegistry:
    """Serves one content and counts how often it was asked."""

    def __init__(self, content: bytes = CONTENT, *, error: Exception | None = None) -> None:
        self.content = content
        self.error = error
        self.asked = 0

    def __call__(self, pin: Pin, into: Path) -> Path:
        self.asked += 1
        file = into / "thing-1.jar"
        file.write_bytes(self.content)
        if self.error:
            raise self.error
        return file


def pin(checksum: str = RIGHT) -> Pin:
    return Pin(
        name="Thing",
        kind="maven",
        coordinate="g:thing:1",
        checksum=checksum,
        image="flink",
        destination="lib",
    )


def test_a_component_is_fetched_once_and_then_taken_from_the_cache(tmp_path: Path) -> None:
    registry = FakeRegistry()

    first = Artifacts(tmp_path, fetchers={"maven": registry}).fetch(pin())
    second = Artifacts(tmp_path, fetchers={"maven": registry}).fetch(pin())

    assert first.read_bytes() == CONTENT
    assert second == first
    assert registry.asked == 1


def test_a_wrong_checksum_says_expected_and_actual_and_what_to_do(tmp_path: Path) -> None:
    wrong = "0" * 64

    with pytest.raises(ArtifactError) as caught:
        Artifacts(tmp_path, fetchers={"maven": FakeRegistry()}).fetch(pin(wrong))

    assert f"expected {wrong}, actual {RIGHT}" in caught.value.what
    assert "run again" in caught.value.todo


def test_a_fetched_file_with_a_wrong_checksum_is_deleted(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError):
        Artifacts(tmp_path, fetchers={"maven": FakeRegistry()}).fetch(pin("0" * 64))

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_file_that_was_changed_in_the_cache_is_refused_deleted_and_then_fetched_afresh(
    tmp_path: Path,
) -> None:
    registry = FakeRegistry()
    artifacts = Artifacts(tmp_path, fetchers={"maven": registry})
    artifacts.fetch(pin()).write_bytes(b"something else")

    with pytest.raises(ArtifactError, match=f"expected sha256 {RIGHT}, actual"):
        artifacts.fetch(pin())
    again = artifacts.fetch(pin())

    assert again.read_bytes() == CONTENT
    assert registry.asked == 2


def test_an_interrupted_fetch_leaves_nothing_that_looks_fetched(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Artifacts(tmp_path, fetchers={"maven": broken(KeyboardInterrupt())}).fetch(pin())
    registry = FakeRegistry()
    Artifacts(tmp_path, fetchers={"maven": registry}).fetch(pin())

    assert registry.asked == 1


def test_a_program_that_fails_while_fetching_names_the_component(tmp_path: Path) -> None:
    artifacts = Artifacts(
        tmp_path, fetchers={"maven": FakeRegistry(error=HarnessError("npm ended with status 1"))}
    )

    with pytest.raises(ArtifactError, match=r"maven g:thing:1: not fetched: npm ended with status 1"):
        artifacts.fetch(pin())


def test_another_pin_of_the_same_component_is_another_entry_of_the_cache(tmp_path: Path) -> None:
    registry = FakeRegistry()
    artifacts = Artifacts(tmp_path, fetchers={"maven": registry})
    artifacts.fetch(pin())

    with pytest.raises(ArtifactError):
        artifacts.fetch(pin("0" * 64))

    assert registry.asked == 2


def test_the_digest_of_a_folder_changes_with_a_name_and_with_a_content(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "inside").mkdir(parents=True)
    (folder / "inside" / "file").write_bytes(b"1")
    before = digest(folder)
    (folder / "inside" / "file").write_bytes(b"2")
    other_content = digest(folder)
    (folder / "inside" / "file").rename(folder / "inside" / "renamed")

    assert len({before, other_content, digest(folder)}) == 3


def test_every_pin_of_the_project_has_an_image_folder_and_a_checksum_or_locked_requirements() -> None:
    pins = load_pins(images_folder() / "artifacts.toml")

    assert [
        one.name for one in pins.components if not (images_folder() / one.image / "Dockerfile").is_file()
    ] == []
    assert [one.name for one in pins.components if not one.checksum and not hashed(one)] == []
    assert set(pins.bases) == {"mysql", "minio", "flink"}


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        (
            'kind = "maven"\ncoordinate = "g:a:1"\nimage = "i"\ndestination = "d"',
            "expected a checksum, actual none",
        ),
        ('kind = "ftp"\ncoordinate = "g:a:1"\nimage = "i"\ndestination = "d"', "actual 'ftp'"),
        ('kind = "pypi"\ncoordinate = "r.txt"\nimage = "i"', "destination"),
        ('kind = "pypi"\ncoordinate = "r.txt"\nimage = "i"\ndestination = "d"\ncolour = "red"', "colour"),
    ],
)
def test_a_pin_that_cannot_be_is_refused_by_name(tmp_path: Path, entry: str, complaint: str) -> None:
    file = tmp_path / "artifacts.toml"
    file.write_text(f'[bases]\n[debian]\nsuite = "bookworm"\n[[component]]\nname = "Thing"\n{entry}\n')

    with pytest.raises(ArtifactError) as caught:
        load_pins(file)

    assert "'Thing'" in caught.value.what
    assert complaint in caught.value.what


def test_a_pins_file_that_is_no_toml_is_refused_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "artifacts.toml"
    file.write_text("[bases")

    with pytest.raises(ArtifactError, match=r"artifacts\.toml: cannot be read"):
        load_pins(file)


def test_the_cache_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAIMON_HARNESS_CACHE", str(tmp_path / "here"))

    assert cache_folder() == tmp_path / "here"


def test_minio_is_told_the_version_that_its_pseudo_version_stands_for() -> None:
    minio = Pin(
        name="MinIO",
        kind="go",
        coordinate="github.com/minio/minio@v0.0.0-20260212201848-7aac2a2c5b7c",
        image="minio-base",
        destination="minio",
    )

    flags = go_linker_flags(minio)

    assert "-X github.com/minio/minio/cmd.ReleaseTag=DEVELOPMENT.2026-02-12T20-18-48Z" in flags
    assert "-X github.com/minio/minio/cmd.CommitID=7aac2a2c5b7c" in flags


def hashed(one: Pin) -> bool:
    """Whether every requirement of a PyPI pin carries a hash."""
    text = one.requirements.read_text()
    return f"\n{one.coordinate} " in f"\n{text}" and all(
        "--hash=sha256:" in entry for entry in text.replace("\\\n", "").strip().splitlines()
    )


def broken(error: BaseException) -> FakeRegistry:
    """A registry that is interrupted after it wrote some of the file."""
    return FakeRegistry(error=error)  # type: ignore[arg-type]
