"""Minimal pairs for training: two (knowledge, response) pairs that differ in one small edit, one of them supported.

A claim R that its knowledge K supports is edited to R', and where possible K to K' with the same edit, so that

========  ============  ============
          R             R'
========  ============  ============
K         supported     unsupported
K'        unsupported   supported
========  ============  ============

A minimal pair is one side of this square: two responses to the same knowledge, or the same response with two
knowledges. All sides are drawn alike, so neither the wording of a response nor the wording of a knowledge shows the
label.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from groundwire.evaluate.twins.edits import ClaimEdit, EditedSpan

from ..common.corpus import Squad, word_coverage
from .articles import PLAIN_TEXTS, Articles
from .chat_style import ChatStyle, StyledClaim
from .grounded_claims import ArticleClaims, FactClaims, GroundedClaim, GroundedClaims, StatementClaims
from .pairs import NEAR
from .rewordings import RewordingContext, reword
from .structured_edits import EditContext, draw_editor, edit_claim, edit_knowledge
from .typed_names import NameTypes

ARTICLE_SHARES = {"squad": 0.3, "text_wikipedia": 0.4, "text_fever_intros": 0.15, "text_wikitext_openings": 0.15}
"""Shares of the claims about articles, by source."""
PLAIN = 0.4
"""Share of the responses that are left as the article words them; the others are in chat style."""
REWORDED = 0.6
"""Share of the claims that are said in other words, as far as a rewording applies."""
DROPPED = 0.08
"""Share of the pairs whose claim loses a sentence of its knowledge instead of being edited."""
ATTEMPTS = 14
"""Claims that an editor is tried on before another editor is drawn."""
_OUTRIGHT = frozenset({"number", "date", "negation"})
"""Reasons that contradict the knowledge; another name may be true beside the knowledge's own."""


@dataclass(frozen=True, slots=True)
class GroundedPair:
    """A response to a knowledge, and the characters that are unsupported."""

    knowledge: str
    response: str
    spans: tuple[EditedSpan, ...]
    kind: str
    """How the response was edited; of both pairs."""
    inference: str | None
    """entailment, neutral, contradiction or not_entailment; None where the response holds more than the claim."""

    @property
    def supported(self) -> bool:
        """Whether the knowledge supports all that the response claims."""
        return not self.spans


class MinimalPair(NamedTuple):
    """Two pairs that share their knowledge or their response."""

    supported: GroundedPair
    unsupported: GroundedPair


class MinimalPairs:
    """Draws minimal pairs."""

    def __init__(self, claims: GroundedClaims, names: NameTypes, style: ChatStyle) -> None:
        self._claims = claims
        self._names = names
        self._style = style

    @classmethod
    def read(cls, data: Path, squad: Squad, style: ChatStyle, split: str = "train") -> MinimalPairs:
        """From a directory of training sets; ``split`` is train or dev, whose articles and triples are unseen.

        The plain texts in ``more`` and the triples are used as far as they are there.
        """
        more = data / "more"
        sources = {"squad": Articles.from_squad(squad)}
        paths = {name: more / f"{name}.jsonl.gz" for name in PLAIN_TEXTS}
        sources |= {name: Articles.read(path, split) for name, path in paths.items() if path.is_file()}
        filled = [(articles, ARTICLE_SHARES[name]) for name, articles in sources.items() if articles.texts]
        has_facts = (data / f"fb15k237_{split}.jsonl.gz").is_file()
        facts = FactClaims.read(data, split) if has_facts else None
        return cls(GroundedClaims(ArticleClaims(filled), StatementClaims(squad), facts), NameTypes.read(data), style)

    def draw(self, words: int, rng: random.Random) -> MinimalPair:
        """Draw a pair whose knowledge has about so many words at most."""
        dropped, editor, attempt = rng.random() < DROPPED, draw_editor(rng), 0
        while True:
            attempt += 1
            if attempt % ATTEMPTS == 0:
                dropped, editor = False, draw_editor(rng)
            claim = self._reword(self._claims.draw(max(20, words - 25), rng), rng)
            styled = StyledClaim("", claim.claim, "")
            if rng.random() >= PLAIN:
                styled = self._style.style_claim(claim.claim, rng)
            parts = _add_distractor(claim, words, rng)
            if dropped:
                pair = _drop_support(claim, styled, parts, rng)
            else:
                pair = self._edit(claim, styled, " ".join(parts), editor, rng)
            if pair is not None:
                return pair

    def draw_knowledge(self, words: int, rng: random.Random) -> tuple[str, str]:
        """Draw a knowledge and its topic, which may be empty."""
        claim = self._claims.draw(words, rng)
        return " ".join(_add_distractor(claim, words, rng)), claim.topic

    def _reword(self, claim: GroundedClaim, rng: random.Random) -> GroundedClaim:
        """``claim`` as it is, or in other words."""
        if rng.random() >= REWORDED:
            return claim
        context = RewordingContext(" ".join(claim.passage), claim.topic, self._names)
        return replace(claim, claim=reword(claim.claim, context, rng))

    def _edit(
        self, claim: GroundedClaim, styled: StyledClaim, knowledge: str, editor: str, rng: random.Random
    ) -> MinimalPair | None:
        near = tuple(text for text in claim.near if text not in knowledge)
        context = EditContext(knowledge, near, self._names, claim.answer, claim.rivals)
        edit = edit_claim(styled.claim, context, editor, rng)
        if edit is None:
            return None
        changed = edit_knowledge(knowledge, styled.claim, edit, rng)
        sides = ["top"] if changed is None else ["top", "bottom", "left", "right"]
        if edit.reason == "addition":
            # The claim before an addition is supported by both knowledges.
            sides = ["top"] if changed is None else ["top", "right", "right"]
        side = rng.choice(sides)
        after = StyledClaim(styled.before, edit.apply(styled.claim), styled.after, styled.aside)
        other = changed or knowledge
        true, edited = (_Corner(knowledge, styled), _Corner(other, after))
        false, reverted = (_Corner(knowledge, after), _Corner(other, styled))
        supported, unsupported = {
            "top": (true, false),
            "bottom": (edited, reverted),
            "left": (true, reverted),
            "right": (edited, false),
        }[side]
        spans = edit.find_spans() if unsupported is false else edit.find_replaced_spans()
        return MinimalPair(
            supported.make_pair((), edit.kind, "entailment"),
            unsupported.make_pair(spans, edit.kind, _find_inference(edit)),
        )


class _Corner(NamedTuple):
    """A knowledge and a response of the square."""

    knowledge: str
    response: StyledClaim

    def make_pair(self, spans: Sequence[EditedSpan], kind: str, inference: str) -> GroundedPair:
        shift = len(self.response.before)
        moved = tuple(EditedSpan(span.start + shift, span.end + shift, span.reason) for span in spans)
        return GroundedPair(self.knowledge, self.response.text, moved, kind, None if self.response.aside else inference)


def _find_inference(edit: ClaimEdit) -> str:
    if edit.reason == "addition":
        return "neutral"
    return "contradiction" if edit.reason in _OUTRIGHT else "not_entailment"


def _add_distractor(claim: GroundedClaim, words: int, rng: random.Random) -> list[str]:
    """The sentences of the passage, sometimes with its topic before and with other sentences around it."""
    parts = list(claim.passage)
    room = words - sum(len(text.split()) for text in parts)
    if claim.near and rng.random() < 0.35:
        first = rng.randrange(len(claim.near))
        others: list[str] = []
        for text in claim.near[first : first + rng.choice((1, 2, 3))]:
            room -= len(text.split())
            if room < 0:
                break
            others.append(text)
        parts = [*others, *parts] if rng.random() < 0.5 else [*parts, *others]
    elif claim.topic and rng.random() < 0.15 and not parts[0].startswith(claim.topic):
        parts = [f"{claim.topic}:", *parts]
    return parts


def _drop_support(
    claim: GroundedClaim, styled: StyledClaim, parts: Sequence[str], rng: random.Random
) -> MinimalPair | None:
    """The claim with all of its knowledge, and with one of its needed sentences left out, mostly replaced by another.

    Only claims of two sentences have words that clearly rest on the sentence that is left out; others are unsupported
    as a whole.
    """
    sentence = claim.passage[rng.choice(claim.needed)]
    others = [text for text in parts if text != sentence]
    replacement = [text for text in claim.near if text not in parts and len(text.split()) <= len(sentence.split()) + 8]
    if replacement and rng.random() < 0.8:
        others.insert(rng.randint(0, len(others)), rng.choice(replacement))
    knowledge = " ".join(others)
    if not others or word_coverage(styled.claim, knowledge) >= NEAR:
        return None
    spans: tuple[EditedSpan, ...] = (EditedSpan(0, len(styled.claim), "addition"),)
    if claim.kind == "two":
        pieces = [text for text in claim.claim.split(". ") if word_coverage(text, knowledge) < NEAR]
        starts = [(styled.claim.find(text), text) for text in pieces]
        spans = tuple(EditedSpan(start, start + len(text), "addition") for start, text in starts if start >= 0)
    if not spans or claim.kind in ("bridge", "facts", "pronoun"):
        return None
    return MinimalPair(
        _Corner(" ".join(parts), styled).make_pair((), "dropped", "entailment"),
        _Corner(knowledge, styled).make_pair(spans, "dropped", "neutral"),
    )
