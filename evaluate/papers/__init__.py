"""The papers' tables, published figures beside measured ones: ``groundwire tables``.

Of the runs that the tables are measured on, see ``runs``; of the figures that the papers print, ``published.json``.
"""

from __future__ import annotations

from .command import command
from .published import TABLES, Figure, PublishedTable, figures
from .render import Table, fill, render
from .runs import Run

__all__ = ["TABLES", "Figure", "PublishedTable", "Run", "Table", "command", "figures", "fill", "render"]
