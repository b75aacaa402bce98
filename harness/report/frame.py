"""The time axis that all plots of a run share, with its faults as bands and its fences as lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.model import RunResult
from harness.report.vega import LABEL_WIDTH, Spec

_RIGHT = 16
"""Px that the last fence's number may reach beyond its plot."""


@dataclass(frozen=True, kw_only=True)
class Frame:
    """Where panels are drawn: their width in px, and from when to when (epoch ms)."""

    width: int
    start_ms: int
    end_ms: int
    behind: tuple[Spec, ...]

    def x(self, *, last: bool) -> Spec:
        """The encoding of the field `at`; only the last panel of a column labels its times."""
        return {
            "field": "at",
            "type": "temporal",
            "scale": {"type": "utc", "domain": [self.start_ms, self.end_ms], "nice": False},
            "axis": {
                "format": "%H:%M:%S",
                "labels": last,
                "ticks": last,
                "title": "time (UTC)" if last else None,
                "tickCount": max(2, self.width // 95),
                "labelOverlap": True,
                "labelFlush": True,
                "grid": True,
            },
        }

    def panel(self, title: str, height: int, layers: Sequence[Spec]) -> Spec:
        """One plot of a column, with the faults and fences behind it."""
        return {
            "title": title,
            "width": self.width,
            "height": height,
            "layer": [*self.behind, *layers],
        }

    def column(self, panels: Sequence[Spec]) -> Spec:
        """Panels one under another."""
        return {
            "vconcat": list(panels),
            # Flush: panels are aligned by their plots, and labels and titles are left room for.
            "spacing": 34,
            "bounds": "flush",
            "padding": {"left": 2, "top": 2, "right": _RIGHT, "bottom": 2},
        }


def frame(result: RunResult, *, width: int) -> Frame:
    """The frame of plots that are `width` px wide with their labels: from the first to the last moment that
    any of them shows.
    """
    moments = [
        *(point.at_ms for point in result.progress),
        *(position.at_ms for position in result.positions),
        *(item.triggered_at_ms for job in result.jobs for item in job.checkpoints),
        *(
            at
            for proof in result.faults
            for at in (proof.injected_at_ms, proof.healed_at_ms, proof.recovered_at_ms)
        ),
        *(at for fence in result.fences for at in (fence.mark.committed_at_ms, fence.visible_at_ms)),
    ]
    known = [at for at in moments if at > 0] or [0]
    start, end = min(known), max(max(known), min(known) + 1000)
    return Frame(
        width=width - LABEL_WIDTH - _RIGHT - 4, start_ms=start, end_ms=end, behind=_behind(result, end)
    )


def _behind(result: RunResult, end_ms: int) -> tuple[Spec, ...]:
    bands: list[Spec] = []
    for proof in result.faults:
        if proof.injected_at_ms <= 0:
            continue
        recovered = proof.recovered_at_ms or end_ms
        healed = min(proof.healed_at_ms or recovered, recovered)
        bands.append({"from": proof.injected_at_ms, "to": healed, "part": "down"})
        bands.append({"from": healed, "to": recovered, "part": "recovering"})
    fences = {fence.mark.number: fence.mark.committed_at_ms for fence in result.fences}
    return (
        *(
            {
                "data": {"values": [band for band in bands if band["part"] == part]},
                "mark": {"type": "rect", "fill": f"var(--{part})"},
                "encoding": {"x": {"field": "from", "type": "temporal"}, "x2": {"field": "to"}},
            }
            for part in ("down", "recovering")
        ),
        {
            "data": {"values": [{"at": at} for at in fences.values()]},
            "mark": {"type": "rule", "stroke": "var(--fence)", "strokeDash": [2, 3]},
            "encoding": {"x": {"field": "at", "type": "temporal"}},
        },
    )
