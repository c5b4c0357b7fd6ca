"""Makes quotations of texts, each with what it is: to measure ``quotations`` on texts of your own."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from groundwire.engine.schema.explanations import QuotationOutcome
from groundwire.metrics import sentences
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.texts.characters import is_alphanumeric, is_letters

PASSAGES = 3
"""Passages of the knowledge of each made response."""
MIN_WORDS, MAX_WORDS = 9, 35
"""Words of a sentence that is quoted."""
_LEAST_TEXTS = PASSAGES + 1
_SPEAKERS = ("Marta Lindgren", "Paul Okoye", "Ines Ferrer", "Tom Whitlock", "Aiko Mori", "Greta Holm", "Sam Duarte")
_STYLES = ("“{}”", '"{}"', "‘{}’", "«{}»", "\n\n> {}\n\n")
_FRAMES = (
    "Here is the relevant line: {}",
    "It is put very clearly: {} That should answer your question.",
    "I looked this up for you. {} is what it says.",
    "In short: {}, as you can read there.",
    "That is settled, because it says {}.",
)
_NO_QUOTATIONS = (
    "The chapter “How to read what follows” is worth your time.",
    'You could ask "what happened in the years after that".',
    "Many people have a so-called “love and hate relationship” with it.",
    'Type `print("{}")` to see it.',
    'The film "Nothing Ever Came of It All" is about this.',
    "It does not say “{}” anywhere.",
    'It means "a thing that is put to use".',
    "Their “pay as you please” evenings are well known.",
    "It is called ‘the big one of the north’.",
    'Answer with "yes, that is what happened" and go on.',
)
_WORD = re.compile(r"\w+(?:['’.,-]\w+)*")


class MadeQuotation(NamedTuple):
    """A response with one quotation, or with quotation marks that are none."""

    response: str
    knowledge: tuple[str, ...]
    text: str
    """The quotation, without its marks; empty where there is none."""
    outcome: QuotationOutcome | None
    """What it is; None where it is no quotation."""
    changed: tuple[str, ...] = ()
    """Its words that the source does not have."""


def make_quotations(texts: Sequence[str], count: int, seed: int = 13) -> list[MadeQuotation]:
    """Make responses that quote texts: exactly, normalized, altered, stitched, misattributed, absent, and not at all.

    Args:
        texts: Texts of some sentences each, at least four that have a sentence of 9 to 35 words.
        count: How many responses to make, 0 or more; the outcomes take turns.
        seed: The same seed and texts give the same responses.

    Returns:
        The responses with their knowledge.

    Raises:
        InvalidRequest: Too few texts have a sentence to quote.
    """
    usable = [text for text in texts if len(_list_quotable(text)) > 1]
    if len(usable) < _LEAST_TEXTS:
        raise InvalidRequest(
            f"{len(usable)} of {len(texts)} texts have two sentences of {MIN_WORDS} to {MAX_WORDS} words without "
            f"quotation marks; give {_LEAST_TEXTS} or more."
        )
    draw = random.Random(seed)
    return [_MAKERS[index % len(_MAKERS)](draw, draw.sample(usable, _LEAST_TEXTS)) for index in range(count)]


def _list_quotable(text: str) -> list[str]:
    return [
        sentence.text
        for sentence in sentences(text)
        if MIN_WORDS <= len(_WORD.findall(sentence.text)) <= MAX_WORDS
        and sentence.text[-1] == "."
        and not re.search(r"[\"“”‘’«»'`{}<>=\[\]()\n…]|\.\.", sentence.text)
    ]


def _draw_sentence(draw: random.Random, text: str) -> str:
    return draw.choice(_list_quotable(text))


def _write(
    draw: random.Random,
    knowledge: Sequence[str],
    quoted: str,
    outcome: QuotationOutcome,
    changed: tuple[str, ...] = (),
    frame: str = "",
) -> MadeQuotation:
    style = draw.choice(_STYLES[:-1] if frame else _STYLES)
    response = (frame or draw.choice(_FRAMES)).format(style.format(quoted))
    return MadeQuotation(response, tuple(knowledge), quoted, outcome, changed)


def _make_exact(draw: random.Random, texts: Sequence[str]) -> MadeQuotation:
    words = _draw_sentence(draw, texts[0]).split(" ")
    start = draw.randrange(0, len(words) - 5)
    end = draw.randrange(start + 5, len(words) + 1)
    return _write(draw, _shuffle(draw, texts[:PASSAGES]), " ".join(words[start:end]), "exact")


def _make_normalized(draw: random.Random, texts: Sequence[str]) -> MadeQuotation:
    words = _draw_sentence(draw, texts[0]).split(" ")
    middle = draw.randrange(3, len(words) - 4)
    quoted = draw.choice(
        (
            " ".join((*words[:middle], draw.choice(("…", "...", "[…]")), *words[middle + 1 :])),
            " ".join((*words[:middle], "[here]", *words[middle:])),
            " ".join(words).swapcase() if draw.random() < 0.3 else " ".join(words).upper(),
            f"[{words[0][0].lower()}]{words[0][1:]} {' '.join(words[1:])}"
            if is_letters(words[0][:2])
            else " ".join(words).upper(),
            " ".join((*words[:middle], words[middle].strip(",;:.") + ";", *words[middle + 1 :])),
        )
    )
    return _write(draw, _shuffle(draw, texts[:PASSAGES]), quoted, "normalized")


def _make_altered(draw: random.Random, texts: Sequence[str]) -> MadeQuotation:
    words = _draw_sentence(draw, texts[0]).split(" ")
    other = [word.strip(",;:.") for word in _draw_sentence(draw, texts[3]).split(" ")]
    present = {word.strip(",;:.").lower() for word in words}
    new = draw.choice([word for word in other if word.lower() not in present and is_alphanumeric(word)] or ["never"])
    index = draw.randrange(1, len(words) - 1)
    kind = draw.choice(("exchange", "add", "leave out"))
    made, changed = [*words[:index], *words[index + 1 :]], tuple[str, ...]()
    if kind == "exchange":
        tail = words[index][len(words[index].rstrip(",;:.")) :]
        made, changed = [*words[:index], new + tail, *words[index + 1 :]], (new,)
    elif kind == "add":
        made, changed = [*words[:index], new, *words[index:]], (new,)
    return _write(draw, _shuffle(draw, texts[:PASSAGES]), " ".join(made), "altered", changed)


def _make_stitched(draw: random.Random, texts: Sequence[str]) -> MadeQuotation:
    first, second = (_draw_sentence(draw, text).rstrip(".").split(" ") for text in texts[:2])
    quoted = " ".join((*first[: max(4, len(first) // 2)], *second[-max(4, len(second) // 2) :])) + "."
    return _write(draw, _shuffle(draw, texts[:PASSAGES]), quoted, "stitched")


def _make_misattributed(draw: random.Random, texts: Sequence[str]) -> MadeQuotation:
    first, second = _draw_sentence(draw, texts[0]), _draw_sentence(draw, texts[1])
    if draw.random() < 0.5:
        knowledge = texts[:PASSAGES]
        return _write(draw, knowledge, first, "misattributed", frame=f"It says so: {{}} [{draw.choice((2, 3))}].")
    speaker, other = draw.sample(_SPEAKERS, 2)
    passage = f"{texts[2]}\n{speaker} said: “{first}” {other} wrote in a letter: “{second}”"
    frame = draw.choice(
        (f"{other} said: {{}}", f"{{}} said {other}.", f"As {other} put it, {{}}", f"According to {other}, {{}}")
    )
    return _write(draw, [passage], first, "misattributed", frame=frame)


def _make_absent(draw: random.Random, texts: Sequence[str]) -> MadeQuotation:
    return _write(draw, texts[:PASSAGES], _draw_sentence(draw, texts[3]), "absent")


def _make_none(draw: random.Random, texts: Sequence[str]) -> MadeQuotation:
    response = draw.choice(_NO_QUOTATIONS).format(_draw_sentence(draw, texts[3]))
    return MadeQuotation(response, tuple(texts[:PASSAGES]), "", None)


def _shuffle(draw: random.Random, texts: Sequence[str]) -> list[str]:
    return draw.sample(list(texts), len(texts))


_MAKERS: tuple[Callable[[random.Random, Sequence[str]], MadeQuotation], ...] = (
    _make_exact,
    _make_normalized,
    _make_altered,
    _make_stitched,
    _make_misattributed,
    _make_absent,
    _make_none,
)
