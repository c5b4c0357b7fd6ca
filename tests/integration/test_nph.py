"""Critique and repair by the embedded bundle, on the example dialogues; in tests/engine/ by a world made by hand."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from bench.quality import refine
from bench.quality.pairs import read_pairs
from groundwire.cli import app
from groundwire.engine import Engine, LoadOptions
from groundwire.repair import Critic, KnowledgeGraph, Refinement, RefineOptions, Refiner
from groundwire.repair.nph.context import build_context
from groundwire.runtime.bundles.bundle import Bundle, embedded

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DIALOGUES = EXAMPLES / "graph_dialogues.jsonl"
ROWS = [json.loads(line) for line in DIALOGUES.read_text(encoding="utf-8").splitlines()]
FILMS = KnowledgeGraph.load(EXAMPLES / "films.tsv")
NEEDS_BUNDLE = pytest.mark.skipif("nph" not in embedded(), reason="this checkout holds no trained bundle 'nph'")


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.load("nph", "cpu") as loaded:
        yield loaded


def test_the_examples_hold_what_they_promise() -> None:
    """Every expected repair rests on the graph, and what is to stay does."""
    assert FILMS.problems == ()
    assert 12 <= len(ROWS) <= 20
    assert len({row["id"] for row in ROWS}) == len(ROWS)
    for row in ROWS:
        stays = row["id"].startswith(("right", "chit-chat"))
        assert (row["expected"] == [row["response"]]) is stays, row["id"]
        for text in row["expected"]:
            named = [link.entity for link in FILMS.link(text)]
            if not row["id"].startswith("chit-chat") and "It was" not in text:
                assert len(named) >= 2, text
                assert any(FILMS.triples_between(named[0], other) for other in named[1:]), text


@NEEDS_BUNDLE
def test_two_names_that_the_critic_runs_together_are_two_mentions(engine: Engine) -> None:
    """The paper's table 1, with the triples of what the history says."""
    history = (
        "Do you know the book The Witches?",
        "The Witches is written by Roald Dahl. He also wrote The Champion of the World.",
    )
    titles = ("Charlie and the Chocolate Factory", "The BFG", "You Only Live Twice", "James and the Giant Peach")
    titles += ("The Witches", "The Champion of the World")
    triples = [(title, "written by", "Roald Dahl") for title in titles]
    triples += [("Charlie and the Chocolate Factory", "has genre", "Fantasy")]
    triples += [("Tales of the Unexpected", "TV regular appearance", "Roald Dahl")]
    response = "Yes he did. He also wrote The Time Machine and The Invisible Man."
    critique = Critic(engine).critique(response, triples, history=history)
    assert [mention.text for mention in critique.mentions] == ["The Time Machine", "The Invisible Man"]
    refinement = Refiner(engine).refine(response, triples, history=history)
    chosen = [change.chosen.entity for change in refinement.changes]
    assert refinement.accepted
    assert len(set(chosen)) == 2
    assert set(chosen) < {*titles} - {"The Witches", "The Champion of the World"}, "two other works of his"


DAHL = [
    (title, "written by", "Roald Dahl") for title in ("The Witches", "The BFG", "Matilda", "The Champion of the World")
]
PARENTS = [("Meet the Parents", "produced by", "Jay Roach"), ("Meet the Parents", "starred actors", "Ben Stiller")]
ASHER = [("Thirteen Reasons Why", "written by", "Jay Asher"), ("Thirteen Reasons Why", "genre", "Young-adult fiction")]


@NEEDS_BUNDLE
@pytest.mark.parametrize(
    ("history", "response", "triples", "forbidden"),
    [
        *(
            ("Do you know the book The Witches?", response, DAHL, "wrote Roald Dahl")
            for response in (
                "Yes he did. He also wrote The Time Machine and The Invisible Man.",
                "He also wrote The Time Machine.",
                "Its author wrote The Time Machine too.",
                "The author of The Witches also wrote The Time Machine.",
                "Yes, he wrote The Invisible Man as well.",
            )
        ),
        ("Meet the Parents?", "Meet the Parents produced Wes Anderson.", PARENTS, "produced Jay Roach"),
        ("Something by Jay Asher?", "A book called Gone Girl by Jay Asher.", ASHER, "Young-adult fiction by"),
    ],
)
def test_the_wrong_end_of_a_triple_is_never_said(
    engine: Engine, history: str, response: str, triples: list[tuple[str, str, str]], forbidden: str
) -> None:
    refinement = Refiner(engine).refine(response, triples, history=(history,))
    assert forbidden not in refinement.response
    assert refinement.status == ("refused" if triples is PARENTS else "refined"), refinement.message
    masked = Refiner(engine).refine(response, triples, history=(history,), options=RefineOptions(mask_all=True))
    assert forbidden not in masked.response


@NEEDS_BUNDLE
def test_no_dialogue_of_the_development_half_becomes_a_falsehood(engine: Engine) -> None:
    dialogues = read_pairs(refine.FOLDER / "development.jsonl", refine.Dialogue)
    outcomes = refine.run(dialogues, engine, RefineOptions(), show=False)
    assert sum(count["false"] + count["false, accepted"] for count in outcomes.values()) == 0
    assert outcomes["repairable"]["repaired"] >= 0.9 * outcomes["repairable"].total()
    assert outcomes["unrepairable"]["refused"] >= 0.9 * outcomes["unrepairable"].total()


@pytest.mark.skipif(not {"nph", "compact"} <= set(embedded()), reason="this checkout lacks a trained bundle")
def test_a_title_that_the_graph_does_not_know_is_less_likely_a_person(engine: Engine) -> None:
    history = ("Do you know The Witches?", "The Witches is written by Roald Dahl.")
    titles = ("The Witches", "The BFG", "James and the Giant Peach")
    triples = [(title, "written by", "Roald Dahl") for title in titles]

    def probability_of_author(loaded: Engine) -> float:
        (change,) = (
            Refiner(loaded)
            .refine("He is known for The Time Machine.", triples, history=history, options=RefineOptions(veto=False))
            .changes
        )
        return {item.entity: item.probability for item in (change.chosen, *change.runners_up)}["Roald Dahl"]

    with Engine.load("nph", "cpu", extra=["compact"]) as both:
        assert probability_of_author(both) < 0.5 * probability_of_author(engine)


@NEEDS_BUNDLE
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["id"])
def test_the_examples_are_repaired_with_their_reason(engine: Engine, row: dict[str, object]) -> None:
    response, history = str(row["response"]), tuple(map(str, row["history"]))  # type: ignore[call-overload]
    refinement = Refiner(engine).refine(response, FILMS, history=history)
    assert refinement.response in row["expected"], (refinement.before.mentions, refinement.changes, refinement.message)  # type: ignore[operator]
    if refinement.response == response:
        assert refinement.status in ("clean", "no_context")
        return
    assert refinement.status == "refined"
    for change in refinement.changes:
        assert change.triple in tuple(FILMS)
        assert change.chosen.entity in (change.triple.subject, change.triple.object)
        assert refinement.response[change.new_start : change.new_end] == change.new
    assert Refinement.from_json(refinement.to_json()) == refinement


@NEEDS_BUNDLE
def test_the_critic_accepts_most_repairs(engine: Engine) -> None:
    refinements = [Refiner(engine).refine(row["response"], FILMS, history=row["history"]) for row in ROWS]
    accepted = [refinement.accepted for refinement in refinements if refinement.status == "refined"]
    assert sum(map(bool, accepted)) >= 0.8 * len(accepted) > 0


@NEEDS_BUNDLE
def test_the_command_shows_the_repairs() -> None:
    command = f"refine {shlex.quote(str(DIALOGUES))} --graph {shlex.quote(str(EXAMPLES / 'films.tsv'))}"
    result = CliRunner().invoke(app, [*shlex.split(command), "--table"])
    assert result.exit_code == 0, result.output
    shown = " ".join(result.output.replace("│", " ").split())
    assert "⟦Steven Spielberg⟧" in shown
    assert "⟦James Cameron⟧" in shown
    assert "directed by" in shown
    rows = [json.loads(line) for line in CliRunner().invoke(app, [*shlex.split(command), "--json"]).stdout.splitlines()]
    assert [row["id"] for row in rows] == [row["id"] for row in ROWS]
    assert rows[0]["refinement"]["changes"][0]["chosen"]["path"] == [
        {"subject": "Titanic", "predicate": "directed_by", "object": "James Cameron"}
    ]


@NEEDS_BUNDLE
def test_a_repair_does_not_depend_on_what_else_is_asked(engine: Engine) -> None:
    alone = [Refiner(engine).refine(row["response"], FILMS, history=row["history"]).response for row in ROWS]
    with Engine.load("nph", "cpu", options=LoadOptions(cache_bytes=0)) as other:
        again = [
            Refiner(other).refine(row["response"], FILMS, history=row["history"]).response for row in reversed(ROWS)
        ]
    assert alone == again[::-1]


@NEEDS_BUNDLE
def test_triples_do_as_well_as_a_graph(engine: Engine) -> None:
    row = ROWS[0]
    near = build_context(FILMS, row["response"], tuple(row["history"]), 1).triples
    refinement = Refiner(engine).refine(row["response"], near, history=row["history"])
    assert refinement.response in row["expected"]


@NEEDS_BUNDLE
def test_the_bundle_is_small_and_whole() -> None:
    bundle = Bundle.open("nph")
    bundle.verify()
    assert {"critic", "retriever"} <= set(bundle.manifest.roles)
    assert bundle.manifest.size <= 25e6


@NEEDS_BUNDLE
def test_both_bundles_work_in_one_engine() -> None:
    with Engine.load("compact", "cpu", extra=["nph"]) as both:
        triples = [("Alien", "directed_by", "Ridley Scott")]
        score = both.score("Alien was directed by James Cameron.", triples=triples, metrics=["critic", "nli", "feqa"])
    assert {result.status for result in score.metrics.values()} == {"scored"}
    assert score.value is not None
    assert score.value < 0.5
    assert "bundle:compact+nph" in score.signature
