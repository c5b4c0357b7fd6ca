"""What follows from fields: thresholds, sums, products, differences, discounts, opening hours and dates.

Each function returns what is true and what could be said instead, or None where it does not apply.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, TypeAlias

from .kinds import ClockKind, Count, FeatureKind, FieldKind, Money, Percent, Quantity, State, write_date
from .numerals import write_number
from .scene import Scene
from .schema import Relation
from .wording import Filled


@dataclass(frozen=True, slots=True)
class Falsehood:
    """A filling that the scene does not support."""

    change: str
    reason: str
    filling: Filled
    wrong: Mapping[str, str]
    """The slots that are wrong, with the reason."""


Facts: TypeAlias = "tuple[Filled, list[Falsehood]]"
Derivation: TypeAlias = Callable[[Scene, Relation, random.Random], "Facts | None"]
_MONEY = Money(1, 50)
_MINUTES = Quantity([(30, "minutes")])
_CLOCK = ClockKind(range(0, 1440, 15))


def derive(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    """Derive what a relation's fields imply."""
    return DERIVATIONS[relation.kind](scene, relation, rng)


def _write(kind: FieldKind, value: Any, scene: Scene, form: int) -> str:
    return kind.write(value, scene.record.style, random.Random(form), answer=True)


def _values(scene: Scene, relation: Relation) -> list[Any]:
    return [scene.record.values[key] for key in relation.of]


def _unwrap(scene: Scene, key: str) -> tuple[FieldKind, Any, bool]:
    """Return kind and value of a field, or of the condition of a feature, and whether the condition holds."""
    kind, value = scene.domain.fields[key].kind, scene.record.values[key]
    if isinstance(kind, FeatureKind) and isinstance(value, State) and kind.inner is not None:
        return kind.inner, value.value, value.state == 0
    return kind, value, True


def _near(kind: FieldKind, value: Any, above: bool, rng: random.Random) -> Any | None:
    """Draw a value on one side of another, never equal to it."""
    direction = 1 if above else -1
    if isinstance(kind, Money):
        step = rng.choice((100, 200, 500, 500, 1000, 1500, 50, 1)) if value >= 2000 else rng.choice((50, 100, 200))
        moved = value + direction * step
        return moved if moved > 0 else None
    if isinstance(kind, ClockKind):
        moved = value + direction * rng.choice((15, 30, 30, 45, 60, 60, 90, 120))
        return moved if 0 <= moved < 1440 else None
    if isinstance(kind, Quantity):
        number, unit = value
        step = number * rng.choice((0.1, 0.25, 0.5, 0.5, 1)) if number >= 8 else rng.choice((1, 1, 2))
        moved = round(number + direction * step)
        return (moved, unit) if moved > 0 and moved != number else None
    if isinstance(kind, Count):
        moved = value + direction * rng.choice((1, 1, 2, 3, 5))
        return moved if moved > 0 else None
    if isinstance(kind, Percent):
        moved = value + direction * rng.choice((1, 2, 5))
        return moved if 0 < moved < 100 else None
    return None


def _derive_threshold(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    kind, value, active = _unwrap(scene, relation.of[0])
    if not active:
        return None
    operator = relation.options["op"]
    above = rng.random() < 0.5
    if rng.random() < 0.12:
        drawn, state = value, 0 if operator in ("ge", "le") else 1
    else:
        drawn, state = _near(kind, value, above, rng), int(above != (operator in ("ge", "gt")))
    other = _near(kind, value, bool(state) == (operator in ("ge", "gt")), rng)
    if drawn is None:
        return None
    form = rng.getrandbits(30)
    # A condition of the knowledge is applied to an example: words for it may be rounder than the value.
    slots = {"x": _write(kind, drawn, scene, form), "v": _write(kind, value, scene, form)}
    falsehoods = [Falsehood("threshold", "negation", Filled(slots, 1 - state), {})]
    if other is not None:
        text = _write(kind, other, scene, form)
        falsehoods.append(Falsehood("threshold", kind.reason, Filled({**slots, "x": text}, state), {"x": kind.reason}))
    return Filled(slots, state), falsehoods


def _derive_open_at(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    opening, closing = _values(scene, relation)
    if closing - opening < 120:
        return None
    inside, outside = [], []
    for minutes in range(opening - 120, closing + 151, 30):
        if opening < minutes < closing - 15:
            inside.append(minutes)
        elif minutes < opening or minutes > closing:
            outside.append(minutes)
    pools = (inside, [minutes for minutes in outside if 0 <= minutes < 1440])
    state = int(rng.random() < 0.5)
    if not pools[0] or not pools[1]:
        return None
    # Half of the times are close to a limit, where reading matters.
    form = rng.getrandbits(30)
    text, other = (_write(_CLOCK, rng.choice(pools[index]), scene, form) for index in (state, 1 - state))
    slots = {"x": text}
    return Filled(slots, state), [
        Falsehood("threshold", "negation", Filled(slots, 1 - state), {}),
        Falsehood("threshold", "date", Filled({"x": other}, state), {"x": "date"}),
    ]


def _derive_on_day(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    kind, value, active = _unwrap(scene, relation.of[0])
    closed = value if active else None
    state = int(closed is not None and rng.random() < 0.5)
    others = [day for day in range(7) if day != closed]
    day = closed if state and closed is not None else rng.choice(others)
    slots = {"x": kind.write(day, scene.record.style, rng, answer=True)}
    falsehoods = [Falsehood("exception", "negation", Filled(slots, 1 - state), {})]
    if closed is not None:
        other = rng.choice(others) if state else closed
        text = kind.write(other, scene.record.style, rng, answer=True)
        falsehoods.append(Falsehood("day", "date", Filled({"x": text}, state), {"x": "date"}))
    return Filled(slots, state), falsehoods


def _list_results(
    kind: FieldKind, slots: Mapping[str, str], result: Any, others: list[Any], scene: Scene, form: int, reason: str
) -> Facts:
    """Return the result as ``r``, and as derived falsehoods the others that differ from it."""
    true = Filled({**slots, "r": _write(kind, result, scene, form)})
    identity = kind.identify(result)
    falsehoods = [
        Falsehood("derived", reason, Filled({**slots, "r": _write(kind, other, scene, form)}), {"r": reason})
        for other in others
        if kind.identify(other) != identity
    ]
    return true, falsehoods


def _derive_product(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    kind, value, active = _unwrap(scene, relation.of[0])
    if not active:
        return None
    factor = relation.options.get("n") or rng.randint(2, 6)
    form = rng.getrandbits(30)
    slots = {"n": write_number(factor, random.Random(form))}
    wrong_factor = rng.choice((factor - 1, factor + 1)) if factor > 2 else factor + 1
    if isinstance(kind, Quantity):
        number, unit = value
        others: list[Any] = [(number * wrong_factor, unit), (number, unit), (number * factor + 1, unit)]
        return _list_results(kind, slots, (number * factor, unit), others, scene, form, "number")
    others = [value * wrong_factor, value, value * factor + rng.choice((-200, -100, 100, 50, 200, 1000))]
    others = [other for other in others if other > 0]
    return _list_results(kind, slots, value * factor, others, scene, form, "number")


def _derive_sum(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    kinds = [_unwrap(scene, key) for key in relation.of]
    if not all(active for _, _, active in kinds):
        return None
    first, second = kinds[0][1], kinds[1][1]
    form = rng.getrandbits(30)
    if isinstance(kinds[0][0], Quantity):
        if first[1] != second[1]:
            return None
        total, unit = first[0] + second[0], first[1]
        others: list[Any] = [(max(first[0], second[0]), unit), (total + rng.choice((5, 10, 1)), unit)]
        return _list_results(kinds[0][0], {}, (total, unit), others, scene, form, "number")
    step = 100 if isinstance(kinds[0][0], Money) else rng.choice((1, 2, 10))
    others = [max(first, second), first + 2 * second, abs(first - second) or first, first + second + step]
    return _list_results(kinds[0][0], {}, first + second, others, scene, form, "number")


def _derive_difference(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    """Say by how much the first field is less (state 0) or more (state 1) than the second."""
    first, second = (_unwrap(scene, key)[1] for key in relation.of)
    kind = scene.domain.fields[relation.of[0]].kind
    form = rng.getrandbits(30)
    if isinstance(kind, Quantity):
        if first[1] != second[1]:
            return None
        unit = first[1]
        gap, result = first[0] - second[0], (abs(first[0] - second[0]), unit)
        others: list[Any] = [first, second, (abs(gap) + rng.choice((1, 2)), unit)]
    else:
        gap, result = first - second, abs(first - second)
        step = rng.choice((100, 200, 50)) if isinstance(kind, Money) else rng.choice((1, 2, 5, 10))
        others = [first, second, abs(gap) + step] if kind.group != "year" else [abs(gap) + step, abs(gap) + 1]
    if not gap or (kind.group == "year" and abs(gap) == 1):
        return None
    kind = Count((1,)) if kind.group == "year" else kind
    true, falsehoods = _list_results(kind, {}, result, others, scene, form, "number")
    state = int(gap > 0)
    falsehoods = [
        Falsehood(false.change, false.reason, Filled(false.filling.slots, state), false.wrong) for false in falsehoods
    ]
    falsehoods.append(Falsehood("comparison", "relation", Filled(true.slots, 1 - state), {}))
    return Filled(true.slots, state), falsehoods


def _derive_comparison(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    """Say whether the first field is less (state 0) or more (state 1) than the second."""
    kind = scene.domain.fields[relation.of[0]].kind
    first, second = (kind.identify(value) for value in _values(scene, relation))
    if first == second:
        return None
    state = int(first > second)  # type: ignore[operator]
    return Filled({}, state), [Falsehood("comparison", "relation", Filled({}, 1 - state), {})]


def _derive_discount(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    price, percent = _unwrap(scene, relation.of[0])[1], _unwrap(scene, relation.of[1])[1]
    if price * percent % 100:
        return None
    saved = price * percent // 100
    form = rng.getrandbits(30)
    result = saved if relation.options.get("saved") else price - saved
    others = [saved if result != saved else price - saved, price, result + rng.choice((100, 200, 50)), price + saved]
    return _list_results(_MONEY, {}, result, others, scene, form, "number")


def _derive_offset(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    """Say the time that is an offset before or after another time."""
    (number, unit), anchor = (_unwrap(scene, key)[1] for key in relation.of)
    minutes = int(number * {"minutes": 1, "hours": 60}[unit])
    direction = 1 if relation.options.get("after") else -1
    others = [anchor - direction * minutes, anchor, anchor + direction * minutes + rng.choice((-15, 15, 30))]
    form = rng.getrandbits(30)
    return _list_results(_CLOCK, {}, anchor + direction * minutes, others, scene, form, "date")


def _derive_duration(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    """Say how long it is from one time to another."""
    first, second = _values(scene, relation)
    minutes = second - first
    if minutes <= 0:
        return None
    form = rng.getrandbits(30)
    others = [(minutes + step, "minutes") for step in (rng.choice((-60, 60)), rng.choice((-30, 30, 120)))]
    return _list_results(_MINUTES, {}, (minutes, "minutes"), others, scene, form, "number")


def _derive_until(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    """Say on which date a number of days or weeks after a given date ends."""
    _, value, active = _unwrap(scene, relation.of[0])
    number, unit = value
    if not active or unit not in ("days", "weeks"):
        return None
    days = int(number * (7 if unit == "weeks" else 1))
    start = date(rng.randint(2023, 2026), rng.randint(1, 12), rng.randint(1, 28))
    form = rng.choice((0, 1, 5, 7, 8))
    end = start + timedelta(days)
    before = relation.options.get("before")
    end = start - timedelta(days) if before else end
    slots = {"x": write_date(start, form), "r": write_date(end, form)}
    falsehoods = []
    for shift in (rng.choice((-7, 7, 10)), rng.choice((-3, -2, 2, 3)), -days if not before else days):
        other = write_date(end + timedelta(shift), form)
        falsehoods.append(Falsehood("derived", "date", Filled({**slots, "r": other}), {"r": "date"}))
    return Filled(slots), falsehoods


def _derive_share(scene: Scene, relation: Relation, rng: random.Random) -> Facts | None:
    """Say how many a percentage of a count are."""
    count, percent = _values(scene, relation)
    if count * percent % 100:
        return None
    result = count * percent // 100
    form = rng.getrandbits(30)
    return _list_results(Count((1,)), {}, result, [count - result, percent, result + 1], scene, form, "number")


DERIVATIONS: Mapping[str, Derivation] = {
    "threshold": _derive_threshold,
    "open_at": _derive_open_at,
    "on_day": _derive_on_day,
    "product": _derive_product,
    "sum": _derive_sum,
    "difference": _derive_difference,
    "comparison": _derive_comparison,
    "discount": _derive_discount,
    "offset": _derive_offset,
    "duration": _derive_duration,
    "until": _derive_until,
    "share": _derive_share,
}
"""By the kind that a schema names."""
