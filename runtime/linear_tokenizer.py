"""spaCy's tokenizer in time linear in the length of the text.

spaCy takes punctuation off a chunk (a run of characters without spaces) one mark at a time, and searches the rest of
the chunk again after each: 20,000 brackets in a row take minutes. Longer chunks than people write are cut first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spacy.tokens import Doc

LONGEST_CHUNK = 64
"""Characters of a chunk that spaCy reads as a whole. In 850,000 texts of dialogues, Wikipedia and inference pairs none
is longer; addresses of web pages may be."""

_CHUNK = re.compile(r"\S+")
_PIECE = re.compile(rf"\S{{1,{LONGEST_CHUNK}}}\b|\S{{{LONGEST_CHUNK}}}")


class LinearTokenizer:
    """A tokenizer in the place of the one that it is given: ``nlp.tokenizer = LinearTokenizer(nlp.tokenizer)``.

    Documents are equal to those of the given tokenizer unless a chunk is longer than ``LONGEST_CHUNK``; such a chunk
    is cut where letters and digits meet other characters, else anywhere. Offsets are those of the text in any case.
    """

    def __init__(self, tokenizer: Callable[[str], Doc]) -> None:
        self._tokenizer = tokenizer

    def __call__(self, text: str) -> Doc:
        """Return the document of ``text``, whose own text is ``text``."""
        from spacy.tokens import Doc  # whoever has a tokenizer has imported spaCy already

        pieces = list(cut_chunks(text))
        if len(pieces) == 1:
            return self._tokenizer(text)
        # The norm of a token ("not" for "n't") is the one attribute that exceptions of the tokenizer set.
        return Doc.from_docs([self._tokenizer(piece) for piece in pieces], ensure_whitespace=False, attrs=["NORM"])


def cut_chunks(text: str) -> Iterator[str]:
    """Yield pieces of ``text`` that together are ``text``, without a chunk of more than ``LONGEST_CHUNK`` characters.

    Every cut is inside a longer chunk, and two neighbouring pieces have more than ``LONGEST_CHUNK`` characters.

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
                assert piece is not None  # there are more characters in the chunk than a piece may have
                start = piece.end()
                yield text[begin:start]
                begin = start
    yield text[begin:]
