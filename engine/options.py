"""Settings of a request, one frozen record per metric. Defaults follow the papers' authors' code."""

from __future__ import annotations

from typing import Literal

from groundwire.runtime.calls import AnswerRule, Beam, Decoding

from .record import Record


class Q2Options(Record, frozen=True):
    """How Q² asks and compares. Defaults: the setting of the paper's main tables (REFERENCE: the authors' code)."""

    decoding: Decoding = Beam()
    """``Beam()``, ``Greedy()`` or ``Sampling()``; the paper's tables 6–7 compare them."""
    questions: Literal["single", "all"] = "single"
    """``single``: the first valid question of each span, in beam order; ``all``: every valid one."""
    personal_filter: bool = True
    """Drop questions about the speakers ("what do you …", "… my …"). Off for personal dialogue (the DNLI setting)."""
    nli: bool = True
    """Compare unequal answers by inference; off is the ablation "Q² w/o NLI"."""
    fallback: bool = True
    """Without any valid question, classify (knowledge, response) end to end: 1, 0.5 or 0. Off:
    ``nothing_to_verify``."""
    rule: AnswerRule = "independent"
    """How the reader picks an answer; ``independent`` follows the authors' code."""
    spans: tuple[tuple[int, int], ...] | None = None
    """Character ranges of the response to ask about, instead of those the span finder gives."""
    questions_at_once: int = 1
    """``single`` only: questions asked per span and wave. 1 does the least work, ``decoding``'s number the fewest
    waves; the score is the same."""


class Options(Record, frozen=True):
    """Settings of one request."""

    q2: Q2Options = Q2Options()
    deadline_ms: float | None = None
    """Milliseconds after which the request is given up with status ``deadline``; None waits."""
    max_windows: int = 512
    """Windows of knowledge one model call may read; more is status ``truncated``, never a silent cut."""
    max_response_chars: int = 20_000
    max_knowledge_chars: int = 4_000_000
    """Characters of knowledge, over all passages."""
