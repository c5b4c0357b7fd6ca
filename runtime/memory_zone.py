"""A memory zone of spaCy that stays open over many texts.

spaCy keeps a record of every word that it meets, for ever unless it is inside a memory zone, which forgets them at its
end. With a zone for each text, all records of its words are made anew: two thirds of the time of tokenizing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, Protocol

CHARACTERS = 500_000
"""Characters of texts after which the words are forgotten: their records take about 10 MB by then."""


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
        self._characters = CHARACTERS

    @contextmanager
    def read(self, characters: int) -> Iterator[None]:
        """A block that reads a text of so many characters; nothing of spaCy may outlive it."""
        if self._characters >= CHARACTERS:
            self._zone.close()
            self._zone.enter_context(self._owner.memory_zone())
            self._characters = 0
        self._characters += characters
        yield
