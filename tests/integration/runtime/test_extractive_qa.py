"""Answers of exported extractive QA models against their checkpoints, by a second implementation of the rules."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import msgspec
import pytest
import torch

from groundwire.runtime.calls import Answer, Answered, AnswerRule, Read
from groundwire.runtime.errors import TooLong
from groundwire.runtime.models.extractive_qa import MAX_ANSWER_TOKENS, ExtractiveQA
from groundwire.runtime.texts.tokenization import TextEncoder, Window
from tests.support import models
from tests.support.zoo import PROFILE, Zoo

FAMILIES = list(models.EXTRACTIVE_QA)
RULES: list[AnswerRule] = ["independent", "joint"]
SENTENCES = list(models.sentences())
QUESTIONS = [
    "who was born in Tupelo?",
    "what is the name of the show?",
    "how old is he?",
    "Which city?",
    "when did the Titanic sink in the Atlantic ocean?",
]
LONG = " ".join(SENTENCES)
"""Several windows of a tiny model."""


class ExpectedAnswer(NamedTuple):
    """The answer of a window, with the fields of ``Answered``."""

    status: str
    text: str
    start: int
    end: int
    score: float


def logits(zoo: Zoo, family: str, window: Window) -> tuple[list[float], list[float]]:
    """Start and end logits of the checkpoint."""
    return _logits(zoo, family, tuple(window.ids), tuple(window.type_ids))


@cache  # the rules read the same windows
@torch.no_grad()
def _logits(zoo: Zoo, family: str, ids: tuple[int, ...], type_ids: tuple[int, ...]) -> tuple[list[float], list[float]]:
    model, _ = zoo.torch("qa", family)
    types = {} if family == "roberta" else {"token_type_ids": torch.tensor([type_ids])}
    out = model(input_ids=torch.tensor([ids]), **types)
    return out.start_logits[0].tolist(), out.end_logits[0].tolist()


def apply_rule(zoo: Zoo, family: str, window: Window, question: str, passage: str, rule: AnswerRule) -> ExpectedAnswer:
    """The documented rule on one window, position by position."""
    start, end = logits(zoo, family, window)
    inside = [i for i, owner in enumerate(window.sequence_ids) if owner == 1]
    null = start[0] + end[0]
    if rule == "independent":
        a, b = start.index(max(start)), end.index(max(end))
        score = start[a] + end[b] - null
        if a == b == 0 or b < a:
            return ExpectedAnswer("none" if a == b else "empty", "", -1, -1, score)
    else:
        legal = [(a, b) for a in inside for b in inside if a <= b < a + MAX_ANSWER_TOKENS]
        a, b = max(legal, key=lambda pair: start[pair[0]] + end[pair[1]])
        score = start[a] + end[b] - null
        if score <= 0:
            return ExpectedAnswer("none", "", -1, -1, score)
    owners = {window.sequence_ids[i] for i in range(a, b + 1)}
    if len(owners) > 1 or None in owners:
        return ExpectedAnswer("empty", "", -1, -1, score)
    if a not in inside:
        words = question[window.offsets[a][0] : window.offsets[b][1]].strip()
        return ExpectedAnswer("answered" if words else "empty", words, -1, -1, score)
    cut = passage[window.offsets[a][0] : window.offsets[b][1]]
    begin = window.offsets[a][0] + len(cut) - len(cut.lstrip())
    return ExpectedAnswer("answered", cut.strip(), begin, begin + len(cut.strip()), score)


def windows(zoo: Zoo, family: str, question: str, passage: str) -> list[Window]:
    role = zoo.bundle("qa", family).manifest.roles["qa"]
    encoder = TextEncoder.load(zoo.bundle("qa", family).file(role.tokenizer), role.max_tokens)
    return encoder.encode_windows(question, passage, 1, role.stride)


def assert_is(result: object, expected: ExpectedAnswer, passage: int = 0) -> None:
    assert isinstance(result, Answered)
    assert (result.status, result.text, result.start, result.end) == expected[:4]
    assert result.passage == (passage if expected.status == "answered" else -1)
    assert result.score == pytest.approx(expected.score, abs=1e-3)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("family", FAMILIES)
def test_answers_are_those_of_the_checkpoint(zoo: Zoo, family: str, rule: AnswerRule) -> None:
    pairs = [(question, passage) for question in QUESTIONS for passage in SENTENCES]
    results = zoo.extractive_qa(family).run([Answer(question, (passage,), rule) for question, passage in pairs], 1)
    seen = set()
    for (question, passage), result in zip(pairs, results, strict=True):
        (window,) = windows(zoo, family, question, passage)
        expected = apply_rule(zoo, family, window, question, passage, rule)
        assert_is(result, expected)
        assert isinstance(result, Answered)
        assert result.read == Read(1, len(passage), len(passage))
        seen.add((expected.status, expected.status == "answered" and expected.start < 0))
        if result.start >= 0:
            assert passage[result.start : result.end] == result.text
    # The tiny models produce every outcome of a rule.
    every = {("answered", False), ("none", False)}
    assert seen == (every | {("answered", True), ("empty", False)} if rule == "independent" else every)


def choose_best(answers: list[tuple[int, ExpectedAnswer]]) -> tuple[int, ExpectedAnswer]:
    """Over all windows: the highest score of an answer; without one, "empty" before "none", and the highest score."""
    answered = [item for item in answers if item[1].status == "answered"]
    if answered:
        return max(answered, key=lambda item: item[1].score)
    status = "empty" if any(best.status == "empty" for _, best in answers) else "none"
    return -1, ExpectedAnswer(status, "", -1, -1, max(best.score for _, best in answers))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("family", FAMILIES)
def test_long_and_several_passages_give_the_best_window(zoo: Zoo, family: str, rule: AnswerRule) -> None:
    passages = (SENTENCES[0], LONG[:900], SENTENCES[7], LONG[300:])
    calls = [Answer(question, passages, rule) for question in QUESTIONS]
    decided = set()
    for call, result in zip(calls, zoo.extractive_qa(family).run(calls, 200), strict=True):
        answers = [
            (index, apply_rule(zoo, family, window, call.question, passage, rule))
            for index, passage in enumerate(passages)
            for window in windows(zoo, family, call.question, passage)
        ]
        assert len(answers) > 10
        passage, best = choose_best(answers)
        assert_is(result, best, passage)
        assert isinstance(result, Answered)
        assert result.read == Read(len(answers), sum(map(len, passages)), sum(map(len, passages)))
        decided.add([best for _, best in answers].index(best) if passage >= 0 else -1)
    assert len(decided) > 1


def test_there_is_no_answer_only_if_no_passage_has_one(zoo: Zoo) -> None:
    run = zoo.extractive_qa("bert").run
    question = QUESTIONS[1]

    def status(*passages: str) -> tuple[str, int]:
        (result,) = run([Answer(question, passages)], 8)
        assert isinstance(result, Answered)
        return result.status, result.passage

    some: dict[str, list[str]] = {"none": [], "empty": [], "answered": []}
    for passage in [*SENTENCES, *(LONG[start : start + 90] for start in range(0, 1800, 20))]:
        some[status(passage)[0]].append(passage)
    none, other = some["none"][:2]
    assert status(none, other) == ("none", -1)
    assert status(none, some["empty"][0]) == ("empty", -1)
    assert status(none, some["empty"][0], some["answered"][0]) == ("answered", 2)
    assert status(some["answered"][0], none) == ("answered", 0)


def test_of_equal_answers_the_earlier_passage_is_taken(zoo: Zoo) -> None:
    call = Answer(QUESTIONS[0], (SENTENCES[3], SENTENCES[3], SENTENCES[3]), "joint")
    (result,) = zoo.extractive_qa("bert").run([call], 8)
    assert isinstance(result, Answered)
    assert (result.status, result.passage) == ("answered", 0)


def test_rules_of_several_calls_do_not_mix(zoo: Zoo) -> None:
    calls = [
        Answer(question, (sentence,), rule) for question in QUESTIONS for sentence in SENTENCES[:4] for rule in RULES
    ]
    model = zoo.extractive_qa("roberta")
    results = model.run(calls, 1)
    assert results == [model.run([call], 1)[0] for call in calls]
    assert results[0::2] != results[1::2]


def test_rules_share_the_runs_of_the_graph(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    model = zoo.extractive_qa("bert")
    run, rows = model._session.run, []
    monkeypatch.setattr(model._session, "run", lambda feeds: rows.append(len(feeds["input_ids"])) or run(feeds))
    model.run([Answer(QUESTIONS[0], tuple(SENTENCES[:4]), rule) for rule in RULES], 4)
    assert sum(rows) == 4


def test_the_joint_rule_bounds_the_length_of_an_answer(zoo: Zoo) -> None:
    """With start and end far apart, the best legal span is shorter than the distance of the two peaks."""
    model = zoo.extractive_qa("bert")
    distant = []
    for question in QUESTIONS:
        for passage in (LONG[offset : offset + 320] for offset in range(0, 1600, 40)):
            for window in windows(zoo, "bert", question, passage):
                start, end = logits(zoo, "bert", window)
                if end.index(max(end)) - start.index(max(start)) >= MAX_ANSWER_TOKENS:
                    distant.append((question, passage, window))
    assert distant
    for question, passage, window in distant:
        (result,) = model.run([Answer(question, (passage,), "joint")], 4)
        assert_is(result, apply_rule(zoo, "bert", window, question, passage, "joint"))


def test_more_windows_than_allowed_is_an_error_of_that_call_alone(zoo: Zoo) -> None:
    long, short = Answer(QUESTIONS[0], (SENTENCES[0], LONG)), Answer(QUESTIONS[0], (SENTENCES[0],))
    count = 1 + len(windows(zoo, "albert", QUESTIONS[0], LONG))
    model = zoo.extractive_qa("albert")
    fits, _ = model.run([long, short], count)
    assert isinstance(fits, Answered)
    assert fits.read.windows == count
    refused, fine = model.run([long, short], count - 1)
    assert isinstance(refused, TooLong)
    assert f"more than {count - 1} windows of {models.MAX_TOKENS} tokens" in str(refused)
    assert fine == model.run([short], count)[0]


def test_a_question_that_fills_the_window_is_an_error_of_that_call_alone(zoo: Zoo) -> None:
    refused, fine = zoo.extractive_qa("roberta").run(
        [Answer(LONG, (LONG,)), Answer(QUESTIONS[0], (SENTENCES[0],))], 400
    )
    assert isinstance(refused, TooLong)
    assert isinstance(fine, Answered)


def test_a_smaller_stride_reads_fewer_windows(zoo: Zoo) -> None:
    bundle = zoo.bundle("qa", "albert")
    role = msgspec.structs.replace(bundle.manifest.roles["qa"], stride=0)
    (few,) = ExtractiveQA.load(bundle, role, PROFILE).run([Answer(QUESTIONS[0], (LONG,))], 400)
    (many,) = zoo.extractive_qa("albert").run([Answer(QUESTIONS[0], (LONG,))], 400)
    assert isinstance(few, Answered)
    assert isinstance(many, Answered)
    assert 1 < few.read.windows < many.read.windows


def test_no_calls_give_no_answers(zoo: Zoo) -> None:
    assert zoo.extractive_qa("bert").run([], 8) == []
