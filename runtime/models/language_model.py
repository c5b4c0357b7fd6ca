"""Causal language models: how probable texts are behind prefixes, token by token.

A prefix is read once for all texts behind it, in two passes of one graph: everything but its last token gives keys and
values; that last token and the text then read them. It is two passes for a text that is alone with its prefix too, so
its value does not depend on what else was asked (docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from groundwire.runtime import _native
from groundwire.runtime.bundle import Bundle, Head, LanguageModelRole
from groundwire.runtime.calls import ScoreText, TextScored
from groundwire.runtime.errors import GroundwireError, InvalidRequest, ModelError, TooLong
from groundwire.runtime.ort.chunked_head import ChunkedHead
from groundwire.runtime.ort.session import Array, Device, DeviceProfile, Session
from groundwire.runtime.tokenization import TextEncoder, Window, flatten, padded

TOKENS: Mapping[Device, int] = {"cpu": 512, "cuda": 1024, "tensorrt": 1024}
"""Padded tokens of one run. They bound its memory: keys and values of BLOOM-560m take 197 kB a token in float32, and on
a GPU every scored position has logits over the whole vocabulary."""
_ROWS = 8
"""Scored positions come in multiples of this: a float product of one row adds up in another order than of several."""


class Entry(NamedTuple):
    """The ids of a call: what is read ahead, what is read with the text, and what is asked about."""

    past: tuple[int, ...]
    """The prefix but its last token."""
    new: list[int]
    """That token and the text but its last; the text alone when there is no prefix."""
    targets: list[int]
    """The token behind each of ``new``."""
    text: Window


@dataclass(frozen=True)
class Past:
    """Keys and values of several prefixes of one width."""

    mask: NDArray[np.int64]
    """[S, P]: 1 on the prefix, from the left."""
    states: Mapping[str, ort.OrtValue]
    """``past.key.0`` and so on, [S, H, P, D]."""


class LanguageModel:
    """A causal language model with its tokenizer."""

    def __init__(
        self,
        role: LanguageModelRole,
        session: Session,
        encoder: TextEncoder,
        profile: DeviceProfile,
        head: ChunkedHead | None = None,
    ) -> None:
        """``head`` is None when it is inside the session's graph."""
        self._role = role
        self._session = session
        self._head = head
        self._encoder = encoder
        self._tokens = TOKENS[profile.device]
        self._max_rows = profile.max_rows

    @classmethod
    def load(cls, bundle: Bundle, role: LanguageModelRole, profile: DeviceProfile) -> LanguageModel:
        """Open the role's graphs and tokenizer."""
        session = Session.load(bundle.file(role.graph), profile)
        head = ChunkedHead.load(bundle, role.head, profile) if isinstance(role.head, Head) else None
        return cls(role, session, TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens), profile, head)

    def run(self, calls: Sequence[ScoreText], max_windows: int) -> list[TextScored | GroundwireError]:
        """The log-probabilities of each call's text; a call that cannot be scored gets its error instead.

        TooLong when prefix and text do not fit the model's window together: they are never cut, whatever
        ``max_windows``. InvalidRequest when there is no token to predict. ModelError when the graph's numbers are not
        finite.
        """
        out: dict[int, TextScored | GroundwireError] = {}
        entries: dict[int, Entry] = {}
        known: dict[str, Window] = {}
        for index, call in enumerate(calls):
            try:
                entries[index] = self._entry(call, known)
            except GroundwireError as error:
                out[index] = error
        score = self._behind_prefixes if self._role.layers else self._whole
        for index, values in score(entries):
            out[index] = self._scored(entries[index], values)
        return [out[index] for index in range(len(calls))]

    def _entry(self, call: ScoreText, known: dict[str, Window]) -> Entry:
        parts = []
        for part in (*call.prefix, call.text):
            if part not in known:
                known[part] = self._encoder.plain(part)
            parts.append(known[part])
        text = parts.pop()
        prefix = [index for part in parts for index in part.ids]
        if len(text.ids) < (1 if prefix else 2):
            raise InvalidRequest(
                f"A text of {len(text.ids)} tokens behind {len(prefix)} has none to predict; give a text of words, "
                "and of two tokens or more when nothing stands before it."
            )
        length = len(prefix) + len(text.ids)
        if length > self._encoder.max_tokens:
            raise TooLong(
                f"Prefix and text make {length} tokens ({len(prefix)} and {len(text.ids)}); this model reads "
                f"{self._encoder.max_tokens} at once. Give less of the document or of the history."
            )
        if prefix:
            return Entry(tuple(prefix[:-1]), [prefix[-1], *text.ids[:-1]], text.ids, text)
        return Entry((), text.ids[:-1], text.ids[1:], text)

    def _scored(self, entry: Entry, values: NDArray[np.float32]) -> TextScored | GroundwireError:
        if not np.isfinite(values).all():
            return ModelError(
                f"The language model {self._role.source!r} gave a log-probability of "
                f"{values[~np.isfinite(values)][0]}; verify the bundle, or export it at a higher precision."
            )
        first = len(entry.text.ids) - len(entry.targets)
        return TextScored(tuple(entry.text.offsets), tuple(values.tolist()), first)

    def _behind_prefixes(self, entries: Mapping[int, Entry]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        behind: dict[tuple[int, ...], list[int]] = {}
        for index, entry in entries.items():
            behind.setdefault(entry.past, []).append(index)
        prefixes = list(behind)
        order, bounds, widths = _native.plan_batches(
            np.array([len(prefix) for prefix in prefixes], dtype=np.int64), self._tokens, self._max_rows
        )
        for number, width in enumerate(widths.tolist()):
            batch = [prefixes[row] for row in order[bounds[number] : bounds[number + 1]]]
            # One batch at a time: its keys and values are let go before the next ones are made.
            yield from self._behind(self._read(batch, width), [behind[prefix] for prefix in batch], entries)

    def _behind(
        self, past: Past, behind: Sequence[Sequence[int]], entries: Mapping[int, Entry]
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Score the entries that stand ``behind`` each prefix of ``past``."""
        for places, texts in self._packed(behind, entries):
            flat = [index for indices in texts for index in indices]
            values = self._score(past, places, len(texts[0]), [entries[index] for index in flat])
            yield from zip(flat, values, strict=True)

    def _read(self, prefixes: Sequence[tuple[int, ...]], width: int) -> Past:
        """The keys and values of prefixes, padded to ``width``."""
        tokens, mask = padded(prefixes, width, self._role.pad_id)
        narrow = _native.bucket_width(0)
        shape = (len(prefixes), self._role.heads, narrow, self._role.head_dim)
        half = self._session.input_types["past.key.0"] == "tensor(float16)"
        nothing = self._session.value(np.zeros(shape, dtype=np.float16 if half else np.float32))
        states = {name: nothing for name in self._session.inputs if name.startswith(("past.key.", "past.value."))}
        if not mask.any():
            return Past(np.zeros((len(prefixes), narrow), dtype=np.int64), states)
        feeds = {
            "tokens": tokens[:, None, :],
            "past_mask": np.zeros((len(prefixes), narrow), dtype=np.int64),
            # No target of 0 or above: nothing is scored, and the table of the vocabulary is not read.
            "rows": np.zeros(1, dtype=np.int64),
            "targets": np.full(1, -1, dtype=np.int64),
        }
        found = self._run(feeds, states)
        return Past(mask, {name: found[name.replace("past", "present", 1)] for name in states})

    def _packed(
        self, behind: Sequence[Sequence[int]], entries: Mapping[int, Entry]
    ) -> Iterator[tuple[list[int], list[list[int]]]]:
        """Texts of one width, as many behind each of several prefixes: places of the prefixes, and entries [S][C]."""
        groups: dict[tuple[int, int], list[tuple[int, list[int]]]] = {}
        for place, indices in enumerate(behind):
            by_width: dict[int, list[int]] = {}
            for index in indices:
                by_width.setdefault(_native.bucket_width(len(entries[index].new)), []).append(index)
            for width, texts in by_width.items():
                for part in _pieces(texts, self._tokens // width):
                    groups.setdefault((width, len(part)), []).append((place, part))
        for (width, count), members in sorted(groups.items()):
            for part in _pieces(members, self._tokens // (width * count)):
                yield [place for place, _ in part], [texts for _, texts in part]

    def _score(
        self, past: Past, places: list[int], texts: int, entries: Sequence[Entry]
    ) -> Iterator[NDArray[np.float32]]:
        """Log-probabilities of the targets of S · C entries, text after text behind each of the ``places``."""
        width = _native.bucket_width(len(entries[0].new))
        tokens, _ = padded([entry.new for entry in entries], width, self._role.pad_id)
        feeds = {"tokens": tokens.reshape(len(places), texts, width), "past_mask": past.mask[places]}
        states = past.states
        if places != list(range(len(past.mask))):
            states = {name: self._session.value(_taken(value.numpy(), places)) for name, value in states.items()}
        rows = [index * width + np.arange(len(entry.targets)) for index, entry in enumerate(entries)]
        return self._of_each(self._log_probs(feeds | _asked(rows, entries), states), entries)

    def _whole(self, entries: Mapping[int, Entry]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Prefix and text in one pass, for graphs that keep no keys and values."""
        indices = list(entries)
        ids, offsets = flatten([[*entry.past, *entry.new] for entry in entries.values()])
        order, bounds, widths = _native.plan_batches(np.diff(offsets), self._tokens, self._max_rows)
        for number, width in enumerate(widths.tolist()):
            rows = order[bounds[number] : bounds[number + 1]]
            padded, mask = _native.pad_rows(ids, offsets, rows, width, self._role.pad_id)
            batch = [entries[indices[row]] for row in rows]
            asked = [
                place * width + len(entry.past) + np.arange(len(entry.targets)) for place, entry in enumerate(batch)
            ]
            feeds = {"input_ids": padded, "attention_mask": mask, **_asked(asked, batch)}
            values = self._of_each(self._log_probs(feeds, {}), batch)
            yield from zip((indices[row] for row in rows), values, strict=True)

    def _log_probs(self, feeds: Mapping[str, Array], states: Mapping[str, ort.OrtValue]) -> NDArray[np.float32]:
        if self._head is not None:
            # The keys and values of the texts are let go before the head runs.
            return self._head.log_probs(self._run(feeds, states)["hidden"], feeds["targets"])
        values: NDArray[np.float32] = self._run(feeds, states)["log_probs"].numpy()
        return values

    def _run(self, feeds: Mapping[str, Array], states: Mapping[str, ort.OrtValue]) -> dict[str, ort.OrtValue]:
        if self._head is not None and "words" in self._session.inputs:
            feeds = {**feeds, "words": self._head.words(feeds["tokens" if self._role.layers else "input_ids"])}
        # A graph without its head takes no targets.
        values = {name: self._session.value(array) for name, array in feeds.items() if name in self._session.inputs}
        return self._session.run_values({**values, **states}, host=("log_probs",))

    @staticmethod
    def _of_each(values: NDArray[np.float32], entries: Sequence[Entry]) -> Iterator[NDArray[np.float32]]:
        ends = np.cumsum([len(entry.targets) for entry in entries])
        return (values[end - len(entry.targets) : end] for end, entry in zip(ends, entries, strict=True))


def _asked(rows: Sequence[NDArray[np.int64]], entries: Sequence[Entry]) -> dict[str, NDArray[np.int64]]:
    """Scored positions and their tokens; those that fill up a multiple of ``_ROWS`` ask about token 0 somewhere."""
    count = sum(map(len, rows))
    asked = {name: np.zeros(-(-count // _ROWS) * _ROWS, dtype=np.int64) for name in ("rows", "targets")}
    asked["rows"][:count] = np.concatenate(rows)
    asked["targets"][:count] = np.concatenate([entry.targets for entry in entries])
    return asked


def _pieces(items: Sequence[Any], size: int) -> Iterator[list[Any]]:
    size = max(1, size)
    return (list(items[at : at + size]) for at in range(0, len(items), size))


def _taken(states: Array, places: list[int]) -> Array:
    # A stretch of rows is a view; anything else is a copy.
    if places == list(range(places[0], places[0] + len(places))):
        return states[places[0] : places[0] + len(places)]
    return states[places]
