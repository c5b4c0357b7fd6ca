"""Causal language models: the log-probability of every token of a text, given a prefix.

A prefix is read once for all texts that follow it, in two passes of one graph: everything but its last token gives keys
and values; that last token and the text then read them. A prefix with a single text takes two passes too, so the
text's value does not depend on the other calls (docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from .. import _native
from ..bundle import Bundle
from ..calls import MeasureTexts, Read, ScoreText, TextLengths, TextScored
from ..errors import GroundwireError, InvalidRequest, ModelError, TooLong
from ..manifest import Head, LanguageModelRole
from ..ort.chunked_head import ChunkedHead
from ..ort.device import DeviceKind
from ..ort.remote import open_graph
from ..ort.session import Array, DeviceProfile, ValueGraph
from ..tokenization import TextEncoder, Window, flatten, pad
from ..unread import check_readable

MAX_PADDED_TOKENS: Mapping[DeviceKind, int] = {"cpu": 512, "cuda": 1024, "tensorrt": 1024}
"""Padded tokens of one run, at most. They bound its memory: keys and values of BLOOM-560m take 197 kB a token in
float32, and on a GPU every scored position has logits over the whole vocabulary."""
_POSITION_MULTIPLE = 8
"""The number of scored positions is padded to a multiple of this: a float product of one row adds up in another order
than that of several rows."""


class ScoringInput(NamedTuple):
    """The ids of a call: the prefix that is read first, the tokens read with the text, and the tokens to predict."""

    past: tuple[int, ...]
    """The prefix but its last token."""
    new: list[int]
    """That token and the text but its last; the text alone when there is no prefix."""
    targets: list[int]
    """The token after each of ``new``."""
    text: Window
    read: Read


@dataclass(frozen=True)
class PrefixStates:
    """Keys and values of several prefixes of one width."""

    mask: NDArray[np.int64]
    """[S, P]: 1 on the tokens of the prefix, which is aligned left."""
    states: Mapping[str, ort.OrtValue]
    """``past.key.0`` and so on, [S, H, P, D]."""


class LanguageModel:
    """A causal language model with its tokenizer."""

    def __init__(
        self,
        role: LanguageModelRole,
        session: ValueGraph,
        encoder: TextEncoder,
        profile: DeviceProfile,
        head: ChunkedHead | None = None,
    ) -> None:
        """``head`` is None when it is inside the session's graph."""
        self._role = role
        self._session = session
        self._head = head
        self._encoder = encoder
        self._max_padded_tokens = MAX_PADDED_TOKENS[profile.device.kind]
        self._max_rows = profile.max_rows

    @classmethod
    def load(cls, bundle: Bundle, role: LanguageModelRole, profile: DeviceProfile) -> LanguageModel:
        """Open the role's graphs and tokenizer."""
        session = open_graph(bundle, role.graph, profile)
        head = ChunkedHead.load(bundle, role.head, profile) if isinstance(role.head, Head) else None
        return cls(role, session, TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens), profile, head)

    def run(
        self, calls: Sequence[ScoreText | MeasureTexts], max_windows: int
    ) -> list[TextScored | TextLengths | GroundwireError]:
        """The log-probabilities of each call's text, or its texts' lengths; a call that fails gets its error instead.

        TooLong when prefix and text do not fit the model's window together: they are never cut, whatever
        ``max_windows``. InvalidRequest when there is no token to predict. ModelError when the graph's numbers are not
        finite.
        """
        out: dict[int, TextScored | TextLengths | GroundwireError] = {}
        inputs: dict[int, ScoringInput] = {}
        windows: dict[str, Window] = {}
        for index, call in enumerate(calls):
            if isinstance(call, MeasureTexts):
                out[index] = self._measure(call)
                continue
            try:
                inputs[index] = self._tokenize(call, windows)
            except GroundwireError as error:
                out[index] = error
        score = self._score_with_cache if self._role.layers else self._score_in_one_pass
        for index, values in score(inputs):
            out[index] = self._build_result(inputs[index], values)
        return [out[index] for index in range(len(calls))]

    def _measure(self, call: MeasureTexts) -> TextLengths:
        lengths = tuple(len(self._encoder.encode_plain(text).ids) for text in call.texts)
        return TextLengths(lengths, self._encoder.max_tokens)

    def _tokenize(self, call: ScoreText, windows: dict[str, Window]) -> ScoringInput:
        """The ids of a call; ``windows`` keeps texts that several calls share."""
        parts = []
        for part in (*call.prefix, call.text):
            if part not in windows:
                windows[part] = self._encode(part)
            parts.append(windows[part])
            check_readable("text", windows[part].unread[0], len(part))
        text = parts.pop()
        prefix = [index for part in parts for index in part.ids]
        total = sum(map(len, call.prefix))
        read = Read(1, total - sum(part.unread[0].characters for part in parts), total)
        if len(text.ids) < (1 if prefix else 2):
            raise InvalidRequest(
                f"A text of {len(text.ids)} tokens after a prefix of {len(prefix)} has no token to predict; give a "
                "text of words, and of two tokens or more when there is no prefix."
            )
        length = len(prefix) + len(text.ids)
        if length > self._encoder.max_tokens:
            raise TooLong(
                f"Prefix and text make {length} tokens ({len(prefix)} and {len(text.ids)}); this model reads "
                f"{self._encoder.max_tokens} at once. Give less of the document or of the history."
            )
        if prefix:
            return ScoringInput(tuple(prefix[:-1]), [prefix[-1], *text.ids[:-1]], text.ids, text, read)
        return ScoringInput((), text.ids[:-1], text.ids[1:], text, read)

    def _encode(self, text: str) -> Window:
        try:
            return self._encoder.encode_plain(text, must_fit=True)
        except TooLong:
            check_readable("text", self._encoder.find_foreign(text), len(text))
            raise

    def _build_result(self, scored: ScoringInput, values: NDArray[np.float32]) -> TextScored | GroundwireError:
        if not np.isfinite(values).all():
            return ModelError(
                f"The language model {self._role.source!r} gave a log-probability of "
                f"{values[~np.isfinite(values)][0]}; verify the bundle, or export it at a higher precision."
            )
        first = len(scored.text.ids) - len(scored.targets)
        return TextScored(tuple(scored.text.offsets), tuple(values.tolist()), first, scored.read)

    def _score_with_cache(self, inputs: Mapping[int, ScoringInput]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Read each prefix once, then its texts with the keys and values of the prefix."""
        by_prefix: dict[tuple[int, ...], list[int]] = {}
        for index, scored in inputs.items():
            by_prefix.setdefault(scored.past, []).append(index)
        prefixes = list(by_prefix)
        order, bounds, widths = _native.plan_batches(
            np.array([len(prefix) for prefix in prefixes], dtype=np.int64), self._max_padded_tokens, self._max_rows
        )
        for number, width in enumerate(widths.tolist()):
            batch = [prefixes[row] for row in order[bounds[number] : bounds[number + 1]]]
            # One batch at a time: its keys and values are freed before the next ones are computed.
            past = self._read_prefixes(batch, width)
            yield from self._score_after(past, [by_prefix[prefix] for prefix in batch], inputs)

    def _score_after(
        self, past: PrefixStates, texts_of: Sequence[Sequence[int]], inputs: Mapping[int, ScoringInput]
    ) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Score the texts of each prefix of ``past``; ``texts_of`` [S] has their indices in ``inputs``."""
        for rows, texts in self._group_texts(texts_of, inputs):
            flat = [index for indices in texts for index in indices]
            values = self._score_texts(past, rows, len(texts[0]), [inputs[index] for index in flat])
            yield from zip(flat, values, strict=True)

    def _read_prefixes(self, prefixes: Sequence[tuple[int, ...]], width: int) -> PrefixStates:
        """The keys and values of prefixes, padded to ``width``."""
        tokens, mask = pad(prefixes, width, self._role.pad_id)
        narrow = _native.bucket_width(0)
        shape = (len(prefixes), self._role.heads, narrow, self._role.head_dim)
        half = self._session.input_types["past.key.0"] == "tensor(float16)"
        empty = self._session.value(np.zeros(shape, dtype=np.float16 if half else np.float32))
        states = {name: empty for name in self._session.inputs if name.startswith(("past.key.", "past.value."))}
        if not mask.any():
            return PrefixStates(np.zeros((len(prefixes), narrow), dtype=np.int64), states)
        feeds = {
            "tokens": tokens[:, None, :],
            "past_mask": np.zeros((len(prefixes), narrow), dtype=np.int64),
            # No target of 0 or above: nothing is scored, and the table of the vocabulary is not read.
            "rows": np.zeros(1, dtype=np.int64),
            "targets": np.full(1, -1, dtype=np.int64),
        }
        outputs = self._run(feeds, states)
        return PrefixStates(mask, {name: outputs[name.replace("past", "present", 1)] for name in states})

    def _group_texts(
        self, texts_of: Sequence[Sequence[int]], inputs: Mapping[int, ScoringInput]
    ) -> Iterator[tuple[list[int], list[list[int]]]]:
        """Batches of texts of one width, equally many per prefix: rows of the prefixes [S], and indices [S][C]."""
        groups: dict[tuple[int, int], list[tuple[int, list[int]]]] = {}
        for row, indices in enumerate(texts_of):
            by_width: dict[int, list[int]] = {}
            for index in indices:
                by_width.setdefault(_native.bucket_width(len(inputs[index].new)), []).append(index)
            for width, texts in by_width.items():
                for part in _split(texts, self._max_padded_tokens // width):
                    groups.setdefault((width, len(part)), []).append((row, part))
        for (width, count), members in sorted(groups.items()):
            for part in _split(members, self._max_padded_tokens // (width * count)):
                yield [row for row, _ in part], [texts for _, texts in part]

    def _score_texts(
        self, past: PrefixStates, prefix_rows: list[int], texts: int, batch: Sequence[ScoringInput]
    ) -> Iterator[NDArray[np.float32]]:
        """Log-probabilities of the targets of S · C texts: ``texts`` (C) after each of ``prefix_rows`` [S]."""
        width = _native.bucket_width(len(batch[0].new))
        tokens, _ = pad([scored.new for scored in batch], width, self._role.pad_id)
        feeds = {"tokens": tokens.reshape(len(prefix_rows), texts, width), "past_mask": past.mask[prefix_rows]}
        states = past.states
        if prefix_rows != list(range(len(past.mask))):
            states = self._session.take_rows(states, np.array(prefix_rows, dtype=np.int64), share=True)
        positions = [index * width + np.arange(len(scored.targets)) for index, scored in enumerate(batch)]
        return _split_values(self._compute_log_probs(feeds | _build_targets(positions, batch), states), batch)

    def _score_in_one_pass(self, inputs: Mapping[int, ScoringInput]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """Read prefix and text in one pass, for graphs that keep no keys and values."""
        indices = list(inputs)
        ids, offsets = flatten([[*scored.past, *scored.new] for scored in inputs.values()])
        order, bounds, widths = _native.plan_batches(np.diff(offsets), self._max_padded_tokens, self._max_rows)
        for number, width in enumerate(widths.tolist()):
            rows = order[bounds[number] : bounds[number + 1]]
            padded, mask = _native.pad_rows(ids, offsets, rows, width, self._role.pad_id)
            batch = [inputs[indices[row]] for row in rows]
            positions = [
                index * width + len(scored.past) + np.arange(len(scored.targets)) for index, scored in enumerate(batch)
            ]
            feeds = {"input_ids": padded, "attention_mask": mask, **_build_targets(positions, batch)}
            values = _split_values(self._compute_log_probs(feeds, {}), batch)
            yield from zip((indices[row] for row in rows), values, strict=True)

    def _compute_log_probs(self, feeds: Mapping[str, Array], states: Mapping[str, ort.OrtValue]) -> NDArray[np.float32]:
        if self._head is not None:
            # The keys and values of the texts are freed before the head runs.
            return self._head.log_probs(self._run(feeds, states)["hidden"], feeds["targets"])
        values: NDArray[np.float32] = self._run(feeds, states)["log_probs"].numpy()
        return values

    def _run(self, feeds: Mapping[str, Array], states: Mapping[str, ort.OrtValue]) -> dict[str, ort.OrtValue]:
        if self._head is not None and "words" in self._session.inputs:
            feeds = {**feeds, "words": self._head.look_up_rows(feeds["tokens" if self._role.layers else "input_ids"])}
        # A graph without its head takes no targets.
        values = {
            name: self._session.host_value(array) for name, array in feeds.items() if name in self._session.inputs
        }
        return self._session.run_values({**values, **states}, host=("log_probs",))


def _split_values(values: NDArray[np.float32], batch: Sequence[ScoringInput]) -> Iterator[NDArray[np.float32]]:
    """The values of each text, from those of all texts in a row."""
    ends = np.cumsum([len(scored.targets) for scored in batch])
    return (values[end - len(scored.targets) : end] for end, scored in zip(ends, batch, strict=True))


def _build_targets(
    positions: Sequence[NDArray[np.int64]], batch: Sequence[ScoringInput]
) -> dict[str, NDArray[np.int64]]:
    """The graph's inputs ``rows`` and ``targets``: the scored positions and the tokens to predict there.

    Both are filled up to a multiple of ``_POSITION_MULTIPLE`` with position 0 and token 0.
    """
    count = sum(map(len, positions))
    feeds = {
        name: np.zeros(-(-count // _POSITION_MULTIPLE) * _POSITION_MULTIPLE, dtype=np.int64)
        for name in ("rows", "targets")
    }
    feeds["rows"][:count] = np.concatenate(positions)
    feeds["targets"][:count] = np.concatenate([scored.targets for scored in batch])
    return feeds


def _split(items: Sequence[Any], size: int) -> Iterator[list[Any]]:
    size = max(1, size)
    return (list(items[start : start + size]) for start in range(0, len(items), size))
