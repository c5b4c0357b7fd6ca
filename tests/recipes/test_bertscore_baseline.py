"""The baseline of BERTScore against the authors' package."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from bert_score import score as package

from groundwire.engine import Engine, InvalidRequest, Options
from groundwire.engine.schema.options import BertScoreOptions
from groundwire.export import EmbedderSettings, RoleOptions, export_role
from groundwire.recipes.compact.bertscore_baseline import MAX_WORDS, measure_bertscore_baseline
from tests.support import models

LINES = list(models.sentences())
SHORT = [line for line in LINES if len(line.split(" ")) < MAX_WORDS]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return models.embedder(tmp_path_factory.mktemp("baseline") / "mpnet", "mpnet")


@pytest.fixture(scope="module")
def bundle(source: Path) -> Path:
    options = RoleOptions(str(source), EmbedderSettings(baseline=(0.9, 0.9, 0.9)), precision="fp32")
    return export_role("embedder", options, source.parent / "bundle").directory


def test_it_is_the_mean_that_the_package_gives(source: Path, bundle: Path) -> None:
    long = " ".join(["bob"] * MAX_WORDS)
    baseline = measure_bertscore_baseline(bundle, [*LINES, long, "", "  "], seed=5)
    drawn = list(SHORT)
    random.Random(5).shuffle(drawn)
    half = len(drawn) // 2
    expected = package(drawn[:half], drawn[half : 2 * half], model_type=str(source), num_layers=3, device="cpu")
    assert baseline == pytest.approx([float(numbers.mean()) for numbers in expected], abs=2e-5)


def test_the_seed_draws_the_pairs(bundle: Path) -> None:
    assert measure_bertscore_baseline(bundle, LINES) == measure_bertscore_baseline(bundle, LINES)
    assert measure_bertscore_baseline(bundle, LINES) != measure_bertscore_baseline(bundle, LINES, seed=1)


def test_unrelated_sentences_score_nothing_once_rescaled(bundle: Path) -> None:
    baseline = measure_bertscore_baseline(bundle, LINES)
    drawn = list(SHORT)
    random.Random(0).shuffle(drawn)
    half = len(drawn) // 2
    options = Options(bertscore=BertScoreOptions(baseline=baseline, lower_knowledge=False))
    with Engine.load(bundle) as engine:
        pairs = zip(drawn[:half], drawn[half : 2 * half], strict=True)
        values = [score.value for score in engine.score_many(pairs, metrics=["bertscore"], options=options)]
    assert sum(value or 0.0 for value in values) / len(values) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("sentences", [[], ["only one"], ["x " * MAX_WORDS, "y " * MAX_WORDS]])
def test_too_few_sentences_are_named(bundle: Path, sentences: list[str]) -> None:
    with pytest.raises(InvalidRequest, match="make no pair"):
        measure_bertscore_baseline(bundle, sentences)
