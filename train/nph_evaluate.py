"""What an entity retriever finds: the figures of Neural Path Hunter's table 4, on corrupted responses.

A response that was right is corrupted as in the paper, what is wrong is masked, and the entity that stood there has to
be found among its neighbours. Beside the model stand what chance, the similarity of texts and the type of the wrong
entity would find.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import BertModel

from groundwire.export.retriever import EntityRetriever, record, retriever_of
from groundwire.runtime.bundle import Bundle, RetrieverRole
from groundwire.runtime.calls import Retrieve
from groundwire.runtime.cloze import joins, remembered
from groundwire.runtime.errors import GroundwireError
from groundwire.runtime.retriever import Retriever
from groundwire.runtime.session import Profile

from . import trunk
from .nph_batches import Batcher, collated
from .nph_data import Corruptor, Kind
from .nph_examples import Example, Examples, answerable
from .nph_graph import TripleIndex
from .nph_loss import Loss, Recipe
from .nph_templates import Templates

MIX: Mapping[Kind, float] = {"extrinsic": 0.6, "swapped": 0.4}
"""The paper's corruptions."""
HITS = (1, 3, 10)
CANDIDATES = 30
"""Of a mention in measurements, at most: the paper's neighbourhoods have some dozens."""
Scorer = Callable[[Example, int], Sequence[float]]
"""Of an example and the number of one of its mentions: a score per candidate."""


class Case(NamedTuple):
    """A corrupted response to repair."""

    example: Example
    kind: str


def cases(source: Templates, count: int, *, all_mentions: bool = False, seed: int = 7) -> list[Case]:
    """``count`` corrupted responses whose wrong entities are masked; with ``all_mentions`` every one (w/o critic)."""
    corruptor, make = Corruptor(source.index), Examples(source.index, sans=CANDIDATES)
    rng = random.Random(seed)
    found: list[Case] = []
    while len(found) < count:
        dialogue = source.draw(rng)
        made = corruptor.draw(dialogue, rng, MIX)
        if made.kind not in MIX:
            continue
        pairs = [
            (before, made.dialogue.response[after.start : after.end])
            for before, after in zip(dialogue.mentions, made.dialogue.mentions, strict=True)
            if before in answerable(dialogue) and (all_mentions or (after.start, after.end) in made.flagged)
        ]
        if pairs:
            chosen, names = zip(*pairs, strict=True)
            found.append(Case(make.masking(dialogue, chosen, names, rng), made.kind))
    return found


def measure(
    model: EntityRetriever, source: Templates, count: int, recipe: Recipe, seed: int = 7, *, compared: bool = False
) -> dict[str, Any]:
    """The model on ``count`` corrupted responses drawn from ``source``.

    ``compared`` adds what needs no training, and what is found when every entity is masked (w/o critic).
    """
    tokenizer = trunk.content()
    retriever = retriever_of(model, record(model, tokenizer), tokenizer)
    drawn = cases(source, count, seed=seed)
    examples = [case.example for case in drawn]
    report = {"ppl": round(perplexity(model, examples, recipe), 2), **found_by(retriever, drawn)}
    if compared:
        report |= alternatives(retriever, source, count, seed)
    return report


def measure_bundle(bundle: Path, data: Path, count: int, seed: int = 7) -> dict[str, Any]:
    """A bundle's retriever on ``count`` corrupted responses of FB15k-237's test triples, beside its alternatives."""
    opened = Bundle.open(bundle)
    role = opened.manifest.roles.get("retriever")
    if not isinstance(role, RetrieverRole):
        raise ValueError(f"{bundle} has no retriever; it has {', '.join(opened.manifest.roles)}.")
    retriever = Retriever.load(opened, role, Profile.of("cpu", 1))
    source = Templates.read(data, "test")
    return found_by(retriever, cases(source, count, seed=seed)) | alternatives(retriever, source, count, seed)


def found_by(retriever: Retriever, drawn: Sequence[Case]) -> dict[str, Any]:
    """What a retriever finds, in all and by the kind of corruption."""
    found = ranks(retriever, [case.example for case in drawn])
    kinds = [case.kind for case in drawn for _ in case.example.truth]
    sizes = [len({one.entity for one in own}) for case in drawn for own in case.example.call.candidates]
    return {
        "mentions": len(found),
        "candidates": round(float(np.mean(sizes)), 1),
        "retriever": figures(found),
        "by_kind": {
            kind: figures([rank for rank, own in zip(found, kinds, strict=True) if own == kind])
            for kind in sorted(set(kinds))
        },
    }


def alternatives(retriever: Retriever, source: Templates, count: int, seed: int) -> dict[str, Any]:
    """The same responses without a critic, and by scores that need no training."""
    examples = [case.example for case in cases(source, count, seed=seed)]
    everything = [case.example for case in cases(source, count, all_mentions=True, seed=seed)]
    return {
        "without_critic": figures(ranks(retriever, everything)),
        "baselines": {
            name: figures(scored(examples, scorer)) for name, scorer in baselines(source.index, seed).items()
        },
    }


def ranks(retriever: Retriever, examples: Sequence[Example]) -> list[int]:
    """The rank of the true entity among a mention's different entities, 1 the best, mention by mention."""
    calls = [_complete(example.call) for example in examples]
    out: list[int] = []
    for example, found in zip(examples, retriever.run(calls, 1), strict=True):
        if isinstance(found, GroundwireError):
            raise found
        for truth, retrieved in zip(example.truth, found, strict=True):
            out.append(list(dict.fromkeys(one.entity for one in retrieved)).index(truth) + 1)
    return out


def scored(examples: Sequence[Example], scorer: Scorer) -> list[int]:
    """As ``ranks``, by the scores of a function."""
    out: list[int] = []
    for example in examples:
        for number, (truth, own) in enumerate(zip(example.truth, example.call.candidates, strict=True)):
            scores = scorer(example, number)
            order = sorted(range(len(own)), key=lambda at: -scores[at])
            out.append(list(dict.fromkeys(own[at].entity for at in order)).index(truth) + 1)
    return out


def figures(found: Sequence[int]) -> dict[str, float]:
    """Hits@k, mean rank and mean reciprocal rank."""
    table = np.array(found)
    return {
        **{f"hits@{k}": round(float((table <= k).mean()), 4) for k in HITS},
        "mr": round(float(table.mean()), 3),
        "mrr": round(float((1 / table).mean()), 4),
    }


@torch.inference_mode()
def perplexity(model: EntityRetriever, examples: Sequence[Example], recipe: Recipe) -> float:
    """Of the causal language model on the responses but their masked entities, given the true ones before."""
    total, count, loss, batcher = 0.0, 0, Loss(recipe), Batcher(model.config)
    for at in range(0, len(examples), 16):
        batch = collated(batcher, examples[at : at + 16])
        words = int((batch["targets"] >= 0).sum())
        total += float(loss.parts(model, batch)[0]) * words
        count += words
    return math.exp(total / count)


def baselines(index: TripleIndex, seed: int) -> dict[str, Scorer]:
    """Scorers that need no training."""
    rng = random.Random(seed)
    similarity = Similarity()
    types = Types(index)
    return {
        "random": lambda example, number: [rng.random() for _ in example.call.candidates[number]],
        "text_similarity": lambda example, number: similarity(example, number, paths=True),
        "name_similarity": lambda example, number: similarity(example, number, paths=False),
        "type": types,
    }


class Types:
    """How many roles in the graph a candidate shares with the entity that stands in its place, rare ones most."""

    def __init__(self, index: TripleIndex) -> None:
        self._index = index
        entities = {end for triple in index.triples for end in (triple.subject, triple.object)}
        self._players: Counter[tuple[bool, str]] = Counter(role for entity in entities for role in self._roles(entity))

    def __call__(self, example: Example, number: int) -> list[float]:
        """A score per candidate; without a role in common it is 0."""
        start, end = example.call.mentions[number]
        wrong = self._roles(example.call.response[start:end])
        return [
            sum(1 / math.log(2 + self._players[role]) for role in wrong & self._roles(one.entity))
            for one in example.call.candidates[number]
        ]

    def _roles(self, entity: str) -> frozenset[tuple[bool, str]]:
        return frozenset((triple.subject == entity, triple.predicate) for triple in self._index.about(entity))


class Similarity:
    """Cosine of all-MiniLM-L6-v2's vectors: last turn and response without the mention, and a candidate's text."""

    def __init__(self) -> None:
        self._model = BertModel.from_pretrained(trunk.PATH, add_pooling_layer=False).eval()
        self._tokens = trunk.tokenizer()

    def __call__(self, example: Example, number: int, *, paths: bool) -> list[float]:
        """A score per candidate."""
        call = example.call
        start, end = call.mentions[number]
        text = " ".join((*call.history[-1:], call.response[:start] + call.response[end:]))
        joined = joins(call.triples)
        vectors = self._vectors([text, *(remembered(one, joined, paths=paths) for one in call.candidates[number])])
        scores: list[float] = (vectors[1:] @ vectors[0]).tolist()
        return scores

    @torch.inference_mode()
    def _vectors(self, texts: list[str]) -> torch.Tensor:
        batch = self._tokens(texts, padding=True, truncation=True, max_length=128, return_tensors="pt")
        mask = batch["attention_mask"].unsqueeze(-1)
        states = self._model(**batch).last_hidden_state
        return torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)


def _complete(call: Retrieve) -> Retrieve:
    return Retrieve(
        call.history, call.triples, call.response, call.mentions, call.candidates, max(map(len, call.candidates))
    )
