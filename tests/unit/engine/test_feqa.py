"""FeQA: what is asked, what it is answered from, and how answers are compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.engine import Engine
from groundwire.engine.metrics.feqa import compute_f1
from groundwire.runtime.calls import Answer, FindSpans, GeneratedQuestion, GenerateQuestions, TextSpan
from groundwire.runtime.fake import FakeRuntime
from tests.support import fakes
from tests.support.graph_world import FACTS, FILMS, critic, retriever

HISTORY = ("Do you know Gladiator?", "Yes, it is of 2000.")
DOCUMENT = "Do you know Gladiator? Yes, it is of 2000. Alien directed by Ridley Scott. Alien starring Sigourney Weaver."


def question(call: GenerateQuestions) -> tuple[GeneratedQuestion, ...]:
    return (GeneratedQuestion("which number?" if call.answer.isdigit() else "which name?", -0.1),)


def make_runtime(**other: Any) -> FakeRuntime:
    roles = fakes.ROLES | {"qg": question, "critic": critic, "retriever": retriever} | other
    return FakeRuntime(roles, role_info=FACTS)


def answered_passages(runtime: FakeRuntime) -> set[tuple[str, ...]]:
    return {call.passages for _, calls in runtime.batches for call in calls if isinstance(call, Answer)}


@pytest.mark.parametrize(
    ("request_", "passages"),
    [
        ({"triples": FILMS[:2], "history": HISTORY}, (DOCUMENT,)),
        ({"triples": FILMS[:1]}, ("Alien directed by Ridley Scott.",)),
        (
            {"triples": FILMS[:1], "knowledge": "A text.", "history": ("Hi!",)},
            ("A text.", "Hi! Alien directed by Ridley Scott."),
        ),
        ({"knowledge": ("A text.", "Another."), "history": HISTORY}, ("A text.", "Another.")),
    ],
)
def test_triples_are_read_with_the_history(request_: dict[str, Any], passages: tuple[str, ...]) -> None:
    runtime = make_runtime()
    with Engine(runtime) as engine:
        score = engine.score("Alien came out in 1979.", metrics=["feqa"], **request_)
    assert score.status == "scored"
    assert answered_passages(runtime) == {passages}


def test_refine_and_the_metric_give_one_figure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(make_runtime())))
    triples = [[triple.subject, triple.predicate, triple.object] for triple in FILMS[3:4]]
    row: dict[str, Any] = {"response": "Alien came out in 1979.", "history": ["Do you know Alien?"], "triples": triples}
    source = tmp_path / "in.jsonl"
    source.write_text(json.dumps(row))
    refined = CliRunner().invoke(app, ["refine", str(source), "--feqa", "--json"])
    with Engine(make_runtime()) as engine:
        scored = engine.score(row["response"], history=row["history"], triples=triples, metrics=["feqa"])
    feqa = json.loads(refined.stdout)["feqa"]
    # "Do" is the document's first name, so the question for "Alien" is answered by the history.
    assert feqa == {"before": 0.5, "after": 0.5}
    assert scored.value == 0.5


@pytest.mark.parametrize(
    ("kind", "text", "asked"),
    [
        ("noun_chunk", "He", False),
        ("noun_chunk", "what", False),
        ("noun_chunk", "all of it", False),
        ("noun_chunk", "the film", True),
        ("ent:WORK_OF_ART", "It", True),
        ("given", "He", True),
    ],
)
def test_noun_phrases_of_stop_words_are_not_asked_about(kind: str, text: str, asked: bool) -> None:
    def find(call: FindSpans) -> Any:
        return (TextSpan(text, 0, len(text), kind),)

    runtime = make_runtime(spans=find)
    with Engine(runtime) as engine:
        score = engine.score(f"{text} came.", "Elvis came.", metrics=["feqa"])
    assert score.status == ("scored" if asked else "nothing_to_verify")


@pytest.mark.parametrize(
    ("answer", "phrase", "f1"),
    [
        ("the film", "film", 2 / 3),
        ("the film", "The film", 1.0),
        ("The", "the", 1.0),
        ("in Paris", "our Paris", 0.5),
        ("J. R. R. Tolkien", "Tolkien", 0.4),
        ("Rome, Italy", "Rome Italy", 0.8),
        ("", "Rome", 0.0),
        ("Paris", "Rome", 0.0),
    ],
)
def test_every_word_counts(answer: str, phrase: str, f1: float) -> None:
    assert compute_f1(answer, phrase) == pytest.approx(f1)
