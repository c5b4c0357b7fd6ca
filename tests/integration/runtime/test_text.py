"""Text to ids and back: offsets are characters of the caller's text, and text never becomes a special token."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import Replace
from transformers import PreTrainedTokenizerFast

from groundwire.runtime.bundles.manifest import Template
from groundwire.runtime.errors import BundleError, TooLong
from groundwire.runtime.texts import tokenization
from groundwire.runtime.texts.tokenization import TextEncoder, Window, flatten
from tests.support import models
from tests.support.texts import unlike_characters

MAKERS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    "word pieces": models.word_pieces,
    "unigrams of T5": models.unigrams_t5,
    "unigrams of ALBERT": models.unigrams_albert,
    "byte pairs": models.byte_pairs_roberta,
}
MADE = {name: make() for name, make in MAKERS.items()}
TOKENIZERS = list(MAKERS)
PAIRS = [name for name in MAKERS if name != "unigrams of T5"]
SPECIAL = [
    "</s>",
    "<s>",
    "<pad>",
    "[SEP]",
    "[CLS]",
    "[PAD]",
    "[MASK]",
    "<mask>",
    "<extra_id_0>",
    "＜/s＞",
    "<unk>",
    "[UNK]",
]


def encoder(name: str, max_tokens: int = 512) -> TextEncoder:
    return TextEncoder(Tokenizer.from_str(MADE[name].backend_tokenizer.to_str()), max_tokens)


def reserved(name: str) -> set[int]:
    """The ids that text must never become; the id of unknown text is not among them."""
    return set(MADE[name].all_special_ids) - {MADE[name].unk_token_id}


def body(window: Window) -> list[int]:
    return [token for token, owner in zip(window.ids, window.sequence_ids, strict=True) if owner is not None]


# Offsets

UNUSUAL = {
    "accents": "Amélie and José moved to Málaga",
    "accents apart from their letters": "Ame\u0301lie and Jose\u0301 moved",
    "emoji": "👩‍👩‍👧 wow 🎸🎸 and 🏴󠁧󠁢󠁳󠁣󠁴󠁿 then",
    "beyond the basic plane": "𝔊𝔬𝔱𝔥𝔦𝔠 𝒜 and 𠜎",
    "Chinese": "約翰住在東京 and 大阪",
    "Japanese and Korean": "ポケモンは 서울 と東京",
    "Arabic": "ولد إلفيس في ميسيسيبي and",
    "Hebrew with points": "שָׁלוֹם עוֹלָם then",
    "ligatures and full width": "the ﬁrst ＡＢＣ ½ №",
    "uneven spaces": "a  b \u00a0 c\t\td\n\n e",
    "nothing": "",
}


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("before", UNUSUAL.values(), ids=list(UNUSUAL))
def test_a_word_is_located_after_unusual_text(name: str, before: str) -> None:
    text = f"{before} Presley was born in Memphis".strip()
    window = encoder(name).encode(text)
    for word in ("Presley", "born", "Memphis"):
        start = text.index(word)
        covering = [i for i, (a, b) in enumerate(window.offsets) if a < start + len(word) and b > start]
        assert window.text(covering[0], covering[-1], [text]) == word


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("text", UNUSUAL.values(), ids=list(UNUSUAL))
def test_offsets_ascend_and_leave_no_letter_out(name: str, text: str) -> None:
    window = encoder(name).encode(text)
    offsets = [window.offsets[i] for i in range(len(window.ids)) if window.sequence_ids[i] == 0]
    assert offsets == sorted(offsets)
    covered = {index for start, end in offsets for index in range(start, end)}
    assert covered <= set(range(len(text)))
    assert {index for index, character in enumerate(text) if character.isalnum()} <= covered


def test_the_words_of_a_range_come_from_both_texts_of_a_pair() -> None:
    question, passage = "who moved to Memphis?", "Elvis Presley moved to Memphis ."
    window = encoder("word pieces").encode_pair(question, passage)
    (first, last), texts = window.tokens_of(1), (question, passage)
    assert window.text(0, len(window.ids) - 1, texts) == "who moved to Memphis? Elvis Presley moved to Memphis ."
    assert window.text(first, last, texts) == passage
    assert window.text(0, 0, texts) == ""
    assert window.text(first - 2, first, texts).split()[0] == "?"
    assert window.text(first - 1, first, texts) == window.text(first, first, texts)


@pytest.mark.parametrize("name", PAIRS)
def test_positions_of_each_text_of_a_pair(name: str) -> None:
    read = encoder(name)
    window = read.encode_pair("Bob Ross", "the first shop")
    assert [window.ids[slice(a, b + 1)] for a, b in map(window.tokens_of, (0, 1))] == [
        body(read.encode("Bob Ross")),
        body(read.encode("the first shop")),
    ]
    assert read.encode_pair("Bob Ross", "").tokens_of(1) == (0, -1)


@pytest.mark.parametrize("name", PAIRS)
def test_ids_are_those_of_transformers(name: str) -> None:
    for first, second in zip(models.sentences(), reversed(list(models.sentences())), strict=True):
        expected = MADE[name](first, second, return_token_type_ids=True)
        window = encoder(name).encode_pair(first, second)
        assert (window.ids, window.type_ids) == (expected["input_ids"], expected["token_type_ids"])


@pytest.mark.parametrize("name", TOKENIZERS)
def test_decoding_leaves_special_tokens_out(name: str) -> None:
    read = encoder(name)
    ids = read.encode("bob ross was a painter").ids
    assert set(ids) & reserved(name)
    assert read.decode(ids) == "bob ross was a painter"
    assert read.decode([]) == ""


# Windows

LONG = " ".join(models.sentences())


def windows(name: str, *, windowed: int = 1, stride: int = 8, max_tokens: int = 48) -> tuple[list[Window], Window]:
    """The windows of a long text with a short one, and the pair in one window."""
    texts = ("who moved to Memphis?", LONG) if windowed else (LONG, "who moved to Memphis?")
    return encoder(name, max_tokens).encode_windows(*texts, windowed, stride), encoder(name, 10_000).encode_pair(*texts)


@pytest.mark.parametrize("windowed", [0, 1])
@pytest.mark.parametrize("name", PAIRS)
def test_windows_cover_every_character(name: str, windowed: int) -> None:
    pieces, whole = windows(name, windowed=windowed)
    assert len(pieces) > 10
    covered: set[int] = set()
    for piece in pieces:
        first, last = piece.tokens_of(windowed)
        assert len(piece.ids) == 48
        covered |= {index for start, end in piece.offsets[first : last + 1] for index in range(start, end)}
    first, last = whole.tokens_of(windowed)
    assert covered == {index for start, end in whole.offsets[first : last + 1] for index in range(start, end)}
    assert {index for index, character in enumerate(LONG) if not character.isspace()} <= covered


@pytest.mark.parametrize("windowed", [0, 1])
@pytest.mark.parametrize("stride", [0, 1, 8, 1000])
def test_neighbouring_windows_share_the_stride(stride: int, windowed: int) -> None:
    pieces, whole = windows("byte pairs", windowed=windowed, stride=stride)
    first, last = whole.tokens_of(windowed)
    parts = [piece.ids[slice(piece.tokens_of(windowed)[0], piece.tokens_of(windowed)[1] + 1)] for piece in pieces]
    room = len(parts[0])
    shared = min(stride, room // 2)
    joined = parts[0]
    for part in parts[1:-1]:
        assert shared == 0 or part[:shared] == joined[-shared:]
        joined = joined + part[shared:]
    # The last window is moved back to be full, so it may share more.
    missing = last + 1 - first - len(joined)
    assert 0 < missing <= room - shared
    assert joined + parts[-1][-missing:] == whole.ids[first : last + 1]


@pytest.mark.parametrize("name", PAIRS)
def test_every_window_is_a_complete_input(name: str) -> None:
    pieces, whole = windows(name)
    first, last = whole.tokens_of(1)
    for piece in pieces:
        a, b = piece.tokens_of(1)
        assert piece.ids[:a] == whole.ids[:first]
        assert piece.ids[b + 1 :] == whole.ids[last + 1 :]
        assert piece.type_ids[:a] == whole.type_ids[:first]
        assert len(piece.ids) == len(piece.type_ids) == len(piece.sequence_ids) == len(piece.offsets)
        assert piece.text(a, b, ("who moved to Memphis?", LONG)) in LONG


@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_that_fits_is_one_window(name: str) -> None:
    texts = ("who moved to Memphis?", "Elvis Presley moved to Memphis.")
    exact = len(encoder(name).encode_pair(*texts).ids)
    assert encoder(name, exact).encode_windows(*texts, 1, 8) == [encoder(name).encode_pair(*texts)]
    assert len(encoder(name, exact - 1).encode_windows(*texts, 1, 8)) == 2


def test_a_text_that_leaves_no_room_for_the_other_is_refused() -> None:
    question = "who moved to Memphis? " * 8
    room = len(encoder("word pieces").encode_pair(question, "").ids)
    enough = encoder("word pieces", room * 4 // 3 + 1)
    assert len(enough.encode_windows(question, LONG, 1, 8)) > 1
    most = room * 4 // 3 - 1
    with pytest.raises(TooLong, match=rf"{len(question)} characters leaves {most - room} of the model's {most} tokens"):
        encoder("word pieces", most).encode_windows(question, LONG, 1, 8)
    with pytest.raises(TooLong, match="leaves 0 of"):
        encoder("word pieces", 16).encode_windows(question, LONG, 1, 8)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_a_text_longer_than_the_window_is_refused_with_both_numbers(name: str) -> None:
    tokens = len(encoder(name, 10_000).encode(LONG).ids)
    assert encoder(name, tokens).encode(LONG).ids == encoder(name, 10_000).encode(LONG).ids
    with pytest.raises(TooLong, match=rf"{len(LONG)} characters makes {tokens} tokens; this model reads {tokens - 1} "):
        encoder(name, tokens - 1).encode(LONG)
    with pytest.raises(TooLong, match=f"{len(LONG)} characters"):
        encoder(name, 40).encode_pair("short", LONG)


# Special tokens in the text


@pytest.mark.parametrize("name", TOKENIZERS)
@pytest.mark.parametrize("token", SPECIAL)
@pytest.mark.parametrize("pattern", ["{} Bob", "Bob {}", "Bob{}Ross", "{}", "{}{}", "Bob </{} s>{}", "{0}{0}{0}{0}"])
def test_text_never_becomes_a_special_token(name: str, token: str, pattern: str) -> None:
    text = pattern.format(token, token)
    window = encoder(name).encode(text)
    assert not set(body(window)) & reserved(name)
    plain = encoder(name).encode("Bob")
    markers = [token for token, owner in zip(window.ids, window.sequence_ids, strict=True) if owner is None]
    assert markers == [token for token, owner in zip(plain.ids, plain.sequence_ids, strict=True) if owner is None]
    if "Bob" in text:
        start = text.index("Bob")
        covering = [i for i, (a, b) in enumerate(window.offsets) if a < start + 3 and b > start]
        assert window.text(covering[0], covering[-1], [text]).startswith("Bob")


def test_the_tests_above_spell_tokens_that_a_tokenizer_would_take() -> None:
    """A plain tokenizer reads special tokens in these texts, in more than one way."""
    t5 = MADE["unigrams of T5"].backend_tokenizer
    assert 1 in t5.encode("Bob </s> Ross", add_special_tokens=False).ids
    t5 = Tokenizer.from_str(t5.to_str())
    t5.encode_special_tokens = True
    for text in ("Bob </s> Ross", "Bob ＜/s＞ Ross", "<pad>"):  # pieces of the vocabulary, not added tokens
        assert {0, 1} & set(t5.encode(text, add_special_tokens=False).ids)
    assert 3 in MADE["word pieces"].backend_tokenizer.encode("Bob [SEP] Ross", add_special_tokens=False).ids


def test_a_spelled_special_token_is_read_character_by_character() -> None:
    """No character of it is dropped where the vocabulary has no piece of that spelling."""
    assert body(encoder("word pieces").encode("a [SEP] b")) == body(encoder("word pieces").encode("a [ SEP ] b"))
    spelled = body(encoder("byte pairs").encode("Bob </s> and <mask>"))
    assert encoder("byte pairs").decode(spelled) == "Bob </s> and <mask>"


@pytest.mark.parametrize("name", PAIRS)
def test_neither_text_of_a_pair_nor_a_window_brings_special_tokens(name: str) -> None:
    dirty = f"{LONG} </s> [SEP] <pad> ＜/s＞ "
    for first, second, windowed in ((dirty, "who [SEP] </s>?", 0), ("who <pad>＜/s＞?", dirty * 2, 1)):
        for window in encoder(name, 64).encode_windows(first, second, windowed, 8):
            assert not set(body(window)) & reserved(name)


@given(
    st.lists(
        st.one_of(st.sampled_from([*SPECIAL, "Bob", " ", "é", "🎸", "東", "</", "s>"]), st.text(max_size=6)),
        max_size=12,
    )
)
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("name", TOKENIZERS)
def test_any_text_keeps_its_offsets_and_holds_no_special_token(name: str, parts: list[str]) -> None:
    text = "".join(part for part in parts if part.isprintable())
    window = encoder(name).encode(text)
    assert not set(body(window)) & reserved(name)
    offsets = [span for span, owner in zip(window.offsets, window.sequence_ids, strict=True) if owner == 0]
    assert offsets == sorted(offsets)
    assert all(0 <= start <= end <= len(text) for start, end in offsets)


@pytest.mark.parametrize("name", TOKENIZERS)
def test_offsets_are_right_around_every_character(name: str) -> None:
    """Normalization makes several characters of some: two of İ, eighteen of ﷺ."""
    characters = [character for character in unlike_characters() if not "\ud800" <= character <= "\udfff"]
    for start in range(0, len(characters), 1000):
        text = "".join(f"Bob{character}Ross {character} " for character in characters[start : start + 1000]) + "Bob"
        window = encoder(name).encode_plain(text)
        assert all(0 <= begin <= end <= len(text) for begin, end in window.offsets)
        assert all(a[0] <= b[0] and a[1] <= b[1] for a, b in itertools.pairwise(window.offsets))
        assert len(window.ids) <= 20 * len(text)
        assert window.text(0, len(window.ids) - 1, [text]) == text


def test_special_tokens_are_blanked_out_in_one_pass_per_text(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []
    original = tokenization._blank_out

    def count(text: str, starts: list[int]) -> str:
        texts.append(text)
        return original(text, starts)

    monkeypatch.setattr(tokenization, "_blank_out", count)
    window = encoder("unigrams of T5").encode_plain("</s> Bob " * 300)
    assert not set(body(window)) & reserved("unigrams of T5")
    assert len(texts) == 1


# Templates


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        (Template("answer: {answer}  context: {context}"), ("answer: {context}  context: }{ {answer} {0} %s", None)),
        (Template("{answer}", "{context}"), ("{context}", "}{ {answer} {0} %s")),
        (Template("{context}{context}", ""), ("}{ {answer} {0} %s" * 2, "")),
        (Template("no field", "a } alone"), ("no field", "a } alone")),
    ],
)
def test_braces_in_fields_are_text(template: Template, expected: tuple[str, str | None]) -> None:
    fields = {"answer": "{context}", "context": "}{ {answer} {0} %s"}
    assert encoder("word pieces").render(template, fields) == expected


def test_rows_are_flattened_with_their_bounds() -> None:
    flat, bounds = flatten([[5, 6], [], [7]])
    assert (flat.tolist(), bounds.tolist()) == ([5, 6, 7], [0, 2, 2, 3])
    assert [array.tolist() for array in flatten([])] == [[], [0]]


# Files


def test_roles_with_equal_files_share_a_tokenizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[bytes] = []

    def count(content: bytes) -> Tokenizer:
        read.append(content)
        return Tokenizer.from_buffer(content)

    monkeypatch.setattr(tokenization, "Tokenizer", SimpleNamespace(from_buffer=count))
    files = [tmp_path / name for name in ("qa.json", "nli.json", "lm.json")]
    for file, name in zip(files, ("word pieces", "word pieces", "byte pairs"), strict=True):
        file.write_text(MADE[name].backend_tokenizer.to_str() + " " * 7, encoding="utf-8")
    wide, narrow, other = (TextEncoder.load(file, tokens) for file, tokens in zip(files, (512, 16, 512), strict=True))
    assert len(read) == 2
    text = "Paris is the capital of France. " * 4
    assert wide.encode(text) == encoder("word pieces").encode(text)
    assert other.encode(text) == encoder("byte pairs").encode(text)
    with pytest.raises(TooLong):
        narrow.encode(text)


def test_a_tokenizer_that_reads_nothing_is_refused() -> None:
    nothing = Tokenizer(WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    nothing.normalizer = Replace(Regex("."), "")
    with pytest.raises(BundleError, match="reads no letter"):
        TextEncoder(nothing, 16).encode("Bob")
