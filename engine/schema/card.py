"""Writes a score as a small card of HTML, for notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .results import Score, SentenceVerdict, UnsupportedSpan

COLOURS = {"consistent": "#1a7f37", "inconsistent": "#b3261e", "unverifiable": "#6a6a6a", "unknown": "#8a6d00"}
"""Of labels, dark enough on white and light enough on black."""


def write_card(score: Score) -> str:
    """Return the verdict, the sentences with their doubted words, and what the knowledge says in their place."""
    verdict = score.verdict
    number = "" if verdict.probability is None else f" {verdict.probability:.2f}"
    doubt = "" if verdict.sure or verdict.label == "unknown" else ", not sure"
    lines = [f"<div>{_chip(verdict.label)}{number}{doubt}{_note(verdict.message or score.message)}</div>"]
    lines += [f"<div>{_chip(part.verdict.label)} {''.join(_mark(part))}</div>" for part in score.sentences]
    return f"<div style='font-family:sans-serif;line-height:1.6;max-width:50em'>{''.join(lines)}</div>"


def _chip(label: str) -> str:
    style = f"background:{COLOURS[label]};color:#fff;border-radius:3px;padding:1px 6px;font-size:85%"
    return f"<span style='{style}'>{label}</span>"


def _note(text: str) -> str:
    return f" <span style='opacity:.7'>{escape(text)}</span>" if text else ""


def _mark(sentence: SentenceVerdict) -> Iterator[str]:
    """The sentence in pieces, each unsupported one under a line; such a span may end beyond the sentence."""
    position = sentence.start
    for span in sentence.unsupported:
        end = min(span.end, sentence.end)
        yield escape(sentence.text[position - sentence.start : span.start - sentence.start])
        yield f"<span title='{escape(_title(span))}' style='text-decoration:underline 2px {COLOURS['inconsistent']}'>"
        yield f"{escape(sentence.text[span.start - sentence.start : end - sentence.start])}</span>"
        position = end
    yield escape(sentence.text[position - sentence.start :])


def _title(span: UnsupportedSpan) -> str:
    return f"{span.reason}; the knowledge says {span.knowledge_says}" if span.knowledge_says else span.reason
