"""Claims of FEVER with the articles that their evidence is from: where in an article is what supports the claim?

Source: Thorne et al. 2018, "FEVER: a Large-scale Dataset for Fact Extraction and VERification". A claim comes with its
evidence, one or more sentences of the opening section of an article; the other sentences of that section distract.
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias, TypeVar

import msgspec

from groundwire.engine.schema.explanations import PassageRange
from groundwire.evaluate.datasets.examples import Example
from groundwire.runtime.errors import InvalidRequest

Part: TypeAlias = Literal["fit", "held_out"]
R = TypeVar("R")


class Claim(msgspec.Struct, frozen=True):
    """A line of the claims; other fields are ignored."""

    id: str
    hypothesis: str
    """The claim."""
    premise: str
    """Its evidence."""
    label: Literal["entailment", "contradiction"]
    title: str
    """Title of the article that the evidence is from."""


class Article(msgspec.Struct, frozen=True):
    """A line of the articles; other fields are ignored."""

    title: str
    text: str


def read_fever_claims(claims: Path, articles: Path, part: Part) -> list[Example]:
    """The claims whose evidence is in the article of their title; all claims about one article are in one ``part``.

    A contradiction does not support a claim, so a contradicted claim has no evidence. InvalidRequest for a file that
    cannot be read, and where nothing is left.
    """
    texts: dict[str, str] = {}
    for article in _read(articles, Article):
        texts.setdefault(article.title, article.text)
    examples = []
    for claim in _read(claims, Claim):
        text = texts.get(claim.title)
        where = None if text is None or assign_part(claim.title) != part else find_text(text, claim.premise)
        if text is None or where is None:
            continue
        supports = claim.label == "entailment"
        evidence = (PassageRange(0, *where),) if supports else ()
        examples.append(Example(claim.id, claim.hypothesis, (text,), label=int(supports), evidence=evidence))
    if not examples:
        raise InvalidRequest(f"No claim of {claims} has its evidence in an article of {articles}; give others.")
    return examples


def assign_part(title: str) -> Part:
    """The part that the claims about an article are in, one half each."""
    return "fit" if hashlib.sha256(title.encode()).digest()[0] < 128 else "held_out"


def find_text(text: str, part: str) -> tuple[int, int] | None:
    """Where in ``text`` the letters and digits of ``part`` are, whatever is between them; None if they are not.

    >>> find_text("Elvis ( born 1935 ) sang .", "born 1935) sang.")
    (8, 24)
    """
    indices = [index for index, character in enumerate(text) for _ in _fold(character)]
    start = _fold(text).find(_fold(part)) if _fold(part) else -1
    return None if start < 0 else (indices[start], indices[start + len(_fold(part)) - 1] + 1)


def _fold(text: str) -> str:
    return "".join(character for character in text.lower() if character.isalnum())


def _read(path: Path, kind: type[R]) -> Iterator[R]:
    try:
        raw = path.read_bytes()
        for line in (gzip.decompress(raw) if path.suffix == ".gz" else raw).splitlines():
            yield msgspec.json.decode(line, type=kind)
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidRequest(f"{path} cannot be read as lines of {kind.__name__}: {error}.") from error
