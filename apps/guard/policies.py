"""What happens to text by what is known about it: written down by the caller, and blocked where it is not."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, Literal, TypeAlias

import msgspec

from groundwire.engine import Plan
from groundwire.engine.schema.base import MAX_DEADLINE_MS
from groundwire.repair.kg import KnowledgeGraph
from groundwire.runtime.arguments import OptionRecord, check_integer, check_number
from groundwire.runtime.errors import InvalidRequest
from groundwire.turns import TurnCheck

from .records import ActionName, Outcome, SentenceEvent

Rewrite: TypeAlias = Callable[[SentenceEvent], str | Awaitable[str | None] | None]
"""Called with the last rejected sentence; returns a replacement, or None to give up."""


class Redact(OptionRecord, frozen=True):
    """Let the sentence leave with ``mark`` in the place of its unsupported words, or of all where none are marked."""

    mark: str = "[…]"


class Fallback(OptionRecord, frozen=True):
    """Let ``text`` leave in the place of all that has not left, and end the stream."""

    text: str


Otherwise: TypeAlias = Literal["flag", "block", "redact"] | Redact | Fallback
"""``flag`` lets the text leave as it is; its event says what is wrong with it. ``block`` ends the stream: neither this
text nor any after it leaves. ``redact`` is ``Redact()``."""


class Regenerate(OptionRecord, frozen=True):
    """Ask the caller for another text for the sentence, check it, and let it leave if it is consistent.

    Or if it is unverifiable, and the policy lets such a sentence leave as it is. A sentence is not replaced if a part
    of it has left by ``Policy.overflow``.
    """

    callback: Rewrite
    """May be a coroutine function where the stream is used from asyncio."""
    attempts: int = 2
    """How often it is asked at most, 1 or more."""
    otherwise: Otherwise = "block"
    """What happens to the sentence when no text was good enough."""


class Refine(OptionRecord, frozen=True):
    """Repair the sentence as ``Refiner.refine`` does, check the result, and let it leave as ``Regenerate`` does.

    Needs the roles ``critic`` and ``retriever``.
    """

    graph: KnowledgeGraph | None = None
    """None: the triples of the stream."""
    otherwise: Otherwise = "block"
    """What happens to the sentence when no repair is possible, or it is not good enough."""


class Correct(OptionRecord, frozen=True):
    """Correct the sentence as ``Corrector.correct`` does, check the result, and let it leave as ``Regenerate`` does."""

    otherwise: Otherwise = "block"
    """What happens to the sentence when no correction is possible, or it is not good enough."""


Rewriting: TypeAlias = Regenerate | Refine | Correct
"""Actions that put another text in the place of a sentence."""
Action: TypeAlias = Otherwise | Rewriting
Resolved: TypeAlias = Literal["release", "flag", "block"] | Redact | Fallback | Rewriting
"""``release`` is what happens to a consistent sentence."""
_WORDS = ("flag", "block", "redact")
_NAMES: dict[type, ActionName] = {
    Redact: "redact",
    Fallback: "fallback",
    Regenerate: "regenerate",
    Refine: "refine",
    Correct: "correct",
}
OUTCOMES: tuple[Outcome, ...] = (
    "inconsistent", "unverifiable", "unknown", "deadline", "failed", "truncated", "overflow",
)  # fmt: skip
"""Those that a policy has an action for."""


class Policy(OptionRecord, frozen=True):
    """What happens to each sentence, by its outcome, and how much may be held back.

    A consistent sentence leaves. By default everything else ends the stream, except a sentence that states nothing.
    """

    inconsistent: Action = "block"
    unverifiable: Action = "flag"
    """It states nothing that knowledge could confirm: a greeting, an opinion."""
    unsure: Action | None = None
    """Its label, consistent or inconsistent, is not sure (``Verdict.sure``). None: what the label says."""
    unknown: Action = "block"
    """The metrics say too little about it, or cannot give a verdict at all."""
    deadline: Action = "block"
    """It was not checked in time."""
    failed: Action = "block"
    """A model or a metric failed."""
    truncated: Action = "block"
    """A text exceeds what may be read."""
    overflow: Otherwise = "block"
    """The sentence is not complete, and what is held back exceeds one of the bounds below. ``flag`` lets it leave
    unchecked, up to its last whole word; ``redact`` puts the mark in its place."""
    max_held_words: int = 200
    """Words and punctuation marks; a run of letters counts once for every 16."""
    max_held_ms: float = 30_000.0
    """Milliseconds, from when the oldest held text was fed; a check that takes longer has the outcome ``deadline``. The
    clock is looked at when the stream is called, and by ``guard`` between two parts of the text."""
    deadline_ms: float | None = None
    """Milliseconds for the whole stream, from when it was opened; None: no limit. Later nothing is checked."""


TurnAction: TypeAlias = Literal["pass", "annotate", "block"]


class TurnPolicy(OptionRecord, frozen=True, kw_only=True):
    """What happens to the answer of an assistant that calls tools, by what ``TurnChecker`` finds in it.

    ``pass`` looks at no finding of the kind. ``annotate`` lets the answer leave with its findings beside it. ``block``
    lets no call leave where a finding of the kind is a problem, and for actions and values no text either: the text is
    held back until the answer is complete.
    """

    argument: TurnAction = "pass"
    """An argument of a call is from nowhere, or from another record."""
    action: TurnAction = "pass"
    """The text claims an action that no call has done."""
    value: TurnAction = "pass"
    """A value of the text is of another record, or miscounted."""
    unknown: Literal["annotate", "block"] = "block"
    """Something that is looked at could not be checked, or only words that may claim something were said."""
    fallback: str | None = None
    """Leaves in the place of an answer of which nothing leaves. None: the text of the stream's policy for inconsistent
    sentences, if that is a ``Fallback``; else nothing."""

    @property
    def checks(self) -> bool:
        """Whether anything is looked at."""
        return any(action != "pass" for action in (self.argument, self.action, self.value))

    @property
    def holds_text(self) -> bool:
        """Whether a problem of the text keeps the text back."""
        return "block" in (self.action, self.value)

    def list_blocked(self, turn: TurnCheck) -> frozenset[Literal["text", "calls"]]:
        """Return which parts of an answer do not leave.

        Args:
            turn: What was found in it.

        Returns:
            ``text`` and ``calls``, ``calls`` alone, or nothing.
        """
        kinds = {finding.kind for finding in turn.problems if getattr(self, finding.kind) == "block"}
        is_unread = turn.status != "scored" or any(finding.status == "unknown" for finding in turn.findings)
        is_unknown = is_unread or turn.label == "unknown"
        stops_unknown = is_unknown and self.unknown == "block"
        if kinds & {"action", "value"} or (stops_unknown and self.holds_text):
            return frozenset({"text", "calls"})
        return frozenset({"calls"} if kinds or stops_unknown else ())


def check_turn_policy(policy: Any, text_policy: Policy | None = None) -> TurnPolicy:
    """``policy`` with its fallback, or the default one for None; InvalidRequest says which field is not usable."""
    try:
        checked = msgspec.convert(msgspec.to_builtins(TurnPolicy() if policy is None else policy), TurnPolicy)
    except (msgspec.ValidationError, TypeError) as error:
        raise InvalidRequest(
            f"turns is {policy!r:.200}; pass a TurnPolicy, whose fields are 'pass', 'annotate' or 'block', "
            "but fallback, which is a text."
        ) from error
    stopped = None if text_policy is None else text_policy.inconsistent
    if checked.fallback is None and isinstance(stopped, Fallback):
        return msgspec.structs.replace(checked, fallback=stopped.text)
    return checked


def resolve(action: Action) -> Resolved:
    """The action; ``redact`` is without its mark."""
    return Redact() if action == "redact" else action


def find_action(policy: Policy, outcome: Outcome, *, sure: bool = True) -> Resolved:
    """What the policy says about an outcome; a consistent text is released, unless it is not sure."""
    if policy.unsure is not None and not sure and outcome in ("consistent", "inconsistent"):
        return resolve(policy.unsure)
    return "release" if outcome == "consistent" else resolve(getattr(policy, outcome))


def name_action(action: Resolved) -> ActionName:
    """The name of an action."""
    return action if isinstance(action, str) else _NAMES[type(action)]


def check_policy(policy: Any) -> Policy:
    """``policy``, or the default one for None; InvalidRequest says which field is not usable."""
    if policy is None:
        return Policy()
    if not isinstance(policy, Policy):
        raise InvalidRequest(f"policy is {type(policy).__name__}; pass an instance of Policy.")
    for outcome in OUTCOMES:
        _check_action(f"Policy.{outcome}", getattr(policy, outcome), may_rewrite=outcome != "overflow")
    if policy.unsure is not None:
        _check_action("Policy.unsure", policy.unsure, may_rewrite=True)
    check_integer("Policy.max_held_words", policy.max_held_words, 1)
    _check_ms("Policy.max_held_ms", policy.max_held_ms)
    if policy.deadline_ms is not None:
        _check_ms("Policy.deadline_ms", policy.deadline_ms)
    return policy


def _check_ms(name: str, value: Any) -> None:
    if not 0 < check_number(name, value, 0) <= MAX_DEADLINE_MS:
        raise InvalidRequest(f"{name} is {value!r}; allowed are numbers above 0, up to {MAX_DEADLINE_MS:g}.")


def _check_action(name: str, action: Any, *, may_rewrite: bool) -> None:
    kinds = tuple(_NAMES) if may_rewrite else (Redact, Fallback)
    if not (action in _WORDS if isinstance(action, str) else isinstance(action, kinds)):
        allowed = ", ".join((*map(repr, _WORDS), *(kind.__name__ for kind in kinds)))
        raise InvalidRequest(f"{name} is {action!r:.200}; use one of {allowed}.")
    if isinstance(action, Redact) and not isinstance(action.mark, str):
        raise InvalidRequest(f"{name}.mark is {action.mark!r:.200}; pass a string.")
    if isinstance(action, Fallback) and not isinstance(action.text, str):
        raise InvalidRequest(f"{name}.text is {action.text!r:.200}; pass a string.")
    if isinstance(action, Regenerate):
        if not callable(action.callback):
            raise InvalidRequest(f"{name}.callback is {action.callback!r:.200}; pass a function of a SentenceEvent.")
        check_integer(f"{name}.attempts", action.attempts, 1)
    if isinstance(action, Refine) and not isinstance(action.graph, KnowledgeGraph | None):
        raise InvalidRequest(f"{name}.graph is {type(action.graph).__name__}; pass a KnowledgeGraph, or None.")
    if isinstance(action, Rewriting):
        _check_action(f"{name}.otherwise", action.otherwise, may_rewrite=False)


def check_stream(plan: Plan, policy: Policy, roles: Collection[str], triples: Sequence[object]) -> None:
    """InvalidRequest if a stream cannot be opened with these: by options about a response that is not there yet, or by
    a repair without the roles or the facts that it needs."""
    if plan.options.q2.spans is not None:
        raise InvalidRequest(
            "Q2Options.spans is given, but its ranges are those of a complete response; leave it out, or use score."
        )
    for outcome in (*OUTCOMES, "unsure"):
        action = getattr(policy, outcome)
        if isinstance(action, Refine):
            missing = [role for role in ("critic", "retriever") if role not in roles]
            if missing:
                raise InvalidRequest(
                    f"Policy.{outcome} is Refine, which needs {' and '.join(missing)} among the bundle's roles (it has "
                    f"{', '.join(sorted(roles))}). Load the bundle with extra=['nph']."
                )
            if action.graph is None and not triples:
                raise InvalidRequest(f"Policy.{outcome} is Refine without a graph; pass it one, or pass triples.")
