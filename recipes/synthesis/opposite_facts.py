"""Made-up facts and their opposites, each said in several ways.

Edited sentences of articles rarely show who did what to whom, which of two is longer, how long something took or
whether it is over, and a model that reads them learns to compare words. Here both sides have the same words as often as
not, and a true response has other words than its knowledge. Square brackets mark what differs between the sides.
"""

from __future__ import annotations

import random
import tomllib
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from .rewordings import spell

Item = TypeVar("Item")
_WORDS: dict[str, Any] = tomllib.loads(Path(__file__).with_name("facts.toml").read_text(encoding="utf-8"))
HELD_OUT = 7
"""One phrase of so many is left for the development split."""
TYPES = ("PERSON", "LOC", "ORG")
"""Types of names that facts are about."""


@dataclass(frozen=True, slots=True)
class Side:
    """Statements that say the same; square brackets mark what the other side says differently."""

    claims: tuple[str, ...]
    sources: tuple[str, ...] = ()
    """Statements that a knowledge can have; empty when every claim can be one."""

    def list_sources(self) -> tuple[str, ...]:
        """What a knowledge can say."""
        return self.sources or self.claims


@dataclass(frozen=True, slots=True)
class Opposites:
    """Two sides that exclude each other."""

    kind: str
    reason: str
    """Why the words in brackets are unsupported on the other side (``structured_edits.REASONS``)."""
    sides: tuple[Side, Side]
    contradict: bool = True
    """Whether both cannot be true; who visited whom may hold both ways."""


class OppositeFacts:
    """Draws opposites."""

    def __init__(self, names: Mapping[str, Sequence[str]], split: str = "train") -> None:
        """``names`` by type (``TYPES``); kinds of facts without names are not drawn. ``split`` is train or dev.

        The splits share no relation, verb, adjective, predicate or pair of opposites.
        """
        self._names = {label: list(names[label]) for label in TYPES if len(names.get(label, ())) >= 2}
        self._names["thing"] = list(_WORDS["things"])
        self._split = split
        self._relations = self._keep(self._with_names(_WORDS["relations"]))
        self._verbs = {label: self._keep(verbs) for label, verbs in _WORDS["verbs"].items() if label in self._names}
        self._adjectives = self._keep(self._with_names(_WORDS["adjectives"]))
        self._predicates = self._keep(_WORDS["predicates"])
        self._phrases = self._keep(
            [row for row in _WORDS["opposites"] if "PERSON" in self._names or "{p}" not in "".join(row["one"])]
        )
        self._degrees = self._keep(_WORDS["degrees"])
        draws: dict[Callable[[random.Random], Opposites], float] = {
            self._draw_comparison: 0.18,
            self._draw_share: 0.06,
            self._draw_majority: 0.07,
            self._draw_frequency: 0.06,
            self._draw_length: 0.06,
            self._draw_years: 0.05,
            self._draw_phrase: 0.18,
            self._draw_degree: 0.06,
            self._draw_relation: 0.12,
        }
        if self._verbs:
            draws[self._draw_verb] = 0.1
        if "PERSON" in self._names:
            draws |= {self._draw_age: 0.04, self._draw_count: 0.06}
        self._draws = draws

    def draw(self, rng: random.Random) -> Opposites:
        """Draw two sides."""
        return rng.choices(list(self._draws), list(self._draws.values()))[0](rng)

    def _with_names(self, rows: Sequence[list[str]]) -> list[list[str]]:
        return [row for row in rows if row[0] in self._names]

    def _keep(self, items: Sequence[Item]) -> list[Item]:
        """The items of the split; all where it has none."""
        held_out = [zlib.crc32(repr(item).encode()) % HELD_OUT == 0 for item in items]
        of_split = [item for item, left in zip(items, held_out, strict=True) if left == (self._split == "dev")]
        return of_split or list(items)

    def _draw_slots(self, rng: random.Random) -> dict[str, str]:
        """A filling for every slot of a phrase."""
        return {
            "x": rng.choice(_WORDS["places"]),
            "p": rng.choice(self._names.get("PERSON", [""])),
            "d": rng.choice(_WORDS["weekdays"]),
            "s": rng.choice(_WORDS["seasons"]),
            "g": rng.choice(_WORDS["groups"]),
        }

    def _draw_relation(self, rng: random.Random) -> Opposites:
        """Who does what to whom, said from both ends."""
        label, *forms = rng.choice(self._relations)
        return self._exchange_names("relation", label, forms, rng)

    def _draw_verb(self, rng: random.Random) -> Opposites:
        """The same in active and passive voice."""
        label = rng.choice(list(self._verbs))
        verb = rng.choice(self._verbs[label])
        pronoun = "who" if label == "PERSON" else "that"
        year = f" in {rng.randint(1100, 2020)}" if rng.random() < 0.3 else ""
        forms = (
            f"{{a}} {verb} {{b}}{year}",
            f"{{b}} was {verb} by {{a}}{year}",
            f"{{b}} was the one {pronoun} {{a}} {verb}{year}",
            f"it was {{a}} {pronoun} {verb} {{b}}{year}",
        )
        return self._exchange_names("voice", label, forms, rng)

    def _exchange_names(self, kind: str, label: str, forms: Sequence[str], rng: random.Random) -> Opposites:
        first, second = rng.sample(self._names[label], 2)
        here, there = (
            Side(tuple(form.format(a=f"[{a}]", b=f"[{b}]") for form in forms))
            for a, b in ((first, second), (second, first))
        )
        return Opposites(kind, "relation", (here, there), contradict=False)

    def _draw_comparison(self, rng: random.Random) -> Opposites:
        """Which of two has more of something, by comparatives and by numbers."""
        label, more, less, plain, unit, lowest, highest = rng.choice(self._adjectives)
        first, second = rng.sample(self._names[label], 2)
        numbers = sorted(rng.sample(range(int(lowest), int(highest)), 2)) if unit else []
        sides = []
        for a, b in ((first, second), (second, first)):
            claims = [f"{a} is [{more}] than {b}", f"{b} is [{less}] than {a}", f"{b} is [not as {plain}] as {a}"]
            of_two = f"{a} is the [{more}] of the two" if " " in more else f"of the two, {a} is the [{more}] one"
            sources = list(claims)
            if unit:
                a_first = rng.random() < 0.5
                parts = [f"{a} is {numbers[1]:,} {unit}", f"{b} is {numbers[0]:,} {unit}"]
                joint = rng.choice((" and ", ", while ", ", but "))
                stated = joint.join(parts if a_first else parts[::-1])
                sources += [stated, stated, stated]
            sides.append(Side((*claims, of_two), tuple(sources)))
        return Opposites("compared", "relation", (sides[0], sides[1]))

    def _draw_majority(self, rng: random.Random) -> Opposites:
        """What most and what few do, or all and none."""
        group, (first, second) = rng.choice(_WORDS["groups"]), rng.choice(self._predicates)
        if rng.random() < 0.3:
            every = (f"[all] {group} {first}", f"[all] of the {group} {first}", f"{group} {first} [without exception]")
            none = (f"[no] {group} {first}", f"[none] of the {group} {first}", f"there are [no] {group} that {first}")
            return Opposites("majority", "relation", (Side(every), Side(none)))
        here, there = (
            Side(
                (
                    f"[most] {group} {many}",
                    f"[few] {group} {few}",
                    f"the [majority] of the {group} {many}",
                    f"{group} [usually] {many}",
                    f"[only a few] {group} {few}",
                ),
                (
                    f"[most] {group} {many}, and [only a few] {few}",
                    f"[few] {group} {few}; [most] {many}",
                    f"[nearly all] {group} {many}",
                    f"[hardly any] {group} {few}",
                ),
            )
            for many, few in ((first, second), (second, first))
        )
        return Opposites("majority", "relation", (here, there))

    def _draw_share(self, rng: random.Random) -> Opposites:
        """A percentage, as a fraction and as more or less than half."""
        group, (predicate, _) = rng.choice(_WORDS["groups"]), rng.choice(self._predicates)
        shares = {int(share): words for share, words in _WORDS["fractions"].items()}
        low = rng.choice([share for share in shares if share < 50])
        high = rng.choice([share for share in shares if share > 50])
        percent = rng.choice(("percent", "per cent", "%"))
        sides = []
        for share in (low, high):
            figure = f"{share}{'' if percent == '%' else ' '}{percent}"
            many = ("more than half", "most", "the majority") if share > 50 else ("less than half", "a minority")
            claims = [
                f"[{shares[share]}] of the {group} {predicate}",
                f"about [{shares[share]}] of the {group} {predicate}",
            ]
            claims += [f"[{word}] of the {group} {predicate}" for word in many]
            sources = (f"[{figure}] of the {group} {predicate}", f"of the {group}, [{figure}] {predicate}")
            sides.append(Side((*claims, sources[0]), sources))
        return Opposites("share", "number", (sides[0], sides[1]))

    def _draw_frequency(self, rng: random.Random) -> Opposites:
        """How often something happens."""
        event = rng.choice(_WORDS["frequent"])
        here, there = (
            Side(tuple(f"{event} [{word}]" for word in same)) for same in rng.sample(_WORDS["frequencies"], 2)
        )
        return Opposites("frequency", "number", (here, there))

    def _draw_length(self, rng: random.Random) -> Opposites:
        """How long something takes, in several units."""
        event = rng.choice(_WORDS["lasting"])
        here, there = (Side(tuple(f"{event} [{word}]" for word in same)) for same in rng.sample(_WORDS["lengths"], 2))
        return Opposites("length", "number", (here, there))

    def _draw_years(self, rng: random.Random) -> Opposites:
        """How many years something took, from the years of its beginning and end."""
        event = rng.choice(_WORDS["projects"]).format_map(self._draw_slots(rng))
        start = rng.randint(1100, 2005)
        sides = []
        for length in rng.sample(range(2, 31), 2):
            number = rng.choice((str(length), spell(length)))
            end = start + length
            sides.append(
                Side(
                    (
                        f"{event} lasted [{number} years]",
                        f"{event} took [{number} years]",
                        f"{event} ended [{number} years] after it began",
                        f"{event} ended in [{end}]",
                    ),
                    (
                        f"{event} began in {start} and ended in {end}",
                        f"{event}, which began in {start}, lasted until {end}",
                        f"{event} went on from {start} to {end}",
                    ),
                )
            )
        return Opposites("years", "number", (sides[0], sides[1]))

    def _draw_age(self, rng: random.Random) -> Opposites:
        """How old somebody was."""
        person = rng.choice(self._names["PERSON"])
        last, deed = person.split()[-1], rng.choice(_WORDS["deeds"])
        birth = rng.randint(1500, 1985)
        sides = []
        for age in rng.sample(range(8, 80, 4), 2):
            number = rng.choice((str(age), spell(age)))
            sides.append(
                Side(
                    (
                        f"{person} {deed} at the age of [{number}]",
                        f"{last} was [{number}] when it happened: {person} {deed}",
                        f"at [{number}], {last} {deed}",
                        f"{last} {deed} [{number} years] after being born",
                    ),
                    (
                        f"{person} was born in {birth} and {deed} in {birth + age}",
                        f"{person} ({birth}–{birth + age + rng.randint(1, 20)}) {deed} in {birth + age}",
                        f"{person}, born in {birth}, {deed} in {birth + age}",
                    ),
                )
            )
        return Opposites("age", "number", (sides[0], sides[1]))

    def _draw_count(self, rng: random.Random) -> Opposites:
        """How many there are, in digits and in words."""
        text = rng.choice(_WORDS["counted"])
        slots = self._draw_slots(rng)
        largest = 20 if rng.random() < 0.6 else 900
        sides = []
        for number in rng.sample(range(2, largest), 2):
            ways = [str(number), spell(number)]
            if number % 12 == 0 and number <= 48:
                ways.append("a dozen" if number == 12 else f"{spell(number // 12)} dozen")
            sides.append(Side(tuple(text.format(**slots, n=f"[{way}]") for way in ways)))
        return Opposites("count", "number", (sides[0], sides[1]))

    def _draw_phrase(self, rng: random.Random) -> Opposites:
        """Open or closed, dead or alive, planned or over."""
        row, slots = rng.choice(self._phrases), self._draw_slots(rng)
        here, there = (Side(tuple(text.format_map(slots) for text in row[side])) for side in ("one", "other"))
        return Opposites("phrase", row["reason"], (here, there))

    def _draw_degree(self, rng: random.Random) -> Opposites:
        """Slightly or very."""
        noun, adjective = rng.choice(self._degrees)
        slight, strong = (
            Side(tuple(f"the {noun} is [{word}] {adjective}" for word in same))
            for same in (_WORDS["slight"], _WORDS["strong"])
        )
        return Opposites("degree", "relation", (slight, strong))
