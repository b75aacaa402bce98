"""The plot of how long rows waited until a snapshot showed them."""

from __future__ import annotations

from collections.abc import Sequence

from harness.model import RunResult
from harness.report.frame import Frame, frame
from harness.report.vega import Spec
from harness.report.visibility import Lag, lags
from harness.report.wording import one_line


def lag_plot(result: RunResult, *, width: int) -> Spec:
    """One panel per table, `width` px wide with its labels; each snapshot is a line from its newest row's
    wait to its oldest one's.
    """
    shared = frame(result, width=width)
    found = lags(result.progress)
    tables = list(dict.fromkeys(lag.table for lag in found))
    return shared.column([_panel(found, name, shared, last=name == tables[-1]) for name in tables])


def _panel(found: Sequence[Lag], table: str, shared: Frame, *, last: bool) -> Spec:
    data = {
        "values": [
            {"at": lag.at_ms, "newest": lag.newest_s, "oldest": lag.oldest_s}
            for lag in found
            if lag.table == table
        ]
    }
    y = {
        "field": "oldest",
        "type": "quantitative",
        "scale": {"zero": True},
        "axis": {"tickCount": 4, "labelExpr": "datum.label + ' s'"},
    }
    x = shared.x(last=last)
    layers: list[Spec] = [
        {
            "data": data,
            "mark": {"type": "rule", "stroke": "var(--accent)", "strokeWidth": 1.5},
            "encoding": {"x": x, "y": y, "y2": {"field": "newest"}},
        },
        {
            "data": data,
            "mark": {"type": "point", "opacity": 1, "size": 8, "fill": "var(--ink)", "stroke": "var(--ink)"},
            "encoding": {"x": x, "y": {**y, "field": "newest"}},
        },
    ]
    return shared.panel(f"{one_line(table)}: wait until visible", 96, layers)
