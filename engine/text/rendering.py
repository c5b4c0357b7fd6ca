"""Text as people see it once it is shown: without HTML tags, entities and digits that are written in other signs.

"The warranty lasts 3️⃣6️⃣ months", "③⑥", "٣٦", "&#51;&#54;" and "<b>36</b>" are all 36 for the eye. What reads texts
reads the rendered text, and what it finds is located in the original (``RenderedText.locate``). Exponents, indices and
footnote marks ("m³", "CO₂", "years.¹") stay what they are, and so does code. Plain text costs a look at its characters.
"""

from __future__ import annotations

import html
import re
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from html.entities import html5
from typing import NamedTuple

from groundwire.runtime.texts.characters import classify_character, is_alphanumeric, is_digits, is_space, starts_upper

from .sentences import find_code


class RenderedPart(NamedTuple):
    """Characters ``start`` to ``end`` of a text, and what is shown in their place."""

    start: int
    end: int
    shown: str


class _Pass:
    """The edits that make one text of another, in order and disjoint, as positions in both."""

    def __init__(self, edits: Sequence[RenderedPart]) -> None:
        self.edits = edits
        self._starts: list[int] = []
        """Where what each edit shows begins, in the text that it makes."""
        shift = 0
        for edit in edits:
            self._starts.append(edit.start + shift)
            shift += len(edit.shown) - (edit.end - edit.start)

    def apply(self, text: str) -> str:
        parts, end = [], 0
        for edit in self.edits:
            parts += [text[end : edit.start], edit.shown]
            end = edit.end
        return "".join((*parts, text[end:]))

    def locate(self, index: int) -> tuple[int, int]:
        """The characters of the text before that show the character ``index`` of the text after."""
        number = bisect_right(self._starts, index) - 1
        if number < 0:
            return index, index + 1
        edit, offset = self.edits[number], index - self._starts[number]
        if offset < len(edit.shown):
            return edit.start, edit.end
        return edit.end + offset - len(edit.shown), edit.end + offset - len(edit.shown) + 1

    def find(self, index: int) -> int:
        """Where the character ``index`` of the text before is shown; what is not shown, where the text goes on."""
        number = bisect_right(self.edits, index, key=_begin) - 1
        if number < 0:
            return index
        edit = self.edits[number]
        if index < edit.end:
            return self._starts[number]
        return self._starts[number] + len(edit.shown) + index - edit.end


def _begin(edit: RenderedPart) -> int:
    return edit.start


class RenderedText:
    """A text as people see it, and where its characters are in the original."""

    __slots__ = ("_passes", "original", "text")

    def __init__(self, original: str) -> None:
        """Take a text that is shown as it is."""
        self.original = self.text = original
        self._passes: list[_Pass] = []

    @property
    def is_verbatim(self) -> bool:
        """Whether the text is shown as it is."""
        return not self._passes

    def edit(self, edits: Iterable[RenderedPart]) -> None:
        """Replace characters of the text; ``edits`` are in order and disjoint."""
        made = _Pass([edit for edit in edits if self.text[edit.start : edit.end] != edit.shown])
        if made.edits:
            self.text = made.apply(self.text)
            self._passes.append(made)

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """Return the characters of the original that are shown as the characters ``start`` to ``end``.

        >>> rendered = render_text("It costs <b>&#51;6</b> euros.")
        >>> rendered.text, rendered.original[slice(*rendered.locate(9, 11))]
        ('It costs 36 euros.', '&#51;6')
        """
        begin, last = (start, start + 1), (end - 1, end) if end > start else (start, start)
        for made in reversed(self._passes):
            begin = made.locate(begin[0])
            last = made.locate(last[1] - 1) if last[1] > last[0] else (begin[0], begin[0])
        return begin[0], max(begin[0], min(last[1], len(self.original)))

    def find(self, start: int, end: int) -> tuple[int, int]:
        """Return the characters that show the characters ``start`` to ``end`` of the original."""
        for made in self._passes:
            start, end = made.find(start), made.find(end)
        return start, end


def render_text(text: str) -> RenderedText:
    """Return a text as it is shown; a text that would be empty then, as it is.

    >>> render_text("The fee is ⑨ euros: 2m² of &frac12;&nbsp;<i>CO</i>₂.¹").text
    'The fee is 9 euros: 2m² of ½ CO₂.¹'
    """
    rendered = RenderedText(text)
    if "<" in text:
        rendered.edit(_find_tags(text))
    if "&" in rendered.text:
        rendered.edit(_find_entities(rendered.text))
    if not rendered.text.isascii() and _SIGNS.search(rendered.text):
        rendered.edit(_find_signs(rendered.text))
    return rendered if rendered.is_verbatim or rendered.text.strip() else RenderedText(text)


def says_anything(text: str) -> bool:
    """Return whether a rendered text has something to compare with: not where it is tags, "null" or keys alone.

    >>> [says_anything(text) for text in ("<p></p>", "&nbsp;", "N/A", "results: ", "deposit: none", "No.")]
    [False, False, False, False, True, True]
    """
    if len(text) > _MAX_EMPTY:
        return True
    shown = html.unescape(_TAG.sub(" ", text)).translate(_JSON_SIGNS)
    return any(map(is_alphanumeric, shown)) and not all(map(_PLACEHOLDER.fullmatch, shown.splitlines()))


_MAX_EMPTY = 2_000
"""Characters of a text without words, at most."""
_JSON_SIGNS = str.maketrans("{}[]\"'", "      ")
_PLACEHOLDER = re.compile(r"\s*(?:null|none|nil|nan|undefined|n/?a|(?:[\w ]+:)?)\s*", re.IGNORECASE)
"""A line of a result without a value."""

# Tags.

_INLINE = (
    "a|abbr|acronym|b|bdi|bdo|big|cite|code|data|del|dfn|em|font|i|img|ins|kbd|label|mark|q|s|samp|small|span|strike"
    "|strong|sub|sup|time|tt|u|var|wbr"
)
_BLOCK = (
    "address|article|blockquote|br|center|dd|details|div|dl|dt|figcaption|figure|footer|h[1-6]|header|hr|li|main|nav|ol|p"
    "|pre|section|summary|table|tbody|td|tfoot|th|thead|tr|ul"
)
_TAG = re.compile(rf"<!--.{{0,2000}}?-->|<(?P<close>/?)(?P<name>{_INLINE}|{_BLOCK})(?:\s[^<>]*)?/?>", re.I | re.S)
_RAISED_TAG = re.compile(r"(?<=[\w)\]},.;:!?'\"”’%])<(?P<name>su[pb])>\s*(?P<digits>\d{1,9})\s*</(?P=name)>", re.I)
_IS_BLOCK = re.compile(_BLOCK)
_ALONE = frozenset({"br", "hr", "img", "wbr"})
"""Tags that are not closed."""
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def _find_tags(text: str) -> Iterator[RenderedPart]:
    """Remove the tags of a text, but for the tags that it speaks of: "the <b> tag"."""
    in_code = _find_code_range(text)
    raised = {}
    for match in _RAISED_TAG.finditer(text):
        table = _SUPERSCRIPTS if match["name"].lower() == "sup" else _SUBSCRIPTS
        raised[match.start()] = RenderedPart(*match.span(), match["digits"].translate(table))
    tags = [match for match in _TAG.finditer(text) if not in_code(match.start())]
    counts = Counter((match["name"] or "").lower() + (match["close"] or "") for match in tags)
    overrides = _OVERRIDING_TAG.search(html.unescape(text)) is not None
    end, broken = 0, 0
    for match in tags:
        if match.start() < end:
            continue
        if match.start() in raised:
            yield raised[match.start()]
            end = raised[match.start()].end
            continue
        name = (match["name"] or "").lower()
        turn = _show_override(name, match) if overrides else ""
        if name and not turn and not _is_markup(text, match, bool(counts[name] and counts[f"{name}/"])):
            continue
        shown = turn + (_show_block(name, match["close"]) if _IS_BLOCK.fullmatch(name) else "")
        is_broken = broken == match.start()
        if shown and (is_broken or not text[broken : match.start()].strip()):
            shown = shown.removeprefix("\n")  # a line begins here
        end = match.end()
        broken = end if "\n" in shown or is_broken else broken
        yield RenderedPart(*match.span(), shown)


def _is_markup(text: str, match: re.Match[str], is_paired: bool) -> bool:
    """Whether a tag shows nothing of itself, rather than being what a text speaks of; a link's address is a value."""
    before, after = text[max(0, match.start() - 2) : match.start()], text[match.end() : match.end() + 1]
    if match["name"].lower() == "a" and not match["close"] and "href" in match[0].lower():
        return is_alphanumeric(before[-1:])
    touches = is_alphanumeric(before[-1:]) or is_alphanumeric(after) or is_digits(before.strip()[-1:])
    return is_paired or touches or match["name"].lower() in _ALONE


def _show_block(name: str, closes: str) -> str:
    if name in ("td", "th"):
        return "" if closes else " "
    return "\n- " if name == "li" and not closes else "\n"


def _show_override(name: str, match: re.Match[str]) -> str:
    """The sign of direction that a tag is; an override by a style is left open."""
    if match["close"]:
        return _END if name == "bdo" else ""
    tag = html.unescape(match[0])
    is_override = _OVERRIDING_TAG.search(tag) and not _TO_THE_RIGHT.fullmatch(tag)
    return _TO_THE_LEFT if is_override else ""


# Directions.

_TO_THE_LEFT, _END, _END_OF_ISOLATE = "\u202e", "\u202c", "\u2069"
_OVERRIDES = frozenset({"\u202d", _TO_THE_LEFT})
"""What follows is shown in one direction, whatever it is, until the end."""
_ISOLATES = frozenset("\u2066\u2067\u2068")
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
_OVERRIDING_TAG = re.compile(r"<bdo\b|(?:bidi|isolate)-override", re.IGNORECASE)
_TO_THE_RIGHT = re.compile(r"<bdo\s+dir\s*=\s*[\"']?ltr[\"']?\s*>", re.IGNORECASE)


# Entities.

_ENTITY = re.compile(r"&(?:#[xX][0-9a-fA-F]{1,6};?|#\d{1,7};?|(?P<name>[A-Za-z][A-Za-z0-9]{1,31};))")


def _find_entities(text: str) -> Iterator[RenderedPart]:
    in_code = _find_code_range(text)
    for match in _ENTITY.finditer(text):
        if (match["name"] is None or match["name"] in html5) and not in_code(match.start()):
            yield RenderedPart(*match.span(), html.unescape(match[0]).replace("\0", "\ufffd").replace("\xa0", " "))


def _find_code_range(text: str) -> Callable[[int], bool]:
    """Return a function that says whether a character is in code, which is shown letter by letter."""
    if "`" not in text and "~~~" not in text:
        return lambda index: False
    ranges = find_code(text)
    starts = [start for start, _ in ranges]

    def is_code(index: int) -> bool:
        number = bisect_right(starts, index) - 1
        return number >= 0 and index < ranges[number][1]

    return is_code


# Signs.

_ENCLOSED = "\u2460-\u249b\u24ea-\u24ff\u2776-\u2793\u3248-\u324f\u3251-\u325f\u32b1-\u32bf\U0001f100-\U0001f10c🔟"
"""Numbers in circles, on discs, in parentheses and with a full stop or a comma."""
_RAISED = "\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u2080-\u2089"
"""Superscript and subscript digits."""
_RAISED_DIGITS = frozenset("⁰¹²³⁴⁵⁶⁷⁸⁹₀₁₂₃₄₅₆₇₈₉")
_FORMS = (
    "\u2102-\u2115\u2119-\u2138\u2145-\u2149\u2160-\u217f\u3371-\u33df\ufb00-\ufb06\U0001d400-\U0001d7ff"
    "\U0001fbf0-\U0001fbf9"
)
"""Letters and digits of other forms, ligatures, Roman numerals, units in one character."""
_CIRCLED = "\u249c-\u24e9\U0001f110-\U0001f129\U0001f130-\U0001f149\U0001f150-\U0001f169\U0001f170-\U0001f189"
"""Letters in circles, squares and parentheses: a single one is a character of its own, as the P of a car park."""
_DIGIT = "0-9\uff10-\uff19\U0001d7ce-\U0001d7ff"
_SIGNS = re.compile(
    rf"(?P<number>(?:[0-9]\ufe0f?[\u20dd-\u20e0\u20e2-\u20e4]|[{_ENCLOSED}]\ufe0f?)+)"
    rf"|(?P<raised>[{_RAISED}]+)"
    r"|(?P<wide>[\uff01-\uff5e]*[\uff10-\uff19\uff21-\uff3a\uff41-\uff5a][\uff01-\uff5e]*)"
    r"|(?P<native>[^\D0-9\uff10-\uff19\U0001d7ce-\U0001d7ff]+)"
    rf"|(?P<form>[{_FORMS}])"
    rf"|(?P<circled>[{_CIRCLED}]{{2,}})"
    rf"|(?P<hidden>(?<=[{_DIGIT}A-Za-z])[\u00ad\u200b-\u200f\u2060-\u2064\ufe00-\ufe0f\ufeff]+(?=[{_DIGIT}A-Za-z]))"
)
_MARKER = re.compile(r"[.)]?[ \t]+(?:[^\W\d_a-z]|[*_\"“\[])")
"""What follows the number of an item that begins its line."""
_OPENINGS = "([{\"'“‘«-−–—~≈<>=≤≥$€£¥"


def _find_signs(text: str) -> Iterator[RenderedPart]:
    for match in _SIGNS.finditer(text):
        start, end = match.span()
        if match["number"]:
            yield RenderedPart(start, end, _show_number(text, match))
        elif match["raised"]:
            if _is_amount(text, start, end):
                yield RenderedPart(start, end, "".join(map(_find_number, match[0])))
        elif match["native"]:
            yield RenderedPart(start, end, "".join(map(_find_number, match[0])))
        elif match["hidden"]:
            yield RenderedPart(start, end, "")
        else:
            yield RenderedPart(start, end, "".join(map(_show_sign, match[0])))


def _show_number(text: str, match: re.Match[str]) -> str:
    """The digits of a run of enclosed numbers; with a full stop, if it is the number of an item."""
    numbers = [_find_number(character) for character in match[0] if classify_character(character) != "mark"]
    is_marker = len(numbers) == 1 and _MARKER.match(text, match.end()) and _is_line_start(text, match.start())
    return "".join(numbers) + ("." if is_marker and text[match.end()] not in ".)" else "")


def _is_line_start(text: str, start: int) -> bool:
    while start > 0 and text[start - 1] in " \t":
        start -= 1
    return start == 0 or text[start - 1] == "\n"


def _find_number(character: str) -> str:
    return "10" if character == "🔟" else f"{unicodedata.numeric(character):.0f}"


def _is_amount(text: str, start: int, end: int) -> bool:
    """Whether raised or lowered digits are a number of their own, rather than an exponent, an index or a note."""
    following = text[end : end + 1]
    if not _begins_word(text, start) or _names_another(text, start, end) or following == "⁄":
        return False
    after_space = text[end : end + 2].strip(" \xa0")[:1]
    return end - start > 1 or is_alphanumeric(following) or is_alphanumeric(after_space) or following in "%°"


def _names_another(text: str, start: int, end: int) -> bool:
    """Whether raised digits are an isotope's, or begin a note: "¹⁴C", "¹ Price per month"."""
    following = text[end : end + 2]
    return starts_upper(following) or (_is_line_start(text, start) and starts_upper(following.lstrip(" \t")))


def _begins_word(text: str, start: int) -> bool:
    return start == 0 or is_space(text[start - 1]) or text[start - 1] in _OPENINGS


_NAMED = {"font", "wide", "narrow", "circle", "square", "compat"}


@lru_cache(maxsize=4096)
def _show_sign(character: str) -> str:
    """A letter or digit of another form in its plain form; another character as it is."""
    code = ord(character)
    if code >= 0x1F150:  # letters on discs and squares have no plain form
        for first in (0x1F150, 0x1F170):
            if first <= code < first + 26:
                return chr(ord("A") + code - first)
    form, _, codes = unicodedata.decomposition(character).partition(" ")
    plain = "".join(chr(int(code, 16)) for code in codes.split())
    if form.strip("<>") not in _NAMED or character == "№":
        return character
    return plain.strip("()") if unicodedata.name(character).startswith("PARENTHESIZED") else plain


_SHOWN_WORD = re.compile(r"\S+")
_AROUND = ".,;:!?()[]\"'“”‘’\u202c\u202d\u202e"
_MAYBE_NUMBER = re.compile(rf"[{_RAISED}]+|[^\x00-\x7f]")


class UnreadNumber(NamedTuple):
    """Characters ``start`` to ``end`` of a rendered text that are a number for the eye, and that nothing here reads."""

    start: int
    end: int
    text: str


def find_unread_numbers(text: str) -> Iterator[UnreadNumber]:
    """Yield the words of a rendered text with a number that people see and nothing here reads, or see otherwise.

    >>> [number.text for number in find_unread_numbers("It lasts 3⁶ months, has 20 m², emits CO₂ and costs ½ €.¹")]
    ['3⁶']
    >>> [number.text for number in find_unread_numbers("It lasts \u202e63\u202c months, or 24.")]
    ['\u202e63']
    """
    if text.isascii():
        return
    for word in _SHOWN_WORD.finditer(text):
        signs = () if word[0].isascii() else _MAYBE_NUMBER.finditer(text, *word.span())
        if any(_is_unread(text, *match.span()) for match in signs):
            yield UnreadNumber(*word.span(), word[0].strip(_AROUND))
    for start, end in _find_overridden(text):
        if end == len(text) and text[end - 1] != _END:  # what a stream adds is overridden, too
            yield UnreadNumber(start, start + 1, text[start])
        for word in _SHOWN_WORD.finditer(text, start, end):
            if any(map(is_digits, word[0])):
                # With the sign: what is written so is read only where the knowledge is, too.
                yield UnreadNumber(*word.span(), text[start] + word[0].strip(_AROUND))


def _find_overridden(text: str) -> Iterator[tuple[int, int]]:
    """Yield the characters whose direction is overridden: their digits may be shown backwards.

    What is not closed goes to the end of the text, over its lines, as HTML shows it.
    """
    open_signs: list[str] = []
    overrides: list[int] = []
    for match in _DIRECTIONS.finditer(text):
        if match[0] not in (_END, _END_OF_ISOLATE):
            open_signs.append(match[0])
            if match[0] in _OVERRIDES:
                overrides.append(match.start())
        elif open_signs and (open_signs[-1] in _ISOLATES) == (match[0] == _END_OF_ISOLATE):
            start = overrides.pop() if open_signs.pop() in _OVERRIDES else None
            if start is not None and not overrides:
                yield start, match.end()
    if overrides:
        yield overrides[0], len(text)


def _is_unread(text: str, start: int, end: int) -> bool:
    """Whether characters are a number for the eye, and neither a fraction nor an exponent, an index or a note."""
    if classify_character(text[start]) != "numeral":
        return False
    if text[start] not in _RAISED_DIGITS:
        return not unicodedata.name(text[start], "").startswith("VULGAR FRACTION")
    if start > 0 and is_digits(text[start - 1]):
        return True
    return _begins_word(text, start) and not _names_another(text, start, end)
