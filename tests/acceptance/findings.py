"""Looking into results: what acceptance tests ask of them."""

from __future__ import annotations

from collections.abc import Iterable

from harness.model import Check, Finding, RunResult


def findings(result: RunResult, oracle: str) -> list[Finding]:
    """What one oracle found."""
    return [finding for judged in result.oracles if judged.oracle == oracle for finding in judged.findings]


def codes(found: Iterable[Finding], *, where: str = "") -> set[str]:
    """The codes of findings, or of those at a place that begins so."""
    return {finding.code for finding in found if finding.where.startswith(where)}


def failed(checks: Iterable[Check]) -> list[str]:
    """The names of the checks that did not hold."""
    return [check.name for check in checks if not check.held]


def why(result: RunResult) -> str:
    """Everything that speaks against a run, for the message of an assertion."""
    found = [
        f"{o.oracle}: {f.code}: {f.where}: {f.what} {f.actual}" for o in result.oracles for f in o.findings
    ]
    bites = [f"{proof.fault}: {check}" for proof in result.faults for check in failed(proof.checks)]
    return "\n".join([result.failure, *found, *bites])
