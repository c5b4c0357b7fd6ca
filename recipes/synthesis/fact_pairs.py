"""Minimal pairs of made-up facts: one knowledge and two responses, or one response to two knowledges."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import TypeAlias

from groundwire.evaluate.twins.edits import EditedSpan

from .chat_style import ChatStyle, StyledClaim
from .minimal_pairs import GroundedPair, MinimalPair
from .opposite_facts import OppositeFacts, Side

PLAIN = 0.4
"""Share of the responses that are not in chat style."""
ALONE = 0.35
"""Share of the facts that are all of their knowledge."""
SAME_WORDS = 0.15
"""Share of the true responses that may be worded like the knowledge."""
MARK = re.compile(r"\[([^\]]*)\]")
DrawPassage: TypeAlias = Callable[[int, random.Random], str]
"""Draws sentences of an article of so many words at most."""


class FactPairs:
    """Draws minimal pairs of made-up facts."""

    def __init__(self, facts: OppositeFacts, draw_passage: DrawPassage, style: ChatStyle) -> None:
        """``draw_passage`` gives the sentences that a fact is among."""
        self._facts = facts
        self._draw_passage = draw_passage
        self._style = style

    def draw(self, words: int, rng: random.Random) -> MinimalPair:
        """Draw a pair whose knowledge has about so many words at most."""
        drawn = self._facts.draw(rng)
        here, there = drawn.sides if rng.random() < 0.5 else drawn.sides[::-1]
        source = rng.choice(here.list_sources())
        claim = _draw_claim(here, source, rng)
        inference = "contradiction" if drawn.contradict else "not_entailment"
        before, after = self._draw_surroundings(words - 25, rng)
        knowledge = other = f"{before}{_clean(source)}{after}"
        true, spans = self._word(claim, drawn.reason, rng)
        false = true
        if rng.random() < 0.5:
            # The same response beside a knowledge that says the opposite.
            other = f"{before}{_clean(rng.choice(there.list_sources()))}{after}"
        else:
            false, spans = self._word(rng.choice(there.claims), drawn.reason, rng)
        return MinimalPair(
            GroundedPair(knowledge, true.text, (), drawn.kind, None if true.aside else "entailment"),
            GroundedPair(other, false.text, spans, drawn.kind, None if false.aside else inference),
        )

    def _draw_surroundings(self, words: int, rng: random.Random) -> tuple[str, str]:
        """What is before and after the fact in its knowledge, with the space between."""
        if rng.random() < ALONE or words < 10:
            return "", ""
        passage = self._draw_passage(words, rng).strip()
        return (f"{passage} ", "") if rng.random() < 0.5 else ("", f" {passage}")

    def _word(self, claim: str, reason: str, rng: random.Random) -> tuple[StyledClaim, tuple[EditedSpan, ...]]:
        """The claim as a response, and where the marked words are in it."""
        text = _clean(claim)
        styled = StyledClaim("", text, "") if rng.random() < PLAIN else self._style.style_claim(text, rng)
        spans, done = [], 0
        for part in MARK.findall(claim):
            match = re.compile(re.escape(part), re.IGNORECASE).search(styled.claim, done)
            if match is not None:
                done = match.end()
                shift = len(styled.before)
                spans.append(EditedSpan(match.start() + shift, match.end() + shift, reason))
        if not spans:
            # The style has changed the marked words ("does n't").
            spans = [EditedSpan(len(styled.before), len(styled.before) + len(styled.claim), reason)]
        return styled, tuple(spans)


def _draw_claim(side: Side, source: str, rng: random.Random) -> str:
    """A statement of the side, mostly in other words than ``source``."""
    others = [claim for claim in side.claims if claim != source]
    return rng.choice(side.claims) if not others or rng.random() < SAME_WORDS else rng.choice(others)


def _clean(text: str) -> str:
    """A statement without marks, as a sentence."""
    plain = MARK.sub(r"\1", text)
    return f"{plain[:1].upper()}{plain[1:]}."
