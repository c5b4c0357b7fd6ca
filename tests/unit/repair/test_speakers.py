"""What a response says about its speakers: of that no graph knows anything, so nothing of it is refused or repaired."""

from __future__ import annotations

import pytest

from groundwire.engine import Engine
from groundwire.repair import KnowledgeGraph, Refiner
from groundwire.repair.nph.speakers import speaks_of_speakers
from groundwire.repair.nph.statements import Text
from groundwire.repair.nph.support import list_families, may_be_placed
from groundwire.repair.nph.tokens import NameRange
from tests.support.graph_world import FILMS, world

GRAPH = KnowledgeGraph.from_triples([*FILMS, ("Louvre", "located_in", "Paris")])
ALIEN = ("Do you know Alien?",)


def read(sentence: str) -> Text:
    """Read a sentence with its name in brackets."""
    start, end = sentence.index("["), sentence.index("]") - 1
    return Text(sentence.replace("[", "").replace("]", ""), [NameRange(start, end, None)], list_families(GRAPH))


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("I saw it with my sister [Anna].", True),
        ("My friend [Anna] lent me her copy.", True),
        ("We went there at [Easter].", True),
        ("[Tom] and I love it.", True),
        ("Have you seen it on [Netflix]?", True),
        ("My very old friend [Anna] came.", True),
        ("I am from [Chicago].", True),
        ("It was shown in [Rome].", False),  # no speaker in it
        ("I liked it, but it was shown in [Rome].", False),
        ("I liked it. It was shown in [Rome].", False),
        ("I heard that it was shown in [Rome].", False),
        ("You say the place was near [Rome].", False),
        ("I loved his novel [Rome].", False),
        ("I loved her [Rome].", False),
        ("My guess is [Rome].", False),
        ("I met an author [Anna].", False),
        ("I lost my [Nikon] there.", True),
        ("We hiked up with [Jorge] and his dog.", True),
        ("We owe it to [Anna].", False),
        ("I have to thank [Anna] for it.", False),
        ("I adore what [Anna] did in it.", False),
        ("For me [Anna] invented it.", False),
        ("[Anna] gave us Dracula.", False),
        ("In my view [Anna] invented it.", False),
        ("I went to [Rome], where he was born.", False),
        ("I was in [Rome], where he was born.", False),
        ("We love it, and it begins in [Rome].", False),
        ("You find it in [Rome].", False),
        ("I like the film set in [Rome].", False),
        ("I agree with [Anna] being the author.", False),
        ("I read about it in [Anna]'s book.", False),
    ],
)
def test_a_clause_about_its_speakers(sentence: str, expected: bool) -> None:
    assert speaks_of_speakers(read(sentence), 0) is expected


@pytest.mark.parametrize(
    ("turn", "sentence", "expected"),
    [
        ("Louvre", "We visited it in [Lyon].", True),
        ("Alien", "We saw it in [Lyon].", False),
        ("Kate Winslet", "I loved her in [Lyon].", True),
        ("Alien", "I loved her in [Lyon].", False),
        ("Louvre", "We went with Jan to [Lyon].", False),
        ("Louvre", "We were happy in [Lyon].", False),
    ],
)
def test_a_place_or_a_work_that_the_graph_has_may_be_wrong(turn: str, sentence: str, expected: bool) -> None:
    assert may_be_placed(GRAPH, read(sentence), 0, [[turn]]) is expected


@pytest.mark.parametrize(
    ("response", "status"),
    [
        ("This is a joke. I like the film with Anna Smith.", "refined"),
        ("It stars Anna Smith, I mean.", "refined"),
        ("This is a joke. I sat with Anna Smith.", "unverifiable"),
        ("This is a joke. I sat with Kate Winslet.", "refused"),  # the graph knows her
        ("I sat with Anna Smith. Alien is a romance.", "refined"),
    ],
)
def test_names_of_the_speakers_life_are_unverifiable(response: str, status: str) -> None:
    with Engine(world()) as engine:
        refinement = Refiner(engine).refine(response, KnowledgeGraph.from_triples(FILMS), history=ALIEN)
    assert refinement.status == status, refinement.message
    assert refinement.before.mentions
    if status == "unverifiable":
        assert refinement.response == response
        assert "“Anna Smith”: what the response says about its speakers" in refinement.message
