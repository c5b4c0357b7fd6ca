"""Answers put together from claims: prose, lists and headings, with greetings, hedges and abstentions around them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from .rows import WorldSentence, WorldSpan
from .scene import Scene
from .wording import Segment, capitalize, is_lowerable, join, lower_first

OPENINGS = (
    "Sure!",
    "Of course.",
    "Thanks for asking!",
    "Hi there!",
    "Hello, and thank you for your message.",
    "Happy to help!",
    "Good question.",
    "Certainly.",
    "Let me check that for you.",
    "Thank you for getting in touch.",
    "No problem!",
    "Great, let's have a look.",
)
CLOSINGS = (
    "Let me know if you need anything else.",
    "I hope that helps!",
    "Have a nice day.",
    "Is there anything else I can do?",
    "Just ask if something is unclear.",
    "Feel free to write again.",
    "Thanks for your patience.",
    "Kind regards",
)
ABSTENTIONS = (
    "I don't have any information about {n}.",
    "I'm afraid I can't tell you {n}.",
    "I couldn't find {n}.",
    "About {n} I have no details, sorry.",
    "My documents don't mention {n}.",
)
HEDGES = (
    "As far as I can see, ",
    "According to the information I have, ",
    "Please note that ",
    "From what I can tell, ",
    "If I read this correctly, ",
    "Just so you know, ",
    "It looks like ",
    "I believe ",
    "Good to know: ",
    "I can confirm that ",
    "Also, ",
    "By the way, ",
    "In short, ",
    "As stated in the documents, ",
    "I'd say ",
)
HEADINGS = (
    "Here is what I found:",
    "Here are the details:",
    "The main points:",
    "In summary:",
    "What you should know:",
    "## Overview",
    "**At a glance**",
    "Good to know:",
    "### Details",
)
ABOUT = ("Here is what I know about {name}.", "This is about {name}.", "You asked about {name}.", "Regarding {name}:")
JOINED = 0.12
"""Share of the neighbouring sentences that are joined to one."""
HEDGED = 0.2


@dataclass(frozen=True, slots=True)
class Item:
    """A sentence of an answer, in a supported and a false version."""

    true: Sequence[Segment]
    false: Sequence[Segment] | None = None
    """None where both versions are alike."""
    states: bool = True

    def list_versions(self) -> list[Sequence[Segment]]:
        """Both versions."""
        return [self.true, self.false if self.false is not None else self.true]


@dataclass(frozen=True, slots=True)
class AnswerText:
    """A written answer with its labels."""

    text: str
    sentences: tuple[WorldSentence, ...]
    spans: tuple[WorldSpan, ...]


@dataclass(frozen=True, slots=True)
class AnswerLayout:
    """Items with what is before each of them."""

    items: tuple[Item, ...]
    gaps: tuple[str, ...]

    def write(self, false: bool) -> AnswerText:
        """Write the supported or the false version."""
        text, sentences, spans = "", [], []
        for item, gap in zip(self.items, self.gaps, strict=True):
            text += gap
            start, wrong = len(text), False
            for part in item.list_versions()[int(false)]:
                if part.wrong:
                    wrong = True
                    spans.append(_tighten(text, part))
                text += part.text
            sentences.append(WorldSentence(start, len(text), int(not wrong) if item.states else None))
        return AnswerText(text, tuple(sentences), tuple(spans))


def _tighten(before: str, part: Segment) -> WorldSpan:
    """Return the span of a part without spaces and full stops at its ends."""
    core = part.text.strip(" .,;:!?\n") or part.text.strip()
    start = len(before) + part.text.find(core)
    # The stops of "a.m." belong to it.
    end = (
        start + len(core) + (core.endswith((".m", "p.m")) and part.text[part.text.find(core) + len(core) :][:1] == ".")
    )
    return WorldSpan(start, end, part.wrong)


def hedge(item: Item, rng: random.Random) -> Item:
    """Put a phrase before a sentence by chance."""
    if rng.random() >= HEDGED or not all(_may_follow(version) for version in item.list_versions()):
        return item
    phrase = Segment(rng.choice(HEDGES))
    false = None if item.false is None else (phrase, *lower_first(item.false))
    return replace(item, true=(phrase, *lower_first(item.true)), false=false)


def _may_follow(parts: Sequence[Segment]) -> bool:
    text = join(parts)
    return is_lowerable(text) and "\n" not in text and "?" not in text[:-1] and ":" not in text[:40] and "`" not in text


def join_items(items: Sequence[Item], rng: random.Random) -> list[Item]:
    """Join some neighbouring sentences with "and"."""
    joined: list[Item] = []
    for item in items:
        if joined and rng.random() < JOINED and _can_join(joined[-1], item):
            joined[-1] = _join_two(joined[-1], item)
        else:
            joined.append(item)
    return joined


def _can_join(first: Item, second: Item) -> bool:
    return all(
        version[-1].text.endswith(".") and ". " not in join(version) and not set("?`\n") & set(join(version))
        for version in first.list_versions()
    ) and all(_may_follow(version) and join(version).endswith(".") for version in second.list_versions())


def _join_two(first: Item, second: Item) -> Item:
    versions = []
    for left, right in zip(first.list_versions(), second.list_versions(), strict=True):
        *head, last = left
        versions.append((*head, Segment(last.text[:-1], last.wrong), Segment(", and "), *lower_first(right)))
    return Item(versions[0], versions[1])


def arrange(items: Sequence[Item], scene: Scene, named: bool, abstention: str, rng: random.Random) -> AnswerLayout:
    """Arrange the items of an answer; ``named`` says whether the history or an item names the subject."""
    items = [
        Item(capitalize(item.true), None if item.false is None else capitalize(item.false), item.states)
        for item in items
    ]
    before: list[Item] = []
    if rng.random() < 0.25:
        before.append(_make_plain(rng.choice(OPENINGS)))
    if not named:
        before.append(_make_plain(rng.choice(ABOUT).format(name=scene.record.name)))
    after = [_make_plain(abstention)] if abstention else []
    if rng.random() < 0.2:
        after.append(_make_plain(rng.choice(CLOSINGS)))
    short = all(
        len(join(version)) < 160 and "\n" not in join(version) for item in items for version in item.list_versions()
    )
    if len(items) > 1 and short and rng.random() < 0.28:
        return _arrange_list(items, before, after, rng)
    gap = "\n\n" if rng.random() < 0.08 else " "
    gaps = [" "] * (len(before) + len(items) + len(after))
    if gap != " " and len(gaps) > 2:
        gaps[rng.randrange(1, len(gaps))] = gap
    gaps[0] = ""
    return AnswerLayout((*before, *items, *after), tuple(gaps))


def _arrange_list(items: Sequence[Item], before: list[Item], after: list[Item], rng: random.Random) -> AnswerLayout:
    if rng.random() < 0.7:
        before.append(_make_plain(rng.choice(HEADINGS)))
    style = rng.choice(("- ", "- ", "* ", "• ", "{}. ", "{}. ", "{}) "))
    gaps = [" "] * len(before)
    if before and before[-1].true[0].text.startswith(("#", "**")):
        gaps[-1] = "\n\n"
    if gaps:
        gaps[0] = ""
    for index in range(len(items)):
        line = "" if index == 0 and not before else "\n"
        gaps.append(line + style.format(index + 1))
    gaps.extend(["\n\n" if index == 0 else " " for index in range(len(after))])
    return AnswerLayout((*before, *items, *after), tuple(gaps))


def _make_plain(text: str) -> Item:
    return Item((Segment(text),), states=False)
