"""Language models against their checkpoints.

Every claim of the fixed texts is scored after its own passage and after another one, and the log-probabilities of its
tokens are compared. The decision is which of the two passages makes the claim more probable, as in PMI.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import torch
from tokenizers import Tokenizer

from groundwire.runtime.bundles.manifest import Parity
from groundwire.runtime.parity.parity import ModelOutputs

from ..checkpoint import Checkpoint
from ..session import Arrays, CpuSession
from ..texts import EXAMPLES
from ..tokens import Ids
from .outcome import SessionOpener

SOURCES = 8
"""Passages per batch."""
APART = len(EXAMPLES) // 2
"""A claim's other passage is this many examples later, wrapping round at the end."""

Scores = list[npt.NDArray[np.float32]]
"""Log-probabilities [M] of each text's tokens, text after text."""


@dataclass(frozen=True)
class PassageTokens:
    """The ids of a passage, and of its own claim and another's."""

    number: int
    passage: list[int]
    claims: tuple[list[int], list[int]]


class LanguageModelReference:
    """A language model's log-probabilities, each text read alone and without padding."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        sources = _sources(Tokenizer.from_str(checkpoint.tokenizer), checkpoint.max_tokens)
        self._batches = [sources[start : start + SOURCES] for start in range(0, len(sources), SOURCES)]
        scores: Scores = []
        for source in sources:
            for claim in source.claims:
                ids = torch.tensor([source.passage + claim])
                logits = checkpoint.model(input_ids=ids, use_cache=False).logits[0, len(source.passage) - 1 : -1]
                scores.append(logits.log_softmax(-1).gather(1, torch.tensor(claim)[:, None])[:, 0].numpy())
        self._outcome = self._collect(scores)

    def compare(self, graphs: Sequence[ir.Model], open_session: SessionOpener = CpuSession) -> Parity:
        """As ``Reference.compare``."""
        (graph,) = graphs
        session = open_session(graph)
        scores = [score for batch in self._batches for score in score_all(session, batch)]
        return self._outcome.parity(self._collect(scores), len(EXAMPLES))

    def probe(self, sessions: Sequence[CpuSession], extra: Sequence[Arrays]) -> npt.NDArray[np.float32]:
        """As ``Reference.probe``: the first batch."""
        return np.concatenate(score_all(sessions[0], self._batches[0], extra[0]))

    def _collect(self, scores: Scores) -> ModelOutputs:
        means = np.array([score.mean() for score in scores]).reshape(-1, 2)
        numbers = [source.number for batch in self._batches for source in batch]
        given_own, given_other = np.empty(len(numbers)), np.empty(len(numbers))
        given_own[numbers] = means[:, 0]
        given_other[[_partner(number) for number in numbers]] = means[:, 1]
        return ModelOutputs(np.concatenate(scores), (given_own > given_other).astype(np.int64))


def score_all(session: CpuSession, batch: Sequence[PassageTokens], extra: Arrays = MappingProxyType({})) -> Scores:
    """Return the log-probabilities of a batch's claims by a graph with cached keys and values, or one without."""
    texts = [claim for source in batch for claim in source.claims]
    if "past_mask" in session.inputs:
        read = [source.passage[:-1] for source in batch]
        tokens, mask = _pad(read)
        first = {"tokens": tokens[:, None], "past_mask": np.zeros((len(batch), 1), np.int64)}
        nothing = {"rows": np.array([0]), "targets": np.array([-1])}
        grown = session({**first, **nothing, **_empty(session, len(batch)), **extra})
        new = [[source.passage[-1], *claim[:-1]] for source in batch for claim in source.claims]
        tokens, _ = _pad(new)
        width = tokens.shape[1]
        rows = [index * width + np.arange(len(claim)) for index, claim in enumerate(texts)]
        feeds: dict[str, npt.NDArray[Any]] = {"tokens": tokens.reshape(len(batch), -1, width), "past_mask": mask}
        feeds |= {name.replace("present", "past"): grown[name] for name in grown if name != "log_probs"}
    else:
        ids, mask = _pad([source.passage + claim[:-1] for source in batch for claim in source.claims])
        ends = np.arange(len(ids)) * ids.shape[1] + mask.sum(1)
        rows = [end - len(claim) + np.arange(len(claim)) for end, claim in zip(ends, texts, strict=True)]
        feeds = {"input_ids": ids, "attention_mask": mask}
    feeds |= {"rows": np.concatenate(rows), "targets": np.concatenate([np.array(text) for text in texts])}
    log_probs = session({**feeds, **extra})["log_probs"]
    return np.split(log_probs, np.cumsum([len(text) for text in texts])[:-1])


def _sources(tokenizer: Tokenizer, max_tokens: int) -> list[PassageTokens]:
    """Return all texts by the length of their passages; a passage that would fill a small window is cut."""
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def ids(text: str) -> list[int]:
        return list(tokenizer.encode(text, add_special_tokens=False).ids)

    claims = [ids(example.claim)[: max_tokens // 2] for example in EXAMPLES]
    passages = [ids(f"{example.passage}\n")[: max_tokens - max_tokens // 2] for example in EXAMPLES]
    sources = [
        PassageTokens(number, passage, (claims[number], claims[_partner(number)]))
        for number, passage in enumerate(passages)
    ]
    return sorted(sources, key=lambda source: len(source.passage))


def _partner(number: int) -> int:
    return (number + APART) % len(EXAMPLES)


def _pad(rows: Sequence[Sequence[int]]) -> tuple[Ids, Ids]:
    ids = np.zeros((len(rows), max(map(len, rows))), np.int64)
    mask = np.zeros_like(ids)
    for index, row in enumerate(rows):
        ids[index, : len(row)] = row
        mask[index, : len(row)] = 1
    return ids, mask


def _empty(session: CpuSession, sources: int) -> Mapping[str, npt.NDArray[Any]]:
    """Return a past of one masked position."""
    past = {}
    for name in session.inputs:
        if name.startswith("past.key") or name.startswith("past.value"):
            _, heads, _, width = session.shape(name)
            past[name] = np.zeros((sources, heads, 1, width), session.dtype(name))
    return past
