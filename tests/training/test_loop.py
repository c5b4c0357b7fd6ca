"""The training loop: a run that is stopped and resumed ends where an uninterrupted one does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from groundwire.train.common.loop import ParameterGroup, Row, Schedule, collate, fit, make_batches

SCHEDULE = Schedule(steps=6, batch=4, seed=3, autocast="off")


class Noisy(torch.nn.Module):
    """A classifier of bags of ids, with dropout."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = torch.nn.EmbeddingBag(50, 8, padding_idx=0)
        self.drop = torch.nn.Dropout(0.5)
        self.head = torch.nn.Linear(8, 2)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.head(self.drop(self.embed(ids)))


def make(index: int, rng: random.Random) -> Row:
    return {"input_ids": [1 + index % 49] * rng.randint(2, 9), "labels": [index % 2]}


def run(out: Path, stop: int | None = None) -> dict[str, torch.Tensor]:
    """Train to the end, or up to the step ``stop`` of the same schedule."""
    torch.manual_seed(0)
    model = Noisy()

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        for step, batch in enumerate(make_batches(40, make, {"input_ids": 0, "labels": 0}, SCHEDULE, start), start):
            if stop is not None and step >= stop:
                return
            yield batch

    def loss(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(model(batch["input_ids"]), batch["labels"])

    fit(model, [ParameterGroup(list(model.parameters()), 0.1)], feed, loss, SCHEDULE, out)
    return model.state_dict()


@pytest.mark.parametrize("stop", [1, 4])
def test_a_resumed_run_ends_with_the_same_weights(tmp_path: Path, stop: int) -> None:
    whole = run(tmp_path / "whole")
    part = run(tmp_path / "parts", stop)
    assert not torch.equal(part["head.weight"], whole["head.weight"])
    resumed = run(tmp_path / "parts")
    for name, value in whole.items():
        assert torch.equal(resumed[name], value), name


def test_batches_are_a_function_of_the_step() -> None:
    fill = {"input_ids": 0, "labels": 0}
    every = list(make_batches(10, make, fill, SCHEDULE))
    assert len(every) == SCHEDULE.steps
    for start in (1, 5):
        for late, early in zip(make_batches(10, make, fill, SCHEDULE, start), every[start:], strict=True):
            assert all(torch.equal(late[name], early[name]) for name in fill)
    other = list(make_batches(10, make, fill, replace(SCHEDULE, seed=4)))
    assert any(
        a["input_ids"].shape != b["input_ids"].shape or (a["input_ids"] != b["input_ids"]).any()
        for a, b in zip(every, other, strict=True)
    )


def test_an_epoch_shows_every_example_once() -> None:
    rows = [
        int(label)
        for batch in make_batches(
            24, lambda i, rng: {"input_ids": [1, 1], "labels": [i]}, {"input_ids": 0, "labels": 0}, SCHEDULE
        )
        for label in batch["labels"]
    ]
    assert sorted(rows) == list(range(24))


def test_too_few_examples_for_a_batch() -> None:
    with pytest.raises(ValueError, match="3 examples do not fill a batch of 4"):
        next(make_batches(3, make, {"input_ids": 0, "labels": 0}, SCHEDULE))


def test_lists_are_padded_to_eights_and_labels_become_a_vector() -> None:
    made = collate([{"a": [1, 2, 3], "b": [4]}, {"a": [5], "b": [6]}], {"a": 9, "b": 0})
    assert made["a"].tolist() == [[1, 2, 3, 9, 9, 9, 9, 9], [5, 9, 9, 9, 9, 9, 9, 9]]
    assert made["b"].tolist() == [4, 6]
