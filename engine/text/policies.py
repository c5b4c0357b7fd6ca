"""Finds sentences in which a shop, an office or a team says what it does, did or asks for.

"Sorry, we don't deliver on Sundays", "I've refunded your order", "Please keep the receipt": knowledge can confirm or
deny what such a sentence states, beside any apology. The rules are about English.
"""

from __future__ import annotations

import re

_SERVICES = (
    r"accept|book|cancel|change|charge|close|collect|cover|deliver|exchange|extend|issue|match"
    r"|offer(?! (?:you )?our apolog)|open|pay|price[- ]match|process|provide|redeem|refund|rent|repair|replace"
    r"|reserve|return|sell|send|ship|stock|swap|waive"
)
_DONE = (
    r"accepted|booked|cancell?ed|changed|charged|closed|collected|covered|credited|deducted|delivered|escalated|exchanged"
    r"|extended|included|issued|ordered|paid|redeemed|refunded|removed|repaired|replaced|reserved|reset|returned|scheduled"
    r"|sent|shipped|sold|transferred|updated|waived"
)
_WORDS_BETWEEN = (
    r"(?:(?:do|don't|does|doesn't|will|won't|can|can't|cannot|could|couldn't|may|are|aren't|have|haven't|not|never"
    r"|no longer|only|also|always|usually|currently|still|even|just|now|already|able to|unable to|happy to) )*"
)
_WE = re.compile(rf"\bwe(?:'ll|'re|'ve)? {_WORDS_BETWEEN}(?:{_SERVICES}|{_DONE})\b|\bwe (?:do|don't|do not)(?=[.,!]|$)")
_STATE = re.compile(
    r"(?:\b(?:is|are|isn't|aren't|was|were)|'re|'s) "
    r"(?:(?:not|now|only|always|currently|usually|still|also|never|no longer) )*"
    r"(?:open|closed|available|allowed|included|permitted|refundable|required|sold out|in stock|free of charge)\b"
    r"(?! (?:to (?:debate|interpretation|suggestions)|from here|here))"
)
_PASSIVE = re.compile(
    r"\b(?:(?:can|can't|cannot|could|may|must|will|won't)(?: (?:not|also|only|always))* be"
    r"|(?:has|hasn't|have|haven't)(?: (?:not|also|already|just))* been"
    r"|(?:is|isn't|are|aren't)(?: (?:not|also|only|always|already|now))*)"
    rf"(?: (?:already|also|only))* (?:{_DONE})\b"
)
_CLAIM = re.compile(
    rf"\b(?:i|we)(?:'ve| have)(?: (?:just|now|already|also))* (?:{_DONE}|applied|arranged|opened|created)"
    r" (?:[\w£$€.,]+ ){0,3}?(?:you|your|the)\b"
)
_PROMISE = re.compile(
    r"\b(?:you(?:'ll| will)|we(?:'ll| will)|your (?:\w+ ){1,3}will) (?:also |then |soon |shortly )?"
    rf"(?:arrive|be (?:contacted|{_DONE})|call|contact|get|hear|receive|reply|send)\b"
    r".*\b(?:shortly|soon|today|tonight|tomorrow|within|immediately|next|in a few|by \w+day|on \w+day)\b"
)
_OFFER = re.compile(
    r"\b(?:we|our (?:\w+ ){1,2}(?:team|staff|agents?|colleagues|department))(?:'ll| will) (?:(?:also|then|gladly) )*"
    r"(?:cancel|change|collect|cover|credit|deliver|extend|pay|rebook|refund|reimburse|repair|replace|ship|swap|update"
    r"|upgrade|waive) (?:the|your|any|all|both|it|this|that|them|you)\b"
)
_INSTRUCTION = re.compile(
    r"^(?:(?:yes|no|so|then|first|now|next|finally|also),? )?"
    r"(?:please |just |simply |always |never |do not |don't |you (?:must|should|need to|have to) )*"
    r"(?:apply|attach|bring|clean|cut|discard|download|drain|fill|hand|insert|install"
    r"|keep(?! (?:me|us|up|going|calm|in touch))|mix|pack|pay|press|print|put|remove|replace|restart|return|rinse|scan"
    r"|send(?! (?:me|my|us))|sign|store|swallow|switch|take(?! (?:care|it|your time|the time))|throw|turn|unplug|upload"
    r"|wash)\b.* (?:the|your|all|any|both|every)\b"
)
_UNKNOWING = re.compile(
    r"\b(?:whether|not sure|no (?:\w+ )?(?:idea|information|details|data)"
    r"|(?:don't|do not|can't|cannot|couldn't|could not|didn't|unable to|not able to) (?:\w+ )?"
    r"(?:know|find|see|say|tell|confirm|check|access|have (?:\w+ )*?(?:information|details|data)))\b"
)
_REGRET = re.compile(r"\bi'm (?:\w+ )?(?:sorry|afraid)(?: to say)?(?: that| but)?,? ?")
_PERSONAL = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|my|me|mine|myself)\b")
_CONTACT = re.compile(r"\b(?:ask|call|contact|e-?mail|reach|ring|visit|write)\b")
_TIME = re.compile(r"\d|\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b")
_CLAUSE = re.compile(r"; |,? but ")


def states_policy(sentence: str) -> bool:
    """Whether a sentence says what its speaker's side does, did or asks for; no question, and nothing it doubts.

    >>> states_policy("Sorry, we are closed on Saturdays."), states_policy("I've refunded your order.")
    (True, True)
    >>> states_policy("No problem, our support team will change the address for you."), states_policy("We will see.")
    (True, False)
    >>> states_policy("Please throw away the receipt."), states_policy("I don't know whether we price match.")
    (True, False)
    """
    lower = _REGRET.sub("", sentence.lower().replace("’", "'").strip())
    if lower.rstrip("\"')*_ ").endswith("?"):
        return False
    first, *others = _CLAUSE.split(lower)
    return _is_policy(first) or any(_is_policy(clause) or _has_time(clause) for clause in others)


def _is_policy(clause: str) -> bool:
    if _UNKNOWING.search(clause):
        return False
    if any(pattern.search(clause) for pattern in (_WE, _CLAIM, _OFFER)):
        return True
    if not _PERSONAL.search(clause) and (_STATE.search(clause) or _PASSIVE.search(clause)):
        return True
    is_exclamation = clause.endswith("!")
    return not is_exclamation and (_PROMISE.search(clause) or _INSTRUCTION.search(clause)) is not None


def _has_time(clause: str) -> bool:
    """Whether the clause after "but" or a semicolon states a time, beside an admission that something is not known."""
    return not (_UNKNOWING.search(clause) or _PERSONAL.search(clause) or _CONTACT.search(clause)) and bool(
        _TIME.search(clause)
    )
