"""Reads what differs letter by letter: phone numbers, addresses, versions, postcodes, codes, rooms, and source code.

A code has no amount: two are equal or differ, whatever their digits are.

The form of names of source code says what they are: ``--dry-run``, ``config.yaml``, ``read_file``. Between backticks
functions that are called, options that are set, a word by itself, and the first two words of a command are names too.
Its other words are its user's, and so are most names of a program between fences, where flags alone are read
(recipes/research/measured.md, "Names of source code").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Literal, TypeAlias, TypeGuard

from groundwire.runtime.texts.characters import is_alphanumeric, is_digits, is_letters, starts_upper
from groundwire.runtime.texts.unread import ENGLISH

from ..schema.explanations import ValueKind
from ..text.normalization import FUNCTION_WORDS
from .dates import read_date
from .numbers import SCALES
from .tokens import Content, ExactCode, Hedge, Token, Value, load_table, text_at, touches
from .units import CURRENCY_CODES, CURRENCY_SIGNS, UNITS

_MAX_RUN = 300
"""Characters of an address at most."""
_BREAKS = frozenset("()[]<>\"'“”‘’|,;*`!?…—–")
"""Characters that no code has, so that one ends before them."""
_TRAILING = frozenset(".:-/_#&")
_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+")
_DOMAINS = (
    "com|org|net|edu|gov|io|dev|app|shop|store|info|biz|health|co|uk|eu|de|fr|es|it|nl|ch|at|ie|ca|au|nz|us|example"
)
_URL = re.compile(rf"(?:https?://|www\.)\S+|(?:[a-z\d-]+\.)+(?:{_DOMAINS})(?:[:/]\S*)?")
_PATH = re.compile(r"/[a-z][\w{}.:-]*(?:/[\w{}.:-]*)*")
_POSTCODE = re.compile(r"[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|[A-Z]\d[A-Z] ?\d[A-Z]\d|\d{4} [A-Z]{2}")
"""Postcodes of the United Kingdom, Canada and the Netherlands; others need a word before them."""
_POSTCODE_WORDS = frozenset({"postcode", "zip", "plz"})
_STATES = frozenset(load_table("states"))
_VERSION = re.compile(r"\d{1,4}(?:\.\d{1,5}){1,3}")
_ANY_MINOR = re.compile(r"(\d{1,4}(?:\.\d{1,5})?)\.[x*]")
_VERSION_WORDS = frozenset({"version", "v", "ver", "release", "firmware"})
_LATER: dict[tuple[str, str], Hedge] = {
    **dict.fromkeys((("or", word) for word in ("later", "newer", "higher", "above", "greater", "up")), "at_least"),
    **dict.fromkeys((("or", word) for word in ("earlier", "older", "lower", "below")), "at_most"),
}
_AT_LEAST = frozenset({"least", "minimum", "≥", "from", "since"})
_LABELS = frozenset(load_table("labels"))
_NO_PRODUCTS = _LABELS | {"ci", "or", "hr", "rr", "sd", "se", "iqr"}
"""Words with a capital before a number that is no version: labels, and the statistics of a paper."""
_NUMBER_WORDS = frozenset({"number", "no", "nr", "#", "code", "id", "is", ":", "."})
"""What may be between a label and its number: "order no. 12"."""
_COUNTED_LABELS = frozenset(load_table("counted_labels"))
"""Labels after which a number may begin a quantity: "in case 3 people come"."""
_PHONE_WORDS = frozenset(load_table("phone_words"))
_PHONE_SIGNS = frozenset("()-.–/")
_PHONES = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?:\+|00)\d[\d ()./–-]{6,24}\d",
        r"(?!0\d[./–-]\d\d[./–-](?:19|20)\d\d$)\(?0\d{1,5}\)?[ ./–-]{1,2}\d[\d ./–-]{3,14}\d",  # no date: 06/03/2026
        r"0\d{9,11}",
        r"(?:1[ .–-])?(?:\(\d{3}\) ?|\d{3}[ .–-])\d{3}[ .–-]\d{4}",
    )
)
_LOCAL_PHONE = re.compile(r"\d{3}[ .–-]\d{4}|\d{5,8}|\d{2,4}(?:[ –-]\d{2,4}){2,4}|[1-9]\d\d(?:\d{3})?")
_PHONE_DIGITS = range(3, 16)
SHORT_PHONE = 6
"""Digits of a number that is dialled without an area code at most: 112, 116 117."""


def find_codes(tokens: Sequence[Token]) -> tuple[list[Value], set[int]]:
    """The codes of a text, in order and disjoint, and the indices of their tokens.

    >>> from .tokens import tokenize
    >>> text = "Call 0124 556 7788 or mail help@shop.example, order no. 4471, v2.1.0, Room B12."
    >>> [(value.kind, value.content.key) for value in find_codes(tokenize(text))[0]]
    ... # doctest: +NORMALIZE_WHITESPACE
    [('phone', '01245567788'), ('email', 'help@shop.example'), ('identifier', '4471'), ('version', '2.1.0'),
     ('identifier', 'b12')]
    """
    codes: list[Value] = []
    taken: set[int] = set()
    index = 0
    for first, last in _split_runs(tokens):
        if first < index:
            continue
        read = _read_code(tokens, first, last)
        if read is None:
            continue
        kind, code, start, end = read
        if start < index:
            continue
        codes.append(Value(kind, tokens[start].start, tokens[end - 1].end, tokens[start].sentence, code))
        taken.update(range(start, end))
        index = end
    for value, indices in find_source_names(tokens, taken):
        codes.append(value)
        taken.update(indices)
    codes.sort(key=lambda value: value.start)
    return codes, taken


_Read = tuple[ValueKind, ExactCode, int, int]
"""A code with its kind, the index of its first token and the one after its last."""


def _split_runs(tokens: Sequence[Token]) -> Iterator[tuple[int, int]]:
    """First tokens of parts without a space or bracket, and the indices after them; parts that may have a code."""
    first = 0
    promising = False
    for index, token in enumerate(tokens):
        broken = token.text in _BREAKS
        if index > first and (broken or tokens[index - 1].end != token.start):
            if promising:
                yield first, _trim(tokens, first, index)
            first, promising = index, False
        if broken:
            first = index + 1
            continue
        promising = (
            promising
            or is_digits(token.text[0])
            or token.text in "@/"
            or (token.text == "." and touches(tokens, index + 1))
        )
    if promising and first < len(tokens):
        yield first, _trim(tokens, first, len(tokens))


def _trim(tokens: Sequence[Token], first: int, last: int) -> int:
    """The end of a part without the punctuation after it."""
    while last > first + 1 and tokens[last - 1].text in _TRAILING:
        last -= 1
    return last


def _read_code(tokens: Sequence[Token], first: int, last: int) -> _Read | None:
    if tokens[last - 1].end - tokens[first].start > _MAX_RUN:
        return None
    text = "".join([token.text for token in tokens[first:last]])
    lower = text.lower()
    if "@" in text:
        return ("email", ExactCode(lower), first, last) if _EMAIL.fullmatch(lower) else None
    if not is_digits(text[0]) and (_URL.fullmatch(lower) or _PATH.fullmatch(lower)):
        return "url", ExactCode(_fold_url(lower)), first, last
    if not any(map(is_digits, text)):
        return None
    return (
        _read_phone(tokens, first)
        or _read_postcode(tokens, first, last, text)
        or _read_version(tokens, first, last, text)
        or _read_identifier(tokens, first, last, text)
    )


def _fold_url(url: str) -> str:
    url = url.partition("://")[2] if "://" in url else url
    return url.removeprefix("www.").rstrip("/") or "/"


def _read_phone(tokens: Sequence[Token], first: int) -> _Read | None:
    start = first - 1 if text_at(tokens, first - 1) == "(" and touches(tokens, first) else first
    if start > 0 and tokens[start - 1].text == "+" and touches(tokens, start):
        start -= 1
    end, text = start, ""
    ends: list[tuple[int, str]] = []
    while end < len(tokens) and len(text) < 26 and tokens[end].sentence == tokens[start].sentence:
        token = tokens[end]
        space = " " * (end > start and token.start > tokens[end - 1].end)
        digits = is_digits(token.text.replace(".", ""))
        if not (digits or token.text in _PHONE_SIGNS or (token.text == "+" and end == start)):
            break
        text += space + token.text
        end += 1
        if digits:
            ends.append((end, text))
    called = any(token.lower in _PHONE_WORDS for token in tokens[max(0, start - 6) : start])
    for stop, number in reversed(ends):
        following = text_at(tokens, stop)
        if touches(tokens, stop) and following not in (".", ",", ")", "]", ";", ":", "!", "?", "*", "`", '"', "'"):
            continue  # a longer code
        key = re.sub(r"\D", "", number.replace("(0)", ""))
        if len(key) not in _PHONE_DIGITS:
            continue
        local = called and _LOCAL_PHONE.fullmatch(number) and _is_called(tokens, start, stop, len(key))
        if any(pattern.fullmatch(number) for pattern in _PHONES) or local:
            international = number.startswith(("+", "00"))
            return "phone", ExactCode(f"+{key.removeprefix('00')}" if international else key), start, stop
    return None


def _is_called(tokens: Sequence[Token], start: int, stop: int, digits: int) -> bool:
    """Whether a number without an area code is what one calls, and no amount: "call 111", not "call 300 people"."""
    following = text_at(tokens, stop)
    ends = not is_alphanumeric(following[:1]) or following in FUNCTION_WORDS or following in _AFTER_CALL
    if (
        not ends
        or (digits == 4 and tokens[start].text[:2] in ("19", "20"))
        or text_at(tokens, start - 1) in CURRENCY_SIGNS
    ):
        return False
    before = [token.lower for token in tokens[max(0, start - 3) : start]]
    return any(word in _PHONE_WORDS for word in before)


_AFTER_CALL = frozenset(load_table("after_call"))


def _read_postcode(tokens: Sequence[Token], first: int, last: int, text: str) -> _Read | None:
    if _POSTCODE.fullmatch(text):
        return "postcode", ExactCode(text.lower()), first, last
    if last < len(tokens) and len(text) < 5 and tokens[last].sentence == tokens[first].sentence:
        end = last + 1
        while end < len(tokens) and end < last + 3 and touches(tokens, end) and is_alphanumeric(tokens[end].text):
            end += 1
        both = f"{text} {''.join([token.text for token in tokens[last:end]])}"
        if _POSTCODE.fullmatch(both) and tokens[last].start > tokens[last - 1].end:
            return "postcode", ExactCode(both.replace(" ", "").lower()), first, end
    zip_code = len(text) == 5 and is_digits(text) and last == first + 1
    if zip_code and (first > 0 and tokens[first - 1].text in _STATES):
        return "postcode", ExactCode(text), first, last
    before = [token.lower for token in tokens[max(0, first - 4) : first] if token.sentence == tokens[first].sentence]
    named = any(word in _POSTCODE_WORDS for word in before) or ("postal" in before and "code" in before)
    if named and 3 < len(text) < 8 and is_alphanumeric(text.replace("-", "")):
        return "postcode", ExactCode(text.lower()), first, last
    return None


def _read_version(tokens: Sequence[Token], first: int, last: int, text: str) -> _Read | None:
    bare = text[1:] if text[0] in "vV" and is_digits(text[1:2]) else text
    bare = bare.removesuffix("+")
    any_minor = _ANY_MINOR.fullmatch(bare)
    if any_minor is not None:  # 1.x
        start = first - (text_at(tokens, first - 1) in _VERSION_WORDS)
        return "version", ExactCode(any_minor[1]), start, last
    start = first
    before = text_at(tokens, first - 1)
    label = ""
    same = first > 0 and tokens[first - 1].sentence == tokens[first].sentence
    if before == "." and text_at(tokens, first - 2) in ("v", "ver") and same:
        start, before = first - 2, "version"
    elif before in _VERSION_WORDS and same:
        start = first - 1
    elif bare == text:
        if not _VERSION.fullmatch(bare):
            return None
        three = bare.count(".") > 1 and read_date(tokens, first) is None
        following = text_at(tokens, last)
        counted = following in UNITS or following in SCALES or before in CURRENCY_CODES
        product = same and _names_product(tokens, first - 1) and not counted
        if not three and not product:
            return None
        label = before if product else ""
    if not (_VERSION.fullmatch(bare) or (is_digits(bare) and len(bare) < 5)):
        return None
    if start < first and is_letters(text_at(tokens, start - 1)) and starts_upper(tokens[start - 1].text):
        label = text_at(tokens, start - 1) if not tokens[start - 1].opens else ""
    return "version", ExactCode(bare, label, _read_later(tokens, start, last, text)), start, last


def parse_version(key: str) -> tuple[int, ...]:
    """The numbers of a version.

    >>> parse_version("2.10.0")
    (2, 10, 0)
    """
    return tuple(map(int, key.split(".")))


def _names_product(tokens: Sequence[Token], index: int) -> bool:
    """Whether a word before a number with a point may be a product: "Python 3.11"."""
    token = tokens[index]
    word = token.lower in ENGLISH if token.opens else token.lower in FUNCTION_WORDS
    return starts_upper(token.text) and is_letters(token.text) and not word and token.lower not in _NO_PRODUCTS


def _read_later(tokens: Sequence[Token], start: int, last: int, text: str) -> Hedge:
    later = _LATER.get((text_at(tokens, last), text_at(tokens, last + 1)))
    if later is not None:
        return later
    if text.endswith("+") or (text_at(tokens, last) == "+" and touches(tokens, last)):
        return "at_least"
    near = [text_at(tokens, index) for index in range(max(start - 3, 0), start)]
    return "at_least" if any(word in _AT_LEAST for word in near) else "exact"


def _read_identifier(tokens: Sequence[Token], first: int, last: int, text: str) -> _Read | None:
    mixed = _is_mixed(text)
    start = first
    if text[0] == "#" and len(text) > 1:
        text = text[1:]
    while start > max(first - 4, 0) and text_at(tokens, start - 1) in _NUMBER_WORDS:
        start -= 1
    label = text_at(tokens, start - 1)
    labelled = label in _LABELS and start > 0 and tokens[start - 1].sentence == tokens[first].sentence
    labels = text_at(tokens, first - 1) in _LABELS
    if not (labelled or labels):
        numbered = tokens[first].text == "#" and len(text) > 2 and is_digits(text)
        return ("identifier", ExactCode(text.lower()), first, last) if mixed or numbered else None
    if not labelled:
        start, label = first, text_at(tokens, first - 1)
    amount = is_digits(text) and is_letters(text_at(tokens, last)) and text_at(tokens, last) in UNITS
    counted = label in _COUNTED_LABELS and start == first and _counts(tokens, last)
    plain = text.replace("-", "").replace("/", "")
    is_plain = is_alphanumeric(plain) and plain.isascii()
    if amount or counted or not is_plain or (start > 0 and _is_price(tokens, last)):
        return None
    if not mixed and not is_digits(plain) and len(plain) > 4:
        return None  # "5km", "12th"
    if any(token.lower in _ORDINAL_ENDS for token in tokens[first + 1 : last]) and is_digits(plain[0]):
        return None
    return "identifier", ExactCode(plain.lower(), label), start - 1, last


_ORDINAL_ENDS = frozenset({"st", "nd", "rd", "th", "am", "pm", "s"})


def _is_price(tokens: Sequence[Token], last: int) -> bool:
    return text_at(tokens, last) in ("€", "$", "£", "%", "°") or (
        text_at(tokens, last) == ":" and touches(tokens, last + 1)
    )


def _counts(tokens: Sequence[Token], last: int) -> bool:
    """Whether a noun follows a number: "order 12 boxes"."""
    following = text_at(tokens, last)
    return is_letters(following) and following not in FUNCTION_WORDS


def _is_mixed(text: str) -> bool:
    """Whether letters and digits are one code: SAVE10, BA117, XK-2231-B; no measure, name or abbreviation."""
    plain = text.replace("-", "")
    digits = sum(map(is_digits, plain))
    if not is_alphanumeric(plain) or not plain.isascii() or not 1 < digits < len(plain) or len(plain) < 4:
        return False
    letters = [character for character in plain if is_letters(character)]
    if not all(map(starts_upper, letters)):
        return False
    if "-" in text:
        return digits > 2 or text.count("-") > 1
    return is_letters(text[0])


SourceLabel: TypeAlias = Literal["flag", "file", "name"]
SOURCE_LABELS: frozenset[str] = frozenset({"flag", "file", "name"})
"""Labels of codes that are names of source code."""
CodeKind: TypeAlias = Literal["inline", "fenced"]
_ENDINGS = frozenset(load_table("endings"))
"""Endings of files."""
_LANGUAGE = FUNCTION_WORDS | frozenset(load_table("language"))
"""Words of programming languages, of shells and of examples."""
_PLACEHOLDER = re.compile(r"(?:my|your|our|some|example|sample|test|dummy|placeholder)(?:[_A-Z-]|\Z)", re.IGNORECASE)
_CAMEL = re.compile(r"[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*")
_JOINING = frozenset("_-/.@\\$<{")
"""Characters before a word of which it is a part."""
_FENCE = 3
"""Backticks that open or close a fence."""


def is_source_name(content: Content) -> TypeGuard[ExactCode]:
    """Whether a value is a name of source code."""
    return isinstance(content, ExactCode) and content.label in SOURCE_LABELS


def find_source_names(tokens: Sequence[Token], taken: Set[int]) -> Iterator[tuple[Value, range]]:
    """The names of source code in a text, in order and disjoint, and the indices of their tokens.

    >>> from .tokens import tokenize
    >>> text = "Call `retry(attempts=3)` or pass --dry-run in setup.cfg."
    >>> [(value.content.label, value.content.key) for value, _ in find_source_names(tokenize(text), set())]
    [('name', 'retry'), ('name', 'attempts'), ('flag', '--dry-run'), ('file', 'setup.cfg')]

    Args:
        tokens: The tokens of the text.
        taken: Indices of tokens that are part of other values, such as an address.

    Yields:
        Each name as a value, and the range of its tokens.
    """
    if not any(token.text in "`_-" or token.lower in _ENDINGS for token in tokens):
        return
    code = _find_written_code(tokens)
    index = 0
    while index < len(tokens):
        if index in taken:
            index += 1
            continue
        label, end = _read_source(tokens, index, code)
        first = tokens[index]
        key = "".join([token.text for token in tokens[index:end]])
        if label is not None and taken.isdisjoint(range(index, end)) and not _says_nothing(key, label):
            content = ExactCode(key.lower(), label)
            yield Value("identifier", first.start, tokens[end - 1].end, first.sentence, content), range(index, end)
        index = end


def _read_source(tokens: Sequence[Token], index: int, code: Mapping[int, CodeKind]) -> tuple[SourceLabel | None, int]:
    """What begins at ``index``, None for no name, and the index after it."""
    token = tokens[index]
    before = tokens[index - 1].text if touches(tokens, index) else ""
    is_joined = is_alphanumeric(before) or before in _JOINING
    if token.text == "-" and not is_joined:
        return _read_flag(tokens, index)
    if not is_letters(token.text[0]):
        return None, index + 1
    end, has_underscore = _find_word_end(tokens, index)
    file_end = 0 if is_joined and before != "/" else _find_file_end(tokens, end)
    if is_joined and not file_end and before != ".":
        return None, end
    if touches(tokens, end) and tokens[end].text == "/":
        return None, end  # a folder of a path
    if file_end:
        alone = index not in code or (text_at(tokens, index - 1) == text_at(tokens, file_end) == "`")
        return ("file" if alone else None), file_end
    if index in code and not _names_source(tokens, index, end, code[index]):
        return None, end
    return ("name" if has_underscore or index in code else None), end


def _names_source(tokens: Sequence[Token], index: int, end: int, kind: CodeKind) -> bool:
    """Whether a word of code is the name of something that the knowledge may know, and not its user's."""
    if kind == "fenced":
        return False
    following = text_at(tokens, end) if touches(tokens, end) else ""
    is_set = following == "=" and touches(tokens, end + 1) and text_at(tokens, end + 1) != "="
    first = text_at(tokens, index - 1) == "`"
    second = text_at(tokens, index - 2) == "`" and not touches(tokens, index)
    return (
        following == "("
        or is_set
        or first
        or second
        or "_" in [token.text for token in tokens[index:end]]
        or (_CAMEL.fullmatch(tokens[index].text) is not None)
    )


def _read_flag(tokens: Sequence[Token], index: int) -> tuple[SourceLabel | None, int]:
    """The long flag that two hyphens begin; one letter after a hyphen may be a flag of any command."""
    first = index + 2
    if not (touches(tokens, index + 1) and touches(tokens, first)):
        return None, index + 1
    if tokens[index + 1].text != "-" or not is_letters(tokens[first].text[0]):
        return None, index + 1
    end = first + 1
    while touches(tokens, end) and (is_alphanumeric(tokens[end].text) or _joins(tokens, end)):
        end += 1
    return "flag", end


def _joins(tokens: Sequence[Token], index: int) -> bool:
    """Whether a hyphen or an underscore is followed by a letter or digit at once."""
    return tokens[index].text in "-_" and touches(tokens, index + 1) and is_alphanumeric(tokens[index + 1].text)


def _find_word_end(tokens: Sequence[Token], index: int) -> tuple[int, bool]:
    """The index after a word with underscores, and whether it has one between letters or digits."""
    end, has_underscore = index + 1, False
    while touches(tokens, end) and (tokens[end].text == "_" or is_alphanumeric(tokens[end].text)):
        has_underscore |= is_alphanumeric(tokens[end].text) and tokens[end - 1].text == "_"
        end += 1
    while tokens[end - 1].text == "_":
        end -= 1
    return end, has_underscore


def _find_file_end(tokens: Sequence[Token], end: int) -> int:
    """The index after the ending of a file whose name ends at ``end``; 0 for no file."""
    while touches(tokens, end) and tokens[end].text in ".-_" and touches(tokens, end + 1):
        ending = tokens[end + 1]
        following = text_at(tokens, end + 2) if touches(tokens, end + 2) else ""
        if (
            tokens[end].text == "."
            and ending.text in _ENDINGS
            and not (is_alphanumeric(following[:1]) or following == "_")
        ):
            return end + 2
        if not is_alphanumeric(ending.text):
            return 0
        end += 2
    return 0


def _find_written_code(tokens: Sequence[Token]) -> dict[int, CodeKind]:
    """The indices of the tokens that are written as code."""
    code: dict[int, CodeKind] = {}
    index, opened, fence = 0, -1, -1
    while index < len(tokens):
        if tokens[index].text != "`":
            index += 1
            continue
        count = 1
        while text_at(tokens, index + count) == "`" and touches(tokens, index + count):
            count += 1
        if count >= _FENCE:
            if fence >= 0:
                code.update(dict.fromkeys(range(fence, index), "fenced"))
            fence, opened = (-1 if fence >= 0 else index + count), -1
        elif fence < 0 and opened >= 0:
            code.update(dict.fromkeys(range(opened, index), "inline"))
            opened = -1
        elif fence < 0 and touches(tokens, index + count):  # else a quotation mark: `` Dog ``
            opened = index + count
        index += count
    if fence >= 0:
        code.update(dict.fromkeys(range(fence, len(tokens)), "fenced"))
    return code


def _says_nothing(key: str, label: SourceLabel) -> bool:
    """Whether a name is a placeholder, or a word of a programming language."""
    word = key.lower().lstrip("-")
    return _PLACEHOLDER.match(key.lstrip("-")) is not None or (label == "name" and (len(word) < 3 or word in _LANGUAGE))
