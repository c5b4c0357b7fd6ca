"""Weak labels: rules that vote whether a sentence of chat asserts something that can be checked, or abstain.

Santhanam et al. 2021, Table 1, has the kinds of non-verifiable responses: opinion, suggestion, topic switch,
question, personal information; thanks, greetings and bare reactions are added. A sentence gets a label only when
at least one rule votes and no two disagree.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from .chat_style import APOSTROPHES

LABELS = ("verifiable", "non-verifiable")
VERIFIABLE, NOT_VERIFIABLE = LABELS

_REACTION = re.compile(
    r"""(?:(?:oh|wow|yes|yeah|yea|yep|yup|no|nope|nah|well|(?:ha)+|lol|ok|okay|true|right|sure|exactly|interesting|cool
    |nice|hmm+|huh|ah|really|great|awesome|amazing|crazy|insane|agreed|absolutely|definitely|indeed|maybe|probably|seriously
    |and|but|so|also|anyway|hey|hi|hello|man|gosh|good|ya|thanks|sorry|totally|funny|weird|same|too|either|me
    )\b[\s,.!?;:…-]*)+""",
    re.VERBOSE,
)
_LEAD = re.compile(
    r"""(?:(?P<report>did\ you\ (?:also\ |ever\ )?(?:know|hear)|(?:do\ you\ know|have\ you\ heard)(?=\ that\b)
    |can\ you\ believe|i(?:'ve|\ have)?(?:\ just|\ also)?\ (?:heard|read|learned|know)|i\ was\ reading|apparently
    |i(?:\ was|\ am|'m)\ \w+\ to\ (?:hear|learn|read|see)|i\ (?:did\ not|didn't|didnt|never)\ (?:know|knew|realize)
    |supposedly|it\ says|they\ say|fun\ fact|in\ fact|actually|(?:it\ )?turns\ out|according\ to)
    |(?:i\ (?:really\ |do\ |also\ )?(?:think|believe|guess|suppose)|i'm\ (?:pretty\ )?sure|i\ am\ sure)
    )\b[\s,:]*(?:that\b\s*)?""",
    re.VERBOSE,
)
_ASKED = re.compile(r"(?:if|whether|why|how|what|who|when|where|about|any|of)\b")
"""What may follow "did you know" in a question that reports nothing."""
_REPORTING = re.compile(rf"\bdid you (?:also )?(?:know|hear) (?!{_ASKED.pattern})\w+ \w+ \w+")
_TAG = re.compile(
    r",?\ (?:right|huh|correct|(?:is|are|was|were|do|does|did|has|have|ca|wo)n't\ (?:it|they|he|she|you))\ ?\?$",
    re.VERBOSE,
)
_PERSONAL = re.compile(r"(?:i|i'm|i've|i'd|i'll|im|ive|we|we're|we've|we'd|my|our|mine|me|you|you're|you've|your|u)\b")
_ELSE = re.compile(r"[,;] (?:and |but |because )?(?:it|it's|he|he's|she|she's|they|they're|there|this|which|who|the)\b")
_SOCIAL = re.compile(
    r"""\b(?:thank(?:s|\ you)|bye|good\ (?:morning|evening|night|day|luck)|how\ are\ you|how's\ it\ going|take\ care
    |(?:nice|great|good|fun|pleasure|enjoyed|awesome)\ (?:to\ )?(?:chat|talk|speak|meet)\w*
    |have\ a\ (?:great|good|nice|wonderful|lovely)\ (?:one|day|night|evening|weekend)|you\ too
    |(?:chatting|talking)\ (?:to|with)\ you)\b""",
    re.VERBOSE,
)
_SUGGESTION = re.compile(
    r"""(?:(?:you|we|they|people|everyone)(?:\ \w+)?\ (?:should|could|might\ want|ought|need\ to|must|have\ to)|let's
    |lets|try|check\ (?:it\ )?out|why\ not|why\ don't|how\ about|make\ sure|maybe\ (?:you|we)|please|don't\ forget
    |go\ \w+)\b""",
    re.VERBOSE,
)
_EVALUATION = re.compile(
    r"""\b(?:great|good|bad|best|worst|better|worse|amazing|awesome|cool|nice|crazy|insane|funny|hilarious|weird|strange
    |beautiful|boring|interesting|terrible|horrible|awful|fun|sad|silly|stupid|ridiculous|impressive|wonderful|lovely
    |favou?rite|scary|neat|wild|unbelievable|incredible|fascinating|cute|delicious|overrated|underrated|shame|smart|wow
    |should|would|could|might|must|probably|maybe|perhaps|hopefully|seems?|guess|imagine|wonder|wish|hope)\b""",
    re.VERBOSE,
)
_FIGURE = re.compile(
    r"""\d|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|million|billion
    |percent|half|twice|century|centuries|decade)\b""",
    re.VERBOSE,
)
_SUPERLATIVE = re.compile(
    r"\bthe (?:very )?(?:first|last|only|second|third|oldest|youngest|\w{3,}est|(?:most|least) \w+)\b"
)
_DEFINITION = re.compile(
    r"""\b(?:is|are|was|were|be|been|it's|he's|she's|they're)\ (?:\w+ly\ |also\ |often\ |usually\ )?
    (?:an?|one\ of|called|known|made|born|founded|located|named|used|built|invented|created|written|directed|released
    |based|banned|required|allowed|formed|considered|owned|produced|published|discovered|designed|developed
    |established)\b""",
    re.VERBOSE,
)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|did|can|won|made|wrote|began|became|took|got|sold|said|\w{2,}ed)\b"
)
_NAME = re.compile(r"(?<=[\w,] )(?!I\b)[A-Z]\w+")


@dataclass(frozen=True, slots=True)
class SentenceParts:
    """A sentence as the rules see it; lower-cased except ``cased``."""

    text: str
    core: str
    """Without the reactions it begins with ("yeah, wow")."""
    claim: str
    """The core without "did you know that", "i think" and the like."""
    cased: str
    """The claim as it was written."""
    reported: bool
    """Whether it begins as a report: "did you know", "i heard"."""
    asks: bool
    """Whether it is a question, and neither a report nor a statement with a tag ("right?")."""

    @classmethod
    def of(cls, sentence: str) -> SentenceParts:
        """Split a sentence into its parts."""
        written = APOSTROPHES.sub("'", " ".join(sentence.replace("’", "'").split()))
        written = written.replace(" '", "'").replace(" n't", "n't")
        text = written.lower()
        reactions = _REACTION.match(text)
        begin = reactions.end() if reactions else 0
        core, reported = text[begin:], False
        while lead := _LEAD.match(text, begin):
            reported |= lead["report"] is not None
            begin = lead.end()
        claim = text[begin:].strip()
        cased = written[begin:].strip()
        # What is left of "i didn't know that" or "i think so" does not claim anything.
        if len(claim.split()) < 3:
            claim, cased, reported = core, written[len(written) - len(core) :], False
        reports = (reported and not _ASKED.match(claim)) or _REPORTING.search(text) or _TAG.search(text)
        asks = text.rstrip(" !\"'").endswith("?") and not reports
        return cls(text, core, claim, cased, reported, asks)

    @property
    def stated(self) -> bool:
        """Whether it is long enough for a statement, about neither speaker nor listener, and not asked."""
        return len(self.claim.split()) >= 5 and not _PERSONAL.match(self.claim) and not self.asks


Rule: TypeAlias = Callable[[SentenceParts], str | None]


def vote_question(parts: SentenceParts) -> str | None:
    """A question asserts nothing."""
    return NOT_VERIFIABLE if parts.asks else None


def vote_social(parts: SentenceParts) -> str | None:
    """Greetings, thanks and good-byes."""
    return NOT_VERIFIABLE if _SOCIAL.search(parts.text) else None


def vote_reaction(parts: SentenceParts) -> str | None:
    """Nothing left after "yeah, wow"."""
    return NOT_VERIFIABLE if len(parts.core.strip(" .!?,").split()) <= 1 else None


def vote_personal(parts: SentenceParts) -> str | None:
    """About the speaker or the listener: liking, biography, ignorance; not when it goes on about something else."""
    return NOT_VERIFIABLE if _PERSONAL.match(parts.claim) and not _ELSE.search(parts.claim) else None


def vote_suggestion(parts: SentenceParts) -> str | None:
    """Advice and invitations."""
    return NOT_VERIFIABLE if _SUGGESTION.match(parts.claim) else None


def vote_evaluation(parts: SentenceParts) -> str | None:
    """Evaluation or conjecture."""
    return NOT_VERIFIABLE if _EVALUATION.search(parts.claim) else None


def vote_figure(parts: SentenceParts) -> str | None:
    """A statement with a number."""
    return VERIFIABLE if parts.stated and _FIGURE.search(parts.claim) else None


def vote_name(parts: SentenceParts) -> str | None:
    """A statement with a name and a finite verb; names are not recognised in a text in capitals."""
    is_statement = parts.stated and _FINITE.search(parts.claim) and not parts.cased.isupper()
    return VERIFIABLE if is_statement and _NAME.search(parts.cased) else None


def vote_report(parts: SentenceParts) -> str | None:
    """A statement that was heard or read."""
    return VERIFIABLE if parts.stated and parts.reported and _FINITE.search(parts.claim) else None


def vote_superlative(parts: SentenceParts) -> str | None:
    """The first, the only, the largest."""
    return VERIFIABLE if parts.stated and _SUPERLATIVE.search(parts.claim) else None


def vote_definition(parts: SentenceParts) -> str | None:
    """What something is, is called, is made of, was founded by."""
    return VERIFIABLE if parts.stated and _DEFINITION.search(parts.claim) else None


RULES: tuple[Rule, ...] = (
    *(vote_question, vote_social, vote_reaction, vote_personal, vote_suggestion, vote_evaluation),
    *(vote_figure, vote_name, vote_report, vote_superlative, vote_definition),
)


def assign_weak_label(sentence: str) -> str | None:
    """The label that the rules agree on; None when all abstain or two disagree.

    >>> assign_weak_label("Yeah, did you know the university's locker room was painted pink in 1979?")
    'verifiable'
    >>> assign_weak_label("I love watching football with my dad!"), assign_weak_label("He was a great player in 1979.")
    ('non-verifiable', None)
    """
    parts = SentenceParts.of(sentence)
    votes = {vote for rule in RULES if (vote := rule(parts)) is not None}
    return votes.pop() if len(votes) == 1 else None
