"""Figures in the style of the report, and their three forms: SVG file, PNG file, and SVG inside a page.

Drawing with matplotlib's objects, without pyplot and its global figures. The same figure gives the same bytes.
"""

from __future__ import annotations

import io
import re
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure

INK, FAINT, RULE, CARD = "#1b2430", "#5b6675", "#d5dae1", "#fffffe"
CONSISTENT, INCONSISTENT = "#1668a8", "#c2500c"
SERIES = ("#5a3fc0", "#0f8a9f", "#14183f", "#6b2a14", "#e8551f")
"""Chosen for the largest minimal distance in CIELAB under normal, protan, deutan and tritan sight (Machado 2009), at
3.3 : 1 on white or more. The page has five others for dark surfaces."""
DASHES: tuple[tuple[int, tuple[float, ...]], ...] = (
    (0, ()),
    (0, (5, 1.6)),
    (0, (1.4, 1.2)),
    (0, (6, 1.6, 1.4, 1.6)),
    (0, (9, 2.5)),
)
MARKERS = "osD^v"
_VARIABLES = {
    INK: "--ink",
    FAINT: "--faint",
    RULE: "--rule",
    CARD: "--card",
    CONSISTENT: "--consistent",
    INCONSISTENT: "--inconsistent",
} | {colour: f"--series-{number}" for number, colour in enumerate(SERIES, start=1)}
SIZE = (4.7, 5.1)
"""Inches of a plot with a legend under its axes, of up to six lines and a title."""
SMALL = (3.5, 2.45)
WIDE = (7.4, 4.4)
"""Inches of a plot whose points have names, with a legend of one line under its axes."""
_MARGINS = {SIZE: (0.52, 1.63, 0.1, 0.1), SMALL: (0.46, 0.42, 0.1, 0.06), WIDE: (0.62, 0.86, 0.3, 0.2)}
"""Inches left, below, right and above the axes. Fixed: an automatic layout takes longer than the drawing."""
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "groundwire",
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": True,
    "axes.axisbelow": True,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": FAINT,
    "ytick.labelcolor": FAINT,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "grid.color": RULE,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "legend.handlelength": 2.9,
    "figure.facecolor": CARD,
    "axes.facecolor": CARD,
}
_SVG = "{http://www.w3.org/2000/svg}"
_LINK = "{http://www.w3.org/1999/xlink}href"
_FONT = re.compile(r"(font-family:|font:[^;]*?[\d.]+px)[^;]*")
_COLOUR = re.compile("|".join(_VARIABLES), re.IGNORECASE)


class Drawing(NamedTuple):
    """A plot in its three forms."""

    svg: bytes
    """A complete file, on white."""
    png: bytes
    """The same in pixels."""
    inline: Markup
    """An ``svg`` element for a page that sets ``--ink``, ``--series-1`` and the other variables."""


@contextmanager
def open_figure(size: tuple[float, float]) -> Iterator[tuple[Figure, Axes]]:
    """Open a figure with one pair of axes, in this module's style whatever the user's settings are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        figure = Figure(size)
        (width, height), (left, below, right, above) = size, _MARGINS[size]
        yield (
            figure,
            figure.add_axes(
                (left / width, below / height, (width - left - right) / width, (height - below - above) / height)
            ),
        )


def finish_drawing(figure: Figure, name: str, alternative: str) -> Drawing:
    """The drawing of ``figure``; ``name`` is the prefix of the ids in its inline form, ``alternative`` its text."""
    svg, png = io.BytesIO(), io.BytesIO()
    with warnings.catch_warnings():
        # The font for pixels has no Chinese, say; the SVG uses the fonts of the reader.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(png, format="png", dpi=160, metadata={"Software": None})
    return Drawing(svg.getvalue(), png.getvalue(), _convert_to_inline(svg.getvalue(), name, alternative))


def _convert_to_inline(svg: bytes, name: str, alternative: str) -> Markup:
    """The drawing as an element of an HTML page: unique ids, the page's font and colours, no background or metadata."""
    root = ET.fromstring(svg)
    for parent in list(root.iter()):
        for child in list(parent):
            unwanted = child.tag in (f"{_SVG}metadata", f"{_SVG}style") or child.get("id") == "patch_1"
            if unwanted:
                parent.remove(child)
    for element in root.iter():
        element.tag = str(element.tag).removeprefix(_SVG)
        link = element.attrib.pop(_LINK, None)
        if link is not None:
            element.set("href", link)
        for key, value in list(element.attrib.items()):
            element.set(key, _convert_attribute(key, value, name))
    width, height = (float(root.attrib.pop(side).removesuffix("pt")) for side in ("width", "height"))
    root.attrib = {
        "viewBox": f"0 0 {width:g} {height:g}",
        "role": "img",
        "aria-label": alternative,
        "class": "plot",
        "style": f"--width: {width:g}",
    }
    return Markup(ET.tostring(root, encoding="unicode"))


def _convert_attribute(key: str, value: str, name: str) -> str:
    if key == "id":
        return f"{name}-{value}"
    if key == "href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    value = value.replace("url(#", f"url(#{name}-")
    if key in ("style", "fill", "stroke"):
        value = _COLOUR.sub(lambda match: f"var({_VARIABLES[match[0].lower()]})", value)
    if key == "style":
        value = _FONT.sub(r"\1 var(--sans)", value)
    return value


def save_drawing(drawing: Drawing, stem: Path) -> None:
    """Write ``stem.svg`` and ``stem.png``."""
    stem.with_name(f"{stem.name}.svg").write_bytes(drawing.svg)
    stem.with_name(f"{stem.name}.png").write_bytes(drawing.png)
