"""spaCy's tokenizer in time linear in the length of the text, and in bounded memory.

spaCy takes punctuation off a chunk (a run of characters without spaces) one mark at a time, and searches the rest of
the chunk again after each: 20,000 brackets in a row take minutes. Longer chunks than people write are cut first. spaCy
also keeps the interpreter's lock until it has read the whole text. A long text is read in parts, between which other
threads run.

spaCy keeps a record of every word that it meets, for ever unless it is inside a memory zone, which forgets them at its
end. With a zone for each text, all records of its words are made anew: two thirds of the time of tokenizing. So a zone
stays open over many texts.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator, Set
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from .characters import is_space

if TYPE_CHECKING:
    from spacy.tokens import Doc


LONGEST_CHUNK = 64
"""Characters of a chunk that spaCy reads as a whole. In 850,000 texts of dialogues, Wikipedia and inference pairs none
is longer; addresses of web pages may be."""
LONGEST_PART = 10_000
"""Characters that spaCy reads without giving other threads a turn: about 30 ms."""
ZONE_CHARACTERS = 500_000
"""Characters of texts after which the words are forgotten: their records take about 10 MB by then."""

_CHUNK = re.compile(r"\S+")
_CHUNK_START = re.compile(r"\s(?=\S)")
_PIECE = re.compile(rf"\S{{1,{LONGEST_CHUNK}}}\b|\S{{{LONGEST_CHUNK}}}")


class LinearTokenizer:
    """A tokenizer that takes the place of another one: ``nlp.tokenizer = LinearTokenizer(nlp.tokenizer)``.

    The documents are the same as the given tokenizer makes, unless a chunk is longer than ``LONGEST_CHUNK``; such a
    chunk is cut where letters and digits meet other characters, else anywhere. Offsets always count in the text. A text
    of more than ``LONGEST_PART`` characters is cut between chunks that no exception of the tokenizer can join; if a
    part has no such place (": ) : ) : )"), between any two chunks.
    """

    def __init__(self, tokenizer: Callable[[str], Doc]) -> None:
        self._tokenizer = tokenizer
        self.joined = _find_joined(tokenizer)
        """Pairs of characters between which no long text is cut if there is a choice."""

    def __call__(self, text: str) -> Doc:
        """Return the document of ``text``, whose own text is ``text``."""
        from spacy.tokens import Doc  # whoever has a tokenizer has imported spaCy already

        docs = [self.read(part) for _, part in self.cut(text)]
        # The norm of a token ("not" for "n't") is the one attribute that exceptions of the tokenizer set.
        return docs[0] if len(docs) == 1 else Doc.from_docs(docs, ensure_whitespace=False, attrs=["NORM"])

    def cut(self, text: str) -> Iterator[tuple[int, str]]:
        """Yield the parts of ``text``, each with its first character's offset."""
        start = 0
        for piece in cut_chunks(text):
            for part in cut_parts(piece, self.joined):
                yield start, part
                start += len(part)

    def read(self, part: str) -> Doc:
        """The document of one part."""
        return self._tokenizer(part)

    def settle(self, text: str, begin: int = 0) -> int:
        """How many of the first characters of ``text`` have the same tokens whatever is appended; 0 where none have.

        ``text`` begins a line, or where another call has settled it; it has no line break. Looked at is what follows
        ``begin``, where a chunk begins or may.

        Nothing goes beyond a chunk but an exception of the tokenizer, so the tokens before a chunk that no exception
        joins to them are settled as soon as its first character is there; so are those before the place where a chunk
        is cut, which depends on ``LONGEST_CHUNK`` characters and the next.

        >>> import spacy
        >>> LinearTokenizer(spacy.blank("en").tokenizer).settle("It is so. It is no")
        16
        """
        settled = 0
        for chunk in _CHUNK.finditer(text, begin):
            start, end = chunk.span()
            if start and _last_of_token(text, start) + text[start] not in self.joined:
                settled = start
            while end - start > LONGEST_CHUNK:
                piece = _PIECE.match(text, start)
                assert piece is not None  # as in ``cut_chunks``
                settled = start = piece.end()
        return settled


def cut_chunks(text: str) -> Iterator[str]:
    """Yield parts of ``text`` that together are ``text``, without a chunk of more than ``LONGEST_CHUNK`` characters.

    Every cut is inside a longer chunk, and two neighbouring parts have more than ``LONGEST_CHUNK`` characters.

    >>> list(cut_chunks("no cut, " + "(" * 70))
    ['no cut, ((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((((', '((((((']
    """
    begin = 0
    # Splitting is much faster than looking at each chunk; most texts have nothing to cut.
    if max(map(len, text.split()), default=0) > LONGEST_CHUNK:
        for chunk in _CHUNK.finditer(text):
            start, end = chunk.span()
            while end - start > LONGEST_CHUNK:
                piece = _PIECE.match(text, start)
                assert piece is not None  # there are more characters in the chunk than a part may have
                start = piece.end()
                yield text[begin:start]
                begin = start
    yield text[begin:]


def cut_parts(text: str, joined: Set[str] = frozenset()) -> Iterator[str]:
    """Yield parts of ``text`` that together are ``text``: of at most ``LONGEST_PART`` characters, unless a chunk or a
    run of spaces is longer.

    A part begins with a chunk, the first excepted: with the last that fits and may begin one. It may if the token
    before it and the chunk are not joined: ``joined`` has no pair of the one's last and the other's first character.
    If none may, the last that fits begins the part.
    """
    begin = 0
    while len(text) - begin > LONGEST_PART:
        starts = [match.end() for match in _CHUNK_START.finditer(text, begin, begin + LONGEST_PART + 1)]
        if not starts:
            following = _CHUNK_START.search(text, begin + LONGEST_PART)
            if following is None:
                break
            starts = [following.end()]
        free = (start for start in reversed(starts) if _last_of_token(text, start) + text[start] not in joined)
        end = next(free, starts[-1])
        yield text[begin:end]
        begin = end
    yield text[begin:]


def _last_of_token(text: str, start: int) -> str:
    """The last character of the token before the chunk at ``start``; a single space after a chunk is not a token."""
    after_chunk = start >= 2 and text[start - 1] == " " and not is_space(text[start - 2])
    return text[start - 2] if after_chunk else text[start - 1]


def _find_joined(tokenizer: Any) -> frozenset[str]:
    """Pairs of characters where two tokens of an exception may meet.

    spaCy replaces tokens that spell an exception, even if there is a space between them: the tokens that the exception
    has without any exceptions. Nothing else that it does goes beyond a chunk.
    """
    rules = getattr(tokenizer, "rules", None)
    if not rules:
        return frozenset()
    from spacy.tokenizer import Tokenizer

    plain = Tokenizer(
        tokenizer.vocab,
        prefix_search=tokenizer.prefix_search,
        suffix_search=tokenizer.suffix_search,
        infix_finditer=tokenizer.infix_finditer,
        token_match=tokenizer.token_match,
        url_match=tokenizer.url_match,
    )
    spellings = ([token.text for token in plain(rule)] for rule in rules)
    return frozenset(left[-1] + right[0] for tokens in spellings for left, right in itertools.pairwise(tokens))


class Zoned(Protocol):
    """A vocabulary or a pipeline of spaCy."""

    def memory_zone(self) -> AbstractContextManager[Any]:
        """Forget at the end of the block what was met in it."""
        ...


class LongZone:
    """The memory zone of one vocabulary. Not thread-safe: its texts are read one after another."""

    def __init__(self, owner: Zoned) -> None:
        self._owner = owner
        self._zone = ExitStack()
        self._characters = ZONE_CHARACTERS

    @contextmanager
    def read(self, characters: int) -> Iterator[None]:
        """A block that reads a text of so many characters; nothing of spaCy may outlive it."""
        if self._characters >= ZONE_CHARACTERS:
            self._zone.close()
            self._zone.enter_context(self._owner.memory_zone())
            self._characters = 0
        self._characters += characters
        yield
