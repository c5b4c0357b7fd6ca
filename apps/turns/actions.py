"""What the assistant says that it has done, beside the calls that were made.

A clause claims an action if it says that something is done: "I've booked it", "Moved to Friday", "it is cancelled".
Questions, offers, intentions and negations claim nothing. A claim is compared with the calls by the kind of action
("void" and ``cancel_booking`` are of one kind) and by what it is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias

from groundwire.engine import ToolCall
from groundwire.engine.schema.knowledge import CallStatus, find_status, read_result
from groundwire.metrics import sentences
from groundwire.runtime.texts.characters import is_numeric

from .context import TurnContext
from .mentions import list_leaves, split_words, stem_words
from .records import Finding, FindingStatus
from .rows import flatten
from .words import GENERIC, KIND_OF, PARTICIPLES, READ_NOUNS, READS

_HEAD = r"(?:i['’]?ve|i have|we['’]?ve|we have|you['’]?ve|you have)"
_ADVERB = r"(?:\s+(?:now|just|already|also|both|all|successfully|been|gone|ahead|and|got|to|too|safely|duly))*"
_STATE_WORD = re.compile(PARTICIPLES)
_STATE_WORDS = 3
"""Words of a state, at most."""
_FIRST = re.compile(rf"\b{_HEAD}{_ADVERB}\s+(?P<verb>{PARTICIPLES})\b", re.IGNORECASE)
_PAST = re.compile(rf"\b(?:i|we)\s+(?:just\s+|also\s+|already\s+)?(?P<verb>{PARTICIPLES})\b", re.IGNORECASE)
_PASSIVE = re.compile(
    r"\b(?:has|have|['’]s|['’]ve|is|are|['’]re)\s+(?:(?:now|just|already|also|both|all|successfully|been|safely|duly)\s+)*"
    rf"(?P<verb>{PARTICIPLES})\b",
    re.IGNORECASE,
)
_OUTCOME = re.compile(
    r"\b(?:reservation|booking|payment|transfer|purchase|rental|order|appointment|cancellation|refund|transaction)\s+"
    r"(?:(?:was|is|has been|went)\s+)?(?:an?\s+)?"
    r"(?P<verb>success(?:ful)?|made|completed?|confirmed|processed|through)\b",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"^\W*(?:(?:all|both|everything|great|good|perfect|ok|okay|right|sure|yes|done)\W+)*"
    rf"(?P<verb>done|sorted|all set|{PARTICIPLES})\b"
    r"(?=\s*[:,.!–—-]|\s+(?:for|to|as|on|in|with|from|and|until|at|your|the)\b|$)",
    re.IGNORECASE,
)
_DONE = re.compile(
    r"\b(?:all done|that['’]s done|off the books|void|(?:is|are) dead"
    r"|(?:set|put) in motion|has said yes|all set|['’]s sorted)\b",
    re.IGNORECASE,
)
_STATE = re.compile(
    r"\byou['’]re (?:now )?(?:on|in|all set|booked|registered|enrolled)"
    r"|\b(?:is|are) (?:back in|on (?:its|the|their) way|live|yours|set|up and running|gone|(?:now )?(?:off|on)\b)"
    r"|['’]s (?:yours|gone|done)\b|\byou['’]ve got|\byou have (?:seats?|a (?:table|room|booking))"
    r"|\b(?:has|have) (?:his|her|their|its|your) (?:answer|reply|invite|invitation)"
    r"|\bnow (?:expects?|has|knows?|runs?|shows?)|\b(?:office|team|host|they|he|she|everyone|everybody|others) knows?\b"
    r"|\b(?:is|are) (?:now )?(?:refunding|paying|crediting|sending|going out|(?:up|down) (?:from|to))\b",
    re.IGNORECASE,
)
_REQUESTS = frozenset({"asked", "requested", "submitted"})
"""What is true of a pending call too."""
_NO_CLAIM = re.compile(
    r"\b(?:if|once|when|unless|until|as soon as|would you|shall i|should i|could you|let me|i c(?:an|ould)|i['’]ll"
    r"|i will|we['’]ll|(?:going|about) to|will be|can be|to be|would|might|may|want(?:s|ed)?"
    r"|need(?:s|ed)? to|(?:before|after) i|please)\b",
    re.IGNORECASE,
)
_DENIAL = re.compile(
    r"\b(?:not|cannot|never|no longer|unable|fail(?:ed|s|ing)?|unsuccessful|sorry|unfortunately|error|problem|refused"
    r"|rejected|declined|without success)\b|n['’]t\b",
    re.IGNORECASE,
)
_PENDING = re.compile(
    r"\b(?:pending|waiting|await\w*|yet to|not yet|still (?:to|has|have|needs?)|request(?:ed)?|asked|put it to"
    r"|submitted|queued|under review|in (?:the )?queue|(?:being )?process(?:ing|ed)|in progress|subject to"
    r"|provisional\w*|once (?:they|it|he|she)|as soon as|until (?:they|it)|hear back"
    r"|confirm(?:ation)? (?:is|to)|for now|should|expected|in hand|on its way|under ?way)\b|(?:have|has)n['’]t\b",
    re.IGNORECASE,
)
_CLAUSE = re.compile(
    r"[;:–—]\s+|,\s+(?=(?:and|but|so|then|it|i|we|you|the|they|which)\b)"
    r"|\s+(?=and (?:the|i|i['’]ve|we|it|your)\b)|\s+but\s+",
    re.IGNORECASE,
)


ClaimForm: TypeAlias = Literal["own", "passive", "state", "done", "request"]
"""What the assistant says that it did itself, so that a call must have; what was done; how something is now; a state
that only an action brings about; and what was asked for."""
_FORMS: tuple[tuple[re.Pattern[str], ClaimForm], ...] = (
    (_DONE, "done"),
    (_FIRST, "own"),
    (_OPENING, "own"),
    (_PAST, "own"),
    (_STATE, "state"),
    (_PASSIVE, "passive"),
    (_OUTCOME, "passive"),
)


_ALL = re.compile(r"\b(?:all|everything|both|every|each)\b", re.IGNORECASE)
_BESIDE = 0.1
"""What a word of the sentence counts beside one of the clause."""


class ActionClaim(NamedTuple):
    """Words that say that something was done."""

    start: int
    end: int
    text: str
    kinds: frozenset[str]
    """Of the action; empty if the words do not say ("All done")."""
    form: ClaimForm
    sentence: str


class Action(NamedTuple):
    """A call that changes something, and what came of the last of its tries."""

    call: ToolCall
    status: CallStatus
    kinds: frozenset[str]
    topic: frozenset[str]
    """Stems of what it is about: its arguments, its result, and the records that they name."""


def list_claims(text: str) -> Iterator[ActionClaim]:
    """Yield the clauses of a text that say that something was done."""
    for sentence in sentences(text):
        if sentence.text.rstrip().endswith("?"):
            continue
        start = 0
        bounds = [
            *(match.span() for match in _CLAUSE.finditer(sentence.text)),
            (len(sentence.text), len(sentence.text)),
        ]
        for end, following in bounds:
            clause = sentence.text[start:end]
            claim = _read_claim(clause)
            if claim is not None:
                yield ActionClaim(sentence.start + start, sentence.start + end, clause, *claim, sentence.text)
            start = following


def _read_claim(clause: str) -> tuple[frozenset[str], ClaimForm] | None:
    for pattern, form in _FORMS:
        match = pattern.search(clause)
        if match:
            before = clause[: match.end()]
            if _NO_CLAIM.search(before) or _DENIAL.search(before):
                return None
            verb = match.groupdict().get("verb", "").lower()
            words = split_words(clause.lower()) if verb in GENERIC else [verb]
            kinds = frozenset(kind for word in words if word not in GENERIC for kind in KIND_OF.get(word, ()))
            kinds = frozenset[str]() if form == "state" or verb in _REQUESTS else kinds
            return kinds, "request" if verb in _REQUESTS else form
    return None


def is_action(name: str) -> bool:
    """Whether a tool changes something, by its name.

    >>> is_action("cancel_booking"), is_action("list_orders"), is_action("free_busy")
    (True, False, False)
    """
    words = [word.lower() for word in split_words(name)]
    return (
        bool(words) and words[0] not in READS and words[-1] not in READ_NOUNS and any(word in KIND_OF for word in words)
    )


class ActionLog:
    """The actions in the log of a turn."""

    def __init__(self, context: TurnContext) -> None:
        """Use the log of ``context``."""
        self._context = context

    @cached_property
    def actions(self) -> tuple[Action, ...]:
        """The last try of each action, in order."""
        tools = self._context.tools
        last: dict[str, ToolCall] = {}
        for call in self._context.log:
            if call.name in tools.actions or (is_action(call.name) and call.name not in tools.reads):
                key = f"{call.name} {sorted(map(str, call.arguments.items()))}"
                last.pop(key, None)
                last[key] = call
        return tuple(
            Action(call, find_status(call), self._find_kinds(call), self._find_topic(call)) for call in last.values()
        )

    @cached_property
    def states(self) -> frozenset[str]:
        """Kinds of what results say is done: "state: cancelled"."""
        return frozenset(kind for result in self._context.results for kind in _list_state_kinds(result))

    @cached_property
    def words(self) -> frozenset[str]:
        """Stems of the words in results."""
        return frozenset(stem_words(" ".join(self._context.result_values)))

    def _find_kinds(self, call: ToolCall) -> frozenset[str]:
        return frozenset(kind for word in split_words(call.name) for kind in KIND_OF.get(word.lower(), ()))

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


def check_actions(context: TurnContext) -> list[Finding]:
    """Return the actions that the text of a turn claims, with what came of them.

    Args:
        context: The turn.
    """
    log = ActionLog(context)
    return [_check_claim(claim, log, context) for claim in list_claims(context.text)]


def _check_claim(claim: ActionClaim, log: ActionLog, context: TurnContext) -> Finding:
    related = [action for action in log.actions if _is_related(claim, action)]
    if not related and claim.form != "own":
        related = [action for action in log.actions if action.status != "succeeded" and _rate(claim, action) > 0]
        if claim.kinds & log.states:
            related = []
    best = max((_rate(claim, action) for action in related), default=0.0)
    is_about_all = _ALL.search(claim.text) is not None
    nearest = [action for action in related if is_about_all or _rate(claim, action) == best]
    status, message = _find_status(claim, nearest, log, is_about_all=is_about_all)
    return Finding(kind="action", status=status, where=claim.text, start=claim.start, end=claim.end, message=message)


def _find_status(
    claim: ActionClaim, nearest: Sequence[Action], log: ActionLog, *, is_about_all: bool
) -> tuple[FindingStatus, str]:
    statuses = {action.status for action in nearest}
    for status, what in (("failed", "has failed"), ("pending", "is pending")):
        wrong = [action for action in nearest if action.status == status]
        if not wrong or (status == "pending" and (claim.form == "request" or _PENDING.search(claim.text))):
            continue
        if is_about_all or "succeeded" not in statuses:
            return wrong[0].status, f"The call {wrong[0].call.name} {what}."
    if nearest or (claim.kinds & log.states and claim.form != "own"):
        return "succeeded", ""
    if claim.form in ("own", "done") and (claim.kinds or not log.actions):
        return "absent", "No call in the log did this."
    if claim.form == "passive" and claim.kinds and _is_new(claim, log):
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
    return bool(claim.kinds & action.kinds) or not claim.kinds.isdisjoint(
        _list_state_kinds(read_result(action.call.result))
    )


def _list_state_kinds(result: Any) -> Iterator[str]:
    """Kinds of what a result says is done: "state: cancelled", "locked: true"."""
    for _, key, value in list_leaves(result, ""):
        text = value if isinstance(value, str) else key if value is True else ""
        words = [word.lower() for word in split_words(text)]
        for word in words if len(words) <= _STATE_WORDS else ():
            if _STATE_WORD.fullmatch(word):
                yield from KIND_OF.get(word, ())


def _is_new(claim: ActionClaim, log: ActionLog) -> bool:
    """Whether a passive claim cannot be what a result says in other words."""
    verbs = {word for word in split_words(claim.text.lower()) if word in KIND_OF}
    return not stem_words(" ".join(verbs)) & log.words
