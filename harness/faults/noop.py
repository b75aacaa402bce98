"""The fault that does nothing: it shows the shape of a fault, and must never count as one that bit."""

from __future__ import annotations

import time

from harness.model import Check, FaultProof
from harness.ports import FaultContext, Stack


class Noop:
    """Injects nothing. Its proof says so, and the run ends UNKNOWN."""

    spends_attempts = False

    def __init__(self) -> None:
        self._injected_at_ms = 0

    def inject(self, context: FaultContext) -> None:  # noqa: ARG002 - a real fault uses it
        self._injected_at_ms = int(time.time() * 1000)

    def prove(self, context: FaultContext) -> None:
        """Nothing was done, so there is nothing to look for."""

    def heal(self, stack: Stack) -> None:
        """Nothing was done, so there is nothing to undo."""

    def recover(self, context: FaultContext) -> None:
        """Nothing was done, so nobody has to do anything."""

    def proof(self) -> FaultProof:
        nothing = Check(name="something was broken", expected="an effect", actual="nothing", held=False)
        return FaultProof(
            fault="noop",
            node="",
            injected_at_ms=self._injected_at_ms,
            healed_at_ms=0,
            recovered_at_ms=0,
            checks=(nothing,),
        )
