"""A run's end on the console: time, what was used, verdict table, findings, how to reproduce, last line."""

from __future__ import annotations

import re

from rich import box
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from harness.model import FaultProof, JobHistory, OracleResult, RunResult, Verdict
from harness.report.causes import Cause, causes, harness_failed
from harness.report.snapshot_proof import TableProof, proofs, sentence
from harness.report.wording import (
    duration,
    failed_checks,
    fault_title,
    fault_verdict,
    finding_lines,
    first_finding,
    job_title,
    one_line,
    printable,
    run_verdict,
    shown_verdict,
    utc_clock,
)

WIDTH = 80
COLOURS = {Verdict.VALID: "bold green", Verdict.UNKNOWN: "bold yellow", Verdict.INVALID: "bold red"}
FAILED_COLOUR = "bold magenta"


def summary(result: RunResult, folder: str) -> RenderableType:
    """All that is shown at the end of a run, the verdict last; `folder` is the run's, as to be shown."""
    parts: list[RenderableType] = [phase_table(result), used(result), verdict_table(result)]
    cause = findings_panel(result)
    if cause is not None:
        parts += [cause, reproduce(result)]
    return Group(*parts, last_line(result, folder))


def verdict_table(result: RunResult) -> Table:
    """One row per oracle (verdict, examined, first finding), per table whose snapshots stand in the ledger,
    per fault (bit or not), per life of a job.
    """
    table = _table(f"Verdict of {one_line(result.scenario)}")
    table.add_column("what", overflow="fold", width=19)
    table.add_column("verdict", no_wrap=True, min_width=7)
    table.add_column("examined", overflow="fold", justify="right", ratio=4)
    table.add_column("finding", overflow="fold", ratio=8)
    for oracle in result.oracles:
        table.add_row(*_oracle_row(oracle))
    if not result.oracles:
        table.add_row(Text("oracles"), _word(Verdict.UNKNOWN), Text("0"), Text("no oracle judged this run"))
    for positions in proofs(result):
        table.add_row(*_positions_row(positions))
    for proof in result.faults:
        table.add_row(*_fault_row(proof))
    for job in result.jobs:
        table.add_row(*_job_row(job, job_title(job, result.jobs)))
    return table


def findings_panel(result: RunResult) -> Panel | None:
    """Why the run is not VALID: the harness's failure, faults that did not bite, findings; else None."""
    found = causes(result)
    if not found:
        return None
    blocks = [_block(cause) for cause in found]
    title = "The harness failed" if harness_failed(result) else f"Why {run_verdict(result).value}"
    return Panel(
        Text("\n\n".join(blocks), overflow="fold"),
        title=Text(title),
        title_align="left",
        border_style=_colour(result),
        expand=True,
    )


def reproduce(result: RunResult, *, width: int = WIDTH) -> Text:
    """The command that runs the same again, broken with backslashes so that it can be copied."""
    words = re.findall(r"""(?:[^\s'"]|'[^']*'|"[^"]*"|['"])+""", printable(result.reproduce))
    lines: list[str] = []
    for word in words:
        if lines and len(lines[-1]) + 1 + len(word) <= width - 4:
            lines[-1] += f" {word}"
        else:
            lines.append(f"  {word}" if not lines else f"    {word}")
    return Text("Reproduce it:\n" + " \\\n".join(lines) + "\n", overflow="fold")


def phase_table(result: RunResult) -> Table:
    """Where the time went: each phase with its start in UTC, seconds, and share of the run."""
    table = _table("Phases")
    table.add_column("phase", overflow="fold", ratio=1)
    table.add_column("from (UTC)", no_wrap=True)
    table.add_column("time", no_wrap=True, justify="right")
    table.add_column("share", no_wrap=True, justify="right")
    for phase in result.phases:
        share = f"{phase.seconds / result.seconds:.0%}" if result.seconds > 0 else "-"
        table.add_row(
            Text(one_line(phase.name)),
            Text(utc_clock(phase.started_at_ms)),
            Text(duration(phase.seconds)),
            Text(share),
        )
    table.add_section()
    table.add_row(Text("whole run"), Text("-"), Text(duration(result.seconds)), Text("100%"))
    return table


def used(result: RunResult) -> Table:
    """What the verdict holds for: profile and its differences, seed, configuration, components, faults."""
    table = _table("Used")
    table.add_column("what", overflow="fold", max_width=22)
    table.add_column("value", overflow="fold", ratio=1)
    table.add_row(Text("profile"), Text(one_line(result.profile)))
    for line in result.profile_differences:
        table.add_row(Text("  differs"), Text(one_line(line)))
    table.add_row(Text("seed"), Text(str(result.seed)))
    table.add_row(Text("configuration"), Text(one_line(result.config_hash)))
    for item in result.components:
        table.add_row(Text(one_line(item.name)), Text(one_line(f"{item.version} ({item.origin})")))
    return table


def last_line(result: RunResult, folder: str) -> Text:
    """The one line to read: `VALID  kill-taskmanager  in 74 s  reports/…/`."""
    word = "HARNESS FAILED" if harness_failed(result) else run_verdict(result).value
    rest = f"  {one_line(result.scenario)}  in {duration(result.seconds)}  {one_line(folder).rstrip('/')}/"
    return Text.assemble((word, _colour(result)), rest, overflow="fold")


def _oracle_row(oracle: OracleResult) -> tuple[Text, Text, Text, Text]:
    return (
        Text(one_line(oracle.oracle)),
        _word(shown_verdict(oracle)),
        Text(one_line(f"{oracle.examined:,} {oracle.unit}")),
        Text(first_finding(oracle)),
    )


def _in_order(proof: TableProof) -> str:
    return f"in order, {len(proof.torn):,} torn" if proof.torn else "in order"


def _positions_row(proof: TableProof) -> tuple[Text, Text, Text, Text]:
    verdict = Verdict.INVALID if proof.bad else Verdict.VALID if proof.proven else Verdict.UNKNOWN
    words = {
        Verdict.INVALID: f"{proof.bad:,} wrong",
        Verdict.VALID: _in_order(proof),
        Verdict.UNKNOWN: "unknown",
    }
    return (
        Text(f"snapshots of {proof.table}"),
        Text(words[verdict], style=COLOURS[verdict]),
        Text(f"{proof.snapshots:,} snapshots"),
        Text(sentence(proof, counted=False)),
    )


def _fault_row(proof: FaultProof) -> tuple[Text, Text, Text, Text]:
    held = sum(check.held for check in proof.checks)
    recovery = (proof.recovered_at_ms - proof.injected_at_ms) / 1000
    if not proof.checks:
        finding = "nothing proves it: no check was made"
    elif failed_checks(proof.checks):
        finding = "; ".join(failed_checks(proof.checks))
    else:
        finding = f"recovered in {duration(recovery)}" if proof.recovered_at_ms > 0 else ""
    return (
        Text(fault_title(proof)),
        Text("bit" if proof.bit else "no bite", style=COLOURS[fault_verdict(proof)]),
        Text(f"{held} of {len(proof.checks)} checks"),
        Text(finding),
    )


def _job_row(job: JobHistory, title: str) -> tuple[Text, Text, Text, Text]:
    failure = f"; last: {job.failures[-1].exception}" if job.failures else ""
    ended = f"; {job.ended_by}" if job.ended_by else ""
    restarts = (
        f"{job.restarts} {'restart' if job.restarts == 1 else 'restarts'}, {job.counts.restored} restored"
    )
    return (
        Text(title),
        Text(one_line(job.state)),
        Text(f"{job.counts.completed:,} checkpoints"),
        Text(_short(one_line(f"{restarts}{ended}{failure}"), 120)),
    )


def _block(cause: Cause) -> str:
    lines = [f"  {one_line(line)}" for line in cause.lines]
    findings = [line for finding in cause.findings for line in finding_lines(finding)]
    return "\n".join([printable(cause.head), *findings, *lines])


def _colour(result: RunResult) -> str:
    return FAILED_COLOUR if harness_failed(result) else COLOURS[run_verdict(result)]


def _word(verdict: Verdict) -> Text:
    return Text(verdict.value, style=COLOURS[verdict])


def _short(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def _table(title: str) -> Table:
    return Table(title=Text(title), title_justify="left", box=box.ROUNDED, expand=True)
