"""The masks that are traced, as transformers 5 would build them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import masking_utils

from groundwire.export.masks import traceable_masks


def see_everything(*_: Any) -> bool:
    """The mask function of encoders in transformers 5."""
    return True


@pytest.fixture
def newer(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Tensor | None]]:
    """What transformers 5 has of masks; the padding of each call of its function."""
    calls: list[Tensor | None] = []
    original = masking_utils.eager_mask

    def build(*, attention_mask: Tensor | None = None, use_vmap: bool = False, **_: Any) -> Tensor:
        calls.append(attention_mask)
        return torch.zeros(1)

    monkeypatch.setattr(masking_utils, "eager_mask", build)
    monkeypatch.setattr(masking_utils, "bidirectional_mask_function", see_everything, raising=False)
    yield calls
    masking_utils.ALL_MASK_ATTENTION_FUNCTIONS.register("eager", original)


def test_padding_alone_needs_no_indices(newer: list[Tensor | None]) -> None:
    padding = torch.tensor([[1, 1, 0], [1, 1, 1]])
    with traceable_masks():
        mask = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS["eager"](
            mask_function=see_everything, attention_mask=padding, dtype=torch.float32, batch_size=2
        )
    assert not newer
    assert mask.shape == (2, 1, 1, 3)
    assert mask[1].count_nonzero() == 0
    assert mask[0, 0, 0].tolist() == [0, 0, torch.finfo(torch.float32).min]


def test_other_masks_are_left_to_transformers(newer: list[Tensor | None]) -> None:
    padding = torch.ones(2, 3)
    with traceable_masks():
        build = masking_utils.ALL_MASK_ATTENTION_FUNCTIONS["eager"]
        build(mask_function=masking_utils.causal_mask_function, attention_mask=padding)
        build(mask_function=see_everything)
    assert newer == [padding, None]
