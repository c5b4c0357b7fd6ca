"""Tables of words: countries and nationalities, units and currencies, and words that say that a number is computed.

Units have the factor to the unit in which amounts of a measure are compared, from the SI brochure and NIST Handbook 44
(US customary units; months and years of mean length). Own tables and no library: pint's registry
takes seconds to build and knows no currencies; docs/adr, nr 21.
"""

from __future__ import annotations

from typing import NamedTuple

from .tokens import load_names, load_table

COUNTRY_OF = {name: country for country, names in load_names("countries").items() for name in (country, *names.split())}
"""The country of a nationality, and of itself, in lower case."""
SAFE_IN_LOWER_CASE = frozenset(
    name
    for name, country in COUNTRY_OF.items()
    if name != country and name not in ("us", "polish", "uk", "dane", "roman")
)
"""Nationalities that are not also another word, so that they count without a capital."""
REGIONS = frozenset({"africa", "asia", "europe", "britain", "england", "scotland", "wales", "rome"})
"""Those that another of them, or a country, may be a part of, so that two of them do not contradict each other."""


class Unit(NamedTuple):
    """What a unit measures. An amount in it is ``amount * factor + offset`` in the measure's base unit."""

    measure: str
    factor: float = 1.0
    offset: float = 0.0


_DAY = 1.0
_YEAR = 365.2425 * _DAY
_TABLE: dict[str, dict[str, float]] = {
    "length": {
        "mm millimetre millimetres millimeter millimeters": 0.001,
        "cm centimetre centimetres centimeter centimeters": 0.01,
        "m metre metres meter meters": 1,
        "km kms kilometre kilometres kilometer kilometers": 1000,
        "inch inches": 0.0254,
        "ft foot feet": 0.3048,
        "yd yard yards": 0.9144,
        "mi mile miles": 1609.344,
        "light-year light-years lightyear lightyears": 9.4607e15,
    },
    "area": {
        "km² km2": 1e6,
        "m² m2": 1,
        "acre acres": 4046.856,
        "ha hectare hectares": 10_000,
    },
    "volume": {
        "cl centilitre centilitres": 0.01,
        "ml millilitre millilitres milliliter milliliters": 0.001,
        "l litre litres liter liters": 1,
        "gallon gallons": 3.785,
        "pint pints": 0.473,
        "cup cups": 0.2366,
        "tablespoon tablespoons tbsp": 0.0148,
        "teaspoon teaspoons tsp": 0.0049,
        "m³ m3": 1000,
    },
    "mass": {
        "mg milligram milligrams": 1e-6,
        "g gram grams gramme grammes": 0.001,
        "kg kgs kilo kilos kilogram kilograms kilogramme kilogrammes": 1,
        "tonne tonnes": 1000,
        "ton tons": 1000,
        "lb lbs": 0.45359,
        "oz ounce ounces": 0.02835,
        "stone": 6.35,
    },
    "speed": {"mph": 0.44704, "kmh kph": 1 / 3.6, "knot knots": 0.51444},
    "duration": {
        "sec secs second seconds": _DAY / 86_400,
        "min mins minute minutes": _DAY / 1440,
        "h hr hrs hour hours": _DAY / 24,
        "day days": _DAY,
        "week weeks": 7 * _DAY,
        "fortnight fortnights": 14 * _DAY,
        "month months": _YEAR / 12,
        "yr yrs year years": _YEAR,
        "decade decades": 10 * _YEAR,
        "century centuries": 100 * _YEAR,
        "millennium millennia": 1000 * _YEAR,
    },
    "data": {"kb kilobyte kilobytes": 1e3, "mb megabyte megabytes": 1e6, "gb gigabyte gigabytes": 1e9, "tb": 1e12},
    "power": {"watt watts": 1, "kw kilowatt kilowatts": 1e3, "mw megawatt megawatts": 1e6, "gw gigawatts": 1e9},
    "energy": {"calorie calories": 1, "kcal": 1000, "joule joules": 0.239, "kwh": 860_421},
    "frequency": {"hz hertz": 1, "khz kilohertz": 1e3, "mhz megahertz": 1e6, "ghz gigahertz": 1e9},
    "pound": {"pound pounds": 1},
    "degree": {"degree degrees °": 1},
    "share": {"% percent pct percentage": 0.01},
    "dollar": {"$ dollar dollars buck bucks usd aud cad nzd sgd hkd": 1},
    "cent": {"cent cents": 1},
    "euro": {"€ euro euros eur": 1},
    "sterling": {"£ gbp quid": 1, "pence": 0.01},
    "yen": {"¥ yen jpy": 1},
    "rupee": {"₹ rupee rupees inr": 1},
    "franc": {"franc francs chf": 1},
    "krone": {"kr krona kronor krone kroner crown crowns sek nok dkk isk": 1},
    "koruna": {"kč koruna czk": 1},
    "zloty": {"zł zl złoty zloty zlotys pln": 1},
    "forint": {"forint forints huf": 1},
    "yuan": {"yuan renminbi cny rmb": 1},
    "peso": {"peso pesos mxn": 1},
    "rand": {"zar": 1},
    "dirham": {"dirham dirhams aed": 1},
    "shekel": {"shekel shekels ils": 1},
    "leu": {"lei ron": 1},
    "real": {"reais brl": 1},
}
UNITS = {
    name: Unit(measure, factor) for measure, rows in _TABLE.items() for names, factor in rows.items()
    for name in names.split()
}  # fmt: skip
"""Units by their name or sign, in lower case."""
UNITS |= {"celsius": Unit("temperature"), "fahrenheit": Unit("temperature", 5 / 9, -160 / 9)}
AREAS, VOLUMES = ("square", "sq"), ("cubic",)
CURRENCY_SIGNS = frozenset("$€£¥₹")
CURRENCY_CODES = frozenset(load_table("currency_codes"))
"""Names of currencies that are written before an amount, too: "EUR 1,000", "kr 50"."""
MONEY = frozenset(load_table("money"))
"""The measures that are money."""
AMBIGUOUS = {
    "pound": (UNITS["lb"], UNITS["£"]),
    "degree": (UNITS["celsius"], UNITS["fahrenheit"]),
    "cent": (Unit("dollar", 0.01), Unit("euro", 0.01)),
}
"""What a unit of several meanings may be."""
PER_HOUR = dict.fromkeys(("mile", "miles"), UNITS["mph"])
PER_HOUR |= dict.fromkeys(("km", "kilometre", "kilometres", "kilometer", "kilometers"), UNITS["kmh"])
"""Units of speed, by their first word."""
ONE_LETTER = frozenset("mglh")
"""Units of one letter, which only count after digits and in lower case."""


def square(unit: Unit) -> Unit | None:
    """The area whose side is a unit of length; None for other units."""
    return Unit("area", unit.factor**2) if unit.measure == "length" else None


def cube(unit: Unit) -> Unit | None:
    """The volume, in litres, whose side is a unit of length; None for other units."""
    return Unit("volume", unit.factor**3 * 1000) if unit.measure == "length" else None


TOTALS = frozenset(load_table("totals"))
DIFFERENCES = frozenset(load_table("differences"))
SHARE_DIFFERENCES = frozenset(load_table("share_differences"))
"""Words that speak of the difference between two percentages. "20% off" does not."""
BOUNDS = frozenset({"more", "less", "fewer", "up"})
"""Differences that are words of limits too: "orders of more than £50"."""
SHARES = frozenset(load_table("shares"))
AVERAGES = frozenset(load_table("averages"))
FACTORS = {"twice": 2.0, "double": 2.0, "doubles": 2.0, "triple": 3.0, "half": 0.5, "quarter": 0.25, "both": 2.0}
"""Words that multiply."""
CHANGES = {"doubled": 2.0, "doubling": 2.0, "tripled": 3.0, "halved": 0.5}
"""Words that say how an amount has changed, so that it may be the amount before or after."""
RESTS = frozenset({"rest", "remaining", "remainder", "others"})
"""Words of the knowledge that leave an amount to be computed: "95 on the balcony, the rest in the stalls"."""
SERVINGS = frozenset(load_table("servings"))
"""Words of the knowledge with which its amounts are for a number of people or portions."""
COMPUTING = (TOTALS | DIFFERENCES | SHARES | AVERAGES | FACTORS.keys()) - {"every", "per", "each", "all"}
"""Words that name a computation; not "every" and "each", which name rates: "every 20 minutes"."""
OF_MONEY = frozenset({"pay", "pays", "paid", "spend", "spends", "cheaper", "dearer", "discount", "refund"})
"""Words that name computations of amounts of money alone."""
OF_REDUCTIONS = frozenset({"off", "discount", "refund", "save", "saves", "saving", "saved"})
"""Words that say what a percentage is of, and of an amount how it is computed: "20% off" and "£20 off"."""
NAMED_FACTORS = {**FACTORS, **CHANGES, "quarters": 0.75, "thirds": 2 / 3, "year": 12.0, "yearly": 12.0, "annual": 12.0}
"""Words that may multiply a number where nothing more is said."""
PASSING = frozenset(load_table("passing"))
"""Words with which a time follows from another and a duration."""
AGAIN = frozenset({"again", "open", "opens", "reopen", "reopens", "after", "next", "starts", "resumes"})
"""Words with which a date follows the last day of a period."""
