"""A table's files copied to this machine once, so that its snapshots can be read many times.

A snapshot of a table with many buckets is many small files, and a reader asks for parts of each: one read of
48 files took 0.9 s from object storage and 40 ms from a copy (2026-11-30, 2 cores, MinIO beside Flink).
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness.errors import ReaderError
from harness.paimon.stored_files import CONNECTIONS, StoredFiles

_HINTS = ("snapshot/LATEST", "snapshot/EARLIEST")
"""Files that change, and may name a snapshot that was committed after the copy was begun."""


def copy_table(stored: StoredFiles, folder: Path) -> None:
    """Copy all files of a table into `folder`, with every snapshot that was there when it began.

    A file that is gone from storage is not in the copy either, so that who reads the copy misses it just as
    in storage. Raises ReaderError when anything else can't be copied: then the copy is no good.
    """
    # A snapshot is written after all that it refers to: those that are there now, and then what they need.
    snapshots = stored.sizes("snapshot/")
    wanted = {
        path: size
        for path, size in stored.sizes().items()
        if path not in _HINTS and (path in snapshots or not path.startswith("snapshot/"))
    }
    for parent in {(folder / path).parent for path in wanted}:
        parent.mkdir(parents=True, exist_ok=True)

    def fetch(path: str) -> None:
        content = stored.read(path)
        if content is None:
            return  # deleted since it was listed
        if len(content) != wanted[path]:
            raise ReaderError(f"{path} has {len(content)} bytes, and storage listed it with {wanted[path]}")
        (folder / path).write_bytes(content)

    with ThreadPoolExecutor(max_workers=CONNECTIONS, thread_name_prefix="copy") as beside:
        for _ in beside.map(fetch, wanted):
            continue
