"""The registry of oracles, and how they are applied. A new oracle is one file and one line here."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

from harness.model import Evidence, Finding, OracleResult, Severity, Verdict
from harness.oracles import (
    append_exactly_once,
    apply_once,
    changelog,
    commit_log,
    completeness,
    continuity,
    fault_effect,
    liveness,
    partition_atomicity,
    reconciliation,
    snapshot_prefix,
    source_truth,
    time_travel,
)
from harness.oracles.exhibits import Exhibits

Oracle: TypeAlias = Callable[[Exhibits], OracleResult]
"""A pure check of evidence."""


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
    reconciliation.NAME: OracleKind(
        judge=reconciliation.judge,
        summary="the guide's two queries by two readers, then every row by its key, per table and fence",
        blind_to="a wrong state that healed before the fence",
        guide="§5.1 method 1",
    ),
    time_travel.NAME: OracleKind(
        judge=time_travel.judge,
        summary="each fence's snapshot, read again later by time and by id, is what the source held there",
        blind_to="snapshots between the fences",
        guide="§5.1 method 2",
    ),
    snapshot_prefix.NAME: OracleKind(
        judge=snapshot_prefix.judge,
        summary="every snapshot since the first fence is what the source held after one operation, in order",
        blind_to="between two whole reads, a table that for a while is not what its deltas say",
        guide="§5.1 method 2",
    ),
    partition_atomicity.NAME: OracleKind(
        judge=partition_atomicity.judge,
        summary="every snapshot shows all partitions as of one operation: none is ahead, none behind",
        blind_to="a state that no snapshot held",
        guide="",
    ),
    append_exactly_once.NAME: OracleKind(
        judge=append_exactly_once.judge,
        summary="an append-only table has each row once, and each was added once; duplicates and losses "
        "are named with their snapshots",
        blind_to="a duplicate that compaction makes and removes between two fences",
        guide="§5.2, §7.2",
    ),
    apply_once.NAME: OracleKind(
        judge=apply_once.judge,
        summary="sums that a job keeps of an append-only table are those of the source's first operations "
        "in every snapshot since the first fence: none was applied twice or not at all",
        blind_to="values that make up for each other in one sum",
        guide="§5.2, §7.2",
    ),
    changelog.NAME: OracleKind(
        judge=changelog.judge,
        summary="a primary-key table's changelog sums up to the table at every snapshot, each row follows "
        "from those before it, and no update is cut in half",
        blind_to="what a table without a changelog producer would have emitted",
        guide="§3.3",
    ),
    commit_log.NAME: OracleKind(
        judge=commit_log.judge,
        summary="each commit came once, from the job alone, on what the one before it left; all files that "
        "snapshots refer to are in storage, and rows add up",
        blind_to="what is in the files; a snapshot file that was overwritten whole",
        guide="§2.2, §7.3",
    ),
    continuity.NAME: OracleKind(
        judge=continuity.judge,
        summary="a stopped job's sink is the source after one operation, and the job went on with the next",
        blind_to="what a restart by Flink itself read again",
        guide="§5.2 test 3",
    ),
    fault_effect.NAME: OracleKind(
        judge=fault_effect.judge,
        summary="each fault proved that it bit, and each table was written to while it was on and after it",
        blind_to="effects that the proof does not look for; how heavy the load was",
        guide="§5.2",
    ),
    liveness.NAME: OracleKind(
        judge=liveness.judge,
        summary="every job is RUNNING, recovered after each fault, and checkpoints complete again",
        blind_to="a single task that stands still for a while",
        guide="§5.2",
    ),
    source_truth.NAME: OracleKind(
        judge=source_truth.judge,
        summary="the ledgers are what the source really holds, and did by its binlog, in order",
        blind_to="a change that was undone between two fences and never logged",
        guide="",
    ),
}


def judge(evidence: Evidence, names: Iterable[str]) -> tuple[OracleResult, ...]:
    """Open the evidence, and `judge_exhibits`."""
    return judge_exhibits(Exhibits(evidence), names)


def judge_exhibits(exhibits: Exhibits, names: Iterable[str]) -> tuple[OracleResult, ...]:
    """Apply the named oracles, in the registry's order. One that crashes is UNKNOWN, never VALID.

    `completeness` is always asked. Left out are `fault_effect` where no fault was meant to be,
    `append_exactly_once` where no table is append-only, `apply_once` where no job keeps sums, `changelog`
    where no table has one (which `completeness` says), `continuity` where no job was stopped, and all but
    `completeness` where the source never ran, since there is no ledger.
    """
    evidence = exhibits.evidence
    wanted = set(names) if evidence.workload else set()
    wanted.add(completeness.NAME)
    if not evidence.expected_faults:
        wanted.discard(fault_effect.NAME)
    if not any(table.append_only for table in evidence.tables):
        wanted.discard(append_exactly_once.NAME)
    if not apply_once.applies(evidence):
        wanted.discard(apply_once.NAME)
    if not changelog.applies(evidence):
        wanted.discard(changelog.NAME)
    if not continuity.applies(evidence):
        wanted.discard(continuity.NAME)
    return tuple(_applied(name, kind, exhibits) for name, kind in ORACLES.items() if name in wanted)


def _applied(name: str, kind: OracleKind, exhibits: Exhibits) -> OracleResult:
    try:
        return kind.judge(exhibits)
    except Exception as error:  # noqa: BLE001 - whatever goes wrong in an oracle, the run proves nothing
        crashed = Finding(
            code="oracle-crashed",
            severity=Severity.ERROR,
            what=f"the oracle {name} crashed",
            actual=f"{type(error).__name__}: {error}",
            todo="this is a bug of the harness, please report it with the run's folder",
        )
        return OracleResult(oracle=name, verdict=Verdict.UNKNOWN, examined=0, unit="", findings=(crashed,))
