"""Sentences made of words and entities: templates with slots, and where each entity is in the text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import msgspec

from groundwire.runtime.triples import Triple


class EntityMention(msgspec.Struct, frozen=True):
    """An entity in a response: ``response[start:end]`` names ``entity``, perhaps in other words than the graph."""

    start: int
    end: int
    entity: str
    triples: tuple[Triple, ...] = ()
    """Triples of the dialogue that the response states with the mention; empty when it states none."""


class EntityPiece(msgspec.Struct, frozen=True):
    """An entity in a sentence under construction."""

    surface: str
    entity: str
    triples: tuple[Triple, ...]


Pieces: TypeAlias = list["str | EntityPiece"]
"""A text under construction: words and entities."""


def fill_template(template: str, slots: Mapping[str, Sequence[str | EntityPiece]]) -> Pieces:
    """The parts of a template with its ``{name}`` slots filled and its articles (a, an, the) adapted."""
    out: Pieces = []
    for part in template.replace("{", "\0{").replace("}", "}\0").split("\0"):
        if not (part.startswith("{") and part.endswith("}")):
            last = out[-1] if out else ""
            if isinstance(last, EntityPiece) and last.surface.lower().endswith("film") and part.startswith(" film"):
                part = part.removeprefix(" film")
            out += [part] if part else []
            continue
        filling = slots[part[1:-1]]
        before, named = (out[-1] if out else ""), filling[0]
        if isinstance(before, str) and isinstance(named, EntityPiece):
            if before.endswith((" a ", "A ")) and named.surface[:1].lower() in "aeiou":
                out[-1] = before[:-1] + "n "
            elif before.lower().endswith("the ") and named.surface.lower().startswith("the "):
                out[-1] = before[:-4]
        out += filling
    return out


def join_pieces(pieces: Pieces) -> tuple[str, tuple[EntityMention, ...]]:
    """The text of some parts, capitalised, and the mentions in it."""
    text, mentions = "", []
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
            continue
        if piece.entity:
            mentions.append(EntityMention(len(text), len(text) + len(piece.surface), piece.entity, piece.triples))
        text += piece.surface
    return text[:1].upper() + text[1:], tuple(mentions)
