"""The span finder's recipe: readers, alterations and rules on small cases, and one short training run."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path

import pytest

pytest.importorskip("groundwire.recipes", reason="needs the train extra", exc_type=ImportError)

import spacy
from spacy.language import Language
from spacy.tokens import Doc

from groundwire.recipes.common.treebanks import (
    AnnotatedSentence,
    DependencyParse,
    list_names,
    read_columns,
    read_treebank,
)
from groundwire.recipes.spans import augment, recipe, rules, train_span_finder
from groundwire.recipes.spans.sources import make_spacy_example, read_sources
from groundwire.runtime.models.span_finder import SpanFinder

EWT = """\
# newdoc id = weblog-1
# sent_id = weblog-1-0001
# text = Google didn't buy Acme of Ohio.
1\tGoogle\t_\tPROPN\tNNP\t_\t4\tnsubj\t_\t_
2-3\tdidn't\t_\t_\t_\t_\t_\t_\t_\t_
2\tdid\t_\tAUX\tVBD\t_\t4\taux\t_\t_
3\tn't\t_\tPART\tRB\t_\t4\tadvmod\t_\t_
4\tbuy\t_\tVERB\tVB\t_\t0\troot\t_\t_
4.1\tbuy\t_\tVERB\tVB\t_\t_\t_\t_\t_
5\tAcme\t_\tPROPN\tNNP\t_\t4\tobj\t_\t_
6\tof\t_\tADP\tIN\t_\t7\tcase\t_\t_
7\tOhio\t_\tPROPN\tNNP\t_\t5\tnmod\t_\tSpaceAfter=No
8\t.\t_\tPUNCT\t.\t_\t4\tpunct\t_\t_

# sent_id = weblog-1-0002
# text = Good.
1\tGood\t_\tADJ\tJJ\t_\t0\troot\t_\tSpaceAfter=No
2\t.\t_\tPUNCT\t.\t_\t1\tpunct\t_\t_

"""
GUM = """\
# newdoc id = GUM_bio_x
# global.Entity = GRP-etype-infstat-salience-centering-minspan-link-identity
# sent_id = GUM_bio_x-1
1\tThe\t_\tDET\tDT\t_\t2\tdet\t_\tEntity=(1-person-new-nnnnn-cf1-2-coref
2\tsinger\t_\tNOUN\tNN\t_\t8\tnsubj\t_\t_
3\tJoan\t_\tPROPN\tNNP\t_\t2\tappos\t_\tEntity=(2-person-new-nnnnn-cf2-1,2-coref-Joan_Baez
4\tBaez\t_\tPROPN\tNNP\t_\t3\tflat\t_\tEntity=2)
5\tof\t_\tADP\tIN\t_\t7\tcase\t_\t_
6\tthe\t_\tDET\tDT\t_\t7\tdet\t_\tEntity=(3-place-new-nnnnn-cf3-2-sgl
7\tUSA\t_\tPROPN\tNNP\t_\t2\tnmod\t_\tEntity=3)1)
8\tsang\t_\tVERB\tVBD\t_\t0\troot\t_\t_
9\tin\t_\tADP\tIN\t_\t10\tcase\t_\t_
10\tMay\t_\tPROPN\tNNP\t_\t8\tobl\t_\tEntity=(4-time-new-nnnnn-cf4-1-sgl)

"""
UNER = """\
# sent_id = weblog-1-0001
1\tGoogle\tB-ORG\t-\tx
2\tdid\tO\t-\t-
3\tn't\tO\t-\t-
4\tbuy\tO\t-\t-
5\tAcme\tO\t-\t-
6\tof\tO\t-\t-
7\tOhio\tB-LOC\t-\tx
8\t.\tO\t-\t-
"""
CROSSNER = """\
The\tO
Deep\tB-field
Learning\tI-field
of\tO
neural\tB-field
nets\tI-field
by\tO
Yann\tB-researcher
LeCun\tI-researcher
(\tO
NYU\tB-university
)\tO
.\tO
"""
WIKIGOLD = "The O\nMad I-ORG\nCapsule I-ORG\nplayed O\nJapan I-LOC\n. O\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The training sets in miniature; sentences are repeated so that every relation is frequent enough to be learnt."""
    root = tmp_path_factory.mktemp("data")
    (root / "ner").mkdir()
    triples = [["Tupelo", "/location/location/contains", "x"], ["Elvis", "/people/person/gender", "Male"]]
    files = {
        "ud_ewt_train.conllu": EWT * 30,
        "ud_ewt_dev.conllu": EWT,
        "ud_ewt_test.conllu": EWT * 8,
        "gum.conllu": GUM * 30,
        "fb15k237_train.jsonl": "".join(json.dumps(triple) + "\n" for triple in triples),
        "ner/uner_ewt_dev.iob2": UNER,
        "ner/uner_ewt_test.iob2": UNER,
        "ner/crossner_ai_train.txt": (CROSSNER + "\n") * 20,
        "ner/wikigold_wikigold.conll.txt": (WIKIGOLD + "\n") * 20,
        "ner/wnut17_train.conll": "lady\tB-person\ngaga\tI-person\nsings\tO\n",
        "ner/wnut17_dev.conll": "hi\tO\nthere\tO\n",
        "ner/wnut17_test.conll": "rihanna\tB-person\nsings\tO\n",
    }
    for name, text in files.items():
        with gzip.open(root / f"{name}.gz", "wt", encoding="utf-8") as file:
            file.write(text if name.endswith("jsonl") else text + "\n")
    return root


def named(sentence: AnnotatedSentence) -> list[tuple[str, str]]:
    return [(" ".join(sentence.words[start:end]), label) for start, end, label in list_names(sentence)]


def test_a_treebank_keeps_its_text_and_trees(data: Path) -> None:
    first, second = read_treebank(data / "ud_ewt_dev.conllu.gz")
    assert (first.text, second.text) == ("Google didn't buy Acme of Ohio.", "Good.")
    assert first.words == ("Google", "did", "n't", "buy", "Acme", "of", "Ohio", ".")
    assert first.parse == DependencyParse(
        ("PROPN", "AUX", "PART", "VERB", "PROPN", "ADP", "PROPN", "PUNCT"),
        (3, 3, 3, 3, 3, 6, 4, 3),
        ("nsubj", "aux", "advmod", "ROOT", "obj", "case", "nmod", "punct"),
    )
    assert (first.document, second.document, second.key) == ("weblog-1", "weblog-1", "weblog-1-0002")


def test_gum_names_are_mentions_with_a_proper_name(data: Path) -> None:
    sentence = read_treebank(data / "gum.conllu.gz")[0]
    assert named(sentence) == [("Joan Baez", "PERSON"), ("USA", "LOC")]
    # "May" may be a name of another type for all GUM says; "The singer" is not.
    assert sentence.names == ("O", "O", "B-PERSON", "L-PERSON", "O", "O", "U-LOC", "O", "O", "-")


def test_types_are_mapped_and_uncapitalised_terms_are_no_names(data: Path) -> None:
    sentence = next(read_columns(data / "ner" / "crossner_ai_train.txt.gz", 0, -1))
    assert named(sentence) == [("Deep Learning", "MISC"), ("Yann LeCun", "PERSON"), ("NYU", "ORG")]
    assert sentence.text == "The Deep Learning of neural nets by Yann LeCun (NYU)."
    assert named(next(read_columns(data / "ner" / "wikigold_wikigold.conll.txt.gz", 0, -1))) == [
        ("Mad Capsule", "ORG"),
        ("Japan", "LOC"),
    ]


def test_what_a_corpus_leaves_out_is_unknown(data: Path) -> None:
    sources = read_sources(data)
    # UNER marks no works or products, so the unmarked "Acme of" may be one; EWT's training part has no names at all.
    assert sources.test[0].names == ("U-ORG", "O", "O", "O", "-", "-", "U-LOC", "O")
    assert sources.treebanks[0].names == ("-", "O", "O", "O", "-", "-", "-", "O")
    assert (len(sources.held_out), len(sources.dev), len(sources.test)) == (2 + 2 + 1, 2, 16)
    assert sources.swaps == {
        "PERSON": ["Elvis", "Yann LeCun", "lady gaga"],
        "ORG": ["Google", "Mad Capsule", "NYU"],
        "LOC": ["Japan", "Ohio", "Tupelo"],
        "MISC": ["Deep Learning"],
    }


def sentence(text: str, names: str, heads: tuple[int, ...] = ()) -> AnnotatedSentence:
    words = tuple(text.split())
    parse = DependencyParse(("X",) * len(words), heads, tuple(f"d{i}" for i in range(len(words)))) if heads else None
    return AnnotatedSentence(words, (True,) * len(words), tuple(names.split()), parse)


def test_splitting_at_apostrophes_keeps_the_tree() -> None:
    before = sentence("they do n't love O'Hara 's rock'n'roll", "O O O O B-X I-X L-X", (3, 3, 3, 3, 6, 4, 3))
    after = augment.split_apostrophes(before)
    assert " ".join(after.words) == "they do n ' t love O ' Hara ' s rock'n ' roll"
    assert " ".join(after.names) == "O O O O O O B-X I-X I-X I-X I-X I-X I-X L-X"
    assert after.parse is not None
    #            they do  n  '  t  love O  '  Hara '  s  rock'n ' roll
    assert after.parse.heads == (5, 5, 4, 4, 5, 5, 8, 8, 13, 10, 8, 13, 13, 5)
    assert after.parse.deps == (
        *("d0", "d1", "dep", "punct", "d2", "d3", "dep", "punct", "d4", "punct", "d5", "dep", "punct", "d6"),
    )
    assert after.text.replace(" ", "") == before.text.replace(" ", "")


@pytest.mark.parametrize(
    ("word", "name", "names"),
    [("x'y", "U-A", "B-A I-A L-A"), ("x'y", "B-A", "B-A I-A I-A"), ("x'y", "-", "- - -"), ("xy", "U-A", "U-A")],
)
def test_split_names_stay_whole(word: str, name: str, names: str) -> None:
    assert augment.split_apostrophes(sentence(word, name)).names == tuple(names.split())


def test_only_a_final_full_stop_without_dependents_is_dropped() -> None:
    assert augment.drop_full_stop(sentence("it is .", "O O O")).words == ("it", "is")
    assert augment.drop_full_stop(sentence("is it ?", "O O O")).words == ("is", "it", "?")
    hung = sentence("etc .", "O O", (1, 1))
    assert augment.drop_full_stop(hung) == hung


def test_swapped_names_keep_their_type() -> None:
    before = sentence("Bob met Ann Lee in Rome .", "U-PERSON O B-PERSON L-PERSON O U-LOC O")
    after = augment.swap_names(before, {"PERSON": ["J. R. R. Tolkien"], "LOC": []}, 1.0, random.Random(0))
    assert named(after) == [("J. R. R. Tolkien", "PERSON"), ("J. R. R. Tolkien", "PERSON"), ("Rome", "LOC")]
    assert after.text == "J. R. R. Tolkien met J. R. R. Tolkien in Rome ."


def test_joined_sentences_keep_their_own_trees() -> None:
    joined = augment.join_sentences([sentence("a b", "O U-X", (1, 1)), sentence("c d e", "U-X O -", (0, 0, 1))])
    assert joined.text == "a b c d e"
    assert joined.names == ("O", "U-X", "U-X", "O", "-")
    assert joined.parse is not None
    assert joined.parse.heads == (1, 1, 2, 2, 3)


def test_every_alteration_fits_spacys_tokens(data: Path) -> None:
    nlp = spacy.blank("en")
    sources = read_sources(data)
    always = augment.AlterationChances(lower=1, split=1, drop_stop=1, swap=1)
    for before in [*sources.treebanks[:3], *sources.names]:
        for seed in range(4):
            after = augment.alter_sentence(before, sources.swaps, always, random.Random(seed))
            made = make_spacy_example(nlp, after)
            assert after.text == after.text.lower()
            assert made.reference.text.strip() == after.text
            assert {ent.text for ent in made.reference.ents} == {text for text, _ in named(after)}


@pytest.fixture(scope="module")
def ruled() -> Language:
    nlp = spacy.blank("en")

    def tag(doc: Doc) -> Doc:
        pos = {"first": "ADJ", "third": "ADJ", "one": "NUM"}
        for token in doc:
            follows = token.i > 0 and doc[token.i - 1].lower_ in ("in", "of")
            token.pos_ = "PROPN" if token.lower_ == "may" and follows else pos.get(token.lower_, "X")
        return doc

    Language.component("part_of_speech_for_rules", func=tag)
    nlp.add_pipe("part_of_speech_for_rules")
    nlp.add_pipe("entity_ruler", name="names").add_patterns([{"label": "MISC", "pattern": "Apollo 13"}])
    nlp.add_pipe("entity_ruler", name="atoms", config={"overwrite_ents": False}).add_patterns(
        rules.make_atom_patterns()
    )
    nlp.add_pipe("entity_ruler", name="phrases", config={"overwrite_ents": True}).add_patterns(
        rules.make_phrase_patterns()
    )
    return nlp


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("it ran from 1983 to 1994.", ["1983 DATE", "1994 DATE"]),
        ("the 1990–91 season", ["1990–91 DATE"]),
        ("1990-91, 1990 - 1991, 1990/91", ["1990-91 DATE", "1990 - 1991 DATE", "1990/91 DATE"]),
        ("popular in the 1980 ' s and 1990s .", ["the 1980 ' s DATE", "1990s DATE"]),
        ("since the late 60's", ["the late 60's DATE"]),
        ("in the early nineteen sixties", ["the early nineteen sixties DATE"]),
        ("in the nineteen sixties", ["the nineteen sixties DATE"]),
        ("the late 19th century and 10,000 BC", ["the late 19th century DATE", "10,000 BC DATE"]),
        ("the 20th and 21st centuries", ["the 20th and 21st centuries DATE"]),
        ("On Saturday, March 5, 2011 he left", ["Saturday, March 5, 2011 DATE"]),
        ("on the 4th of july 1776 at 8 pm", ["the 4th of july 1776 DATE", "8 pm TIME"]),
        ("in may 2005 it may rain", ["may 2005 DATE"]),
        ("it may 5 times", ["may 5 DATE"]),
        ("of May", ["May DATE"]),
        ("yesterday and last week", ["yesterday DATE", "last week DATE"]),
        ("thousands of years ago", ["thousands of years ago DATE"]),
        ("for more than 20 years", ["more than 20 years DATE"]),
        ("a couple of days and a few hours", ["a couple of days DATE", "a few hours TIME"]),
        ("a 72-year-old man", ["72-year-old DATE"]),
        ("the past two decades", ["the past two decades DATE"]),
        ("owns 25 % and 7.5 percent", ["25 % PERCENT", "7.5 percent PERCENT"]),
        ("10 , 000 copies or 3 . 5 million", ["10 , 000 CARDINAL", "3 . 5 million CARDINAL"]),
        ("over 600 million records", ["over 600 million CARDINAL"]),
        ("two hundred and fifty people", ["two hundred and fifty CARDINAL"]),
        ("five and six", ["five CARDINAL", "six CARDINAL"]),
        ("twenty - one miles", ["twenty - one miles QUANTITY"]),
        ("it runs 2000 miles", ["2000 miles QUANTITY"]),
        ("$ 5 million or about 20 dollars", ["$ 5 million MONEY", "about 20 dollars MONEY"]),
        ("the first of the third 20th", ["first ORDINAL", "third ORDINAL", "20th ORDINAL"]),
        ("one of a million", ["one CARDINAL", "a million CARDINAL"]),
        ("a pH of 5 .", ["5 CARDINAL"]),
        ("Apollo 13 in 1970", ["Apollo 13 MISC", "1970 DATE"]),
        ("at the end of the day we talk about christmas trees", ["christmas DATE"]),
        ("some day, no number", []),
    ],
)
def test_rules(ruled: Language, text: str, expected: list[str]) -> None:
    for shown in (text, text.replace("Apollo", "\0").lower().replace("\0", "Apollo")):
        doc = ruled(shown)
        assert [f"{ent.text.lower()} {ent.label_}" for ent in doc.ents] == [
            f"{name.lower()} {label}" for name, label in (entry.rsplit(" ", 1) for entry in expected)
        ]


def test_a_saved_pipeline_reads_as_the_trained_one_did(data: Path, tmp_path: Path) -> None:
    sources = read_sources(data)
    nlp = recipe.build_pipeline()
    examples = [make_spacy_example(nlp, s) for s in (*sources.treebanks, *sources.names)]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(5):
        nlp.update(examples, sgd=optimizer)
    recipe.add_rules(nlp)
    recipe.save_pipeline(nlp, tmp_path)
    loaded = spacy.load(tmp_path)
    # The words of the training texts are not part of the pipeline.
    assert "Google" in nlp.vocab.strings
    assert "Google" not in loaded.vocab.strings
    for text in [s.text for s in (*sources.treebanks[:3], *sources.test)] + ["An unseen word in 1854 ."]:
        before, after = nlp(text), loaded(text)
        assert after.to_json() == before.to_json()


@pytest.mark.slow
def test_training_ends_in_a_pipeline_the_runtime_loads(data: Path, tmp_path: Path) -> None:
    train_span_finder(data, tmp_path / "spans", steps=3, seed=1)
    finder = SpanFinder.load(tmp_path / "spans")
    assert [(span.text, span.kind) for span in finder.find("in 1854")][:1] == [("1854", "ent:DATE")]
    report = json.loads((tmp_path / "spans" / "report.json").read_text())
    assert (report["steps"], report["seed"]) == (3, 1)
    assert report["labels"]["ner"] == ["LOC", "MISC", "ORG", "PERSON"]
    again = tmp_path / "again"
    train_span_finder(data, again, steps=3, seed=1)
    for name in ("tok2vec/model", "parser/model", "ner/model", "morphologizer/model"):
        assert (again / name).read_bytes() == (tmp_path / "spans" / name).read_bytes(), name
