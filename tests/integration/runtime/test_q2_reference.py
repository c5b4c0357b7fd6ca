"""The engine against Q²'s definition on the PyTorch checkpoints: the same questions, answers, labels and values.

With ``GROUNDWIRE_CHECKPOINTS``, a directory with trained ``qg``, ``qa`` and ``nli`` (and perhaps ``spans``), trained
models are compared too; with ``GROUNDWIRE_BENCH_DATA``, a JSON Lines file of {response, knowledge}, on 50 of its rows
too.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import msgspec
import pytest

from groundwire.engine import Engine, Options, Score
from groundwire.engine.schema.explanations import Q2Explanation
from groundwire.engine.schema.options import Q2Options
from groundwire.export import QuestionGeneratorSettings, RoleOptions, export_bundle
from groundwire.generation import BeamSearch, Greedy
from groundwire.runtime.models.span_finder import SpanFinder
from tests.reference.q2 import Q2Reference, Question, Scored

CHECKPOINTS = os.environ.get("GROUNDWIRE_CHECKPOINTS")
BENCH_DATA = os.environ.get("GROUNDWIRE_BENCH_DATA")
REAL_ROWS = 50

PAIRS = [
    ("Bob Ross was the creator and host of The Joy of Painting.", "Bob Ross created and hosted The Joy of Painting."),
    ("The Joy of Painting was filmed in New York in 1994.", "The show was filmed in a small studio in Indiana."),
    ("elvis was born in tupelo in 1936, i think", "Elvis Presley was born in Tupelo, Mississippi, in 1935."),
    ("Yes, I love pizza! Do you like cheese?", "Pizza is a dish from Naples in Italy, with cheese and tomato."),
    ("Red hair is most common in Scotland.", "Red hair is found in one to two percent of people."),
    ("I have never been to Peru.", "The Amazon river flows through Brazil, Peru and Colombia."),
    ("My brother is a nurse in a small town, and your sister is a teacher.", "A nurse cares for people in a hospital."),
    ("241 athletes took part in the first Olympic Games in Athens.", "The first modern Olympic Games were in Athens."),
    ("Marie Curie won the Nobel Prize in 1903 and 1911.", "Marie Curie won the Nobel Prize twice."),
    ("Amélie’s dog — a Husky — was bred in Siberia…", "Husky dogs were bred in Siberia to pull sleds."),
    ("That is amazing!", "Over 600 million records were sold by the singer last year."),
    ("Dylan's Candy Bar is a chain owned by Dylan Lauren", "Dylan's Candy Bar is a chain of candy shops."),
]


def longest_words(response: str, count: int) -> tuple[tuple[int, int], ...]:
    """Spans, left to right, that the answers of a random model equal more often than they equal noun phrases."""
    longest = sorted(re.finditer(r"\w+", response), key=lambda match: -len(match[0]))[:count]
    return tuple(sorted(match.span() for match in longest))


def convert(score: Score) -> Scored:
    """The engine's score and explanation as a record of the reference implementation."""
    (result,) = score.metrics.values()
    assert isinstance(result.explanation, Q2Explanation)
    assert score.value is not None
    questions = tuple(
        Question(
            question.span,
            question.rank,
            question.question,
            question.response_answer,
            question.discarded,
            question.knowledge_answer,
            question.f1,
            question.nli,
            question.value,
        )
        for question in result.explanation.questions
    )
    return Scored(result.explanation.spans, questions, result.explanation.fallback, score.value)


def assert_same(scored: Scored, expected: Scored) -> None:
    def exact(record: Scored) -> tuple[object, ...]:
        words = [(q.span, q.rank, q.text, q.response_answer, q.discarded) for q in record.questions]
        return record.spans, words, [(q.knowledge_answer, q.nli) for q in record.questions], record.fallback

    def numbers(record: Scored) -> list[float | None]:
        return [record.value, *(n for q in record.questions for n in (q.f1, q.value))]

    assert exact(scored) == exact(expected)
    assert numbers(scored) == pytest.approx(numbers(expected), abs=1e-4)


@pytest.fixture(scope="module")
def reference(tiny_checkpoints: Path) -> Q2Reference:
    return Q2Reference(tiny_checkpoints, SpanFinder.load(tiny_checkpoints / "spans"))


SHORT = BeamSearch(max_new_tokens=11)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Q2Options(decoding=SHORT), 0),
        (Q2Options(decoding=SHORT, questions_at_once=3), 3),
        (
            Q2Options(
                decoding=BeamSearch(num_beams=3, num_return_sequences=3, max_new_tokens=11), questions="all", nli=False
            ),
            3,
        ),
        (Q2Options(decoding=Greedy(max_new_tokens=11), personal_filter=False), 8),
    ],
    ids=["spans of the finder", "words", "all questions without inference", "greedy without filter"],
)
def test_random_models(engine: Engine, reference: Q2Reference, settings: Q2Options, words: int) -> None:
    asked = [
        msgspec.structs.replace(settings, spans=longest_words(pair[0], words) if words else None) for pair in PAIRS
    ]
    expected = [reference.score(*pair, options) for pair, options in zip(PAIRS, asked, strict=True)]
    for pair, options, scored in zip(PAIRS, asked, expected, strict=True):
        assert_same(convert(engine.score(*pair, options=Options(q2=options))), scored)
    # Random models seldom answer with the span itself, but often enough that every path runs.
    questions = [question for scored in expected for question in scored.questions]
    assert {"", "no_answer_in_response", "other_answer_in_response"} <= {question.discarded for question in questions}
    assert any(scored.fallback for scored in expected)
    assert len({question.value for question in questions}) > 1


def test_requests_together_are_scored_as_alone(engine: Engine, reference: Q2Reference) -> None:
    settings = Q2Options(decoding=Greedy(max_new_tokens=7))
    together = engine.score_many(PAIRS, options=Options(q2=settings))
    for pair, score in zip(PAIRS, together, strict=True):
        assert_same(convert(score), reference.score(*pair, settings))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(CHECKPOINTS is None, reason="GROUNDWIRE_CHECKPOINTS names no trained checkpoints")
def test_trained_models(tiny_checkpoints: Path, tmp_path: Path) -> None:
    assert CHECKPOINTS is not None
    trained = Path(CHECKPOINTS)
    spans = trained / "spans" if (trained / "spans").is_dir() else tiny_checkpoints / "spans"
    pairs = list(PAIRS)
    if BENCH_DATA is not None:
        rows = [json.loads(line) for line in Path(BENCH_DATA).read_text(encoding="utf-8").splitlines()]
        pairs += [(row["response"], row["knowledge"]) for row in rows[:: max(1, len(rows) // REAL_ROWS)][:REAL_ROWS]]
    reference = Q2Reference(trained, SpanFinder.load(spans))
    bundle = export_bundle(
        {
            "qg": RoleOptions(str(trained / "qg"), QuestionGeneratorSettings(reference.template), precision="fp32"),
            "qa": RoleOptions(str(trained / "qa"), precision="fp32"),
            "nli": RoleOptions(str(trained / "nli"), precision="fp32"),
            "spans": RoleOptions(str(spans)),
        },
        tmp_path / "trained",
    )
    with Engine.load(bundle.directory, device="cpu") as engine:
        for pair, score in zip(pairs, engine.score_many(pairs), strict=True):
            assert_same(convert(score), reference.score(*pair, Q2Options()))
