"""Measures an entity retriever: the figures of Neural Path Hunter's table 4, on corrupted and on gold responses.

A gold response is corrupted as in the paper, the wrong mentions are masked, and the true entity has to be found among
its neighbours. Or the gold response is kept, and every entity that a triple holds is masked, as in that table.
Baselines are chance, the similarity of texts and the type of the wrong entity.
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
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import RetrieverRole
from groundwire.runtime.calls import Retrieve
from groundwire.runtime.errors import GroundwireError, InvalidRequest
from groundwire.runtime.models.masked_input import build_memory_text, group_triples
from groundwire.runtime.models.retriever import Retriever
from groundwire.runtime.ort.session import DeviceProfile

from ..common import backbone
from ..common.triple_index import TripleIndex
from .batches import DialogueSource, RetrieverBatcher, collate_examples
from .corruption import Corruption, Corruptor
from .examples import RetrievalExample, RetrievalExamples, select_answerable
from .loss import RetrieverLoss, RetrieverRecipe

CORRUPTION = Corruption({"extrinsic": 0.6, "swapped": 0.4}, every=False)
"""The paper's proportions; mostly one name of a response is wrong."""
GOLD = "gold"
"""The kind of a response that was not corrupted."""
HITS = (1, 3, 10)
CANDIDATES = 30
"""Most candidates of a mention in measurements: the paper's neighbourhoods have some dozens."""
CandidateScorer = Callable[[RetrievalExample, int], Sequence[float]]
"""Scores the candidates of one mention, given an example and the mention's number."""


class RetrievalCase(NamedTuple):
    """A response whose masked entities have to be found."""

    example: RetrievalExample
    kind: str
    """The kind of corruption, or ``gold``."""


def make_corrupted_cases(
    source: DialogueSource, count: int, *, all_mentions: bool = False, seed: int = 7
) -> list[RetrievalCase]:
    """``count`` corrupted responses, or as many as ``source`` has, with the wrong entities masked.

    ``all_mentions`` masks every entity, as the paper does without a critic ("w/o critic").
    """
    corruptor, maker = Corruptor(source.index), RetrievalExamples(source.index, sans=CANDIDATES)
    rng = random.Random(seed)
    cases: list[RetrievalCase] = []
    for dialogue in source.stream(rng):
        if len(cases) == count:
            break
        corrupted = corruptor.draw(dialogue, rng, CORRUPTION)
        if corrupted.kind not in CORRUPTION.mix:
            continue
        pairs = [
            (before, corrupted.dialogue.response[after.start : after.end])
            for before, after in zip(dialogue.mentions, corrupted.dialogue.mentions, strict=True)
            if before in select_answerable(dialogue) and (all_mentions or (after.start, after.end) in corrupted.flagged)
        ]
        if pairs:
            chosen, names = zip(*pairs, strict=True)
            cases.append(RetrievalCase(maker.mask_mentions(dialogue, chosen, names, rng), corrupted.kind))
    return cases


def make_gold_cases(source: DialogueSource, count: int, seed: int = 7) -> list[RetrievalCase]:
    """``count`` gold responses, or as many as there are, with every entity masked that a triple holds.

    A mention has as many masks as another name has tokens, so that their number reveals nothing.
    """
    maker, rng = RetrievalExamples(source.index, sans=CANDIDATES, all_mentions=True), random.Random(seed)
    examples = (maker.make(dialogue, rng) for dialogue in source.stream(rng))
    return [
        RetrievalCase(example, GOLD)
        for example in islice((candidate for candidate in examples if candidate is not None), count)
    ]


def measure_retriever(
    model: EntityRetriever, source: DialogueSource, count: int, recipe: RetrieverRecipe, seed: int = 7
) -> dict[str, Any]:
    """Measure a model on ``count`` corrupted responses drawn from ``source``."""
    cases = make_corrupted_cases(source, count, seed=seed)
    return {
        "ppl": compute_perplexity(model, [case.example for case in cases], recipe),
        **report_retrieval(wrap_retriever_model(model), cases),
    }


def evaluate_retriever(
    path: Path, sources: Mapping[str, DialogueSource], count: int, seed: int = 7, *, compared: bool = True
) -> dict[str, Any]:
    """Measure the retriever of a bundle or checkpoint on up to ``count`` corrupted and gold responses of each source.

    ``compared`` adds the baselines. The perplexity of the language model is measured for checkpoints only.
    BundleError when ``path`` is neither; ValueError for a bundle without a retriever.
    """
    model = EntityRetriever.load(path) if (path / CONFIG).is_file() else None
    retriever = load_retriever(path) if model is None else wrap_retriever_model(model)
    similarity = SimilarityScorer() if compared else None
    report: dict[str, Any] = {}
    for name, source in sources.items():
        all_masked = make_corrupted_cases(source, count, all_mentions=True, seed=seed)
        cases_by_kind = {
            "corrupted": make_corrupted_cases(source, count, seed=seed),
            GOLD: make_gold_cases(source, count, seed),
        }
        report[name] = {
            kind: {
                **(
                    {}
                    if model is None
                    else {"ppl": compute_perplexity(model, [case.example for case in cases], RetrieverRecipe())}
                ),
                **report_retrieval(retriever, cases),
                **(
                    {}
                    if similarity is None
                    else {"baselines": measure_baselines(cases, source.index, similarity, seed)}
                ),
            }
            for kind, cases in cases_by_kind.items()
        }
        report[name]["corrupted"]["without_critic"] = score_ranks(
            rank_by_retriever(retriever, [case.example for case in all_masked])
        )
    return report


def load_retriever(path: Path) -> Retriever:
    """Load the role ``retriever`` of a bundle; ValueError when it has none."""
    opened = Bundle.open(path)
    role = opened.manifest.roles.get("retriever")
    if not isinstance(role, RetrieverRole):
        raise ValueError(f"{path} has no retriever; it has {', '.join(opened.manifest.roles)}.")
    return Retriever.load(opened, role, DeviceProfile.of("cpu", 1))


def wrap_retriever_model(model: EntityRetriever) -> Retriever:
    """The runtime's retriever around a PyTorch model."""
    tokenizer = backbone.read_tokenizer_json()
    return retriever_of(model, record(model, tokenizer), tokenizer)


def report_retrieval(retriever: Retriever, cases: Sequence[RetrievalCase]) -> dict[str, Any]:
    """Figures of a retriever, in all and by the kind of corruption; InvalidRequest without cases."""
    if not cases:
        raise InvalidRequest(
            "None of the responses has an entity to find; give dialogues whose responses state triples."
        )
    ranks = rank_by_retriever(retriever, [case.example for case in cases])
    kinds = [case.kind for case in cases for _ in case.example.truth]
    sizes = [
        len({candidate.entity for candidate in candidates})
        for case in cases
        for candidates in case.example.call.candidates
    ]
    report = {
        "responses": len(cases),
        "mentions": len(ranks),
        "candidates": round(float(np.mean(sizes)), 1),
        "retriever": score_ranks(ranks),
    }
    if set(kinds) != {GOLD}:
        report["by_kind"] = {
            kind: score_ranks([rank for rank, case_kind in zip(ranks, kinds, strict=True) if case_kind == kind])
            for kind in sorted(set(kinds))
        }
    return report


def measure_baselines(
    cases: Sequence[RetrievalCase], index: TripleIndex, similarity: SimilarityScorer, seed: int
) -> dict[str, Any]:
    """Figures of scores that need no training; ``type``, of the wrong entity, is for corrupted responses only."""
    rng, all_gold = random.Random(seed), all(case.kind == GOLD for case in cases)
    scorers: dict[str, CandidateScorer] = {
        "random": lambda example, number: [rng.random() for _ in example.call.candidates[number]],
        "text_similarity": lambda example, number: similarity(example, number, paths=True, read_others=not all_gold),
        "name_similarity": lambda example, number: similarity(example, number, paths=False, read_others=not all_gold),
    }
    if not all_gold:
        scorers["type"] = TypeScorer(index)
    examples = [case.example for case in cases]
    return {name: score_ranks(rank_by_scores(examples, scorer)) for name, scorer in scorers.items()}


def rank_by_retriever(retriever: Retriever, examples: Sequence[RetrievalExample]) -> list[int]:
    """The rank of each mention's true entity among its distinct candidate entities; 1 is the best."""
    calls = [_request_all_candidates(example.call) for example in examples]
    ranks: list[int] = []
    for example, outcome in zip(examples, retriever.run(calls, 1), strict=True):
        if isinstance(outcome, GroundwireError):
            raise outcome
        for truth, retrieved in zip(example.truth, outcome, strict=True):
            ranks.append(list(dict.fromkeys(candidate.entity for candidate in retrieved)).index(truth) + 1)
    return ranks


def rank_by_scores(examples: Sequence[RetrievalExample], scorer: CandidateScorer) -> list[int]:
    """As ``rank_by_retriever``, but by the scores of ``scorer``."""
    ranks: list[int] = []
    for example in examples:
        for number, (truth, candidates) in enumerate(zip(example.truth, example.call.candidates, strict=True)):
            scores = scorer(example, number)
            order = sorted(range(len(candidates)), key=lambda index: -scores[index])
            ranks.append(list(dict.fromkeys(candidates[index].entity for index in order)).index(truth) + 1)
    return ranks


def score_ranks(ranks: Sequence[int]) -> dict[str, float]:
    """Hits@k, mean rank and mean reciprocal rank."""
    table = np.array(ranks)
    return {
        **{f"hits@{k}": round(float((table <= k).mean()), 4) for k in HITS},
        "mr": round(float(table.mean()), 3),
        "mrr": round(float((1 / table).mean()), 4),
    }


@torch.inference_mode()
def compute_perplexity(model: EntityRetriever, examples: Sequence[RetrievalExample], recipe: RetrieverRecipe) -> float:
    """Perplexity of the causal language model on the responses without their masked entities, given the true ones."""
    total, count, loss, batcher = 0.0, 0, RetrieverLoss(recipe), RetrieverBatcher(model.config)
    for start in range(0, len(examples), 16):
        batch = collate_examples(batcher, examples[start : start + 16])
        words = int((batch["targets"] >= 0).sum())
        total += float(loss.parts(model, batch)[0]) * words
        count += words
    return round(math.exp(total / count), 2)


class TypeScorer:
    """Scores a candidate by the roles in the graph that it shares with the wrong entity; rare roles count most."""

    def __init__(self, index: TripleIndex) -> None:
        self._index = index
        entities = {end for triple in index.triples for end in (triple.subject, triple.object)}
        self._players: Counter[tuple[bool, str]] = Counter(role for entity in entities for role in self._roles(entity))

    def __call__(self, example: RetrievalExample, number: int) -> list[float]:
        """A score per candidate; 0 without a common role."""
        start, end = example.call.mentions[number]
        wrong = self._roles(example.call.response[start:end])
        return [
            sum(1 / math.log(2 + self._players[role]) for role in wrong & self._roles(candidate.entity))
            for candidate in example.call.candidates[number]
        ]

    def _roles(self, entity: str) -> frozenset[tuple[bool, str]]:
        return frozenset((triple.subject == entity, triple.predicate) for triple in self._index.triples_of(entity))


class SimilarityScorer:
    """Cosine of all-MiniLM-L6-v2's vectors: last turn and response without the mention, and a candidate's text."""

    def __init__(self) -> None:
        self._model = BertModel.from_pretrained(backbone.PATH, add_pooling_layer=False).eval()
        self._tokens = backbone.load_tokenizer()
        self._known: dict[str, torch.Tensor] = {}

    def __call__(self, example: RetrievalExample, number: int, *, paths: bool, read_others: bool = True) -> list[float]:
        """A score per candidate.

        ``read_others``: whether the names at the other masked mentions are read. In a corrupted response they are part
        of it; in a gold response only their length is meant.
        """
        call = example.call
        response = call.response
        for start, end in reversed(call.mentions[number : number + 1] if read_others else call.mentions):
            response = response[:start] + response[end:]
        joined = group_triples(call.triples)
        query = self._vectors([" ".join((*call.history[-1:], response))])[0]
        texts = [build_memory_text(candidate, joined, paths=paths) for candidate in call.candidates[number]]
        scores: list[float] = (self._vectors(texts) @ query).tolist()
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


def _request_all_candidates(call: Retrieve) -> Retrieve:
    return Retrieve(
        call.history, call.triples, call.response, call.mentions, call.candidates, max(map(len, call.candidates))
    )
