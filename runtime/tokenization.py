"""Text to token ids and back, with the ``tokenizers`` library alone.

Offsets are characters of the caller's text, so an answer is cut from that text and never re-spelled from tokens. A text
that spells a special token (``</s>``, ``[SEP]``) is data: it never becomes that token.
"""

from __future__ import annotations

import hashlib
import threading
import weakref
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
from .slices import SLICE, LongTexts, TextPart, Tokens
from .unread import NOTHING, Unread, find_scripts, find_unread

_SCRIPTS: dict[int, frozenset[str] | None] = {}
"""By vocabulary."""


_loaded: weakref.WeakValueDictionary[bytes, TextEncoder] = weakref.WeakValueDictionary()
"""The last encoder of each file, by its digest."""
_loading = threading.Lock()


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


class Frame(NamedTuple):
    """A model input, and the positions ``begin`` to ``end - 1`` in it of the tokens of one text.

    The positions around them are the same for every text in its place.
    """

    window: Window
    begin: int
    end: int

    @property
    def fixed(self) -> int:
        """Positions that the text does not have."""
        return len(self.window.ids) - (self.end - self.begin)


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
        self._long_texts = LongTexts(self._tokenize_slice, self._find_unread_part)

    @classmethod
    def load(cls, path: Path, max_tokens: int) -> TextEncoder:
        """Read a ``tokenizer.json``, once for all roles whose files are the same; BundleError when it is damaged."""
        try:
            content = path.read_bytes()
            key = hashlib.sha256(content).digest()
            with _loading:
                same = _loaded.get(key)
                encoder = cls(Tokenizer.from_buffer(content) if same is None else same._tokenizer, max_tokens)
                _loaded[key] = encoder
        except Exception as error:  # the library raises bare Exception
            raise BundleError(f"{path} is not a tokenizer file: {error}. Export the bundle again.") from error
        return encoder

    def encode(self, text: str) -> Window:
        """The ids of one text; TooLong when it does not fit the window."""
        self._check_long(text)
        encoding = self._tokenize(text, None)
        self._check(encoding, text)
        return self._window(encoding, text)

    def encode_pair(self, first: str, second: str) -> Window:
        """The ids of a pair; TooLong when it does not fit the window."""
        self._check_long(first)
        self._check_long(second)
        encoding = self._tokenize(first, second)
        self._check(encoding, max(first, second, key=len))
        return self._window(encoding, first, second)

    def encode_windows(
        self, first: str, second: str, windowed: int, stride: int, max_windows: int | None = None, before: int = 0
    ) -> list[Window]:
        """The ids of a pair, with text ``windowed`` (0 or 1) in overlapping windows of the room that the other leaves.

        Neighbouring windows share up to ``stride`` tokens. TooLong when the other text leaves room for less than a
        sixteenth of the model's window, and when these windows and the ``before`` that a call already has are more than
        ``max_windows``; of a long text no more is read than this needs.
        """
        texts, other = (first, second), (first, second)[1 - windowed]
        if self._exceeds_window(other):
            raise self._refuse_other(other, 0)
        if len(texts[windowed]) > SLICE and max_windows is not None:
            room = self.max_tokens - self._find_frame(texts, windowed).fixed
            most = max(1, max_windows - before) if room >= self.max_tokens // 16 else 1
            if self._long_texts.get(texts[windowed]).exceeds(max(0, room + (most - 1) * _step(room, stride))):
                raise (
                    self._refuse_other(other, room)
                    if room < self.max_tokens // 16
                    else self._refuse_windows(max_windows)
                )
        whole = self._read(texts, windowed)
        if len(whole.ids) <= self.max_tokens:
            windows = [whole]
        else:
            begin, end = whole.tokens_of(windowed)
            length = end - begin + 1
            room = self.max_tokens - (len(whole.ids) - length)
            if room < self.max_tokens // 16:
                raise self._refuse_other(other, room)
            starts = [*range(0, length - room, _step(room, stride)), length - room]
            windows = [_cut(whole, begin + start, room, begin, end) for start in starts]
        self.check_windows(before + len(windows), max_windows)
        return windows

    def check_windows(self, count: int, max_windows: int | None) -> None:
        """Raise TooLong when the ``count`` windows of a call are more than ``max_windows``; None allows any number."""
        if max_windows is not None and count > max_windows:
            raise self._refuse_windows(max_windows)

    def encode_parts(self, text: str, stride: int, max_windows: int | None = None) -> list[OwnedWindow]:
        """The ids of one text in as many windows as it needs, each of which owns a range of the tokens.

        The ranges follow one another and cover the text: joined, they are its ids as if no window were bounded. The
        first includes the special tokens before the text, the last those after it. Neighbouring windows share
        ``stride`` tokens, at most half a window; each owns the half of them that lies deeper inside it. TooLong when
        there are more than ``max_windows``.
        """
        if len(text) > SLICE and max_windows is not None:
            room = self.max_tokens - self._find_frame((text,), 0).fixed
            if self._long_texts.get(text).exceeds(room + (max_windows - 1) * _step(room, stride)):
                raise self._refuse_parts(text, max_windows)
        whole = self._read((text,), 0)
        if len(whole.ids) <= self.max_tokens:
            return [OwnedWindow(whole, (0, len(whole.ids)))]
        first, last = whole.tokens_of(0)
        length = last - first + 1
        room = self.max_tokens - (len(whole.ids) - length)
        starts = [*range(0, length - room, _step(room, stride)), length - room]
        if max_windows is not None and len(starts) > max_windows:
            raise self._refuse_parts(text, max_windows)
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

    def encode_plain(self, text: str, *, must_fit: bool = False) -> Window:
        """The ids of one text of any length, without the special tokens that the tokenizer would add.

        With ``must_fit``, TooLong for a long text that does not fit the window, which is not read to its end.
        """
        if must_fit:
            self._check_long(text)
        return self._read((text,), 0, add_special=False)

    def encode_ids(self, text: str) -> list[int]:
        """The ids of one text of any length, special tokens included."""
        return self._read((text,), 0).ids

    def find_foreign(self, text: str) -> Unread:
        """The letters of ``text`` in scripts that the vocabulary has no words of."""
        return NOTHING if text.isascii() else find_unread(text, (), self._scripts)

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

    def _read(self, texts: tuple[str, ...], windowed: int, *, add_special: bool = True) -> Window:
        """The ids of one or two texts as if the window were unbounded; text ``windowed`` may be long."""
        if len(texts[windowed]) <= SLICE:
            return self._window(self._tokenize(*_pair(texts), add_special=add_special), *texts)
        long_text = self._long_texts.get(texts[windowed])
        long_text.read()
        (ids, types, owners, offsets, unread), begin, end = self._find_frame(texts, windowed, add_special=add_special)
        count = long_text.count
        return Window(
            [*ids[:begin], *(index for part in long_text.parts for index in part.tokens.ids.tolist()), *ids[end:]],
            [*types[:begin], *types[begin : begin + 1] * count, *types[end:]],
            [*owners[:begin], *[windowed] * count, *owners[end:]],
            [
                *offsets[:begin],
                *((start, stop) for part in long_text.parts for start, stop in part.tokens.offsets.tolist()),
                *offsets[end:],
            ],
            (unread[0], long_text.unread) if windowed else (long_text.unread, unread[1]),
        )

    def _find_frame(self, texts: tuple[str, ...], windowed: int, *, add_special: bool = True) -> Frame:
        """``texts`` as a model input, with the beginning of text ``windowed`` in its place."""
        for sample in (texts[windowed][:64], "a", texts[windowed]):
            short = (*texts[:windowed], sample, *texts[windowed + 1 :])
            window = self._window(self._tokenize(*_pair(short), add_special=add_special), *short)
            first, last = window.tokens_of(windowed)
            if first <= last:  # spaces alone have no token
                return Frame(window, first, last + 1)
        return Frame(window, len(window.ids), len(window.ids))

    def _exceeds_window(self, text: str) -> bool:
        """Whether a long text has more tokens than the model reads; False for a short one, which costs little."""
        return len(text) > SLICE and self._long_texts.get(text).exceeds(self.max_tokens)

    def _window(self, encoding: Encoding, *texts: str) -> Window:
        ids, owners, offsets = encoding.ids, encoding.sequence_ids, encoding.offsets
        unread = [NOTHING, NOTHING]
        has_unknown = not self._unknown.isdisjoint(ids)
        for sequence, text in enumerate(texts):
            if has_unknown or not text.isascii():
                unknown = [
                    span
                    for index, owner, span in zip(ids, owners, offsets, strict=True)
                    if owner == sequence and index in self._unknown
                ]
                unread[sequence] = find_unread(text, unknown, self._scripts)
        return Window(ids, encoding.type_ids, owners, offsets, (unread[0], unread[1]))

    def _tokenize_slice(self, text: str) -> Tokens:
        encoding = self._tokenize(text, None, add_special=False)
        offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
        return Tokens(np.array(encoding.ids, dtype=np.int32), offsets)

    def _find_unread_part(self, text: str, part: TextPart) -> Unread:
        characters = text[part.start : part.end]
        unknown = np.isin(part.tokens.ids, list(self._unknown))
        if characters.isascii() and not unknown.any():
            return NOTHING
        spans = [(start, end) for start, end in (part.tokens.offsets[unknown] - part.start).tolist()]
        return find_unread(characters, spans, self._scripts)

    def _tokenize(self, first: str, second: str | None, *, add_special: bool = True) -> Encoding:
        # A unigram vocabulary holds "</s>" as an ordinary piece, and normalisation can spell one from look-alikes, so
        # the ids are checked and a space replaces the first character of an offending piece, which keeps every offset.
        for _ in range(8):
            encoding = self._encode(first, second, add_special)
            mask, owners = encoding.special_tokens_mask, encoding.sequence_ids
            clashes = [
                position
                for position, index in enumerate(encoding.ids)
                if index in self._special and not mask[position] and owners[position] is not None
            ]
            if not clashes:
                return encoding
            offsets = encoding.offsets
            first = _blank_out(first, [offsets[position][0] for position in clashes if owners[position] == 0])
            second = second and _blank_out(
                second, [offsets[position][0] for position in clashes if owners[position] == 1]
            )
        raise TooLong("The text spells the model's special tokens again and again; remove them.")

    def _encode(self, first: str, second: str | None, add_special: bool) -> Encoding:
        if len(first) + len(second or "") <= 2 * SLICE:
            return self._tokenizer.encode(first, second, add_special_tokens=add_special)
        # Only this one lets other threads run meanwhile; it takes longer to begin.
        batch = [first] if second is None else [(first, second)]
        return self._tokenizer.encode_batch(batch, add_special_tokens=add_special)[0]

    def _check_long(self, text: str) -> None:
        if self._exceeds_window(text):
            raise TooLong(
                f"A text of {len(text)} characters makes more than {self.max_tokens} tokens; this model reads no more "
                "at once. Shorten it, or split it into sentences."
            )

    def _refuse_other(self, text: str, room: int) -> TooLong:
        return TooLong(
            f"A text of {len(text)} characters leaves {max(room, 0)} of the model's {self.max_tokens} tokens for the "
            "text it is compared with. Shorten it, or split it into sentences."
        )

    def _refuse_windows(self, max_windows: int) -> TooLong:
        return TooLong(
            f"The knowledge makes more than {max_windows} windows of {self.max_tokens} tokens. Retrieve fewer "
            "passages, or raise Options.max_windows."
        )

    def _refuse_parts(self, text: str, max_windows: int) -> TooLong:
        return TooLong(
            f"A text of {len(text)} characters makes more than {max_windows} windows of {self.max_tokens} tokens. "
            "Retrieve fewer or shorter passages, or raise Options.max_windows."
        )

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


def _pair(texts: tuple[str, ...]) -> tuple[str, str | None]:
    return texts[0], texts[1] if len(texts) > 1 else None


def _step(room: int, stride: int) -> int:
    """Tokens from the beginning of one window of a text to that of the next."""
    return max(1, room - min(stride, room // 2))


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
