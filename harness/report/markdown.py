"""summary.md: a run on one screen of a CI job's page, in the Markdown that GitHub and GitLab take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from harness.model import Finding, RunResult
from harness.report.account import account
from harness.report.causes import Cause, causes
from harness.report.coverage import CyclePhase, bound_sentence, bounds, coverage
from harness.report.page import recoveries
from harness.report.snapshot_proof import proofs, sentence, why_none
from harness.report.tables import Rows
from harness.report.tables import markdown as table
from harness.report.wording import (
    MARKS,
    duration,
    failed_checks,
    finding_lines,
    first_finding,
    one_line,
    printable,
    shown_verdict,
    utc_text,
)

NAME = "summary.md"
FINDINGS_AT_MOST = 20
TEXT_AT_MOST = 400

_SPECIAL = re.compile(r"[\\`*\[\]<>#|~&@]|(?<!\w)_|_(?!\w)|:(?=//)")


def save(result: RunResult, folder: Path) -> Path:
    """Write summary.md into the run's folder and return its path."""
    path = folder / NAME
    path.write_text(render(result), encoding="utf-8", errors="replace")
    return path


def render(result: RunResult) -> str:
    """Verdict, what it holds for, oracles, faults, findings folded away, and how to run it again."""
    told = account(result)
    parts = [
        f"## {told.mark} {told.word}: {_plain(result.scenario)}",
        _plain(told.headline),
        f"Run {_plain(result.run)}, {_plain(utc_text(result.started_at))}, {duration(result.seconds)}, "
        f"exit code {result.exit_code}.",
        *(_cause(cause) for cause in causes(result)),
        table(_oracles(result)),
    ]
    if result.faults:
        parts.append(table(_faults(result)))
    parts += ["**The proof, snapshot by snapshot**", _proof(result)]
    if result.faults and result.jobs:
        parts += ["**Where faults landed**", table(_coverage(result)), *_bounds(result)]
    parts += [
        "**What it holds for**" if told.voided_by else "**What was run**",
        "\n".join(f"- {fact.name}: {_plain(fact.text)}" for fact in told.holds_for),
    ]
    if told.voided_by:
        parts += ["**What voids it**", "\n".join(f"- {_plain(text)}" for text in told.voided_by)]
    parts += ["**Run it again**", _block(result.reproduce)]
    return "\n\n".join(parts) + "\n"


def _oracles(result: RunResult) -> Rows:
    rows = [
        (
            _plain(item.oracle),
            f"{MARKS[shown_verdict(item).value]} {shown_verdict(item).value}",
            _plain(f"{item.examined:,} {item.unit}"),
            f"{sum(check.held for check in item.checks)} of {len(item.checks)}",
            _plain(first_finding(item)),
        )
        for item in result.oracles
    ]
    nothing = [("none", f"{MARKS['UNKNOWN']} UNKNOWN", "0", "0 of 0", "no oracle judged this run")]
    return [("oracle", "verdict", "examined", "checks held", "finding"), *(rows or nothing)]


def _faults(result: RunResult) -> Rows:
    rows = [
        (
            _plain(row.title),
            "✓ bit" if row.proof.bit else "✕ did not bite",
            duration(row.recovered_s) if row.recovered_s is not None else "-",
            duration(row.checkpoint_s) if row.checkpoint_s is not None else "-",
            _plain("; ".join(failed_checks(row.proof.checks))),
        )
        for row in recoveries(result)
    ]
    return [("fault", "proof", "recovered after", "checkpoint of every job after", "not proved"), *rows]


def _proof(result: RunResult) -> str:
    lines = [f"- {_plain(proof.table)}: {_plain(sentence(proof))}." for proof in proofs(result)]
    return "\n".join(lines) or _plain(why_none(result))


def _coverage(result: RunResult) -> Rows:
    rows = [
        (_plain(row.fault), _plain(row.job), *row.cells, str(row.unplaced or "-")) for row in coverage(result)
    ]
    return [("fault", "job", *(phase.value for phase in CyclePhase), "not known"), *rows]


def _bounds(result: RunResult) -> list[str]:
    lines = [f"- {_plain(bound_sentence(bound))}" for bound in bounds(result)]
    return [
        *(["\n".join(lines)] if lines else []),
        "The times that a run records do not tell the commit itself apart from what is before and after it.",
    ]


def _cause(cause: Cause) -> str:
    """A cause, its findings folded away."""
    head = f"**{_plain(cause.head)}**"
    if cause.lines:
        head += "\n\n" + "\n".join(f"- {_plain(line)}" for line in cause.lines[:FINDINGS_AT_MOST])
    if not cause.findings:
        return head
    count = len(cause.findings)
    shown = "\n\n".join(_block(text) for text in _findings(cause.findings))
    summary = f"{count} {'finding' if count == 1 else 'findings'}"
    return f"{head}\n\n<details><summary>{summary}</summary>\n\n{shown}\n\n</details>"


def _findings(findings: tuple[Finding, ...]) -> Iterator[str]:
    for finding in findings[:FINDINGS_AT_MOST]:
        yield "\n".join(line[:TEXT_AT_MOST] for line in finding_lines(finding))
    if len(findings) > FINDINGS_AT_MOST:
        yield f"{len(findings) - FINDINGS_AT_MOST} more are in report.html and result.json"


def _block(text: str) -> str:
    """A code block, fenced by more back-ticks than the text holds in a row."""
    shown = printable(text)
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{shown}\n{fence}"


def _plain(text: str) -> str:
    """`text` on one line, shortened, without any meaning to Markdown or HTML."""
    shown = one_line(text)
    if len(shown) > TEXT_AT_MOST:
        shown = shown[: TEXT_AT_MOST - 1] + "…"
    # As entities: a backslash would not keep a table's cell together, nor an @ from calling somebody.
    return _SPECIAL.sub(lambda found: f"&#{ord(found.group())};", shown)
