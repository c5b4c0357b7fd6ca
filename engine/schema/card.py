"""Writes a score as a small card of HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import NamedTuple

from .explanations import UnsupportedSpan

COLOURS = {"consistent": "#1a7f37", "inconsistent": "#b3261e", "unverifiable": "#6a6a6a", "unknown": "#8a6d00"}
"""Of labels, dark enough on white and light enough on black."""


class CardSentence(NamedTuple):
    """A sentence of a response, from character ``start`` on, with its label and its unsupported words."""

    label: str
    text: str
    start: int
    unsupported: Sequence[UnsupportedSpan]


def write_card(label: str, about: str, message: str, sentences: Iterable[CardSentence]) -> str:
    """Return the verdict with what is said ``about`` it, and the sentences with their doubted words.

    What the knowledge says in their place is their tooltip.
    """
    lines = [f"<div>{_chip(label)} {escape(about)}{_note(message)}</div>"]
    lines += [f"<div>{_chip(sentence.label)} {''.join(_mark(sentence))}</div>" for sentence in sentences]
    return f"<div style='font-family:sans-serif;line-height:1.6;max-width:50em'>{''.join(lines)}</div>"


def _chip(label: str) -> str:
    style = f"background:{COLOURS[label]};color:#fff;border-radius:3px;padding:1px 6px;font-size:85%"
    return f"<span style='{style}'>{label}</span>"


def _note(text: str) -> str:
    return f" <span style='opacity:.7'>{escape(text)}</span>" if text else ""


def _mark(sentence: CardSentence) -> Iterator[str]:
    """The sentence in pieces, each unsupported one under a line; such a span may end beyond the sentence."""
    position = sentence.start
    for span in sentence.unsupported:
        end = min(span.end, sentence.start + len(sentence.text))
        yield escape(sentence.text[position - sentence.start : span.start - sentence.start])
        yield f"<span title='{escape(_title(span))}' style='text-decoration:underline 2px {COLOURS['inconsistent']}'>"
        yield f"{escape(sentence.text[span.start - sentence.start : end - sentence.start])}</span>"
        position = end
    yield escape(sentence.text[position - sentence.start :])


def _title(span: UnsupportedSpan) -> str:
    return f"{span.reason}; the knowledge says {span.knowledge_says}" if span.knowledge_says else span.reason
