"""Values: the numbers, dates, times and names that a text states, and how two of them compare.

The door for corrections, twins and turns; an import contract names its users.
"""

from __future__ import annotations

from .comparing import compare
from .dates import MONTHS, NAMED_DAYS
from .knowledge import read_values
from .numbers import ONES, TENS, stem
from .support import ComputedValue, check_values, find_computed
from .tokens import NEGATIONS, Clock, Content, Date, Days, ExactCode, Measure, Name, Value
from .units import UNITS

__all__ = [
    "MONTHS",
    "NAMED_DAYS",
    "NEGATIONS",
    "ONES",
    "TENS",
    "UNITS",
    "Clock",
    "ComputedValue",
    "Content",
    "Date",
    "Days",
    "ExactCode",
    "Measure",
    "Name",
    "Value",
    "check_values",
    "compare",
    "find_computed",
    "read_values",
    "stem",
]
