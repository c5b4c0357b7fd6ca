"""Knowledge graphs in memory: what lies around an entity, and what kind of thing it is."""

from __future__ import annotations

import doctest
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundwire.engine import InvalidRequest, Triple
from groundwire.engine.text import normalization
from groundwire.repair import KnowledgeGraph, Linked, Subgraph
from groundwire.repair import kg as package
from tests.reference import graph as reference

FILMS = [
    Triple("Alien", "directed by", "Ridley Scott"),
    Triple("Alien", "starred actors", "Sigourney Weaver"),
    Triple("Aliens", "directed by", "James Cameron"),
    Triple("Aliens", "starred actors", "Sigourney Weaver"),
    Triple("Titanic", "directed by", "James Cameron"),
    Triple("Titanic", "starred actors", "Kate Winslet"),
]

small = st.builds(Triple, st.sampled_from("abcdefgh"), st.sampled_from("pqr"), st.sampled_from("abcdefgh"))
graphs = st.lists(small, min_size=1, max_size=40)


def films() -> KnowledgeGraph:
    return KnowledgeGraph.from_triples(FILMS)


@pytest.mark.parametrize("module", [package, normalization])
def test_the_examples_of_the_modules_hold(module: Any) -> None:
    results = doctest.testmod(module)
    assert results.attempted >= 2
    assert results.failed == 0


def test_what_a_graph_holds() -> None:
    graph = KnowledgeGraph.from_triples([*FILMS, ("Alien", "directed by", "Ridley Scott"), [" Alien ", "year", "1979"]])
    assert len(graph) == 7
    assert list(graph) == [*FILMS, Triple("Alien", "year", "1979")]
    assert graph.entities[:3] == ("Alien", "Ridley Scott", "Sigourney Weaver")
    assert graph.relations == ("directed by", "starred actors", "year")
    assert "Alien" in graph
    assert "alien" not in graph
    assert graph.degree("Alien") == 3
    assert (graph.problems, graph.problem_count) == ((), 0)
    assert repr(graph) == "KnowledgeGraph(7 triples, 8 entities, 3 relations)"


def test_an_inverse_predicate_is_kept_turned_round() -> None:
    graph = KnowledgeGraph.from_triples([("Ridley Scott", "~directed by", "Alien"), FILMS[0], ("a", "~", "b")])
    assert list(graph) == [FILMS[0], Triple("a", "~", "b")]


def test_neighbourhood_by_hand() -> None:
    graph = films()
    subgraph = graph.neighbourhood(["Alien"])
    assert subgraph == Subgraph(tuple(FILMS[:2]), ("Alien", "Ridley Scott", "Sigourney Weaver"), (0, 1, 1))
    two = graph.neighbourhood(["Alien"], hops=2)
    assert two.triples == (FILMS[0], FILMS[1], FILMS[3])
    assert two.entities == ("Alien", "Ridley Scott", "Sigourney Weaver", "Aliens")
    assert two.distance("Aliens") == 2
    with pytest.raises(InvalidRequest, match=r"'Titanic' is not among the 4 entities of this subgraph"):
        two.distance("Titanic")
    everything = graph.neighbourhood(["Alien", "Titanic", "Alien"], hops=9)
    assert set(everything.triples) == set(FILMS)
    assert everything.distance("James Cameron") == 1
    assert not everything.truncated


def test_the_edges_of_neighbourhood() -> None:
    graph = films()
    assert graph.neighbourhood([], hops=3) == Subgraph((), (), ())
    assert graph.neighbourhood(["Alien"], hops=0) == Subgraph((), ("Alien",), (0,))


def test_a_limit_leaves_hubs_for_last() -> None:
    """The star of a thousand triples gives way to the film of two."""
    hub = [Triple(f"film {number}", "country", "USA") for number in range(1000)]
    graph = KnowledgeGraph.from_triples([*hub, *FILMS])
    subgraph = graph.neighbourhood(["USA", "Alien"], limit=5)
    assert subgraph.triples == (FILMS[0], FILMS[1], *hub[:3])
    assert subgraph.truncated
    assert subgraph.entities == ("USA", "Alien", "film 0", "film 1", "film 2", "Ridley Scott", "Sigourney Weaver")
    assert not graph.neighbourhood(["Alien"], limit=2).truncated
    assert graph.neighbourhood(["Alien"], hops=2, limit=2).truncated
    assert graph.neighbourhood(["Alien"], hops=2, limit=2).triples == tuple(FILMS[:2])


@settings(deadline=None)
@given(graphs, st.data())
def test_neighbourhood_equals_its_reference(triples: list[Triple], data: st.DataObject) -> None:
    """Cycles, loops and repeated triples included."""
    graph = KnowledgeGraph.from_triples(triples)
    start = data.draw(st.lists(st.sampled_from(graph.entities), min_size=1, max_size=3, unique=True))
    hops, limit = data.draw(st.integers(0, 4)), data.draw(st.none() | st.integers(1, 12))
    subgraph = graph.neighbourhood(start, hops, limit)
    expected = reference.neighbourhood(list(dict.fromkeys(triples)), start, hops, limit)
    assert (list(subgraph.triples), list(zip(subgraph.entities, subgraph.hops, strict=True))) == (
        expected.triples,
        sorted(expected.distances.items(), key=lambda item: (item[1], _place(item[0], start, graph))),
    )
    assert subgraph.truncated == expected.truncated
    assert subgraph.distances == expected.distances
    assert all(subgraph.distance(name) == hops for name, hops in expected.distances.items())


def _place(name: str, start: list[str], graph: KnowledgeGraph) -> int:
    return start.index(name) if name in start else graph.entities.index(name)


@settings(deadline=None)
@given(graphs, st.data())
def test_pairs_equal_their_reference(triples: list[Triple], data: st.DataObject) -> None:
    graph = KnowledgeGraph.from_triples(triples)
    a, b = (data.draw(st.sampled_from(graph.entities)) for _ in range(2))
    unique = list(dict.fromkeys(triples))
    joining = [t for t in unique if (t.subject, t.object) in ((a, b), (b, a))]
    assert list(graph.triples_between(a, b)) == joining
    assert graph.triples_between(b, a) == graph.triples_between(a, b)
    assert graph.roles(a) == reference.roles(unique, a)
    assert graph.role_similarity(a, b) == pytest.approx(reference.role_similarity(unique, a, b))
    assert graph.role_similarity(a, b) == graph.role_similarity(b, a)
    assert graph.role_similarity(a, a) == pytest.approx(1)


def test_loops_and_cycles() -> None:
    triples = [("a", "likes", "a"), ("a", "likes", "b"), ("b", "likes", "c"), ("c", "likes", "a")]
    graph = KnowledgeGraph.from_triples(triples)
    assert graph.degree("a") == 3
    assert graph.triples_between("a", "a") == (Triple("a", "likes", "a"),)
    assert graph.roles("a") == {"subject:likes", "object:likes"}
    assert len(graph.neighbourhood(["a"], hops=100).triples) == 4


def test_roles_distinguish_people_from_films() -> None:
    graph = films()
    assert graph.role_similarity("Alien", "Titanic") == 1
    assert graph.role_similarity("Sigourney Weaver", "Kate Winslet") == 1
    assert graph.role_similarity("Alien", "Ridley Scott") == 0
    # Sharing a rare role says more than sharing a common one.
    more = [Triple(f"film {number}", "directed by", f"person {number}") for number in range(20)]
    graph = KnowledgeGraph.from_triples(
        [*more, Triple("x", "based on", "y"), Triple("film 0", "based on", "z"), Triple("x", "directed by", "w")]
    )
    assert graph.role_similarity("x", "film 0") > graph.role_similarity("x", "film 1") > 0.3


def test_an_empty_graph() -> None:
    graph = KnowledgeGraph.from_triples([])
    assert len(graph) == 0
    assert (graph.entities, graph.relations, list(graph)) == ((), (), [])
    assert graph.link("Alien was directed by Ridley Scott.") == ()
    assert graph.neighbourhood([], hops=2, limit=5) == Subgraph((), (), ())
    with pytest.raises(InvalidRequest, match="'Alien' is not one of the graph's 0 entities"):
        graph.neighbourhood(["Alien"])


@pytest.mark.parametrize(
    "ask",
    [
        lambda graph: graph.neighbourhood(["Alien", "alien"]),
        lambda graph: graph.roles("alien"),
        lambda graph: graph.degree("alien"),
        lambda graph: graph.role_similarity("Alien", "alien"),
        lambda graph: graph.triples_between("alien", "Alien"),
    ],
)
def test_an_entity_that_is_not_in_the_graph(ask: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"'alien' is not one of the graph's 7 entities.*link"):
        ask(films())


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda graph: graph.neighbourhood("Alien"), "entities is one string; pass a list"),
        (lambda graph: graph.neighbourhood([["Alien"]]), r"\['Alien'\] is not one of the graph's"),
        (lambda graph: graph.neighbourhood(["Alien"], -1), "hops is -1; allowed are whole numbers from 0"),
        (lambda graph: graph.neighbourhood(["Alien"], 1.0), r"hops is 1\.0"),
        (lambda graph: graph.neighbourhood(["Alien"], True), "hops is True"),
        (lambda graph: graph.neighbourhood(["Alien"], 1, 0), "limit is 0; allowed are whole numbers from 1"),
        (lambda graph: graph.neighbourhood(["Alien"], 1, "9"), "limit is '9'"),
        (lambda graph: graph.link(b"Alien"), "text is bytes; pass a string"),
    ],
)
def test_wrong_arguments(ask: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        ask(films())


@pytest.mark.parametrize(
    ("triple", "message"),
    [
        (("a", "b"), r"triples\[1\] is \('a', 'b'\); pass Triple"),
        ("abc", r"triples\[1\] is 'abc'; pass Triple"),
        (("a", "b", 3), r"triples\[1\]: the object is int; it must be a string"),
        ((None, "b", "c"), r"triples\[1\]: the subject is NoneType"),
        ((["a"], "b", "c"), r"triples\[1\]: the subject is list"),
        (("a", {}, "c"), r"triples\[1\]: the predicate is dict"),
        (("a", " \n", "c"), r"triples\[1\]: the predicate is empty"),
        (Triple("", "b", "c"), r"triples\[1\]: the subject is empty"),
        (("a", "b", "x" * 1001), r"the object has 1,001 characters; allowed are 1,000"),
        (("a", "b\0", "c"), "the predicate has a NUL character"),
        (("a", "b", "\ud800"), "the object has a NUL character or a lone surrogate"),
    ],
)
def test_triples_that_are_none(triple: Any, message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        KnowledgeGraph.from_triples([FILMS[0], triple])


def test_the_longest_name_is_kept() -> None:
    name = "x" * 1000
    graph = KnowledgeGraph.from_triples([("a", "b", name)])
    assert graph.neighbourhood([name]).entities == (name, "a")
    assert graph.link(f"({name})") == (Linked(1, 1001, name, "exact"),)


def test_records_survive_json() -> None:
    subgraph = films().neighbourhood(["Alien"], hops=2, limit=2)
    assert msgspec.json.decode(msgspec.json.encode(subgraph), type=Subgraph) == subgraph
