"""What a model cannot read of a text: an empty text, another language, unknown words and letters of other scripts.

A model answers all the same, from what is left. The embedded models were trained on English and give a number for a
German sentence too, because they know its letters and some of its words. WordPiece makes one unknown token of a word of
more than a hundred letters and of signs that it lacks, and it spells other scripts letter by letter without ever having
learned a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from ..calls import Read
from ..errors import Unreadable
from .characters import classify_character, is_alphanumeric, is_letters, is_lower_case

_UNMARKED = frozenset({"mark", "space", "hidden"})
"""Kinds of characters that show nothing alone; marks need a letter, and variation selectors are some."""
_FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that are blank: fillers of Korean syllables, and the Braille pattern without dots."""


def is_blank(text: str) -> bool:
    r"""Whether ``text`` is empty, or has nothing but spaces and characters that are not shown.

    >>> is_blank(" \u200b\ufeff\u3164"), is_blank("\u200bno")
    (True, False)
    """
    first = text[:1]
    return not (first.isascii() and is_alphanumeric(first)) and all(map(_is_unmarked, text))


def _is_unmarked(character: str) -> bool:
    return classify_character(character) in _UNMARKED or character in _FILLERS


MIN_WORDS = 6
"""Of fewer lower-case words, only words of other languages say something about a language."""
LEAST_OTHERS = 4
"""So many of them."""
MIN_LETTERS = 2
"""A single letter of another script, such as π, says nothing either."""
MAX_CHARACTERS = 20_000
"""Characters of a text that are looked at, from its beginning."""
_WORD = re.compile(r"[^\W\d_]+")

_ENGLISH_WORDS = """
    a about after again all also although always am an and another any are around as at away back be because been
    before being best better between both but by can could did do does done down each even ever every few first for
    from get go going good got great had has have he her here him his how i if in into is it its just know last like
    little long made make many may me mean might more most much must my never new no not now of off oh ok on once
    one only or other our out over own people please quite really right said same say see she should since so some
    something still such sure take than thank thanks that the their them then there these they thing think this
    those though through time to too two under until up upon us use used very want was way we well were what when
    where whether which while who why will with without would yeah year years yes yet you your
"""
ENGLISH = frozenset(_ENGLISH_WORDS.split())
"""Frequent words of English dialogue and encyclopedia text."""
_OTHER_WORDS = """
    aber al alla als anche au auch auf aus av avec az bardzo bei bij bir bu bugün bylo był być ce ces cette che como
    con cu da daha dans dar das dat de deg dei del della dem den denn der des desde det di dich die dla do doch dos
    du durch een ein eine einem einen einer eines el ele elle ellos en entre er era eram es esta este está et ett eu
    fue för für gegen gibt gli ha habe haben han hanno har hat het hij hur hva hvad hvor ich ihr il ile ils im ist
    ja jag jak je jeg jest jestem kan kann kein keine können las le les lo los ma mais man mas mehr mein met mi mich
    mig mit mycket más między na naar nach nel nem nicht nie niet noch non nos nous não nu nur não och oder och og
    ook os ou par para pas pentru per pero piu por pour più qu que qui quien sa sao schon se sehr sein seine selon
    ser ses si sia sie siempre sind sobre som son sono sont soy su sua suis sul sur să sä também tak te ten till
    toch tot tu také um uma un una und une uno unos uns van var ve veel vi voor vor você vous wann war waren warum
    wat we wel wenn werden wie wieder wir wird wordt wurde y yo zal zijn zijn zo zu zum zur zwischen à är às ça že
    și için için kao koji nije što jsem není který ktorý ale nebo więc przez pod ben nasıl değil çok siz biz onlar
    tidak yang dan untuk dengan ini itu adalah dari pada ng sa ang mga không là của và một được cho khi với này
    bis cinco cinq cuatro cuesta coûte dauert deux días dias drei fünf giorni jours kostet quatre sieben stunden
    tage trois três vier zwei
    người hän olen että mutta kun niin ovat oli minä sinä hogy egy nem van azt csak
"""
OTHERS = frozenset(_OTHER_WORDS.split()) - ENGLISH
"""Frequent words of other languages in Latin letters, none of them English."""


def looks_foreign(text: str) -> bool:
    """Whether ``text`` is clearly in another language than English, by its first 20,000 characters.

    Clear means that most of its letters are of another script than Latin; or that among six or more lower-case words,
    twice as many are of other languages as of English; or that twelve or more are of neither. Fewer than six words are
    foreign if four are of other languages and none is of English. Names do not count, so a list of them in Latin
    letters is never foreign.

    >>> looks_foreign("Die Frist beträgt 60 Tage und kann nicht verlängert werden.")
    True
    >>> looks_foreign("Elvis Presley and Priscilla Beaulieu met in Bad Nauheim in der Grafenstraße.")
    False
    >>> looks_foreign("탑의 높이는 324미터입니다.")
    True
    """
    text = text[:MAX_CHARACTERS]
    if not text.isascii():
        scripts = [script for character in text if (script := script_of(character))]
        others = sum(script != "LATIN" for script in scripts)
        if others >= MIN_LETTERS and others > len(scripts) / 2:
            return True
    words = [word for word in _WORD.findall(text) if is_lower_case(word)]
    english = sum(map(ENGLISH.__contains__, words))
    others = sum(map(OTHERS.__contains__, words))
    if len(words) < MIN_WORDS:
        return english == 0 and others >= LEAST_OTHERS
    return others >= 2 * max(1, english) or (english == others == 0 and len(words) >= 2 * MIN_WORDS)


MAX_UNREAD = 0.3
"""Share of a text's characters. English sets with many foreign names stay below 0.11, and sentences in another script
are about 0.8."""
WORDS_OF_A_SCRIPT = 100
"""Vocabulary entries of several letters from which a script is read: an English BERT has 8 of its second script."""
LETTERS_OF_A_SCRIPT = 2000
"""Entries of one letter from which it is read too, for scripts whose letters are words: an English BERT has 488."""

_NEUTRAL = frozenset({"COMBINING", "MODIFIER", "VARIATION"})
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")


class Unread(NamedTuple):
    """What is not read of one text."""

    characters: int = 0
    words: frozenset[str] = frozenset()
    """The words that became unknown tokens, lower-cased; without signs such as emoji."""

    def join(self, other: Unread) -> Unread:
        """What is not read of two texts."""
        return Unread(self.characters + other.characters, self.words | other.words)


NOTHING_UNREAD = Unread()


@lru_cache(maxsize=4096)
def script_of(character: str) -> str:
    """The first word of a letter's Unicode name, its script; empty for another character or a letter of every script.

    >>> script_of("é"), script_of("도"), script_of("١"), script_of("—")
    ('LATIN', 'HANGUL', '', '')
    """
    plain = unicodedata.normalize("NFKD", character)[0]
    if classify_character(plain) not in ("letter", "mark"):
        return ""
    script = unicodedata.name(plain, "").partition(" ")[0]
    return "" if script in _NEUTRAL else script


def find_scripts(entries: Iterable[str]) -> frozenset[str] | None:
    """The scripts that a vocabulary has words of; None when it has no words of Latin either.

    Such a vocabulary is one of bytes or characters, and its model has learned to read whatever they spell.
    """
    words: Counter[str] = Counter()
    letters: Counter[str] = Counter()
    for entry in entries:
        if entry.isascii():  # nearly all of an English vocabulary
            word = entry.strip("# ")
            words["LATIN"] += len(word) > 1 and is_letters(word)
            continue
        scripts = [script for character in entry if (script := script_of(character))]
        if scripts:
            (words if len(scripts) > 1 else letters)[scripts[-1]] += 1
    if words["LATIN"] < WORDS_OF_A_SCRIPT:
        return None
    by_letters = {script for script, count in letters.items() if count >= LETTERS_OF_A_SCRIPT}
    return frozenset(by_letters | {script for script, count in words.items() if count >= WORDS_OF_A_SCRIPT})


def find_unread(text: str, unknown: Sequence[tuple[int, int]], scripts: frozenset[str] | None) -> Unread:
    """What is not read of ``text``, whose ranges ``unknown`` became unknown tokens; ``scripts`` None reads all."""
    foreign = {
        index
        for run in (() if scripts is None else _NOT_ASCII.finditer(text))
        for index in range(*run.span())
        if (script := script_of(text[index])) and scripts is not None and script not in scripts
    }
    for start, end in unknown:
        foreign.update(range(start, end))
    words = {text[start:end].lower() for start, end in unknown}
    return Unread(len(foreign), frozenset(word for word in words if any(map(is_alphanumeric, word))))


def check_readable(what: str, unread: Unread, total: int) -> None:
    """Raise Unreadable when too much of ``what``, ``total`` characters long, is not read."""
    if unread.characters > MAX_UNREAD * total:
        raise Unreadable(
            f"{unread.characters} of the {total} characters of the {what} are unknown to the model's tokenizer: words "
            "of more than a hundred letters, or a script that it has no words of. Use a bundle for their language."
        )


def read_pair(response: Unread, response_length: int, knowledge: Unread, knowledge_length: int, windows: int) -> Read:
    """How much of the knowledge was read, for a model that compares the two.

    Raises Unreadable when too much of either is not read, or when both have unknown words and not the same: one token
    replaces all of them, so the model takes "SHA-512 A" for "SHA-512 B".
    """
    check_readable("response", response, response_length)
    check_readable("knowledge", knowledge, knowledge_length)
    if knowledge.words and (other := response.words - knowledge.words):
        word = min(other)
        raise Unreadable(
            f"The word {word[:40]!r} of the response and words of the knowledge are unknown to the model's tokenizer, "
            "which makes one token of them all. Shorten them, or leave them out on both sides."
        )
    return Read(windows, knowledge_length - knowledge.characters, knowledge_length)
