"""Text to token ids and back, with the ``tokenizers`` library alone.

Offsets are characters of the caller's text, so an answer is cut from that text and never re-spelled from tokens. A text
that spells a special token (``</s>``, ``[SEP]``) is data: it never becomes that token.
"""

from __future__ import annotations

import copy
import hashlib
import re
import string
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import AddedToken, Encoding, Tokenizer

from .. import _native
from ..bundles.manifest import Template
from ..errors import BundleError, TooLong
from .characters import is_space
from .slices import SLICE, LongTexts, TextPart, Tokens
from .unread import NOTHING_UNREAD, Unread, find_scripts, find_unread

_SCRIPTS: dict[int, frozenset[str] | None] = {}
"""By vocabulary."""


_loaded: weakref.WeakValueDictionary[bytes, TextEncoder] = weakref.WeakValueDictionary()
"""The last encoder of each file, by its digest."""
_loading = threading.Lock()


RECENT_TOKENS = 20_000
"""Tokens of short texts that are kept for the next call about the same text: 3 MB."""
LEAST_ROOM = 4
"""A text is read in windows beside another text that leaves it 1 / 4 of the model's window; with less room, they would
read little but the other text, again and again. The caller cuts that one."""
_PROBES = tuple(string.ascii_lowercase + string.digits + string.punctuation)
"""Texts; every tokenizer reads one of them."""


class Window(NamedTuple):
    """One model input: a text or a pair, possibly with only a part of the windowed text."""

    ids: list[int]
    type_ids: list[int]
    sequence_ids: list[int | None]
    offsets: list[tuple[int, int]]
    unread: tuple[Unread, Unread] = (NOTHING_UNREAD, NOTHING_UNREAD)
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


class TextTokens(NamedTuple):
    """The tokens of one text, wherever in an input it is."""

    ids: list[int]
    offsets: list[tuple[int, int]]
    unread: Unread
    """What the tokenizer does not read of it."""


class Layout(NamedTuple):
    """The positions of an input that are the same for all texts: before the first, after it, after the second."""

    ids: list[list[int]]
    type_ids: list[list[int]]
    text_types: list[int]
    """The type id of each text's tokens."""

    @property
    def fixed(self) -> int:
        """How many positions no text has."""
        return sum(map(len, self.ids))


class RecentTexts:
    """The short texts that one tokenizer read last: a passage that several questions are about is read once."""

    def __init__(self, tokenize: Callable[[str], TextTokens]) -> None:
        self._tokenize = tokenize
        self._texts: OrderedDict[str, TextTokens] = OrderedDict()
        self._count = 0
        self._lock = threading.Lock()

    def get(self, text: str) -> TextTokens:
        """The tokens of ``text``, perhaps read before; they are not to be changed."""
        with self._lock:
            encoded = self._texts.get(text)
            if encoded is not None:
                self._texts.move_to_end(text)
                return encoded
        tokens = self._tokenize(text)  # two threads may read one text at the same time
        with self._lock:
            if text not in self._texts:
                self._texts[text] = tokens
                self._count += 1 + len(tokens.ids)
            while self._count > RECENT_TOKENS:
                _, forgotten = self._texts.popitem(last=False)
                self._count -= 1 + len(forgotten.ids)
        return tokens


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
        self._recent_texts = RecentTexts(self._read_short)
        self._layouts: dict[tuple[int, bool], Layout] = {}

    @classmethod
    def load(cls, path: Path, max_tokens: int) -> TextEncoder:
        """Read a ``tokenizer.json``, once for all roles whose files are the same; BundleError when it is damaged."""
        try:
            content = path.read_bytes()
            key = hashlib.sha256(content).digest()
            with _loading:
                same = _loaded.get(key)
                encoder = cls(Tokenizer.from_buffer(content), max_tokens) if same is None else same.share(max_tokens)
                _loaded[key] = encoder
        except Exception as error:  # the library raises bare Exception
            raise BundleError(f"{path} is not a tokenizer file: {error}. Export the bundle again.") from error
        return encoder

    def share(self, max_tokens: int) -> TextEncoder:
        """The same tokenizer, with the texts that it read last, for a model with another window."""
        other = copy.copy(self)
        other.max_tokens = max_tokens
        return other

    @property
    def vocabulary_size(self) -> int:
        """Tokens of the vocabulary; a model's table may have a few rows more."""
        return int(self._tokenizer.get_vocab_size())

    def encode(self, text: str) -> Window:
        """The ids of one text; TooLong when it does not fit the window."""
        self._check_long(text)
        window = self._read((text,))
        self._check(window, text)
        return window

    def encode_pair(self, first: str, second: str) -> Window:
        """The ids of a pair; TooLong when it does not fit the window."""
        self._check_long(first)
        self._check_long(second)
        window = self._read((first, second))
        self._check(window, max(first, second, key=len))
        return window

    def encode_windows(
        self, first: str, second: str, windowed: int, stride: int, max_windows: int | None = None, before: int = 0
    ) -> list[Window]:
        """The ids of a pair, with text ``windowed`` (0 or 1) in overlapping windows of the room that the other leaves.

        Neighbouring windows share up to ``stride`` tokens. TooLong when the other text leaves too little room
        (``LEAST_ROOM``), and when these windows and the ``before`` that a call already has are more than
        ``max_windows``; of a long text no more is read than this needs.
        """
        texts, other = (first, second), (first, second)[1 - windowed]
        if self._exceeds_window(other):
            raise self._refuse_other(other, 0)
        if len(texts[windowed]) > SLICE and max_windows is not None:
            room = self.max_tokens - self._find_layout(2).fixed - len(self._read_text(other).ids)
            most = max(1, max_windows - before) if room >= self.max_tokens // LEAST_ROOM else 1
            if self._long_texts.get(texts[windowed]).exceeds(max(0, room + (most - 1) * _step(room, stride))):
                raise (
                    self._refuse_other(other, room)
                    if room < self.max_tokens // LEAST_ROOM
                    else self._refuse_windows(max_windows)
                )
        windows = self._cut_windows(self._read(texts), windowed, other, stride)
        self.check_windows(before + len(windows), max_windows)
        return windows

    def split_prompt(self, prompt: str) -> tuple[str | int, ...]:
        """The pieces of a prompt: the ids of the added tokens that it spells, and the texts between them."""
        added = self._tokenizer.get_added_tokens_decoder()
        if not added:
            return (prompt,)
        ids = sorted(added, key=lambda index: -len(added[index].content))
        spelled = "|".join(f"({_spell(added[index])})" for index in ids)
        pieces: list[str | int] = []
        start = 0
        for match in re.finditer(spelled, prompt):
            assert match.lastindex is not None
            pieces += [prompt[start : match.start()], ids[match.lastindex - 1]]
            start = match.end()
        return tuple(piece for piece in (*pieces, prompt[start:]) if piece != "")

    def encode_prompt(
        self,
        pieces: Sequence[str | int],
        fields: dict[str, str],
        windowed: str,
        stride: int,
        max_windows: int | None = None,
        before: int = 0,
    ) -> list[Window]:
        """The ids of a prompt with its fields filled in, in overlapping windows of the field ``windowed``.

        ``pieces`` are of ``split_prompt``: their tokens are the only special ones, for a field that spells one is
        data. The sequences of a window are the fields, in the order of ``fields``. TooLong as for ``encode_windows``.
        """
        names = list(fields)
        ids: list[int] = []
        owners: list[int | None] = []
        offsets: list[tuple[int, int]] = []
        for piece in pieces:
            if isinstance(piece, int):
                ids.append(piece)
                owners.append(None)
                offsets.append((0, 0))
                continue
            text, ranges = fill_ranges(piece, fields)
            if max_windows is not None and self._exceeds(text, max_windows * self.max_tokens):
                raise self._refuse_windows(max_windows)
            tokens = self._read_text(text)
            ids += tokens.ids
            for start, end in tokens.offsets:
                owner = next((name for name, (first, last) in ranges.items() if start < last and end > first), None)
                owners.append(None if owner is None else names.index(owner))
                first = 0 if owner is None else ranges[owner][0]
                offsets.append((0, 0) if owner is None else (max(0, start - first), end - first))
        unread = [self._read_text(text).unread for text in fields.values()]
        whole = Window(ids, [0] * len(ids), owners, offsets, (unread[0], unread[1]))
        others = max((text for name, text in fields.items() if name != windowed), key=len)
        windows = self._cut_windows(whole, names.index(windowed), others, stride)
        self.check_windows(before + len(windows), max_windows)
        return windows

    def _cut_windows(self, whole: Window, windowed: int, other: str, stride: int) -> list[Window]:
        """Windows of the sequence ``windowed`` of an input; TooLong when ``other`` leaves too little room for them."""
        if len(whole.ids) <= self.max_tokens:
            return [whole]
        begin, end = whole.tokens_of(windowed)
        length = end - begin + 1
        room = self.max_tokens - (len(whole.ids) - length)
        if room < self.max_tokens // LEAST_ROOM:
            raise self._refuse_other(other, room)
        starts = [*range(0, length - room, _step(room, stride)), length - room]
        return [_cut(whole, begin + start, room, begin, end) for start in starts]

    def check_windows(self, count: int, max_windows: int | None) -> None:
        """Raise TooLong when the ``count`` windows of a call are more than ``max_windows``; None allows any number."""
        if max_windows is not None and count > max_windows:
            raise self._refuse_windows(max_windows)

    def encode_parts(self, text: str, stride: int, max_windows: int | None = None) -> list[OwnedWindow]:
        """The ids of one text in as many windows as it needs. Each window owns a range of the tokens.

        The ranges follow one another and cover the text: joined, they are its ids as if no window were bounded. The
        first includes the special tokens before the text, the last those after it. Neighbouring windows share
        ``stride`` tokens, at most half a window; each owns the half of them that lies deeper inside it. TooLong when
        there are more than ``max_windows``.
        """
        if len(text) > SLICE and max_windows is not None:
            room = self.max_tokens - self._find_layout(1).fixed
            if self._long_texts.get(text).exceeds(room + (max_windows - 1) * _step(room, stride)):
                raise self._refuse_parts(text, max_windows)
        whole = self._read((text,))
        if len(whole.ids) <= self.max_tokens:
            return [OwnedWindow(whole, (0, len(whole.ids)))]
        first, last = whole.tokens_of(0)
        length = last - first + 1
        room = self.max_tokens - (len(whole.ids) - length)
        starts = [*range(0, length - room, _step(room, stride)), length - room]
        if max_windows is not None and len(starts) > max_windows:
            raise self._refuse_parts(text, max_windows)
        # Where the range of one window ends and the next range begins: in the middle of the tokens that they share.
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
        return self._read((text,), add_special=False)

    def encode_ids(self, text: str) -> list[int]:
        """The ids of one text of any length, special tokens included."""
        return self._read((text,)).ids

    def find_foreign(self, text: str) -> Unread:
        """The letters of ``text`` in scripts that the vocabulary has no words of."""
        return NOTHING_UNREAD if text.isascii() else find_unread(text, (), self._scripts)

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

    def _read(self, texts: tuple[str, ...], *, add_special: bool = True) -> Window:
        """The ids of one or two texts as if the window were unbounded."""
        layout = self._find_layout(len(texts), add_special=add_special)
        ids, types = [*layout.ids[0]], [*layout.type_ids[0]]
        owners: list[int | None] = [None] * len(ids)
        offsets = [(0, 0)] * len(ids)
        unread = [NOTHING_UNREAD, NOTHING_UNREAD]
        for sequence, text in enumerate(texts):
            tokens = self._read_text(text)
            fixed = layout.ids[sequence + 1]
            ids += [*tokens.ids, *fixed]
            types += [*[layout.text_types[sequence]] * len(tokens.ids), *layout.type_ids[sequence + 1]]
            owners += [*[sequence] * len(tokens.ids), *[None] * len(fixed)]
            offsets += [*tokens.offsets, *[(0, 0)] * len(fixed)]
            unread[sequence] = tokens.unread
        return Window(ids, types, owners, offsets, (unread[0], unread[1]))

    def _read_text(self, text: str) -> TextTokens:
        """The tokens of a text of any length."""
        if len(text) <= SLICE:
            return self._recent_texts.get(text)
        long_text = self._long_texts.get(text)
        long_text.read()
        parts = [part.tokens for part in long_text.parts]
        return TextTokens(
            [index for part in parts for index in part.ids.tolist()],
            [(start, stop) for part in parts for start, stop in part.offsets.tolist()],
            long_text.unread,
        )

    def _read_short(self, text: str) -> TextTokens:
        encoding = self._tokenize(text)
        ids, offsets = encoding.ids, encoding.offsets
        unknown = [span for index, span in zip(ids, offsets, strict=True) if index in self._unknown]
        read = not unknown and text.isascii()
        return TextTokens(ids, offsets, NOTHING_UNREAD if read else find_unread(text, unknown, self._scripts))

    def _find_layout(self, count: int, *, add_special: bool = True) -> Layout:
        """How the tokenizer joins one or two texts."""
        if (count, add_special) not in self._layouts:
            self._layouts[count, add_special] = self._make_layout(count, add_special)
        return self._layouts[count, add_special]

    def _make_layout(self, count: int, add_special: bool) -> Layout:
        for probe in _PROBES:
            encoding = self._tokenizer.encode(*[probe] * count, add_special_tokens=add_special)
            if set(range(count)) <= set(encoding.sequence_ids):
                break
        else:
            raise BundleError("The tokenizer reads no letter, digit or sign of ASCII. Export the bundle again.")
        owners, ids, types = encoding.sequence_ids, encoding.ids, encoding.type_ids
        firsts = [owners.index(sequence) for sequence in range(count)]
        ends = [first + owners.count(sequence) for sequence, first in enumerate(firsts)]
        between = [slice(begin, end) for begin, end in zip([0, *ends], [*firsts, len(ids)], strict=True)]
        return Layout([ids[part] for part in between], [types[part] for part in between], [types[i] for i in firsts])

    def _exceeds_window(self, text: str) -> bool:
        """Whether a long text has more tokens than the model reads; False for a short one, which costs little."""
        return self._exceeds(text, self.max_tokens)

    def _exceeds(self, text: str, limit: int) -> bool:
        return len(text) > SLICE and self._long_texts.get(text).exceeds(limit)

    def _tokenize_slice(self, text: str) -> Tokens:
        encoding = self._tokenize(text)
        offsets = np.array(encoding.offsets, dtype=np.int32).reshape(-1, 2)
        return Tokens(np.array(encoding.ids, dtype=np.int32), offsets)

    def _find_unread_part(self, text: str, part: TextPart) -> Unread:
        characters = text[part.start : part.end]
        unknown = np.isin(part.tokens.ids, list(self._unknown))
        if characters.isascii() and not unknown.any():
            return NOTHING_UNREAD
        spans = [(start, end) for start, end in (part.tokens.offsets[unknown] - part.start).tolist()]
        return find_unread(characters, spans, self._scripts)

    def _tokenize(self, text: str) -> Encoding:
        """The tokens of a text alone, without special ones."""
        # A unigram vocabulary holds "</s>" as an ordinary token, and normalisation can spell one from look-alikes, so
        # the ids are checked and a space replaces the first character of an offending token, which keeps every offset.
        for _ in range(8):
            encoding = self._encode(text)
            clashes = [position for position, index in enumerate(encoding.ids) if index in self._special]
            if not clashes:
                return encoding
            offsets = encoding.offsets
            text = _blank_out(text, [offsets[position][0] for position in clashes])
        raise TooLong("The text spells the model's special tokens again and again; remove them.")

    def _encode(self, text: str) -> Encoding:
        if len(text) <= 2 * SLICE:
            return self._tokenizer.encode(text, add_special_tokens=False)
        # Only this one lets other threads run meanwhile; it takes longer to begin.
        return self._tokenizer.encode_batch([text], add_special_tokens=False)[0]

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

    def _check(self, window: Window, text: str) -> None:
        if len(window.ids) > self.max_tokens:
            raise TooLong(
                f"A text of {len(text)} characters makes {len(window.ids)} tokens; this model reads "
                f"{self.max_tokens} at once. Shorten it, or split it into sentences."
            )


def pad(rows: Sequence[Sequence[int]], width: int, fill: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pad rows of ids with ``fill``: ids and mask, [R, width]."""
    ids, offsets = flatten(rows)
    return _native.pad_rows(ids, offsets, np.arange(len(rows)), width, fill)


def flatten(rows: Sequence[Sequence[int]]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Flatten ragged ids into one array; return it with its row offsets."""
    offsets = np.fromiter(accumulate(map(len, rows), initial=0), np.int64, len(rows) + 1)
    return np.fromiter(chain.from_iterable(rows), np.int64, int(offsets[-1])), offsets


def _step(room: int, stride: int) -> int:
    """Tokens from the beginning of one window of a text to the beginning of the next."""
    return max(1, room - min(stride, room // 2))


def _cut(window: Window, start: int, room: int, first: int, last: int) -> Window:
    keep = [*range(first), *range(start, start + room), *range(last + 1, len(window.ids))]
    ids, type_ids, sequence_ids, offsets = ([column[i] for i in keep] for column in window[:4])
    return Window(ids, type_ids, sequence_ids, offsets, window.unread)


def _spell(token: AddedToken) -> str:
    """The pattern of an added token in a text, with the space around it that it takes."""
    before, after = (r"\s*" if strips else "" for strips in (token.lstrip, token.rstrip))
    return f"{before}{re.escape(token.content)}{after}"


def fill(template: str, fields: dict[str, str]) -> str:
    """``template`` with every ``{name}`` replaced by that field; braces inside a field are text."""
    return fill_ranges(template, fields)[0]


def fill_ranges(template: str, fields: dict[str, str]) -> tuple[str, dict[str, tuple[int, int]]]:
    """``fill``, and the characters that each field has in the result.

    >>> fill_ranges("{a}: {b}", {"a": "x", "b": "{a}"})
    ('x: {a}', {'a': (0, 1), 'b': (3, 6)})
    """
    text, *parts = template.split("{")
    ranges = {}
    for part in parts:
        name, _, rest = part.partition("}")
        ranges[name] = len(text), len(text) + len(fields[name])
        text += fields[name] + rest
    return text, ranges


def _blank_out(text: str, starts: Iterable[int]) -> str:
    characters = list(text)
    for index in starts:
        # A token may start with the space before its word.
        while index < len(text) - 1 and is_space(text[index]):
            index += 1
        characters[index] = " "
    return "".join(characters)
