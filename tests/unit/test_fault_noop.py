"""noop: it changes nothing, and never counts as a fault that bit."""

from __future__ import annotations

import random

import pytest
from fakes import FakeJob, FakeStack

from harness import faults
from harness.errors import UsageError
from harness.ports import FaultContext


def test_it_touches_nothing_and_proves_nothing() -> None:
    stack = FakeStack()
    before = dict(stack.states)
    context = FaultContext(stack=stack, job=FakeJob(), rng=random.Random(1), bound_s=0.05)
    fault = faults.make("noop", {})
    fault.inject(context)
    fault.prove(context)
    fault.heal(stack)
    fault.heal(stack)

    assert before == stack.states
    assert ([], []) == (stack.calls.made, stack.killed)
    assert not fault.proof().bit
    assert fault.proof().injected_at_ms > 0


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(UsageError, match="fault noop: "):
        faults.make("noop", {"victim": "idle"})
