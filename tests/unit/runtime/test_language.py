"""The guard against other languages in Latin letters: it warns of sentences, and never of English or of names."""

from __future__ import annotations

import json

import pytest

from groundwire.engine.schema.results import MetricResult
from groundwire.engine.schema.validation import make_request
from groundwire.engine.verdict.score import warn_of_language
from groundwire.runtime.texts.unread import ENGLISH, MAX_CHARACTERS, OTHERS, looks_foreign
from tests.support.offline import ROOT
from tests.support.verdicts import fold

FOREIGN_TEXTS = [
    "Die Frist beträgt 60 Tage und kann nicht verlängert werden.",
    "Die Lieferung kostet 3,95 Pfund und dauert drei bis fünf Werktage.",
    "Der Honig ist blau und kostet fünf Euro.",
    "La livraison express coûte 7,50 livres et arrive le jour ouvrable suivant.",
    "La capitale de la France est Paris et elle compte deux millions d'habitants.",
    "El plazo es de treinta días y no puede prorrogarse.",
    "La capitale d'Italia è Roma, che si trova nel centro del paese.",
    "De termijn bedraagt zestig dagen en kan niet worden verlengd.",
    "Stolicą Polski jest Warszawa, która leży nad Wisłą i jest największym miastem w kraju.",
    "O prazo é de sessenta dias e não pode ser prorrogado.",
    "Fristen är sextio dagar och kan inte förlängas av någon.",
    "Hà Nội là thủ đô của Việt Nam và là một thành phố lớn.",
    "Jakarta adalah ibu kota negara Indonesia dan kota yang paling besar.",
    "탑의 높이는 324미터입니다.",
    "도쿄는 Tokyo입니다.",
    "Токио — столица Германии.",
    "東京",
    "lorem ipsum dolor amet consectetur adipiscing elit eiusmod tempor incididunt labore dolore magna aliqua",
]
ENGLISH_TEXTS = [
    "",
    "ja",
    "Yes!",
    "Elvis Presley, Priscilla Presley, Lisa Marie Presley, Vernon Presley, Gladys Presley",
    "I had a déjà vu in the café near the Champs de Mars in Paris.",
    "The Bundesverfassungsgericht ruled on the Verlängerung der Frist.",
    "honey never spoils, does it?",
    "π",
    "The ratio π of a circle's circumference to its diameter is 3.14 (東京, 2020).",
    "1935 – 🎸🎸🎸",
    "Volkswagen und Porsche",
    "Der Honig ist süß.",
    "He played for Real Madrid, Paris Saint-Germain and LA Galaxy, then he retired.",
    "omg lol so cute",
    "Jean de La Fontaine wrote Le Corbeau et le Renard, a fable in verse.",
]


@pytest.mark.parametrize("text", FOREIGN_TEXTS)
def test_a_sentence_in_another_language_is_noticed(text: str) -> None:
    assert looks_foreign(text)


@pytest.mark.parametrize("text", ENGLISH_TEXTS)
def test_english_short_texts_and_names_are_not_foreign(text: str) -> None:
    assert not looks_foreign(text)


def test_no_example_is_foreign() -> None:
    lines = (ROOT / "examples" / "dialogues.jsonl").read_text(encoding="utf-8").splitlines()
    assert not [row for row in map(json.loads, lines) if looks_foreign(f"{row['response']} {row['knowledge']}")]


def test_the_word_lists_are_disjoint() -> None:
    assert not ENGLISH & OTHERS


def test_a_score_of_another_language_has_a_warning_and_its_value() -> None:
    def score(response: str, *knowledge: str, history: tuple[str, ...] = ()) -> tuple[str, ...]:
        results = [MetricResult("q2", "scored", 0.5)]
        request = make_request(response, knowledge, history)
        built = fold(request, results, None)
        assert built.value == 0.5
        return built.warnings

    english, foreign, korean = "Honey never spoils, as everybody knows.", FOREIGN_TEXTS[0], "탑의 높이는 324미터입니다."
    assert score(english, english, history=(english,)) == ()
    for given, what in (
        (score(foreign, english), "The response does not look like English."),
        (score(korean, english), "The response does not look like English."),
        (score(english, english, korean), "The knowledge does not look like English."),
        (score(english, foreign, history=(english,)), "The knowledge does not look like English."),
        (score(english, english, history=("Hi!", korean)), "The history does not look like English."),
        (score(korean, korean, history=(foreign,)), "The response, the knowledge and the history do not look like"),
    ):
        assert len(given) == 1
        assert given[0].startswith(what)


def test_only_the_beginning_of_a_long_text_is_looked_at() -> None:
    assert looks_foreign(FOREIGN_TEXTS[0] + " " * MAX_CHARACTERS + "and the " * MAX_CHARACTERS)
    assert not looks_foreign("and the " * MAX_CHARACTERS + FOREIGN_TEXTS[0] * 9)


def test_facts_are_not_taken_for_a_language() -> None:
    """A list of lower-case words without function words, which triples often are, says nothing."""
    triples = [("salt", "ingredient", name) for name in ("flour", "butter", "sugar", "milk")]
    request = make_request("Salt is an ingredient.", (), triples=triples)
    assert looks_foreign(request.knowledge[0])
    assert warn_of_language(request) == ()
