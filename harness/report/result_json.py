"""result.json: a run's result as JSON, and back. docs/result.schema.json describes it.

`python -m harness.report.result_json > docs/result.schema.json` writes the schema anew.
"""

from __future__ import annotations

import sys
from pathlib import Path

from harness.model import RunResult
from harness.record import Record

NAME = "result.json"
SCHEMA_VERSION = 3

_RECORD = Record(RunResult, version=SCHEMA_VERSION, what="the result of a run")


def save(result: RunResult, folder: Path) -> Path:
    """Write result.json into the run's folder and return its path.

    Raises ValueError when the result has another schema_version than SCHEMA_VERSION.
    """
    if result.schema_version != SCHEMA_VERSION:
        raise ValueError(f"result of schema_version {result.schema_version}, expected {SCHEMA_VERSION}")
    path = folder / NAME
    _RECORD.write(result, path)
    return path


def load(folder: Path) -> RunResult:
    """The result in the run's folder. Raises UsageError: none there, malformed, unknown version."""
    return _RECORD.read(folder / NAME)


def schema() -> str:
    """The JSON Schema of result.json, as it is committed in docs/result.schema.json."""
    return _RECORD.schema()


if __name__ == "__main__":
    sys.stdout.write(schema())
