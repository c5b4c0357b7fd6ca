"""Whether a text is English, by its script and its function words: a cheap guard, for a warning and no more.

The embedded models were trained on English. They give a number for a German sentence all the same, because they know
its letters and some of its words. What their tokenizers do not read at all, ``unread`` finds.
"""

from __future__ import annotations

import re

from .unread import script_of

MIN_WORDS = 6
"""Fewer lower-case words say nothing about a language."""
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
    người hän olen että mutta kun niin ovat oli minä sinä hogy egy nem van azt csak
"""
OTHERS = frozenset(_OTHER_WORDS.split()) - ENGLISH
"""Frequent words of other languages in Latin letters, none of them English."""


def looks_foreign(text: str) -> bool:
    """Whether ``text`` is clearly in another language than English, by its first 20,000 characters.

    Clear means that most of its letters are of another script than Latin; or that among six or more lower-case words,
    those of other languages are twice as many as those of English; or that twelve or more have none of either. Names do
    not count, so a list of them in Latin letters is never foreign.

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
    words = [word for word in _WORD.findall(text) if word.islower()]
    if len(words) < MIN_WORDS:
        return False
    english = sum(word in ENGLISH for word in words)
    others = sum(word in OTHERS for word in words)
    return others >= 2 * max(1, english) or (english == others == 0 and len(words) >= 2 * MIN_WORDS)
