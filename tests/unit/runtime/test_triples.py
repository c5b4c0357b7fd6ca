"""Triples, and the text that a model reads for them."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groundwire.runtime import triples
from groundwire.runtime.triples import Triple, linearise, readable, sentence, upright

names = st.text(min_size=1, max_size=12)


def test_the_examples_of_the_module_hold() -> None:
    results = doctest.testmod(triples)
    assert results.attempted >= 5
    assert results.failed == 0


@pytest.mark.parametrize(
    ("predicate", "expected"),
    [
        ("directed by", "directed by"),
        ("directed_by", "directed by"),
        ("  directed__by ", "directed by"),
        ("/film/film/directed_by", "directed by"),
        ("/film/film/directed_by/", "directed by"),
        ("/film/actor/film./film/performance/film", "film"),
        ("/people/person/spouse_s./people/marriage/type_of_union", "spouse type of union"),
        (
            "/film/film/release_date_s./film/film_regional_release_date/film_release_region",
            "release date film region",
        ),
        ("/location/location/adjoin_s./location/adjoining_relationship/adjoins", "adjoin adjoins"),
        ("birthPlace", "birth place"),
        ("dbo:birthPlace", "birth place"),
        ("<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", "type"),
        ("http://www.wikidata.org/prop/direct/P31", "P31"),
        ("city and/or town", "city and/or town"),
        ("ISBN", "ISBN"),
        ("режиссёр", "режиссёр"),
        ("監督", "監督"),
        ("/", "/"),
        ("___", "___"),
        ("http://", "http:"),
        ("", ""),
    ],
)
def test_readable(predicate: str, expected: str) -> None:
    assert readable(predicate) == expected


@settings(deadline=None)
@given(st.text(max_size=20))
def test_a_predicate_never_loses_all_its_words(predicate: str) -> None:
    words = readable(predicate)
    assert bool(words) == bool(predicate.strip())
    assert words == words.strip()


def test_linearise_keeps_order_repeats_and_entities() -> None:
    first, second = Triple("A_b", "written_by", "C  d\n"), Triple("é", "/x/y/z", "1979")
    assert linearise([first, second, first]) == "A_b written by C d | é z 1979 | A_b written by C d"
    assert linearise(iter([second])) == sentence(second) == "é z 1979"
    assert linearise([]) == ""


@pytest.mark.parametrize(
    ("predicate", "swapped"),
    [("~written_by", True), (" ~written_by", True), ("~~written_by", False), ("~", False), ("written~by", False)],
)
def test_an_inverse_predicate_swaps_subject_and_object(predicate: str, swapped: bool) -> None:
    triple = upright(Triple("a", predicate, "b"))
    assert (triple.subject, triple.object) == (("b", "a") if swapped else ("a", "b"))
    assert sentence(Triple("a", predicate, "b")) == sentence(triple)


@settings(deadline=None)
@given(names, names.filter(lambda name: any(map(str.isalnum, name))), names)
def test_an_inverse_triple_has_the_same_text(subject: str, predicate: str, other: str) -> None:
    assert sentence(Triple(subject, predicate, other)) == sentence(Triple(other, "~" + predicate.lstrip(), subject))
