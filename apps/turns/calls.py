"""The arguments of the calls of a turn, one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple

from .context import TurnContext
from .mentions import MAX_ADDENDS, Mentions, list_leaves, stem_words
from .moments import Moment, move, read_moment
from .records import FindingStatus


class CallValues:
    """The arguments of a call, and the times, dates and lists among them."""

    def __init__(self, arguments: Mapping[str, Any], year: int) -> None:
        """Read nothing yet; ``year`` is of dates that name none."""
        self.arguments = arguments
        self._year = year

    @cached_property
    def _moments(self) -> list[Moment]:
        texts = (value for value in self.arguments.values() if isinstance(value, str))
        return [moment for text in texts if (moment := read_moment(text)) is not None]

    @cached_property
    def clocks(self) -> frozenset[int]:
        """Times of day, in minutes."""
        return frozenset(moment.clock.minutes for moment in self._moments if moment.clock is not None)

    @cached_property
    def dates(self) -> frozenset[date]:
        """Dates."""
        return frozenset(day for moment in self._moments for day in moment.list_days(self._year))

    @cached_property
    def lengths(self) -> frozenset[int]:
        """Lengths of lists."""
        return frozenset(len(value) for value in self.arguments.values() if isinstance(value, list))

    def has_gap(self, number: float) -> bool:
        """Whether two times are so many minutes apart, or two dates so many days; of too many, none."""
        if len(self.clocks) <= MAX_ADDENDS and any(clock + number in self.clocks for clock in self.clocks):
            return True
        are_days = number == int(number) and len(self.dates) <= MAX_ADDENDS
        return are_days and any(move(day, int(number)) in self.dates for day in self.dates)


class Argument(NamedTuple):
    """A value of an argument."""

    path: str
    key: str
    value: Any
    is_beside_named: bool
    """Whether the user named a member of its list."""
    call: CallValues
    """All arguments of its call."""
    tool: str = ""
    """The name of the tool that is called."""


def list_arguments(context: TurnContext) -> Iterator[Argument]:
    """Yield the values of the arguments of a turn's calls, in order."""
    for index, call in enumerate(context.calls):
        leaves = list(list_leaves(call.arguments, f"calls[{index}].arguments"))
        values = CallValues(call.arguments, context.year)
        named = {
            path.rpartition("[")[0]
            for path, _, value in leaves
            if path[-1] == "]" and isinstance(value, str) and has_words(context.user, value)
        }
        for path, key, value in leaves:
            is_beside_named = path[-1] == "]" and path.rpartition("[")[0] in named
            yield Argument(path, key, value, is_beside_named, values, call.name)


def has_words(mentions: Mentions, text: str) -> bool:
    """Return whether all content words of a text are mentioned."""
    stems = stem_words(text)
    return bool(stems) and stems <= mentions.stems


def trace(context: TurnContext, has: Callable[[Mentions], bool]) -> FindingStatus | None:
    """Return who mentions something: the user, else the assistant or the log; None if none does.

    Args:
        context: The turn.
        has: Whether it is among what some texts mention.
    """
    if has(context.user):
        return "user"
    return "result" if has(context.assistant) or has(context.logged) else None
