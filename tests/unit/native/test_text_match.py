from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from groundwire.runtime import _native
from tests.reference import text_match as reference

# Any str, lone surrogates included, and many characters that the definition treats specially.
ANY = st.text(st.characters(categories=None, exclude_categories=()))
PLAIN = ["a", "an", "the", "in", "our", "The", "inn", "x", "7", " ", "\t", "\x1c", "\xa0", "\u2003", ".", "-", "_", "'"]
ODD = ["\u0301", "\u0130", "\u03a3", "\ufb01", "\u00b2", "\u4e00", "\U0001f600", "\ud800", "\udfff"]
SPECIAL = st.lists(st.sampled_from([*PLAIN, *ODD])).map("".join)
TEXTS = st.one_of(SPECIAL, ANY)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("", ""),
        ("The U.S. in 1999", "us 1999"),
        ("  a  an\tthe\nin our ", ""),
        # Punctuation is deleted first: that can make a dropped word, or hide one.
        ("th-e end", "end"),
        ("in-our house", "inour house"),
        ("an_a", "ana"),
        ("Theodore's inn", "theodores inn"),
        # A combining mark is not a word character, so it ends the word before it.
        ("a\u0301b", "\u0301b"),
        ("ΣΟΦΟΣ", "σοφο\u03c2"),
        ("İn", "i̇n"),
        ("¿qué?", "¿qué"),
        ("x\x1c\u2003y\xa0", "x y"),
        ("\ud800 A \udfff", "\ud800 \udfff"),
    ],
)
def test_clean(text: str, cleaned: str) -> None:
    assert reference.clean(text) == cleaned
    assert _native.clean(text) == cleaned


@given(TEXTS)
@example("\x00the\x00")
def test_clean_equals_its_reference_implementation(text: str) -> None:
    assert _native.clean(text) == reference.clean(text)


def test_the_first_text_of_a_process_may_be_any() -> None:
    """Classes of characters are read page by page, with the first text that needs them."""
    script = "from groundwire.runtime import _native; print(ascii(_native.clean('\u4e00')))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout == "'\\u4e00'\n"


def test_clean_equals_its_reference_implementation_on_every_code_point() -> None:
    for first in range(0, sys.maxunicode + 1, 1 << 14):
        text = "".join(f"{chr(c)}an{chr(c)} x" for c in range(first, min(first + (1 << 14), sys.maxunicode + 1)))
        # A bool, because pytest's diff of texts this long never ends.
        equal = _native.clean(text) == reference.clean(text)
        assert equal, f"differs between U+{first:04X} and U+{first + (1 << 14) - 1:04X}"


@pytest.mark.parametrize(
    ("prediction", "expected", "f1"),
    [
        ("Danube", "the Danube", 1.0),
        ("the Danube river", "Danube", 2 / 3),
        ("x x y", "x z", 2 * (1 / 3) * (1 / 2) / (1 / 3 + 1 / 2)),
        ("x x", "x x x", 0.8),
        ("Rhine", "Danube", 0.0),
        ("", "Danube", 0.0),
        ("Danube", "...", 0.0),
        ("", "", 0.0),
        ("the", "a", 0.0),
    ],
)
def test_token_f1(prediction: str, expected: str, f1: float) -> None:
    assert _native.token_f1(prediction, expected) == f1


WORDS = st.lists(st.sampled_from(["x", "y", "z", "the", "X.", "\u00e9", "\ud800"]), max_size=12).map(" ".join)


@given(st.one_of(WORDS, TEXTS), st.one_of(WORDS, TEXTS))
def test_token_f1_and_exact_match_equal_their_reference_implementations(a: str, b: str) -> None:
    assert _native.token_f1(a, b) == reference.token_f1(a, b)
    assert _native.exact_match(a, b) == reference.exact_match(a, b)


@pytest.mark.parametrize(
    ("a", "b", "same"), [("The End.", "end", True), ("", "the", True), ("end", "ends", False), ("x y", "xy", False)]
)
def test_exact_match(a: str, b: str, same: bool) -> None:
    assert _native.exact_match(a, b) is same


def test_a_subclass_of_str_is_its_text() -> None:
    class Shout(str):
        __slots__ = ()

        def lower(self) -> str:
            raise AssertionError

    assert _native.clean(Shout("The END")) == "end"


@pytest.mark.parametrize("text", [b"x", None, 3])
def test_what_is_no_str_is_a_type_error(text: object) -> None:
    with pytest.raises(TypeError):
        _native.clean(text)  # type: ignore[arg-type]


def test_threads_do_not_disturb_each_other() -> None:
    texts = [f"The {i} rivers in our {i % 7}. valley " * 50 for i in range(64)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(_native.clean, texts)) == [reference.clean(text) for text in texts]
