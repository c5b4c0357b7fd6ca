"""What the assistant says that it has done, beside the calls that were made.

A claim is compared with the calls by the kind of action ("void" and ``cancel_booking`` are of one kind) and by what it
is about; then its names, dates, times, counts, amounts and references with those of the calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from groundwire.engine import ToolCall
from groundwire.engine.schema.knowledge import CallStatus, find_status, read_result
from groundwire.engine.values import Measure, read_values, stem
from groundwire.runtime.texts.characters import is_numeric

from .claims import PENDING, STATE_WORD, STATE_WORDS, ActionClaim, list_claims
from .context import TurnContext
from .details import CallDetails, find_difference
from .mentions import list_leaves, split_words, stem_words
from .records import Finding, FindingStatus
from .rows import flatten
from .words import KIND_OF, OFFERED, READ_NOUNS, READS, THINGS

_STATES = ("status", "state")
_FAILED_STATES = frozenset(
    ("failed", "failure", "rejected", "declined", "denied", "refused", "cancelled", "canceled", "conflict")
)
_PENDING_STATES = frozenset(("pending", "queued", "waitlisted", "processing", "in_progress"))
"""States in a result that say what has become of the call that changes something."""
_CONFIRMED = frozenset(("confirmed", "completed", "accepted", "approved"))
"""Fields of a result that deny the call where they are false."""
_WEAK, _UNDOING = frozenset({"book", "create"}), frozenset({"cancel", "delete", "block", "refund"})
"""Kinds that stand for others, and kinds that undo others."""
_ROUGH = frozenset({"create", "pay"})
"""Kinds of verbs that may say that money went anywhere."""
_PARTS = frozenset(map(stem, ("date", "time", "day", "name", "id", "number", "type", "text", "email", "phone")))
"""Words of keys that name nothing that is done about."""
_ALL = re.compile(r"\b(?:all|everything|both|every|each)\b", re.IGNORECASE)
_BESIDE = 0.1
"""What a word of the sentence counts beside one of the clause."""


class Action(NamedTuple):
    """A call that changes something, and what came of the last of its tries."""

    call: ToolCall
    status: CallStatus
    kinds: frozenset[str]
    topic: frozenset[str]
    """Stems of what it is about: its arguments, its result, and the records that they name."""
    details: CallDetails


def is_action(name: str) -> bool:
    """Whether a tool changes something, by its name.

    >>> is_action("cancel_booking"), is_action("list_orders"), is_action("free_busy")
    (True, False, False)
    """
    words = [word.lower() for word in split_words(name)]
    return (
        bool(words) and words[0] not in READS and words[-1] not in READ_NOUNS and any(word in KIND_OF for word in words)
    )


def find_outcome(call: ToolCall) -> CallStatus:
    """Return what came of a call that changes something: its status, else what its result says has become of it.

    The state that the call asks for is none of these: "cancelled" is what ``cancel_order`` wants.

    >>> find_outcome(ToolCall(name="book_table", result={"status": "waitlisted"}))
    'pending'
    >>> find_outcome(ToolCall(name="book_table", result={"booked": False}))
    'failed'
    """
    status = find_status(call)
    result = read_result(call.result)
    if call.status is not None or status != "succeeded" or not isinstance(result, Mapping):
        return status
    verbs = tuple(word.lower().removesuffix("e") for word in split_words(call.name) if len(word) > 2)
    states = {state.lower() for key in _STATES if isinstance(state := result.get(key), str)}
    unwanted = {state for state in states if not state.startswith(verbs)}
    denied = {key.lower() for key, value in result.items() if value is False and isinstance(key, str)}
    if (
        unwanted & _FAILED_STATES
        or denied & _CONFIRMED
        or any(key.endswith("ed") and key.startswith(verbs) for key in denied)
    ):
        return "failed"
    return "pending" if unwanted & _PENDING_STATES else status


class ActionLog:
    """The actions in the log of a turn."""

    def __init__(self, context: TurnContext) -> None:
        """Use the log of ``context``."""
        self._context = context
        self._joined: dict[tuple[int, ...], CallDetails] = {}

    def join(self, calls: Sequence[CallDetails]) -> CallDetails:
        """Return what some calls have together."""
        key = tuple(map(id, calls))
        if key not in self._joined:
            self._joined[key] = CallDetails(
                [part for call in calls for part in call.calls],
                [part for call in calls for part in call.others],
                self._context,
            )
        return self._joined[key]

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """The last try of each action, in order."""
        tools = self._context.tools
        said = {stem(word) for word in split_words(self._context.text.lower()) if word.endswith("ed")}
        last: dict[str, ToolCall] = {}
        for call in self._context.log:
            is_changing = is_action(call.name) or any(stem(word.lower()) in said for word in split_words(call.name)[:1])
            if call.name in tools.actions or (is_changing and call.name not in tools.reads):
                key = f"{call.name} {sorted(map(str, call.arguments.items()))}"
                last.pop(key, None)
                last[key] = call
        return tuple(
            Action(call, find_outcome(call), _find_kinds(call), self._find_topic(call), self._read_details(call))
            for call in last.values()
        )

    @property
    def may_change(self) -> bool:
        """Whether a call changes something, or its tool's name does not say that it reads."""
        names = [call.name for call in self._context.log if call.name not in self._context.tools.reads]
        return bool(self.actions) or any(READS.isdisjoint(map(str.lower, split_words(name))) for name in names)

    @cached_property
    def states(self) -> frozenset[str]:
        """Kinds of what results say is done: "state: cancelled"."""
        return frozenset(kind for result in self._context.results for kind in _list_state_kinds(result))

    @cached_property
    def words(self) -> frozenset[str]:
        """Stems of the words in results."""
        return frozenset(stem_words(" ".join(self._context.result_values)))

    @cached_property
    def tools(self) -> frozenset[str]:
        """The names of the tools of the log."""
        return frozenset(call.name for call in self._context.log)

    @cached_property
    def readings(self) -> tuple[tuple[frozenset[str], CallDetails], ...]:
        """The successful calls that change nothing, each with the kinds that its name is about: ``get_booking`` reads
        what was booked."""
        changing = {id(action.call) for action in self.actions}
        calls = [call for call in self._context.log if id(call) not in changing and find_outcome(call) == "succeeded"]
        return tuple((_find_read_kinds(call), self._read_details(call)) for call in calls)

    def list_readings(self, claim: ActionClaim) -> list[CallDetails]:
        """Return what calls have that read what a claim says was done."""
        kinds = claim.kinds or ({"book"} if claim.form == "sign" else set())
        return [details for of_call, details in self.readings if kinds & of_call]

    def _read_details(self, call: ToolCall) -> CallDetails:
        """What a call has, with the records that its values name, and results of one record."""
        result = read_result(call.result)
        values = {str(value).lower() for part in (call.arguments, result) for _, _, value in list_leaves(part, "")}
        owners = [of_value[0].record for value in values if len(of_value := self._context.owners.get(value, ())) == 1]
        single = [other for other in self._context.results if isinstance(other, Mapping)]
        return CallDetails((call.arguments, result), (*owners, *single), self._context)

    def _find_topic(self, call: ToolCall) -> frozenset[str]:
        values = {str(value) for _, _, value in list_leaves(call.arguments, "") if value is not None}
        values |= {
            str(value)
            for _, _, value in list_leaves(read_result(call.result), "")
            if value is not None and not isinstance(value, bool)
        }
        named = {value for value in values if any(map(is_numeric, value)) or len(value) > 3}
        for sibling in self._context.siblings:
            owned = {str(value) for value in flatten(sibling.record).values()}
            if owned & named:
                values |= owned
        return frozenset(stem_words(" ".join((*values, *split_words(call.name)))))


def _find_kinds(call: ToolCall) -> frozenset[str]:
    """The kinds of what a call does, and the stems of the words of its name."""
    words = [word.lower() for word in split_words(call.name)]
    kinds = {kind for word in words for kind in KIND_OF.get(word, ())}
    named = words if kinds else [word for word in words[:1] if word not in READS]
    return frozenset(kinds | set(map(stem, named)))


def _find_read_kinds(call: ToolCall) -> frozenset[str]:
    nouns = {word.lower().removesuffix("s") for word in split_words(call.name)[1:]} - OFFERED
    return frozenset(kind for word in nouns for kind in KIND_OF.get(word, ()))


def check_actions(context: TurnContext) -> list[Finding]:
    """Return the actions that the text of a turn claims, with what came of them.

    Args:
        context: The turn.
    """
    log = ActionLog(context)
    return [_check_claim(claim, log, context) for claim in list_claims(context.text, log.tools)]


def _check_claim(claim: ActionClaim, log: ActionLog, context: TurnContext) -> Finding:
    context.check_time()
    related = [action for action in log.actions if _is_related(claim, action)]
    if not related and claim.form != "own":
        related = [action for action in log.actions if action.status != "succeeded" and _rate(claim, action) > 0]
        if claim.kinds & log.states:
            related = []
    rates = [_rate(claim, action) for action in related]
    best = max(rates, default=0.0)
    is_about_all = _ALL.search(claim.text) is not None
    nearest = [action for action, rate in zip(related, rates, strict=True) if is_about_all or rate == best]
    status, message = _find_status(claim, nearest, log, is_about_all=is_about_all)
    done = [action.details for action in related if action.status == "succeeded"]
    if status == "composed" and claim.form in ("passive", "sign") and (done := log.list_readings(claim)):
        status = "succeeded"
    if status == "absent" and any(_has_its_amount(claim, action) for action in log.actions):
        status, message = "composed", ""
    where = claim.text
    if status == "succeeded" and done and (difference := find_difference(claim.details, log.join(done), context)):
        where, status = claim.details, difference.status
        message = f"The call that did this does not have “{difference.words}”."
    end = claim.start + len(where)
    return Finding(kind="action", status=status, where=where, start=claim.start, end=end, message=message)


def _has_its_amount(claim: ActionClaim, action: Action) -> bool:
    """Whether a claim in other words has the amount of money of an action: "put the $35 back on your card"."""
    amounts = [value for value in read_values(claim.text) if value.kind == "money"]
    is_rough = bool(claim.kinds & _ROUGH)
    return (
        is_rough
        and action.status == "succeeded"
        and any(
            action.details.mentions.has_number(value.content.amount / value.content.factor)
            for value in amounts
            if isinstance(value.content, Measure)
        )
    )


def _find_status(
    claim: ActionClaim, nearest: Sequence[Action], log: ActionLog, *, is_about_all: bool
) -> tuple[FindingStatus, str]:
    statuses = {action.status for action in nearest}
    for status, what in (("failed", "has failed"), ("pending", "is pending")):
        wrong = [action for action in nearest if action.status == status]
        if not wrong or (status == "pending" and (claim.form == "request" or PENDING.search(claim.text))):
            continue
        if is_about_all or "succeeded" not in statuses:
            return wrong[0].status, f"The call {wrong[0].call.name} {what}."
    if nearest or (claim.kinds & log.states and claim.form != "own"):
        return "succeeded", ""
    if claim.form in ("own", "done") and (claim.kinds or not log.may_change):
        return "absent", "No call in the log did this."
    if claim.form == "passive" and claim.kinds and _is_new(claim, log):
        return "absent", "No call in the log did this."
    if claim.form == "sign" and not (log.actions or log.list_readings(claim)):
        return "absent", "No call in the log did this."
    return "composed", ""


def _rate(claim: ActionClaim, action: Action) -> float:
    """How much a claim has in common with what an action is about."""
    return _count_shared(claim.text, action.topic) + _BESIDE * _count_shared(claim.sentence, action.topic)


def _count_shared(text: str, topic: frozenset[str]) -> int:
    return sum(word in topic or any(_begin_alike(word, other) for other in topic) for word in stem_words(text))


def _begin_alike(left: str, right: str) -> bool:
    """Whether one word is the other with an ending: lock and locked."""
    short, long = sorted((left, right), key=len)
    return len(short) > 3 and long.startswith(short) and len(long) - len(short) < 3


def _is_related(claim: ActionClaim, action: Action) -> bool:
    if not claim.kinds or not action.kinds:
        return True
    if _names_other_thing(claim, action):
        return False
    if claim.kinds & _WEAK and not action.kinds & _UNDOING:  # "booked the pickup", by ``ship`` with a ``pickup_date``
        keys = (*action.call.arguments, " ".join(split_words(action.call.name)[1:]))
        parts = {stem(word.lower()) for key in keys for word in split_words(key)} - _PARTS
        if parts & stem_words(claim.text):
            return True
    return bool(claim.kinds & action.kinds) or not claim.kinds.isdisjoint(
        _list_state_kinds(read_result(action.call.result))
    )


def _names_other_thing(claim: ActionClaim, action: Action) -> bool:
    """Whether a claim is about another thing than the tool is for: a taxi, and ``book_table``."""
    said = {THINGS[word] for word in split_words(claim.text.lower()) if word in THINGS}
    made = {THINGS[word] for word in split_words(action.call.name.lower()) if word in THINGS}
    return bool(said and made) and not said & made


def _list_state_kinds(result: Any) -> Iterator[str]:
    """Kinds of what a result says is done: "state: cancelled", "locked: true", "confirmation_sent_to: ann@…"."""
    for _, key, value in list_leaves(result, ""):
        is_said = value is True or (isinstance(value, str) and "@" in value)
        text = key if is_said else value if isinstance(value, str) else ""
        words = [word.lower() for word in split_words(text)]
        for word in words if len(words) <= STATE_WORDS else ():
            if STATE_WORD.fullmatch(word):
                yield from KIND_OF.get(word, ())


def _is_new(claim: ActionClaim, log: ActionLog) -> bool:
    """Whether a passive claim cannot be what a result says in other words."""
    if log.list_readings(claim):
        return False
    verbs = {word for word in split_words(claim.text.lower()) if word in KIND_OF}
    return not stem_words(" ".join(verbs)) & log.words
