"""The commit log: what a table's snapshot and manifest files say, read without Paimon.

Independent of both readers of the sink: the files are JSON and Avro. Each is read once, since Paimon never
changes one. Where files are gone, the rest is read.
Source: Paimon 1.3 docs, "Concepts / Spec" (snapshot, manifest, file index).
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, TypeVar

import fastavro
import pyarrow as pa
from backports.zstd import ZstdError

from harness.commits import (
    ADD,
    BASE,
    CHANGELOG,
    DELETE,
    DELTA,
    ENTRY_SCHEMA,
    FILE_SCHEMA,
    METADATA,
    UNREAD,
)
from harness.errors import ReaderError
from harness.paimon.stored_files import CONNECTIONS, StoredFiles

_SNAPSHOT = re.compile(r"snapshot/snapshot-(\d+)")
_TRIES = 3
# What fastavro raises of bytes that are no Avro file, one by one: a cut file, flipped bits.
_NO_AVRO = (ValueError, LookupError, EOFError, TypeError, ZstdError, fastavro.schema.SchemaParseException)

Parsed = TypeVar("Parsed")


class _File(NamedTuple):
    """A file as manifests know it; the same one only when all of this is the same."""

    partition: str
    bucket: int
    level: int
    name: str
    rows: int
    size_bytes: int | None


class _Entry(NamedTuple):
    kind: str
    file: _File


_Sized: TypeAlias = tuple[tuple[str, int], ...]
"""Files that another file names, and their sizes."""


@dataclass(frozen=True, kw_only=True)
class _Snapshot:
    """What a snapshot file names; `lists` by what ENTRY_SCHEMA calls them, with their sizes."""

    schema_id: int
    lists: dict[str, tuple[str, int | None]]
    index_manifest: str
    statistics: str


def read_commits(stored: StoredFiles) -> tuple[pa.Table, pa.Table]:
    """Every snapshot's entries (ENTRY_SCHEMA) and every file (FILE_SCHEMA) of a table, in this order.

    Both are without rows when there is no snapshot. Files that are gone are evidence and are said in the
    entries. Raises ReaderError when storage does not answer, or old snapshots keep expiring meanwhile.
    """
    reader = _Reader(stored)
    for _ in range(_TRIES):
        before = _snapshot_ids(stored)
        entries = reader.entries(before)
        sizes = stored.sizes()
        # An expiry takes the files first: what was not found may have been of an expired snapshot.
        if set(before) <= set(_snapshot_ids(stored)):
            return entries, pa.table([list(sizes), list(sizes.values())], schema=FILE_SCHEMA)
    raise ReaderError(f"snapshots expired while they were read, {_TRIES} times in a row")


def _snapshot_ids(stored: StoredFiles) -> list[int]:
    found = (_SNAPSHOT.fullmatch(path) for path in stored.sizes("snapshot/"))
    return sorted(int(match[1]) for match in found if match)


class _Reader:
    """Reads files and remembers what they say, so that a try after the first reads only what is new."""

    def __init__(self, stored: StoredFiles) -> None:
        self._stored = stored
        self._parsed: dict[str, Any] = {}

    def entries(self, ids: Sequence[int]) -> pa.Table:
        """All rows of these snapshots."""
        snapshots = {number: f"snapshot/snapshot-{number}" for number in ids}
        read = self._read(snapshots.values(), _snapshot)
        lists = self._read(
            {path for found in read.values() for path, _ in found.lists.values()}, _manifest_list
        )
        manifests = self._read({name for found in lists.values() for name, _ in found}, _manifest)
        indexes = self._read(
            {found.index_manifest for found in read.values() if found.index_manifest}, _index_manifest
        )
        rows = _Rows(lists, manifests, indexes)
        for number, path in snapshots.items():
            rows.add(number, path, read.get(path))
        return rows.table()

    def _read(self, paths: Iterable[str], parse: Callable[[bytes], Parsed]) -> dict[str, Parsed]:
        """What each file says; those that are gone or say nothing are left out."""
        wanted = list(paths)
        unknown = [path for path in wanted if path not in self._parsed]
        with ThreadPoolExecutor(CONNECTIONS) as pool:
            contents = pool.map(self._stored.read, unknown)
            for path, content in zip(unknown, contents, strict=True):
                try:
                    self._parsed[path] = None if content is None else parse(content)
                except _NO_AVRO:
                    self._parsed[path] = None
        found = {path: self._parsed[path] for path in wanted if self._parsed[path] is not None}
        for path in unknown:
            if self._parsed[path] is None:
                del self._parsed[path]
        return found


class _Rows:
    """The rows of the entries' file in the making, snapshot by snapshot."""

    def __init__(
        self,
        lists: dict[str, _Sized],
        manifests: dict[str, tuple[_Entry, ...]],
        indexes: dict[str, _Sized],
    ) -> None:
        self._lists = lists
        self._manifests = manifests
        self._indexes = indexes
        self._base: Counter[str] = Counter()
        self._rows: list[tuple[Any, ...]] = []

    def add(self, number: int, path: str, snapshot: _Snapshot | None) -> None:
        """All rows of one snapshot; the one before it was added before."""
        self._needs(number, path, None, known=snapshot is not None)
        if snapshot is None:
            return
        self._needs(number, f"schema/schema-{snapshot.schema_id}", None)
        if snapshot.statistics:
            self._needs(number, snapshot.statistics, None)
        if snapshot.index_manifest:
            found = self._indexes.get(snapshot.index_manifest)
            self._needs(number, snapshot.index_manifest, None, known=found is not None)
            for name, size_bytes in found or ():
                self._needs(number, name, size_bytes)
        for kind, (name, size) in snapshot.lists.items():
            listed = self._lists.get(name)
            self._needs(number, name, size, known=listed is not None)
            for manifest, size_bytes in listed or ():
                self._needs(number, manifest, size_bytes, known=manifest in self._manifests)
            names = [manifest for manifest, _ in listed or ()]
            if kind == BASE:
                self._add_base(number, Counter(names))
            else:
                self._add_all(
                    number, kind, (entry for name in names for entry in self._manifests.get(name, ()))
                )

    def table(self) -> pa.Table:
        columns = zip(*self._rows, strict=True) if self._rows else [[] for _ in ENTRY_SCHEMA]
        arrays = [pa.array(values, field.type) for values, field in zip(columns, ENTRY_SCHEMA, strict=True)]
        return pa.table(arrays, schema=ENTRY_SCHEMA)

    def _add_base(self, number: int, manifests: Counter[str]) -> None:
        """How the base differs from the one before: only what manifests that came or went say."""
        net: Counter[_File] = Counter()
        for changed, sign in ((manifests - self._base, 1), (self._base - manifests, -1)):
            for name in changed.elements():
                for kind, file in self._manifests.get(name, ()):
                    net[file] += sign if kind == ADD else -sign
        self._base = manifests
        for file, count in net.items():
            kind = ADD if count > 0 else DELETE
            self._add_all(number, BASE, [_Entry(kind, file)] * abs(count))

    def _add_all(self, number: int, part: str, entries: Iterable[_Entry]) -> None:
        self._rows += [(number, part, kind, *file) for kind, file in entries]

    def _needs(self, number: int, path: str, size_bytes: int | None, *, known: bool = True) -> None:
        row = (number, METADATA, ADD, None, None, None, path, None, size_bytes)
        self._rows.append(row)
        if not known:
            self._rows.append((number, UNREAD, *row[2:]))


def _snapshot(content: bytes) -> _Snapshot:
    said = json.loads(content)
    schema_id = int(said["schemaId"])
    parts = [BASE, DELTA, CHANGELOG] if said.get("changelogManifestList") else [BASE, DELTA]
    index, statistics = said.get("indexManifest"), said.get("statistics")
    return _Snapshot(
        schema_id=schema_id,
        lists={
            part: (f"manifest/{said[f'{part}ManifestList']}", said.get(f"{part}ManifestListSize"))
            for part in parts
        },
        index_manifest=f"manifest/{index}" if index else "",
        statistics=f"statistics/{statistics}" if statistics else "",
    )


def _manifest_list(content: bytes) -> _Sized:
    return tuple((f"manifest/{record['_FILE_NAME']}", record["_FILE_SIZE"]) for record in _records(content))


def _manifest(content: bytes) -> tuple[_Entry, ...]:
    entries = []
    for record in _records(content):
        file = record["_FILE"]
        if file.get("_EXTERNAL_PATH"):
            raise ReaderError(
                f"{file['_FILE_NAME']} is stored outside of its table's folder, which is not looked into",
                todo="run the table without data-file.external-paths",
            )
        kind = (ADD, DELETE)[record["_KIND"]]
        place = (record["_PARTITION"].hex(), record["_BUCKET"], file["_LEVEL"])
        entries.append(
            _Entry(kind, _File(*place, file["_FILE_NAME"], file["_ROW_COUNT"], file["_FILE_SIZE"]))
        )
        entries += [_Entry(kind, _File(*place, name, 0, None)) for name in file.get("_EXTRA_FILES") or ()]
    return tuple(entries)


def _index_manifest(content: bytes) -> _Sized:
    added = [record for record in _records(content) if record["_KIND"] == 0]
    return tuple((record["_FILE_NAME"], record["_FILE_SIZE"]) for record in added)


def _records(content: bytes) -> Iterable[dict[str, Any]]:
    return fastavro.reader(io.BytesIO(content))  # type: ignore[return-value]  # records are dictionaries
