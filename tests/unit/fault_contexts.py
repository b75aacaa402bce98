"""What a fault may use, made of fakes, with bounds that are over at once."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence

from fakes import FakeJob, FakeStack

from harness.ports import FaultContext


def context(
    stack: FakeStack,
    jobs: Sequence[FakeJob],
    *,
    seed: int = 1,
    late_s: float = 60,
    committed: Callable[[], int] = lambda: 0,
    keep_sink: Callable[[Mapping[str, str]], None] = lambda savepoints: None,
) -> FaultContext:
    """A context with a bound of 50 ms for every wait."""
    return FaultContext(
        stack=stack,
        jobs=tuple(jobs),
        rng=random.Random(seed),
        bound_s=0.05,
        checkpoint_s=0.05,
        late_s=late_s,
        committed=committed,
        keep_sink=keep_sink,
    )
