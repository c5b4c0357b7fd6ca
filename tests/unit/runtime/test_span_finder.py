"""Informative spans: both parsing schemes give what spaCy's own English noun chunks give, and nothing is executed."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import spacy
import srsly
from hypothesis import given
from hypothesis import strategies as st
from spacy.language import Language
from spacy.tokens import Doc, Token
from thinc.api import Linear, Model, Shim, chain

from groundwire.runtime.calls import TextSpan
from groundwire.runtime.errors import BundleError, InvalidRequest
from groundwire.runtime.models.span_finder import SpanFinder, refuse_shims, universal_noun_chunks
from groundwire.runtime.texts import linear_tokenizer
from groundwire.runtime.texts.linear_tokenizer import LONGEST_CHUNK
from tests.reference import noun_chunks as reference
from tests.support.span_pipelines import PARSED, SCHEMES, parsed, train_tiny


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A saved pipeline per scheme."""
    root = tmp_path_factory.mktemp("pipelines")
    for scheme in SCHEMES:
        train_tiny(scheme).to_disk(root / scheme)
    return {scheme: root / scheme for scheme in SCHEMES}


@pytest.fixture(params=list(SCHEMES))
def finder(request: pytest.FixtureRequest, tiny: dict[str, Path]) -> SpanFinder:
    return _load_once(tiny[request.param])


_load_once = cache(SpanFinder.load)


@pytest.fixture
def saved(tmp_path: Path, tiny: dict[str, Path]) -> Path:
    """A copy of a saved pipeline, to be damaged."""
    return shutil.copytree(tiny["ud"], tmp_path / "spans")


@pytest.mark.parametrize("case", list(PARSED))
def test_universal_chunks_are_those_of_spacy(case: str) -> None:
    table, expected = PARSED[case]
    nlp = spacy.blank("en")
    assert [chunk.text for chunk in parsed(table, "clearnlp").doc(nlp).noun_chunks] == expected
    assert [chunk.text for chunk in universal_noun_chunks(parsed(table, "ud").doc(nlp))] == expected


def test_spaces_are_no_nouns_and_begin_no_chunk() -> None:
    words = ["  ", "big", " ", "dogs", "bark", "   "]
    pos = ["NOUN", "ADJ", "NOUN", "NOUN", "VERB", "NOUN"]
    heads, deps = [1, 3, 3, 4, 4, 4], ["compound", "amod", "compound", "nsubj", "ROOT", "obj"]
    doc = Doc(spacy.blank("en").vocab, words=words, spaces=[False] * 6, pos=pos, heads=heads, deps=deps)
    assert [chunk.text for chunk in universal_noun_chunks(doc)] == ["big dogs"]


def test_runs_without_spaces_are_read_in_pieces(finder: SpanFinder) -> None:
    assert max(len(token) for token in finder._nlp.make_doc("a" * 200)) == LONGEST_CHUNK
    text = "(" * 200 + "Bob Ross was born." + "!" * 200
    assert all(text[span.start : span.end] == span.text for span in finder.find(text))
    assert finder.find(text)


def test_entities_come_first_then_new_chunks(finder: SpanFinder) -> None:
    text = "Bob Ross was the creator and host of The Joy of Painting."
    assert finder.find(text) == (
        TextSpan("Bob Ross", 0, 8, "ent:PERSON"),
        TextSpan("the creator", 13, 24, "noun_chunk"),
        TextSpan("host", 29, 33, "noun_chunk"),
        TextSpan("The Joy", 37, 44, "noun_chunk"),
        TextSpan("Painting", 48, 56, "noun_chunk"),
    )


def test_an_entity_inside_a_chunk_does_not_replace_it(finder: SpanFinder) -> None:
    spans = finder.find("Over 600 million records were sold by the singer last year.")
    assert [(span.text, span.kind) for span in spans] == [
        ("600 million", "ent:CARDINAL"),
        ("Over 600 million records", "noun_chunk"),
        ("the singer", "noun_chunk"),
    ]


def test_the_speaker_is_left_out(finder: SpanFinder) -> None:
    assert [span.text for span in finder.find("i was seen by bob")] == ["bob"]


class Fixed:
    """A pipeline's last component, which replaces the entities and the parse of the model."""

    def __init__(self, entities: Iterable[str]) -> None:
        self.entities = entities

    def __call__(self, doc: Doc) -> Doc:
        starts = [doc.text.index(name) for name in self.entities]
        spans = zip(starts, self.entities, strict=True)
        doc.ents = [doc.char_span(start, start + len(name), "X") for start, name in spans]
        for token in doc:
            token.head, token.dep_, token.pos_ = doc[0], "dep" if token.i else "ROOT", "NOUN"
        return doc


def test_repeated_chunks_are_given_once_and_compared_in_lower_case(tiny: dict[str, Path]) -> None:
    nlp = spacy.load(tiny["ud"])
    Language.component("fixed_for_this_test", func=Fixed(["Tea", "I"]))
    nlp.add_pipe("fixed_for_this_test")
    spans = SpanFinder(nlp).find("tea Tea coffee I Coffee i")
    assert [(span.text, span.start, span.kind) for span in spans] == [
        ("Tea", 4, "ent:X"),
        ("coffee", 8, "noun_chunk"),
    ]


@pytest.mark.parametrize("text", ["", " ", "\n\t  "])
def test_an_empty_text_has_no_spans(finder: SpanFinder, text: str) -> None:
    assert finder.find(text) == ()
    assert finder.is_personal(text) is False


def test_spans_are_slices_of_any_text(finder: SpanFinder) -> None:
    text = "  Bob  Ross \u2019s caf\u00e9\n\n was\tthe 1980 ' s   creator \U0001f600 .. "
    for span in finder.find(text):
        assert text[span.start : span.end] == span.text


@pytest.mark.parametrize(
    ("question", "personal"),
    [
        ("where did you leave your car?", True),
        ("Where did YOU leave your car?", True),
        ("who told you?", False),  # terms: literal
        ("i was seen by bob", False),
        ("You fed a friend of mine's dog", True),
        ("John's new red car is also in my friend's garage", True),
        ("They elected him president, a hard job.", False),
    ],
)
def test_personal_questions(finder: SpanFinder, question: str, personal: bool) -> None:
    assert finder.is_personal(question) is personal


def test_a_question_without_speaker_words_is_not_parsed(finder: SpanFinder, monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(*_: object) -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr(finder, "_parsing", [parse])
    assert finder.is_personal("who was the creator of The Joy of Painting?") is False
    with pytest.raises(AssertionError, match="parsed"):
        finder.is_personal("who is your friend?")


CHUNKS = (
    "I'm",
    "im",
    "Ill",
    "you",
    "youre",
    "your.",
    "(my)",
    "mine,my",
    "d'you",
    "who",
    "is",
    "in",
    "5i",
    "i/you",
    "’i",
)


@given(st.lists(st.sampled_from(CHUNKS)))
def test_speaker_words_of_chunks_are_those_of_the_whole_question(tiny: dict[str, Path], chunks: list[str]) -> None:
    finder = _load_once(tiny["ud"])
    question = " ".join(chunks)
    tokens = {token.lower_ for token in finder._nlp.make_doc(question)}
    assert any(map(finder._may_be_personal, question.split())) is bool(tokens & {"i", "you", "my", "your"})


def test_a_personal_question_is_known_without_entities(tiny: dict[str, Path]) -> None:
    nlp = spacy.load(tiny["ud"])
    finder = SpanFinder(nlp)
    assert nlp.pipe_names[-1] == "ner"
    assert finder._parsing == [component for _, component in nlp.pipeline[:-1]]
    for question in ("where did you leave your car?", "who told you?"):  # terms: literal
        assert finder.is_personal(question) is any(map(finder._is_speaker, nlp(question)))


def test_a_text_over_the_limit_is_refused(finder: SpanFinder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder._nlp, "max_length", 10)
    for call in (finder.find, finder.is_personal):
        with pytest.raises(InvalidRequest, match="11 characters; the span finder reads up to 10"):
            call("you and you")


def test_words_do_not_stay_in_memory(finder: SpanFinder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linear_tokenizer, "ZONE_CHARACTERS", 200)
    finder.find("warm up " * 30)
    known = len(finder._nlp.vocab.strings)
    for number in range(40):
        finder.find(f"You fed the zorblax{number} to qwyx{number}.")
        finder.is_personal(f"did you feed vworp{number}?")
        assert len(finder._nlp.vocab.strings) < known + 60


def test_threads_get_the_same_spans(finder: SpanFinder) -> None:
    texts = [parsed(table, "ud").text for table, _ in PARSED.values()] * 3
    alone = [finder.find(text) for text in texts]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(finder.find, texts)) == alone


def test_unused_components_are_removed(finder: SpanFinder) -> None:
    assert finder._nlp.pipe_names == ["tok2vec", "morphologizer", "parser", "ner"]


def test_a_directory_loads(tiny: dict[str, Path]) -> None:
    for source in (tiny["ud"], str(tiny["ud"])):
        assert [span.text for span in SpanFinder.load(source).find("World War II ended.")] == ["World War II"]


def test_a_parser_of_another_scheme_is_refused() -> None:
    nlp = spacy.blank("en")
    nlp.add_pipe("tagger")  # terms: literal
    nlp.add_pipe("parser").add_label("sb")
    with pytest.raises(BundleError, match=r"labels .*sb.*: neither ClearNLP"):
        SpanFinder(nlp)


@pytest.mark.parametrize("pipes", [[], ["tagger"], ["parser"], ["parser", "senter"]])  # terms: literal
def test_a_pipeline_without_parser_or_parts_of_speech_is_refused(pipes: list[str]) -> None:
    nlp = spacy.blank("en")
    for name in pipes:
        nlp.add_pipe(name)
    with pytest.raises(BundleError, match="need a parser and a tagger"):  # terms: literal
        SpanFinder(nlp)


@pytest.mark.parametrize("where", ["no_such_pipeline_anywhere", Path("no/such/directory")])
def test_a_missing_pipeline_is_named(where: Any) -> None:
    with pytest.raises(BundleError, match="neither a directory nor an installed pipeline"):
        SpanFinder.load(where)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('factory = "senter"', 'factory = "merge_entities"', "'senter' is made by 'merge_entities'"),
        ('factory = "senter"', 'source = "/tmp/elsewhere"', "'senter' is made by 'another pipeline'"),
        ('lang = "en"', 'lang = "de"', "for the language 'de'"),
        ("before_creation = null", 'before_creation = {"@callbacks": "spacy.copy_from_base_model.v1"}', "@callbacks"),
        ('@scorers = "spacy.ner_scorer.v1"', '@scorers = "evil.scorer.v1"', "@scorers = 'evil.scorer.v1'"),
        ('@scorers = "spacy.ner_scorer.v1"', '@scorers = "spacy.senter_scorer.v1"', "may use spacy.attribute_ruler_sc"),
        ('factory = "senter"', 'factory = "entity_linker"', "'senter' is made by 'entity_linker'"),
        ('factory = "senter"', 'factory = ["senter"]', "'senter' is made by"),
        (
            "[components.senter]",
            '[components./tmp/a]\nfactory = "ner"\n\n[components.senter]',
            "so '/tmp/a' cannot be one",
        ),
        (
            '@architectures = "spacy.HashEmbedCNN.v2"',
            '@architectures = "spacy.TorchBiLSTMEncoder.v1"',
            "uses @architectures = 'spacy.TorchBiLSTMEncoder.v1'",
        ),
        ("[nlp]", "[nlp", "is not the configuration of a spaCy pipeline"),
        ("[components]", "[other]", "is not the configuration of a spaCy pipeline"),
    ],
)
def test_a_directory_may_only_use_functions_of_spacy(saved: Path, old: str, new: str, message: str) -> None:
    path = saved / "config.cfg"
    config = path.read_text()
    assert old in config
    path.write_text(config.replace(old, new, 1))
    with pytest.raises(BundleError, match=message):
        SpanFinder.load(saved)


def test_a_reference_cannot_be_hidden_in_a_variable(saved: Path) -> None:
    path = saved / "config.cfg"
    config = path.read_text().replace('factory = "senter"', "factory = ${system.hidden}")
    path.write_text(config.replace("[system]", '[system]\nhidden = "merge_entities"', 1))
    with pytest.raises(BundleError, match="made by 'merge_entities'"):
        SpanFinder.load(saved)


def test_weights_of_another_library_are_refused(saved: Path) -> None:
    """A model that wraps one of PyTorch would read its weights with ``torch.load``."""
    model = Model("wrapped", lambda model, x, is_train: (x, lambda y: y), shims=[Shim(None)])
    with pytest.raises(BundleError, match=r"'ner' wraps a model of another library \(Shim\)"):
        refuse_shims("ner", chain(Linear(2, 2), model))
    content = srsly.read_msgpack(saved / "ner" / "model")
    content["shims"][0] = [b"weights"]
    srsly.write_msgpack(saved / "ner" / "model", content)
    with pytest.raises(BundleError, match="cannot be loaded"):
        SpanFinder.load(saved)


@pytest.mark.parametrize("name", ["ner/model", "tokenizer", "parser/moves", "vocab/strings.json"])
def test_a_damaged_file_is_a_bundle_error(saved: Path, name: str) -> None:
    (saved / name).write_bytes(b"\x00garbage")
    with pytest.raises(BundleError, match="cannot be loaded"):
        SpanFinder.load(saved)


LABELS = ["nsubj", "obj", "nmod", "conj", "conj", "flat", "compound", "punct", "det", "amod", "advmod", "cop", "expl"]


@st.composite
def draw_parses(draw: st.DrawFn) -> Doc:
    """Any tree over a few words, with any labels and parts of speech; crossing arcs are allowed."""
    order = draw(st.permutations(range(draw(st.integers(1, 9)))))
    heads = list(range(len(order)))
    for count, token in enumerate(order[1:], 1):
        heads[token] = order[draw(st.integers(0, count - 1))]
    size = len(order)
    words = [draw(st.sampled_from(["it", "There", "dog", ",", "-", " "])) for _ in order]
    pos = [draw(st.sampled_from(["NOUN", "PROPN", "PRON", "VERB", "PUNCT"])) for _ in order]
    deps = ["ROOT" if heads[index] == index else draw(st.sampled_from(LABELS)) for index in range(size)]
    return Doc(VOCABULARY, words=words, spaces=[False] * size, pos=pos, heads=heads, deps=deps)


VOCABULARY = spacy.blank("en").vocab


@given(draw_parses())
def test_universal_chunks_are_those_of_the_reference(doc: Doc) -> None:
    assert [(chunk.start, chunk.end) for chunk in universal_noun_chunks(doc)] == [
        (chunk.start, chunk.end) for chunk in reference.universal_noun_chunks(doc)
    ]


class CountedToken:
    """A token of a parsed document that counts what is asked of it; for its dependents spaCy looks at all below it."""

    def __init__(self, doc: CountedDoc, token: Token) -> None:
        self.doc, self.token = doc, token

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.token, name)
        below = self.token.right_edge.i - self.token.left_edge.i
        self.doc.work += 1 + (below if name in ("children", "lefts", "rights") else 0)
        if isinstance(value, Token):
            return CountedToken(self.doc, value)
        return [CountedToken(self.doc, token) for token in value] if isinstance(value, Iterator) else value


class CountedDoc:
    """A parsed document whose tokens count what is asked of them."""

    def __init__(self, doc: Doc) -> None:
        self.parsed, self.work = doc, 0

    def __iter__(self) -> Iterator[CountedToken]:
        return (CountedToken(self, token) for token in self.parsed)

    def __getitem__(self, key: Any) -> Any:
        value = self.parsed[key]
        return CountedToken(self, value) if isinstance(value, Token) else [CountedToken(self, token) for token in value]


@pytest.mark.parametrize("label", ["nmod", "conj", "flat"])
def test_the_work_grows_linearly_with_the_depth_of_a_phrase(label: str) -> None:
    def count(depth: int) -> int:
        heads, deps = [0, *range(depth - 1)], ["ROOT", *[label] * (depth - 1)]
        doc = CountedDoc(Doc(VOCABULARY, words=["dog"] * depth, pos=["NOUN"] * depth, heads=heads, deps=deps))
        assert list(universal_noun_chunks(doc))  # type: ignore[arg-type]
        return doc.work

    assert count(100) < 2.5 * count(50)
