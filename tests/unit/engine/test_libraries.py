"""BLEU, ROUGE-L and METEOR equal what their packages return when called directly."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import sacrebleu
from hypothesis import assume, given
from hypothesis import strategies as st
from nltk.corpus import wordnet
from nltk.translate.meteor_score import meteor_score, single_meteor_score
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer

from groundwire.engine import Engine, InvalidRequest, Options, Score
from groundwire.engine.metrics import libraries
from groundwire.engine.schema.options import LexicalOptions
from groundwire.engine.text.words import words
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import RoleInfo
from groundwire.runtime.texts.unread import is_blank
from tests.support.texts import sentences

NAMES = ("bleu", "rouge_l", "meteor")
SENTENCES = list(sentences())
PAIRS = [
    *zip(SENTENCES, [*SENTENCES[3:], *SENTENCES[:3]], strict=True),
    ("The guitars have six strings.", "The guitar is a string instrument with six strings."),
    (SENTENCES[0], SENTENCES[0]),
]


def score(response: str, *knowledge: str, metrics: tuple[str, ...] = NAMES, **options: object) -> Score:
    with Engine(FakeRuntime({})) as engine:
        chosen = Options(lexical=LexicalOptions(**options))  # type: ignore[arg-type]
        return engine.score(response, knowledge, metrics=metrics, options=chosen)


def split_text(text: str) -> list[str]:
    return [word.text for word in words(text)]


@pytest.mark.parametrize(("response", "knowledge"), PAIRS)
def test_values_equal_those_of_the_packages(response: str, knowledge: str) -> None:
    results = score(response, knowledge).metrics
    assert results["bleu"].value == sacrebleu.corpus_bleu([response], [[knowledge.lower()]]).score
    stemmed = RougeScorer(["rougeL"], use_stemmer=True).score(knowledge, response)["rougeL"]
    assert results["rouge_l"].value == stemmed.fmeasure
    plain = meteor_score(
        [split_text(knowledge)], split_text(response), wordnet=SimpleNamespace(synsets=lambda word: [])
    )
    assert results["meteor"].value == plain


def test_values_equal_those_computed_by_hand() -> None:
    """The texts have five and six words; once stemmed, their subsequence "the guitar … six … string" has four."""
    results = score("The guitars have six strings.", "The guitar has six long strings.").metrics
    assert results["rouge_l"].value == pytest.approx(2 * 4 / (5 + 6))
    unstemmed = score("The guitars have six strings.", "The guitar has six long strings.", rouge_stemmer=False)
    assert unstemmed.metrics["rouge_l"].value == pytest.approx(2 * 3 / (5 + 6))
    # "the", "six", "strings" and "." match, and "guitar" by its stem: 5 of 6 and of 7 tokens, in the chunks
    # "the guitar", "six" and "strings .".
    precision, recall = 5 / 6, 5 / 7
    mean = precision * recall / (0.9 * precision + 0.1 * recall)
    assert results["meteor"].value == pytest.approx((1 - 0.5 * (3 / 5) ** 3) * mean)


def test_bleu_ranges_from_0_to_100() -> None:
    text = SENTENCES[0].lower()
    assert score(text, text).metrics["bleu"].value == pytest.approx(100.0)
    assert score("xyz", text).metrics["bleu"].value == 0.0


def test_only_the_knowledge_is_lower_cased_for_bleu() -> None:
    lower, upper = "bob ross painted trees in indiana", "BOB ROSS PAINTED TREES IN INDIANA"
    assert score(lower, upper).metrics["bleu"].value == pytest.approx(100.0)
    assert score(upper, lower).metrics["bleu"].value == 0.0


def test_passages_are_joined_by_a_space() -> None:
    response, first, second = SENTENCES[2], SENTENCES[1], SENTENCES[3]
    assert score(response, first, second).metrics == score(response, f"{first} {second}").metrics
    assert score(response, first, second).metrics != score(response, first).metrics


def test_a_response_without_words_for_a_metric_has_nothing_to_verify() -> None:
    results = score("珈琲", SENTENCES[0]).metrics
    assert (results["rouge_l"].status, results["rouge_l"].value) == ("nothing_to_verify", None)
    assert results["bleu"].status == results["meteor"].status == "scored"
    # sacrebleu's tokenizer deletes this mark.
    assert score("<skipped>", SENTENCES[0]).metrics["bleu"].status == "nothing_to_verify"


@pytest.mark.parametrize(
    ("name", "limit"), [("bleu", "MAX_BLEU_WORDS"), ("rouge_l", "MAX_CELLS"), ("meteor", "MAX_WORDS")]
)
def test_too_long_knowledge_is_truncated(monkeypatch: pytest.MonkeyPatch, name: str, limit: str) -> None:
    # ROUGE-L counts pairs of words, the others those of both texts and the full stop.
    maximum = {"bleu": 5 + 10, "rouge_l": 5 * 9, "meteor": 5 + 10}[name]
    monkeypatch.setattr(libraries, limit, maximum)
    response = "Bob Ross was a painter"
    fits = score(response, "one two three four five six seven eight nine.", metrics=(name,))
    assert fits.status == "scored"
    over = score(response, "one two three four five six seven eight nine ten.", metrics=(name,))
    assert (over.status, over.value) == ("truncated", None)
    assert f"up to {maximum}" in over.message


@given(st.text(st.one_of(st.sampled_from("aZ0 -'İ\u212aſß\n"), st.characters(exclude_categories=["Cs"]))))
def test_words_are_counted_as_rouge_score_has_them(text: str) -> None:
    assert libraries.count_rouge_words(text) == len(DefaultTokenizer(use_stemmer=False).tokenize(text))


def test_a_long_response_is_truncated_for_meteor_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libraries, "MAX_WORDS", 20)
    result = score("one " * 20, "two", metrics=("meteor",))
    assert (result.status, result.value) == ("truncated", None)
    assert "up to 20 words" in result.message
    assert "have 21" in result.message


class Synonyms:
    """Replaces nltk's WordNet with its data installed; knows one synonym, "auto" for "car"."""

    def ensure_loaded(self) -> None:
        """Does nothing: there is nothing to load."""

    def synsets(self, word: str) -> list[object]:
        lemma = SimpleNamespace(name=lambda: "car")
        return [SimpleNamespace(lemmas=lambda: [lemma])] if word == "auto" else []


def test_synonyms_come_from_nltks_wordnet(monkeypatch: pytest.MonkeyPatch) -> None:
    """nltk's data cannot be downloaded here, so a reader with a single synonym replaces nltk's."""
    response, knowledge = "an auto", "an old car"
    assert score(response, knowledge, metrics=("meteor",)).value == pytest.approx(
        single_meteor_score(["an", "old", "car"], ["an", "auto"], wordnet=libraries.NoSynonyms())
    )
    monkeypatch.setattr("nltk.corpus.wordnet", Synonyms())
    with_synonyms = score(response, knowledge, metrics=("meteor",), meteor_synonyms="wordnet").value
    assert with_synonyms == single_meteor_score(["an", "old", "car"], ["an", "auto"], wordnet=Synonyms())
    assert with_synonyms > score(response, knowledge, metrics=("meteor",)).value  # type: ignore[operator]


def test_the_error_names_the_missing_wordnet_data(monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_lookup_error() -> None:
        raise LookupError("Resource wordnet not found.")

    monkeypatch.setattr("nltk.corpus.wordnet", SimpleNamespace(ensure_loaded=raise_lookup_error))
    with pytest.raises(InvalidRequest, match=r"python -m nltk\.downloader wordnet"):
        score("a", "b", metrics=("meteor",), meteor_synonyms="wordnet")


def test_nltks_wordnet_raises_lookup_error_without_its_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checks the assumption of the test above on nltk's own reader, as on a machine without the data."""
    monkeypatch.setattr("nltk.data.path", [])
    if "ensure_loaded" in vars(wordnet):  # It was loaded before, so this machine has the data.
        pytest.skip("nltk's WordNet data is installed and already read")
    with pytest.raises(LookupError):
        wordnet.ensure_loaded()


@pytest.fixture
def missing_package(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Makes an installed package impossible to import, and returns its name."""
    package = str(request.param)
    for module in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)
    yield package
    monkeypatch.undo()
    importlib.invalidate_caches()


@pytest.mark.parametrize(
    ("missing_package", "name"),
    [("sacrebleu", "bleu"), ("rouge_score", "rouge_l"), ("nltk", "meteor")],
    indirect=["missing_package"],
)
def test_the_error_names_a_missing_package(missing_package: str, name: str) -> None:
    compute = {"bleu": libraries.bleu, "rouge_l": libraries.rouge_l, "meteor": libraries.meteor}[name]
    from groundwire.engine import Request

    with pytest.raises(InvalidRequest, match=rf"{missing_package}.*pip install 'groundwire\[metrics\]'"):
        compute(Request("a", ("b",)), Options(), lambda role: RoleInfo())


TEXTS = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=40)


@given(TEXTS, TEXTS)
def test_any_text_has_a_value_in_range_or_a_status(response: str, knowledge: str) -> None:
    assume(not is_blank(response) and not is_blank(knowledge))
    for result in score(response, knowledge).metrics.values():
        if result.status == "scored":
            assert result.value is not None
            assert 0 <= result.value <= (100.0000001 if result.name == "bleu" else 1)
        else:
            assert result.status == "nothing_to_verify"


def test_the_group_of_the_papers_has_all_three() -> None:
    with Engine(FakeRuntime({})) as engine:
        assert set(NAMES) <= set(engine.plan("paper").names)
        assert not set(NAMES) & set(engine.plan("fast").names)
