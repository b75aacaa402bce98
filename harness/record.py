"""Frozen dataclasses as JSON text with a version, and back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from harness.errors import UsageError

Data = TypeVar("Data")


class Record(Generic[Data]):
    """The JSON form of one kind of data: an object that holds `schema_version` among its keys."""

    def __init__(self, form: type[Data], *, version: int, what: str) -> None:
        self._adapter = TypeAdapter(form)
        self._version = version
        self._what = what

    def text(self, data: Data) -> str:
        """`data` as indented JSON that ends with a line feed; what UTF-8 does not take becomes "?"."""
        content = self._adapter.dump_python(data, mode="json")
        text = json.dumps(content, indent=2, ensure_ascii=False)
        return text.encode("utf-8", errors="replace").decode() + "\n"

    def write(self, data: Data, path: Path) -> None:
        """Write `data` to `path` at once: a reader sees the old file or the whole new one."""
        partial = path.with_name(path.name + ".partial")
        partial.write_text(self.text(data), encoding="utf-8")
        partial.replace(path)

    def parse(self, text: str, *, where: str) -> Data:
        """The data that `text` holds. Raises UsageError when it is no JSON, of another version or shape."""
        try:
            content: object = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise UsageError(
                f"{where}: expected {self._what} as JSON; {error}", todo="give a file that the harness wrote"
            ) from error
        actual = content.get("schema_version") if isinstance(content, dict) else None
        if actual != self._version or isinstance(actual, bool):
            raise UsageError(
                f"{where}: expected {self._what} with schema_version {self._version}, got {actual!r}",
                todo="read it with the version of the harness that wrote it",
            )
        try:
            return self._adapter.validate_json(text, strict=True)
        except ValidationError as error:
            raise UsageError(
                f"{where}: not {self._what} of schema_version {self._version}: {error}",
                todo="give a file that the harness wrote",
            ) from error

    def read(self, path: Path) -> Data:
        """The data in the file `path`. Raises UsageError, also when the file can't be read."""
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{path}: expected {self._what}; the file can't be read: {error}",
                todo="give the folder of a run, as in reports/",
            ) from error
        return self.parse(text, where=str(path))

    def schema(self) -> str:
        """The JSON Schema (2020-12) of what `text` writes, as indented JSON that ends with a line feed."""
        content = self._adapter.json_schema(mode="serialization")
        content = {"$schema": "https://json-schema.org/draft/2020-12/schema", **content}
        content["properties"]["schema_version"]["const"] = self._version
        return json.dumps(content, indent=2, ensure_ascii=False) + "\n"
