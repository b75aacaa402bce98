"""Promises of a copy of a table: who reads it sees what storage holds, and misses what storage misses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import ReaderError
from harness.paimon.mirror import copy_table

FILES = {
    "snapshot/snapshot-1": b"one",
    "snapshot/LATEST": b"1",
    "manifest/list-1": b"list",
    "dt=2026-07-06/bucket-0/data-1.orc": b"rows",
}


class Storage:
    """Files by path; after the first list `then` happens, as a commit or an expiry does at any time."""

    def __init__(self, *, then: Callable[[dict[str, bytes]], None] = lambda files: None) -> None:
        self.files = dict(FILES)
        self.then = then
        self.lists = 0
        self.shortened: set[str] = set()

    def read(self, path: str) -> bytes | None:
        content = self.files.get(path)
        return content[:-1] if content is not None and path in self.shortened else content

    def sizes(self, under: str = "") -> dict[str, int]:
        self.lists += 1
        found = {path: len(content) for path, content in self.files.items() if path.startswith(under)}
        if self.lists == 1:
            self.then(self.files)
        return found


def copied(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


def without(*paths: str) -> dict[str, bytes]:
    return {path: content for path, content in FILES.items() if path not in paths}


def test_every_file_is_copied_but_the_hints_that_change(tmp_path: Path) -> None:
    copy_table(Storage(), tmp_path)

    assert without("snapshot/LATEST") == copied(tmp_path)


def test_a_snapshot_that_is_committed_meanwhile_is_left_out_since_its_files_may_not_be_there(
    tmp_path: Path,
) -> None:
    def commit(files: dict[str, bytes]) -> None:
        files["snapshot/snapshot-2"] = b"two"

    copy_table(Storage(then=commit), tmp_path)

    assert "snapshot/snapshot-2" not in copied(tmp_path)


def test_what_a_snapshot_needs_is_copied_although_it_was_listed_later(tmp_path: Path) -> None:
    def appear(files: dict[str, bytes]) -> None:
        files["manifest/list-1b"] = b"more"

    copy_table(Storage(then=appear), tmp_path)

    assert b"more" == copied(tmp_path)["manifest/list-1b"]


def test_a_file_that_storage_misses_is_missing_in_the_copy(tmp_path: Path) -> None:
    storage = Storage()
    del storage.files["dt=2026-07-06/bucket-0/data-1.orc"]
    copy_table(storage, tmp_path)

    assert without("snapshot/LATEST", "dt=2026-07-06/bucket-0/data-1.orc") == copied(tmp_path)


def test_a_file_that_is_deleted_between_list_and_read_is_missing_in_the_copy(tmp_path: Path) -> None:
    class Expiring(Storage):
        def read(self, path: str) -> bytes | None:
            return None if path == "manifest/list-1" else super().read(path)

    copy_table(Expiring(), tmp_path)

    assert without("snapshot/LATEST", "manifest/list-1") == copied(tmp_path)


def test_half_a_file_is_no_copy(tmp_path: Path) -> None:
    storage = Storage()
    storage.shortened = {"manifest/list-1"}

    with pytest.raises(ReaderError, match="manifest/list-1 has 3 bytes, and storage listed it with 4"):
        copy_table(storage, tmp_path)
