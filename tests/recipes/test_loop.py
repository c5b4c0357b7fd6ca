"""The training loop: a run that is stopped and resumed ends where an uninterrupted one does."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from groundwire.recipes.common.loop import ParameterGroup, Row, Schedule, collate, fit, make_batches, make_group_batches

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


def make_pair(index: int, rng: random.Random) -> tuple[Row, Row]:
    first, second = make(index, rng), make(index, rng)
    return first | {"labels": [index]}, second | {"labels": [index]}


def test_the_examples_of_a_group_stay_in_one_batch() -> None:
    schedule = replace(SCHEDULE, steps=10)
    fill = {"input_ids": 0, "labels": 0}
    every = list(make_group_batches(20, make_pair, fill, schedule, size=2))
    assert [len(batch["labels"]) for batch in every] == [4] * 10
    for batch in every:
        first, second, third, fourth = batch["labels"].tolist()
        assert (first, third) == (second, fourth)
    assert sorted(int(label) for batch in every for label in batch["labels"]) == sorted([*range(20)] * 2)
    for late, early in zip(make_group_batches(20, make_pair, fill, schedule, 7, size=2), every[7:], strict=True):
        assert all(torch.equal(late[name], early[name]) for name in fill)


def test_a_batch_that_groups_do_not_fill_is_refused() -> None:
    with pytest.raises(ValueError, match="A batch of 4 is no multiple of 3"):
        next(make_group_batches(20, make_pair, {"input_ids": 0, "labels": 0}, SCHEDULE, size=3))


def test_the_rate_falls_from_the_warm_up_on_or_at_the_end() -> None:
    linear = Schedule(steps=100, warmup=0.1)
    assert [linear.scale_rate(step) for step in (0, 9, 55, 99)] == pytest.approx([0.1, 1.0, 0.5, 1 / 90])
    late = Schedule(steps=100, warmup_steps=10, decay=0.2)
    assert [late.scale_rate(step) for step in (0, 9, 79, 80, 90, 99, 100)] == pytest.approx(
        [0.1, 1.0, 1.0, 1.0, 0.5, 0.05, 0.0]
    )


def test_the_end_can_be_chosen_before_the_rate_falls() -> None:
    """Batches and rates up to the fall do not depend on the number of steps."""
    short, long = (Schedule(steps=steps, batch=4, seed=3, warmup_steps=2, decay=0.25) for steps in (8, 40))
    assert [short.scale_rate(step) for step in range(7)] == [long.scale_rate(step) for step in range(7)]
    assert short.scale_rate(7) < long.scale_rate(7)
    fill = {"input_ids": 0, "labels": 0}
    for first, second in zip(make_batches(40, make, fill, short), make_batches(40, make, fill, long), strict=False):
        assert all(torch.equal(first[name], second[name]) for name in fill)
