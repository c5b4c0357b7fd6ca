"""The embedded bundle: intact, offline, and the same scores alone, in batches and from many threads."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.engine import Engine, LoadOptions, Score
from groundwire.engine.schema.explanations import Q2Explanation
from groundwire.runtime.bundles.bundle import Bundle, embedded

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout holds no trained bundle yet")

ROWS: list[dict[str, Any]] = [
    json.loads(line)
    for line in (Path(__file__).parents[2] / "examples" / "dialogues.jsonl").read_text(encoding="utf-8").splitlines()
]


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.load("compact", device="cpu", options=LoadOptions(cache_bytes=1)) as loaded:
        loaded.warmup()
        yield loaded


def test_inspect_names_the_sets_of_the_calibration() -> None:
    shown = CliRunner().invoke(app, ["bundle", "inspect", "compact"]).output
    fitted = Bundle.open("compact").manifest.calibration
    assert fitted is not None
    assert f"calibration {fitted.digest()}: fitted on {fitted.rows} examples of" in shown
    assert all(name in shown for name in fitted.fitted_on)


def mix_requests() -> list[dict[str, Any]]:
    """64 requests of mixed lengths that contain every example."""
    rng = random.Random(3)
    others = [
        row | {"response": " ".join(other["response"] for other in rng.sample(ROWS, 1 + i % 3))}
        for i, row in enumerate(rng.choices(ROWS, k=64 - len(ROWS)))
    ]
    mixed = [*ROWS, *others]
    rng.shuffle(mixed)
    return mixed


def identify_request(row: dict[str, Any]) -> tuple[str, str]:
    """The key of a request: its response and its knowledge, because requests may share either."""
    return row["response"], str(row["knowledge"])


def list_discrete_fields(score: Score) -> Any:
    """The status, comparisons, fallback label and spans of a score: all that is not a number."""
    explanation = score.metrics["q2"].explanation
    assert isinstance(explanation, Q2Explanation)
    comparisons = [
        (c.span, c.question, c.rank, c.discarded, c.response_answer, c.knowledge_answer, c.nli)
        for c in explanation.questions
    ]
    return score.status, comparisons, explanation.fallback, [(s.start, s.end, s.reason) for s in score.unsupported]


def list_values(score: Score) -> list[float]:
    explanation = score.metrics["q2"].explanation
    assert isinstance(explanation, Q2Explanation)
    probabilities = [p for c in explanation.questions for p in (c.nli_probabilities or {}).values()]
    others = [result.value or 0.0 for result in score.metrics.values()]
    return [
        *others,
        score.verdict.probability or 0.0,
        *probabilities,
        *(explanation.fallback_probabilities or {}).values(),
    ]


def assert_equal_scores(actual: Score, expected: Score) -> None:
    assert list_discrete_fields(actual) == list_discrete_fields(expected)
    assert list_values(actual) == pytest.approx(list_values(expected), abs=1e-6)


def test_the_files_match_the_manifest() -> None:
    bundle = Bundle.open("compact")
    bundle.verify()
    assert bundle.manifest.size <= 96e6


def test_a_score_does_not_depend_on_the_batch_or_the_thread(engine: Engine) -> None:
    metrics = (*engine.plan().names, "q2")

    def score_row(row: dict[str, Any]) -> Score:
        return engine.score(row["response"], row["knowledge"], history=row["history"], metrics=metrics)

    alone = list(map(score_row, ROWS))
    mixed = mix_requests()
    batched = dict(zip(map(identify_request, mixed), engine.score_many(mixed, metrics=metrics), strict=True))
    with ThreadPoolExecutor(8) as pool:
        threaded = list(pool.map(score_row, ROWS))
    for row, expected, from_thread in zip(ROWS, alone, threaded, strict=True):
        assert_equal_scores(from_thread, expected)
        assert_equal_scores(batched[identify_request(row)], expected)


def test_the_scores_separate_the_examples(engine: Engine) -> None:
    """Contradicting examples score below their consistent counterparts, with at most one exception."""
    scores = {row["id"]: engine.score(row["response"], row["knowledge"]).value or 0.0 for row in ROWS}
    pairs = [name for name in scores if f"{name}-wrong" in scores]
    better = [name for name in pairs if scores[name] > scores[f"{name}-wrong"]]
    assert len(better) >= len(pairs) - 1, scores


@pytest.mark.parametrize(
    "text",
    [
        "שלום עולם, 1935",
        "珈琲は酸っぱい。",
        "🙂👩‍👩‍👧 ok 🙂",
        "a</s>[SEP]b [CLS] <pad>",
        "\u202eElvis\u202c",
        "e\u0301lan",
        "x" * 3000,
    ],
)
def test_a_text_in_any_script_is_scored_or_truncated(engine: Engine, text: str) -> None:
    score = engine.score(text, [text, "Elvis was born in 1935."])
    assert score.status in ("scored", "truncated")
    assert (score.value is None) == (score.status != "scored")


@pytest.mark.parametrize("name", ["compact", "reader"])
def test_no_metric_calls_every_response_consistent(name: str) -> None:
    fitted = Bundle.open(name).manifest.calibration
    assert fitted is not None
    assert {metric: scale.threshold for metric, scale in fitted.scales.items() if not scale.threshold} == {}


SENTENCE_METRICS = ("nli", "token_classifier", "reader", "q2_reader")


def test_long_knowledge_is_read_to_the_end(engine: Engine) -> None:
    filler = "The weather was mild and the road was dry. " * 120
    near, far = (
        engine.score("The bridge was opened in 1932.", before + "The bridge was opened in 1932.", metrics="all")
        for before in ("", filler)
    )
    coverages = {name: result.coverage for name, result in far.metrics.items() if result.coverage is not None}
    # The models of sentences and the language model take what is relevant, and say so.
    assert coverages.pop("pmi") == coverages.pop("upmi") < 1
    sentence_models = [name for name in coverages if name in SENTENCE_METRICS or "." in name]
    assert {coverages.pop(name) < 0.3 for name in sentence_models if name != "detector.verifiability"} == {True}
    assert "left out" in far.metrics["pmi"].message
    assert near.metrics["pmi"].decision == "consistent"
    assert 0 < (far.metrics["pmi"].value or 0.0) < (near.metrics["pmi"].value or 0.0)  # less, among so much else
    assert set(coverages.values()) == {1.0}
    assert near.value == 1.0
    assert list_discrete_fields(far)[1][0][1] == list_discrete_fields(near)[1][0][1]
