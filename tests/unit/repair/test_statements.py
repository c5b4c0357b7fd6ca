"""What is read of a response, and what the graph has for it, on graphs checked by hand."""

from __future__ import annotations

import pytest

from groundwire.repair import KnowledgeGraph
from groundwire.repair.nph.relations import FAMILIES, read_predicate
from groundwire.repair.nph.statements import Text
from groundwire.repair.nph.support import Support, find_support, list_families, list_mentioned
from groundwire.repair.nph.tokens import MAX_NAMES, MAX_TOKENS, NameRange

GRAPH = KnowledgeGraph.from_triples(
    [
        ("The Witches", "written by", "Roald Dahl"),
        ("Roald Dahl", "wrote", "Matilda"),
        ("The BFG", "author", "Roald Dahl"),
        ("The Witches", "illustrated_by", "Quentin Blake"),
        ("The Witches", "publication_year", "1983"),
        ("Roald Dahl", "born_in", "Llandaff"),
        ("Quentin Blake", "born_in", "Sidcup"),
        ("Meet the Parents", "produced by", "Jay Roach"),
        ("Meet the Fockers", "sequel_of", "Meet the Parents"),
        ("Meet the Parents", "starring", "Ben Stiller"),
        ("Meet the Parents", "starring", "Robert De Niro"),
        ("Meet the Fockers", "starring", "Ben Stiller"),
        ("Meet the Fockers", "actor", "Dustin Hoffman"),
        ("Meet the Parents", "has_genre", "Comedy"),
        ("The Witches", "has_genre", "Dark fantasy"),
        ("France", "capital", "Paris"),
        ("Vienna", "capital_of", "Austria"),
        ("Paris", "lies_on", "Seine"),
        ("Louvre", "located_in", "Paris"),
        ("Louvre", "height", "21 metres"),
    ]
)
WITCHES = ("Do you know The Witches?",)
PARENTS = ("Seen Meet the Parents?",)


def look_up(response: str, history: tuple[str, ...]) -> tuple[set[str], bool]:
    """What the graph has for the name Zorro of a response, and whether anything is read of Zorro."""
    start = response.index("Zorro")
    names = [NameRange(link.start, link.end, link.entity) for link in GRAPH.link(response)]
    text = Text(response, sorted([*names, NameRange(start, start + len("Zorro"), None)]), list_families(GRAPH))
    turns = [list_mentioned(GRAPH, turn, GRAPH.link(turn)) for turn in reversed(history)]
    number = next(number for number, name in enumerate(text.names) if name.entity is None)
    support = find_support(GRAPH, text, number, turns)
    return set(support.entities), support.is_read


def find_name(response: str, name: str) -> Support:
    """What the graph has for a name of its own in a response without a history."""
    links = GRAPH.link(response)
    text = Text(response, [NameRange(link.start, link.end, link.entity) for link in links], list_families(GRAPH))
    number = next(number for number in range(len(links)) if text.name_text(number) == name)
    return find_support(GRAPH, text, number, ())


@pytest.mark.parametrize(
    ("response", "history", "entities"),
    [
        # what somebody wrote is a book, and whom it was written by a person
        ("He also wrote Zorro.", WITCHES, {"Matilda", "The BFG"}),
        ("Its author wrote Zorro too.", WITCHES, {"Matilda", "The BFG"}),
        ("The author of The Witches also wrote Zorro.", (), {"Matilda", "The BFG"}),
        ("It was written by Zorro.", WITCHES, {"Roald Dahl"}),
        ("Zorro wrote The Witches.", (), {"Roald Dahl"}),
        ("Zorro was written by Roald Dahl.", (), {"The Witches", "Matilda", "The BFG"}),
        ("I like a book called Zorro by Roald Dahl.", (), {"The Witches", "Matilda", "The BFG"}),
        ("I love Zorro, which Roald Dahl wrote.", (), {"The Witches", "Matilda", "The BFG"}),
        ("There is Zorro. Roald Dahl wrote that one.", (), {"The Witches", "Matilda", "The BFG"}),
        ("Meet the Parents produced Zorro.", (), set()),
        ("Zorro produced Meet the Parents.", (), {"Jay Roach"}),
        ("Meet the Parents is by Zorro.", (), set()),
        # a list, and a second verb
        ("It stars Ben Stiller and Zorro.", PARENTS, {"Robert De Niro"}),
        ("Zorro and Ben Stiller are in it.", PARENTS, {"Robert De Niro"}),
        ("Jay Roach produced it, and Zorro stars in it.", PARENTS, {"Ben Stiller", "Robert De Niro"}),
        ("Robert De Niro stars in Zorro.", (), {"Meet the Parents"}),
        # what a noun names, and what it is of
        ("Paris is the capital of Zorro.", (), {"France"}),
        ("The capital of Austria is Zorro.", (), {"Vienna"}),
        ("Its sequel is Zorro.", PARENTS, {"Meet the Fockers"}),
        ("It is the sequel to Zorro.", ("Meet the Fockers?",), {"Meet the Parents"}),
        ("Meet the Parents was followed by Zorro.", (), {"Meet the Fockers"}),
        # prepositions, numbers, kinds
        ("Roald Dahl was born in Zorro.", (), {"Llandaff"}),
        ("Paris lies on the Zorro.", (), {"Seine"}),
        ("The Louvre is in Zorro.", (), {"Paris"}),
        ("The Louvre is Zorro tall.", (), {"21 metres"}),
        ("Meet the Parents is a Zorro.", (), {"Comedy"}),
        # who is meant
        ("He was born in Zorro.", ("I adore the illustrator of The Witches.",), {"Sidcup"}),
        ("He was born in Zorro.", ("Roald Dahl?", "And Quentin Blake?"), {"Sidcup"}),
        (
            "It stars Zorro.",
            ("Seen Meet the Parents?", "And the Louvre, how tall is it?"),
            {"Ben Stiller", "Robert De Niro"},
        ),
        ("It was illustrated by Zorro.", ("The Witches?", "No, Matilda."), set()),
    ],
)
def test_the_end_of_the_relation_says_what_may_stand_there(
    response: str, history: tuple[str, ...], entities: set[str]
) -> None:
    assert look_up(response, history) == (entities, True)


@pytest.mark.parametrize(
    ("response", "name", "contradicted"),
    [
        ("Roald Dahl wrote the dark fantasy The Witches.", "dark fantasy", False),
        ("The Witches is a dark fantasy written by Roald Dahl.", "dark fantasy", False),
        ("Ben Stiller stars in the comedy Meet the Parents.", "comedy", False),
        ("The comedy stars Ben Stiller.", "comedy", False),
        ("Meet the Parents is a dark fantasy.", "dark fantasy", True),
        ("The Witches is a comedy by Roald Dahl.", "comedy", True),
        ("the witches was written by jay roach.", "jay roach", True),
        ("Matilda stars in Meet the Parents.", "Matilda", True),
    ],
)
def test_a_common_noun_is_contradicted_as_a_kind_alone(response: str, name: str, contradicted: bool) -> None:
    assert find_name(response, name).contradicted is contradicted


@pytest.mark.parametrize(
    ("response", "confirmed"),
    [
        ("Dustin Hoffman starred in Meet the Fockers.", True),
        ("Meet the Fockers stars Dustin Hoffman.", True),
        ("Meet the Fockers starred in Dustin Hoffman.", False),
        ("Dustin Hoffman stars Meet the Fockers.", False),
    ],
)
def test_who_acts_in_something_is_a_person(response: str, confirmed: bool) -> None:
    for name in ("Meet the Fockers", "Dustin Hoffman"):
        assert bool(find_name(response, name).own_path) is confirmed


@pytest.mark.parametrize(
    "response",
    [
        "He speaks of Zorro.",
        "Zorro is wonderful.",
        "Roald Dahl wrote it and is a graduate of Zorro.",
        "You mean Zorro?",
    ],
)
def test_what_is_not_understood_is_not_read(response: str) -> None:
    assert look_up(response, WITCHES) == (set(), False)


def test_texts_beyond_the_limits_are_not_read() -> None:
    few, many = ("It was written by Roald Dahl. " * count for count in (MAX_NAMES - 2, MAX_NAMES - 1))
    assert look_up(f"{few}Paris lies on the Zorro.", ()) == ({"Seine"}, True)
    assert look_up(f"{many}Paris lies on the Zorro.", ()) == (set(), False)
    assert look_up("Paris" + " really" * MAX_TOKENS + " lies on the Zorro.", ()) == (set(), False)
    assert look_up("Paris" + " really" * (MAX_TOKENS // 2) + " lies on the Zorro.", ()) == ({"Seine"}, True)


@pytest.mark.parametrize(
    ("predicate", "family", "subject"),
    [
        ("written_by", "write", "first"),
        ("bookAuthor", "write", "first"),
        ("author of", "write", "second"),
        ("wrote", "write", "second"),
        ("/film/film/directed_by", "direct", "first"),
        ("starred_actors", "star", "first"),
        ("acted in", "star", "second"),
        ("release year", "release", "first"),
        ("place of birth", "bear", "first"),
        ("follows", "sequel", "second"),
        ("prequel", "sequel", "second"),
        ("commissioned", "commission", "second"),
        ("is_a", "genre", "first"),
    ],
)
def test_a_predicate_says_which_end_its_subject_is(predicate: str, family: str, subject: str) -> None:
    assert {(fact.relation.family, fact.subject) for fact in read_predicate(predicate)} == {(family, subject)}


def test_predicates_without_a_direction_are_not_read() -> None:
    assert read_predicate("award won") == ()
    assert "write" in FAMILIES
