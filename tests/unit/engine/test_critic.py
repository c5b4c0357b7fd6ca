"""Triples in requests, and the metric that reads them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.engine import Engine, InvalidRequest, Options, Request, Score
from groundwire.engine.metrics.mentions import find_mentions
from groundwire.engine.schema.explanations import CriticExplanation, FlaggedToken
from groundwire.engine.schema.options import CriticOptions
from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.scores.scoring import request_key
from groundwire.repair import Critic
from groundwire.runtime.calls import ClassifiedToken, ClassifiedTokens, Classify, ClassifyTokens, Read
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import RoleInfo
from tests.support import fakes
from tests.support.graph_world import FACTS, FILMS, critic, world

WRONG = "Alien was directed by James Cameron."
RIGHT = "Alien was directed by Ridley Scott."


def run(response: str, triples: Any = FILMS, **settings: Any) -> Score:
    with Engine(world()) as engine:
        return engine.score(response, triples=triples, metrics=["critic"], **settings)


def test_the_critic_flags_names_with_their_place_and_probability() -> None:
    score = run(WRONG)
    explanation = score.metrics["critic"].explanation
    assert isinstance(explanation, CriticExplanation)
    assert score.value == pytest.approx(0.1)
    assert [(mention.text, mention.start, mention.end) for mention in explanation.mentions] == [
        ("Alien", 0, 5),
        ("James Cameron", 22, 35),
    ]
    assert explanation.mentions[1].probability == pytest.approx(0.9)
    assert all(WRONG[mention.start : mention.end] == mention.text for mention in explanation.mentions)
    assert [(span.text, span.reason, span.metric) for span in score.unsupported] == [
        ("Alien", "detected", "critic"),
        ("James Cameron", "detected", "critic"),
    ]
    assert Score.from_json(score.to_json()) == score


def test_a_supported_response_has_no_mention() -> None:
    score = run(RIGHT)
    assert score.value == pytest.approx(0.9)
    assert score.unsupported == ()
    assert score.coverage == 1.0


def test_the_threshold_decides_what_is_flagged_but_not_the_value() -> None:
    loose, strict = (run(WRONG, options=Options(critic=CriticOptions(threshold=at))) for at in (0.5, 0.95))
    assert loose.value == strict.value
    assert strict.unsupported == ()
    assert "critic.threshold=0.95" in strict.signature
    assert "critic" not in loose.signature.partition("options:")[2]


def test_the_critic_reads_the_triples_and_the_last_turns() -> None:
    history = ["Hi!", "Is it good?", "Alien?", "Do you know it?"]
    with Engine(world()) as engine:
        engine.score(RIGHT, "Some text.", history=history, triples=FILMS[:2], metrics=["critic"])
        assert isinstance(engine.core.runtime, FakeRuntime)
        ((_, (call,)),) = engine.core.runtime.batches
    assert call == ClassifyTokens(
        "critic",
        ("Alien directed by Ridley Scott | Alien starring Sigourney Weaver | Is it good? | Alien? | Do you know it?",),
        RIGHT,
    )


def test_without_triples_the_critic_has_nothing_to_verify() -> None:
    with Engine(world()) as engine:
        score = engine.score(RIGHT, "Ridley Scott made Alien.", metrics=["critic"])
    assert (score.status, score.value) == ("nothing_to_verify", None)
    assert "pass triples" in score.message


def test_text_metrics_read_the_triples_where_there_is_no_other_knowledge() -> None:
    def label(call: Classify) -> Any:
        premises.append(call.premises)
        return fakes.label(call)

    premises: list[tuple[str, ...]] = []
    with Engine(FakeRuntime(fakes.ROLES | {"nli": label, "critic": critic}, role_info=FACTS)) as engine:
        score = engine.score("Alien is old.", triples=FILMS[:2], metrics=["nli", "critic"])
        engine.score("Alien is old.", "A text.", triples=FILMS[:2], metrics=["nli"])
    assert premises[0] == ("alien directed by ridley scott | alien starring sigourney weaver",)
    assert premises[-1] == ("a text.",)
    assert {result.status for result in score.metrics.values()} == {"scored"}


def test_other_triples_are_another_question() -> None:
    with Engine(world()) as engine:
        values = [
            engine.score(RIGHT, triples=triples, metrics=["critic"]).value for triples in (FILMS, FILMS[4:], FILMS)
        ]
        cached, hits, _ = engine.core.scheduler.cache_info
    assert values == [pytest.approx(0.9), pytest.approx(0.1), pytest.approx(0.9)]
    assert (cached, hits) == (2, 1)


@pytest.mark.parametrize(
    ("triples", "message"),
    [
        ("Alien", "triples is one string"),
        (7, "triples is int; pass a list of"),
        ([("Alien", "directed_by")], r"triples\[0\] has 2 parts"),
        ([("Alien", "directed_by", 5)], r"triples\[0\]\.object is int"),
        ([("Alien", " ", "Ridley Scott")], r"triples\[0\] has an empty predicate"),
        ([("a", "b", "c"), "abc"], r"triples\[1\] is one string; pass \(subject"),
        ([{"subject": "a", "object": "b"}], r"triples\[0\] has no predicate; it has subject, object"),
        ([("a", "b\0", "c")], "NUL character"),
        ([("a", "b", "\ud800")], "lone surrogate"),
    ],
)
def test_unusable_triples_are_named(triples: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        run(RIGHT, triples)


@pytest.mark.parametrize(
    "item",
    [
        Request(RIGHT, (), (), FILMS),
        {"response": RIGHT, "triples": [[triple.subject, triple.predicate, triple.object] for triple in FILMS]},
        {
            "response": RIGHT,
            "knowledge": None,
            "triples": [
                {"subject": s, "predicate": p, "object": o} for s, p, o in [("Alien", "directed_by", "Ridley Scott")]
            ],
        },
    ],
)
def test_many_requests_bring_triples(item: Any) -> None:
    with Engine(world()) as engine:
        (score,) = engine.score_many([item], metrics=["critic"])
    assert score.value == pytest.approx(0.9), score.message


def test_a_file_of_responses_brings_triples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Engine, "load", classmethod(lambda cls, *args, **kwargs: cls(world())))
    source = tmp_path / "in.jsonl"
    triples = [["Alien", "directed_by", "Ridley Scott"]]
    rows = [{"response": WRONG, "triples": triples}, {"response": WRONG}, {"response": WRONG, "triples": ["x"]}]
    source.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = CliRunner().invoke(app, ["score", str(source), "--metrics", "critic", "--table"])
    assert "⟦James Cameron⟧" in result.output
    assert "line 2: The line has no knowledge" in result.output
    assert "line 3: triples[0] is one string" in result.output
    assert result.exit_code == 3


def test_scores_kept_before_there_were_triples_are_found_again() -> None:
    row = Example("a", response="Bees make honey.", knowledge=("Bees make honey.",), history=("Really?",), label=1)
    assert request_key(row) == "8da54593fbbc98a6"


def tokens(response: str, *flagged: str) -> list[FlaggedToken]:
    """Four-letter pieces of words, those that overlap the flagged texts with probability 0.8."""
    ranges = [(response.index(text), response.index(text) + len(text)) for text in flagged]
    return [
        FlaggedToken(*piece.span(), 0.8 if any(s < piece.end() and piece.start() < e for s, e in ranges) else 0.1)
        for piece in re.finditer(r"\w{1,4}|[^\w\s]", response)
    ]


@pytest.mark.parametrize(
    ("response", "tags", "expected"),
    [
        (
            "He also wrote The Time Machine and The Invisible Man.",
            "O O O B I I I B I I O",
            ["The Time Machine", "The Invisible Man"],
        ),
        (
            "He also wrote The Time Machine and The Invisible Man.",
            "O O O B I I B I I I O",
            ["The Time Machine", "The Invisible Man"],
        ),
        ("Tom Hanks Meg Ryan play.", "B I B I O O", ["Tom Hanks", "Meg Ryan"]),
        ("Tom Hanks Meg Ryan play.", "B O B O O O", ["Tom Hanks", "Meg Ryan"]),
        ("Tom Hanks Meg Ryan play.", "I I I I O O", ["Tom Hanks Meg Ryan"]),
    ],
)
@pytest.mark.parametrize("labels", [("O", "B", "I"), ("I-Halluc", "B-Halluc", "O")])
def test_a_new_mention_begins_where_the_critic_says_so(
    labels: tuple[str, ...], response: str, tags: str, expected: list[str]
) -> None:
    def tag(call: ClassifyTokens) -> Any:
        kinds = [next(label for label in labels if label.startswith(letter)) for letter in tags.split()]
        classified = tuple(
            ClassifiedToken(*word.span(), tuple(0.8 if label == kind else 0.1 for label in labels))
            for word, kind in zip(re.finditer(r"\w+|[^\w\s]", response), kinds, strict=True)
        )
        return ClassifiedTokens(labels, classified, Read(1, 1, 1))

    runtime = FakeRuntime({"critic": tag}, role_info={"critic": RoleInfo(labels, ("O",))})
    with Engine(runtime) as engine:
        score = engine.score(response, triples=FILMS, metrics=["critic"])
        critique = Critic(engine).critique(response, FILMS)
    assert [span.text for span in score.unsupported] == expected
    assert [mention.text for mention in critique.mentions] == expected


class Link:
    """A name that a graph knows."""

    def __init__(self, response: str, name: str) -> None:
        self.start = response.index(name)
        self.end = self.start + len(name)
        self.entity = name


@pytest.mark.parametrize(
    ("response", "flagged", "links", "expected"),
    [
        ("It was made by Ridley Scott.", ["idley"], [], ["Ridley Scott"]),
        ("It was made by Ridley Scott.", ["Scott"], ["Ridley Scott"], ["Ridley Scott"]),
        ("It was made by Ridley Scott.", ["by Ridley Scott."], [], ["Ridley Scott"]),
        ("Yes, Ridley Scott's best.", ["Ridley Scott's"], [], ["Ridley Scott"]),
        (
            "Tom Hanks and Meg Ryan play.",
            ["Tom Hanks and Meg Ryan"],
            ["Tom Hanks", "Meg Ryan"],
            ["Tom Hanks", "Meg Ryan"],
        ),
        ("Tom Hanks and Meg Ryan play.", ["Tom Hanks and Meg Ryan"], ["Tom Hanks"], ["Tom Hanks", "Meg Ryan"]),
        (
            "I saw Crouching Tiger, Hidden Dragon.",
            ["Tiger"],
            ["Crouching Tiger, Hidden Dragon"],
            ["Crouching Tiger, Hidden Dragon"],
        ),
        ("I saw The Sea of Monsters.", ["The Sea of Monsters"], [], ["The Sea of Monsters"]),
        ("It came out in 1980.", ["1980"], [], ["1980"]),
        ("It is science fiction.", ["science fiction"], [], ["science fiction"]),
        ("It is of the.", ["of the."], [], []),
        ("It is, well, fine.", [","], [], []),
        ("Sure Ridley Scott did.", ["Scott"], [], ["Ridley Scott"]),
        ("", [], [], []),
    ],
)
def test_flagged_pieces_become_whole_names(
    response: str, flagged: list[str], links: list[str], expected: list[str]
) -> None:
    mentions = find_mentions(response, tokens(response, *flagged), 0.5, [Link(response, name) for name in links])
    assert [mention.text for mention in mentions] == expected
    assert all(response[mention.start : mention.end] == mention.text for mention in mentions)
    assert [mention.entity for mention in mentions] == [name if name in links else None for name in expected]
