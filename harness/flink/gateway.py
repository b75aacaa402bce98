"""The SQL gateway's REST API: sessions and statements.

Source: Flink 1.20 docs, "SQL Gateway / REST Endpoint" (v3).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import requests

from harness.errors import FlinkError, FlinkUnreachable, SqlError
from harness.model import Address
from harness.waiting import wait_until


@dataclass(frozen=True, kw_only=True)
class StatementResult:
    """Rows in the order they came, values as JSON gives them; the job's id if one was submitted."""

    rows: tuple[tuple[object, ...], ...]
    job_id: str


class SqlGateway:
    """A client of one SQL gateway."""

    def __init__(self, address: Callable[[], Address], *, http: requests.Session | None = None) -> None:
        self._address = address
        self._http = http or requests.Session()

    def call(self, method: str, path: str, body: Mapping[str, object] | None = None) -> Any:
        """One request under /v3; returns the parsed JSON. Raises FlinkError or SqlError."""
        url = f"http://{self._address()}/v3{path}"
        try:
            answer = self._http.request(method, url, json=body, timeout=30)
            parsed = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise FlinkUnreachable(f"{method} {path}: the SQL gateway does not answer: {error}") from error
        if "errors" in parsed:
            raise SqlError(_engine_message("\n".join(parsed["errors"])))
        return parsed

    def open(self, settings: Mapping[str, str] | None = None) -> GatewaySession:
        """Open a session; `settings` are its configuration from the start."""
        handle = self.call("POST", "/sessions", {"properties": dict(settings or {})})["sessionHandle"]
        return GatewaySession(self, handle)

    def version(self) -> str:
        """The gateway's Flink version."""
        return str(self.call("GET", "/info")["version"])


class GatewaySession:
    """One session: statements run in it one after the other."""

    def __init__(self, gateway: SqlGateway, handle: str) -> None:
        self._gateway = gateway
        self._path = f"/sessions/{handle}"

    def execute(self, statement: str, *, timeout_s: float = 120) -> StatementResult:
        """Run one statement to its end and fetch all its rows.

        Raises SqlError with the engine's own message, WaitTimeout after `timeout_s`.
        """
        operation = self._gateway.call("POST", f"{self._path}/statements", {"statement": statement})
        path = f"{self._path}/operations/{operation['operationHandle']}"
        rows: list[tuple[object, ...]] = []
        token, job_id = 0, ""

        def fetch() -> bool:
            nonlocal token, job_id
            while True:
                page = self._gateway.call("GET", f"{path}/result/{token}?rowFormat=JSON")
                job_id = page.get("jobID") or job_id
                if page["resultType"] == "NOT_READY":
                    return False
                rows.extend(tuple(row["fields"]) for row in page["results"]["data"])
                if page["resultType"] == "EOS":
                    return True
                token += 1

        first_line = statement.strip().splitlines()[0]
        try:
            wait_until(f"the statement `{first_line} …`", fetch, timeout_s=timeout_s, every_s=0.05)
        finally:
            # What the statement did is known by now: a close that fails must not hide it.
            with suppress(FlinkError):
                self._gateway.call("DELETE", f"{path}/close")
        return StatementResult(rows=tuple(rows), job_id=job_id)

    def close(self) -> None:
        """Close the session. A gateway that is gone has closed it already."""
        try:
            self._gateway.call("DELETE", self._path)
        except FlinkError:
            return


_OF_THE_GATEWAY = (
    "at ",
    "...",
    "<Exception",
    "End of exception",
    "Internal server",
    "org.apache.flink.table.gateway.",  # says that the gateway failed to run it, not why
)


def _engine_message(text: str) -> str:
    """The causes in an error of the gateway, innermost last, without stack frames and its own words."""
    lines = [line.strip().removeprefix("Caused by: ") for line in text.splitlines() if line.strip()]
    told = [line for line in lines if not line.startswith(_OF_THE_GATEWAY)]
    return "\n".join(line[:400] for line in list(dict.fromkeys(told or lines))[-8:])
