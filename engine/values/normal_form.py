"""Values as text, in the form in which they are compared."""

from __future__ import annotations

from .records import Clock, Content, Date, Hedge, Measure, Statement

_SIGNS: dict[Hedge, str] = {
    "exact": "", "about": "≈ ", "almost": "⪅ ", "more": "> ", "at_least": "≥ ", "less": "< ", "at_most": "≤ ",
}  # fmt: skip
_BASE_UNITS = {
    "length": "m", "area": "m²", "volume": "l", "mass": "kg", "speed": "m/s", "duration": "days", "data": "bytes",
    "power": "W", "energy": "cal", "frequency": "Hz", "temperature": "°C", "share": "%", "count": "",
}  # fmt: skip


def normalize(content: Content) -> str:
    """A value as text: amounts in their base unit, dates and times as ISO 8601 has them, names without case.

    >>> from .records import Name
    >>> normalize(Measure("length", 5000.0, 1000.0, "about")), normalize(Clock(570, True))
    ('≈ 5000 m', '09:30')
    >>> [normalize(date) for date in (Date(1887, 1887, 5), Date(1880, 1889), Date(None, None, 7, 4))]
    ['1887-05', '1880/1889', '--07-04']
    >>> normalize(Name(("bob", "ross"), "name", ("", "")))
    'bob ross'
    """
    if isinstance(content, Measure):
        amount = content.amount * (100 if content.measure == "share" else 1)
        if content.measure == "rank":
            return f"rank {amount:g}"
        return f"{_SIGNS[content.hedge]}{amount:.10g} {_BASE_UNITS.get(content.measure, content.measure)}".rstrip()
    if isinstance(content, Date):
        parts = "".join(f"-{part:02}" for part in (content.month, content.day) if part is not None)
        if content.first is None:
            return f"-{parts}"
        years = f"{content.first}" if content.first == content.last else f"{content.first}/{content.last}"
        return years + parts
    if isinstance(content, Clock):
        return f"{content.minutes // 60:02}:{content.minutes % 60:02}"
    if isinstance(content, Statement):
        return " ".join([*content.left, content.verb, *content.right])
    return " ".join(content.words)
