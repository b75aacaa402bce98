"""The one way in which acceptance tests run a scenario."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from harness.acceptance import Accepted
from harness.pipeline import OrdersPipeline


class Accept(Protocol):
    """Runs a scenario on the real stack: a built-in one by its name, or a file's text."""

    def __call__(
        self, scenario: str, *, before_reconcile: Callable[[OrdersPipeline], None] | None = None
    ) -> Accepted: ...
