"""The baseline of BERTScore against the authors' package."""

from __future__ import annotations

import gzip
import json
import random
import shutil
from pathlib import Path

import pytest
from bert_score import score as package

from groundwire.engine import Engine, InvalidRequest, Options
from groundwire.engine.schema.options import BertScoreOptions
from groundwire.export import EmbedderSettings, RoleOptions, export_role
from groundwire.recipes.compact.bertscore_baseline import (
    FILE,
    MAX_WORDS,
    draw_sentences,
    measure_bertscore_baseline,
    store_bertscore_baseline,
)
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.calibration import Calibration, Feature, Fusion, Profile, Scale
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


def test_a_stored_baseline_rescales_and_moves_no_verdict(bundle: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(bundle, tmp_path / "copy")
    names = ("bertscore.precision", "bertscore.recall", "bertscore", "bertscore.worst")
    features = tuple(Feature(name=name, mean=0.1 * i, deviation=0.3, weight=1.0) for i, name in enumerate(names))
    profile = Profile(
        threshold=0.5,
        false_positive_rate=0.1,
        false_negative_rate=0.1,
        unverifiable_rate=0.0,
        coverage=1.0,
        risk=0.1,
        sets=1,
    )
    fusion = Fusion(
        name="full", metrics=("bertscore",), intercept=0.2, features=features, profiles={"balanced": profile}
    )
    scale = Scale(low=-0.5, high=1.0, threshold=0.4)
    Bundle.open(copy).calibrate(
        Calibration(fitted_on=("dev",), rows=40, fusions=(fusion,), scales={"bertscore": scale}, verifiable=None)
    )

    def score(options: Options | None = None) -> list[tuple[float | None, float | None, str | None]]:
        with Engine.load(copy) as engine:
            pairs = [(SHORT[0], SHORT[1]), (SHORT[2], SHORT[2])]
            scores = engine.score_many(pairs, metrics=["bertscore"], options=options)
            return [
                (s.metrics["bertscore"].value, s.verdict.probability, s.metrics["bertscore"].decision) for s in scores
            ]

    before = score()
    store_bertscore_baseline(copy, (0.5, 0.4, 0.3))
    after = score()
    raw = [0.9 + 0.1 * (value or 0.0) for value, _, _ in before]  # the bundle was exported with 0.9
    assert [value for value, _, _ in after] == pytest.approx([(number - 0.3) / 0.7 for number in raw], abs=1e-6)
    assert [p for _, p, _ in after] == pytest.approx([p for _, p, _ in before], abs=1e-6)
    assert [decision for _, _, decision in after] == [decision for _, _, decision in before]
    for baseline in ("none", (0.9, 0.9, 0.9)):
        other = score(Options(bertscore=BertScoreOptions(baseline=baseline)))
        assert [p for _, p, _ in other] == pytest.approx([p for _, p, _ in before], abs=1e-6)
        assert [decision for _, _, decision in other] == [decision for _, _, decision in before]
        assert [value for value, _, _ in other] != pytest.approx([value for value, _, _ in after])


def test_sentences_are_drawn_from_short_ones(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    long = " ".join(["bob"] * MAX_WORDS)
    texts = [{"text": f"{long}. It ends in row {i} of them now.", "doc": str(i)} for i in range(9)]
    with gzip.open(tmp_path / "more" / FILE, "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in texts)
    drawn = draw_sentences(tmp_path, 5)
    assert len(drawn) == 5
    assert long not in " ".join(drawn)
    assert draw_sentences(tmp_path, 5) == drawn
    assert draw_sentences(tmp_path, 5, seed=1) != drawn


def test_a_bundle_without_embedder_has_nothing_to_rescale() -> None:
    with pytest.raises(InvalidRequest, match="has no embedder"):
        store_bertscore_baseline(Path("bundles/nph"), (0.1, 0.1, 0.1))
