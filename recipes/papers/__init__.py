"""The papers' tables, published figures beside measured ones: ``groundwire tables``.

``runs`` reads the runs that the tables are measured on; ``published.json`` holds the figures that the papers print.
"""

from __future__ import annotations

from .published import TABLES, PublishedFigure, PublishedTable, iterate_figures
from .render import PaperTable, fill_tables, render_table
from .runs import ScoredRun

__all__ = [
    "TABLES",
    "PaperTable",
    "PublishedFigure",
    "PublishedTable",
    "ScoredRun",
    "fill_tables",
    "iterate_figures",
    "render_table",
]
