"""The names of days and months, and their abbreviations, in the order of ISO 8601."""

from __future__ import annotations

DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
SHORT_DAYS = {name[:3]: number for number, name in enumerate(DAYS)} | {"tues": 1, "weds": 2, "thur": 3, "thurs": 3}
"""The number of the day that an abbreviation names, 0 for Monday."""
MONTHS = (
    *("january", "february", "march", "april", "may", "june"),
    *("july", "august", "september", "october", "november", "december"),
)
SHORT_MONTHS = {name[:3]: number for number, name in enumerate(MONTHS, 1)} | {"sept": 9}
"""The number of the month that an abbreviation names, 1 for January."""
