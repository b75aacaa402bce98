"""Runs on a fake pipeline, ready to be executed, and looks at what came of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from fakes import Calls, FakeFault, FakeListener, FakePipeline

from harness import faults, oracles
from harness.history import History
from harness.model import Finding, Verdict, worst
from harness.profiles import Profile
from harness.runner import Outcome, Run
from harness.scenario import FaultStep, load

PROFILE = Profile(
    name="test",
    flink=(
        ("execution.checkpointing.interval", "20ms"),
        ("execution.checkpointing.timeout", "1s"),
        ("restart-strategy.fixed-delay.delay", "1s"),
        ("restart-strategy.fixed-delay.attempts", "20"),
    ),
    cluster=(("heartbeat.timeout", "6000"),),
    tables=(),
    differences=(),
    adapted=(),
    unapplied=(),
)


QUICK = ("completeness", "fault_effect", "liveness")
"""Oracles that read no rows, for the tests that are not about rows."""


class Execution:
    """A run on a fake pipeline, ready to be executed."""

    def __init__(
        self, folder: Path, *, faults_wanted: int = 1, ask: Sequence[str] = QUICK, **raises: BaseException
    ) -> None:
        self.folder = folder
        self.ask = tuple(ask)
        self.calls = Calls(**raises)
        self.pipeline = FakePipeline(self.calls)
        self.faults = [FakeFault(self.calls) for _ in range(faults_wanted)]
        self.during: Literal["steady", "initial-load", "bulk-update"] = "steady"
        self.startup = "initial"
        self.history = History(FakeListener())

    def execute(
        self, *, keep: bool = False, before_reconcile: Callable[[int], None] | None = None
    ) -> Outcome:
        scenario = load("clean", faults=faults.FAULTS, oracles=oracles.ORACLES)
        steps = tuple(FaultStep.model_construct(fault="noop", during=self.during) for _ in self.faults)
        return Run(
            scenario=scenario.model_copy(
                update={"oracles": self.ask, "faults": steps, "startup": self.startup}
            ),
            profile=PROFILE,
            pipeline=self.pipeline,
            faults=self.faults,
            folder=self.folder,
            history=self.history,
            before_reconcile=before_reconcile,
        ).execute(keep=keep)

    def events(self, kind: str) -> list[str]:
        return [event.text for event in self.history.events() if event.kind == kind]


def verdict_of(outcome: Outcome) -> Verdict:
    return worst([result.verdict for result in outcome.oracles])


def failed_with(outcome: Outcome) -> str:
    return outcome.failure.what if outcome.failure else "no failure"


def findings(outcome: Outcome, oracle: str) -> dict[str, Finding]:
    (result,) = (result for result in outcome.oracles if result.oracle == oracle)
    return {finding.code: finding for finding in result.findings}
