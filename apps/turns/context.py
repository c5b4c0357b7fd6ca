"""A turn beside its dialogue and its log: who mentioned what, and which records the results have."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from groundwire.engine import ToolCall
from groundwire.engine.schema.knowledge import find_status, read_result

from .mentions import Mentions, list_leaves


class Sibling(NamedTuple):
    """A record of a result beside the other records of its list."""

    record: Mapping[str, Any]
    others: tuple[Mapping[str, Any], ...]


class TurnContext:
    """What a turn is checked against."""

    def __init__(
        self,
        text: str,
        calls: Sequence[ToolCall],
        log: Sequence[ToolCall],
        history: Sequence[tuple[str, str]],
        actions: Collection[str] = (),
    ) -> None:
        """Read nothing yet.

        Args:
            text: What the assistant says.
            calls: The calls that it is about to make.
            log: The calls that were made, oldest first.
            history: Role and text of each utterance, oldest first.
            actions: Names of tools that change something, beside those whose names say so.
        """
        self.actions = frozenset(actions)
        self.text, self.calls, self.log, self.history = text, tuple(calls), tuple(log), tuple(history)

    @cached_property
    def user(self) -> Mentions:
        """What the user mentioned."""
        return Mentions(text for role, text in self.history if role == "user")

    @cached_property
    def assistant(self) -> Mentions:
        """What the assistant mentioned before this turn."""
        return Mentions(text for role, text in self.history if role != "user")

    @cached_property
    def dialogue(self) -> Mentions:
        """What both mentioned."""
        return Mentions(text for _, text in self.history)

    @cached_property
    def results(self) -> tuple[Any, ...]:
        """The results of the log as JSON, without those of failed calls."""
        return tuple(read_result(call.result) for call in self.log if find_status(call) != "failed")

    @cached_property
    def all_results(self) -> tuple[Any, ...]:
        """The results of the log as JSON."""
        return tuple(read_result(call.result) for call in self.log)

    @cached_property
    def chosen(self) -> frozenset[str]:
        """The values of the arguments of the turn's calls, as texts in lower case."""
        return frozenset(str(value).lower() for call in self.calls for _, _, value in list_leaves(call.arguments, ""))

    @cached_property
    def log_values(self) -> tuple[Any, ...]:
        """The values in results and in arguments of earlier calls."""
        return tuple(
            value
            for call in self.log
            for part in (read_result(call.result), call.arguments)
            for _, _, value in list_leaves(part, "")
            if value is not None and not isinstance(value, bool)
        )

    @cached_property
    def result_values(self) -> frozenset[str]:
        """The values in results, as texts in lower case."""
        return frozenset(
            str(value).lower()
            for result in self.results
            for _, _, value in list_leaves(result, "")
            if value is not None
        )

    @cached_property
    def logged(self) -> Mentions:
        """What the log mentions."""
        return Mentions(map(str, self.log_values))

    @cached_property
    def everything(self) -> Mentions:
        """What dialogue and log mention."""
        return Mentions((self.dialogue.text, self.logged.text))

    @cached_property
    def siblings(self) -> tuple[Sibling, ...]:
        """The records of lists of two or more records."""
        return tuple(sibling for result in self.results for sibling in _list_siblings(result))


def _list_siblings(value: Any) -> Iterator[Sibling]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _list_siblings(inner)
    elif isinstance(value, list | tuple):
        records = [item for item in value if isinstance(item, Mapping)]
        for index, record in enumerate(records):
            if len(records) > 1:
                yield Sibling(record, (*records[:index], *records[index + 1 :]))
        for inner in value:
            yield from _list_siblings(inner)


def flatten(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a record and of the objects in it, by their paths."""
    return {path: value for path, _, value in list_leaves(record, "") if value is not None}
