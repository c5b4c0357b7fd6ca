"""Finds whose a phone number or an address is where the knowledge has one of each of several: a list of staff.

The last name before a contact in its passage says whose it is; other names in its sentence may have it too. A contact
is only contradicted where the response names one other person, for whom the knowledge has another one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from itertools import pairwise

from ..schema.explanations import ValueKind
from .comparing import relate
from .knowledge import Knowledge, Location
from .tokens import Name, Value

CONTACTS = frozenset({"phone", "email"})
"""Kinds of values by which somebody is reached; the knowledge is expected to have every right one."""


def find_contact_of(whom: Name, knowledge: Knowledge, value: Value, supporting: Sequence[Location]) -> Location | None:
    """Return the contact that the knowledge has for a name, if the response gives it somebody else's.

    Args:
        whom: The one name in the sentence of the response.
        knowledge: What the passages state.
        value: The contact that the response gives.
        supporting: Where the knowledge has it.

    Returns:
        Where the knowledge has another contact of that kind for the name; None where it has none, or where the given
        one may be the name's.
    """
    for location in supporting:
        holders = _list_holders(knowledge, location, value.kind)
        if not holders or any(_share_words(whom, name) for name in holders):
            return None
    for location, theirs in knowledge.values:
        if theirs.kind == value.kind and relate(value, theirs) == "differs":
            holder = _find_holder(knowledge, location)
            if holder is not None and _share_words(whom, holder):
                return location
    return None


def _list_holders(knowledge: Knowledge, contact: Location, kind: ValueKind) -> list[Name]:
    """Who may have a contact: the last name before it in its passage, and the other names of its sentence.

    Where each contact of the sentence has a name before it, and the last one none after it, these are the names since
    the contact before.
    """
    before = _find_holder(knowledge, contact)
    if before is None:
        return []
    names = [item for item in knowledge.names if item[0].key == contact.key]
    contacts = [value for value in knowledge.by_sentence[contact.key] if value.kind == kind]
    starts = [location.start for location, _ in names]
    is_parted = all(
        bisect_left(starts, left.end) < bisect_left(starts, right.start) for left, right in pairwise(contacts)
    )
    if names and is_parted and starts[0] < contacts[0].start and starts[-1] < contacts[-1].end:
        since = max((end for end in (item.end for item in contacts) if end <= contact.start), default=0)
        names = [(location, name) for location, name in names if since <= location.start < contact.start]
    return [before, *(name for _, name in names)]


def _find_holder(knowledge: Knowledge, contact: Location) -> Name | None:
    """The last name before a contact in its passage."""
    index = bisect_left(knowledge.names, (contact.passage, contact.start), key=_order)
    if not index:
        return None
    location, name = knowledge.names[index - 1]
    return name if location.passage == contact.passage else None


def _order(item: tuple[Location, Name]) -> tuple[int, int]:
    return item[0].passage, item[0].start


def _share_words(left: Name, right: Name) -> bool:
    return not set(left.words).isdisjoint(right.words)
