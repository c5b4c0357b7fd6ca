"""Texts of many slices: the tokens that they have as a whole, and no more of them than somebody needs."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Encoding, Tokenizer

from groundwire.runtime.errors import TooLong, Unreadable
from groundwire.runtime.texts import tokenization
from groundwire.runtime.texts.slices import OVERLAP, SLICE
from groundwire.runtime.texts.tokenization import TextEncoder, Window
from tests.support import models
from tests.support.texts import read_whole

MAKERS = {
    "word pieces": models.word_pieces,
    "unigrams of T5": models.unigrams_t5,
    "unigrams of ALBERT": models.unigrams_albert,
    "byte pairs of RoBERTa": models.byte_pairs_roberta,
    "byte pairs of GPT-2": models.byte_pairs_gpt2,
    "byte pairs of BLOOM": models.byte_pairs_bloom,
}
SOURCES = {name: make().backend_tokenizer.to_str() for name, make in MAKERS.items()}
PAIRS = ["word pieces", "unigrams of ALBERT", "byte pairs of RoBERTa"]
SENTENCE = "Elvis Presley was born in Tupelo, Mississippi in 1935 and moved to Memphis. "
MEGABYTE = SENTENCE * (1_000_000 // len(SENTENCE))


class CountingTokenizer:
    """A tokenizer that counts the characters it is given."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self.characters = 0
        self.longest = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tokenizer, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "encode_special_tokens":
            setattr(self._tokenizer, name, value)
        else:
            super().__setattr__(name, value)

    def encode(self, first: str, second: str | None = None, **settings: Any) -> Encoding:
        self._count(len(first) + len(second or ""))
        return self._tokenizer.encode(first, second, **settings)

    def encode_batch(self, texts: list[str] | list[tuple[str, str]], **settings: Any) -> list[Encoding]:
        self._count(sum(len(text) if isinstance(text, str) else sum(map(len, text)) for text in texts))
        return self._tokenizer.encode_batch(texts, **settings)

    def _count(self, characters: int) -> None:
        self.characters += characters
        self.longest = max(self.longest, characters)


def counting(name: str, max_tokens: int = 256) -> tuple[TextEncoder, CountingTokenizer]:
    tokenizer = CountingTokenizer(Tokenizer.from_str(SOURCES[name]))
    return TextEncoder(tokenizer, max_tokens), tokenizer  # type: ignore[arg-type]


def read_in_one(name: str, first: str, second: str | None = None) -> Window:
    """The window of a text or pair that the library reads in one call."""
    return read_whole(SOURCES[name], *([first] if second is None else [first, second]))


WORDS = [
    *SENTENCE.split(),
    "é",
    "🎸🎸",
    "東京",
    "約翰住在東京",
    "x" * 150,
    "ab-" * 40,
    "(" * 30,
    "</s>",
    "[SEP]",
    "İ",
    "ﷺ",
    "１",
]
SPACES = [" ", " ", " ", "  ", "\n", "\t\n", "\u00a0", " " * 200]


@given(st.integers(0, 2**32), st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=8), max_size=6))
@settings(max_examples=4, deadline=None)
@pytest.mark.parametrize("name", list(MAKERS))
def test_a_long_text_has_the_tokens_that_it_has_as_a_whole(name: str, seed: int, unusual: list[str]) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choice([*WORDS, *unusual]) + rng.choice(SPACES) for _ in range(1_500))
    assert len(text) > 2 * SLICE
    encoder, _ = counting(name)
    assert encoder._read((text,)) == read_in_one(name, text)


PIECES = st.one_of(st.sampled_from([*WORDS, *SPACES]), st.text(st.characters(exclude_categories=["Cs"]), max_size=6))


@given(st.lists(PIECES, max_size=12), st.lists(PIECES, max_size=12))
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("name", list(MAKERS))
def test_texts_that_are_read_one_by_one_join_as_the_library_joins_them(
    name: str, left: list[str], right: list[str]
) -> None:
    first, second = "".join(left), "".join(right)
    encoder, _ = counting(name, 10_000)
    assert encoder.encode(first) == read_in_one(name, first)
    assert encoder.encode_pair(first, second) == read_in_one(name, first, second)


def test_a_passage_that_several_questions_are_about_is_read_once() -> None:
    encoder, tokenizer = counting("word pieces")
    encoder.encode("x")
    before = tokenizer.characters
    for question in ("Who?", "Where?", "When?") * 5:
        encoder.share(512).encode_pair(question, SENTENCE)
        encoder.encode(SENTENCE)
    # The layout of pairs is found once, on one character each.
    assert tokenizer.characters - before == 2 + sum(map(len, ("Who?", "Where?", "When?", SENTENCE)))


def test_short_texts_that_were_read_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenization, "RECENT_TOKENS", 40)
    encoder, tokenizer = counting("word pieces")
    for number in range(20):
        encoder.encode(f"{number} {SENTENCE}")
    before = tokenizer.characters
    encoder.encode(f"19 {SENTENCE}")
    assert tokenizer.characters == before
    encoder.encode(f"0 {SENTENCE}")
    assert tokenizer.characters > before


@pytest.mark.parametrize("name", ["word pieces", "unigrams of T5", "byte pairs of GPT-2"])
@pytest.mark.parametrize(
    "text",
    [
        "(" * 20_000,
        "a " * 10_000,
        "1," * 10_000,
        "ab-" * 7_000,
        " " * 20_000,
        "a" + " " * 20_000 + "b",
        "a" * 20_000,
        SENTENCE * 100 + "x" * 20_000 + SENTENCE * 100,
        SENTENCE * 100 + " " * 20_000 + SENTENCE * 100,
        "e\u0301" * 10_000,
        "[SEP] </s> " * 3_000,
    ],
    ids=lambda text: f"{text[:6]!r}",
)
def test_unusual_long_texts_have_the_tokens_that_they_have_as_a_whole(name: str, text: str) -> None:
    encoder, _ = counting(name)
    assert encoder._read((text,)) == read_in_one(name, text)
    assert encoder.encode_plain(text).offsets == [
        span for span, owner in zip(*read_in_one(name, text)[3:1:-1], strict=True) if owner == 0
    ]


@pytest.mark.parametrize("windowed", [0, 1])
@pytest.mark.parametrize("name", PAIRS)
def test_the_windows_of_a_long_text_are_cut_from_the_whole_pair(name: str, windowed: int) -> None:
    text = f"{SENTENCE * 300} 東 東 {'y' * 200} "
    pair = ("Who was born?", text) if windowed else (text, "Who was born?")
    encoder, _ = counting(name)
    windows = encoder.encode_windows(*pair, windowed, 64)
    whole = read_in_one(name, *pair)
    first, last = whole.tokens_of(windowed)
    begin, end = windows[0].tokens_of(windowed)
    room = end - begin + 1
    assert windows[0].ids[begin : end + 1] == whole.ids[first : first + room]
    for index, window in enumerate(windows):
        start = min(index * (room - 64), last + 1 - first - room)
        for column, all_tokens in zip(window[:4], whole[:4], strict=True):
            assert column[:begin] == all_tokens[:first]
            assert column[begin : end + 1] == all_tokens[first + start : first + start + room]
            assert column[end + 1 :] == all_tokens[last + 1 :]
        assert window.unread == whole.unread


# How much is read of what is refused


@pytest.mark.parametrize("windowed", [0, 1])
@pytest.mark.parametrize("name", PAIRS)
def test_knowledge_of_too_many_windows_is_not_read_to_its_end(name: str, windowed: int) -> None:
    encoder, tokenizer = counting(name)
    pair = ("Who?", MEGABYTE) if windowed else (MEGABYTE, "Who?")
    with pytest.raises(TooLong, match="The knowledge makes more than 20 windows of 256 tokens"):
        encoder.encode_windows(*pair, windowed, 64, max_windows=20)
    assert tokenizer.characters < 100_000
    assert tokenizer.longest <= 2 * SLICE


def test_windows_are_refused_at_the_same_number_whether_a_text_is_long_or_short() -> None:
    for text in (SENTENCE * 50, SENTENCE * 500):
        count = len(counting("word pieces")[0].encode_windows("Who?", text, 1, 64))
        encoder, _ = counting("word pieces")
        assert len(encoder.encode_windows("Who?", text, 1, 64, max_windows=count)) == count
        assert len(encoder.encode_windows("Who?", text, 1, 64, max_windows=count + 3, before=3)) == count
        for limit, before in ((count - 1, 0), (count + 2, 3)):
            with pytest.raises(TooLong, match=f"more than {limit} windows"):
                encoder.encode_windows("Who?", text, 1, 64, limit, before)
        parts = len(encoder.encode_parts(text, 64))
        assert len(encoder.encode_parts(text, 64, parts)) == parts
        with pytest.raises(TooLong, match=f"of {len(text)} characters makes more than {parts - 1} windows"):
            encoder.encode_parts(text, 64, parts - 1)


@pytest.mark.parametrize("name", PAIRS)
def test_texts_beyond_one_window_are_not_read_to_their_end(name: str) -> None:
    encoder, tokenizer = counting(name)
    for refuse in (
        lambda: encoder.encode(MEGABYTE),
        lambda: encoder.encode_pair("Who?", MEGABYTE),
        lambda: encoder.encode_pair(MEGABYTE, "Who?"),
        lambda: encoder.encode_plain(MEGABYTE, must_fit=True),
    ):
        with pytest.raises(TooLong, match=f"{len(MEGABYTE)} characters makes more than 256 tokens"):
            refuse()
    for windowed in (0, 1):
        pair = ("Who?", MEGABYTE) if windowed == 0 else (MEGABYTE, "Who?")
        with pytest.raises(TooLong, match=f"{len(MEGABYTE)} characters leaves 0 of the model's 256 tokens"):
            encoder.encode_windows(*pair, windowed, 64, max_windows=20)
    assert tokenizer.characters <= 2 * SLICE + OVERLAP


def test_questions_about_one_document_read_it_once() -> None:
    encoder, tokenizer = counting("word pieces")
    text = SENTENCE * 1_000
    for question in ("Who?", "Where was he born?", "When?"):
        encoder.encode_windows(question, text, 1, 64, max_windows=512)
    assert tokenizer.characters < 1.2 * len(text)


def test_a_long_text_that_cannot_be_read_is_refused_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    encoder, _ = counting("word pieces")
    error = TooLong("The text spells the model's special tokens again and again; remove them.")

    def fail(text: str) -> object:
        raise error

    monkeypatch.setattr(encoder._long_texts, "_tokenize", fail)
    for _ in range(2):
        with pytest.raises(TooLong, match="again and again"):
            encoder.encode_plain(MEGABYTE)


def test_unreadable_is_too_long() -> None:
    """Why a language model may say that a long text is in another script, although its tokens were not counted."""
    assert issubclass(Unreadable, TooLong)
    encoder, tokenizer = counting("word pieces")
    assert encoder.find_foreign("東京" * 5_000).characters == 10_000
    assert tokenizer.characters == 0
