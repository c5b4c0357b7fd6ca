"""Text to token ids and back, with the ``tokenizers`` library alone.

Offsets are characters of the caller's text, so an answer is cut from that text and never re-spelled from tokens. A text
that spells a special token (``</s>``, ``[SEP]``) is data: it never becomes that token.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from . import _native
from .bundle import Template
from .errors import BundleError, TooLong


class Window(NamedTuple):
    """One model input: a text or a pair, possibly with only a part of the windowed text."""

    ids: list[int]
    type_ids: list[int]
    sequence_ids: list[int | None]
    offsets: list[tuple[int, int]]

    def tokens_of(self, sequence: int) -> tuple[int, int]:
        """First and last position of a sequence's tokens; (0, -1) when it has none."""
        places = [i for i, owner in enumerate(self.sequence_ids) if owner == sequence]
        return (places[0], places[-1]) if places else (0, -1)

    def text(self, start: int, end: int, texts: Sequence[str]) -> str:
        """The words that positions ``start`` to ``end`` (inclusive) cover in ``texts``; special tokens cover none."""
        pieces = []
        for sequence, whole in enumerate(texts):
            covered = [self.offsets[i] for i in range(start, end + 1) if self.sequence_ids[i] == sequence]
            if covered:
                pieces.append(whole[covered[0][0] : covered[-1][1]].strip())
        return " ".join(pieces)


class Part(NamedTuple):
    """A window of a text, and the positions ``own[0]`` to ``own[1] - 1`` in it that no other window speaks for."""

    window: Window
    own: tuple[int, int]


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

    @classmethod
    def load(cls, path: Path, max_tokens: int) -> TextEncoder:
        """Read a ``tokenizer.json``; BundleError when it is damaged."""
        try:
            tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises bare Exception
            raise BundleError(f"{path} is not a tokenizer file: {error}. Export the bundle again.") from error
        return cls(tokenizer, max_tokens)

    def single(self, text: str) -> Window:
        """The ids of one text; TooLong when it does not fit the window."""
        encoding = self._encode(text, None)
        self._check(encoding, text)
        return _window(encoding)

    def pair(self, first: str, second: str) -> Window:
        """The ids of a pair; TooLong when it does not fit the window."""
        encoding = self._encode(first, second)
        self._check(encoding, max(first, second, key=len))
        return _window(encoding)

    def windows(self, first: str, second: str, windowed: int, stride: int) -> list[Window]:
        """The pair, with text ``windowed`` (0 or 1) read in overlapping windows of the room the other leaves.

        Neighbouring windows share up to ``stride`` tokens. TooLong when the other text leaves room for less than a
        sixteenth of the model's window.
        """
        whole = self._encode(first, second)
        if len(whole.ids) <= self.max_tokens:
            return [_window(whole)]
        first_place, last_place = _window(whole).tokens_of(windowed)
        length = last_place - first_place + 1
        room = self.max_tokens - (len(whole.ids) - length)
        if room < self.max_tokens // 16:
            raise TooLong(
                f"A text of {len((first, second)[1 - windowed])} characters leaves {max(room, 0)} of the model's "
                f"{self.max_tokens} tokens for the text it is compared with. Shorten it, or split it into sentences."
            )
        step = max(1, room - min(stride, room // 2))
        starts = [*range(0, length - room, step), length - room]
        window = _window(whole)
        return [_cut(window, first_place + a, room, first_place, last_place) for a in starts]

    def parts(self, text: str, stride: int) -> list[Part]:
        """One text in as many windows as it needs, of which each owns a stretch of the tokens.

        The stretches follow one another and cover the text: joined, they are its ids as if no window were bounded, the
        special tokens in front with the first and those behind with the last. Neighbouring windows share ``stride``
        tokens, at most half a window; each owns the half of them that lies deeper inside it.
        """
        whole = _window(self._encode(text, None))
        if len(whole.ids) <= self.max_tokens:
            return [Part(whole, (0, len(whole.ids)))]
        first, last = whole.tokens_of(0)
        length = last - first + 1
        room = self.max_tokens - (len(whole.ids) - length)
        starts = [*range(0, length - room, room - min(stride, room // 2)), length - room]
        # Where the stretch of one window ends and the next begins: in the middle of what both see.
        bounds = [0, *((a + room + b + 1) // 2 for a, b in pairwise(starts)), length]
        return [
            Part(
                _cut(whole, first + start, room, first, last),
                # A window's tokens stand behind the special ones in front.
                (
                    first + begin - start if begin else 0,
                    first + end - start if end < length else self.max_tokens,
                ),
            )
            for start, begin, end in zip(starts, bounds, bounds[1:], strict=False)
        ]

    def plain(self, text: str) -> Window:
        """One text of any length without special tokens, also where the tokenizer would add some."""
        return _window(self._encode(text, None, add_special=False))

    def ids(self, text: str) -> list[int]:
        """The ids of one text of any length, special tokens included."""
        return list(self._encode(text, None).ids)

    def render(self, template: Template, fields: dict[str, str]) -> tuple[str, str | None]:
        """The texts of a template with its fields filled in; braces inside a field are text."""
        return fill(template.first, fields), None if template.second is None else fill(template.second, fields)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of generated ids, without special tokens."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True)).strip()

    def _encode(self, first: str, second: str | None, *, add_special: bool = True) -> Encoding:
        # A unigram vocabulary holds "</s>" as an ordinary piece, and normalisation can spell one from look-alikes, so
        # the ids are checked and the first character of an offending piece is blanked, which keeps every offset.
        for _ in range(8):
            encoding = self._tokenizer.encode(first, second, add_special_tokens=add_special)
            clash = [
                (sequence, start)
                for index, mask, sequence, (start, _) in zip(
                    encoding.ids, encoding.special_tokens_mask, encoding.sequence_ids, encoding.offsets, strict=True
                )
                if not mask and index in self._special and sequence is not None
            ]
            if not clash:
                return encoding
            for sequence, start in clash:
                if sequence == 0:
                    first = _blank(first, start)
                elif second is not None:
                    second = _blank(second, start)
        raise TooLong("The text spells the model's special tokens again and again; remove them.")

    def _check(self, encoding: Encoding, text: str) -> None:
        if len(encoding.ids) > self.max_tokens:
            raise TooLong(
                f"A text of {len(text)} characters makes {len(encoding.ids)} tokens; this model reads "
                f"{self.max_tokens} at once. Shorten it, or split it into sentences."
            )


def padded(rows: Sequence[Sequence[int]], width: int, fill: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of ids as ids and mask [R, width], with ``fill`` behind them."""
    ids, offsets = flatten(rows)
    return _native.pad_rows(ids, offsets, np.arange(len(rows)), width, fill)


def flatten(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Ragged ids as one flat array and its row offsets."""
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    flat = np.fromiter((index for row in rows for index in row), dtype=np.int64, count=int(offsets[-1]))
    return flat, offsets


def _window(encoding: Encoding) -> Window:
    return Window(encoding.ids, encoding.type_ids, encoding.sequence_ids, encoding.offsets)


def _cut(window: Window, start: int, room: int, first: int, last: int) -> Window:
    keep = [*range(first), *range(start, start + room), *range(last + 1, len(window.ids))]
    return Window(*([column[i] for i in keep] for column in window))


def fill(template: str, fields: dict[str, str]) -> str:
    """``template`` with every ``{name}`` replaced by that field; braces inside a field are text."""
    parts = template.split("{")
    out = [parts[0]]
    for part in parts[1:]:
        name, _, rest = part.partition("}")
        out += [fields[name], rest]
    return "".join(out)


def _blank(text: str, at: int) -> str:
    # A piece may start with the blank before its word.
    while at < len(text) - 1 and text[at].isspace():
        at += 1
    return text[:at] + " " + text[at + 1 :]
