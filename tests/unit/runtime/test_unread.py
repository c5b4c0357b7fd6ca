"""What a tokenizer does not read is counted, and too much of it is an error, not an answer about the rest."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

from groundwire.runtime.errors import TooLong, Unreadable
from groundwire.runtime.texts.tokenization import TextEncoder
from groundwire.runtime.texts.unread import (
    LETTERS_OF_A_SCRIPT,
    MAX_UNREAD,
    NOTHING_UNREAD,
    WORDS_OF_A_SCRIPT,
    Unread,
    check_readable,
    find_scripts,
    find_unread,
    read_pair,
    script_of,
)

LATIN = frozenset({"LATIN"})
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789.,()-"


ENGLISH = [f"{first}{second}" for first in ALPHABET[:20] for second in ALPHABET[:5]]
"""As many words as a script needs to be read."""


def make_encoder(*entries: str, max_tokens: int = 512) -> TextEncoder:
    """A WordPiece tokenizer that spells ASCII words and Korean syllables, and knows ``entries``."""
    pieces = ["[UNK]", *ALPHABET, *(f"##{letter}" for letter in ALPHABET), "도", "##쿄", *ENGLISH, *entries]
    vocabulary = {piece: index for index, piece in enumerate(dict.fromkeys(pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return TextEncoder(tokenizer, max_tokens)


@pytest.mark.parametrize(
    ("character", "script"),
    [
        ("a", "LATIN"),
        ("ø", "LATIN"),
        ("A", "LATIN"),
        ("𝐀", "LATIN"),
        ("ж", "CYRILLIC"),
        ("도", "HANGUL"),
        ("東", "CJK"),
        ("ी", "DEVANAGARI"),
        ("\u0301", ""),
        ("1", ""),
        ("—", ""),
        ("😂", ""),
        ("\ud800", ""),
        ("\U000f0000", ""),
    ],
)
def test_the_script_of_a_character(character: str, script: str) -> None:
    assert script_of(character) == script


def test_a_script_is_read_when_the_vocabulary_has_words_of_it() -> None:
    words = [f"я{chr(0x430 + i // 30)}{chr(0x430 + i % 30)}" for i in range(WORDS_OF_A_SCRIPT)]
    assert find_scripts([*ENGLISH, *words]) == {"LATIN", "CYRILLIC"}
    assert find_scripts([*ENGLISH, *words[1:]]) == {"LATIN"}
    letters = [chr(0x4E00 + i) for i in range(LETTERS_OF_A_SCRIPT)]
    assert find_scripts([*ENGLISH, *letters]) == {"LATIN", "CJK"}
    assert find_scripts([*ENGLISH, *letters[1:]]) == {"LATIN"}


def test_signs_are_of_no_script() -> None:
    assert find_scripts([*ENGLISH, *"—…€" * LETTERS_OF_A_SCRIPT]) == {"LATIN"}


def test_what_is_not_read_of_two_texts_is_joined() -> None:
    joined = Unread(2, frozenset({"東", "京"})).join(Unread(3, frozenset({"京", "都"})))
    assert joined == Unread(5, frozenset({"東", "京", "都"}))
    assert joined.join(NOTHING_UNREAD) == joined


def test_a_vocabulary_without_words_reads_all_scripts() -> None:
    assert find_scripts([*ALPHABET, *ENGLISH[1:]]) is None
    assert find_unread("도쿄 is 東京", [(6, 7)], None) == Unread(1, frozenset({"東"}))


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("Tokyo", NOTHING_UNREAD),
        ("naïve café — “Łódź”, 30 °C", NOTHING_UNREAD),
        ("도쿄 is 東京", Unread(4)),
        ("angle α", Unread(1)),
    ],
)
def test_letters_of_other_scripts_are_counted(text: str, unread: Unread) -> None:
    assert find_unread(text, (), LATIN) == unread


def test_unknown_tokens_are_counted_once_and_their_words_kept() -> None:
    assert find_unread("a 東京 😂 b", [(2, 4), (5, 6)], LATIN) == Unread(3, frozenset({"東京"}))


@given(st.text(), st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=3))
def test_no_more_is_unread_than_there_is(text: str, ranges: list[tuple[int, int]]) -> None:
    unknown = [(start, end) for start, end in ranges if start < end <= len(text)]
    assert find_unread(text, unknown, LATIN).characters <= len(text)


def test_an_encoder_counts_both_texts_whole_in_every_window() -> None:
    encoder = make_encoder(max_tokens=32)
    windows = encoder.encode_windows("who 도쿄", f"{'word ' * 30}{'x' * 101} 😂 도쿄", 1, 4)
    assert len(windows) > 1
    for window in windows:
        assert window.unread == (Unread(2), Unread(101 + 1 + 2, frozenset({"x" * 101})))
    assert encoder.encode_plain("도쿄").unread == (Unread(2), NOTHING_UNREAD)
    assert encoder.encode_parts("도쿄", 0)[0].window.unread == (Unread(2), NOTHING_UNREAD)


def test_a_vocabulary_with_words_of_a_script_reads_it() -> None:
    encoder = make_encoder(*(f"##{chr(0xAC00 + i)}{chr(0xAC00 + i)}" for i in range(WORDS_OF_A_SCRIPT)))
    assert encoder.encode_plain("도쿄").unread == (NOTHING_UNREAD, NOTHING_UNREAD)


def test_too_much_is_an_error_that_counts_as_too_long() -> None:
    check_readable("response", Unread(int(MAX_UNREAD * 100)), 100)
    with pytest.raises(Unreadable, match="31 of the 100 characters of the response") as caught:
        check_readable("response", Unread(int(MAX_UNREAD * 100) + 1), 100)
    assert isinstance(caught.value, TooLong)  # so the status is "truncated"


def test_what_is_read_of_the_knowledge() -> None:
    read = read_pair(NOTHING_UNREAD, 10, Unread(5), 100, 2)
    assert (read.windows, read.characters, read.total) == (2, 95, 100)


@pytest.mark.parametrize(
    ("ours", "theirs", "clash"), [("a", "b", True), ("a", "ab", False), ("a", "", False), ("", "b", False)]
)
def test_response_and_knowledge_may_not_meet_in_one_unknown_token(ours: str, theirs: str, clash: bool) -> None:
    response, knowledge = Unread(5, frozenset(ours)), Unread(5, frozenset(theirs))
    if clash:
        with pytest.raises(Unreadable, match="The word 'a' of the response and words of the knowledge are unknown"):
            read_pair(response, 100, knowledge, 100, 1)
    else:
        assert read_pair(response, 100, knowledge, 100, 1).characters == 95
