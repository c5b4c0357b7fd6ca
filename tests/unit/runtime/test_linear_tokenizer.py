"""spaCy's tokenizer in linear time: equal on ordinary text, with bounded pieces on any other, and bounded parts."""

from __future__ import annotations

import itertools
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import spacy
from hypothesis import given
from hypothesis import strategies as st
from spacy.tokenizer import Tokenizer
from spacy.tokens import Doc

from groundwire.runtime.texts import linear_tokenizer
from groundwire.runtime.texts.linear_tokenizer import (
    LONGEST_CHUNK,
    LONGEST_PART,
    LinearTokenizer,
    cut_chunks,
    cut_parts,
)
from tests.support.texts import TEXT

ASCII = [chr(code) for code in range(128)]
REPEATED = [*ASCII, "…", "😂", "。", "\u00a0", "\u200d", "\u0301", ":)", "[]", "a.", "1+", "'s", "can't", "a\n", "x/"]
LENGTH = 5_000
ORDINARY = (
    "It isn’t “so-called”, e.g. 5km/h… (see https://example.org/wiki/Bob_Ross?q=a#b), can't\tbe :-) a.m.  U.S.A.!!\n"
)


@cache
def spacy_tokenizer() -> Tokenizer:
    return spacy.blank("en").tokenizer


class Token(NamedTuple):
    """What the pipelines read of a token."""

    text: str
    start: int
    norm: str
    space: str


def read(doc: Doc) -> list[Token]:
    return [Token(token.text, token.idx, token.norm_, token.whitespace_) for token in doc]


class Recorder:
    """spaCy's tokenizer, which keeps the texts that it is given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, text: str) -> Doc:
        self.texts.append(text)
        return spacy_tokenizer()(text)


@pytest.mark.parametrize("text", [ORDINARY, TEXT, "", " ", "\n", "(" * LONGEST_CHUNK, *TEXT.splitlines()])
def test_ordinary_texts_are_read_by_spacy_as_a_whole(text: str) -> None:
    recorder = Recorder()
    assert read(LinearTokenizer(recorder)(text)) == read(spacy_tokenizer()(text))
    assert recorder.texts == [text]


@pytest.mark.parametrize("repeated", REPEATED, ids=ascii)
def test_the_work_grows_linearly_with_the_length_of_a_run(repeated: str) -> None:
    text = (repeated * LENGTH)[:LENGTH]
    recorder = Recorder()
    doc = LinearTokenizer(recorder)(text)
    assert doc.text == text
    assert "".join(recorder.texts) == text
    assert len(recorder.texts) <= 2 * LENGTH / LONGEST_CHUNK + 1
    assert max(len(chunk) for piece in recorder.texts for chunk in piece.split() or [""]) <= LONGEST_CHUNK


TEXTS = st.lists(
    st.tuples(st.sampled_from([*"aB1 .,-(\n", "…", "can't", "😂", ". "]), st.integers(1, 90)), max_size=12
).map(lambda runs: "".join(text * count for text, count in runs))


@given(TEXTS)
def test_pieces_are_the_text_with_its_long_chunks_cut(text: str) -> None:
    pieces = list(cut_chunks(text))
    assert "".join(pieces) == text
    assert all(len(chunk) <= LONGEST_CHUNK for piece in pieces for chunk in piece.split())
    assert all(len(a) + len(b) > LONGEST_CHUNK for a, b in itertools.pairwise(pieces))
    if all(len(chunk) <= LONGEST_CHUNK for chunk in text.split()):
        assert pieces == [text]


@given(TEXTS)
def test_documents_keep_the_text_and_its_tokens_their_places(text: str) -> None:
    doc = LinearTokenizer(spacy_tokenizer())(text)
    assert doc.text == text
    assert all(text[token.idx : token.idx + len(token)] == token.text for token in doc)


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("see " + "word/" * 13 + " it", ["see " + "word/" * 12 + "word", "/ it"]),
        ("see " + "word/" * 12 + "+" * 70, ["see " + "word/" * 11 + "word", "/" + "+" * 63, "+" * 7]),
        ("words" + "." * 90, ["words", "." * 64, "." * 26]),
        ("w" * 130, ["w" * 64, "w" * 64, "ww"]),
    ],
)
def test_a_long_chunk_is_cut_at_the_last_word_boundary_that_fits(text: str, pieces: list[str]) -> None:
    assert list(cut_chunks(text)) == pieces


def test_text_around_a_long_chunk_is_read_as_before() -> None:
    before, after = "We can't  go. ", " Don't  say so, Dr. Dre!"
    doc = LinearTokenizer(spacy_tokenizer())(before + "=" * 200 + after)
    expected = read(spacy_tokenizer()(before)), read(spacy_tokenizer()(after.strip()))
    tokens = read(doc)
    assert [(token.text, token.norm) for token in tokens[: len(expected[0])]] == [t[0:3:2] for t in expected[0]]
    assert [(token.text, token.norm) for token in tokens[-len(expected[1]) :]] == [t[0:3:2] for t in expected[1]]
    assert ("n't", "not") in [(token.text, token.norm) for token in tokens]


@pytest.mark.parametrize("separator", [" ", "\n", "  ", "\n\n "], ids=ascii)
def test_other_threads_run_between_the_parts_of_a_long_text(separator: str) -> None:
    text = separator.join([*(ORDINARY + TEXT).split()] * 100)
    recorder = Recorder()
    tokenizer = LinearTokenizer(recorder)
    assert read(tokenizer(text)) == read(spacy_tokenizer()(text))
    assert "".join(recorder.texts) == text
    assert max(map(len, recorder.texts)) <= LONGEST_PART
    assert len(recorder.texts) <= len(text) / LONGEST_PART * 1.1 + 1


def test_a_part_is_bounded_where_every_cut_may_change_a_token() -> None:
    text = ": ) " * LONGEST_PART
    tokenizer = LinearTokenizer(spacy_tokenizer())
    parts = list(cut_parts(text, tokenizer.joined))
    assert "".join(parts) == text
    assert max(map(len, parts)) == LONGEST_PART
    assert tokenizer(text).text == text


RULES = sorted(rule for rule in spacy_tokenizer().rules if len(rule) > 1 and not any(map(str.isspace, rule)))
SPACED_RULES = st.lists(
    st.tuples(st.sampled_from(RULES), st.integers(0, 5), st.sampled_from([" ", "\n", "  ", "", " Q "])), max_size=30
).map(lambda drawn: "".join(rule[:split] + space + rule[split:] + space for rule, split, space in drawn))


@given(SPACED_RULES | TEXTS, st.integers(5, 60))
def test_documents_of_parts_are_those_of_the_text(text: str, longest: int) -> None:
    """Exceptions of the tokenizer with spaces in them, which spaCy joins where they meet other exceptions."""
    text = "".join(cut_chunks(text[:400]))
    tokenizer = LinearTokenizer(spacy_tokenizer())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(linear_tokenizer, "LONGEST_PART", longest)
        parts = list(cut_parts(text, tokenizer.joined))
        doc = tokenizer(text)
    assert "".join(parts) == doc.text == text
    assert all(part and not part[0].isspace() for part in parts[1:])
    assert all(len(part) <= longest or len(part.split()) <= 1 for part in parts)
    if all(len(chunk) <= LONGEST_CHUNK for chunk in text.split()) and not any(
        "".join(before.split())[-1:] + after[0] in tokenizer.joined for before, after in itertools.pairwise(parts)
    ):
        assert read(doc) == read(spacy_tokenizer()(text))


def test_a_cut_between_joined_characters_changes_tokens() -> None:
    """Why there is no cut between them: spaCy finds the exception ":(" in ": (", and then not the "(8-)" after it."""
    before, after = "Neednt:( ", "(8-)"
    tokens = read(spacy_tokenizer()(before))[:3], read(spacy_tokenizer()(after))
    assert "((" in LinearTokenizer(spacy_tokenizer()).joined
    assert [token.text for part in tokens for token in part] != [t.text for t in spacy_tokenizer()(before + after)]


def test_a_run_of_spaces_is_one_token_of_any_length() -> None:
    text = "a" + " " * 2 * LONGEST_PART + "b" + "\n" * 2 * LONGEST_PART
    assert read(LinearTokenizer(spacy_tokenizer())(text)) == read(spacy_tokenizer()(text))


def test_a_subclass_of_str_is_read_as_its_text() -> None:
    text = np.str_("Bob Ross can't")
    assert read(LinearTokenizer(spacy_tokenizer())(text)) == read(spacy_tokenizer()(str(text)))
