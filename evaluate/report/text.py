"""Untrusted text in a page: escaped, with its unsupported words marked."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from markupsafe import Markup

from groundwire.engine import UnsupportedSpan
from groundwire.engine.extend import UNSHOWABLE
from groundwire.engine.schema.results import Citation, number_evidence

_BREAK = re.compile(r"(?<=[_./\-])(?=\w)")


class CoveredPart(NamedTuple):
    """A part of a response that the same spans cover."""

    text: str
    covering: tuple[int, ...]
    """Numbers of the spans, from 1."""
    ending: tuple[int, ...]
    """Numbers of the spans that end with this part."""
    cited: tuple[int, ...] = ()
    """Numbers of what is cited for the sentence that ends with this part (``number_evidence``)."""


class PassagePiece(NamedTuple):
    """A part of a passage."""

    text: str
    number: int | None = None
    """Number of the part, where it is cited."""


def split_into_pieces(
    response: str, unsupported: Sequence[UnsupportedSpan], citations: Sequence[Citation] = ()
) -> tuple[CoveredPart, ...]:
    """``response``, split wherever a span begins or ends, or a sentence with a citation ends; the parts in order are
    the whole response.

    Spans may overlap, be nested and come in any order. They are numbered in the order of ``sort_spans``.
    """
    spans = sort_spans(response, unsupported)
    numbers = number_evidence(citations)
    cited: dict[int, set[int]] = {}
    for citation in citations:
        cited.setdefault(min(max(citation.end, 0), len(response)), set()).add(numbers[citation.evidence])
    cuts = sorted({0, len(response), *cited} | {edge for span in spans for edge in _range(response, span)})
    out = []
    for start, end in itertools.pairwise(cuts):
        covering = [
            (number, span)
            for number, span in enumerate(spans, start=1)
            if _range(response, span)[0] <= start and end <= _range(response, span)[1]
        ]
        out.append(
            CoveredPart(
                response[start:end],
                tuple(number for number, _ in covering),
                tuple(number for number, span in covering if _range(response, span)[1] == end),
                tuple(sorted(cited.get(end, ()))),
            )
        )
    return tuple(out)


def split_passage(passage: str, index: int, citations: Sequence[Citation]) -> tuple[PassagePiece, ...]:
    """Passage ``index`` of the knowledge, split where a cited part begins or ends; the parts in order are all of it.

    Of cited parts that overlap, the first has the text.
    """
    pieces, position = [], 0
    for evidence, number in number_evidence(citations).items():
        start, end = evidence.start, evidence.end
        if evidence.passage == index and position <= start < end <= len(passage):
            pieces += [PassagePiece(passage[position:start]), PassagePiece(passage[start:end], number)]
            position = end
    return tuple(piece for piece in (*pieces, PassagePiece(passage[position:])) if piece.text)


def sort_spans(response: str, unsupported: Iterable[UnsupportedSpan]) -> tuple[UnsupportedSpan, ...]:
    """The spans in the order of the response, the longer first; spans outside of it are left out."""
    inside = (span for span in unsupported if _range(response, span)[0] < _range(response, span)[1])
    return tuple(sorted(inside, key=lambda span: (span.start, -span.end)))


def _range(response: str, span: UnsupportedSpan) -> tuple[int, int]:
    return max(span.start, 0), min(span.end, len(response))


def escape_text(text: object) -> Markup:
    """``text`` escaped; characters that cannot be shown are replaced by their code."""
    out, end, plain = Markup(), 0, str(text)
    for match in UNSHOWABLE.finditer(plain):
        out += Markup.escape(plain[end : match.start()])
        out += Markup('<span class="code">U+{}</span>').format(f"{ord(match[0]):04X}")
        end = match.end()
    return out + Markup.escape(plain[end:])


def break_name(text: object) -> Markup:
    """``text`` as by ``escape_text``, with possible line breaks between the parts of a name."""
    return Markup("<wbr>").join(escape_text(part) for part in _BREAK.split(str(text)))


def replace_unshowable(value: Any) -> Any:
    """What a template outputs: text without the characters that ``escape_text`` replaces, other values unchanged.

    For text where no elements are allowed, such as attributes.
    """
    if isinstance(value, str) and not isinstance(value, Markup):
        return UNSHOWABLE.sub("\ufffd", value)
    return value
