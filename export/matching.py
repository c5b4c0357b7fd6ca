"""BERT that is told which pieces of a text pair stand in the other text too.

A reader that was given such a feature finds answers better (Chen et al. 2017, section 3.2: exact match); a small
judge of faithfulness needs it more, since six layers learn slowly to look one text up in the other. A piece has one of
three levels: it is nowhere in the other text, it is there, or it is there beside the same neighbour. Segment and level
together choose one of six token-type embeddings, so the weights are those of an ordinary BERT, and the graph takes an
ordinary BERT's inputs: what matches is worked out inside.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForSequenceClassification,
    BertModel,
)

LEVELS = 3


class ExactMatchBertConfig(BertConfig):  # type: ignore[misc]
    """A BERT configuration with a token type for every segment and level."""

    model_type = "exact-match-bert"
    like = "bert"
    """The family whose inputs and outputs a graph of it has."""

    def __init__(self, type_vocab_size: int = 2 * LEVELS, sep_token_id: int = 102, **others: Any) -> None:
        """``sep_token_id`` is the piece that ends both texts and is never said to match."""
        if sep_token_id is None:
            raise ValueError("A judge needs the id of the piece that ends a text; give sep_token_id.")
        super().__init__(type_vocab_size=type_vocab_size, sep_token_id=sep_token_id, **others)


class ExactMatchBertModel(BertModel):  # type: ignore[misc]
    """A BERT encoder whose token types are told by segment and match."""

    config_class = ExactMatchBertConfig

    @classmethod
    def taught(cls, bert: BertModel, separator: int) -> ExactMatchBertModel:
        """The encoder that says what ``bert`` says, whatever matches: its segments' embeddings at every level.

        ``separator`` is the id of the piece that ends a text. What is such an encoder already is given back.
        """
        if isinstance(bert, cls):
            return bert
        settings = bert.config.to_dict() | {"type_vocab_size": 2 * LEVELS, "sep_token_id": separator}
        del settings["model_type"]
        model = cls(ExactMatchBertConfig.from_dict(settings))
        state = bert.state_dict()
        name = "embeddings.token_type_embeddings.weight"
        state[name] = state[name].repeat_interleave(LEVELS, dim=0)
        model.load_state_dict(state)
        return model

    def forward(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        token_type_ids: torch.Tensor,
        **others: Any,
    ) -> Any:
        """As ``BertModel``; ids, mask and segments (0 or 1) are int64 [B, T]."""
        kinds = types(input_ids, attention_mask, token_type_ids, self.config.sep_token_id)
        return super().forward(input_ids, attention_mask, kinds, **others)


class ExactMatchBertForSequenceClassification(BertForSequenceClassification):  # type: ignore[misc]
    """A classifier on that encoder."""

    config_class = ExactMatchBertConfig

    def __init__(self, config: ExactMatchBertConfig) -> None:
        super().__init__(config)
        self.bert = ExactMatchBertModel(config)
        self.post_init()


def types(ids: torch.Tensor, mask: torch.Tensor, segments: torch.Tensor, separator: int) -> torch.Tensor:
    """The token type of every piece, int64 [B, T]: three times its segment plus its level."""
    telling = ((mask == 1) & (ids != separator)).to(torch.int32)
    across = (ids[:, :, None] == ids[:, None, :]) & (segments[:, :, None] != segments[:, None, :])
    same = across.to(torch.int32) * telling[:, :, None] * telling[:, None, :]
    # [b, i, j]: pieces i and i + 1 stand beside one another at j and j + 1 too. Nothing follows the last one.
    following = torch.nn.functional.pad(same, (0, 1, 0, 1))[:, 1:, 1:]
    along = (same * following).amax(2)
    behind = torch.nn.functional.pad(along, (1, 0))[:, :-1]
    beside = torch.maximum(along, behind)
    return segments * LEVELS + (same.amax(2) + beside).to(segments.dtype)


def register() -> None:
    """Let transformers' Auto classes load such checkpoints; a second call changes nothing."""
    AutoConfig.register(ExactMatchBertConfig.model_type, ExactMatchBertConfig, exist_ok=True)
    AutoModel.register(ExactMatchBertConfig, ExactMatchBertModel, exist_ok=True)
    AutoModelForSequenceClassification.register(
        ExactMatchBertConfig, ExactMatchBertForSequenceClassification, exist_ok=True
    )
