"""A run as one file to attach to a ticket: no larger than asked for, without secrets, the same each time."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.errors import UsageError
from harness.redaction import Redacted, redact, redact_json, secrets_in, secrets_of_settings

MANIFEST = "MANIFEST.json"
EXPECTED = ("result.json", "report.html", "summary.md", "junit.xml", "events.jsonl", "evidence/evidence.json")
LOG_BYTES = (256 * 1024, 16 * 1024)
"""What is left of a log, half of it its head and half its tail, when the bundle is too large."""

_JSON = (".json",)
_REPORTS = (".html", ".md", ".xml", ".svg")
_TEXTS = (".jsonl", ".log", ".txt", ".yaml", ".yml", ".sql", *_REPORTS)
_ROWS = ".parquet"


@dataclass(frozen=True, kw_only=True)
class Member:
    """A file of the bundle, and the file of the run that it was made from (size in bytes, sha256)."""

    name: str
    content: bytes
    original_bytes: int
    original_sha256: str
    redacted: int = 0
    shortened: bool = False


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """A file of the run that is not in the bundle."""

    name: str
    size_bytes: int
    sha256: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Bundle:
    """A bundle that was written. `missing` names files that a whole run has and this one does not."""

    file: Path
    size_bytes: int
    members: tuple[Member, ...]
    left_out: tuple[LeftOut, ...]
    missing: tuple[str, ...]

    @property
    def redacted(self) -> int:
        """How many places held a secret."""
        return sum(member.redacted for member in self.members)


def write(folder: Path, file: Path, *, max_bytes: int) -> Bundle:
    """Pack a run's folder into `file`, at most `max_bytes` long.

    What is too large is made smaller in this order: logs lose their middle, then the largest Parquet
    files stay out; MANIFEST.json says so. Raises UsageError when there is no run, or it can't be
    made that small.
    """
    members, foreign = _collect(folder)
    missing = tuple(name for name in EXPECTED if name not in {member.name for member in members})
    if len(missing) == len(EXPECTED):
        raise UsageError(f"{folder}: nothing of a run is there", todo="give the folder of a run")
    packed = b""
    for kept, dropped in _smaller_and_smaller(members, max_bytes):
        left_out = (*foreign, *dropped)
        packed = _packed(folder.resolve().name, kept, left_out, missing)
        if len(packed) <= max_bytes:
            partial = file.with_name(f"{file.name}.partial")
            partial.write_bytes(packed)
            partial.replace(file)
            return Bundle(file=file, size_bytes=len(packed), members=kept, left_out=left_out, missing=missing)
    raise UsageError(
        f"{folder}: the bundle has {len(packed):,} bytes with its logs cut and without any rows; "
        f"expected at most {max_bytes:,}",
        todo="give a larger --max-mb",
    )


def _collect(folder: Path) -> tuple[tuple[Member, ...], tuple[LeftOut, ...]]:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    contents = {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}
    named = _secrets_of_settings(contents)
    known = {secret for name in contents if _is_text(name) for secret in secrets_in(_text(contents[name]))}
    known |= {secret for secret in named if len(secret) >= 8}
    members, foreign = [], []
    for name, content in contents.items():
        digest = hashlib.sha256(content).hexdigest()
        if not _is_text(name) and not name.endswith(_ROWS):
            why = "not known to be free of secrets"
            foreign.append(LeftOut(name=name, size_bytes=len(content), sha256=digest, why=why))
            continue
        member = Member(name=name, content=content, original_bytes=len(content), original_sha256=digest)
        members.append(_without_secrets(member, known, named) if _is_text(name) else member)
    return tuple(members), tuple(foreign)


def _without_secrets(member: Member, known: set[str], named: set[str]) -> Member:
    text = _text(member.content)
    # A rendered report shows settings too, far from their names; other files may hold a short one by chance.
    everywhere = (
        known | {item for item in named if len(item) >= 4} if member.name.endswith(_REPORTS) else known
    )
    done = _redacted_json(text, known) if member.name.endswith(_JSON) else redact(text, known=everywhere)
    if not done.places:
        return member
    return replace(member, content=done.text.encode("utf-8", errors="surrogateescape"), redacted=done.places)


def _redacted_json(text: str, known: set[str]) -> Redacted:
    try:
        return redact_json(text, known=known)
    except (ValueError, RecursionError):
        return redact(text, known=known)  # broken off while it was written


def _secrets_of_settings(contents: dict[str, bytes]) -> set[str]:
    found: set[str] = set()
    for name, content in contents.items():
        if name.endswith(_JSON):
            try:
                found |= secrets_of_settings(_text(content))
            except (ValueError, RecursionError):
                continue  # broken off; its text is still searched
    return found


def _smaller_and_smaller(
    members: Sequence[Member], max_bytes: int
) -> Iterator[tuple[tuple[Member, ...], tuple[LeftOut, ...]]]:
    """What to pack and what to leave out, each time less."""
    yield tuple(members), ()
    kept = tuple(members)
    for log_bytes in LOG_BYTES:
        kept = tuple(_shortened(member, log_bytes) for member in members)
        yield kept, ()
    rows = sorted(
        (member for member in kept if member.name.endswith(_ROWS)),
        key=lambda member: (-len(member.content), member.name),
    )
    dropped: list[LeftOut] = []
    sizes = {member.name: len(zlib.compress(member.content)) for member in kept}
    for largest in rows:
        kept = tuple(member for member in kept if member is not largest)
        dropped.append(
            LeftOut(
                name=largest.name,
                size_bytes=largest.original_bytes,
                sha256=largest.original_sha256,
                why=f"the bundle would be larger than {max_bytes:,} bytes",
            )
        )
        # Packing is slow: not before it can be enough, but always once nothing is left to drop.
        if sum(sizes[member.name] for member in kept) <= max_bytes or largest is rows[-1]:
            yield kept, tuple(dropped)


def _shortened(member: Member, to_bytes: int) -> Member:
    """A log without its middle, cut between lines where it can be; other files as they are."""
    content = member.content
    if not member.name.endswith((".log", ".txt")) or len(content) <= to_bytes:
        return member
    head, tail = content[: to_bytes // 2], content[-(to_bytes // 2) :]
    head = head[: head.rfind(b"\n") + 1] or head
    tail = tail[tail.find(b"\n") + 1 :] or tail
    gap = f"\n… {len(content) - len(head) - len(tail):,} bytes left out here to make the bundle smaller …\n\n"
    return replace(member, content=head + gap.encode() + tail, shortened=True)


def _packed(
    run: str, members: Sequence[Member], left_out: Sequence[LeftOut], missing: Sequence[str]
) -> bytes:
    manifest = {
        "schema_version": 1,
        "run": run,
        "files": [
            {
                "name": member.name,
                "bytes": len(member.content),
                "sha256": hashlib.sha256(member.content).hexdigest(),
                "original_bytes": member.original_bytes,
                # Not of a file that held a secret: a short one could be found by trying.
                "original_sha256": "" if member.redacted else member.original_sha256,
                "shortened": member.shortened,
                "redacted": member.redacted,
            }
            for member in members
        ],
        "left_out": [
            {"name": item.name, "bytes": item.size_bytes, "sha256": item.sha256, "why": item.why}
            for item in left_out
        ],
        "missing": list(missing),
    }
    entries = [(MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())]
    entries += [(member.name, member.content) for member in members]
    archive = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=archive, mode="wb", compresslevel=6, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, content in sorted(entries):
            info = tarfile.TarInfo(f"{run}/{name}")  # its owner, time and mode are the same everywhere
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return archive.getvalue()


def _is_text(name: str) -> bool:
    return name.endswith((*_JSON, *_TEXTS))


def _text(content: bytes) -> str:
    return content.decode("utf-8", errors="surrogateescape")
