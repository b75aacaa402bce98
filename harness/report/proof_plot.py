"""The plot of the proof: for each snapshot the operation after which the source was as the snapshot is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.model import NO_OPERATION, RunResult, SnapshotPosition
from harness.report.frame import Frame, frame
from harness.report.snapshot_proof import gone_back, listed, positions_of_table
from harness.report.vega import Spec
from harness.report.wording import one_line

DRAWN_AT_MOST = 200
"""Snapshots of each look that are drawn of a table: of more, every n-th; of wrong ones, the first."""

_LABELS_AT_MOST = 4
_LETTER = 6.2
"""About the width of a letter, in px."""

_LOOKS = {
    "replayed": {"shape": "circle", "size": 14, "fill": "var(--accent)", "stroke": "var(--accent)"},
    "whole": {"shape": "circle", "size": 44, "fill": "var(--paper)", "stroke": "var(--accent)"},
    "compaction": {"shape": "diamond", "size": 60, "fill": "var(--paper)", "stroke": "var(--ink)"},
    "wrong": {"shape": "M-1,-1L1,1M-1,1L1,-1", "size": 80, "stroke": "var(--bad)", "strokeWidth": 2.5},
}


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A snapshot as it is drawn: a wrong one at the operation of the right one before it."""

    at_ms: int
    operation: int
    look: str
    snapshot_id: int


def proof_plot(result: RunResult, *, width: int) -> Spec:
    """One panel per table, `width` px wide with its labels, on the time axis of the timeline."""
    shared = frame(result, width=width)
    tables = [table.name for table in result.tables if positions_of_table(result, table.name)]
    return shared.column(
        [
            _panel(name, marks(positions_of_table(result, name)), shared, last=name == tables[-1])
            for name in tables
        ]
    )


def marks(positions: Sequence[SnapshotPosition]) -> tuple[Mark, ...]:
    """Each snapshot of a table as it is drawn."""
    back = gone_back(positions)
    # Before the first right one there is no place of their own: they stand where that one does.
    operation = next((item.operation for item in positions if item.operation != NO_OPERATION), 0)
    found = []
    for position in positions:
        wrong = position.operation == NO_OPERATION or position.snapshot_id in back
        if position.operation != NO_OPERATION:
            operation = position.operation
        found.append(
            Mark(
                at_ms=position.at_ms,
                operation=operation,
                look="wrong" if wrong else _look(position),
                snapshot_id=position.snapshot_id,
            )
        )
    return tuple(found)


def _look(position: SnapshotPosition) -> str:
    if position.kind != "APPEND":
        return "compaction"
    return "whole" if position.whole else "replayed"


def _panel(table: str, found: Sequence[Mark], shared: Frame, *, last: bool) -> Spec:
    low, high = min(mark.operation for mark in found), max(mark.operation for mark in found)
    room = max(1, 0.16 * (high - low))  # for labels, and for a table that stood still
    y = {
        "field": "operation",
        "type": "quantitative",
        "scale": {"domain": [max(0, low - room), high + room], "nice": False, "zero": False},
        "axis": {"format": "~s", "tickCount": 4},
    }
    x = shared.x(last=last)
    drawn = {look: _thinned([mark for mark in found if mark.look == look], look) for look in _LOOKS}
    right = sorted(
        (mark for look, of_look in drawn.items() if look != "wrong" for mark in of_look),
        key=lambda mark: mark.snapshot_id,
    )
    layers: list[Spec] = [
        {
            "data": {"values": [_point(mark) for mark in right]},
            "mark": {
                "type": "line",
                "stroke": "var(--accent)",
                "strokeWidth": 1,
                "interpolate": "step-after",
            },
            "encoding": {"x": x, "y": y},
        },
        *(
            {
                "data": {"values": [_point(mark) for mark in drawn[look]]},
                "mark": {"type": "point", "opacity": 1, **shape},
                "encoding": {"x": x, "y": y},
            }
            for look, shape in _LOOKS.items()
        ),
    ]
    labels = _labels(found, shared)
    # A curve that rises leaves room below to the right of a mark, and above to its left.
    for align, gap, down in (("left", 7, 12), ("right", -7, -9)):
        layers.append(
            {
                "data": {"values": [label for label in labels if label["align"] == align]},
                "mark": {"type": "text", "align": align, "dx": gap, "dy": down, "color": "var(--bad)"},
                "encoding": {"x": x, "y": y, "text": {"field": "text"}},
            }
        )
    return shared.panel(f"{one_line(table)}: operation held", 120, layers)


def _thinned(found: Sequence[Mark], look: str) -> Sequence[Mark]:
    if look == "wrong":
        return found[:DRAWN_AT_MOST]
    return found[:: max(1, -(-len(found) // DRAWN_AT_MOST))]


def _point(mark: Mark) -> Spec:
    return {"at": mark.at_ms, "operation": mark.operation}


def _labels(found: Sequence[Mark], shared: Frame) -> list[Spec]:
    """One for each run of wrong snapshots, beside its first, on the side that has room."""
    runs: list[list[Mark]] = []
    for before, mark in zip((None, *found), found, strict=False):
        if mark.look == "wrong":
            if before is not None and before.look == "wrong":
                runs[-1].append(mark)
            else:
                runs.append([mark])
    labels: list[Spec] = []
    for run in runs[:_LABELS_AT_MOST]:
        text = listed([mark.snapshot_id for mark in run])
        at = run[0].at_ms
        room = shared.width * (shared.end_ms - at) / (shared.end_ms - shared.start_ms)
        align = "left" if room > _LETTER * len(text) + 8 else "right"
        labels.append({"at": at, "operation": run[0].operation, "align": align, "text": text})
    return labels
