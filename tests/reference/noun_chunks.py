"""Noun chunks of a Universal Dependencies parse, in which each token searches all tokens that depend on it."""

from __future__ import annotations

from collections.abc import Iterator

from spacy.tokens import Doc, Span, Token

from groundwire.runtime.models.span_finder import _AFTER, _ARGUMENTS, _BEFORE, _NOMINAL


def universal_noun_chunks(doc: Doc) -> Iterator[Span]:
    """Yield what ``groundwire.runtime.models.span_finder.universal_noun_chunks`` yields."""
    done = 0
    for token in doc:
        # A run of spaces is a token of its own, which may be labelled a noun.
        if token.pos_ in _NOMINAL and not token.is_space and _is_argument(token):
            start, end = _left_edge(token), _right_edge(token)
            # As in spaCy: what contains an earlier chunk ("a friend of mine's house") is not given again.
            if start >= done:
                done = end
                yield doc[start:end]


def _is_argument(token: Token) -> bool:
    while token.dep_ == "conj" and token.head.i < token.i:
        token = token.head
    if token.dep_ == "expl":
        # ClearNLP calls the "it" of "it rains" a subject; only "there" is an expletive.
        return bool(token.pos_ == "PRON" and token.lower_ != "there")
    return token.dep_.lower() in _ARGUMENTS


def _left_edge(head: Token) -> int:
    start = head.i
    predicate = any(child.dep_ == "cop" for child in head.children)
    for child in reversed(list(head.lefts)):
        # The adverb in "is also a hobby" hangs on the noun, but belongs to the sentence.
        if child.dep_ not in _BEFORE or (predicate and child.dep_ == "advmod"):
            if child.dep_ == "punct":
                continue
            break
        start = child.left_edge.i
    while head.doc[start].is_space:
        start += 1
    return int(start)


def _right_edge(head: Token) -> int:
    end = head.i + 1
    for child in head.rights:
        if child.dep_ == "punct":
            continue
        # Adjacent, or separated by punctuation only: "Elvis Presley", "World War II", "Jean-Luc".
        if child.dep_ not in _AFTER or any(not token.is_punct for token in head.doc[end : child.left_edge.i]):
            break
        end = child.right_edge.i + 1
    return int(end)
