"""Reading a table's snapshot and manifest files: what stands in them, what is gone, and what expires."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from sink_warehouse import INSIDE, LOG, SinkWarehouse

from harness.commits import ENTRY_SCHEMA, FILE_SCHEMA
from harness.errors import ReaderError
from harness.model import Credentials
from harness.paimon.commit_log import read_commits
from harness.paimon.stored_files import BucketFiles, FolderFiles, stored_files
from harness.paimon.warehouse import Warehouse

DAY = b"\x00\x0a"

LISTED = fastavro.parse_schema(
    {
        "type": "record",
        "name": "listed",
        "fields": [{"name": "_FILE_NAME", "type": "string"}, {"name": "_FILE_SIZE", "type": "long"}],
    }
)
ENTRY = fastavro.parse_schema(
    {
        "type": "record",
        "name": "entry",
        "fields": [
            {"name": "_KIND", "type": "int"},
            {"name": "_PARTITION", "type": "bytes"},
            {"name": "_BUCKET", "type": "int"},
            {
                "name": "_FILE",
                "type": {
                    "type": "record",
                    "name": "file",
                    "fields": [
                        {"name": "_FILE_NAME", "type": "string"},
                        {"name": "_FILE_SIZE", "type": "long"},
                        {"name": "_ROW_COUNT", "type": "long"},
                        {"name": "_LEVEL", "type": "int"},
                        {"name": "_EXTRA_FILES", "type": {"type": "array", "items": "string"}},
                        {"name": "_EXTERNAL_PATH", "type": ["null", "string"]},
                    ],
                },
            },
        ],
    }
)
INDEX = fastavro.parse_schema(
    {
        "type": "record",
        "name": "index",
        "fields": [
            {"name": "_KIND", "type": "int"},
            {"name": "_FILE_NAME", "type": "string"},
            {"name": "_FILE_SIZE", "type": "long"},
        ],
    }
)
Said = dict[str, Any]


class MemoryFiles:
    """Files in memory, as Paimon would lay them out. Implements StoredFiles, and counts what is read.

    `expire_first`: so many times, the oldest snapshot expires once the snapshots were listed.
    """

    def __init__(self, *, expire_first: int = 0) -> None:
        self.contents: dict[str, bytes] = {}
        self.reads: list[str] = []
        self.expire_first = expire_first

    def read(self, path: str) -> bytes | None:
        self.reads.append(path)
        return self.contents.get(path)

    def sizes(self, under: str = "") -> dict[str, int]:
        found = {path: len(content) for path, content in self.contents.items() if path.startswith(under)}
        if under and self.expire_first:
            self.expire_first -= 1
            number = min(int(path.rsplit("-", 1)[1]) for path in found)
            self.contents.pop(f"snapshot/snapshot-{number}")
            self.contents.pop(f"manifest/delta-{number}", None)
        return found

    def avro(self, path: str, schema: Any, records: Sequence[Said]) -> None:
        buffer = io.BytesIO()
        fastavro.writer(buffer, schema, records, codec="zstandard")
        self.contents[path] = buffer.getvalue()

    def manifest(self, name: str, *entries: Said) -> None:
        self.avro(f"manifest/{name}", ENTRY, entries)

    def snapshot(
        self, number: int, *, base: Sequence[str] = (), delta: Sequence[str] = (), **more: Any
    ) -> None:
        """A snapshot, and its two manifest lists with these manifests."""
        for part, names in (("base", base), ("delta", delta)):
            sizes = ((name, len(self.contents[f"manifest/{name}"])) for name in names)
            listed = [{"_FILE_NAME": name, "_FILE_SIZE": size} for name, size in sizes]
            self.avro(f"manifest/{part}-{number}", LISTED, listed)
        said = {
            "schemaId": 0,
            "baseManifestList": f"base-{number}",
            "deltaManifestList": f"delta-{number}",
            "changelogManifestList": None,
        }
        self.contents[f"snapshot/snapshot-{number}"] = json.dumps(said | more).encode()


def said(
    name: str,
    *,
    kind: int = 0,
    level: int = 0,
    rows: int = 3,
    extra: Sequence[str] = (),
    external: str | None = None,
) -> Said:
    file = {"_FILE_NAME": name, "_FILE_SIZE": 100 * rows, "_ROW_COUNT": rows, "_LEVEL": level}
    more = {"_EXTRA_FILES": list(extra), "_EXTERNAL_PATH": external}
    return {"_KIND": kind, "_PARTITION": DAY, "_BUCKET": 1, "_FILE": file | more}


@pytest.fixture
def memory() -> MemoryFiles:
    """Three snapshots: one file, another, and a compaction that lifts the first and rewrites the second.

    The base of the third is one merged manifest.
    """
    files = MemoryFiles()
    files.manifest("m-1", said("a"))
    files.manifest("m-2", said("b"))
    files.manifest("m-12", said("a"), said("b"))
    files.manifest("m-3", said("a", kind=1), said("a", level=5), said("b", kind=1), said("c", level=5))
    files.snapshot(1, delta=["m-1"])
    files.snapshot(2, base=["m-1"], delta=["m-2"])
    files.snapshot(3, base=["m-12"], delta=["m-3"])
    return files


def rows(entries: pa.Table, part: str) -> list[tuple[Any, ...]]:
    return [
        (row["snapshot_id"], row["kind"], row["file"], row["level"])
        for row in entries.to_pylist()
        if row["list"] == part
    ]


def names(entries: pa.Table, part: str, number: int) -> list[str]:
    return [row[2] for row in rows(entries, part) if row[0] == number]


def test_a_delta_is_kept_entry_by_entry(memory: MemoryFiles) -> None:
    entries, _ = read_commits(memory)

    assert ENTRY_SCHEMA == entries.schema
    assert [
        (1, "ADD", "a", 0),
        (2, "ADD", "b", 0),
        (3, "DELETE", "a", 0),
        (3, "ADD", "a", 5),
        (3, "DELETE", "b", 0),
        (3, "ADD", "c", 5),
    ] == rows(entries, "delta")
    first = next(row for row in entries.to_pylist() if row["list"] == "delta")
    assert ("000a", 1, 3, 300) == (first["partition"], first["bucket"], first["rows"], first["size_bytes"])


def test_a_base_is_kept_as_what_changed_since_the_one_before_it(memory: MemoryFiles) -> None:
    entries, _ = read_commits(memory)

    assert [(2, "ADD", "a", 0), (3, "ADD", "b", 0)] == rows(entries, "base")


def test_of_the_first_snapshot_the_whole_base_is_kept(memory: MemoryFiles) -> None:
    del memory.contents["snapshot/snapshot-1"], memory.contents["snapshot/snapshot-2"]

    entries, _ = read_commits(memory)

    assert [(3, "ADD", "a", 0), (3, "ADD", "b", 0)] == rows(entries, "base")


def test_adds_and_deletes_of_merged_manifests_cancel_out(memory: MemoryFiles) -> None:
    memory.manifest("m-123", said("a", level=5), said("c", level=5))
    memory.snapshot(4, base=["m-12", "m-3"])
    memory.snapshot(5, base=["m-123"])

    entries, _ = read_commits(memory)

    assert [
        (4, "ADD", "a", 5),
        (4, "ADD", "c", 5),
        (4, "DELETE", "a", 0),
        (4, "DELETE", "b", 0),
    ] == sorted(row for row in rows(entries, "base") if row[0] >= 4)


def test_a_file_that_a_base_lost_shows_although_its_manifest_is_a_new_one(memory: MemoryFiles) -> None:
    memory.manifest("m-lossy", said("a", level=5))
    memory.snapshot(4, base=["m-12", "m-3"])
    memory.snapshot(5, base=["m-lossy"])

    entries, _ = read_commits(memory)

    assert [(5, "DELETE", "c", 5)] == [row for row in rows(entries, "base") if row[0] == 5]


def test_a_base_that_deletes_what_it_does_not_hold_says_so(memory: MemoryFiles) -> None:
    memory.manifest("m-4", said("x", kind=1))
    memory.snapshot(4, base=["m-12", "m-3", "m-4"])

    entries, _ = read_commits(memory)

    assert (4, "DELETE", "x", 0) in rows(entries, "base")


def test_all_that_a_snapshot_needs_is_named_with_its_size(memory: MemoryFiles) -> None:
    memory.avro(
        "manifest/im-4",
        INDEX,
        [
            {"_KIND": 0, "_FILE_NAME": "index-1", "_FILE_SIZE": 7},
            {"_KIND": 1, "_FILE_NAME": "index-0", "_FILE_SIZE": 7},
        ],
    )
    memory.snapshot(
        4, base=["m-12", "m-3"], indexManifest="im-4", statistics="stat-1", deltaManifestListSize=99
    )

    entries, _ = read_commits(memory)

    needed = {row["file"]: row["size_bytes"] for row in entries.to_pylist() if row["snapshot_id"] == 4}
    size_of = {path: len(content) for path, content in memory.contents.items()}
    assert {
        "snapshot/snapshot-4": None,
        "schema/schema-0": None,
        "statistics/stat-1": None,
        "manifest/im-4": None,
        "index-1": 7,
        "manifest/base-4": None,
        "manifest/delta-4": 99,
        "manifest/m-12": size_of["manifest/m-12"],
        "manifest/m-3": size_of["manifest/m-3"],
    } == {file: size for file, size in needed.items() if file in needed and file not in {"a", "b", "c"}}


def test_a_file_beside_a_data_file_is_an_entry_of_its_own(memory: MemoryFiles) -> None:
    memory.manifest("m-4", said("d", extra=["d.index"]))
    memory.snapshot(4, base=["m-12", "m-3"], delta=["m-4"])

    entries, _ = read_commits(memory)

    assert ["d", "d.index"] == names(entries, "delta", 4)
    assert [0, None] == [entries.to_pylist()[-1][name] for name in ("rows", "size_bytes")]


def test_a_file_outside_of_the_folder_is_refused(memory: MemoryFiles) -> None:
    memory.manifest("m-4", said("d", external="s3://elsewhere/d"))
    memory.snapshot(4, base=["m-12", "m-3"], delta=["m-4"])

    with pytest.raises(ReaderError, match="outside of its table's folder"):
        read_commits(memory)


def test_every_file_is_read_once_and_listed(memory: MemoryFiles) -> None:
    _, files = read_commits(memory)

    assert FILE_SCHEMA == files.schema
    assert {path: len(content) for path, content in memory.contents.items()} == dict(
        zip(files["path"].to_pylist(), files["size_bytes"].to_pylist(), strict=True)
    )
    assert sorted(memory.contents) == sorted(memory.reads)


@pytest.mark.parametrize(
    "path", ["snapshot/snapshot-2", "manifest/base-2", "manifest/m-2", "manifest/delta-2"]
)
@pytest.mark.parametrize("content", [b"", b"null", b"Obj\x01 and then nothing of the kind"])
def test_a_file_that_says_nothing_is_unread_and_still_needed(
    memory: MemoryFiles, path: str, content: bytes
) -> None:
    memory.contents[path] = content

    entries, _ = read_commits(memory)

    assert path in names(entries, "metadata", 2)
    assert [path] == names(entries, "unread", 2)


@pytest.mark.parametrize("cut", range(1, 900, 40))
def test_a_manifest_that_is_cut_short_is_unread(memory: MemoryFiles, cut: int) -> None:
    content = memory.contents["manifest/m-3"]
    memory.contents["manifest/m-3"] = content[: -(1 + cut % len(content))]

    entries, _ = read_commits(memory)

    assert ["manifest/m-3"] == names(entries, "unread", 3)


def test_a_manifest_that_is_gone_is_unread_in_every_snapshot_that_needs_it(memory: MemoryFiles) -> None:
    del memory.contents["manifest/m-1"]

    entries, _ = read_commits(memory)

    assert [(1, "manifest/m-1"), (2, "manifest/m-1")] == [
        (number, file) for number, _, file, _ in rows(entries, "unread")
    ]


def test_a_snapshot_that_expires_meanwhile_is_left_out(memory: MemoryFiles) -> None:
    memory.expire_first = 1

    entries, _ = read_commits(memory)

    assert {2, 3} == set(entries["snapshot_id"].to_pylist())
    assert [] == rows(entries, "unread")
    assert [(2, "ADD", "a", 0), (3, "ADD", "b", 0)] == rows(entries, "base")


def test_snapshots_that_keep_expiring_are_an_error(memory: MemoryFiles) -> None:
    for number in range(4, 12):
        memory.snapshot(number, base=["m-12", "m-3"])
    memory.expire_first = 9

    with pytest.raises(ReaderError, match="expired while they were read"):
        read_commits(memory)


def test_a_table_that_is_not_there_has_no_rows(tmp_path: Path) -> None:
    entries, files = read_commits(FolderFiles(tmp_path / "nowhere"))

    assert (0, 0) == (entries.num_rows, files.num_rows)
    assert (ENTRY_SCHEMA, FILE_SCHEMA) == (entries.schema, files.schema)


def test_a_real_table_is_read(tmp_path: Path) -> None:
    sink = SinkWarehouse(tmp_path)
    sink.insert(("l-1", 1, INSIDE, "2026-07-06"), ("l-2", 2, INSIDE, "2026-07-07"))
    sink.insert(("l-3", 3, INSIDE, "2026-07-06"))
    warehouse = Warehouse(
        path=str(tmp_path), inside="", outside="", credentials=Credentials(user="u", secret="s")
    )

    entries, files = read_commits(stored_files(warehouse, LOG))

    first, second = names(entries, "delta", 1), names(entries, "delta", 2)
    assert (2, 1) == (len(first), len(second))
    assert first == names(entries, "base", 2)
    assert {file.name for file in sink.data_files()} == {*first, *second}
    assert [] == rows(entries, "unread")
    assert set(names(entries, "metadata", 2)) <= set(files["path"].to_pylist())


def test_a_table_in_a_bucket_is_found_under_its_database() -> None:
    warehouse = Warehouse(
        path="s3://warehouse/",
        inside="http://storage:9000",
        outside="http://localhost:1",
        credentials=Credentials(user="u", secret="s"),
    )

    assert isinstance(stored_files(warehouse, LOG), BucketFiles)
