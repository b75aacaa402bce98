"""Reading a YAML file so that each problem in it can be told with its line and field."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml
from pydantic import ValidationError

from harness.errors import ScenarioError

Location = tuple[int | str, ...]
SLUG = "a name of lower-case letters and digits with hyphens between them, at most 60"
SIZE_LIMIT_BYTES = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Known:
    """The words that a scenario may use."""

    faults: Collection[str]
    oracles: Collection[str]
    jobs: Collection[str]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that is wrong: the field's place in the file, and a sentence that begins with its name."""

    location: Location
    text: str


@dataclass(frozen=True, kw_only=True)
class Source:
    """A file's mapping, and the marks that lead back to its lines."""

    path: Path
    content: Mapping[str, object]
    root: yaml.Node

    def line(self, location: Location) -> int:
        """The line (from 1) of the field at `location`, or of the nearest part around it that is there."""
        node, line = self.root, self.root.start_mark.line
        for step in location:
            child = _child(node, step)
            if child is None:
                break
            node, line = child
        return line + 1


def read(path: Path) -> Source:
    """Read a file that holds one YAML mapping.

    Raises ScenarioError with file and line when it can't be read, is empty, is not YAML or not a
    mapping, has a key twice, or a key that is no text.
    """
    text = _text(path)
    line = 1
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        content: object = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark else line
        raise _refusal(path, line, f"this is not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise _refusal(path, line, f"this is not YAML that can be read: {error}") from error
    except RecursionError as error:
        raise _refusal(path, line, "this is nested too deeply for a scenario") from error
    if root is None or content is None:
        raise _refusal(path, line, "the file is empty; expected a mapping of fields to values")
    if not isinstance(content, dict):
        raise _refusal(
            path,
            root.start_mark.line + 1,
            f"expected a mapping of fields to values, got {_kind(content)}",
        )
    for mark, complaint in _bad_keys(root, set()):
        raise _refusal(path, mark.line + 1, complaint)
    return Source(path=path, content=content, root=root)


def nearest(word: str, known: Collection[str]) -> str:
    """ ", did you mean 'x'?" when some known word is near, else nothing."""
    near = difflib.get_close_matches(word, list(known), n=1, cutoff=0.5)
    near = near or [name for name in known if word and name.startswith(word)]
    return f", did you mean {near[0]!r}" if near else ""


def problems(
    error: ValidationError, content: Mapping[str, object], fields: Mapping[str, Collection[str]]
) -> tuple[Problem, ...]:
    """What pydantic found, in the words of the file: one problem per field, the field's name first.

    `fields` gives the valid fields at the top ("") and in each part by the part's name.
    """
    found: dict[Location, Problem] = {}
    for item in error.errors(include_url=False):
        location = tuple(item["loc"])
        value = _value(content, location)
        text = _sentence(item["type"], item["msg"], item.get("ctx", {}), location, value, fields)
        if item["type"] in WHOLE:
            location, name = WHOLE[item["type"]], ""
        else:
            name = _dotted(location) + ": " if location else ""
        shown = "" if item["type"] in SAYS_IT_ALL else f", got {_brief(value)}"
        found.setdefault(location, Problem(location=location, text=f"{name}{text}{shown}"))
    return tuple(found.values())


WHOLE: dict[str, Location] = {
    "flat_out": ("workload", "rate"),
    "load_order": ("faults",),
    "startup_jobs": ("startup",),
    "no_load": ("faults",),
    "no_bulk": ("faults",),
}
"""Problems of the scenario as a whole, and the field at which each is told."""

SAYS_IT_ALL = ("missing", "extra_forbidden", "literal_error", "unknown_word", "oracles", "jobs", *WHOLE)
EXPECTED = {
    "int_type": "expected a whole number",
    "int_parsing": "expected a whole number",
    "int_from_float": "expected a whole number",
    "string_type": "expected a text",
    "string_pattern_mismatch": f"expected {SLUG}",
    "string_too_long": f"expected {SLUG}",
    "tuple_type": "expected a list",
    "dict_type": "expected a mapping of fields to values",
    "model_type": "expected a mapping of fields to values",
    "model_attributes_type": "expected a mapping of fields to values",
}


def _sentence(
    kind: str,
    message: str,
    context: Mapping[str, object],
    location: Location,
    value: object,
    fields: Mapping[str, Collection[str]],
) -> str:
    if kind == "missing":
        return "this field is missing"
    if kind == "extra_forbidden":
        part = fields[str(location[0]) if len(location) > 1 else ""]
        return f"unknown field{nearest(str(location[-1]), part)}; fields here are: {', '.join(part)}"
    if kind == "literal_error":
        words = str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
        return f"expected one of {', '.join(words)}, got {_brief(value)}{nearest(str(value), words)}"
    for bound, phrase in (("ge", "at least"), ("gt", "more than"), ("le", "at most"), ("lt", "less than")):
        if bound in context:
            return f"expected {phrase} {context[bound]}"
    return EXPECTED.get(kind, message)


def _text(path: Path) -> str:
    try:
        if path.is_dir():
            raise _refusal(path, 0, "this is a directory; expected a scenario file")
        with path.open("rb") as file:
            content = file.read(SIZE_LIMIT_BYTES + 1)
    except FileNotFoundError as error:
        raise _refusal(path, 0, "there is no such file") from error
    except (OSError, ValueError) as error:
        raise _refusal(path, 0, f"the file can't be read: {error}") from error
    if len(content) > SIZE_LIMIT_BYTES:
        raise _refusal(path, 0, f"the file is larger than {SIZE_LIMIT_BYTES} bytes; no scenario is")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise _refusal(path, line, "this is not UTF-8 text; expected YAML") from error


def _refusal(path: Path, line: int, complaint: str) -> ScenarioError:
    where = f"{path}:{line}" if line else str(path)
    return ScenarioError(
        f"{where}: {complaint}", todo="give a scenario file; `harness run --help` lists the built-in ones"
    )


def _child(node: yaml.Node, step: int | str) -> tuple[yaml.Node, int] | None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return value, key.start_mark.line
    if isinstance(node, yaml.SequenceNode) and isinstance(step, int) and step < len(node.value):
        return node.value[step], node.value[step].start_mark.line
    return None


def _bad_keys(node: yaml.Node, seen: set[int]) -> Iterator[tuple[yaml.Mark, str]]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        names: set[str] = set()
        for key, value in node.value:
            if key.tag != "tag:yaml.org,2002:str":
                yield key.start_mark, f"expected the name of a field, got {_brief(key.value)}"
            elif key.value in names:
                yield key.start_mark, f"{key.value}: this field is given twice"
            names.add(str(key.value))
            yield from _bad_keys(value, seen)
    if isinstance(node, yaml.SequenceNode):
        for value in node.value:
            yield from _bad_keys(value, seen)


def _dotted(location: Location) -> str:
    text = ""
    for step in location:
        text += f"[{step}]" if isinstance(step, int) else f".{step}"
    return text.removeprefix(".")


def _value(content: object, location: Location) -> object:
    for step in location:
        if isinstance(content, Mapping):
            content = content.get(step)
        elif isinstance(content, list | tuple) and isinstance(step, int):
            content = content[step]
    return content


def _kind(value: object) -> str:
    return "a list" if isinstance(value, list) else f"the single value {_brief(value)}"


def _brief(value: object) -> str:
    if value is None:
        return "nothing (null)"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
