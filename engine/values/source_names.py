"""Reads the names of source code: flags, files, functions, options, and what else is written as code.

Their form says what they are: ``--dry-run``, ``config.yaml``, ``read_file``. Between backticks functions that are
called,
options that are set, a word by itself, and the first two words of a command are names too. Its other words are its
user's, and so are most names of a program between fences, where flags alone are read (recipes/research/measured.md,
"Names of source code").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Literal, TypeAlias, TypeGuard

from ..text.normalization import FUNCTION_WORDS
from .tokens import Content, ExactCode, Token, Value, load_table, text_at, touches

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
    code = _find_code(tokens)
    index = 0
    while index < len(tokens):
        if index in taken:
            index += 1
            continue
        label, end = _read(tokens, index, code)
        first = tokens[index]
        key = "".join([token.text for token in tokens[index:end]])
        if label is not None and taken.isdisjoint(range(index, end)) and not _says_nothing(key, label):
            content = ExactCode(key.lower(), label)
            yield Value("identifier", first.start, tokens[end - 1].end, first.sentence, content), range(index, end)
        index = end


def _read(tokens: Sequence[Token], index: int, code: Mapping[int, CodeKind]) -> tuple[SourceLabel | None, int]:
    """What begins at ``index``, None for no name, and the index after it."""
    token = tokens[index]
    before = tokens[index - 1].text if touches(tokens, index) else ""
    is_joined = before.isalnum() or before in _JOINING
    if token.text == "-" and not is_joined:
        return _read_flag(tokens, index)
    if not token.text[0].isalpha():
        return None, index + 1
    end, has_underscore = _find_end(tokens, index)
    file_end = 0 if is_joined and before != "/" else _find_file_end(tokens, end)
    if is_joined and not file_end and before != ".":
        return None, end
    if touches(tokens, end) and tokens[end].text == "/":
        return None, end  # a folder of a path
    if file_end:
        alone = index not in code or (text_at(tokens, index - 1) == text_at(tokens, file_end) == "`")
        return ("file" if alone else None), file_end
    if index in code and not _names(tokens, index, end, code[index]):
        return None, end
    return ("name" if has_underscore or index in code else None), end


def _names(tokens: Sequence[Token], index: int, end: int, kind: CodeKind) -> bool:
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
    if tokens[index + 1].text != "-" or not tokens[first].text[0].isalpha():
        return None, index + 1
    end = first + 1
    while touches(tokens, end) and (tokens[end].text.isalnum() or _joins(tokens, end)):
        end += 1
    return "flag", end


def _joins(tokens: Sequence[Token], index: int) -> bool:
    """Whether a hyphen or an underscore is followed by a letter or digit at once."""
    return tokens[index].text in "-_" and touches(tokens, index + 1) and tokens[index + 1].text.isalnum()


def _find_end(tokens: Sequence[Token], index: int) -> tuple[int, bool]:
    """The index after a word with underscores, and whether it has one between letters or digits."""
    end, has_underscore = index + 1, False
    while touches(tokens, end) and (tokens[end].text == "_" or tokens[end].text.isalnum()):
        has_underscore |= tokens[end].text.isalnum() and tokens[end - 1].text == "_"
        end += 1
    while tokens[end - 1].text == "_":
        end -= 1
    return end, has_underscore


def _find_file_end(tokens: Sequence[Token], end: int) -> int:
    """The index after the ending of a file whose name ends at ``end``; 0 for no file."""
    while touches(tokens, end) and tokens[end].text in ".-_" and touches(tokens, end + 1):
        ending = tokens[end + 1]
        following = text_at(tokens, end + 2) if touches(tokens, end + 2) else ""
        if tokens[end].text == "." and ending.text in _ENDINGS and not (following[:1].isalnum() or following == "_"):
            return end + 2
        if not ending.text.isalnum():
            return 0
        end += 2
    return 0


def _find_code(tokens: Sequence[Token]) -> dict[int, CodeKind]:
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
