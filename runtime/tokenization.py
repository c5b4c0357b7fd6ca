"""Text to token ids and back, with the ``tokenizers`` library alone.

Offsets are characters of the caller's text, so an answer is cut from that text and never re-spelled from tokens. A text
that spells a special token (``</s>``, ``[SEP]``) is data: it never becomes that token.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from . import _native
from .errors import BundleError, TooLong
from .manifest import Template
from .unread import NOTHING, Unread, find_scripts, find_unread

_SCRIPTS: dict[int, frozenset[str] | None] = {}
"""By vocabulary."""


class Window(NamedTuple):
    """One model input: a text or a pair, possibly with only a part of the windowed text."""

    ids: list[int]
    type_ids: list[int]
    sequence_ids: list[int | None]
    offsets: list[tuple[int, int]]
    unread: tuple[Unread, Unread] = (NOTHING, NOTHING)
    """What the tokenizer does not read of the first and the second text, whole, whatever part this window has."""

    def tokens_of(self, sequence: int) -> tuple[int, int]:
        """First and last position of a sequence's tokens; (0, -1) when it has none."""
        positions = [i for i, owner in enumerate(self.sequence_ids) if owner == sequence]
        return (positions[0], positions[-1]) if positions else (0, -1)

    def text(self, start: int, end: int, texts: Sequence[str]) -> str:
        """The words that positions ``start`` to ``end`` (inclusive) cover in ``texts``; special tokens cover none."""
        pieces = []
        for sequence, text in enumerate(texts):
            covered = [self.offsets[i] for i in range(start, end + 1) if self.sequence_ids[i] == sequence]
            if covered:
                pieces.append(text[covered[0][0] : covered[-1][1]].strip())
        return " ".join(pieces)


class OwnedWindow(NamedTuple):
    """A window of a text, and the positions ``owned[0]`` to ``owned[1] - 1`` in it, which no other window owns."""

    window: Window
    owned: tuple[int, int]


class TextEncoder:
    """A bundle's tokenizer with its model's window."""

    def __init__(self, tokenizer: Tokenizer, max_tokens: int) -> None:
        self.max_tokens = max_tokens
        tokenizer.no_padding()
        tokenizer.no_truncation()
        tokenizer.encode_special_tokens = True
        self._tokenizer = tokenizer
        unknown = getattr(tokenizer.model, "unk_token", None)
        self._special = frozenset(
            index
            for index, token in tokenizer.get_added_tokens_decoder().items()
            if token.special and token.content != unknown and token.content not in ("<unk>", "[UNK]")
        )
        names = (unknown, "<unk>", "[UNK]")
        self._unknown = {tokenizer.token_to_id(name) for name in names if isinstance(name, str)} - {None}

    @classmethod
    def load(cls, path: Path, max_tokens: int) -> TextEncoder:
        """Read a ``tokenizer.json``; BundleError when it is damaged."""
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise BundleError(f"{path} is not a tokenizer file: {error}. Export the bundle again.") from error
        return cls(tokenizer, max_tokens)

    def encode(self, text: str) -> Window:
        """The ids of one text; TooLong when it does not fit the window."""
        encoding = self._tokenize(text, None)
        self._check(encoding, text)
        return self._window(encoding, text)

    def encode_pair(self, first: str, second: str) -> Window:
        """The ids of a pair; TooLong when it does not fit the window."""
        encoding = self._tokenize(first, second)
        self._check(encoding, max(first, second, key=len))
        return self._window(encoding, first, second)

    def encode_windows(self, first: str, second: str, windowed: int, stride: int) -> list[Window]:
        """The ids of a pair, with text ``windowed`` (0 or 1) in overlapping windows of the room that the other leaves.

        Neighbouring windows share up to ``stride`` tokens. TooLong when the other text leaves room for less than a
        sixteenth of the model's window.
        """
        whole = self._window(self._tokenize(first, second), first, second)
        if len(whole.ids) <= self.max_tokens:
            return [whole]
        begin, end = whole.tokens_of(windowed)
        length = end - begin + 1
        room = self.max_tokens - (len(whole.ids) - length)
        if room < self.max_tokens // 16:
            raise TooLong(
                f"A text of {len((first, second)[1 - windowed])} characters leaves {max(room, 0)} of the model's "
                f"{self.max_tokens} tokens for the text it is compared with. Shorten it, or split it into sentences."
            )
        step = max(1, room - min(stride, room // 2))
        starts = [*range(0, length - room, step), length - room]
        return [_cut(whole, begin + start, room, begin, end) for start in starts]

    def encode_parts(self, text: str, stride: int) -> list[OwnedWindow]:
        """The ids of one text in as many windows as it needs, each of which owns a range of the tokens.

        The ranges follow one another and cover the text: joined, they are its ids as if no window were bounded. The
        first includes the special tokens before the text, the last those after it. Neighbouring windows share
        ``stride`` tokens, at most half a window; each owns the half of them that lies deeper inside it.
        """
        whole = self._window(self._tokenize(text, None), text)
        if len(whole.ids) <= self.max_tokens:
            return [OwnedWindow(whole, (0, len(whole.ids)))]
        first, last = whole.tokens_of(0)
        length = last - first + 1
        room = self.max_tokens - (len(whole.ids) - length)
        starts = [*range(0, length - room, room - min(stride, room // 2)), length - room]
        # Where the range of one window ends and that of the next begins: in the middle of the tokens that they share.
        bounds = [0, *((a + room + b + 1) // 2 for a, b in pairwise(starts)), length]
        return [
            OwnedWindow(
                _cut(whole, first + start, room, first, last),
                # A window's tokens come after its leading special tokens.
                (
                    first + begin - start if begin else 0,
                    first + end - start if end < length else self.max_tokens,
                ),
            )
            for start, begin, end in zip(starts, bounds, bounds[1:], strict=False)
        ]

    def encode_plain(self, text: str) -> Window:
        """The ids of one text of any length, without the special tokens that the tokenizer would add."""
        return self._window(self._tokenize(text, None, add_special=False), text)

    def encode_ids(self, text: str) -> list[int]:
        """The ids of one text of any length, special tokens included."""
        return list(self._tokenize(text, None).ids)

    def render(self, template: Template, fields: dict[str, str]) -> tuple[str, str | None]:
        """Fill in the fields of a template; braces inside a field are text."""
        return fill(template.first, fields), None if template.second is None else fill(template.second, fields)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of generated ids, without special tokens."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True)).strip()

    @cached_property
    def _scripts(self) -> frozenset[str] | None:
        """Read off the vocabulary when the first letter beyond ASCII is met, once for all roles that share it."""
        vocabulary = self._tokenizer.get_vocab()
        key = hash(frozenset(vocabulary.items()))
        if key not in _SCRIPTS:
            ids = range(self._tokenizer.get_vocab_size())
            _SCRIPTS[key] = find_scripts(self._tokenizer.decode_batch([[index] for index in ids]))
        return _SCRIPTS[key]

    def _window(self, encoding: Encoding, *texts: str) -> Window:
        unread = [NOTHING, NOTHING]
        has_unknown = not self._unknown.isdisjoint(encoding.ids)
        for sequence, text in enumerate(texts):
            if has_unknown or not text.isascii():
                unknown = [
                    offsets
                    for index, owner, offsets in zip(encoding.ids, encoding.sequence_ids, encoding.offsets, strict=True)
                    if owner == sequence and index in self._unknown
                ]
                unread[sequence] = find_unread(text, unknown, self._scripts)
        return Window(encoding.ids, encoding.type_ids, encoding.sequence_ids, encoding.offsets, (unread[0], unread[1]))

    def _tokenize(self, first: str, second: str | None, *, add_special: bool = True) -> Encoding:
        # A unigram vocabulary holds "</s>" as an ordinary piece, and normalisation can spell one from look-alikes, so
        # the ids are checked and a space replaces the first character of an offending piece, which keeps every offset.
        for _ in range(8):
            encoding = self._tokenizer.encode(first, second, add_special_tokens=add_special)
            clashes = [
                (sequence, start)
                for index, mask, sequence, (start, _) in zip(
                    encoding.ids, encoding.special_tokens_mask, encoding.sequence_ids, encoding.offsets, strict=True
                )
                if not mask and index in self._special and sequence is not None
            ]
            if not clashes:
                return encoding
            first = _blank_out(first, [start for sequence, start in clashes if sequence == 0])
            second = second and _blank_out(second, [start for sequence, start in clashes if sequence == 1])
        raise TooLong("The text spells the model's special tokens again and again; remove them.")

    def _check(self, encoding: Encoding, text: str) -> None:
        if len(encoding.ids) > self.max_tokens:
            raise TooLong(
                f"A text of {len(text)} characters makes {len(encoding.ids)} tokens; this model reads "
                f"{self.max_tokens} at once. Shorten it, or split it into sentences."
            )


def pad(rows: Sequence[Sequence[int]], width: int, fill: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pad rows of ids with ``fill``: ids and mask, [R, width]."""
    ids, offsets = flatten(rows)
    return _native.pad_rows(ids, offsets, np.arange(len(rows)), width, fill)


def flatten(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Flatten ragged ids into one array; return it with its row offsets."""
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    flat = np.fromiter((index for row in rows for index in row), dtype=np.int64, count=int(offsets[-1]))
    return flat, offsets


def _cut(window: Window, start: int, room: int, first: int, last: int) -> Window:
    keep = [*range(first), *range(start, start + room), *range(last + 1, len(window.ids))]
    ids, type_ids, sequence_ids, offsets = ([column[i] for i in keep] for column in window[:4])
    return Window(ids, type_ids, sequence_ids, offsets, window.unread)


def fill(template: str, fields: dict[str, str]) -> str:
    """``template`` with every ``{name}`` replaced by that field; braces inside a field are text."""
    parts = template.split("{")
    out = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition("}")
        out += [fields[name], rest]
    return "".join(out)


def _blank_out(text: str, starts: Iterable[int]) -> str:
    characters = list(text)
    for index in starts:
        # A piece may start with the space before its word.
        while index < len(text) - 1 and text[index].isspace():
            index += 1
        characters[index] = " "
    return "".join(characters)
