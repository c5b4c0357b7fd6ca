"""The text that tiny vocabularies are counted from, and its sentences."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache

from tokenizers import Tokenizer

from groundwire.runtime.texts.tokenization import Window
from groundwire.runtime.texts.unread import find_scripts, find_unread

TEXT = """\
Bob Ross was an American painter who created and hosted The Joy of Painting on public television from 1983 to 1994.
The Joy of Painting was a half-hour show, and it was filmed in a small studio in Indiana.
Elvis Presley was born in Tupelo, Mississippi, in 1935 and moved to Memphis with his family when he was thirteen.
The guitar is a string instrument, and most guitars have six strings.
Have you ever played the guitar? Yes, I learned to play it when I was ten years old.
The Amazon river flows through Brazil, Peru and Colombia, and it carries more water than any other river.
Red hair is found in one to two percent of people; it is most common in Scotland and in Ireland.
I love pizza with cheese and tomato, but my sister does not like cheese at all.
Pizza is a dish from Naples in Italy; the first pizza in America was sold in New York in 1905.
Dylan's Candy Bar is a chain of candy shops owned by Dylan Lauren, and its first shop is in New York City.
What do you do for a living? I am a nurse, and my brother is a teacher in a small town.
A nurse cares for people in a hospital, and a teacher works in a school.
The first modern Olympic Games were held in Athens, Greece, in 1896, and 241 athletes took part.
Marie Curie won the Nobel Prize twice: in physics in 1903 and in chemistry in 1911.
She was the first woman to win the prize, and she was born in Warsaw, Poland.
Husky dogs were bred in Siberia to pull sleds over long distances in the snow.
That is amazing! Did you know that some dogs can run for hours without rest?
The Titanic sank in the Atlantic ocean in April 1912 after it hit an iceberg; over 1500 people died.
The question is: who wrote the book, when was it written, where was it sold, and how many people have read it?
answer: the first shop context: question: what is the name of the show? which city was it in? how old is he?
"""


def sentences() -> Iterator[str]:
    """The sentences of the text, lines broken at full stops and question marks."""
    for line in TEXT.splitlines():
        yield from (part.strip() for part in re.split(r"(?<=[.?!]) ", line) if part.strip())


@cache
def unlike_characters() -> tuple[str, ...]:
    """All characters of Unicode, but of the 900,000 letters and gaps without case and decomposition only eight."""
    characters = [character for character in map(chr, range(sys.maxunicode + 1)) if not _is_plain(character)]
    return (*characters, *"中가กアאع\u0378\U0010fffd")


def _is_plain(character: str) -> bool:
    spellings = {character.lower(), character.upper(), unicodedata.normalize("NFKD", character)}
    return unicodedata.category(character) in ("Lo", "Cn", "Co", "Cs") and spellings == {character}


@cache
def _open(source: str) -> tuple[Tokenizer, frozenset[int], frozenset[str] | None]:
    tokenizer = Tokenizer.from_str(source)
    tokenizer.encode_special_tokens = True
    added = tokenizer.get_added_tokens_decoder().items()
    special = frozenset(i for i, token in added if token.special and token.content not in ("<unk>", "[UNK]"))
    return tokenizer, special, find_scripts(tokenizer.decode_batch([[i] for i in range(tokenizer.get_vocab_size())]))


def read_whole(source: str, *texts: str) -> Window:
    """A text or a pair as the library reads it in one call, with a space in place of what spells a special token.

    ``source`` is the tokenizer's file.
    """
    tokenizer, special, scripts = _open(source)
    clean = list(texts)
    while True:
        read = tokenizer.encode(*clean)
        ids, owners, offsets = read.ids, read.sequence_ids, read.offsets  # lists are made at each access
        clashes = [
            (owner, offsets[position][0])
            for position, owner in enumerate(owners)
            if owner is not None and ids[position] in special
        ]
        if not clashes:
            break
        before = list(clean)
        for owner, start in clashes:
            at = len(before[owner]) - len(before[owner][start:].lstrip() or " ")
            clean[owner] = f"{clean[owner][:at]} {clean[owner][at + 1 :]}"
    unknown = [tokenizer.token_to_id(name) for name in ("<unk>", "[UNK]")]
    spans: list[list[tuple[int, int]]] = [[], []]
    for index, owner, span in zip(ids, owners, offsets, strict=True):
        if owner is not None and index in unknown:
            spans[owner].append(span)
    first, second = (find_unread(text, of_text, scripts) for text, of_text in zip((*texts, ""), spans, strict=False))
    return Window(ids, read.type_ids, owners, offsets, (first, second))
