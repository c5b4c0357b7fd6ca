"""A fake response generator, a fake language model, and an engine over both."""

from __future__ import annotations

from typing import Any

from groundwire.engine import (
    Engine,
    ModelError,
)
from groundwire.runtime.calls import (
    Generate,
    GeneratedSequence,
    MeasureTexts,
    ScoreText,
    SequenceToken,
    TextLengths,
    TextScored,
)
from groundwire.runtime.errors import TooLong
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome


def language_model(call: ScoreText | MeasureTexts) -> Outcome:
    """Words are likelier where the prefix has them; a long text is refused."""
    if isinstance(call, MeasureTexts):
        return TextLengths(tuple(len(text.split(" ")) for text in call.texts), 6)
    words, offsets, at = call.text.split(" "), [], 0
    if len(words) > 6:
        raise TooLong("too long")
    for word in words:
        offsets.append((at, at + len(word)))
        at += len(word) + 1
    values = [-1.0 if word.strip(".") in " ".join(call.prefix) else -2.0 for word in words]
    return TextScored(tuple(offsets), tuple(values), 0)


TEXTS = ("wasps make honey", "honey is blue", "bees make honey", "wasps make honey", " ")


def make_sequence(text: str, rank: int = 0) -> GeneratedSequence:
    """One token per word, with the space before it, and an end token."""
    words = text.split(" ")
    tokens = [SequenceToken(i, " " * (i > 0) + word, -1.0 - i, 0.5 * i) for i, word in enumerate(words)]
    return GeneratedSequence(text, -float(rank), (*tokens, SequenceToken(99, "", -0.5, 0.25)), True)


def generator(call: Generate) -> Outcome:
    """Return the first TEXTS, as many as the call wants; refuse a long history."""
    if len(call.history[0]) > 50:
        raise TooLong("The prompt has 60 tokens; this model reads 50.")
    if "broken" in call.history:
        raise ModelError("broken")
    count = getattr(call.decoding, "num_return_sequences", 1)
    return tuple(make_sequence(text, rank) for rank, text in enumerate(TEXTS[:count]))


def make_engine(**roles: Any) -> Engine:
    return Engine(FakeRuntime({"generator": generator, "lm": language_model, **roles}))
