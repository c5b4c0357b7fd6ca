"""The recipe and the loss of the entity retriever.

The loss is the paper's: the causal language model's on the response, plus λ times NCE over the true triple and
negatives, which are the other candidates of the neighbourhood (SANS, Ahrabian et al. 2020), the true entities of the
batch's other mentions, or both. In training the entity chosen before a mention is the true one (teacher forcing).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch

from groundwire.export.roles.retriever import EntityRetriever
from groundwire.export.roles.retriever.model import distmult

from .batches import ENCODER_INPUTS

Negatives = Literal["sans", "batch", "both", "none"]


@dataclass(frozen=True, slots=True)
class RetrieverRecipe:
    """Model sizes and hyper-parameters. The defaults are the embedded bundle's."""

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
    """Most candidates per mention, the true one included; the model reads a text for each."""
    weight: float = 4.0
    """λ: weight of NCE beside the language model's loss. The paper has 0.5 and thousands of steps."""
    words: int = 96
    """Words of a batch, drawn at random, on which the language model's loss is computed; 0 takes all."""
    aligned: int = 640
    """Examples for the initial map from a mention's state to a query (``align_joint``); 0 leaves it out."""
    lr: float = 4e-4
    masked: bool = True
    """False: the ablation "w/o MLM"."""
    memory: Literal["text", "compgcn"] = "text"
    """``compgcn``: the paper's other memory, a table of a graph's entities (``compgcn``)."""
    graph_steps: int = 100
    """Steps of relation prediction that train such a table."""
    all_mentions: bool = False
    """Mask every entity of a response, as the paper does in training, instead of some."""


PAPER = RetrieverRecipe(
    layers=6, causal_layers=6, inner=1536, memory_pooling="max", paths=False, negatives="sans", sans=51, lr=6.25e-5,
    all_mentions=True, words=0, aligned=0, weight=0.5,
)  # fmt: skip
"""The paper's hyper-parameters (with a batch of 16): λ 0.5, 50 negatives of the neighbourhood, three turns."""


@dataclass(frozen=True)
class RetrieverLoss:
    """The loss of a batch."""

    recipe: RetrieverRecipe

    def __call__(self, model: EntityRetriever, batch: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """MLE + λ NCE."""
        language, contrast, _ = self.parts(model, batch)
        return language if self.recipe.negatives == "none" else language + self.recipe.weight * contrast

    def parts(
        self, model: EntityRetriever, batch: Mapping[str, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """The language model's loss, NCE's, and the scores [Q, C] of all candidates, -inf at padding."""
        memory = model.remember(batch["texts"], batch["text_mask"])
        hidden = model.states(*(batch[name] for name in ENCODER_INPUTS))
        pooled = model.pool(hidden, batch["members"])
        row, slot = batch["row"], batch["slot"]
        before = torch.where(
            (batch["previous"] >= 0).unsqueeze(1), memory[batch["previous"].clamp(min=0)], torch.zeros_like(memory[:1])
        )
        previous = torch.zeros_like(pooled).index_put((row, slot), before.to(pooled.dtype))
        states = model.read(batch["causal_ids"], batch["slots"], torch.cat([previous, pooled], dim=-1))
        slots = (batch["slots"] > 0).nonzero()
        queries = states[slots[:, 0], slots[:, 1]]

        predicted = batch["targets"] >= 0
        if self.recipe.words and model.training:
            # Every word costs a product with the whole vocabulary.
            order = torch.rand(predicted.shape, device=predicted.device).masked_fill(~predicted, -1.0)
            threshold = order.flatten().topk(min(self.recipe.words, int(predicted.sum()))).values[-1]
            predicted = predicted & (order >= threshold)
        language = torch.nn.functional.cross_entropy(
            model.logits(states[predicted]).float(), batch["targets"][predicted]
        )

        is_candidate = batch["candidates"] >= 0
        anchors, entities = (memory[batch[name].clamp(min=0)] for name in ("anchors", "candidates"))
        scores = distmult(anchors, queries.unsqueeze(1), entities).float().masked_fill(~is_candidate, -math.inf)
        is_right = batch["right"].bool()
        all_scores, is_positive = scores, is_right
        if self.recipe.negatives in ("batch", "both"):
            gold = batch["gold"].unsqueeze(1)
            anchor = anchors.gather(1, gold.unsqueeze(-1).expand(-1, 1, anchors.shape[-1]))
            truth = batch["candidates"].gather(1, gold).squeeze(1)
            others = distmult(anchor, queries.unsqueeze(1), memory[truth].unsqueeze(0)).float()
            # The true entity of several mentions is a negative of none of them; nor is a mention's own true entity.
            same = truth.unsqueeze(0) == truth.unsqueeze(1)
            candidate = (truth.reshape(1, -1, 1) == batch["candidates"].unsqueeze(1)).any(-1)
            others = others.masked_fill(same | candidate, -math.inf)
            own_scores = scores if self.recipe.negatives == "both" else scores.masked_fill(~is_right, -math.inf)
            all_scores = torch.cat([own_scores, others], dim=1)
            is_positive = torch.cat([is_right, torch.zeros_like(others, dtype=torch.bool)], dim=1)
        contrast = (all_scores.logsumexp(1) - all_scores.masked_fill(~is_positive, -math.inf).logsumexp(1)).mean()
        return language, contrast, scores
