"""Neural Path Hunter's entity retriever: which entity of a graph belongs at a masked mention.

Three graphs and a product. A masked language model reads facts, history and the response with its mentions masked; the
states of a mention's tokens are pooled. From left to right, a causal language model turns each mention's state,
with the entity chosen before it, into a query. The memory holds the same causal model's vector of each entity's text,
and the score of a candidate is DistMult of anchor, query and entity over the square root of their width.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _native
from ..bundles.bundle import Bundle
from ..bundles.manifest import RetrieverRole
from ..calls import Candidate, Retrieve, Retrieved
from ..capture.encoder import CapturedEncoder
from ..errors import GroundwireError, InvalidRequest, ModelError, TooLong
from ..ort.session import DeviceProfile, Graph, forward, plan_batches
from ..texts.tokenization import TextEncoder, Window, flatten
from .graphs import load_encoder, prepare_graph
from .masked_input import MaskedInput, build_masked_input, build_memory_text, group_triples

MEMORY_SIZE = 16_384
"""Entities whose vectors are kept; the least recently used are dropped. 25 MB at a width of 384."""
MENTIONS = 16
"""Mentions of a response whose queries are captured on a GPU; the queries of later ones run kernel by kernel."""

Vector = NDArray[np.float32]
RankedMentions = tuple[tuple[Retrieved, ...], ...]
"""The best candidates of each mention, best first."""


class PreparedCall(NamedTuple):
    """A call, its model inputs, and the memory texts of its anchors and candidates."""

    call: Retrieve
    inputs: MaskedInput
    anchors: tuple[tuple[str, ...], ...]
    entities: tuple[tuple[str, ...], ...]


class Retriever:
    """The graphs of an entity retriever with their tokenizer and memory."""

    def __init__(
        self, role: RetrieverRole, sessions: tuple[Graph, Graph, Graph], encoder: TextEncoder, profile: DeviceProfile
    ) -> None:
        """``sessions`` run the role's encoder, query and memory graph."""
        self._role = role
        self._states, self._query, self._memory = sessions
        self._encoder = encoder
        self._profile = profile
        self._known: OrderedDict[str, Vector] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def load(cls, bundle: Bundle, role: RetrieverRole, profile: DeviceProfile) -> Retriever:
        """Open the role's graphs and tokenizer."""
        states, memory = (load_encoder(bundle, name, role.max_tokens, profile) for name in (role.encoder, role.memory))
        query = load_encoder(bundle, role.query, role.max_tokens, profile, {"mentions": MENTIONS})
        encoder = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
        return cls(role, (states, query, memory), encoder, profile)

    def prepare(self) -> None:
        """Capture the graphs at every shape, on a GPU."""
        for graph in (self._states, self._memory, self._query):
            prepare_graph(graph)

    def run(self, calls: Sequence[Retrieve], max_windows: int) -> list[RankedMentions | GroundwireError]:
        """The best candidates of every mention of each call; a call that cannot be read gets its error instead.

        ``max_windows`` does not apply: facts, history and response are read in one window (``build_masked_input``).
        """
        out: dict[int, RankedMentions | GroundwireError] = {}
        prepared: dict[int, PreparedCall] = {}
        windows: dict[str, Window] = {}
        for index, call in enumerate(calls):
            try:
                item = self._prepare(call)
                for text in (text for side in (item.anchors, item.entities) for texts in side for text in texts):
                    if text not in windows:
                        windows[text] = self._encode_entity(text)
                prepared[index] = item
            except GroundwireError as error:
                out[index] = error
        memory = self._embed_entities(windows)
        states = self._pool_mentions(prepared)
        rankings: dict[int, list[tuple[Retrieved, ...]]] = {index: [] for index in prepared}
        chosen: dict[int, list[Vector]] = {index: [np.zeros(self._role.width, dtype=np.float32)] for index in prepared}
        for number in range(max((len(item.call.mentions) for item in prepared.values()), default=0)):
            open_calls = {
                index: item for index, item in prepared.items() if number < len(item.call.mentions) and index not in out
            }
            for index, query in self._compute_queries(open_calls, states, chosen, number).items():
                item = open_calls[index]
                anchors, entities = (
                    np.stack([memory[text] for text in texts])
                    for texts in (item.anchors[number], item.entities[number])
                )
                ranked = self._rank_candidates(item, number, distmult(anchors, query, entities))
                if isinstance(ranked, GroundwireError):
                    out[index] = ranked
                    continue
                best, retrieved = ranked
                rankings[index].append(retrieved)
                chosen[index].append(entities[best])
        for index in prepared:
            if index not in out:
                out[index] = tuple(rankings[index])
        return [out[index] for index in range(len(calls))]

    def _prepare(self, call: Retrieve) -> PreparedCall:
        if call.top < 1:
            raise InvalidRequest(f"top={call.top}; give 1 or more candidates to return.")
        inputs = build_masked_input(self._encoder, call, self._role.mask_id, self._role.turns)
        triples = group_triples(call.triples) if self._role.paths else {}
        return PreparedCall(
            call,
            inputs,
            tuple(tuple(candidate.anchor for candidate in candidates) for candidates in call.candidates),
            tuple(
                tuple(build_memory_text(candidate, triples, paths=self._role.paths) for candidate in candidates)
                for candidates in call.candidates
            ),
        )

    def _encode_entity(self, text: str) -> Window:
        window = self._encoder.encode_plain(text)
        if not window.ids:
            raise InvalidRequest(f"The entity {text!r} has no words; leave it out of the candidates.")
        if len(window.ids) > self._encoder.max_tokens:
            raise TooLong(
                f"The entity {text[:40]!r}… makes {len(window.ids)} tokens; this model reads "
                f"{self._encoder.max_tokens} at once. Leave it out of the candidates."
            )
        return window

    def _embed_entities(self, windows: Mapping[str, Window]) -> dict[str, Vector]:
        """The vectors of entities by their texts, from memory where it holds them."""
        with self._lock:
            vectors = {text: self._known[text] for text in windows if text in self._known}
            for text in vectors:
                self._known.move_to_end(text)
        new = [text for text in windows if text not in vectors]
        for rows, _, (batch_vectors,) in forward(
            self._memory, [windows[text] for text in new], self._role.pad_id, self._profile
        ):
            for row, vector in zip(rows.tolist(), batch_vectors.astype(np.float32), strict=True):
                # A copy: a view would keep the whole batch.
                vectors[new[row]] = vector.copy()
        with self._lock:
            self._known |= {text: vectors[text] for text in new}
            while len(self._known) > MEMORY_SIZE:
                self._known.popitem(last=False)
        return vectors

    def _pool_mentions(self, prepared: Mapping[int, PreparedCall]) -> dict[int, list[Vector]]:
        """One state per mention of every call."""
        indices = list(prepared)
        pooled: dict[int, list[Vector]] = {}
        windows = [prepared[index].inputs.window for index in indices]
        for rows, _, (hidden,) in forward(self._states, windows, self._role.pad_id, self._profile):
            for row, states in zip(rows.tolist(), hidden, strict=True):
                mentions = prepared[indices[row]].inputs.mentions
                pooled[indices[row]] = [pool(states[list(pieces)], self._role.pooling) for pieces in mentions]
        return pooled

    def _compute_queries(
        self,
        prepared: Mapping[int, PreparedCall],
        states: Mapping[int, Sequence[Vector]],
        chosen: Mapping[int, Sequence[Vector]],
        number: int,
    ) -> dict[int, Vector]:
        """The query of mention ``number`` of every call; a causal model does not see the text after it."""
        indices = list(prepared)
        ends = [prepared[index].inputs.slots[number] + 1 for index in indices]
        ids, offsets = flatten([prepared[index].inputs.ids[:end] for index, end in zip(indices, ends, strict=True)])
        pairs = (
            np.stack(
                [
                    np.concatenate(
                        [np.stack(chosen[index][: number + 1]), np.stack(states[index][: number + 1])], axis=1
                    )
                    for index in indices
                ]
            )
            if indices
            else np.zeros(0, dtype=np.float32)
        )
        graph = self._query
        if isinstance(graph, CapturedEncoder) and number < MENTIONS:
            # Those beyond the mentions so far are at no slot.
            pairs = np.pad(pairs, ((0, 0), (0, MENTIONS - number - 1), (0, 0))) if indices else pairs
        elif isinstance(graph, CapturedEncoder):
            graph = graph.runnable.any_shape
        half = graph.input_types["pairs"] == "tensor(float16)"
        order, bounds, widths = plan_batches(np.diff(offsets), graph.plan, self._profile)
        query_of: dict[int, Vector] = {}
        for batch, width in enumerate(widths.tolist()):
            rows = order[bounds[batch] : bounds[batch + 1]]
            padded, _ = _native.pad_rows(ids, offsets, rows, width, self._role.pad_id)
            slots = np.zeros_like(padded)
            for batch_index, row in enumerate(rows.tolist()):
                slots[batch_index, list(prepared[indices[row]].inputs.slots[: number + 1])] = np.arange(1, number + 2)
            feeds = {
                "input_ids": padded,
                "slots": slots,
                "pairs": pairs[rows].astype(np.float16 if half else np.float32),
                "last": np.array([ends[row] - 1 for row in rows.tolist()], dtype=np.int64),
            }
            (queries,) = graph.run(feeds)
            for row, query in zip(rows.tolist(), queries.astype(np.float32), strict=True):
                query_of[indices[row]] = query
        return query_of

    def _rank_candidates(
        self, item: PreparedCall, number: int, scores: Vector
    ) -> tuple[int, tuple[Retrieved, ...]] | GroundwireError:
        """The index of the best candidate, and the records of the best ``top`` candidates."""
        if not np.isfinite(scores).all():
            return ModelError(
                f"The retriever {self._role.source!r} gave a score of {scores[~np.isfinite(scores)][0]}; verify the "
                "bundle, or export it at a higher precision."
            )
        order = np.argsort(-scores, kind="stable")[: item.call.top].tolist()
        weights = np.exp((scores - scores.max()).astype(np.float64))
        weights /= weights.sum()
        candidates: Sequence[Candidate] = item.call.candidates[number]
        return order[0], tuple(
            Retrieved(
                candidates[index].anchor,
                candidates[index].entity,
                float(scores[index]),
                float(weights[index]),
                item.inputs.read,
            )
            for index in order
        )


def distmult(anchors: Vector, query: Vector, entities: Vector) -> Vector:
    """The score of each of C candidates: anchors and entities [C, D], query [D] → [C]."""
    scores: Vector = (anchors * query * entities).sum(axis=1) / np.float32(np.sqrt(len(query)))
    return scores


def pool(states: NDArray[np.floating[Any]], pooling: str) -> Vector:
    """Pool several states [N, D] into one [D]: ``mean``, or ``max`` of each dimension."""
    rows = states.astype(np.float32)
    pooled: Vector = rows.mean(axis=0) if pooling == "mean" else rows.max(axis=0)
    return pooled
