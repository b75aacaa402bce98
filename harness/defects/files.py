"""The Parquet files of a copy of a run's evidence: the copy is links; a file is replaced, not written to."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from harness.model import Evidence


def copied(source: Path, folder: Path) -> None:
    """Make `folder` a copy of a folder of evidence that costs nothing: a link to each of its files."""
    for file in source.iterdir():
        if file.is_file():
            (folder / file.name).symlink_to(file.resolve())


def read(evidence: Evidence, name: str) -> pa.Table:
    """The rows of a file of the evidence."""
    return pq.read_table(Path(evidence.folder) / name)


def write(evidence: Evidence, name: str, rows: pa.Table) -> None:
    """Put a file in the place of a link: what the link leads to, the run's own evidence, stays as it is."""
    path = Path(evidence.folder) / name
    new = path.with_name(f"{name}.new")
    pq.write_table(rows, new)
    new.replace(path)


def remove(evidence: Evidence, name: str) -> None:
    """Take a file out of the copy."""
    (Path(evidence.folder) / name).unlink()
