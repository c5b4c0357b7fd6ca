"""Scores texts in runs of any shape: prefixes first, then the texts after them, which read their keys and values.

A prefix is read once for all texts that follow it, in two passes of one graph: everything but its last token gives keys
and values; that last token and the text then read them. A prefix with a single text takes two passes too, so the
text's value does not depend on the other calls (docs/architecture.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from .. import _native
from ..bundles.manifest import LanguageModelRole
from ..decoding.scoring import ScoringInput
from ..ort.chunked_head import ChunkedHead
from ..ort.device import DeviceKind
from ..ort.session import Array, DeviceProfile, ValueGraph
from ..texts.tokenization import flatten, pad

MAX_PADDED_TOKENS: Mapping[DeviceKind, int] = {
    "cpu": 512,
    "cuda": 1024,
    "tensorrt": 1024,
    "tensorrt-rtx": 1024,
}
"""Padded tokens of one run, at most. They bound its memory: keys and values of BLOOM-560m take 197 kB a token in
float32, and on a GPU every scored position has logits over the whole vocabulary."""
_POSITION_MULTIPLE = 8
"""The number of scored positions is padded to a multiple of this: a float product adds up one row in another order
than several rows."""


@dataclass(frozen=True)
class PrefixStates:
    """Keys and values of several prefixes of one width."""

    mask: NDArray[np.int64]
    """[S, P]: 1 on the tokens of the prefix, which is aligned left."""
    states: Mapping[str, ort.OrtValue]
    """``past.key.0`` and so on, [S, H, P, D]."""


class SessionScorer:
    """A language model's graph in a session, or on a model server."""

    def __init__(
        self, role: LanguageModelRole, session: ValueGraph, profile: DeviceProfile, head: ChunkedHead | None = None
    ) -> None:
        """``head`` is None when it is inside the session's graph."""
        self._role = role
        self._session = session
        self._head = head
        self._max_padded_tokens = MAX_PADDED_TOKENS[profile.device.kind]
        self._max_rows = profile.max_rows

    def score(self, inputs: Mapping[int, ScoringInput]) -> Iterator[tuple[int, NDArray[np.float32]]]:
        """As ``TextScorer``; batch by batch, while it is iterated over."""
        return self._score_with_cache(inputs) if self._role.layers else self._score_in_one_pass(inputs)

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
    """The values of each text, from the values of all texts in a row."""
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
