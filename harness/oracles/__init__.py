"""The registry of oracles, and how they are applied. A new oracle is one file and one line here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.model import Evidence, Finding, OracleResult, Severity, Verdict
from harness.oracles import completeness, fault_effect, liveness, primary_key, source_truth
from harness.ports import Oracle


@dataclass(frozen=True, kw_only=True)
class OracleKind:
    """An oracle that scenarios can name, and its row in the README."""

    judge: Oracle
    summary: str
    blind_to: str
    guide: str


ORACLES: dict[str, OracleKind] = {
    completeness.NAME: OracleKind(
        judge=completeness.judge,
        summary="the run went its whole way: nobody stopped it, every fault and fence was reached",
        blind_to="whether the scenario itself asks enough",
        guide="",
    ),
    primary_key.NAME: OracleKind(
        judge=primary_key.judge,
        summary="the guide's two queries by two readers, then every row by its key, at each fence",
        blind_to="a wrong state that healed before the fence",
        guide="§5.1 method 1",
    ),
    fault_effect.NAME: OracleKind(
        judge=fault_effect.judge,
        summary="each fault proved that it bit",
        blind_to="effects that the proof does not look for",
        guide="§5.2",
    ),
    liveness.NAME: OracleKind(
        judge=liveness.judge,
        summary="the job is RUNNING, recovered after each fault, and checkpoints complete again",
        blind_to="a single task that stands still for a while",
        guide="§5.2",
    ),
    source_truth.NAME: OracleKind(
        judge=source_truth.judge,
        summary="the ledger is what the source really holds",
        blind_to="a foreign change that was undone between two fences",
        guide="",
    ),
}


def judge(evidence: Evidence, names: Iterable[str]) -> tuple[OracleResult, ...]:
    """Apply the named oracles, in the registry's order. One that crashes is UNKNOWN, never VALID.

    `completeness` is always asked. `fault_effect` is left out of a run that was meant to have no
    fault; all others are left out where the source never ran, since there is no ledger.
    """
    wanted = set(names) if evidence.workload else set()
    wanted.add(completeness.NAME)
    if not evidence.expected_faults:
        wanted.discard(fault_effect.NAME)
    return tuple(_applied(name, kind, evidence) for name, kind in ORACLES.items() if name in wanted)


def _applied(name: str, kind: OracleKind, evidence: Evidence) -> OracleResult:
    try:
        return kind.judge(evidence)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in an oracle, the run proves nothing
        crashed = Finding(
            code="oracle-crashed",
            severity=Severity.ERROR,
            what=f"the oracle {name} crashed",
            actual=f"{type(error).__name__}: {error}",
            todo="this is a bug of the harness, please report it with the run's folder",
        )
        return OracleResult(oracle=name, verdict=Verdict.UNKNOWN, examined=0, unit="", findings=(crashed,))
