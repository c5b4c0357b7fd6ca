"""A turn beside its dialogue and its log: who mentioned what, and which records the results have."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property
from typing import Any, NamedTuple

from msgspec.structs import replace

from groundwire.engine import InvalidRequest, ToolCall
from groundwire.engine.schema.knowledge import find_status, read_result

from .mentions import Mentions, list_leaves
from .moments import NO_YEAR, read_clock, read_date
from .rows import RecordGroup, flatten, list_mentions


class Tools(NamedTuple):
    """What is known about the tools of an assistant."""

    actions: frozenset[str]
    """Names of tools that change something, beside those whose names say so."""
    reads: frozenset[str]
    """Names of tools that change nothing."""
    choices: Mapping[tuple[str, str], tuple[str, ...]]
    """The values that a parameter may have, by tool and parameter."""


class DeadlinePassed(Exception):
    """The time for the rules is over."""


LONG_LIST = 20
"""Records of a list that models do not read whole: about 2,000 characters."""
NO_TOOLS = Tools(frozenset(), frozenset(), {})


def read_tools(definitions: Iterable[Any], actions: Collection[str] = ()) -> Tools:
    """Return what the definitions of tools say.

    Args:
        definitions: Definitions in the form of OpenAI, Anthropic or the Model Context Protocol, with JSON schemas.
        actions: Names of tools that change something, beside those whose names say so.

    Raises:
        InvalidRequest: A definition has no name.
    """
    changing, reads = set(actions), set[str]()
    choices: dict[tuple[str, str], tuple[str, ...]] = {}
    for index, definition in enumerate(definitions):
        tool = definition.get("function", definition) if isinstance(definition, Mapping) else {}
        name = tool.get("name") if isinstance(tool, Mapping) else None
        if not isinstance(name, str):
            raise InvalidRequest(f"tools[{index}] has no name; pass the definition of a tool, with its JSON schema.")
        annotations = definition.get("annotations")
        is_read = annotations.get("readOnlyHint") if isinstance(annotations, Mapping) else None
        if is_read is not None:
            (reads if is_read else changing).add(name)
        schema: Any = next((tool[key] for key in ("parameters", "input_schema", "inputSchema") if key in tool), {})
        for key, values in _list_choices(schema):
            choices[name, key] = values
    return Tools(frozenset(changing), frozenset(reads), choices)


def _list_choices(schema: Any) -> Iterator[tuple[str, tuple[str, ...]]]:
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    for key, part in properties.items() if isinstance(properties, Mapping) else ():
        listed = part.get("items", part) if isinstance(part, Mapping) else None  # true and false are schemas too
        if isinstance(listed, Mapping) and isinstance(listed.get("enum"), list | tuple):
            yield str(key), tuple(map(str, listed["enum"]))
        yield from _list_choices(listed)


class Sibling(NamedTuple):
    """A record of a result, and the records of its list."""

    record: Mapping[str, Any]
    records: tuple[Mapping[str, Any], ...]
    """All records of the list, which the siblings share."""

    @property
    def others(self) -> Iterator[Mapping[str, Any]]:
        """The other records of the list."""
        return (record for record in self.records if record is not self.record)


class TurnContext:
    """What a turn is checked against."""

    def __init__(
        self,
        text: str,
        calls: Sequence[ToolCall],
        log: Sequence[ToolCall],
        history: Sequence[tuple[str, str]],
        tools: Tools = NO_TOOLS,
        end: float | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            text: What the assistant says.
            calls: The calls that it is about to make.
            log: The calls that were made, oldest first.
            history: Role and text of each utterance, oldest first.
            tools: What is known about the tools.
            end: Of the time for the rules, as ``time.monotonic`` counts; None for no end.
        """
        self._end = end
        self.tools = tools
        self.text, self.calls, self.log, self.history = text, tuple(calls), tuple(log), tuple(history)

    def check_time(self) -> None:
        """Raise DeadlinePassed if the time for the rules is over."""
        if self._is_late():
            raise DeadlinePassed("The deadline passed before all of the turn was checked.")

    def _is_late(self) -> bool:
        return self._end is not None and time.monotonic() > self._end

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
        return tuple(
            result for call, result in zip(self.log, self.all_results, strict=True) if find_status(call) != "failed"
        )

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
    def log_dates(self) -> frozenset[date]:
        """The dates in ``log_values``."""
        dates = (read_date(value) for value in self.log_values if isinstance(value, str))
        return frozenset(day for day in dates if day is not None)

    @cached_property
    def log_clocks(self) -> frozenset[int]:
        """The times of day in ``log_values``, in minutes."""
        clocks = (read_clock(value) for value in self.log_values if isinstance(value, str))
        return frozenset(clock for clock in clocks if clock is not None)

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
        return Mentions(map(str, self.log_values), has_hours=False)

    @cached_property
    def everything(self) -> Mentions:
        """What dialogue and log mention."""
        return Mentions((self.dialogue.text, self.logged.text))

    @cached_property
    def year(self) -> int:
        """The year of dates that name none: the first that dialogue or log name."""
        dates = (of_date for mentions in (self.dialogue, self.logged) for of_date in mentions.years.values())
        return next((year for of_date in dates for year in sorted(of_date)), NO_YEAR)

    @cached_property
    def siblings(self) -> tuple[Sibling, ...]:
        """The records of lists of two or more records, and the results of a tool that was called for several."""
        listed = (sibling for result in self.results for sibling in _list_siblings(result))
        return (*listed, *self._list_repeated())

    def _list_repeated(self) -> Iterator[Sibling]:
        """The last result of each of a tool's calls with other arguments, where it is an object."""
        results: defaultdict[str, dict[str, Mapping[str, Any]]] = defaultdict(dict)
        for call, result in zip(self.log, self.all_results, strict=True):
            if isinstance(result, Mapping) and find_status(call) != "failed":
                results[call.name][str(sorted(call.arguments.items()))] = result
        for of_tool in results.values():
            if len(of_tool) > 1:
                records = tuple(of_tool.values())
                yield from (Sibling(record, records) for record in records)

    @cached_property
    def groups(self) -> tuple[RecordGroup, ...]:
        """The lists of two or more records."""
        records = {id(sibling.records): sibling.records for sibling in self.siblings}
        return tuple(map(RecordGroup, records.values()))

    def select_log(self, text: str) -> tuple[ToolCall, ...]:
        """Return the log with the records that a text names alone, in place of long lists with any of them.

        Models read excerpts of long knowledge, which may have a value of the text in another record. After the deadline
        the log is returned as it is.
        """
        cut: dict[int, frozenset[int]] = {}
        for group in self.groups:
            if len(group.records) >= LONG_LIST and not self._is_late():
                named = frozenset(id(mention.record) for mention in list_mentions(text, group))
                cut |= dict.fromkeys(group.ids, named) if named else {}
        if not cut:
            return self.log
        return tuple(
            replace(call, result=_cut(result, cut)) for call, result in zip(self.log, self.all_results, strict=True)
        )

    @cached_property
    def owners(self) -> Mapping[str, Sequence[Sibling]]:
        """The records that have a value, by the value as a text in lower case."""
        owners: defaultdict[str, list[Sibling]] = defaultdict(list)
        for sibling in self.siblings:
            for value in {str(leaf).lower() for leaf in flatten(sibling.record).values()}:
                owners[value].append(sibling)
        return owners


def _cut(value: Any, cut: Mapping[int, Collection[int]]) -> Any:
    """A result without the records that are to be cut, by their ids, each with those of its list that stay."""
    if isinstance(value, Mapping):
        return {key: _cut(inner, cut) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(item, cut) for item in value if id(item) in cut.get(id(item), (id(item),))]
    return value


def _list_siblings(value: Any) -> Iterator[Sibling]:
    if isinstance(value, Mapping):
        for inner in value.values():
            yield from _list_siblings(inner)
    elif isinstance(value, list | tuple):
        records = tuple(item for item in value if isinstance(item, Mapping))
        if len(records) > 1:
            yield from (Sibling(record, records) for record in records)
        for inner in value:
            yield from _list_siblings(inner)
