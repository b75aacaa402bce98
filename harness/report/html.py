"""report.html: a run as one page that holds everything it shows; no network, no script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from harness.model import RunResult
from harness.report import page
from harness.report.account import account
from harness.report.causes import causes
from harness.report.coverage import CAVEAT, NOT_TESTED, CyclePhase, bound_sentence, bounds, coverage
from harness.report.lag_plot import lag_plot
from harness.report.outage import outage_sentences
from harness.report.proof_plot import DRAWN_AT_MOST, proof_plot
from harness.report.snapshot_proof import proofs, sentence, why_none
from harness.report.timeline import COMPLETED_AT_MOST, drawn, timeline
from harness.report.vega import Spec, drawing
from harness.report.visibility import VISIBLE_AT_MOST
from harness.report.wording import MARKS, duration, one_line, printable, utc_clock, utc_clock_ms, utc_text

NAME = "report.html"
AT_MOST_BYTES = 2_000_000
FILES = ("result.json", "junit.xml", "summary.md", "events.jsonl")
WIDTHS = {"wide": 900, "narrow": 330}
"""Of the plots, in px: for a page of 48 rem and more, and for a telephone."""

_ROOMY = page.Limits(checks=300, findings=40, events=400, text=2000)
_TIGHT = page.Limits(checks=20, findings=3, events=50, text=300)

_CONTENTS = (
    ("verdict", "Verdict"),
    ("oracles", "Oracles"),
    ("timeline", "Timeline"),
    ("proof", "Snapshots"),
    ("lag", "Snapshot lag"),
    ("faults", "Faults"),
    ("coverage", "Where faults landed"),
    ("fences", "Fences"),
    ("travel", "Time travel"),
    ("budget", "Outage budget"),
    ("checks", "Checks"),
    ("jobs", "Jobs"),
    ("time", "Time"),
    ("configuration", "Configuration"),
    ("files", "Logs and events"),
)


class Draw(Protocol):
    """What makes SVG of a plot; raises ValueError when it can't."""

    def __call__(self, spec: Spec, *, title: str, description: str, css_class: str) -> str: ...


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """A plot in two widths, or why there is none."""

    wide: str = ""
    narrow: str = ""
    error: str = ""


def save(result: RunResult, folder: Path) -> Path:
    """Write report.html into the run's folder and return its path."""
    path = folder / NAME
    path.write_text(render(result), encoding="utf-8", errors="replace")
    return path


def render(result: RunResult, *, draw: Draw = drawing) -> str:
    """The page of a run, at most 2 MB: of a run with too much to say, less is shown of each part."""
    plots = {
        "timeline": _timeline(result, draw),
        "proof": _proof(result, draw),
        "lag": _lag(result, draw),
    }
    text = _page(result, _ROOMY, plots)
    return text if len(text.encode(errors="replace")) <= AT_MOST_BYTES else _page(result, _TIGHT, plots)


def _page(result: RunResult, limits: page.Limits, plots: dict[str, Drawn | None]) -> str:
    environment = Environment(
        loader=PackageLoader("harness.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["marks"] = MARKS
    environment.filters.update(
        clock=utc_clock,
        clock_ms=utc_clock_ms,
        cut=partial(_cut, length=limits.text),
        duration=duration,
        one_line=one_line,
        utc_text=utc_text,
    )
    css = (Path(__file__).parent / "templates" / "report.css").read_text(encoding="utf-8")
    return environment.get_template("report.html.j2").render(
        run=result,
        css=Markup(css),  # noqa: S704 - our own file
        limits=limits,
        account=account(result),
        causes=causes(result),
        contents=_CONTENTS,
        oracles=page.oracle_sections(result, limits),
        thinned=_thinned(result),
        proofs=proofs(result),
        proof_sentence=sentence,
        why_no_proof=why_none(result),
        lag_rows=page.lag_rows(result),
        recoveries=page.recoveries(result),
        coverage=coverage(result),
        cycle_phases=tuple(CyclePhase),
        not_tested=NOT_TESTED,
        coverage_caveat=CAVEAT,
        bounds=tuple(bound_sentence(bound) for bound in bounds(result)),
        fences=page.fence_rows(result),
        readers=max((len(fence.sink) for fence in result.fences), default=0),
        travels=page.travel_rows(result),
        outage=outage_sentences(result.budget) if result.budget else (),
        jobs=page.job_rows(result),
        phases=page.phase_rows(result),
        files=page.links((*FILES, *result.logs)),
        events=page.events(result, limits),
        **plots,
    )


def _timeline(result: RunResult, draw: Draw) -> Drawn | None:
    if not drawn(result):
        return None
    faults = ", ".join(proof.fault for proof in result.faults) or "no fault"
    fences = len({fence.mark.number for fence in result.fences})
    checkpoints = sum(len(job.checkpoints) for job in result.jobs)
    return _drawn(
        draw,
        lambda width: timeline(result, width=width),
        title="Timeline of the run",
        description=f"Committed and visible change records, {checkpoints} checkpoints, {fences} fences, "
        f"{faults}. The tables below give the same in numbers.",
    )


def _proof(result: RunResult, draw: Draw) -> Drawn | None:
    if not result.positions:
        return None
    told = ". ".join(f"{proof.table}: {sentence(proof)}" for proof in proofs(result))
    return _drawn(
        draw,
        lambda width: proof_plot(result, width=width),
        title="The proof, snapshot by snapshot",
        description=f"For each snapshot the operation of the source that it holds. {told}.",
    )


def _lag(result: RunResult, draw: Draw) -> Drawn | None:
    rows = page.lag_rows(result)
    if not rows:
        return None
    longest = ", ".join(f"{row.table} {duration(row.oldest_max_s)} at {row.worst_at}" for row in rows)
    return _drawn(
        draw,
        lambda width: lag_plot(result, width=width),
        title="Snapshot lag",
        description=f"Time from a commit at the source to visibility in the sink; longest: {longest}.",
    )


def _drawn(draw: Draw, spec: Callable[[int], Spec], *, title: str, description: str) -> Drawn:
    try:
        plots = {
            name: Markup(  # noqa: S704 - Vega escapes the texts of a plot, `draw` those around it
                draw(spec(width), title=one_line(title), description=one_line(description), css_class=name)
            )
            for name, width in WIDTHS.items()
        }
    except ValueError as error:  # a run's report must not be lost for a plot
        return Drawn(error=str(error))
    return Drawn(**plots)


def _thinned(result: RunResult) -> str:
    """What the plots leave out, as a sentence; mostly nothing."""
    per_job = [sum(item.status == "COMPLETED" for item in job.checkpoints) for job in result.jobs]
    shown = [
        sum(p.table == table.name and p.visible >= 0 for p in result.progress) for table in result.tables
    ]
    parts = []
    if max(per_job, default=0) > COMPLETED_AT_MOST:
        parts.append(f"Of completed checkpoints about {COMPLETED_AT_MOST} of each job are drawn.")
    if max(shown, default=0) >= VISIBLE_AT_MOST:
        parts.append(f"Of snapshots at most {VISIBLE_AT_MOST} of each table are drawn.")
    if max((proof.snapshots for proof in proofs(result)), default=0) > DRAWN_AT_MOST:
        parts.append(f"Of the proof about {DRAWN_AT_MOST} snapshots of each kind and table are drawn.")
    return " ".join(parts)


def _cut(text: str, *, length: int) -> str:
    """`text`, printable, and shortened in the middle, where it says least."""
    shown = printable(text)
    if len(shown) <= length:
        return shown
    return f"{shown[: length * 2 // 3]} … {shown[-(length // 3) :]}"
