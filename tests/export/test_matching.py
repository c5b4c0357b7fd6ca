"""Which pieces of a pair match: the tensor arithmetic against a loop, and the start that it has no say in."""

from __future__ import annotations

import random

import torch
from transformers import BertConfig, BertModel

from groundwire.export.matching import LEVELS, ExactMatchBertModel, types

SEPARATOR = 2


def by_loop(ids: list[int], segments: list[int]) -> list[int]:
    """The definition, place by place, for a row without padding."""

    def there(at: int, step: int) -> bool:
        """Whether the piece ``at`` and its neighbour stand beside one another in the other text."""
        if not 0 <= at + step < len(ids):
            return False
        own = (ids[at], ids[at + step])
        return any(
            segments[j] != segments[at] and segments[j + step] != segments[at + step] and (ids[j], ids[j + step]) == own
            for j in range(max(0, -step), min(len(ids), len(ids) - step))
            if SEPARATOR not in own
        )

    found = []
    for at, piece in enumerate(ids):
        seen = piece != SEPARATOR and any(ids[j] == piece and segments[j] != segments[at] for j in range(len(ids)))
        found.append(segments[at] * LEVELS + seen + (seen and (there(at, 1) or there(at, -1))))
    return found


def test_types_are_those_of_a_loop() -> None:
    rng = random.Random(0)
    for _ in range(200):
        first, second = rng.randint(0, 7), rng.randint(0, 7)
        ids = [1, *rng.choices(range(3, 8), k=first), SEPARATOR, *rng.choices(range(3, 8), k=second), SEPARATOR]
        segments = [0] * (first + 2) + [1] * (second + 1)
        padding = rng.randint(0, 3)
        found = types(
            torch.tensor([ids + [0] * padding]),
            torch.tensor([[1] * len(ids) + [0] * padding]),
            torch.tensor([segments + [0] * padding]),
            SEPARATOR,
        )
        assert found[0, : len(ids)].tolist() == by_loop(ids, segments)
        assert not found[0, len(ids) :].any()


def test_one_text_alone_matches_nothing() -> None:
    ids = torch.tensor([[1, 5, 5, 6, 2]])
    assert not types(ids, torch.ones_like(ids), torch.zeros_like(ids), SEPARATOR).any()


def test_it_starts_as_the_encoder_it_was() -> None:
    torch.manual_seed(0)
    bert = BertModel(
        BertConfig(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    ).eval()
    taught = ExactMatchBertModel.taught(bert, SEPARATOR).eval()
    ids = torch.randint(3, 8, (3, 12))
    segments = (torch.arange(12) > 6).long().expand(3, -1)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": segments}
    torch.testing.assert_close(taught(**inputs).last_hidden_state, bert(**inputs).last_hidden_state)
    assert ExactMatchBertModel.taught(taught, SEPARATOR) is taught
    # From there, the levels can be told apart.
    with torch.no_grad():
        taught.embeddings.token_type_embeddings.weight[LEVELS + 1] += 1
    assert not torch.allclose(taught(**inputs).last_hidden_state, bert(**inputs).last_hidden_state)
