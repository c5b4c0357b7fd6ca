"""Knowledge as one text, for metrics that read a single document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from groundwire.runtime.triples import Triple, sentence


def format_document(history: Sequence[str], triples: Iterable[Triple]) -> str:
    """Return what FeQA reads as the knowledge (Dziri et al. 2021, appendix E): the history, and every triple as a
    sentence.

    >>> format_document(["Do you know Alien?"], [Triple("Alien", "directed_by", "Ridley Scott")])
    'Do you know Alien? Alien directed by Ridley Scott.'
    """
    return " ".join((*history, *(f"{sentence(triple)}." for triple in triples)))
