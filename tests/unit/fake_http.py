"""A transport for `requests` that answers from a dict, and notes what was asked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import requests
from requests.adapters import BaseAdapter

from harness.model import Address

ADDRESS = Address(host="flink", port=8081)


class FakeHttp(BaseAdapter):
    """Answers `METHOD path` (the path with its query) with a JSON value, or as `answer` says.

    A list is a series of answers, of which the last stays. An exception is raised.
    """

    def __init__(self, answers: Mapping[str, Any]) -> None:
        super().__init__()
        self.answers = dict(answers)
        self.asked: list[str] = []
        self.bodies: list[Any] = []

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:  # type: ignore[override]
        asked = f"{request.method} {request.path_url}"
        self.asked.append(asked)
        self.bodies.append(json.loads(request.body) if request.body else None)
        value = self.answers.get(asked, answer(404, {"errors": [f"Not found: {request.path_url}"]}))
        if isinstance(value, Series):
            value = value.next()
        if isinstance(value, Exception):
            raise value
        made = value if isinstance(value, requests.Response) else answer(200, value)
        made.request, made.url = request, request.url or ""
        return made

    def close(self) -> None:
        """There is nothing to close."""

    def session(self) -> requests.Session:
        """A session on which this is the only transport."""
        made = requests.Session()
        made.mount("http://", self)
        return made


class Series:
    """Answers one after the other; the last one stays."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    def next(self) -> Any:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


def answer(status: int, body: Any) -> requests.Response:
    """A response; a body that is a text is sent as it is, else as JSON."""
    made = requests.Response()
    made.status_code = status
    made.encoding = "utf-8"
    made._content = (body if isinstance(body, str) else json.dumps(body)).encode()
    return made
