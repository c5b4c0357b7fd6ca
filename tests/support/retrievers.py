"""Tiny entity retrievers with random weights, and the slow, obvious way to run one."""

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
    """A call that asks for the entities at ``names``, among the neighbours of both films."""
    mentions = tuple((response.index(name), response.index(name) + len(name)) for name in names)
    candidates = tuple(Candidate(fact.subject, fact.object) for fact in FACTS)
    return Retrieve(history, triples, response, mentions, (candidates,) * len(names), top)


@torch.inference_mode()
def twin(folder: Path, asked: Retrieve) -> list[list[float]]:
    """The scores of every candidate of every mention, one text at a time and without padding.

    Texts are put together by hand here: facts and history joined by " | ", then the response; a mention is as many
    masks as it has word pieces, and one in what the causal model reads, which has no facts.
    """
    model, tokens = EntityRetriever.load(folder), word_pieces()

    def ids(text: str) -> list[int]:
        return list(tokens(text, add_special_tokens=False)["input_ids"])

    start, end, mask = tokens.cls_token_id, tokens.sep_token_id, tokens.mask_token_id
    history = " | ".join(asked.history[-model.config.turns :])
    facts = " | ".join(sentence(fact) for fact in asked.triples)
    full, short = [start, *ids(facts + " | " + history), end], [start, *ids(history), end]
    kinds = [0] * len(full)
    places, slots, at = [], [], 0
    for a, b in asked.mentions:
        before, pieces = ids(asked.response[at:a]), len(ids(asked.response[a:b]))
        full, short = full + before, short + before
        places.append(list(range(len(full), len(full) + pieces)))
        slots.append(len(short))
        full, short, at = full + [mask] * pieces, [*short, mask], b
    rest = [*ids(asked.response[at:]), end]
    full, short = full + rest, short + rest
    kinds += [1] * (len(full) - len(kinds))

    def row(values: list[int]) -> torch.Tensor:
        return torch.tensor([values])

    hidden = model.states(row(full), torch.ones(1, len(full), dtype=torch.int64), row(kinds))[0]

    def remembered(text: str) -> torch.Tensor:
        own = ids(text)
        return model.remember(row(own), torch.ones(1, len(own), dtype=torch.int64))[0]

    found: list[list[float]] = []
    pairs: list[torch.Tensor] = []
    previous = torch.zeros(model.width)
    for number, own in enumerate(places):
        states = hidden[own].mean(0) if model.config.pooling == "mean" else hidden[own].max(0).values
        pairs.append(torch.cat([previous, states]))
        marks = [slots.index(place) + 1 if place in slots[: number + 1] else 0 for place in range(len(short))]
        query = model.read(row(short), row(marks), torch.stack(pairs)[None])[0, slots[number]]
        vectors, scores = [], []
        for candidate in asked.candidates[number]:
            joining = [f for f in asked.triples if {f.subject, f.object} == {candidate.anchor, candidate.entity}]
            path = " | " + linearise(joining) if joining and model.config.paths else ""
            vectors.append(remembered(candidate.entity + path))
            scores.append(float((remembered(candidate.anchor) * query * vectors[-1]).sum()) / model.width**0.5)
        found.append(scores)
        previous = vectors[scores.index(max(scores))]
    return found
