"""Clauses that deny, ask, suppose, compare or hedge: nothing is looked up there, and nothing is replaced."""

from __future__ import annotations

import re
from typing import Any

import pytest

from groundwire.engine import Engine
from groundwire.repair import Critic, KnowledgeGraph, Refiner
from groundwire.repair.nph.clauses import Clauses
from groundwire.repair.nph.tokens import NameRange
from groundwire.runtime.calls import ClassifiedToken, ClassifiedTokens, ClassifyTokens, Read
from tests.support.graph_world import LABELS, world

GRAPH = KnowledgeGraph.from_triples(
    [
        ("The BFG", "written_by", "Roald Dahl"),
        ("Matilda", "written_by", "Roald Dahl"),
        ("Alien", "directed_by", "Ridley Scott"),
        ("Aliens", "directed_by", "James Cameron"),
        ("Alien", "release_year", "1979"),
        ("Aliens", "release_year", "1986"),
        ("Inception", "directed_by", "Christopher Nolan"),
        ("Dracula", "written_by", "Bram Stoker"),
        ("Frankenstein", "written_by", "Mary Shelley"),
        ("Never Let Me Go", "written_by", "Kazuo Ishiguro"),
    ]
)
HISTORY = ("Do you know Dracula, Alien, Aliens, Inception and Never Let Me Go?",)
UNSTATED = [
    "Roald Dahl did not write Alien.",
    "Mary Shelley didn't write Dracula.",
    "Mary Shelley didnt write Dracula.",
    "Dracula was not written by Mary Shelley.",
    "Dracula was never written by Bram Stoker.",
    "Alien was not released in 1986.",
    "Alien was released before 1986.",
    "Alien was released by the end of May 1986.",
    "If Mary Shelley had written Dracula, it would be sadder.",
    "Mary Shelley might have written a better Dracula.",
    "Was Aliens directed by Ridley Scott?",
    "Inception was almost directed by Ridley Scott.",
    "Ridley Scott refused to direct Inception.",
    "Neither Ridley Scott nor James Cameron directed Inception.",
    "Unlike Alien, Aliens was directed by James Cameron.",
    "I thought Ridley Scott directed Aliens.",
    # of the same kinds, in other words
    "It’s a myth that Mary Shelley wrote Dracula.",
    "None of us believes that Mary Shelley wrote Dracula.",
    "Ridley Scott should have directed Inception.",
    "Inception was directed by Christopher Nolan instead of Ridley Scott.",
    "Everyone except Ridley Scott directed Inception.",
    "No one but Ridley Scott directed Inception.",
    "Inception was all but directed by Ridley Scott.",
    "Alien has been in cinemas since 1986.",
    "You mean that Ridley Scott directed Inception, right?!",
    "Perhaps Ridley Scott directed Inception.",
    "Inception could be directed by Ridley Scott.",
    "Ridley Scott wouldn’t have directed Inception without help.",
    "Inception was directed by Ridley Scott or James Cameron.",
    "Dracula is great. It was not written by Mary Shelley.",
]
STATED = [
    ("Dracula was written by Mary Shelley.", "Dracula was written by Bram Stoker."),
    ("No, Dracula was written by Mary Shelley.", "No, Dracula was written by Bram Stoker."),
    ("Not quite, Dracula was written by Mary Shelley.", "Not quite, Dracula was written by Bram Stoker."),
    ("I'm not sure, but Alien was released in 1986.", "I'm not sure, but Alien was released in 1979."),
    ("It is no comedy; Alien was released in 1986.", "It is no comedy; Alien was released in 1979."),
    ("Right? Dracula was written by Mary Shelley.", "Right? Dracula was written by Bram Stoker."),
    ("Never Let Me Go was written by Mary Shelley.", "Never Let Me Go was written by Kazuo Ishiguro."),
    ("Alien was released in 1986, directed by Ridley Scott.", "Alien was released in 1979, directed by Ridley Scott."),
]


def make_critic(*, flags: bool) -> Any:
    """A critic that flags every name and "madonna", or none."""

    def answer(call: ClassifyTokens) -> ClassifiedTokens:
        names = [link for link in GRAPH.link(call.text) if flags]
        tokens = tuple(
            ClassifiedToken(
                *word.span(),
                (0.1, 0.8, 0.1)
                if (flags and word[0] == "madonna") or any(name.start <= word.start() < name.end for name in names)
                else (0.9, 0.05, 0.05),
            )
            for word in re.finditer(r"\w+", call.text)
        )
        return ClassifiedTokens(LABELS, tokens, Read(1, 1, 1))

    return answer


@pytest.mark.parametrize("response", UNSTATED)
def test_what_is_not_stated_is_neither_flagged_nor_confirmed_nor_replaced(response: str) -> None:
    with Engine(world(critic=make_critic(flags=False))) as engine:
        assert Critic(engine).critique(response, GRAPH, history=HISTORY).mentions == ()
        assert Refiner(engine).refine(response, GRAPH, history=HISTORY).status == "clean"
    with Engine(world(critic=make_critic(flags=True))) as engine:
        refinement = Refiner(engine).refine(response, GRAPH, history=HISTORY)
    assert (refinement.status, refinement.response) == ("refused", response)
    assert {mention.start for mention in refinement.unresolved} == {link.start for link in GRAPH.link(response)}


@pytest.mark.parametrize(
    "response", ["Inception was never filmed by madonna.", "Inception was set to music by madonna."]
)
def test_what_the_critic_flags_in_lower_case_is_not_dropped(response: str) -> None:
    with Engine(world(critic=make_critic(flags=True))) as engine:
        critique = Critic(engine).critique(response, GRAPH, history=HISTORY)
    assert [mention.text for mention in critique.mentions] == ["Inception", "madonna"]


@pytest.mark.parametrize(
    "response", ["Ridley Scott was never directed by Alien.", "Was Ridley Scott directed by Alien?"]
)
@pytest.mark.parametrize("before", ["", "Alien was directed by James Cameron. "])
def test_names_are_not_exchanged_where_nothing_is_stated(response: str, before: str) -> None:
    with Engine(world()) as engine:
        refinement = Refiner(engine).refine(before + response, GRAPH, history=("Hi!",))
    assert refinement.response.endswith(response)


def test_a_name_in_such_a_clause_is_not_confirmed_by_what_is_stated_of_another() -> None:
    response = "It was directed by Alien, but not by Ridley Scott."
    with Engine(world(critic=make_critic(flags=True))) as engine:
        refinement = Refiner(engine).refine(response, GRAPH, history=("Do you know Alien?",))
    assert (refinement.status, refinement.response) == ("refused", response)


@pytest.mark.parametrize(("response", "repaired"), STATED)
def test_what_is_stated_beside_such_words_is_repaired(response: str, repaired: str) -> None:
    with Engine(world(critic=make_critic(flags=False))) as engine:
        refinement = Refiner(engine).refine(response, GRAPH, history=HISTORY)
    assert (refinement.status, refinement.response) == ("refined", repaired)


@pytest.mark.parametrize(
    ("text", "name", "entity", "states"),
    [
        ("He wrote Never Say No.", "Never Say No", None, True),
        ("Never Say No is his.", "Never Say No", None, False),  # where a sentence begins, a capital shows no name
        ("he wrote never say no.", "never say no", "Never Say No", True),
        ("it is not his.", "not", "Not", False),
        ("It is over 21 metres tall.", "21 metres", "21 metres", False),
        ("Written by 20th Century Writers.", "20th Century Writers", None, True),
    ],
)
def test_words_of_names_deny_nothing(text: str, name: str, entity: str | None, states: bool) -> None:
    start = text.index(name)
    assert Clauses(text, [NameRange(start, start + len(name), entity)]).states(start) is states
