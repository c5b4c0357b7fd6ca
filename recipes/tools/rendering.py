"""Renders a log of tool results in one of the shapes in which knowledge arrives: JSON, lines, a table or prose."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .turns import Record, ToolResult

Render = Callable[[ToolResult, Mapping[str, str]], str]


def render_json(call: ToolResult, arguments: Mapping[str, str]) -> str:
    """One line of JSON."""
    return json.dumps(_as_object(call, arguments), ensure_ascii=False)


def render_indented(call: ToolResult, arguments: Mapping[str, str]) -> str:
    """JSON with a line for each value."""
    return json.dumps(_as_object(call, arguments), ensure_ascii=False, indent=1)


def render_lines(call: ToolResult, arguments: Mapping[str, str]) -> str:
    """A heading, and a block of ``key: value`` lines for each record."""
    blocks = ["\n".join(f"{spell_slot(k)}: {spell_value(v)}" for k, v in record.items()) for record in call.records]
    return "\n\n".join([_write_heading(call, arguments), *blocks])


def render_bullets(call: ToolResult, arguments: Mapping[str, str]) -> str:
    """A heading, and a line for each record."""
    lines = ["- " + "; ".join(f"{spell_slot(k)} {spell_value(v)}" for k, v in r.items()) for r in call.records]
    return "\n".join([_write_heading(call, arguments), *lines])


def render_rows(call: ToolResult, arguments: Mapping[str, str]) -> str:
    """A heading and a table in Markdown."""
    slots = list(dict.fromkeys(slot for record in call.records for slot in record))
    heading = _write_heading(call, arguments)
    if not slots:
        return heading
    rows = [[spell_slot(slot) for slot in slots], ["---"] * len(slots)]
    rows += [[spell_value(record.get(slot, "")) for slot in slots] for record in call.records]
    return "\n".join([heading, *("| " + " | ".join(row) + " |" for row in rows)])


def render_prose(call: ToolResult, arguments: Mapping[str, str]) -> str:
    """Sentences."""
    return " ".join([_write_heading(call, arguments, "."), *(_write_sentence(record) for record in call.records)])


FORMS: Sequence[Render] = (render_json, render_indented, render_lines, render_bullets, render_rows, render_prose)
WEIGHTS = (0.3, 0.1, 0.2, 0.15, 0.13, 0.12)


def render_log(calls: Sequence[ToolResult], arguments: Mapping[str, str], rng: random.Random) -> str:
    """The log in a shape that is drawn; ``arguments`` are those of the newest call."""
    render = rng.choices(FORMS, WEIGHTS)[0]
    last = len(calls) - 1
    texts = [render(call, arguments if index == last else {}) for index, call in enumerate(calls)]
    if render is render_json and rng.random() < 0.5:
        return f"[{', '.join(texts)}]"
    return ("\n" if render in (render_json, render_bullets, render_prose) else "\n\n").join(texts)


def render_call(
    method: str, arguments: Mapping[str, str], rng: random.Random
) -> tuple[str, dict[str, tuple[int, int]]]:
    """A call as an agent writes it, and where the value of each argument is."""
    form = rng.randrange(4)
    if form == 0:
        text, before, between, after = f'{{"name": "{method}", "arguments": {{', '"{0}": "', '", ', '"}}'
    elif form == 1:
        text, before, between, after = f"{method}(", "{0}='", "', ", "')"
    elif form == 2:
        text, before, between, after = f"I am calling {spell_tool(method)} with ", "{1} ", ", ", "."
    else:
        text, before, between, after = f"{spell_tool(method).capitalize()}\n", "{1}: ", "\n", ""
    ranges = {}
    for number, (name, value) in enumerate(arguments.items()):
        text += (between if number else "") + before.format(name, spell_slot(name))
        ranges[name] = (len(text), len(text) + len(value))
        text += value
    return text + after, ranges


def spell_slot(slot: str) -> str:
    """A slot's name in words.

    >>> spell_slot("price_per_night"), spell_slot("TripLengthMinutes")
    ('price per night', 'trip length minutes')
    """
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", slot).replace("_", " ").lower()


def spell_tool(tool: str) -> str:
    """A tool's name in words."""
    return spell_slot(tool)


def spell_value(value: Any) -> str:
    """A value as text; yes and no for what is true and false."""
    text = str(value)
    return {"True": "yes", "False": "no"}.get(text, text)


def _as_object(call: ToolResult, arguments: Mapping[str, str]) -> dict[str, Any]:
    shown = {"arguments": dict(arguments)} if arguments else {}
    total = {"total": call.total} if call.total != len(call.records) else {}
    return {"tool": call.tool, **shown, **total, "result": list(call.records)}


def _write_heading(call: ToolResult, arguments: Mapping[str, str], stop: str = ":") -> str:
    asked = ", ".join(f"{spell_slot(name)} {spell_value(value)}" for name, value in arguments.items())
    count = f"{call.total} result{'' if call.total == 1 else 's'}" if call.total else "no results"
    shown = f", {len(call.records)} shown" if call.total != len(call.records) else ""
    return f"{spell_tool(call.tool).capitalize()}{f' ({asked})' if asked else ''}: {count}{shown}{stop}"


def _write_sentence(record: Record) -> str:
    parts = [f"{spell_slot(slot)} is {spell_value(value)}" for slot, value in record.items()]
    text = " and ".join([", ".join(parts[:-1]), parts[-1]]) if len(parts) > 1 else "".join(parts)
    return f"The {text}." if text else ""
