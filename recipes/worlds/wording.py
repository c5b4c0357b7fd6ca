"""Templates of sentences.

``{v}`` is a slot, ``(a|b)`` an alternative of wording that does not matter, ``[a|b]`` an alternative that depends on a
state: the first where the state is 0, the second where it is 1, and so on. Alternatives may hold slots. Round brackets
of the text itself are written ``‹`` and ``›``, and a line break as backslash and n.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

_TOKEN = re.compile(r"\{[\w-]+\}|[()\[\]|]|[^{}()\[\]|]+")
_SLOT = re.compile(r"\{([^{}]*)\}")
_BRACKETS = str.maketrans("‹›", "()")
_LOWERABLE_WORDS = """
A Abroad Adding Admission Adults After All An Another Any Anyone Anything Arrival As Astronomers At Audiences Battery
Because Before Between Bikes Boarding Bonds Bookings Books Both Breakfast Bringing Bugs Builders Buying By Calls
Cameras Cancelling Cards Cars Charging Checking Children Clients Collection Coming Compared Corners Counting
Currencies Customers Data Defects Delivery Departure Deposit Dinner Discovery Dividends Dogs Drinking Driving Each
Eating Economy Encryption Enrolment Entry Every Expect Families Faults Files Filters Fixes Flying Food For From Giving
Groups Guests Half He Headphones Heating Her His Ice If In Income Inside Inspectors Insurance Is It Items Its Joining
Just Keeping Kids Last Launch Leasing Lessons Light Luggage Lunch Maintenance Materials Members Membership Memory
Missing Most No Not Nothing Notice Ocean On Once One Only Orders Our Outside Over Parking Participants Patients Paying
Payment People Per Pets Photography Photos Places Plan Please Possession Postage Readers Reception Redemption
Registration Rent Reopening Repairs Requests Returning Riding Roaming Running Savings Seats Selling Shares She
Shipping Shots Signing Sitting Skiing Some Someone Standard Standing Starting Staying Storing Students Subletting
Suitcases Surfing Swapping Takeaway Taking Teenagers That The Theft Their There They This Those Tickets To Together
Towels Trading Trailers Trips Two Under Units Until Up Upgrading Uploading Usage Using Vegans Viewings Visitors
Warranty We Wheelchair When While Winter With Withdrawal Withdrawing Within Without You Your
"""
_LOWERABLE = frozenset((*_LOWERABLE_WORDS.split(), "Nobody"))  # terms: literal


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a sentence; ``wrong`` is the reason why it is unsupported, or empty."""

    text: str
    wrong: str = ""


@dataclass(frozen=True, slots=True)
class _Slot:
    name: str


@dataclass(frozen=True, slots=True)
class _States:
    options: tuple[tuple[Node, ...], ...]


@dataclass(frozen=True, slots=True)
class _Choice:
    options: tuple[tuple[Node, ...], ...]


Node: TypeAlias = "str | _Slot | _States | _Choice"


@dataclass(frozen=True, slots=True)
class Filled:
    """What the slots of a wording say, and which state holds."""

    slots: Mapping[str, str]
    state: int = 0


@dataclass(frozen=True, slots=True)
class Wording:
    """A parsed template."""

    source: str
    nodes: tuple[Node, ...]

    @property
    def speaks_as_we(self) -> bool:
        """Whether the speaker belongs to what the sentence is about."""
        return bool(re.search(r"\b([Ww]e|[Oo]urs?|us)\b", self.source))

    @property
    def slots(self) -> set[str]:
        """The names of the slots."""
        return set(_SLOT.findall(self.source))

    def list_state_counts(self) -> set[int]:
        """List how many alternatives there are wherever a state decides."""
        return set(_list_state_counts(self.nodes))

    @property
    def names_subject(self) -> bool:
        """Whether the subject is named in the third person."""
        return "{S}" in self.source or "{s}" in self.source or "{P}" in self.source or "{p}" in self.source

    def resolve(self, rng: random.Random) -> Wording:
        """Choose the alternatives that do not matter."""
        return Wording(self.source, _resolve(self.nodes, rng)) if "(" in self.source else self

    def bind(self, slots: Mapping[str, str]) -> Wording:
        """Put templates in place of some slots."""
        return Wording(self.source, _bind(self.nodes, slots))

    def with_lead(self, leads: Sequence[str]) -> Wording:
        """Put one of ``leads``, by the state, before the sentence."""
        options = tuple((lead,) for lead in leads)
        return Wording(self.source, (_States(options), ", ", *_lower_nodes(self.nodes)))

    def fill(self, filling: Filled) -> list[Segment]:
        """Write the sentence."""
        parts: list[Segment] = []
        _fill(self.nodes, filling, parts)
        return _tidy(parts)

    def fill_wrongly(self, true: Filled, false: Filled, wrong: Mapping[str, str], reason: str) -> list[Segment]:
        """Write the sentence as ``false`` has it; what differs from ``true`` is marked.

        ``wrong`` maps the names of slots to what the reason is; a changed state is marked with ``reason``.
        """
        parts: list[Segment] = []
        _fill_wrongly(self.nodes, true, false, wrong, reason, parts)
        return _tidy(parts)


@lru_cache(1 << 15)
def parse(template: str) -> Wording:
    """Parse a template."""
    tokens = _TOKEN.findall(template.replace("\\n", "\n"))
    nodes, rest = _parse(tokens, 0)
    if rest != len(tokens):
        raise ValueError(f"Unbalanced brackets: {template}")
    return Wording(template, nodes)


def _parse(tokens: Sequence[str], index: int) -> tuple[tuple[Node, ...], int]:
    nodes: list[Node] = []
    while index < len(tokens):
        token = tokens[index]
        if token in "|)]":
            return tuple(nodes), index
        if token in "([":
            options = []
            closing = ")" if token == "(" else "]"
            while True:
                option, index = _parse(tokens, index + 1)
                options.append(option)
                if index == len(tokens):
                    raise ValueError(f"Unbalanced brackets: {''.join(tokens)}")
                if tokens[index] == closing:
                    break
            nodes.append(_Choice(tuple(options)) if token == "(" else _States(tuple(options)))
            index += 1
            continue
        nodes.append(_Slot(token[1:-1]) if token[0] == "{" else token.translate(_BRACKETS))
        index += 1
    return tuple(nodes), index


def _resolve(nodes: Sequence[Node], rng: random.Random) -> tuple[Node, ...]:
    resolved: list[Node] = []
    for node in nodes:
        if isinstance(node, _Choice):
            resolved.extend(_resolve(rng.choice(node.options), rng))
        elif isinstance(node, _States):
            resolved.append(_States(tuple(_resolve(option, rng) for option in node.options)))
        else:
            resolved.append(node)
    return tuple(resolved)


def _bind(nodes: Sequence[Node], slots: Mapping[str, str]) -> tuple[Node, ...]:
    bound: list[Node] = []
    for node in nodes:
        if isinstance(node, _Slot) and node.name in slots:
            bound.extend(parse(slots[node.name]).nodes)
        elif isinstance(node, (_Choice, _States)):
            bound.append(type(node)(tuple(_bind(option, slots) for option in node.options)))
        else:
            bound.append(node)
    return tuple(bound)


def _list_state_counts(nodes: Sequence[Node]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, _States):
            yield len(node.options)
        if isinstance(node, (_Choice, _States)):
            for option in node.options:
                yield from _list_state_counts(option)


def _pick(node: _States, state: int) -> tuple[Node, ...]:
    return node.options[min(state, len(node.options) - 1)]


def _fill(nodes: Sequence[Node], filling: Filled, parts: list[Segment]) -> None:
    for node in nodes:
        if isinstance(node, str):
            parts.append(Segment(node))
        elif isinstance(node, _Slot):
            parts.append(Segment(filling.slots[node.name]))
        elif isinstance(node, _States):
            _fill(_pick(node, filling.state), filling, parts)


def _fill_wrongly(
    nodes: Sequence[Node],
    true: Filled,
    false: Filled,
    wrong: Mapping[str, str],
    reason: str,
    parts: list[Segment],
) -> None:
    for node in nodes:
        if isinstance(node, str):
            parts.append(Segment(node))
        elif isinstance(node, _Slot):
            text = false.slots[node.name]
            old = true.slots.get(node.name, "")
            parts.extend(mark_difference(old, text, wrong[node.name]) if node.name in wrong else [Segment(text)])
        elif isinstance(node, _States):
            if true.state == false.state:
                _fill_wrongly(_pick(node, false.state), true, false, wrong, reason, parts)
                continue
            old = join(Wording("", _pick(node, true.state)).fill(true))
            new = join(Wording("", _pick(node, false.state)).fill(false))
            parts.extend(mark_difference(old, new, reason, trim=True))


def _tidy(parts: list[Segment]) -> list[Segment]:
    """Drop what is doubled where parts meet: the full stop after an abbreviation, and spaces."""
    tidy: list[Segment] = []
    for part in parts:
        text = part.text
        if tidy and text[:1] == "." and tidy[-1].text == " ":
            tidy.pop()
        if tidy and text[:1] in (" ", ".") and tidy[-1].text.endswith(text[:1]):
            text = text[1:]
        if text:
            tidy.append(Segment(text, part.wrong))
    return tidy


def join(parts: Sequence[Segment]) -> str:
    """Return the text of the parts."""
    return "".join(part.text for part in parts)


_UNITS = (
    "seconds? minutes? hours? days? weeks? months? years? k?g m[gl] litres? mm cm k?m metres? [GM]B watts pounds? "
    "dollars? euros? percent"
).replace(" ", "|")
_MEASURED = re.compile(rf"(?:[\d.,]+|[a-z-]+) (?:{_UNITS}|working days?|square metres|per cent)$")


def mark_difference(old: str, new: str, reason: str, trim: bool = False) -> list[Segment]:
    """Mark the words of ``new`` that differ from ``old``: of a measure the number or the unit, else all."""
    if old == new:
        return [Segment(new)]
    if not trim and not (_MEASURED.match(old) and _MEASURED.match(new)):
        return [Segment(new, reason)]
    before, after = old.split(" "), new.split(" ")
    head = tail = 0
    while head < min(len(before), len(after)) - 1 and before[head] == after[head]:
        head += 1
    while tail < min(len(before), len(after)) - 1 - head and before[-1 - tail] == after[-1 - tail]:
        tail += 1
    middle = after[head : len(after) - tail]
    parts = [Segment(" ".join(after[:head]) + " ")] if head else []
    parts.append(Segment(" ".join(middle), reason))
    return [*parts, Segment(" " + " ".join(after[len(after) - tail :]))] if tail else parts


def is_lowerable(text: str) -> bool:
    """Whether the first word may begin with a small letter."""
    word = re.match(r"\w+", text)
    return word is not None and (word[0] in _LOWERABLE or text[0].islower())


def lower_first(parts: Sequence[Segment]) -> list[Segment]:
    """Write the first letter small."""
    first, *others = parts
    return [Segment(first.text[:1].lower() + first.text[1:], first.wrong), *others]


def capitalize(parts: Sequence[Segment]) -> list[Segment]:
    """Write the first letter large."""
    first, *others = [part for part in parts if part.text]
    return [Segment(first.text[:1].upper() + first.text[1:], first.wrong), *others]


def _lower_nodes(nodes: Sequence[Node]) -> tuple[Node, ...]:
    first = nodes[0]
    if isinstance(first, str):
        return ((first[:1].lower() + first[1:] if is_lowerable(first) else first), *nodes[1:])
    if isinstance(first, _States):
        return (_States(tuple(_lower_nodes(option) if option else option for option in first.options)), *nodes[1:])
    return tuple(nodes)
