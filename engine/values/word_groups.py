"""Groups of words that stand for each other when clauses are compared: starting, leaving, writing, units of time."""

from __future__ import annotations

from .units import UNITS

_GROUPS = (
    "start starts started begin begins began beginning open opens opened opening commence commences kick kicks "
    "from starting",
    "end ends ended close closes closed closing finish finishes finished shut shuts until till ending stop stops last "
    "final",
    "depart departs departed departure leave leaves left take-off sets off departing",
    "arrive arrives arrived arrival land lands landed reach reaches arriving pulls gets terminates",
    "check-in checkin move moving",
    "check-out checkout",
    "born birth birthplace birthday",
    "die dies died death dead passed",
    "found founds founded founder founders founding",
    "manage manages managed manager managing run runs running head heads headed leads led charge",
    "write writes wrote written writer author authored",
    "translate translates translated translator translation english",
    "compose composes composed composer composition music",
    "design designs designed designer plans drawn architect",
    "direct directs directed director",
    "produce produces produced producer producing production",
    "sign signs signed signing",
    "effect force effective",
    "adult adults grown-up grown-ups",
    "child children kid kids",
    "single alone yourself",
    "member members",
    "non-member non-members",
    "deposit security refunded refund refunds",
    "month monthly",
    "year annual yearly annually",
    "day daily",
    "hour hourly",
    "week weekly",
    "tenant tenants",
    "landlord landlords landlady",
    "return returns returned returning back",
    "order orders",
    "collect collects collection collections pick-up pickup pick picked",
    "drop-off dropoff",
    "winter", "summer", "old older used former formerly previous", "new newer current currently now today",
    "first", "second", "third", "ground", "basement",
    "weekend weekends saturday sunday", "weekday weekdays",
    "battery batteries", "screen display",
)  # fmt: skip
GROUP_OF = {word: f"={number}" for number, words in enumerate(_GROUPS) for word in words.split()}
"""The group of each word."""
_PHRASAL = {
    "off": {"take takes took taking set sets setting": "departure", "drop drops dropped dropping": "drop-off"},
    "out": {"set sets setting": "departure", "move moves moving": "check-out"},
    "in": {"move moves moving": "check-in"},
    "into": {"pull pulls pulled pulling": "arrival"},
    "down": {"touch touches touched touching": "arrival"},
    "back": {"hand hands handed bring brings brought give gives": "drop-off"},
}
"""Forms of verbs by the particle after them, and a word of the group that they belong to."""
GROUP_OF_VERB = {
    (verb, particle): GROUP_OF[word]
    for particle, groups in _PHRASAL.items()
    for verbs, word in groups.items()
    for verb in verbs.split()
}
GROUP_OF_UNIT = {UNITS[word].factor: GROUP_OF[word] for word in ("day", "week", "month", "year", "hour")}
"""The group of one unit of time: a pass for one month is the monthly pass."""
