"""Turns the entity retriever's examples into tensors."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
from tokenizers import Tokenizer

from groundwire.export.roles.retriever import RetrieverConfig
from groundwire.runtime.models.masked_input import MaskedInput, build_masked_input, build_memory_text, group_triples
from groundwire.runtime.texts.tokenization import TextEncoder

from ..common import backbone
from ..common.loop import Schedule
from ..common.triple_index import TripleIndex
from .examples import RetrievalExample, RetrievalExamples
from .templates import GraphDialogue

ENCODER_INPUTS = ("input_ids", "attention_mask", "token_type_ids")
"""Inputs of the masked language model, in the order of its arguments."""


class DialogueSource(Protocol):
    """A source of dialogues about a graph: ``TemplateDialogues``, or people's (``OpenDialKGTurns``)."""

    @property
    def index(self) -> TripleIndex:
        """The graph of the dialogues."""
        ...

    def draw(self, rng: random.Random) -> GraphDialogue:
        """Draw a dialogue to train on."""
        ...

    def stream(self, rng: random.Random) -> Iterator[GraphDialogue]:
        """Yield dialogues to measure on: without end where templates make them, each once where people wrote them."""
        ...


class RetrieverBatcher:
    """Examples as tensors."""

    def __init__(self, config: RetrieverConfig) -> None:
        self._encoder = load_text_encoder(config.max_tokens)
        tokens = backbone.load_tokenizer()
        self._mask, self._pad = int(tokens.mask_token_id), int(tokens.pad_token_id)
        self._config = config

    def mask_input(self, example: RetrievalExample) -> MaskedInput:
        """The example's inputs."""
        return build_masked_input(self._encoder, example.call, self._mask, self._config.turns)

    def __call__(self, examples: Sequence[RetrievalExample], inputs: Sequence[MaskedInput]) -> dict[str, torch.Tensor]:
        """B examples with Q mentions in all, whose candidates and anchors are M different texts.

        ``input_ids``, ``attention_mask``, ``token_type_ids``, ``members`` [B, T]; ``causal_ids``, ``slots``,
        ``targets`` [B, T']; ``row``, ``slot`` [Q]: the text and the slot of a mention; ``previous`` [Q]: the text of
        the true candidate of the mention before it, -1 for none; ``texts``, ``text_mask`` [M, L]; ``anchors``,
        ``candidates`` [Q, C]: texts, -1 for padding; ``right`` [Q, C]; ``gold`` [Q].
        """
        texts: dict[str, int] = {}
        table: dict[str, list[list[int]]] = {name: [] for name in ("anchors", "candidates", "right")}
        flat: dict[str, list[int]] = {name: [] for name in ("row", "slot", "previous", "gold")}
        for number, example in enumerate(examples):
            joined = group_triples(example.call.triples)
            previous = -1
            for mention, candidates in enumerate(example.call.candidates):
                candidate_texts = [
                    texts.setdefault(build_memory_text(candidate, joined, paths=self._config.paths), len(texts))
                    for candidate in candidates
                ]
                table["anchors"].append([texts.setdefault(candidate.anchor, len(texts)) for candidate in candidates])
                table["candidates"].append(candidate_texts)
                table["right"].append([int(candidate.entity == example.truth[mention]) for candidate in candidates])
                flat["row"].append(number)
                flat["slot"].append(mention)
                flat["previous"].append(previous)
                previous = candidate_texts[example.gold[mention]]
                flat["gold"].append(example.gold[mention])
        ids = [self._encoder.encode_plain(text).ids[: self._config.max_tokens] for text in texts]
        members = [_number_mentions(masked) for masked in inputs]
        slots = [_number_slots(masked) for masked in inputs]
        return {
            "input_ids": _pad([masked.window.ids for masked in inputs], self._pad),
            "attention_mask": _pad([[1] * len(masked.window.ids) for masked in inputs], 0),
            "token_type_ids": _pad([masked.window.type_ids for masked in inputs], 0),
            "members": _pad(members, 0),
            "causal_ids": _pad([masked.ids for masked in inputs], self._pad),
            "slots": _pad(slots, 0),
            "targets": _pad([_list_targets(masked) for masked in inputs], -100),
            "texts": _pad(ids, self._pad),
            "text_mask": _pad([[1] * len(row) for row in ids], 0),
            **{name: torch.tensor(values) for name, values in flat.items()},
            "anchors": _pad(table["anchors"], -1),
            "candidates": _pad(table["candidates"], -1),
            "right": _pad(table["right"], 0),
        }


def collate_examples(batcher: RetrieverBatcher, examples: Sequence[RetrievalExample]) -> dict[str, torch.Tensor]:
    """A batch of examples."""
    return batcher(examples, [batcher.mask_input(example) for example in examples])


def draw_batches(
    source: DialogueSource,
    make: RetrievalExamples,
    batcher: RetrieverBatcher,
    schedule: Schedule,
    start: int,
    block: int = 8,
) -> Iterator[dict[str, torch.Tensor]]:
    """Batches from step ``start`` on: a function of the seed and the step alone, of similar lengths."""
    for first in range(start - start % block, schedule.steps, block):
        rng = random.Random(schedule.seed * 1_000_003 + first)
        drawn: list[tuple[RetrievalExample, MaskedInput]] = []
        while len(drawn) < schedule.batch * block:
            example = make.make(source.draw(rng), rng)
            if example is not None:
                drawn.append((example, batcher.mask_input(example)))
        drawn.sort(key=lambda pair: len(pair[1].window.ids))
        plan = list(range(block))
        rng.shuffle(plan)
        for step, number in enumerate(plan, first):
            if start <= step < schedule.steps:
                part = drawn[number * schedule.batch : (number + 1) * schedule.batch]
                yield batcher([example for example, _ in part], [inputs for _, inputs in part])


def load_text_encoder(max_tokens: int) -> TextEncoder:
    """Load the backbone's tokenizer as the runtime's text encoder."""
    return TextEncoder(Tokenizer.from_str(backbone.read_tokenizer_json()), max_tokens)


def _number_mentions(inputs: MaskedInput) -> list[int]:
    row = [0] * len(inputs.window.ids)
    for number, tokens in enumerate(inputs.mentions, 1):
        for token in tokens:
            row[token] = number
    return row


def _number_slots(inputs: MaskedInput) -> list[int]:
    row = [0] * len(inputs.ids)
    for number, token in enumerate(inputs.slots, 1):
        row[token] = number
    return row


def _list_targets(inputs: MaskedInput) -> list[int]:
    """The next token at every position of the response; -100 before it, and where a mention comes next."""
    # Tokens of the response and the last separator; each mention is one token.
    length = inputs.window.sequence_ids.count(1) + 1 - sum(len(tokens) - 1 for tokens in inputs.mentions)
    first = len(inputs.ids) - length
    targets = [-100] * len(inputs.ids)
    for token in range(max(0, first - 1), len(inputs.ids) - 1):
        if token + 1 not in inputs.slots:
            targets[token] = inputs.ids[token + 1]
    return targets


def _pad(rows: Sequence[Sequence[int]], fill: int) -> torch.Tensor:
    table = np.full((len(rows), max(map(len, rows))), fill, dtype=np.int64)
    for number, row in enumerate(rows):
        table[number, : len(row)] = row
    return torch.from_numpy(table)
