"""Reads hedges and limits of amounts: "about 20", "more than 20", "up to 20", "within 20 days", "the limit is 20".

A hedge makes an interval of an amount. A limit is what is allowed or required, and a smaller amount does not say it: a
stay of 5 days is no stay of up to 15. "Less than 15 days" is true of 5, and it is a limit only where words before it
allow or require something.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from groundwire.runtime.texts.characters import is_letters

from ..text.normalization import FUNCTION_WORDS
from .tokens import NEGATIONS, Hedge, Side, Token, text_at, touches

_HEDGES: dict[tuple[str, ...], Hedge] = {
    ("more", "than"): "more", ("over",): "more", ("above",): "more", ("exceeding",): "more", ("beyond",): "more",
    ("longer", "than"): "more", ("older", "than"): "more", ("shorter", "than"): "less", ("younger", "than"): "less",
    ("at", "least"): "at_least", ("no", "fewer", "than"): "at_least", ("no", "less", "than"): "at_least",
    ("minimum", "of"): "at_least", ("less", "than"): "less", ("fewer", "than"): "less", ("under",): "less",
    ("below",): "less", ("at", "most"): "at_most", ("up", "to"): "at_most", ("no", "more", "than"): "at_most",
    ("maximum", "of"): "at_most", ("about",): "about", ("around",): "about", ("approximately",): "about",
    ("approx",): "about", ("roughly",): "about", ("some",): "about", ("circa",): "about", ("~",): "about",
    ("≈",): "about", ("estimated",): "about", ("close", "to"): "about", ("almost",): "almost", ("nearly",): "almost",
    ("just", "under"): "almost", ("not", "quite"): "almost", ("just", "over"): "about",
    (">",): "more", ("<",): "less", ("≥",): "at_least", ("≤",): "at_most", (">", "="): "at_least",
    ("<", "="): "at_most", ("-", ">"): "exact", ("=", ">"): "exact", ("within",): "within",
}  # fmt: skip
_LIMITS: dict[tuple[str, ...], Side] = {
    ("up", "to"): "upper", ("maximum", "of"): "upper", ("minimum", "of"): "lower",
    ("limited", "to"): "upper", ("maximum",): "upper", ("max",): "upper", ("max", "."): "upper",
    ("minimum",): "lower", ("min",): "lower", ("min", "."): "lower", ("from",): "lower", ("starting", "at"): "lower",
}  # fmt: skip
"""Words before an amount that is a limit; it is exact beside an amount that is none, unless they are a hedge, too."""
_LAST_WORDS = frozenset(words[-1] for words in (*_HEDGES, *_LIMITS))
_SOFT = frozenset({"a", "an", "the"})
_SUMMING = frozenset({"add", "adds", "added", "adding", "sum", "sums"})
"""Words with which "up to" bounds nothing."""
SIDES: Mapping[Hedge, Side] = {
    "more": "lower", "at_least": "lower", "less": "upper", "at_most": "upper", "within": "upper",
}  # fmt: skip
"""On which side a hedge bounds an amount; other hedges bound none."""
_ABOVE = frozenset({"above", "over", "older", "longer"})
DENIED = 3
"""Words, at most, from a negation to "more than"."""
_HEADS: dict[str, Side] = {
    "maximum": "upper", "max": "upper", "limit": "upper", "minimum": "lower", "min": "lower",
}  # fmt: skip
"""Nouns and adjectives of a phrase that names a limit."""
_AFTER_HEAD = 7
"""Words, at most, from "limit" to its amount: "the limit of the student card is €500"."""
_LINKS = frozenset({"is", "are", "be", "of", ":"})
"""What is right before the amount of a limit that its phrase names."""
_IN_PHRASE = _LINKS | {"the", "a", "an", "for", "on", "in", "to", "your", "this", "each"}
_REQUIRING = frozenset({"must", "need", "needs", "needed", "require", "requires", "required"})
_ALLOWING = frozenset({"may", "can", "allowed", "permitted"})
_POLICIES = re.compile(
    r"return|refund|cancel|exchang|complain|complaint|claim|withdraw|report|pay|appl|renew|object|notif"
)
"""What begins words for what one may or has to do within a time."""
_HAVE = frozenset({"have", "has"})
_HAPPENED = 3
"""Words, at most, from an amount to what happened."""
_CLAUSE = 10
"""Words before a hedge among which something is allowed or required."""


def read_hedge(tokens: Sequence[Token], first: int, end: int) -> tuple[Hedge, Side]:
    """The hedge of the amount that ``tokens[first:end]`` are, and the side on which it is a limit.

    >>> from .tokens import tokenize
    >>> texts = ("up to 5 days", "within 5 days", "takes under 5 days", "must take under 5 days", "the limit is 5 days")
    >>> for tokens in map(tokenize, texts):
    ...     print(*read_hedge(tokens, len(tokens) - 2, len(tokens)))
    at_most upper
    within none
    less none
    less upper
    exact upper
    """
    last = first - 1
    if last >= 0 and tokens[last].lower in _SOFT:
        last -= 1
    hedge: Hedge = "exact"
    limit: Side = "none"
    if last >= 0 and tokens[last].lower in _LAST_WORDS:
        for length in (3, 2, 1):
            words = tuple(token.lower for token in tokens[last - length + 1 : last + 1]) if last + 1 >= length else ()
            if words == ("up", "to") and text_at(tokens, last - 2) in _SUMMING:
                break
            if words in _HEDGES or words in _LIMITS:
                hedge, limit = _HEDGES.get(words, "exact"), _LIMITS.get(words, "none")
                first = last - length + 1
                if hedge == "more" and _is_denied(tokens, first):
                    hedge = "at_most"
                break
    if hedge == "exact":
        hedge = _read_after(tokens, end)
    if hedge == "exact" and limit == "none":
        limit = _find_head(tokens, first)
    elif hedge == "at_most" and limit == "upper" and _has_happened(tokens, end):
        limit = "none"
    elif hedge in SIDES and limit == "none" and _is_allowed(tokens, first, hedge):
        limit = SIDES[hedge]
    return hedge, limit


def _has_happened(tokens: Sequence[Token], end: int) -> bool:
    """Whether an amount is of what was so: "up to 40,000 people attended"."""
    return any(
        token.lower.endswith("ed")
        and token.lower not in _REQUIRING | _ALLOWING
        and token.sentence == tokens[end - 1].sentence
        for token in tokens[end : end + _HAPPENED]
    )


def _is_denied(tokens: Sequence[Token], first: int) -> bool:
    """Whether a negation is shortly before a token, with words alone between: "do not take more than eight"."""
    for index in range(first - 1, max(first - 1 - DENIED, -1), -1):
        token = tokens[index]
        if token.sentence != tokens[first].sentence or not is_letters(token.text[0]):
            return False
        if token.lower in NEGATIONS:
            return text_at(tokens, index + 1) != "only"
    return False


def _read_after(tokens: Sequence[Token], end: int) -> Hedge:
    """The hedge after an amount: "or more", "and over", "or so"."""
    if end >= len(tokens):
        return "exact"
    following = (text_at(tokens, end), text_at(tokens, end + 1))
    plus = following[0] == "+" and touches(tokens, end)
    if plus or (following[0] in ("or", "and") and following[1] in _ABOVE) or following == ("or", "more"):
        return "at_least"
    if following in (("or", "less"), ("or", "fewer"), ("at", "most")):
        return "at_most"
    return "about" if following == ("or", "so") else "exact"


def _find_head(tokens: Sequence[Token], first: int) -> Side:
    """The side of a limit whose phrase ends at a token: "the minimum age is 16", "max. width 2.5 m"."""
    is_linked = text_at(tokens, first - 1) in _LINKS
    for index in range(first - 1, max(first - 1 - (_AFTER_HEAD if is_linked else 2), -1), -1):
        token = tokens[index]
        is_word = is_letters(token.text[0]) and (token.lower not in FUNCTION_WORDS or token.lower in _IN_PHRASE)
        if token.sentence != tokens[first].sentence or not (is_word or token.text in ":."):
            break
        if token.lower in _HEADS:
            return _HEADS[token.lower]
    return "none"


def _is_allowed(tokens: Sequence[Token], first: int, hedge: Hedge) -> bool:
    """Whether words before a hedge allow what it bounds, or require it."""
    if hedge == "within" and any(
        _POLICIES.match(token.lower) and token.sentence == tokens[first].sentence
        for token in tokens[max(0, first - _CLAUSE) : first + _CLAUSE]
    ):
        return True
    words = _REQUIRING | _ALLOWING if hedge == "at_most" else _REQUIRING
    return any(
        (tokens[index].lower in words or (tokens[index].lower in _HAVE and text_at(tokens, index + 1) == "to"))
        and tokens[index].sentence == tokens[first].sentence
        for index in range(max(0, first - _CLAUSE), first)
    )


def opens_limit(tokens: Sequence[Token], index: int) -> bool:
    """Whether a "no" is of a limit, and denies nothing: "no longer than"."""
    return text_at(tokens, index) == "no" and text_at(tokens, index + 2) == "than"
