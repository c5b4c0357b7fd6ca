"""The entity retriever's examples as tensors."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import numpy as np
import torch
from tokenizers import Tokenizer

from groundwire.export.roles.retriever import RetrieverConfig
from groundwire.runtime.models.masked_input import (
    MaskedInput,
    build_masked_input,
    build_memory_text,
    group_triples,
)
from groundwire.runtime.tokenization import TextEncoder
from groundwire.train.common import backbone
from groundwire.train.common.loop import Schedule

from .examples import Example, Examples
from .templates import GraphDialogue
from .triple_index import TripleIndex


class Source(Protocol):
    """Where dialogues about a graph come from: ``Templates``, or what people wrote (``nph_opendialkg.Turns``)."""

    @property
    def index(self) -> TripleIndex:
        """The graph that they are about."""
        ...

    def draw(self, rng: random.Random) -> GraphDialogue:
        """One dialogue, to learn from."""
        ...

    def stream(self, rng: random.Random) -> Iterator[GraphDialogue]:
        """Dialogues to measure on: without end where they are made, each once where they were written."""
        ...


class Batcher:
    """Examples as tensors."""

    def __init__(self, config: RetrieverConfig, places: Mapping[str, int] | None = None) -> None:
        """``places``: where a memory that is a table holds each entity; every batch then has ``nodes`` [M]."""
        self._places = places
        self._encoder = encoder(config.max_tokens)
        tokens = backbone.tokenizer()
        self._mask, self._pad = int(tokens.mask_token_id), int(tokens.pad_token_id)
        self._config = config

    def cloze(self, example: Example) -> MaskedInput:
        """The example's inputs."""
        return build_masked_input(self._encoder, example.call, self._mask, self._config.turns)

    def __call__(self, examples: Sequence[Example], inputs: Sequence[MaskedInput]) -> dict[str, torch.Tensor]:
        """B examples with Q mentions in all, whose candidates and anchors are M different texts.

        ``input_ids``, ``attention_mask``, ``token_type_ids``, ``members`` [B, T]; ``causal_ids``, ``slots``,
        ``targets`` [B, T']; ``row``, ``place`` [Q]: which slot of which text a mention is; ``previous`` [Q]: the text
        of what was true before it, -1 for nothing; ``texts``, ``text_mask`` [M, L]; ``anchors``, ``candidates`` [Q, C]:
        texts, -1 for padding; ``right`` [Q, C]; ``gold`` [Q].
        """
        texts: dict[str, int] = {}
        table: dict[str, list[list[int]]] = {name: [] for name in ("anchors", "candidates", "right")}
        flat: dict[str, list[int]] = {name: [] for name in ("row", "place", "previous", "gold")}
        for number, example in enumerate(examples):
            joined = group_triples(example.call.triples)
            previous = -1
            for mention, own in enumerate(example.call.candidates):
                known = [
                    texts.setdefault(build_memory_text(one, joined, paths=self._config.paths), len(texts))
                    for one in own
                ]
                table["anchors"].append([texts.setdefault(one.anchor, len(texts)) for one in own])
                table["candidates"].append(known)
                table["right"].append([int(one.entity == example.truth[mention]) for one in own])
                flat["row"].append(number)
                flat["place"].append(mention)
                flat["previous"].append(previous)
                previous = known[example.gold[mention]]
                flat["gold"].append(example.gold[mention])
        ids = [self._encoder.encode_plain(text).ids[: self._config.max_tokens] for text in texts]
        members = [_members(cloze) for cloze in inputs]
        slots = [_slots(cloze) for cloze in inputs]
        return {
            "input_ids": _padded([cloze.window.ids for cloze in inputs], self._pad),
            "attention_mask": _padded([[1] * len(cloze.window.ids) for cloze in inputs], 0),
            "token_type_ids": _padded([cloze.window.type_ids for cloze in inputs], 0),
            "members": _padded(members, 0),
            "causal_ids": _padded([cloze.ids for cloze in inputs], self._pad),
            "slots": _padded(slots, 0),
            "targets": _padded([_targets(cloze) for cloze in inputs], -100),
            "texts": _padded(ids, self._pad),
            "text_mask": _padded([[1] * len(row) for row in ids], 0),
            **({} if self._places is None else {"nodes": torch.tensor([self._places[text] for text in texts])}),
            **{name: torch.tensor(values) for name, values in flat.items()},
            "anchors": _padded(table["anchors"], -1),
            "candidates": _padded(table["candidates"], -1),
            "right": _padded(table["right"], 0),
        }


def collated(batcher: Batcher, examples: Sequence[Example]) -> dict[str, torch.Tensor]:
    """A batch of examples."""
    return batcher(examples, [batcher.cloze(example) for example in examples])


def feed(
    source: Source, make: Examples, batcher: Batcher, schedule: Schedule, start: int, block: int = 8
) -> Iterator[dict[str, torch.Tensor]]:
    """Batches from step ``start`` on: a function of the seed and the step alone, of similar lengths."""
    for first in range(start - start % block, schedule.steps, block):
        rng = random.Random(schedule.seed * 1_000_003 + first)
        drawn: list[tuple[Example, MaskedInput]] = []
        while len(drawn) < schedule.batch * block:
            example = make.make(source.draw(rng), rng)
            if example is not None:
                drawn.append((example, batcher.cloze(example)))
        drawn.sort(key=lambda pair: len(pair[1].window.ids))
        plan = list(range(block))
        rng.shuffle(plan)
        for step, number in enumerate(plan, first):
            if start <= step < schedule.steps:
                part = drawn[number * schedule.batch : (number + 1) * schedule.batch]
                yield batcher([example for example, _ in part], [inputs for _, inputs in part])


def encoder(max_tokens: int) -> TextEncoder:
    """The trunk's tokenizer as the runtime reads with it."""
    return TextEncoder(Tokenizer.from_str(backbone.content()), max_tokens)


def trunk_inputs() -> tuple[str, str, str]:
    """Inputs of the masked language model, in the order of its arguments."""
    return "input_ids", "attention_mask", "token_type_ids"


def _members(inputs: MaskedInput) -> list[int]:
    row = [0] * len(inputs.window.ids)
    for number, own in enumerate(inputs.mentions, 1):
        for place in own:
            row[place] = number
    return row


def _slots(inputs: MaskedInput) -> list[int]:
    row = [0] * len(inputs.ids)
    for number, place in enumerate(inputs.slots, 1):
        row[place] = number
    return row


def _targets(inputs: MaskedInput) -> list[int]:
    """The next word at every place of the response; -100 before it, and where a mention comes next."""
    # Response and last separator, each mention one place.
    told = inputs.window.sequence_ids.count(1) + 1 - sum(len(own) - 1 for own in inputs.mentions)
    begin = len(inputs.ids) - told
    out = [-100] * len(inputs.ids)
    for place in range(max(0, begin - 1), len(inputs.ids) - 1):
        if place + 1 not in inputs.slots:
            out[place] = inputs.ids[place + 1]
    return out


def _padded(rows: Sequence[Sequence[int]], fill: int) -> torch.Tensor:
    table = np.full((len(rows), max(map(len, rows))), fill, dtype=np.int64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return torch.from_numpy(table)
