"""What the entity retriever is trained on: a recipe, and its loss.

The loss is the paper's: the causal language model's on the response, plus λ times NCE over the true triple and
negatives, which are the other candidates of the neighbourhood (SANS, Ahrabian et al. 2020), the true entities of the
batch's other mentions, or both. What was chosen before a mention is the truth while it trains (teacher forcing).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from groundwire.export.roles.retriever import EntityRetriever
from groundwire.export.roles.retriever.model import distmult

from .batches import trunk_inputs

Negatives = Literal["sans", "batch", "both", "none"]


@dataclass(frozen=True, slots=True)
class RetrieverRecipe:
    """What is trained, and on what. The defaults are those of the embedded bundle."""

    layers: int = 2
    """Of MiniLM's six, in the masked language model."""
    causal_layers: int = 1
    inner: int = 384
    """Width of the causal model's feed-forward blocks; MiniLM's is 1,536."""
    pooling: Literal["mean", "max"] = "mean"
    memory_pooling: Literal["mean", "max"] = "mean"
    paths: bool = True
    """Remember entities with the triples that join them to their anchors; the paper's memory has their names alone."""
    turns: int = 3
    max_tokens: int = 128
    negatives: Negatives = "both"
    sans: int = 8
    """Candidates per mention at most, the true one included: every one is a text to read."""
    weight: float = 4.0
    """λ: what NCE counts beside the language model's loss. The paper has 0.5 and thousands of steps."""
    words: int = 96
    """Words of a batch that the language model's loss looks at, drawn at random; 0 takes all."""
    aligned: int = 640
    """Examples for the first guess of how a mention's state becomes a query (``align``); 0 leaves it out."""
    lr: float = 4e-4
    masked: bool = True
    """False: the ablation "w/o MLM"."""
    memory: Literal["text", "compgcn"] = "text"
    """``compgcn``: the paper's other memory, a table of a graph's entities (``nph_compgcn``)."""
    graph_steps: int = 100
    """Steps of relation prediction that such a table is made with."""
    all_mentions: bool = False
    """Mask every entity of a response, as the paper does in training, instead of some."""


PAPER = RetrieverRecipe(
    layers=6, causal_layers=6, inner=1536, memory_pooling="max", paths=False, negatives="sans", sans=51, lr=6.25e-5,
    all_mentions=True, words=0, aligned=0, weight=0.5,
)  # fmt: skip
"""The paper's hyper-parameters (with a batch of 16): λ 0.5, 50 negatives of the neighbourhood, three turns."""


@dataclass(frozen=True)
class RetrieverLoss:
    """The loss of a batch by its parts."""

    recipe: RetrieverRecipe

    def __call__(self, model: EntityRetriever, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """MLE + λ NCE."""
        language, contrast, _ = self.parts(model, batch)
        return language if self.recipe.negatives == "none" else language + self.recipe.weight * contrast

    def memory(self, model: EntityRetriever, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """The vectors [M, D] of a batch's texts."""
        return model.remember(batch["texts"], batch["text_mask"])

    def parts(
        self, model: EntityRetriever, batch: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The language model's loss, NCE's, and the scores [Q, C] of all candidates, -inf at padding."""
        memory = self.memory(model, batch)
        hidden = model.states(*(batch[name] for name in trunk_inputs()))
        pooled = model.pool(hidden, batch["members"])
        row, slot = batch["row"], batch["place"]
        before = torch.where(
            (batch["previous"] >= 0).unsqueeze(1), memory[batch["previous"].clamp(min=0)], torch.zeros_like(memory[:1])
        )
        previous = torch.zeros_like(pooled).index_put((row, slot), before.to(pooled.dtype))
        states = model.read(batch["causal_ids"], batch["slots"], torch.cat([previous, pooled], dim=-1))
        at = (batch["slots"] > 0).nonzero()
        queries = states[at[:, 0], at[:, 1]]

        wanted = batch["targets"] >= 0
        if self.recipe.words and model.training:
            # Every word of a batch is a product with the whole vocabulary.
            order = torch.rand(wanted.shape, device=wanted.device).masked_fill(~wanted, -1.0)
            least = order.flatten().topk(min(self.recipe.words, int(wanted.sum()))).values[-1]
            wanted = wanted & (order >= least)
        language = torch.nn.functional.cross_entropy(model.logits(states[wanted]).float(), batch["targets"][wanted])

        real = batch["candidates"] >= 0
        anchors, entities = (memory[batch[name].clamp(min=0)] for name in ("anchors", "candidates"))
        scores = distmult(anchors, queries.unsqueeze(1), entities).float().masked_fill(~real, -math.inf)
        right = batch["right"].bool()
        every, positive = scores, right
        if self.recipe.negatives in ("batch", "both"):
            gold = batch["gold"].unsqueeze(1)
            anchor = anchors.gather(1, gold.unsqueeze(-1).expand(-1, 1, anchors.shape[-1]))
            truth = batch["candidates"].gather(1, gold).squeeze(1)
            others = distmult(anchor, queries.unsqueeze(1), memory[truth].unsqueeze(0)).float()
            # An entity that is true of several mentions is no negative of any; nor is a mention's own.
            same = truth.unsqueeze(0) == truth.unsqueeze(1)
            candidate = (truth.reshape(1, -1, 1) == batch["candidates"].unsqueeze(1)).any(-1)
            others = others.masked_fill(same | candidate, -math.inf)
            kept = scores if self.recipe.negatives == "both" else scores.masked_fill(~right, -math.inf)
            every = torch.cat([kept, others], dim=1)
            positive = torch.cat([right, torch.zeros_like(others, dtype=torch.bool)], dim=1)
        contrast = (every.logsumexp(1) - every.masked_fill(~positive, -math.inf).logsumexp(1)).mean()
        return language, contrast, scores
