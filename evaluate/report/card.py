"""The page of an error card: one HTML file that needs no other file and no network."""

from __future__ import annotations

from pathlib import Path

from ..statistics.card import ErrorCard
from .page import format_time, make_environment, write_page
from .tables import Column, Table


def write_card_page(card: ErrorCard, directory: Path) -> Path:
    """Write ``directory/card.html`` and ``directory/card.json``; returns the path of the former.

    The same card gives the same bytes. InvalidRequest for a directory that cannot be written.
    """
    return write_page(directory, "card", render_card(card), card)


def render_card(card: ErrorCard) -> str:
    """The page."""
    environment = make_environment()
    return environment.get_template("card.html").render(
        card=card, when=format_time(card.when), table_of_kinds=build_card_table(card)
    )


def build_card_table(card: ErrorCard) -> Table:
    """The two rates of every kind of text, and of all together."""
    rows = [*card.kinds, card.total]
    columns = (
        Column(
            "False positive rate",
            "share of the consistent responses that is called inconsistent: what a block would stop wrongly",
            "share",
            tuple(row.false_positive_rate for row in rows),
        ),
        Column(
            "False negative rate",
            "share of the inconsistent responses that is called consistent or unverifiable: what a block would miss",
            "share",
            tuple(row.false_negative_rate for row in rows),
        ),
        Column("Consistent", "responses that people call consistent", "count", tuple(row.consistent for row in rows)),
        Column(
            "Inconsistent", "responses that people call inconsistent", "count", tuple(row.inconsistent for row in rows)
        ),
    )
    return Table(
        "Error rates by kind of text", "Kind of text", tuple(row.kind for row in rows), columns, card.total.kind
    )
