"""The components of the images, fetched once into a cache and verified every time they are used."""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

from harness.errors import ArtifactError, HarnessError
from harness.stacks.fetching import FETCHERS, Fetch, wrong_checksum
from harness.stacks.pins import Pin, cache_folder


class Artifacts:
    """A cache of components. `fetchers` are replaced in tests."""

    def __init__(self, folder: Path | None = None, *, fetchers: Mapping[str, Fetch] = FETCHERS) -> None:
        self._folder = folder or cache_folder() / "components"
        self._fetchers = fetchers

    def fetch(self, pin: Pin) -> Path:
        """The component's file, or folder for PyPI; fetched if it is not there.

        Raises ArtifactError when it can't be fetched or is not what was pinned; it is deleted then.
        """
        place = self._folder / pin.kind / _key(pin)
        if not place.is_dir():
            self._fetch_into(pin, place)
        found = _only_entry(place)
        actual = digest(found)
        expected = (place / "SHA256").read_text()
        if actual != expected:
            shutil.rmtree(place)
            raise ArtifactError(
                f"{pin.origin}: {found} was changed in the cache and was deleted: "
                f"expected sha256 {expected}, actual {actual}",
                todo="run again: it will be fetched afresh",
            )
        return found

    def _fetch_into(self, pin: Pin, place: Path) -> None:
        place.parent.mkdir(parents=True, exist_ok=True)
        # Made aside and renamed when whole: an interrupted fetch leaves nothing that looks fetched.
        with tempfile.TemporaryDirectory(
            dir=self._folder, prefix="fetching-", ignore_cleanup_errors=True
        ) as aside:
            work, ready = Path(aside) / "work", Path(aside) / "ready"
            work.mkdir()
            ready.mkdir()
            try:
                fetched = self._fetchers[pin.kind](pin, work)
            except ArtifactError:
                raise
            except HarnessError as error:
                raise ArtifactError(
                    f"{pin.origin}: not fetched: {error}", todo="is the registry reachable?"
                ) from error
            actual = digest(fetched)
            if pin.kind in ("maven", "npm") and actual != pin.checksum:
                raise wrong_checksum(pin, actual)
            fetched.rename(ready / fetched.name)
            (ready / "SHA256").write_text(actual)
            ready.rename(place)


def digest(path: Path) -> str:
    """sha256 of a file; of a folder, over the names and digests of all its files."""
    if path.is_file():
        with path.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()
    total = hashlib.sha256()
    for file in files_below(path):
        total.update(f"{file.relative_to(path)}\0{digest(file)}\n".encode())
    return total.hexdigest()


def files_below(folder: Path) -> Iterator[Path]:
    """Every file below a folder, in the order of their names."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def pin_text(pin: Pin) -> str:
    """All that decides what the component is, for keys; a requirements file counts by its content."""
    locked = pin.requirements.read_text() if pin.kind == "pypi" else ""
    return f"{pin!r}\n{locked}"


def _key(pin: Pin) -> str:
    readable = "".join(letter if letter.isalnum() or letter in "-." else "_" for letter in pin.coordinate)
    return f"{readable}-{hashlib.sha256(pin_text(pin).encode()).hexdigest()[:12]}"


def _only_entry(place: Path) -> Path:
    entries = [entry for entry in place.iterdir() if entry.name != "SHA256"]
    if len(entries) != 1:
        shutil.rmtree(place)
        raise ArtifactError(
            f"{place}: expected one component, actual {[entry.name for entry in entries]}; it was deleted",
            todo="run again: it will be fetched afresh",
        )
    return entries[0]
