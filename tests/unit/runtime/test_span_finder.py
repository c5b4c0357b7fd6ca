"""Informative spans: both parsing schemes give what spaCy's own English noun chunks give, and nothing is executed."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example

from groundwire.runtime.calls import TextSpan
from groundwire.runtime.errors import BundleError, InvalidRequest
from groundwire.runtime.models.span_finder import SpanFinder, universal_noun_chunks

# word/part of speech/head/relation in Universal Dependencies/head/relation in ClearNLP style; heads count from 1, 0 is
# the root. Entities are marked by words below.
PARSED = {
    "name, copula, coordination, prepositions": (
        "Bob/PROPN/5/nsubj/2/compound Ross/PROPN/1/flat/3/nsubj was/AUX/5/cop/0/ROOT the/DET/5/det/5/det "
        "creator/NOUN/0/ROOT/3/attr and/CCONJ/7/cc/5/cc host/NOUN/5/conj/5/conj of/ADP/10/case/5/prep "
        "The/DET/10/det/10/det Joy/PROPN/5/nmod/8/pobj of/ADP/12/case/10/prep Painting/PROPN/10/nmod/11/pobj "
        "./PUNCT/5/punct/3/punct",
        ["Bob Ross", "the creator", "host", "The Joy", "Painting"],
    ),
    "possessors, an adverb before a predicate": (
        "John/PROPN/5/nmod:poss/5/poss 's/PART/1/case/1/case new/ADJ/5/amod/5/amod red/ADJ/5/amod/5/amod "
        "car/NOUN/12/nsubj/6/nsubj is/AUX/12/cop/0/ROOT also/ADV/12/advmod/6/advmod in/ADP/12/case/6/prep "
        "my/PRON/10/nmod:poss/10/poss friend/NOUN/12/nmod:poss/12/poss 's/PART/10/case/10/case "
        "garage/NOUN/0/ROOT/8/pobj",
        ["John's new red car", "my friend's garage"],
    ),
    "passive, agent, quantity, bare temporal phrase": (
        "Over/ADV/3/advmod/3/quantmod 600/NUM/3/compound/3/compound million/NUM/4/nummod/4/nummod "
        "records/NOUN/6/nsubj:pass/6/nsubjpass were/AUX/6/aux:pass/6/auxpass sold/VERB/0/ROOT/0/ROOT "
        "by/ADP/9/case/6/agent the/DET/9/det/9/det singer/NOUN/6/obl:agent/7/pobj last/ADJ/11/amod/11/amod "
        "year/NOUN/6/obl:unmarked/6/npadvmod ./PUNCT/6/punct/6/punct",
        ["Over 600 million records", "the singer"],
    ),
    "list of subjects, relative clause": (
        "Coffee/NOUN/10/nsubj/9/nsubj ,/PUNCT/3/punct/1/punct tea/NOUN/1/conj/1/conj and/CCONJ/6/cc/3/cc "
        "both/DET/6/det:predet/6/predet kinds/NOUN/1/conj/3/conj of/ADP/8/case/6/prep milk/NOUN/6/nmod/7/pobj "
        "are/AUX/10/cop/0/ROOT drinks/NOUN/0/ROOT/9/attr that/PRON/13/obj/13/dobj people/NOUN/13/nsubj/13/nsubj "
        "love/VERB/10/acl:relcl/10/relcl",
        ["Coffee", "tea", "both kinds", "milk", "drinks", "that", "people"],
    ),
    "expletive there": (
        "There/PRON/2/expl/2/expl were/VERB/0/ROOT/0/ROOT 5/NUM/4/nummod/4/nummod cups/NOUN/2/nsubj/2/attr "
        "on/ADP/7/case/2/prep the/DET/7/det/7/det table/NOUN/2/obl/5/pobj ./PUNCT/2/punct/2/punct",
        ["5 cups", "the table"],
    ),
    "expletive it": (
        "It/PRON/3/expl/3/nsubj often/ADV/3/advmod/3/advmod rains/VERB/0/ROOT/0/ROOT ./PUNCT/3/punct/3/punct",
        ["It"],
    ),
    "a chunk inside a possessor blocks the outer one": (
        "You/PRON/2/nsubj/2/nsubj fed/VERB/0/ROOT/0/ROOT a/DET/4/det/4/det friend/NOUN/8/nmod:poss/8/poss "
        "of/ADP/6/case/4/prep mine/PRON/4/nmod/5/pobj 's/PART/4/case/4/case dog/NOUN/2/obj/2/dobj",
        ["You", "mine"],
    ),
    "object predicate, apposition": (
        "They/PRON/2/nsubj/2/nsubj elected/VERB/0/ROOT/0/ROOT him/PRON/2/obj/2/dobj "
        "president/NOUN/2/xcomp/2/oprd ,/PUNCT/8/punct/4/punct a/DET/8/det/8/det hard/ADJ/8/amod/8/amod "
        "job/NOUN/4/appos/4/appos ./PUNCT/2/punct/2/punct",
        ["They", "him", "president", "a hard job"],
    ),
    "two objects, compound noun": (
        "He/PRON/2/nsubj/2/nsubj gave/VERB/0/ROOT/0/ROOT the/DET/4/det/4/det children/NOUN/2/iobj/2/dative "
        "ice/NOUN/6/compound/6/compound cream/NOUN/2/obj/2/dobj",
        ["He", "the children", "ice cream"],
    ),
    "numbered name": (
        "World/PROPN/2/compound/3/compound War/PROPN/4/nsubj/3/compound II/PROPN/2/nummod/4/nsubj "
        "ended/VERB/0/ROOT/0/ROOT ./PUNCT/4/punct/4/punct",
        ["World War II"],
    ),
    "an adverb before a questioned predicate": (
        "also/ADV/2/advmod/3/advmod what/PRON/0/ROOT/3/attr is/AUX/2/cop/0/ROOT the/DET/5/det/5/det "
        "deal/NOUN/2/nsubj/3/nsubj",
        ["what", "the deal"],
    ),
    "quoted modifier": (
        'A/DET/5/det/5/det "/PUNCT/3/punct/5/punct big/ADJ/5/amod/5/amod "/PUNCT/3/punct/5/punct '
        "lie/NOUN/6/nsubj/6/nsubj spread/VERB/0/ROOT/0/ROOT",
        ['A "big" lie'],
    ),
    "personal": (
        "where/ADV/4/advmod/4/advmod did/AUX/4/aux/4/aux you/PRON/4/nsubj/4/nsubj leave/VERB/0/ROOT/0/ROOT "
        "your/PRON/6/nmod:poss/6/poss car/NOUN/4/obj/4/dobj ?/PUNCT/4/punct/4/punct",
        ["you", "your car"],
    ),
    "not personal": (
        "who/PRON/2/nsubj/2/nsubj told/VERB/0/ROOT/0/ROOT you/PRON/2/iobj/2/dative ?/PUNCT/2/punct/2/punct",
        ["who", "you"],
    ),
    "seen by": (
        "i/PRON/3/nsubj:pass/3/nsubjpass was/AUX/3/aux:pass/3/auxpass seen/VERB/0/ROOT/0/ROOT "
        "by/ADP/5/case/3/agent bob/PROPN/3/obl:agent/4/pobj",
        ["i", "bob"],
    ),
}
ENTITIES = {"Bob Ross": "PERSON", "bob": "PERSON", "John": "PERSON", "World War II": "EVENT", "600 million": "CARDINAL"}
SCHEMES = {"ud": (2, 3), "clearnlp": (4, 5)}


@dataclass(frozen=True)
class Parsed:
    words: list[str]
    spaces: list[bool]
    pos: list[str]
    heads: list[int]
    deps: list[str]

    @property
    def text(self) -> str:
        return "".join(word + " " * space for word, space in zip(self.words, self.spaces, strict=True))

    def doc(self, nlp: Language) -> Doc:
        return Doc(nlp.vocab, words=self.words, spaces=self.spaces, pos=self.pos, heads=self.heads, deps=self.deps)


def parsed(table: str, scheme: str) -> Parsed:
    rows = [row.split("/") for row in table.split()]
    head, dep = SCHEMES[scheme]
    words = [row[0] for row in rows]
    quotes = [i for i, word in enumerate(words) if word == '"']
    glued = {i - 1 for i, word in enumerate(words) if word in ("'s", ".", ",", "?")} | {len(rows) - 1}
    glued |= {i if n % 2 == 0 else i - 1 for n, i in enumerate(quotes)}
    heads = [int(row[head]) for row in rows]
    return Parsed(
        words=words,
        spaces=[i not in glued for i in range(len(rows))],
        pos=[row[1] for row in rows],
        heads=[i if h == 0 else h - 1 for i, h in enumerate(heads)],
        deps=[row[dep] for row in rows],
    )


def train_tiny(scheme: str) -> Language:
    """A pipeline that knows the sentences of the table by heart."""
    nlp = spacy.blank("en")
    spacy.util.fix_random_seed(1)
    width = 32
    embed = {"@architectures": "spacy.HashEmbedCNN.v2", "width": width, "depth": 2, "embed_size": 500}
    embed |= {"window_size": 1, "maxout_pieces": 2, "subword_features": True, "pretrained_vectors": None}
    listener = {"@architectures": "spacy.Tok2VecListener.v1", "width": width}
    transitions = {"@architectures": "spacy.TransitionBasedParser.v2", "tok2vec": listener, "hidden_width": 32}
    transitions |= {"extra_state_tokens": False, "maxout_pieces": 2, "use_upper": True}
    nlp.add_pipe("tok2vec", config={"model": embed})
    nlp.add_pipe("morphologizer", config={"model": {"@architectures": "spacy.Tagger.v2", "tok2vec": listener}})
    nlp.add_pipe("parser", config={"model": transitions | {"state_type": "parser"}, "min_action_freq": 1})
    nlp.add_pipe("ner", config={"model": transitions | {"state_type": "ner"}})
    nlp.add_pipe("senter")
    examples = []
    for table, _ in PARSED.values():
        gold = parsed(table, scheme)
        entities = [
            (at, at + len(name), label) for name, label in ENTITIES.items() if (at := gold.text.find(name)) >= 0
        ]
        annotation = {"words": gold.words, "spaces": gold.spaces, "pos": gold.pos, "entities": entities}
        annotation |= {"heads": gold.heads, "deps": gold.deps}
        examples.append(Example.from_dict(nlp.make_doc(gold.text), annotation))
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.003
    for _ in range(120):
        nlp.update(examples, sgd=optimizer, exclude=["senter"])
    return nlp


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A saved pipeline per scheme."""
    root = tmp_path_factory.mktemp("pipelines")
    for scheme in SCHEMES:
        train_tiny(scheme).to_disk(root / scheme)
    return {scheme: root / scheme for scheme in SCHEMES}


@pytest.fixture(params=list(SCHEMES))
def finder(request: pytest.FixtureRequest, tiny: dict[str, Path]) -> SpanFinder:
    return SpanFinder.load(tiny[request.param])


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

    monkeypatch.setattr(Language, "__call__", parse)
    assert finder.is_personal("who was the creator of The Joy of Painting?") is False
    with pytest.raises(AssertionError, match="parsed"):
        finder.is_personal("who is your friend?")


def test_a_text_over_the_limit_is_refused(finder: SpanFinder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder._nlp, "max_length", 10)
    for call in (finder.find, finder.is_personal):
        with pytest.raises(InvalidRequest, match="11 characters; the span finder reads up to 10"):
            call("you and you")


def test_words_do_not_stay_in_memory(finder: SpanFinder) -> None:
    finder.find("warm up")
    known = len(finder._nlp.vocab.strings)
    for number in range(20):
        finder.find(f"You fed the zorblax{number} to qwyx{number}.")
        finder.is_personal(f"did you feed vworp{number}?")
    assert len(finder._nlp.vocab.strings) == known


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


@pytest.mark.parametrize("name", ["ner/model", "tokenizer", "parser/moves", "vocab/strings.json"])
def test_a_damaged_file_is_a_bundle_error(saved: Path, name: str) -> None:
    (saved / name).write_bytes(b"\x00garbage")
    with pytest.raises(BundleError, match="cannot be loaded"):
        SpanFinder.load(saved)


def test_weights_stored_in_half_precision(saved: Path, tmp_path: Path) -> None:
    export = pytest.importorskip("groundwire.export", exc_type=ImportError)
    options = export.RoleOptions(str(saved), half=True)
    bundle = export.export_role("spans", options, tmp_path / "bundle")
    stored = bundle.file("spans")
    size, halved = (sum(path.stat().st_size for path in root.glob("*/model")) for root in (saved, stored))
    assert halved < 0.55 * size
    halved_finder, expected = SpanFinder.load(stored), SpanFinder.load(saved)
    weights = [
        node.get_param(name)
        for _, pipe in halved_finder._nlp.pipeline
        for node in pipe.model.walk()
        for name in node.param_names
        if node.has_param(name)
    ]
    assert weights
    assert {weight.dtype.name for weight in weights} == {"float32"}
    for table, _ in PARSED.values():
        text = parsed(table, "ud").text
        assert halved_finder.find(text) == expected.find(text)
