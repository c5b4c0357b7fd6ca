"""Mentions of entities in texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from groundwire.engine import InvalidRequest
from groundwire.repair import KnowledgeGraph
from groundwire.repair.kg.normalization import normalize_words


def graph_of(*names: str, aliases: Mapping[str, Sequence[str]] | None = None) -> KnowledgeGraph:
    """A graph of these entities, in their order."""
    return KnowledgeGraph.from_triples([(name, "is", name) for name in names], aliases=aliases)


def linked(graph: KnowledgeGraph, text: str) -> list[tuple[str, str, str]]:
    return [(text[link.start : link.end], link.entity, link.how) for link in graph.link(text)]


@pytest.mark.parametrize(
    ("name", "text", "mention", "how"),
    [
        ("Alien", "I saw Alien twice", "Alien", "exact"),
        ("Alien", "I saw ALIEN.", "ALIEN", "normalised"),
        ("Alien", "Alien's director", "Alien", "exact"),
        ("Alien", "(alien)", "alien", "normalised"),
        # accents and Unicode forms, in either of the two
        ("Amélie", "I liked Amelie!", "Amelie", "normalised"),
        ("Amelie", "AMÉLIE", "AMÉLIE", "normalised"),
        ("Am\u00e9lie", "Ame\u0301lie", "Ame\u0301lie", "normalised"),
        ("Ame\u0301lie", "Am\u00e9lie", "Am\u00e9lie", "normalised"),
        ("Bjørn Ærø", "bjorn aero", "bjorn aero", "normalised"),
        ("Straße", "STRASSE", "STRASSE", "normalised"),
        ("İstanbul", "istanbul", "istanbul", "normalised"),
        ("Alien", "Ａｌｉｅｎ", "Ａｌｉｅｎ", "normalised"),
        ("Baﬄe", "baffle", "baffle", "normalised"),
        ("Alien", "al\u00adien", "al\u00adien", "normalised"),
        # punctuation
        ("Spider-Man", "the spider man film", "spider man", "normalised"),
        ("Spider-Man", "Spiderman", "Spiderman", "normalised"),
        ("Spiderman", "Spider-Man", "Spider-Man", "normalised"),
        ("Alien: Covenant", "Alien Covenant", "Alien Covenant", "normalised"),
        ("Alien Covenant", "Alien – Covenant", "Alien – Covenant", "normalised"),
        ("Paris, Texas", "Paris, Texas is good", "Paris, Texas", "exact"),
        ("Paris, Texas", "paris texas", "paris texas", "normalised"),
        ("Schindler's List", "Schindler’s List", "Schindler’s List", "normalised"),
        ("Schindler's List", "Schindlers List", "Schindlers List", "normalised"),
        ("Howards End", "Howard's End", "Howard's End", "normalised"),
        ("U.S.A.", "the USA today", "USA", "normalised"),
        ("USA", "U.S.A", "U.S.A", "normalised"),
        ("J. R. R. Tolkien", "by J.R.R. Tolkien", "J.R.R. Tolkien", "normalised"),
        ("Dr. Strangelove", "Dr Strangelove", "Dr Strangelove", "normalised"),
        ("Dr Strangelove", "Dr. Strangelove", "Dr. Strangelove", "normalised"),
        ("Who Censored? The Answer", "who censored? the answer", "who censored? the answer", "normalised"),
        ("Fast & Furious", "fast and furious", "fast and furious", "normalised"),
        ("Fast and Furious", "Fast&Furious", "Fast&Furious", "normalised"),
        ("Barack_Obama", "Barack Obama", "Barack Obama", "normalised"),
        ("(500) Days of Summer", "I saw (500) Days of Summer", "(500) Days of Summer", "exact"),
        ("(500) Days of Summer", "I saw 500 days of summer", "500 days of summer", "normalised"),
        ("Airplane!", "Airplane! is a film", "Airplane!", "exact"),
        ("Airplane!", "an airplane", "airplane", "normalised"),
        ("New York", "New\nYork", "New\nYork", "normalised"),
        # articles
        ("The Godfather", "the godfather", "the godfather", "normalised"),
        ("The Godfather", "Is Godfather good?", "Godfather", "normalised"),
        ("The Fifth Element", "fifth element", "fifth element", "normalised"),
        ("Beatles", "The Beatles", "Beatles", "exact"),
        ("The X-Files", "xfiles", "xfiles", "normalised"),
        # other scripts
        ("Чужой", "фильм ЧУЖОЙ снял", "ЧУЖОЙ", "normalised"),
        ("Ελλάδα", "ΕΛΛΆΔΑ", "ΕΛΛΆΔΑ", "normalised"),
        ("黑客帝国", "我喜欢黑客帝国。", "黑客帝国", "exact"),
        ("となりのトトロ", "映画となりのトトロが好き", "となりのトトロ", "exact"),
        ("Alien", "我看了Alien吧", "Alien", "exact"),
        ("กรุงเทพ", "ไปกรุงเทพกัน", "กรุงเทพ", "exact"),
        ("हिन्दी", "यह हिन्दी है", "हिन्दी", "exact"),
        ("서울", "서울 시", "서울", "exact"),
        ("القاهرة", "في القاهرة اليوم", "القاهرة", "exact"),
    ],
)
def test_one_mention(name: str, text: str, mention: str, how: str) -> None:
    assert linked(graph_of(name), text) == [(mention, name, how)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Alien", "aliens and alienation"),
        ("Aliens", "Alien's director"),
        ("art", "artist"),
        ("éa", "e\u0301ab"),
        # the end of a sentence, an empty line, and punctuation that the name does not have
        ("Alien Covenant", "I saw Alien. Covenant was better."),
        ("Alien Covenant", "Did you see Alien? Covenant was better."),
        ("New York", "It is new.\n\nYork is old."),
        ("New York", "new\n\nYork"),
        ("New York", "new (York)"),
        ("Paris Texas", "from Paris, Texas"),
        # function words, and letters that are left of contractions
        ("The Who", "the who"),
        ("The Who", "who is that"),
        ("The Watch", "I watch it"),
        ("The Watch", "Watch it"),
        ("It", "is it good"),
        ("It", "It is good. It is"),
        ("It", 'He said, "It is fine."'),
        ("M", "I'm here"),
        ("Don", "I don't"),
        # names without a letter or digit, and other scripts
        ("!!!", "Wow!!!"),
        ("★", "★★★"),
        ("Alien", "Чужой"),
        ("Alien", "Аlien"),  # a Cyrillic А
        ("エイ", "エイリアン"),
        ("Βουλή", "boule"),
        ("й", "и"),
        ("Alien", ""),
        ("Alien", " \n"),
    ],
)
def test_no_mention(name: str, text: str) -> None:
    assert linked(graph_of(name), text) == []


@pytest.mark.parametrize(
    ("name", "text", "mention"),
    [
        ("The Who", "songs of The Who", "The Who"),
        ("The Who", "The Who played", "The Who"),
        ("It", "I saw It yesterday", "It"),
        ("It", "“It” is a film", "It"),
        ("M", "Lang's M is old", "M"),
        ("US", "US films", "US"),
    ],
)
def test_function_words_count_letter_for_letter(name: str, text: str, mention: str) -> None:
    assert linked(graph_of(name), text) == [(mention, name, "exact")]


def test_of_overlapping_mentions_the_longest_counts() -> None:
    graph = graph_of("New York", "New York Times", "Times Square", "York", "Square Garden of Delight")
    assert linked(graph, "New York Times Square") == [("New York Times", "New York Times", "exact")]
    assert linked(graph, "New York, Times Square Garden of Delight and york") == [
        ("New York", "New York", "exact"),
        ("Square Garden of Delight", "Square Garden of Delight", "exact"),
        ("york", "York", "normalised"),
    ]


def test_of_one_name_the_letters_decide_then_the_triples() -> None:
    graph = KnowledgeGraph.from_triples(
        [
            ("ALIEN", "p", "x"),
            ("Alien", "p", "y"),
            ("Alien", "p", "z"),
            ("The Alien", "p", "v"),
            ("The Alien", "p", "w"),
        ]
    )
    assert [entity for _, entity, _ in linked(graph, "ALIEN Alien alien and the alien, Alien")] == [
        "ALIEN",
        "Alien",
        "Alien",
        "The Alien",
        "Alien",
    ]


def test_aliases() -> None:
    graph = graph_of(
        "United States",
        "Alien",
        aliases={"United States": ["US", "U.S.A.", "America"], "Alien": ["Чужой", "The Eighth Passenger"]},
    )
    assert linked(graph, "america gave us the US and the u.s.a.") == [
        ("america", "United States", "alias"),
        ("US", "United States", "alias"),
        ("u.s.a", "United States", "alias"),
    ]
    assert linked(graph, "чужой = Eighth Passenger = ALIEN") == [
        ("чужой", "Alien", "alias"),
        ("Eighth Passenger", "Alien", "alias"),
        ("ALIEN", "Alien", "normalised"),
    ]


def test_a_name_counts_before_an_alias() -> None:
    graph = graph_of("Georgia", "Tbilisi", aliases={"Tbilisi": ["georgia", "Georgia"]})
    assert linked(graph, "in Georgia") == [("Georgia", "Georgia", "exact")]


def test_aliases_of_an_unknown_entity_are_a_problem() -> None:
    graph = graph_of("a", aliases={"b": ["c"]})
    assert [(problem.line, problem.what) for problem in graph.problems] == [
        (None, "an alias of 'b', an entity that no triple names")
    ]
    assert graph.link("c") == ()


@pytest.mark.parametrize("others", ["b", [1], [None]])
def test_aliases_are_lists_of_names(others: Any) -> None:
    with pytest.raises(InvalidRequest, match=r"aliases\['a'\] is .*; pass a list of names"):
        graph_of("a", aliases={"a": others})


def test_very_long_names() -> None:
    name = " ".join(f"w{number}" for number in range(64))
    assert [link.end for link in graph_of(name).link(f"{name} {name}")] == [len(name), 2 * len(name) + 1]
    assert graph_of(f"{name} x").link(f"{name} x") == ()


pieces = st.sampled_from([*"aBéßﬁİ中国のカกำй☃'-. \n&s😀１²\u0301\u200d\u00ad\ufe0f\ud800", "the ", "Ame\u0301lie"])
texts = st.text(max_size=30) | st.lists(pieces, max_size=24).map("".join)
names = texts.filter(lambda name: bool(name.strip()) and "\0" not in name and not any(map(_surrogate, name)))


def _surrogate(character: str) -> bool:
    return "\ud800" <= character <= "\udfff"


@settings(deadline=None)
@given(st.lists(names, min_size=1, max_size=6), texts, st.data())
@example(["!A", "A!"], "!A!", None)
def test_ranges_are_disjoint_and_ordered_whatever_the_text(
    names: list[str], text: str, data: st.DataObject | None
) -> None:
    graph = graph_of(*names)
    if data is not None:  # texts that do mention something
        text = "".join(data.draw(st.lists(st.sampled_from([text, *names, *map(str.upper, names), " "]), max_size=5)))
    last = 0
    for link in graph.link(text):
        assert last <= link.start < link.end <= len(text)
        assert link.entity in graph
        assert (text[link.start : link.end] == link.entity) == (link.how == "exact")
        assert normalize_words(text[link.start : link.end])
        last = link.end


@settings(deadline=None)
@given(names)
def test_a_name_finds_itself(name: str) -> None:
    graph = graph_of(name)
    stripped = name.strip()
    mentions = graph.link(f"see {stripped} see")
    if len(normalize_words(stripped)) == 1 and len(normalize_words(stripped)[0].key) > 2:
        assert [link.entity for link in mentions] == [stripped]
    assert all(link.entity == stripped for link in mentions)


@settings(deadline=None)
@given(texts)
def test_words_are_pieces_of_the_text(text: str) -> None:
    last = 0
    for word in normalize_words(text):
        assert last <= word.start < word.end <= len(text)
        assert word.key
        last = word.end
