"""Tiny entity retrievers with random weights, and a reference implementation that scores candidates one at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig

from groundwire.export.roles.retriever import EntityRetriever, RetrieverConfig
from groundwire.runtime.calls import Candidate, Retrieve
from groundwire.runtime.triples import Triple, linearise, sentence

from .models import word_pieces

FACTS = (
    Triple("Alien", "directed by", "Ridley Scott"),
    Triple("Alien", "starring", "Sigourney Weaver"),
    Triple("Alien", "/film/film/release_year", "1979"),
    Triple("Aliens", "directed by", "James Cameron"),
)


def save(folder: Path, seed: int = 0, **changes: Any) -> Path:
    """A checkpoint of an entity retriever; ``changes`` go into its configuration."""
    tokens = word_pieces()
    bert = BertConfig(
        vocab_size=len(tokens),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=64,
        max_position_embeddings=256,
    )
    options: dict[str, Any] = {"encoder": bert.to_dict(), "layers": 2, "inner": 48, "max_tokens": 240, **changes}
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = EntityRetriever(RetrieverConfig(**options)).eval()
        for parameter in model.parameters():
            # Norms and biases too, so that one that is left out or swapped is seen.
            parameter.data += 0.2 * torch.randn_like(parameter)
    model.save(folder)
    tokens.save_pretrained(folder)
    return folder


def call(
    response: str = "Alien was directed by Tom Hanks and stars Bill Murray.",
    names: tuple[str, ...] = ("Tom Hanks", "Bill Murray"),
    *,
    history: tuple[str, ...] = ("I love films.", "Who made Alien?"),
    triples: tuple[Triple, ...] = FACTS,
    top: int = 10,
) -> Retrieve:
    """A call that retrieves the entities at ``names`` among the neighbours of both films."""
    mentions = tuple((response.index(name), response.index(name) + len(name)) for name in names)
    candidates = tuple(Candidate(fact.subject, fact.object) for fact in FACTS)
    return Retrieve(history, triples, response, mentions, (candidates,) * len(names), top)


@torch.inference_mode()
def score_candidates(folder: Path, retrieve: Retrieve) -> list[list[float]]:
    """The scores of every candidate of every mention, one text at a time and without padding.

    The texts are joined by hand here: facts and history joined by " | ", then the response; a mention is as many
    masks as it has word pieces, and one in what the causal model reads, which has no facts.
    """
    model, tokens = EntityRetriever.load(folder), word_pieces()

    def ids(text: str) -> list[int]:
        return list(tokens(text, add_special_tokens=False)["input_ids"])

    start, end, mask = tokens.cls_token_id, tokens.sep_token_id, tokens.mask_token_id
    history = " | ".join(retrieve.history[-model.config.turns :])
    facts = " | ".join(sentence(fact) for fact in retrieve.triples)
    full, short = [start, *ids(facts + " | " + history), end], [start, *ids(history), end]
    kinds = [0] * len(full)
    mentions, slots, at = [], [], 0
    for a, b in retrieve.mentions:
        before, length = ids(retrieve.response[at:a]), len(ids(retrieve.response[a:b]))
        full, short = full + before, short + before
        mentions.append(list(range(len(full), len(full) + length)))
        slots.append(len(short))
        full, short, at = full + [mask] * length, [*short, mask], b
    rest = [*ids(retrieve.response[at:]), end]
    full, short = full + rest, short + rest
    kinds += [1] * (len(full) - len(kinds))

    def row(values: list[int]) -> torch.Tensor:
        return torch.tensor([values])

    hidden = model.states(row(full), torch.ones(1, len(full), dtype=torch.int64), row(kinds))[0]

    def embed(text: str) -> torch.Tensor:
        text_ids = ids(text)
        return model.remember(row(text_ids), torch.ones(1, len(text_ids), dtype=torch.int64))[0]

    all_scores: list[list[float]] = []
    pairs: list[torch.Tensor] = []
    previous = torch.zeros(model.width)
    for number, pieces in enumerate(mentions):
        states = hidden[pieces].mean(0) if model.config.pooling == "mean" else hidden[pieces].max(0).values
        pairs.append(torch.cat([previous, states]))
        marks = [slots.index(i) + 1 if i in slots[: number + 1] else 0 for i in range(len(short))]
        query = model.read(row(short), row(marks), torch.stack(pairs)[None])[0, slots[number]]
        vectors, scores = [], []
        for candidate in retrieve.candidates[number]:
            joining = [f for f in retrieve.triples if {f.subject, f.object} == {candidate.anchor, candidate.entity}]
            path = " | " + linearise(joining) if joining and model.config.paths else ""
            vectors.append(embed(candidate.entity + path))
            scores.append(float((embed(candidate.anchor) * query * vectors[-1]).sum()) / model.width**0.5)
        all_scores.append(scores)
        previous = vectors[scores.index(max(scores))]
    return all_scores
