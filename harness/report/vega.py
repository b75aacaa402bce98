"""Vega-Lite specifications as inline SVG: accessible, without ids, colours left to the page's CSS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

import vl_convert

Spec = Mapping[str, object]
"""A Vega-Lite specification, or a part of one. Colours are CSS variables, as in `var(--ink)`."""

LABEL_WIDTH = 52
"""Room for the labels of a y axis, in px: the same everywhere, so that panels stand one under another."""

CONFIG: Spec = {
    "background": "transparent",
    "view": {"stroke": "var(--line)", "fill": None},
    "axis": {
        "domain": False,
        "gridColor": "var(--line)",
        "labelColor": "var(--muted)",
        "labelFontSize": 11,
        "tickColor": "var(--line)",
        "title": None,
        "titleColor": "var(--muted)",
        "titleFontSize": 11,
        "titleFontWeight": "normal",
    },
    "axisY": {"maxExtent": LABEL_WIDTH, "minExtent": LABEL_WIDTH},
    "title": {
        "anchor": "start",
        "color": "var(--ink)",
        "fontSize": 12,
        "fontWeight": 600,
        "offset": 6,
        "frame": "group",
    },
    "text": {"color": "var(--ink)", "fontSize": 11},
    "aria": False,
}

_OPENING = re.compile(r'<svg [^>]*? width="([\d.]+)" height="([\d.]+)"[^>]*>')
_NOISE = re.compile(r' (?:font-family|role|aria-roledescription|aria-hidden|pointer-events)="[^"]*"')


def drawing(spec: Spec, *, title: str, description: str, css_class: str) -> str:
    """`spec` as an SVG element of the given class, with a title and a description for screen readers.

    Nothing is loaded from anywhere. Raises ValueError when the specification can't be drawn.
    """
    svg = str(vl_convert.vegalite_to_svg({**spec, "config": CONFIG}, vl_version="5.20", allowed_base_urls=[]))
    opening = _OPENING.match(svg)
    if opening is None:
        raise ValueError(f"expected an SVG with width and height, got {svg[:200]!r}")
    width, height = opening.groups()
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{escape(css_class)}" role="img" '
        f'viewBox="0 0 {width} {height}" aria-label="{escape(title)}. {escape(description)}">'
        f"<title>{escape(title)}</title><desc>{escape(description)}</desc>"
    )
    return head + _NOISE.sub("", svg[opening.end() :])
