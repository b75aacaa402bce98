"""What the page of a run shows, worked out from its result: rows of tables, limited in number and length."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from harness.model import (
    Check,
    Event,
    FaultProof,
    Fence,
    Finding,
    JobHistory,
    Reading,
    RunResult,
    TimeTravel,
    Verdict,
)
from harness.report.visibility import lags
from harness.report.wording import fault_title, job_title, one_line, shown_verdict, utc_clock


@dataclass(frozen=True, kw_only=True)
class Limits:
    """How much of what may be endless is shown; result.json has all of it. `text` counts characters."""

    checks: int
    findings: int
    events: int
    text: int


@dataclass(frozen=True, kw_only=True)
class OracleSection:
    """An oracle with its checks and findings; what did not hold comes first, and is cut last."""

    name: str
    verdict: Verdict
    examined: str
    held: int
    made: int
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]
    left_out: int


@dataclass(frozen=True, kw_only=True)
class Recovery:
    """A fault and its times in seconds since it was injected; None when it never came to that.

    `checkpoint_s`: every job had completed a checkpoint that began after the fault was healed.
    `down` and `recovering` are shares of the longest recovery in percent, for the bars.
    """

    title: str
    proof: FaultProof
    healed_s: float | None
    recovered_s: float | None
    checkpoint_s: float | None
    down: float
    recovering: float


@dataclass(frozen=True, kw_only=True)
class LagRow:
    """A table's waits in seconds: of the newest and the oldest row that a snapshot brought."""

    table: str
    snapshots: int
    newest_median_s: float
    oldest_median_s: float
    oldest_max_s: float
    worst_at: str


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What a reader said, and whether it is what the source held at the fence."""

    reader: str
    text: str
    agrees: bool


@dataclass(frozen=True, kw_only=True)
class FenceRow:
    """A table at a fence."""

    fence: Fence
    visible_s: float | None
    source: Answer
    sink: tuple[Answer, ...]


@dataclass(frozen=True, kw_only=True)
class TravelRow:
    """A fence's snapshot read again at the end."""

    travel: TimeTravel
    right_snapshot: bool
    by_time: Answer
    by_id: Answer


@dataclass(frozen=True, kw_only=True)
class JobRow:
    """One life of a job."""

    title: str
    job: JobHistory


@dataclass(frozen=True, kw_only=True)
class PhaseRow:
    """A phase; what of the run was over when it began, and its own share, in percent."""

    name: str
    clock: str
    seconds: float
    before: float
    share: float


@dataclass(frozen=True, kw_only=True)
class Link:
    """A file in the run's folder."""

    name: str
    href: str


def oracle_sections(result: RunResult, limits: Limits) -> tuple[OracleSection, ...]:
    """One per oracle, in their order."""
    found = []
    for oracle in result.oracles:
        checks = sorted(oracle.checks, key=lambda check: check.held)
        findings = oracle.findings[: limits.findings]
        left = max(0, len(checks) - limits.checks) + len(oracle.findings) - len(findings)
        found.append(
            OracleSection(
                name=oracle.oracle,
                verdict=shown_verdict(oracle),
                examined=f"{oracle.examined:,} {oracle.unit}",
                held=sum(check.held for check in checks),
                made=len(checks),
                checks=tuple(checks[: limits.checks]),
                findings=findings,
                left_out=left,
            )
        )
    return tuple(found)


def recoveries(result: RunResult) -> tuple[Recovery, ...]:
    """One per fault, in their order."""
    longest = max((_since(proof, proof.recovered_at_ms) or 0 for proof in result.faults), default=0)
    found = []
    for proof in result.faults:
        healed, recovered = _since(proof, proof.healed_at_ms), _since(proof, proof.recovered_at_ms)
        down = min(healed or 0, recovered or 0)
        found.append(
            Recovery(
                title=fault_title(proof),
                proof=proof,
                healed_s=healed,
                recovered_s=recovered,
                checkpoint_s=_since(proof, _checkpointed_at_ms(result.jobs, proof.healed_at_ms)),
                down=100 * down / longest if longest else 0,
                recovering=100 * ((recovered or 0) - down) / longest if longest else 0,
            )
        )
    return tuple(found)


def lag_rows(result: RunResult) -> tuple[LagRow, ...]:
    """One per table whose lag is known."""
    found = lags(result.progress)
    rows = []
    for table in dict.fromkeys(lag.table for lag in found):
        own = [lag for lag in found if lag.table == table]
        worst = max(own, key=lambda lag: lag.oldest_s)
        rows.append(
            LagRow(
                table=table,
                snapshots=len(own),
                newest_median_s=statistics.median(lag.newest_s for lag in own),
                oldest_median_s=statistics.median(lag.oldest_s for lag in own),
                oldest_max_s=worst.oldest_s,
                worst_at=utc_clock(worst.at_ms),
            )
        )
    return tuple(rows)


def fence_rows(result: RunResult) -> tuple[FenceRow, ...]:
    """One per fence and table, by the fence's number."""
    return tuple(
        FenceRow(
            fence=fence,
            visible_s=(fence.visible_at_ms - fence.mark.committed_at_ms) / 1000 if fence.visible else None,
            source=_answer(fence.source, fence.source),
            sink=tuple(_answer(reading, fence.source) for reading in fence.sink),
        )
        for fence in sorted(result.fences, key=lambda fence: fence.mark.number)
    )


def travel_rows(result: RunResult) -> tuple[TravelRow, ...]:
    """One per snapshot that was read again. Without its fence nothing agrees."""
    sources = {(fence.mark.table, fence.mark.number): fence.source for fence in result.fences}
    nothing = Reading(reader="", error="the fence is not known")
    rows = []
    for travel in result.travels:
        source = sources.get((travel.table, travel.fence), nothing)
        rows.append(
            TravelRow(
                travel=travel,
                right_snapshot=travel.resolved_id == travel.snapshot_id,
                by_time=_answer(travel.by_time, source),
                by_id=_answer(travel.by_id, source),
            )
        )
    return tuple(rows)


def job_rows(result: RunResult) -> tuple[JobRow, ...]:
    """One per life of a job."""
    return tuple(JobRow(title=job_title(job, result.jobs), job=job) for job in result.jobs)


def phase_rows(result: RunResult) -> tuple[PhaseRow, ...]:
    """One per phase."""
    whole = result.seconds if result.seconds > 0 else 1
    rows = []
    for phase in result.phases:
        before = (phase.started_at_ms - result.phases[0].started_at_ms) / 1000
        rows.append(
            PhaseRow(
                name=phase.name,
                clock=utc_clock(phase.started_at_ms),
                seconds=phase.seconds,
                before=min(100, max(0, 100 * before / whole)),
                share=min(100, 100 * phase.seconds / whole),
            )
        )
    return tuple(rows)


def events(result: RunResult, limits: Limits) -> tuple[Event, ...]:
    """The newest ones."""
    return result.events[-limits.events :]


def links(names: Iterable[str]) -> tuple[Link, ...]:
    """Links into the run's folder; `./` keeps a name from being taken for an address."""
    return tuple(Link(name=one_line(name), href="./" + quote(name, errors="replace")) for name in names)


def _since(proof: FaultProof, at_ms: int) -> float | None:
    return (at_ms - proof.injected_at_ms) / 1000 if at_ms > 0 and proof.injected_at_ms > 0 else None


def _checkpointed_at_ms(jobs: Sequence[JobHistory], healed_at_ms: int) -> int:
    """When the last of the jobs had completed its first checkpoint after healing; 0 if one never did."""
    ends = []
    for name in dict.fromkeys(job.name for job in jobs):
        later = [
            item.triggered_at_ms + item.duration_ms
            for job in jobs
            if job.name == name
            for item in job.checkpoints
            if item.status == "COMPLETED"
            and not item.is_savepoint
            and item.triggered_at_ms >= healed_at_ms > 0
        ]
        ends.append(min(later, default=0))
    return max(ends, default=0) if all(ends) else 0


def _answer(reading: Reading, source: Reading) -> Answer:
    if reading.error or not reading.totals:  # no rows on both sides is no agreement either: DESIGN, rule 2
        missing = " (files missing)" if reading.files_missing else ""
        return Answer(reader=reading.reader, text=f"{reading.error or 'no rows'}{missing}", agrees=False)
    rows = sum(part.rows for part in reading.totals)
    return Answer(
        reader=reading.reader,
        text=f"{rows:,} rows",
        agrees=not source.error and sorted(reading.totals, key=str) == sorted(source.totals, key=str),
    )
