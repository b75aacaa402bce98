"""Secrets in texts: found by the names beside them and by their own form, and replaced by ***.

What stands in for a secret keeps the text readable: the name stays, the value goes.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass

MASK = "***"

_NAME = (
    r"(?:secret|passw(?:or)?d|passphrase|[a-z]_pwd|credentials?(?![\w.\-]*provider)"
    r"|(?:access|api|private|account)[-_.]?key|(?:auth|access|session|security|sas)[-_.]?token)"
    r"[\w.\-]{0,40}"
)
_NAMED = re.compile(_NAME, re.IGNORECASE)
_BARE = r"[^\s,;'\"&)}\]<>\\]+"
_VALUE = (
    r"(?:(?P<quote>\\+[\"'])(?P<escaped>.*?)(?P=quote)"
    r"|\"(?P<double>(?:\\.|\"\"|[^\"\\\n])*)\"|'(?P<single>(?:\\.|''|[^'\\\n])*)'"
    rf"|(?P<bare>{_BARE})|[\"'](?P<unfinished>[^\n]+))"
)
_PARTS = ("escaped", "double", "single", "bare", "unfinished")
_BESIDE_NAME = (
    # name = value, name: "value", 'name' => 'value', \"name\": \"value\"
    re.compile(rf"(?P<head>{_NAME}\\*[\"']?\s*(?:=>|=|:)\s*){_VALUE}", re.IGNORECASE),
    # Flink's log of its configuration: "property: name, value"
    re.compile(rf"(?P<head>property: [\w.\-]*{_NAME}, ){_VALUE}", re.IGNORECASE),
    # --password value
    re.compile(rf"(?P<head>--[\w\-]*{_NAME}\s+){_VALUE}", re.IGNORECASE),
    # SQL
    re.compile(
        rf"(?P<head>IDENTIFIED\s+(?:WITH\s+\S+\s+)?(?:BY|AS)\s+(?:PASSWORD\s+)?){_VALUE}", re.IGNORECASE
    ),
    re.compile(
        rf"(?P<head>Authorization\\*[\"']?\s*[=:]\s*\\*[\"']?(?:Basic|Bearer)\s+){_VALUE}", re.IGNORECASE
    ),
    re.compile(rf"(?P<head>Signature=){_VALUE}"),
)
_BY_FORM = (
    # scheme://user:password@host and https://token@host
    re.compile(r"(?P<head>\b[a-z][a-z0-9+.\-]*://[^/\s:@'\"]*:)(?P<bare>[^/@\s'\"]+)(?=@)", re.IGNORECASE),
    re.compile(r"(?P<head>\bhttps?://)(?P<bare>[^/\s:@'\"]{8,})(?=@)", re.IGNORECASE),
    # Access keys of AWS, and what a stack of ours makes for its storage and for its CDC user
    re.compile(r"(?P<head>)(?P<bare>\b(?:AKIA|ASIA|AROA|AIDA|AGPA|ANPA)[A-Z0-9]{16}\b)"),
    re.compile(r"(?P<head>)(?P<bare>\bharness[0-9a-f]{8}\b)"),
    re.compile(r"(?P<head>)(?P<bare>\bcdc-\d{8}-\d{6}-[a-z0-9\-]+)"),
)
_PATTERNS = (*_BESIDE_NAME, *_BY_FORM)
_PRIVATE_KEY = re.compile(
    r"(?P<head>-----BEGIN [A-Z ]*PRIVATE KEY-----)(?P<bare>.*?)(?=-----END [A-Z ]*PRIVATE KEY-----)",
    re.DOTALL,
)
_HINTS = (
    *("secret", "passw", "passphrase", "_pwd", "credential", "key", "token", "identified", "authorization"),
    *("signature=", "://", "akia", "asia", "aroa", "aida", "agpa", "anpa", "harness", "cdc-"),
)
"""Each pattern needs one of these in its line: looking for them first makes large logs quick."""

_NO_SECRET = re.compile(r"\*+|yes|no|true|false|null|none|\$\{[^}]*\}?|", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Redacted:
    """A text without its secrets, and how many places were changed."""

    text: str
    places: int


def is_secret(name: str) -> bool:
    """Whether a setting of this name holds a secret, as s3.secret-key or MYSQL_ROOT_PASSWORD do."""
    return bool(_NAMED.search(name))


def secrets_in(text: str) -> frozenset[str]:
    """The values in a text that are secrets wherever they stand: long, and no plain word."""
    lines = [line for line in text.splitlines() if _may_hold_one(line)]
    matches = (match for line in lines for pattern in _PATTERNS for match in pattern.finditer(line))
    found = (_value(match) for match in matches)
    return frozenset(
        value
        for value in found
        if len(value) >= 8 and not value.isalpha() and not _NO_SECRET.fullmatch(value)
    )


def secrets_of_settings(text: str) -> frozenset[str]:
    """The values that a JSON text gives to secret names, also as pairs of `key` and `value`."""
    return frozenset(value for value in _named_values(json.loads(text)) if not _NO_SECRET.fullmatch(value))


def redact(text: str, *, known: Iterable[str] = ()) -> Redacted:
    """The text without the `known` secrets, in their HTML and JSON spelling too, and without those found."""
    places = 0
    # The longest first, since one secret may begin with another.
    for secret in sorted({form for item in known for form in _spellings(item)}, key=len, reverse=True):
        places += text.count(secret)
        text = text.replace(secret, MASK)

    def masked(match: re.Match[str]) -> str:
        nonlocal places
        value = _value(match)
        if _NO_SECRET.fullmatch(value):
            return match.group()
        places += 1
        whole = match.group().removeprefix(match["head"])
        return match["head"] + whole.replace(value, MASK)

    lines = _PRIVATE_KEY.sub(masked, text).splitlines(keepends=True)
    for number, line in enumerate(lines):
        if _may_hold_one(line):
            for pattern in _PATTERNS:
                line = pattern.sub(masked, line)
            lines[number] = line
    return Redacted(text="".join(lines), places=places)


def redact_json(text: str, *, known: Iterable[str] = ()) -> Redacted:
    """The same for a JSON text, value by value, so that it stays JSON. Raises ValueError when it is none."""
    known = tuple(known)
    places = 0

    def masked(value: object) -> object:
        nonlocal places
        if isinstance(value, str):
            done = redact(value, known=known)
            places += done.places
            return done.text
        if isinstance(value, list):
            return [masked(item) for item in value]
        if isinstance(value, dict):
            return {name: hidden(name, item, value) for name, item in value.items()}
        return value

    def hidden(name: str, item: object, among: dict[str, object]) -> object:
        nonlocal places
        secret = is_secret(name) or (name == "value" and is_secret(str(among.get("key", ""))))
        if secret and isinstance(item, str) and not _NO_SECRET.fullmatch(item):
            places += 1
            return MASK
        return masked(item)

    content = masked(json.loads(text))
    return Redacted(text=json.dumps(content, indent=2, ensure_ascii=False) + "\n", places=places)


def _named_values(content: object) -> Iterable[str]:
    if isinstance(content, list):
        for item in content:
            yield from _named_values(item)
    elif isinstance(content, dict):
        if is_secret(str(content.get("key", ""))) and isinstance(content.get("value"), str):
            yield content["value"]
        for name, item in content.items():
            if isinstance(item, str) and is_secret(name):
                yield item
            else:
                yield from _named_values(item)


def _may_hold_one(line: str) -> bool:
    lowered = line.lower()
    return any(hint in lowered for hint in _HINTS)


def _value(match: re.Match[str]) -> str:
    groups = match.groupdict()
    return next((groups[part] for part in _PARTS if groups.get(part)), "")


def _spellings(secret: str) -> tuple[str, ...]:
    return (
        secret,
        html.escape(secret),
        json.dumps(secret)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
    )
