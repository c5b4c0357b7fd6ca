"""Finds clauses that state something which a classifier of small talk may take for mere chat.

"I'm not sure, but I do know that he wrote it in 1985" admits ignorance and states a year; "I moved it to the trash"
says what the speaker did. Both are claims. Questions, small talk, wishes, advice, what somebody likes, and what
somebody does not know state nothing. The rules are about English.
"""

from __future__ import annotations

import re

from .terms import abstains, is_small_talk

_CLAUSE = re.compile(
    r"[;:.!…()\n]+\s*|,\s+|\s[–—-]\s|(?<=\?)\s+|(?:^|\s)(?:but|and|because|so|although|though|which)\s"
)
_KNOWN = re.compile(
    r"^.*?\b(?:(?:did|do) you (?:also )?know that|i (?:do |did |also |already )*(?:know|knew|heard|read|learned)"
    r"(?: that)?"
    r"|i've (?:also |just )?(?:heard|read|learned)(?: that)?(?! of\b)|i (?:thought|remember)(?: that)?"
    r"|(?:it's|it is|that's) \w+ that|(?:glad|happy|like|love|notice|noticed|realized?|sad|surprised) that"
    r"|fun fact|as far as i know)\b"
)
"""What introduces a claim, whatever comes before it: "I don't know who he is, but I do know that …"."""
_PARTNERS = re.compile(r"\b(?:i|me|my|we|us|you|your)\b")
_NO_SOURCE = re.compile(
    r"\b(?:context|documents?|information|knowledge|materials?|passages?|sources?|texts?)\b.*(?:\bnot?\b|n't\b|\bnothing\b)"
    r"|(?:\bnot?\b|n't\b|\bnothing\b|\black\w*\b).*\b(?:context|documents?|information|knowledge|materials?|passages?|sources?)\b"
)
"""What a source does not say is not what the world is like."""
_HEDGE = re.compile(
    r"^(?:(?:well|yes|yeah|yep|no|nope|oh|wow|actually|honestly|hmm|sure|also|then|just|and|but|so|really|i think"
    r"|i believe|i guess|i suppose|i'd say|i'm (?:\w+ )?(?:sure|certain)|if i remember right(?:ly)?|maybe|perhaps)"
    r"(?: that\b)?,?\s+)+"
)
_NAMED = re.compile(r"\b(?:i|i'm|i've|i'd|i'll|we|we're|we've|we'd|we'll)\b")
_LIKING = re.compile(
    r"\b(?:love|like|enjoy|prefer|hate|adore|miss|want|wish|hope|feel|felt|agree|wonder|imagine|bet|guess|suppose|mean"
    r"|think|believe|dislike|appreciate|recommend|suggest|need|care|stand|fan|into|excited|glad|sad|sorry|afraid"
    r"|happy|curious|interested|looking forward|can't wait|never|loved|liked|enjoyed|hated|favou?rite|would|i'd|we'd)\b"
)
_RATING = (
    r"(?:amazing|adorable|awesome|awful|bad|beautiful|best|better|boring|brilliant|clever|cool|crazy|cute|delicious|easy"
    r"|excellent|exciting|fair|fantastic|fascinating|favou?rite|fine|fun|funny|good|gorgeous|great|hard|horrible|impressive"
    r"|incredible|interesting|kind|lovely|lucky|neat|nice|perfect|pleasant|pretty|relaxing|right|sad|scary|smart|so"
    r"|strange|such|super|surprising|sweet|terrible|terrific|tough|true|weird|wise|wonderful|worse|worst|worth)"
)
_OPINION = re.compile(
    rf"\b(?:is|are|was|were|am|be|been|being|sounds?|sounded|looks?|looked|seems?|seemed|tastes?|feels?|'s|'re)\b.*\b{_RATING}\b"
    rf"|^(?:what|how)\b|\b{_RATING}(?: \w+)?$|\bin my (?:opinion|view)\b|\bif you ask me\b|\bmatters?\b"
)
_ADVICE = re.compile(
    r"\b(?:you|we|they|it) (?:\w+ )?(?:should|could|might|may|must)\b|\byou (?:need|have|want) to\b"
    r"|^(?:let's|let us|let me|why not|try|just|don't|do not|give|take|keep|be|go|have|ask|check|look"
    r"|tell|make|remember|enjoy|come|feel free|please)\b"
)
_DONE = (
    r"(?:\w{2,}ed|began|bought|broke|brought|built|came|caught|chose|cut|did|drew|drove|fell|fought|found|froze|gave|got"
    r"|grew|had|held|hit|kept|knew|led|left|let|lost|made|met|paid|put|ran|read|rose|said|sang|saw|sent|set|sold|spent"
    r"|split|sunk|taught|claimed|took|went|won|wore|wrote|written|done|been|gone|known|taken|given|seen|shown|born)"
)
_DOING = re.compile(
    rf"\b(?:i|we)(?:'ve| have| had)?(?: (?:just|already|also|now|finally|once|all|only))* {_DONE}\b"
    r"|\b(?:i|we) (?:can|will|am able to|are able to) (?:\w+ )?\w+"
    r"|\b(?:i|we) (?:have|own|work|live|play|run|teach|study|speak|use|drive|keep|support|handle|offer)\b"
    r"|\b(?:i'm|i am|we're|we are) (?:an?|from|the|\w+ing)\b"
)
_FINITE = re.compile(
    rf"\b(?:is|are|was|were|isn't|aren't|wasn't|weren't|has|hasn't|have|haven't|had|hadn't|can|can't|cannot|will|won't|does"
    rf"|doesn't|do|don't|did|didn't|used to|{_DONE})\b|(?:\w'(?:s|re|ve|ll))\b|^(?:\w+ ){{1,4}}[a-z]{{2,}}s\b"
    r"|^(?:they|he|she|it|these|those) \w+"
)
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_SHORT = 3
"""Words of a clause that states something, at least."""
_LONG = 300
"""Characters of a clause that is no chat, whatever it says; reading a longer one takes too long."""


def admits_ignorance(text: str) -> bool:
    """Return whether a text says that it, or what it was given, has no answer.

    >>> admits_ignorance("I don't know."), admits_ignorance("The sources do not say what a ticket costs.")
    (True, True)
    >>> admits_ignorance("A ticket costs £5.")
    False

    Args:
        text: A response, or a sentence of one.
    """
    return abstains(text) or _NO_SOURCE.search(text.lower().replace("’", "'")) is not None


def states_claim(sentence: str) -> bool:
    """Return whether a clause of a sentence states something about the world, or what its speaker did, has or can do.

    >>> states_claim("I'm not sure, but I do know that he wrote it in 1985."), states_claim("I moved it to the trash.")
    (True, True)
    >>> states_claim("I love that song!"), states_claim("Have you been there?"), states_claim("You should try it.")
    (False, False, False)

    Args:
        sentence: A sentence of a response.
    """
    lower = re.sub(r" ?' ?(?=(?:s|t|m|d|re|ve|ll)\b)", "'", sentence.lower().replace("’", "'").strip())
    opening = _KNOWN.match(lower)
    claimed = lower[opening.end() :] if opening is not None else ""
    if len(_WORD.findall(claimed)) >= _SHORT and _PARTNERS.search(claimed) is None:
        return True
    return any(_is_claim(clause.strip(" \"'*_,")) for clause in _CLAUSE.split(lower) if clause)


def _is_claim(clause: str) -> bool:
    if len(clause) > _LONG:
        return True
    clause = _HEDGE.sub("", clause)
    if len(_WORD.findall(clause)) < _SHORT or abstains(clause) or is_small_talk(clause):
        return False
    if any(pattern.search(clause) for pattern in (_ADVICE, _OPINION, _NO_SOURCE)):
        return False
    if _NAMED.search(clause):
        return _LIKING.search(clause) is None and _DOING.search(clause) is not None
    return _LIKING.search(clause) is None and _FINITE.search(clause) is not None
