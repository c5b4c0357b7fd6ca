"""Alters copies of sentences, so that one pipeline reads edited text and chat.

Chat corpora are often lower-cased, split at every punctuation mark ("i ' m", "steel - string") and lack the final full
stop; names are rarer in treebanks than in chats. Each alteration keeps the annotation in step.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..common.treebanks import AnnotatedSentence, DependencyParse, list_names

_APOSTROPHE = re.compile(r"(.*)(['’])(.*)")


@dataclass(frozen=True, slots=True)
class AlterationChances:
    """Probability of each alteration of an example."""

    lower: float = 0.5
    """Everything lower-cased."""
    split: float = 0.35
    """A space on both sides of every word and punctuation mark; half of these also split at apostrophes."""
    drop_stop: float = 0.15
    """The final full stop left out."""
    swap: float = 0.3
    """A name replaced by another of its type (per name, in sentences without a parse)."""


def alter_sentence(
    sentence: AnnotatedSentence, swaps: dict[str, list[str]], chances: AlterationChances, rng: random.Random
) -> AnnotatedSentence:
    """A copy of ``sentence`` with alterations drawn from ``rng``."""
    if sentence.parse is None:
        sentence = swap_names(sentence, swaps, chances.swap, rng)
    if rng.random() < chances.drop_stop:
        sentence = drop_full_stop(sentence)
    if rng.random() < chances.split:
        if rng.random() < 0.5:
            sentence = split_apostrophes(sentence)
        sentence = replace(sentence, spaces=(True,) * len(sentence.words))
    if rng.random() < chances.lower:
        sentence = lower_sentence(sentence)
    return sentence


def lower_sentence(sentence: AnnotatedSentence) -> AnnotatedSentence:
    """The sentence in lower case."""
    return replace(sentence, words=tuple(word.lower() for word in sentence.words))


def drop_full_stop(sentence: AnnotatedSentence) -> AnnotatedSentence:
    """The sentence without its last word, when that is a full stop."""
    if len(sentence.words) < 2 or sentence.words[-1] != ".":
        return sentence
    parse = sentence.parse
    if parse is not None:
        if len(sentence.words) - 1 in parse.heads[:-1] or parse.deps[-1] != "punct":
            return sentence
        parse = DependencyParse(parse.pos[:-1], parse.heads[:-1], parse.deps[:-1])
    return replace(
        sentence, words=sentence.words[:-1], spaces=sentence.spaces[:-1], names=sentence.names[:-1], parse=parse
    )


def split_apostrophes(sentence: AnnotatedSentence) -> AnnotatedSentence:
    """The sentence with every word split at its apostrophe: the part before, the apostrophe, the part after.

    The part after the apostrophe, or else the part before it, keeps the word's place in the tree ("n't" gives
    "n ' t", whose "t" is the negation); the others depend on it.
    """
    pieces = [_split_word(word) for word in sentence.words]
    keeper = [len(parts) - 1 if parts[-1] != "'" else 0 for parts in pieces]
    kept_index, first = [], 0
    for parts, index in zip(pieces, keeper, strict=True):
        kept_index.append(first + index)
        first += len(parts)
    words, spaces, names = [], [], []
    pos, heads, deps = [], [], []
    for i, parts in enumerate(pieces):
        words += parts
        spaces += [False] * (len(parts) - 1) + [sentence.spaces[i]]
        names += _stretch_tag(sentence.names[i], len(parts))
        if sentence.parse is not None:
            for j, part in enumerate(parts):
                is_kept, mark = j == keeper[i], part in ("'", "’") and len(parts) > 1
                pos.append("PUNCT" if mark else sentence.parse.pos[i])
                heads.append(kept_index[sentence.parse.heads[i]] if is_kept else kept_index[i])
                deps.append(sentence.parse.deps[i] if is_kept else "punct" if mark else "dep")
    parse = DependencyParse(tuple(pos), tuple(heads), tuple(deps)) if sentence.parse else None
    return replace(sentence, words=tuple(words), spaces=tuple(spaces), names=tuple(names), parse=parse)


def _split_word(word: str) -> list[str]:
    match = _APOSTROPHE.fullmatch(word)
    return [part for part in match.groups() if part] if match else [word]


def _stretch_tag(name: str, count: int) -> list[str]:
    if count == 1 or name in ("O", "-") or name[0] == "I":
        return [name] * count
    first = name if name[0] == "B" else f"B{name[1:]}" if name[0] == "U" else f"I{name[1:]}"
    last = name if name[0] == "L" else f"L{name[1:]}" if name[0] == "U" else f"I{name[1:]}"
    return [first, *[f"I{name[1:]}"] * (count - 2), last]


def swap_names(
    sentence: AnnotatedSentence, swaps: dict[str, list[str]], chance: float, rng: random.Random
) -> AnnotatedSentence:
    """The sentence with names replaced by others of the same type, each with probability ``chance``."""
    words, spaces, names = [], [], []
    done = 0
    for start, end, label in list_names(sentence):
        if not swaps[label] or rng.random() >= chance:
            continue
        other = rng.choice(swaps[label]).split()
        words += [*sentence.words[done:start], *other]
        spaces += [*sentence.spaces[done:start], *[True] * (len(other) - 1), sentence.spaces[end - 1]]
        names += [*sentence.names[done:start], *_stretch_tag(f"U-{label}", len(other))]
        done = end
    words += sentence.words[done:]
    spaces += sentence.spaces[done:]
    names += sentence.names[done:]
    return replace(sentence, words=tuple(words), spaces=tuple(spaces), names=tuple(names))


def join_sentences(sentences: Sequence[AnnotatedSentence]) -> AnnotatedSentence:
    """Join neighbouring sentences to one text."""
    if len(sentences) == 1:
        return sentences[0]
    parse = None
    if all(s.parse is not None for s in sentences):
        parses, offset, heads = [s.parse for s in sentences if s.parse], 0, []
        for part in parses:
            heads += [offset + head for head in part.heads]
            offset += len(part.heads)
        parse = DependencyParse(sum((p.pos for p in parses), ()), tuple(heads), sum((p.deps for p in parses), ()))
    spaces = [(*s.spaces[:-1], True) for s in sentences]
    return replace(
        sentences[0],
        words=sum((s.words for s in sentences), ()),
        spaces=sum(spaces, ()),
        names=sum((s.names for s in sentences), ()),
        parse=parse,
    )
