"""Rewrites sentences in chat style: "yeah , i think …", "did you know that … ?", contractions, asides before and after.

Responses are chatty and encyclopedias are not. A model trained on plain sentences could take chat style for a sign of
one label, so both labels of every recipe get the same style, drawn independently of the label. Case and the spaces
around punctuation are not changed: the backbone's tokenizer lower-cases and splits at punctuation anyway.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

APOSTROPHES = re.compile(r"[‘’´`]")

_ACKNOWLEDGEMENTS = (
    *(
        "yes",
        "yeah",
        "no",
        "well",
        "oh",
        "wow",
        "right",
        "true",
        "haha",
        "lol",
        "yep",
        "ok",
        "sure",
        "i agree",
        "exactly",
    ),
    *(
        "oh really",
        "that's true",
        "that's cool",
        "that's interesting",
        "interesting",
        "i know",
        "me too",
        "i see",
        "nice",
    ),
    *("i'm not sure", "i don't know", "you're right", "good question", "absolutely", "of course", "hmm", "actually"),
    *("yes it is", "i do too", "same here", "very true", "i love that", "so", "and", "also", "but", "no problem"),
)
_OPENINGS = (
    *("i think", "i believe", "i know that", "i heard that", "i read that", "i guess", "i'm pretty sure", "apparently"),
    *("in fact", "actually", "from what i know", "it's interesting that", "fun fact:", "as far as i know", "they say"),
)
_ASKING = ("did you know that", "did you know", "have you heard that")
_CONTRACTIONS = (
    *(("it is", "it's"), ("that is", "that's"), ("there is", "there's"), ("he is", "he's"), ("she is", "she's")),
    *(("they are", "they're"), ("is not", "isn't"), ("was not", "wasn't"), ("did not", "didn't"), ("do not", "don't")),
    *(
        ("does not", "doesn't"),
        ("are not", "aren't"),
        ("were not", "weren't"),
        ("cannot", "can't"),
        ("had not", "hadn't"),
    ),
)
_CONTRACTED = {short: full for full, short in _CONTRACTIONS} | {"can't": "can not"}
_SHORTEN = re.compile(rf"\b(?:{'|'.join(full for full, _ in _CONTRACTIONS)})\b", re.IGNORECASE)
_LENGTHEN = re.compile(rf"\b(?:{'|'.join(_CONTRACTED)})(?!\w)", re.IGNORECASE)
_SHORT = dict(_CONTRACTIONS)
_SPLIT = re.compile(r"(\w)(n't|'(?:s|m|re|ve|d|ll))\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class StyleChances:
    """The probability of each change to a sentence or a response."""

    acknowledge: float = 0.25
    """A reaction before the sentence: "yeah ,"."""
    open: float = 0.15
    """"i think", "i heard that"."""
    ask: float = 0.06
    """"did you know that … ?"."""
    contract: float = 0.15
    """Contractions made where there is a full form."""
    lengthen: float = 0.15
    """Contractions undone."""
    split: float = 0.3
    """"do n't" and "it 's", as tokenized corpora write them."""
    drop_stop: float = 0.25
    """The final full stop left out."""
    before: float = 0.2
    """A sentence of chat before the response."""
    after: float = 0.15
    """A sentence of chat after the response."""


@dataclass(frozen=True, slots=True)
class StyledClaim:
    """A text in chat style, split where the claim begins and ends."""

    before: str
    claim: str
    after: str
    aside: bool = False
    """Whether a sentence of chat is before or after the claim."""

    @property
    def text(self) -> str:
        """The whole text."""
        return self.before + self.claim + self.after


class ChatStyle:
    """Rewrites texts in chat style, with asides from ``asides``: sentences of chat that state no facts."""

    def __init__(self, asides: Sequence[str], chances: StyleChances | None = None) -> None:
        self._asides = asides
        self._chances = chances or StyleChances()

    def style_sentence(self, text: str, rng: random.Random, *, claim: bool = True) -> str:
        """One sentence in chat style; only a ``claim`` without a question mark is reported ("i heard that")."""
        return self._style_parts(text, rng, claim).text

    def style_response(self, text: str, rng: random.Random) -> str:
        """``text`` in chat style as a response, sometimes with asides before and after."""
        return self.style_claim(text, rng).text

    def style_claim(self, text: str, rng: random.Random) -> StyledClaim:
        """``text`` as ``style_response`` gives it, in its parts."""
        styled = self._style_parts(text, rng, claim=True)
        if self._asides and rng.random() < self._chances.before:
            aside = _end_sentence(rng.choice(self._asides))
            styled = replace(styled, before=f"{aside} {styled.before}", aside=True)
        if self._asides and rng.random() < self._chances.after:
            stop = "" if styled.text.endswith((".", "!", "?")) else "."
            styled = replace(styled, after=f"{styled.after}{stop} {rng.choice(self._asides)}", aside=True)
        return styled

    def _style_parts(self, text: str, rng: random.Random, claim: bool) -> StyledClaim:
        chances = self._chances
        text = APOSTROPHES.sub("'", text.strip())
        before = after = ""
        if rng.random() < chances.contract:
            text = _SHORTEN.sub(lambda match: _SHORT[match.group().lower()], text)
        elif rng.random() < chances.lengthen:
            text = _LENGTHEN.sub(lambda match: _CONTRACTED[match.group().lower()], text)
        dice = rng.random()
        claim &= "?" not in text
        if claim and dice < chances.ask:
            before, text, after = f"{rng.choice(_ASKING)} ", text.rstrip(" .!"), "?"
        elif claim and dice < chances.ask + chances.open:
            before = f"{rng.choice(_OPENINGS)} "
        if rng.random() < chances.acknowledge:
            before = f"{rng.choice(_ACKNOWLEDGEMENTS)}{rng.choice((', ', ' ', '! ', ', '))}{before}"
        if rng.random() < chances.drop_stop and not after and text.endswith("."):
            text = text[:-1]
        if rng.random() < chances.split:
            before, text = (_SPLIT.sub(r"\1 \2", part) for part in (before, text))
        return StyledClaim(before, text, after)


def _end_sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."
