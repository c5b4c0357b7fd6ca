"""Draws pairs from turns of tools: a response that the log supports, and one of which a part is wrong."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from groundwire.metrics import sentences

from ..worlds.rows import WorldPair, WorldRow, WorldSpan
from . import swaps
from .logs import find_records, is_named, list_needed, show_log
from .parts import TURNS, PairSide, ResponsePart, make_row, mark_turn, name_value_reason, part_of_turn, render_pair
from .rendering import render_call
from .swaps import CONFIRM, COUNT, INFORM, ValueForms, ValueSwap
from .turns import RESTAURANT, Record, ToolResult, ToolTurn, ToolValue, read_turns

CHARACTERS = 2.9
"""Characters of a token of logs, which are full of numbers."""
ATTEMPTS = 200
PER_KIND = 20
"""Attempts after which another kind is drawn, because short windows have no room for some."""
MIXED = 600
"""Characters that more than two logs need."""
NEAR = 0.75
"""Share of the swaps that take a value of the log, where it has one."""
SET_WEIGHTS = {"sgd": 0.62, "star": 0.2, "e2e": 0.15, "tm4": 0.03}
"""Shares of the sets, by what the ids of their turns begin with."""
DO = re.compile(
    r"^(Reserve|Book|Buy|Schedule|Transfer|Add|GetRide|Play|Share|Request|Make)|_(book|schedule|plan|rsvp|change)$"
)
"""Tools that do what somebody asked for; the others look something up."""
CLAIM = re.compile(
    r"\b(booked|reserved|reservation|confirmed|scheduled|successful(ly)?|purchased|bought|all set|on (the|its) way|made"
    r"|added|transferred|sent|started|playing|booking|completed?|done)\b",
    re.IGNORECASE,
)
CLAIMS = {
    "book": (
        "I have booked it for you.",
        "Your booking is confirmed.",
        "I've gone ahead and reserved it.",
        "It's reserved in your name now.",
        "The reservation went through.",
        "That is booked for you.",
        "I made the booking just now.",
        "Done, the booking is complete.",
    ),
    "other": (
        "I've sent the details to your e-mail address.",
        "I have added it to your calendar.",
        "I've saved this for you.",
        "You will get a text message, which I have just sent.",
        "I have let them know that you are coming.",
        "I've already paid for it with your card on file.",
        "I have cancelled the earlier one.",
        "I've put a reminder in your calendar.",
    ),
}
"""Actions that only a tool could have done."""
FAILURES: tuple[Record, ...] = (
    {"status": "failed"},
    {"status": "error", "message": "not available any more"},
    {"success": False},
    {"error": "The request timed out."},
    {"status": "declined", "reason": "payment refused"},
)
"""What a tool returns that did not do what somebody asked for."""
ASIDES = (
    "Shall I book it?",
    "Would you like me to reserve it for you?",
    "Do you want me to go ahead?",
    "Should I send you the details?",
    "Would you like me to add it to your calendar?",
    "Is there anything else that you need?",
    "Does that work for you?",
)
"""In the place of a claim, what states nothing."""
KINDS, WEIGHTS = ("swap", "joined", "mixed", "claim", "added", "call"), (0.5, 0.12, 0.14, 0.06, 0.08, 0.1)


class _Pool:
    """Turns, drawn by their set first: a large set must not crowd out the others."""

    def __init__(self, turns: Iterable[ToolTurn]) -> None:
        self._sets: defaultdict[str, list[ToolTurn]] = defaultdict(list)
        for turn in turns:
            self._sets[turn.id.partition("-")[0]].append(turn)

    def draw(self, rng: random.Random) -> ToolTurn:
        """Draw a turn; IndexError for none."""
        weights = [SET_WEIGHTS.get(name, 1.0) for name in self._sets]
        return rng.choice(self._sets[rng.choices(list(self._sets), weights)[0]])


class ToolPairs:
    """The turns of a split, and pairs of them."""

    def __init__(self, turns: Sequence[ToolTurn]) -> None:
        """ValueError for no turns."""
        if not turns:
            raise ValueError("There are no turns of tools; give one at least.")
        self._turns = turns
        self._forms = ValueForms(turns)
        self._follow = list(_list_following(turns))
        self._all = _Pool(turns)
        self._offers = _Pool([turn for turn in turns if _is_complete(turn)])
        self._requests = _Pool([turn for turn in turns if self._is_requested(turn)])
        self._successes = [turn for turn in turns if "NOTIFY_SUCCESS" in turn.acts and DO.search(turn.method)]
        self._restaurants = [turn for turn in turns if turn.calls and turn.calls[0].tool == RESTAURANT]
        self._draws: dict[str, Callable[[int, random.Random], WorldPair | None]] = {
            "swap": self._draw_swap,
            "joined": self._draw_following,
            "mixed": self._draw_mixed,
            "claim": self._draw_claim,
            "added": self._draw_added,
            "call": self._draw_call,
        }

    @classmethod
    def read(cls, data: Path, split: str) -> ToolPairs:
        """Read the turns of a split, ``train`` or ``dev``; see ``read_turns``."""
        return cls(read_turns(data, split))

    def __len__(self) -> int:
        return len(self._turns)

    def draw(self, tokens: int, rng: random.Random, kind: str | None = None) -> WorldPair:
        """Draw a pair whose knowledge, history and response have about ``tokens`` tokens at most.

        Args:
            tokens: Of the word pieces that the reader reads.
            rng: Decides all of the pair.
            kind: One of ``KINDS``; None draws it.

        Raises:
            LookupError: If the turns give no such pair.
        """
        room = int(tokens * CHARACTERS)
        chosen = kind or rng.choices(KINDS, WEIGHTS)[0]
        for attempt in range(ATTEMPTS):
            if attempt and attempt % PER_KIND == 0:
                chosen = kind or rng.choices(KINDS, WEIGHTS)[0]
            pair = self._draws[chosen](room, rng)
            if pair is not None and all(_count_characters(row) <= room for row in (pair.supported, pair.unsupported)):
                return pair
        raise LookupError(
            f"{len(self)} turns gave no pair of {tokens} tokens in {ATTEMPTS} draws; give more of either."
        )

    def _draw_swap(self, room: int, rng: random.Random) -> WorldPair | None:
        turn = self._add_rivals(self._all.draw(rng), rng)
        swap = self._choose_swap(turn, rng)
        context = self._choose_context(turn, rng)
        if swap is None or context is None:
            return None
        sides = self._make_sides(turn, swap, context, room - _count_turns(context) - len(turn.response), rng)
        if sides is None:
            return None
        arguments = turn.arguments if rng.random() < 0.5 or any(v.source == "call" for v in turn.values) else {}
        return render_pair(sides, arguments, context, f"{turn.service}", swap_kind(turn, swap), rng)

    def _draw_following(self, room: int, rng: random.Random) -> WorldPair | None:
        if not self._follow:
            return None
        turns = rng.choice(self._follow)
        index = rng.randrange(len(turns))
        swap = self._choose_swap(turns[index], rng)
        if swap is None:
            return None
        parts = [part_of_turn(turn) for turn in turns]
        needed = {record for turn in turns for record in list_needed(turn)}
        left = room - sum(len(turn.response) for turn in turns)
        sides = self._make_sides(turns[index], swap, (), left, rng, frozenset(needed), turns)
        if sides is None:
            return None
        around = [replace(side, parts=(*parts[:index], *side.parts, *parts[index + 1 :])) for side in sides]
        return render_pair((around[0], around[1]), {}, (), turns[0].service, "joined", rng)

    def _draw_mixed(self, room: int, rng: random.Random) -> WorldPair | None:
        """Turns of several services beside all of their logs."""
        count = rng.choices((2, 3, 4), (0.6, 0.3, 0.1))[0] if room > MIXED else 2
        turns = [self._add_rivals(self._offers.draw(rng), rng) for _ in range(count)]
        if len({turn.service[:5].casefold() for turn in turns}) < count:
            return None
        swap = self._choose_swap(turns[0], rng, count=False)
        if swap is None:
            return None
        each = room // count
        sides = self._make_sides(turns[0], swap, (), each - len(turns[0].response), rng)
        if sides is None:
            return None
        others = [
            (show_log(turn, list_needed(turn), each - len(turn.response), rng), part_of_turn(turn))
            for turn in turns[1:]
        ]
        index = rng.randint(0, len(others))

        def mix(side: PairSide) -> PairSide:
            parts = [*others[:index], (side.calls, side.parts[0]), *others[index:]]
            calls = tuple(call for of_turn, _ in parts for call in of_turn)
            return PairSide(calls, tuple(part for _, part in parts))

        first, second = mix(sides[0]), mix(sides[1])
        return render_pair((first, second), {}, (), turns[0].service, "mixed", rng)

    def _draw_claim(self, room: int, rng: random.Random) -> WorldPair | None:
        """What a call did, with its result in the log and without it."""
        if not self._successes:
            return None
        turn = rng.choice(self._successes)
        done = len(turn.calls) - 1
        before = turn.calls[:done]
        values = [value for value in turn.values if value.source == "result"]
        if not turn.calls or any(not find_records(before, value) for value in values):
            return None
        if any(DO.search(call.tool) for call in before):
            return None  # it might be what an earlier call did
        response = turn.response
        if (
            not values
            and rng.random() < 0.4
            and DO.search(turn.method)
            and not re.match("Play|Transfer|Add", turn.method)
        ):
            response = rng.choice(CLAIMS["book"])
        marks = tuple((value.start, value.end) for value in turn.values) if response == turn.response else ()
        parts = [part for part in sentences(response) if CLAIM.search(part.text) and not part.text.endswith("?")]
        if (
            len(parts) != 1
            or len(sentences(response)) > 2
            or any(a < parts[0].end and parts[0].start < b for a, b in marks)
        ):
            return None
        claim = parts[0]
        needed = {holders[-1] for value in values if (holders := find_records(before, value))}
        shown = show_log(replace(turn, calls=before), needed, room - len(response) - 200, rng) if before else ()
        result = replace(turn.calls[done], records=turn.calls[done].records[:1], total=1)
        error = (rng.choice(FAILURES),) if rng.random() < 0.4 else ()
        failed = [replace(result, records=error, total=len(error))] if not shown or rng.random() < 0.5 else []
        stop = claim.start + len(claim.text.rstrip(".! "))
        right = ResponsePart(response, (*marks, (claim.start, stop)))
        wrong = ResponsePart(response, marks, (WorldSpan(claim.start, stop, "addition"),))
        sides = PairSide((*shown, result), (right,)), PairSide((*shown, *failed), (wrong,))
        return render_pair(sides, {}, turn.history[-TURNS:], turn.service, "claim", rng)

    def _draw_added(self, room: int, rng: random.Random) -> WorldPair | None:
        """A claimed action beside a turn whose log has looked something up and done nothing."""
        turn = self._add_rivals(self._offers.draw(rng), rng)
        if any(DO.search(call.tool) for call in turn.calls) or DO.search(turn.method):
            return None
        kind = (
            "book"
            if re.search("Find|Search|search|Cars|restaurant", turn.calls[-1].tool) and rng.random() < 0.6
            else "other"
        )
        text = rng.choice(CLAIMS[kind])
        claim = ResponsePart(text, (), (WorldSpan(0, len(text.rstrip(".")), "addition"),))
        shown = show_log(turn, list_needed(turn), room - len(turn.response) - 60, rng)
        main, first = part_of_turn(turn), rng.random() < 0.2
        asides = [ResponsePart(rng.choice(ASIDES))] if rng.random() < 0.5 else []
        right = (main, *asides)
        wrong = (claim, main) if first else (main, claim)
        return render_pair(
            (PairSide(shown, right), PairSide(shown, wrong)), {}, turn.history[-TURNS:], turn.service, "added", rng
        )

    def _draw_call(self, room: int, rng: random.Random) -> WorldPair | None:
        """A call whose arguments are what the dialogue asks for, and one of which one is not."""
        turn = self._requests.draw(rng)
        dialogue = "\n".join(turn.history)
        arguments = self._list_said(turn)
        name = rng.choice(list(arguments))
        value = ToolValue(0, 0, name, arguments[name], "result", CONFIRM)
        possible = [*swaps.list_log_values(turn, value), *self._forms.list_values(turn.service, name)]
        others = [
            other
            for other in dict.fromkeys(possible)
            if not swaps.agree(other, value.value)
            and not self._forms.find(name, other, dialogue)
            and 0 < len(other) < 50
            and swaps.describe_shape(other) == swaps.describe_shape(value.value)
        ]
        if not others:
            return None
        other, seed = rng.choice(others), rng.random()
        rows = []
        for wrong in (False, True):
            chosen = {**arguments, name: other} if wrong else arguments
            text, ranges = render_call(turn.method, chosen, random.Random(seed))
            start, end = ranges[name]
            spans = (WorldSpan(start, end, name_value_reason(value.value, other)),) if wrong else ()
            others_said = tuple(said for key, said in ranges.items() if not wrong or key != name)
            rows.append(make_row(dialogue, (), ResponsePart(text, others_said, spans), turn.service, "call"))
        return WorldPair(rows[0], rows[1])

    def _add_rivals(self, turn: ToolTurn, rng: random.Random) -> ToolTurn:
        """The turn with restaurants of other names in its log, if its log is one restaurant."""
        if not turn.calls or turn.calls[0].tool != RESTAURANT or rng.random() < 0.3:
            return turn
        said = " ".join([*map(str, turn.calls[0].records[0].values()), turn.response]).casefold()
        records = {}
        for other in rng.choices(self._restaurants, k=rng.choice((1, 2, 3, 5))):
            (record,) = other.calls[0].records
            name = str(record.get("name", "")).casefold()
            if name and name not in said:
                records[name] = record
        listed = [turn.calls[0].records[0], *records.values()]
        rng.shuffle(listed)
        return replace(turn, calls=(ToolResult(RESTAURANT, tuple(listed), len(listed)),))

    def _make_sides(
        self,
        turn: ToolTurn,
        swap: ValueSwap,
        context: Sequence[str],
        room: int,
        rng: random.Random,
        needed: frozenset[tuple[int, int]] = frozenset(),
        beside: Sequence[ToolTurn] = (),
    ) -> tuple[PairSide, PairSide] | None:
        """The right and the wrong side of a swap: in the response, in the log, or a right one of another log."""
        value = turn.values[swap.index]
        records = {*list_needed(turn), *needed}
        before = " ".join([*context[-TURNS:], turn.response, *(other.response for other in beside)])
        hidden = value.act == INFORM and not is_named(turn, before)
        if swap.near and not hidden:
            holders = find_records(turn.calls, replace(value, value=swap.value))
            records |= {rng.choice(holders)} if holders and not records & set(holders) else set()
        shown = show_log(turn, records, room, rng, beside=beside, only_needed=hidden)
        right, wrong = part_of_turn(turn), part_of_turn(turn, swap)
        way = rng.random()
        if way > 0.55 and self._can_edit(turn, value, swap):
            edited = swaps.replace_value(shown, value.slot, value.value, swap.value)
            if way > 0.75:
                return PairSide(edited, (wrong.accept(),)), PairSide(edited, (mark_turn(turn, swap),))
            return PairSide(shown, (right,)), PairSide(edited, (mark_turn(turn, swap),))
        return PairSide(shown, (right,)), PairSide(shown, (wrong,))

    def _can_edit(self, turn: ToolTurn, value: ToolValue, swap: ValueSwap) -> bool:
        """Whether the log may have the other value: then nothing else may still say the old one."""
        if value.source != "result" or value.act == COUNT or value.opposite or not swap.value:
            return False
        edited = swaps.replace_value(turn.calls, value.slot, value.value, swap.value)
        if edited == turn.calls or self._forms.find(value.slot, value.value, " ".join(turn.history)):
            return False
        short = value.value.isdigit() and len(value.value) < 3
        alike = any(index != swap.index and swaps.agree(v.value, value.value) for index, v in enumerate(turn.values))
        kin = swap.value not in {str(r.get(value.slot)) for call in turn.calls for r in call.records}
        return not alike and not (swap.near and kin) and not (swaps.has_value(edited, value.value) and not short)

    def _choose_swap(self, turn: ToolTurn, rng: random.Random, *, count: bool = True) -> ValueSwap | None:
        """Draw a value and what makes it wrong; None for a turn without such a value."""
        ways = (True, False) if rng.random() < NEAR else (False, True)
        for near in ways:
            for index in rng.sample(range(len(turn.values)), len(turn.values)):
                if turn.values[index].act == COUNT and not count:
                    continue
                possible = swaps.list_swaps(turn, index, self._forms, rng, near=near)
                rng.shuffle(possible)
                for swap in possible:
                    if self._is_unsaid(turn, swap):
                        return swap
        return None

    def _is_unsaid(self, turn: ToolTurn, swap: ValueSwap) -> bool:
        """Whether a confirmation is wrong: the user said the value and not the other one."""
        value = turn.values[swap.index]
        dialogue = " ".join(turn.history)
        old = turn.response[value.start : value.end].casefold()
        if turn.response.casefold().count(old) > 1 and len(old) > 2:
            return False
        if value.act != CONFIRM:
            return True
        return self._forms.find(value.slot, value.value, dialogue) and not self._forms.find(
            value.slot, swap.value, dialogue
        )

    def _choose_context(self, turn: ToolTurn, rng: random.Random) -> tuple[str, ...] | None:
        """The last turns of the dialogue, as many as have what the response takes from them; None if all have not."""
        asked = [value for value in turn.values if value.source == "history"]
        counts = range(TURNS, len(turn.history) + 1) if asked or rng.random() > 0.15 else [len(turn.history)]
        for count in [*counts, len(turn.history)]:
            dialogue = " ".join(turn.history[-count:])
            if all(self._forms.find(value.slot, value.value, dialogue) for value in asked):
                return turn.history[-count:]
        return None

    def _list_said(self, turn: ToolTurn) -> Mapping[str, str]:
        return {k: v for k, v in turn.arguments.items() if v not in ("True", "False", "dontcare") and "(" not in v}

    def _is_requested(self, turn: ToolTurn) -> bool:
        """Whether the dialogue has all arguments of the call."""
        dialogue, said = " ".join(turn.history), self._list_said(turn)
        return len(said) > 1 and all(self._forms.find(slot, value, dialogue) for slot, value in said.items())


def swap_kind(turn: ToolTurn, swap: ValueSwap) -> str:
    """What is wrong, for counting: the act, and whether the log has the other value."""
    value = turn.values[swap.index]
    return f"{(value.act or 'statement').lower()}_{'near' if swap.near else 'far'}"


def _is_complete(turn: ToolTurn) -> bool:
    """Whether a response says itself what it speaks of."""
    said = [value for value in turn.values if value.source == "result" and value.act != COUNT]
    offers = "OFFER" in turn.acts and turn.acts <= {"OFFER", COUNT}
    named = any(re.search("name|title|place|Name", value.slot) for value in said)
    return bool(turn.calls and said) and ((offers and named) or (not turn.acts and len(said) > 1 and named))


def _list_following(turns: Sequence[ToolTurn]) -> Iterator[tuple[ToolTurn, ...]]:
    """Turns of a dialogue about one result, in order: offers, and what was asked about the last offer."""

    def number(turn: ToolTurn) -> int:
        last = turn.id.rpartition("-")[2]
        return int(last) if last.isdigit() else 0

    telling = [t for t in turns if t.record is not None and t.acts and t.acts <= {"OFFER", INFORM, COUNT}]
    telling.sort(key=lambda turn: (turn.dialogue, turn.record[0] if turn.record else 0, number(turn)))
    for _, group in groupby(telling, lambda turn: (turn.dialogue, turn.record and turn.record[0])):
        chain: list[ToolTurn] = []
        for turn in group:
            offers = "OFFER" in turn.acts and not (chain and COUNT in turn.acts)
            asked = bool(chain) and turn.acts == {INFORM} and turn.record == chain[-1].record
            if offers or asked:
                chain.append(turn)
        if len(chain) > 1 and _have_one_log(chain):
            last = chain[-1].calls
            yield tuple(replace(turn, calls=last, history=()) for turn in chain[:6])


def _have_one_log(turns: Sequence[ToolTurn]) -> bool:
    """Whether the newest log has the record of every turn where the turn's own log has it."""
    last = turns[-1].calls
    for turn in turns:
        i, j = turn.record or (0, 0)
        if i >= len(last) or j >= len(last[i].records) or last[i].records[j] != turn.calls[i].records[j]:
            return False
    return True


def _count_turns(turns: Sequence[str]) -> int:
    return sum(len(turn) + 2 for turn in turns)


def _count_characters(row: WorldRow) -> int:
    return sum(map(len, row.knowledge)) + sum(len(turn) + 3 for turn in row.history) + len(row.response)
