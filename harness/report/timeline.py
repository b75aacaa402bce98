"""The timeline of a run: faults and fences, what was committed and visible, and every checkpoint."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

from harness.model import CheckpointRecord, FaultProof, JobHistory, RunResult
from harness.report.frame import Frame, frame
from harness.report.vega import Spec
from harness.report.wording import duration, one_line

COMPLETED_AT_MOST = 400
"""Completed checkpoints that are drawn of a job; of more, every n-th. Others are drawn always."""

_ROW = 20
_LETTER = 6.2
"""Px: the height of a row, and about the width of a letter."""

_SHAPES = {
    "completed": {"shape": "circle", "size": 16, "fill": "var(--accent)", "stroke": "var(--accent)"},
    "savepoint": {"shape": "square", "size": 55, "fill": "var(--paper)", "stroke": "var(--ink)"},
    "failed": {"shape": "M-1,-1L1,1M-1,1L1,-1", "size": 55, "stroke": "var(--bad)", "strokeWidth": 2},
    "unfinished": {"shape": "triangle-up", "size": 40, "fill": "var(--paper)", "stroke": "var(--muted)"},
}


def timeline(result: RunResult, *, width: int) -> Spec:
    """The column of panels, `width` px wide with its labels."""
    shared = frame(result, width=width)
    tables = [table.name for table in result.tables if _points(result, table.name)]
    jobs = list(dict.fromkeys(job.name for job in result.jobs if job.checkpoints))
    rows = [_happened(result, shared)] if result.faults or result.fences else []
    panels = [
        *rows,
        *(_records(result, name, shared, last=not jobs and name == tables[-1]) for name in tables),
        *(_checkpoints(result.jobs, name, shared, last=name == jobs[-1]) for name in jobs),
    ]
    return shared.column(panels)


def drawn(result: RunResult) -> bool:
    """Whether there is anything to draw."""
    return bool(
        result.progress or result.faults or result.fences or any(job.checkpoints for job in result.jobs)
    )


def _points(result: RunResult, table: str) -> list[Spec]:
    return [
        {"at": point.at_ms, "count": max(point.committed, point.visible), "side": side}
        for point in result.progress
        if point.table == table
        for side in ("committed" if point.visible < 0 else "visible",)
    ]


def _records(result: RunResult, table: str, shared: Frame, *, last: bool) -> Spec:
    points = _points(result, table)
    y = {
        "field": "count",
        "type": "quantitative",
        "axis": {"format": "~s", "tickCount": 4},
        "scale": {"nice": False},
    }
    looks = {
        "visible": {"stroke": "var(--accent)", "strokeWidth": 2, "interpolate": "step-after"},
        "committed": {"stroke": "var(--ink)", "strokeWidth": 1, "strokeDash": [4, 2]},
    }
    layers = [
        {
            "data": {"values": [point for point in points if point["side"] == side]},
            "mark": {"type": "line", **look},
            "encoding": {"x": shared.x(last=last), "y": y},
        }
        for side, look in looks.items()
    ]
    return shared.panel(f"{one_line(table)}: change records", 120, layers)


def _checkpoints(jobs: Sequence[JobHistory], name: str, shared: Frame, *, last: bool) -> Spec:
    records = list(chain.from_iterable(job.checkpoints for job in jobs if job.name == name))
    found = [(_kind(record), record) for record in records]
    completed = [record for kind, record in found if kind == "completed"]
    step = max(1, -(-len(completed) // COMPLETED_AT_MOST))
    chosen = [*(("completed", record) for record in completed[::step]), *_others(found)]
    y = {
        "field": "seconds",
        "type": "quantitative",
        "scale": {"type": "log", "domain": [0.01, _highest(records)], "nice": False},
        "axis": {"values": [0.01, 0.1, 1, 10, 100, 1000], "labelExpr": "datum.value + ' s'"},
    }
    layers = [
        {
            "data": {
                "values": [
                    {"at": record.triggered_at_ms, "seconds": max(record.duration_ms, 10) / 1000}
                    for kind, record in chosen
                    if kind == shape
                ]
            },
            "mark": {"type": "point", "opacity": 1, **look},
            "encoding": {"x": shared.x(last=last), "y": y},
        }
        for shape, look in _SHAPES.items()
    ]
    return shared.panel(f"{one_line(name)}: checkpoint duration", 84, layers)


def _others(found: Sequence[tuple[str, CheckpointRecord]]) -> list[tuple[str, CheckpointRecord]]:
    return [(kind, record) for kind, record in found if kind != "completed"][-COMPLETED_AT_MOST:]


def _kind(record: CheckpointRecord) -> str:
    if record.status == "COMPLETED":
        return "savepoint" if record.is_savepoint else "completed"
    return "failed" if record.status == "FAILED" else "unfinished"


def _highest(records: Sequence[CheckpointRecord]) -> float:
    return max([10.0, *(record.duration_ms / 1000 for record in records)]) * 1.6


def _happened(result: RunResult, shared: Frame) -> Spec:
    """A row per fault with its bar and name, and one with all fences."""
    names = [f"fault {number}" for number in range(1, len(result.faults) + 1)]
    rows = [*names, "fences"] if result.fences else names
    y = {
        "field": "row",
        "type": "nominal",
        "sort": rows,
        "scale": {"domain": rows},
        "axis": {"grid": False, "ticks": False, "labelColor": "var(--ink)"},
    }
    bars = [_bar(row, proof, shared) for row, proof in zip(names, result.faults, strict=True)]
    known = [bar for bar in bars if bar["from"]]
    x = shared.x(last=False)
    layers: list[Spec] = [
        {
            "data": {"values": known},
            "mark": {"type": "bar", "height": 9, **look},
            "encoding": {"x": {**x, "field": start}, "x2": {"field": end}, "y": y},
        }
        for start, end, look in (
            ("from", "healed", {"fill": "var(--fault)", "stroke": "var(--fault)", "strokeWidth": 1}),
            ("healed", "to", {"fill": "var(--paper)", "stroke": "var(--fault)", "strokeWidth": 1}),
        )
    ]
    for align, start, gap in (("left", "to", 5), ("right", "from", -5)):
        layers.append(
            {
                "data": {"values": [bar for bar in bars if bar["align"] == align]},
                "mark": {"type": "text", "align": align, "dx": gap, "baseline": "middle"},
                "encoding": {"x": {**x, "field": start}, "y": y, "text": {"field": "text"}},
            }
        )
    return shared.panel("faults and fences", _ROW * len(rows), [*layers, *_fences(result, y, x)])


def _bar(row: str, proof: FaultProof, shared: Frame) -> Spec:
    """When a fault began, was healed and was over, and its text."""
    name = one_line(proof.fault)
    if proof.injected_at_ms <= 0:
        at = shared.start_ms
        return {"row": row, "from": 0, "to": at, "align": "left", "text": f"{name}: never injected"}
    end = proof.recovered_at_ms or shared.end_ms
    took = duration((proof.recovered_at_ms - proof.injected_at_ms) / 1000)
    text = f"{name}, {took}" if proof.recovered_at_ms > 0 else f"{name}: did not recover"
    align, text = _placed((text, name), proof.injected_at_ms, end, shared)
    return {
        "row": row,
        "from": proof.injected_at_ms,
        "healed": min(proof.healed_at_ms or end, end),
        "to": end,
        "align": align,
        "text": text,
    }


def _placed(texts: Sequence[str], start_ms: int, end_ms: int, shared: Frame) -> tuple[str, str]:
    """The first text that has room to the right of a bar (aligned left) or to its left; else the last."""
    scale = shared.width / (shared.end_ms - shared.start_ms)
    rooms = {"left": scale * (shared.end_ms - end_ms), "right": scale * (start_ms - shared.start_ms)}
    for text in texts:
        for align, room in rooms.items():
            if room >= _LETTER * len(text):
                return align, text
    return max(rooms, key=lambda align: rooms[align]), texts[-1]


def _fences(result: RunResult, y: Spec, x: Spec) -> Sequence[Spec]:
    numbers = sorted({fence.mark.number for fence in result.fences})
    values = []
    for number in numbers:
        parts = [fence for fence in result.fences if fence.mark.number == number]
        seen = all(fence.visible for fence in parts)
        at = max(fence.mark.committed_at_ms for fence in parts)
        values.append(
            {"row": "fences", "at": at, "seen": seen, "text": str(number) if seen else f"{number} lost"}
        )
    data = {"values": values}
    return [
        {
            "data": {"values": [value for value in values if value["seen"] is seen]},
            "mark": {"type": "point", "opacity": 1, "size": 60, "stroke": "var(--fence)", **look},
            "encoding": {"x": x, "y": y},
        }
        for seen, look in (
            (True, {"shape": "diamond", "fill": "var(--fence)"}),
            (False, {"shape": "M-1,-1L1,1M-1,1L1,-1", "strokeWidth": 2}),
        )
    ] + [
        {
            "data": data,
            "mark": {"type": "text", "align": "left", "dx": 7, "baseline": "middle"},
            "encoding": {"x": x, "y": y, "text": {"field": "text"}},
        }
    ]
