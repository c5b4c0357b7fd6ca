"""What an entity retriever finds: the figures of Neural Path Hunter's table 4, on corrupted and on right responses.

A response that was right is corrupted as in the paper, what is wrong is masked, and the entity that stood there has to
be found among its neighbours. Or it stays as it is, a gold response, and every entity that a triple stands behind is
masked, as in that table. Beside the model stand what chance, the similarity of texts and the type of the wrong entity
would find.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from transformers import BertModel

from groundwire.export.roles.retriever import EntityRetriever, record, retriever_of
from groundwire.export.roles.retriever.model import CONFIG
from groundwire.runtime.bundle import Bundle, RetrieverRole
from groundwire.runtime.calls import Retrieve
from groundwire.runtime.errors import GroundwireError, InvalidRequest
from groundwire.runtime.models.masked_input import build_memory_text, group_triples
from groundwire.runtime.models.retriever import Retriever
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.train.common import backbone

from .batches import Batcher, Source, collated
from .corruption import Corruptor, Kind
from .examples import Example, Examples, answerable
from .loss import Loss, Recipe
from .triple_index import TripleIndex

MIX: Mapping[Kind, float] = {"extrinsic": 0.6, "swapped": 0.4}
"""The paper's corruptions."""
GOLD = "gold"
"""The kind of a response that was not corrupted."""
HITS = (1, 3, 10)
CANDIDATES = 30
"""Of a mention in measurements, at most: the paper's neighbourhoods have some dozens."""
Scorer = Callable[[Example, int], Sequence[float]]
"""Of an example and the number of one of its mentions: a score per candidate."""


class Case(NamedTuple):
    """A response whose masked entities have to be found."""

    example: Example
    kind: str
    """How it was corrupted, or ``gold``."""


def cases(source: Source, count: int, *, all_mentions: bool = False, seed: int = 7) -> list[Case]:
    """Corrupted responses whose wrong entities are masked; with ``all_mentions`` every one (w/o critic).

    ``count``, or as many as ``source`` has.
    """
    corruptor, make = Corruptor(source.index), Examples(source.index, sans=CANDIDATES)
    rng = random.Random(seed)
    found: list[Case] = []
    for dialogue in source.stream(rng):
        if len(found) == count:
            break
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


def gold(source: Source, count: int, seed: int = 7) -> list[Case]:
    """Right responses, with every entity masked that a triple stands behind; ``count``, or as many as there are.

    The masks are as many as another name has word pieces, so that their number tells nothing.
    """
    make, rng = Examples(source.index, sans=CANDIDATES, all_mentions=True), random.Random(seed)
    made = (make.make(dialogue, rng) for dialogue in source.stream(rng))
    return [Case(example, GOLD) for example in islice((one for one in made if one is not None), count)]


def measure(model: EntityRetriever, source: Source, count: int, recipe: Recipe, seed: int = 7) -> dict[str, Any]:
    """The model on ``count`` corrupted responses drawn from ``source``."""
    drawn = cases(source, count, seed=seed)
    return {"ppl": perplexity(model, [case.example for case in drawn], recipe), **found_by(in_training(model), drawn)}


def evaluate(
    path: Path, sources: Mapping[str, Source], count: int, seed: int = 7, *, compared: bool = True
) -> dict[str, Any]:
    """The retriever of a bundle or checkpoint on up to ``count`` corrupted and ``count`` gold responses of each source.

    ``compared`` adds what needs no training. A checkpoint's language model has a perplexity, which a bundle has not.
    BundleError when ``path`` is neither; ValueError for a bundle without a retriever.
    """
    model = EntityRetriever.load(path) if (path / CONFIG).is_file() else None
    retriever = of_bundle(path) if model is None else in_training(model)
    similarity = Similarity() if compared else None
    report: dict[str, Any] = {}
    for name, source in sources.items():
        everything = cases(source, count, all_mentions=True, seed=seed)
        drawn = {"corrupted": cases(source, count, seed=seed), GOLD: gold(source, count, seed)}
        report[name] = {
            kind: {
                **({} if model is None else {"ppl": perplexity(model, [case.example for case in own], Recipe())}),
                **found_by(retriever, own),
                **({} if similarity is None else {"baselines": baselines(own, source.index, similarity, seed)}),
            }
            for kind, own in drawn.items()
        }
        report[name]["corrupted"]["without_critic"] = figures(ranks(retriever, [case.example for case in everything]))
    return report


def of_bundle(path: Path) -> Retriever:
    """The role ``retriever`` of a bundle; ValueError when it has none."""
    opened = Bundle.open(path)
    role = opened.manifest.roles.get("retriever")
    if not isinstance(role, RetrieverRole):
        raise ValueError(f"{path} has no retriever; it has {', '.join(opened.manifest.roles)}.")
    return Retriever.load(opened, role, DeviceProfile.of("cpu", 1))


def in_training(model: EntityRetriever) -> Retriever:
    """A model as the runtime's retriever."""
    tokenizer = backbone.content()
    return retriever_of(model, record(model, tokenizer), tokenizer)


def found_by(retriever: Retriever, drawn: Sequence[Case]) -> dict[str, Any]:
    """What a retriever finds, in all and by the kind of corruption; InvalidRequest when there is nothing to find."""
    if not drawn:
        raise InvalidRequest(
            "None of the responses has an entity to find; give dialogues whose responses state triples."
        )
    found = ranks(retriever, [case.example for case in drawn])
    kinds = [case.kind for case in drawn for _ in case.example.truth]
    sizes = [len({one.entity for one in own}) for case in drawn for own in case.example.call.candidates]
    report = {
        "responses": len(drawn),
        "mentions": len(found),
        "candidates": round(float(np.mean(sizes)), 1),
        "retriever": figures(found),
    }
    if set(kinds) != {GOLD}:
        report["by_kind"] = {
            kind: figures([rank for rank, own in zip(found, kinds, strict=True) if own == kind])
            for kind in sorted(set(kinds))
        }
    return report


def baselines(drawn: Sequence[Case], index: TripleIndex, similarity: Similarity, seed: int) -> dict[str, Any]:
    """What scores find that need no training. The type of a wrong entity is for corrupted responses alone."""
    rng, right = random.Random(seed), all(case.kind == GOLD for case in drawn)
    scorers: dict[str, Scorer] = {
        "random": lambda example, number: [rng.random() for _ in example.call.candidates[number]],
        "text_similarity": lambda example, number: similarity(example, number, paths=True, others=not right),
        "name_similarity": lambda example, number: similarity(example, number, paths=False, others=not right),
    }
    if not right:
        scorers["type"] = Types(index)
    examples = [case.example for case in drawn]
    return {name: figures(scored(examples, scorer)) for name, scorer in scorers.items()}


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
    return round(math.exp(total / count), 2)


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
        self._model = BertModel.from_pretrained(backbone.PATH, add_pooling_layer=False).eval()
        self._tokens = backbone.tokenizer()
        self._known: dict[str, torch.Tensor] = {}

    def __call__(self, example: Example, number: int, *, paths: bool, others: bool = True) -> list[float]:
        """A score per candidate.

        ``others``: whether the names in the places of the other masked mentions are read. In a corrupted response they
        are part of it; in a gold one they stand for nothing but their length.
        """
        call = example.call
        response = call.response
        for start, end in reversed(call.mentions[number : number + 1] if others else call.mentions):
            response = response[:start] + response[end:]
        joined = group_triples(call.triples)
        asked = self._vectors([" ".join((*call.history[-1:], response))])[0]
        texts = [build_memory_text(one, joined, paths=paths) for one in call.candidates[number]]
        scores: list[float] = (self._vectors(texts) @ asked).tolist()
        return scores

    @torch.inference_mode()
    def _vectors(self, texts: Sequence[str]) -> torch.Tensor:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            batch = self._tokens(new, padding=True, truncation=True, max_length=128, return_tensors="pt")
            mask = batch["attention_mask"].unsqueeze(-1)
            states = self._model(**batch).last_hidden_state
            vectors = torch.nn.functional.normalize((states * mask).sum(1) / mask.sum(1), dim=-1)
            self._known.update(zip(new, vectors, strict=True))
        return torch.stack([self._known[text] for text in texts])


def _complete(call: Retrieve) -> Retrieve:
    return Retrieve(
        call.history, call.triples, call.response, call.mentions, call.candidates, max(map(len, call.candidates))
    )
