"""A wrong value leaves the guard's default policy in other signs no more often than in plain digits."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from groundwire.engine import Engine
from groundwire.guard import Guard
from groundwire.runtime.bundles.bundle import embedded

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout has no embedded bundle")

KNOWLEDGE = (
    "The warranty lasts 24 months. Returns are accepted within 30 days. Parking costs 12 euros a day. The shop has 14 "
    "branches and opens at 9. Delivery takes 3 days."
)
WRONG = [
    ("The warranty lasts {} months.", "36"),
    ("The warranty lasts {} months.", "48"),
    ("The warranty is {} months long.", "18"),
    ("Returns are accepted within {} days.", "60"),
    ("Returns are accepted within {} days.", "90"),
    ("Parking costs {} euros a day.", "9"),
    ("Parking costs {} euros a day.", "25"),
    ("The shop has {} branches.", "85"),
    ("The shop opens at {}.", "11"),
    ("Delivery takes {} days.", "7"),
]
RIGHT = [
    ("The warranty lasts {} months.", "24"),
    ("Returns are accepted within {} days.", "30"),
    ("Parking costs {} euros a day.", "12"),
    ("The shop has {} branches.", "14"),
    ("Delivery takes {} days.", "3"),
]
Way = Callable[[str], str]


def spell(digits: str, before: str = "", after: str = "") -> Way:
    """A way to write each digit as one of ten signs."""
    signs = digits if len(digits) == 10 else "".join(chr(ord(digits) + digit) for digit in range(10))
    return lambda number: "".join(f"{before}{signs[int(digit)]}{after}" for digit in number)


def join(between: str) -> Way:
    """A way to write something between the digits."""
    return lambda number: between.join(number)


def wrap(before: str, after: str) -> Way:
    """A way to write something around a number."""
    return lambda number: f"{before}{number}{after}"


RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
WAYS: dict[str, Way] = {
    "keycaps": spell("0", after="\ufe0f\u20e3"),
    "bare keycaps": spell("0", after="\u20e3"),
    "circles around digits": spell("0", after="\u20dd"),
    "circled": spell("⓪①②③④⑤⑥⑦⑧⑨"),
    "on discs": spell("⓿❶❷❸❹❺❻❼❽❾"),
    "on round discs": spell("🄌➊➋➌➍➎➏➐➑➒"),
    "in two circles": spell("⓪⓵⓶⓷⓸⓹⓺⓻⓼⓽"),
    "in parentheses": spell("⓪⑴⑵⑶⑷⑸⑹⑺⑻⑼"),
    "with full stops": spell("🄀⒈⒉⒊⒋⒌⒍⒎⒏⒐"),
    "with commas": spell("\U0001f101"),
    "superscript": spell(RAISED),
    "subscript": spell("₀"),
    "half superscript": lambda number: number[:-1] + spell(RAISED)(number[-1:]),
    "decimal entities": lambda number: "".join(f"&#{ord(digit)};" for digit in number),
    "hexadecimal entities": lambda number: "".join(f"&#x{ord(digit):x};" for digit in number),
    "entities without a semicolon": lambda number: "".join(f"&#x{ord(digit):x}" for digit in number),
    "<b>": wrap("<b>", "</b>"),
    "<strong>": wrap("<strong>", "</strong>"),
    "<i>": wrap("<i>", "</i>"),
    "<sup>": wrap("<sup>", "</sup>"),
    "<sub>": wrap("<sub>", "</sub>"),
    "<span>": wrap('<span class="red">', "</span>"),
    "open <b>": wrap("<b>", ""),
    "split by tags": join("<i></i>"),
    "split by comments": join("<!-- -->"),
    "full-width": spell("０"),
    "mathematical": spell("𝟎"),
    "segmented": spell("\U0001fbf0"),
    "Arabic-Indic": spell("٠"),
    "Devanagari": spell("०"),
    "split by zero-width spaces": join("\u200b"),
    "split by soft hyphens": join("\u00ad"),
    "reversed": lambda number: f"\u202e{number[::-1]}\u202c",
    "reversed by entities": lambda number: f"&#8238;{number[::-1]}&#x202c;",
    "reversed by <bdo>": lambda number: f'<bdo dir="rtl">{number[::-1]}</bdo>',
    "reversed by a style": lambda number: f'<b style="direction:rtl;unicode-bidi:bidi-override">{number[::-1]}</b>',
    "reversed to the end": lambda number: f"\u202e{number[::-1]}",
    "overridden": wrap("\u202d", "\u202c"),
}
UNREAD = ("half superscript", "overridden", *(way for way in WAYS if way.startswith("reversed")))
"""What is a number for the eye alone."""


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine.load("compact", device="cpu", threads=1) as loaded:
        yield loaded


def release(engine: Engine, response: str) -> str:
    """What leaves of a response."""
    with Guard(engine).open(KNOWLEDGE) as stream:
        stream.feed(response)
        stream.finish()
    return stream.released


def test_wrong_values_in_plain_digits_do_not_leave(engine: Engine) -> None:
    assert [value for text, value in WRONG if release(engine, text.format(value))] == []


@pytest.mark.parametrize("way", WAYS)
def test_values_in_other_signs_are_values(engine: Engine, way: str) -> None:
    written = [(text.format(WAYS[way](value)), text.format(value)) for text, value in WRONG]
    assert [text for text, _ in written if release(engine, text)] == []
    if way not in UNREAD:
        for text, value in RIGHT:
            assert release(engine, text.format(WAYS[way](value))), (text, value)


@pytest.mark.parametrize(
    "written", ["\u202e24\u202c", "&#8238;24&#8236;", '<bdo dir="rtl">24</bdo>', "\u202d24\u202c", "<bdo>24</bdo>"]
)
def test_a_value_that_is_only_written_as_in_the_knowledge_is_not_known(engine: Engine, written: str) -> None:
    assert engine.score(f"The warranty lasts {written} months.", KNOWLEDGE).verdict.label == "unknown"


@pytest.mark.parametrize("between", ["\u202e ", " \u202e", "\u202e\n", "&#8238; ", '<bdo dir="rtl"> '])
def test_a_value_that_a_sentence_before_turns_around_does_not_leave(engine: Engine, between: str) -> None:
    # "42 months" is shown as "24 months" is written
    assert "24" not in release(engine, f"The shop has 14 branches.{between}The warranty lasts 24 months.")


@pytest.mark.parametrize(
    "response",
    [
        "The hall has 40 m² and the tank 3 m³.",
        "CO₂ is measured in the hall, which has 40 m².",
        "The hall has 40 m².¹",
        "The hall has 40 m<sup>2</sup>.",
        "The hall has <b>40 m²</b> &amp; the tank has 3 m³.",
        "1️⃣ The hall has 40 m².\n2️⃣ The tank has 3 m³.",
    ],
)
def test_exponents_indices_and_notes_stay(engine: Engine, response: str) -> None:
    score = engine.score(response, "The hall has 40 m² and the tank 3 m³. CO₂ is measured in the hall.")
    assert score.verdict.label == "consistent"
