"""Why a run is not VALID: the failure of the harness, what broke, what proves nothing; the gravest first."""

from __future__ import annotations

from dataclasses import dataclass

from harness.model import HARNESS_FAILED, FaultProof, Finding, OracleResult, RunResult, Verdict
from harness.report.wording import (
    failed_checks,
    fault_title,
    first_finding,
    run_verdict,
    shown_verdict,
)


@dataclass(frozen=True, kw_only=True)
class Cause:
    """One cause: a head, then findings if an oracle gave any, else lines."""

    head: str
    findings: tuple[Finding, ...] = ()
    lines: tuple[str, ...] = ()


def harness_failed(result: RunResult) -> bool:
    """Whether the harness itself failed, which is no word on the pipeline."""
    return bool(result.failure) or result.exit_code == HARNESS_FAILED


def causes(result: RunResult) -> tuple[Cause, ...]:
    """Nothing for a VALID run; at least one for every other."""
    verdict = run_verdict(result)
    if verdict is Verdict.VALID and not harness_failed(result):
        return ()
    broken = [item for item in result.oracles if shown_verdict(item) is Verdict.INVALID]
    unknown = [item for item in result.oracles if shown_verdict(item) is Verdict.UNKNOWN]
    found = (
        *([_failure(result)] if result.failure else []),
        *(_oracle(item) for item in broken),
        *([] if result.oracles else [Cause(head="No oracle judged this run.")]),
        *(_fault(proof) for proof in result.faults if not proof.bit),
        *(_oracle(item) for item in unknown),
    )
    nothing = f"the run is {verdict.value} and gives no reason; see events and logs in its folder"
    return found or (Cause(head=nothing),)


def _failure(result: RunResult) -> Cause:
    return Cause(head=result.failure, lines=(f"→ {result.failure_todo}",) if result.failure_todo else ())


def _fault(proof: FaultProof) -> Cause:
    return Cause(
        head=f"{fault_title(proof)} did not bite, so the run proves nothing about it:",
        lines=failed_checks(proof.checks) or ("no check was made",),
    )


def _oracle(oracle: OracleResult) -> Cause:
    lines = failed_checks(oracle.checks) or (first_finding(oracle),)
    return Cause(
        head=f"{oracle.oracle}: {shown_verdict(oracle).value}",
        findings=oracle.findings,
        lines=() if oracle.findings else lines,
    )
