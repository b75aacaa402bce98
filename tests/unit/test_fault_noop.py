"""noop: it changes nothing, and never counts as a fault that bit."""

from __future__ import annotations

import pytest
from fakes import FakeJob, FakeStack
from fault_contexts import context

from harness import faults
from harness.errors import UsageError


def test_it_touches_nothing_and_proves_nothing() -> None:
    stack, job = FakeStack(), FakeJob()
    before = dict(stack.states)
    fault = faults.make("noop", {})
    fault.inject(context(stack, [job]))
    fault.prove(context(stack, [job]))
    fault.heal(stack)
    fault.heal(stack)
    fault.recover(context(stack, [job]))

    assert before == stack.states
    assert ([], [], []) == (stack.calls.made, stack.killed, job.calls.made)
    assert not fault.proof().bit
    assert fault.proof().injected_at_ms > 0


def test_an_unknown_parameter_is_refused() -> None:
    with pytest.raises(UsageError, match="fault noop: "):
        faults.make("noop", {"victim": "idle"})
