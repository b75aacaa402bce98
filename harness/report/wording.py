"""What the reports say alike: a verdict as it may be shown, a finding as lines, texts safe to print."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from harness.model import (
    Check,
    FaultProof,
    Finding,
    JobHistory,
    OracleResult,
    RunResult,
    Severity,
    Verdict,
    worst,
)

MARKS = {Verdict.VALID.value: "✓", Verdict.UNKNOWN.value: "?", Verdict.INVALID.value: "✕"}
"""A shape for each verdict, so that it does not hang on colour."""

_ANSI = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """`text` without escape codes and without what neither XML nor a terminal takes (shown as U+FFFD)."""
    return _UNPRINTABLE.sub("\ufffd", _ANSI.sub("", text.replace("\r\n", "\n")))


def one_line(text: str) -> str:
    """`text`, printable, with every run of white space made one space."""
    return " ".join(printable(text).split())


def shown_verdict(oracle: OracleResult) -> Verdict:
    """The oracle's verdict, but UNKNOWN for a VALID that examined nothing (DESIGN, rule 2)."""
    if oracle.verdict is Verdict.VALID and oracle.examined <= 0:
        return Verdict.UNKNOWN
    return oracle.verdict


def fault_verdict(proof: FaultProof) -> Verdict:
    """VALID for a fault that bit, else UNKNOWN: the run proves nothing about it (DESIGN, rule 4)."""
    return Verdict.VALID if proof.bit else Verdict.UNKNOWN


def run_verdict(result: RunResult) -> Verdict:
    """The worst of the run's own verdict and those of its parts; no oracle makes it UNKNOWN."""
    oracles = worst([shown_verdict(oracle) for oracle in result.oracles])
    own = Verdict.UNKNOWN if result.failure and result.verdict is Verdict.VALID else result.verdict
    return worst([own, oracles, *(fault_verdict(proof) for proof in result.faults)])


def fault_title(proof: FaultProof) -> str:
    """A fault and whom it struck; one that names no node struck the jobs themselves."""
    return one_line(f"{proof.fault} on {proof.node or 'the jobs'}")


def job_title(job: JobHistory, jobs: Sequence[JobHistory]) -> str:
    """A job by its name, with the number of its life when it lived more than one."""
    lives = sum(other.name == job.name for other in jobs)
    return one_line(f"job {job.name}, life {job.life}" if lives > 1 or job.life > 1 else f"job {job.name}")


def joined(items: Iterable[str]) -> str:
    """`a, b and c`."""
    *others, last = list(items) or [""]
    return f"{', '.join(others)} and {last}" if others else last


def first_finding(oracle: OracleResult) -> str:
    """One line: the heaviest finding, else what an oracle without a finding leaves to say, else nothing."""
    if oracle.findings:
        weights = [Severity.INFO, Severity.WARNING, Severity.ERROR]
        heaviest = max(oracle.findings, key=lambda finding: weights.index(finding.severity))
        return one_line(f"{heaviest.code}: {heaviest.what}")
    failed = failed_checks(oracle.checks)
    if failed:
        return one_line(failed[0])
    if oracle.examined <= 0:
        return "nothing was examined"
    return "" if oracle.verdict is Verdict.VALID else "the oracle gave no finding"


def failed_checks(checks: tuple[Check, ...]) -> tuple[str, ...]:
    """One line for each check that did not hold."""
    return tuple(
        one_line(f"{check.name}: expected {check.expected}, got {check.actual}")
        for check in checks
        if not check.held
    )


def finding_lines(finding: Finding) -> tuple[str, ...]:
    """A finding, whole: what, where, expected, actual, examples, what to do; one printable line each."""
    lines = [f"{finding.code} ({finding.severity.value}): {finding.what}"]
    for name, text in (
        ("where", finding.where),
        ("expected", finding.expected),
        ("actual", finding.actual),
    ):
        if text:
            lines.append(f"  {name + ':':<10}{one_line(text)}")
    if finding.examples:
        lines.append("  examples:")
        lines += [f"    {one_line(example)}" for example in finding.examples]
    if finding.todo:
        lines.append(f"  → {one_line(finding.todo)}")
    return (one_line(lines[0]), *lines[1:])


def utc_clock(at_ms: int) -> str:
    """Epoch milliseconds as HH:MM:SS in UTC, or a dash when it never was (0 or less)."""
    return datetime.fromtimestamp(at_ms / 1000, tz=UTC).strftime("%H:%M:%S") if at_ms > 0 else "-"


def utc_clock_ms(at_ms: int) -> str:
    """As utc_clock, with milliseconds."""
    return f"{utc_clock(at_ms)}.{at_ms % 1000:03d}" if at_ms > 0 else "-"


def utc_text(moment: str) -> str:
    """An ISO time in UTC as people write it."""
    text = one_line(moment)
    for ending in ("Z", "+00:00"):
        if text.endswith(ending):
            return f"{text.removesuffix(ending).replace('T', ' ')} UTC"
    return text


def duration(seconds: float) -> str:
    """Seconds for people: one place under ten, whole seconds under two minutes, else minutes too."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 120 else f"{whole // 60} min {whole % 60:02d} s"
