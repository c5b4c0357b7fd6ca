"""Finds sentences that promise, require or claim something, which a classifier of small talk may take for mere chat.

"You can return it within 30 days", "If you cancel, you pay half": such sentences address the reader as chat does, and
state what knowledge can confirm. So do policies, in which a shop, an office or a team says what it does, did or asks
for: "Sorry, we don't deliver on Sundays", "I've refunded your order", "Please keep the receipt".

"I'm not sure, but I do know that he wrote it in 1985" admits ignorance and states a year; "I moved it to the trash"
says what the speaker did. Both are claims. Questions, small talk, wishes, advice, what somebody likes, and what
somebody does not know state nothing.

Small talk states nothing: greetings, thanks, wishes, goodbyes, offers of help, passing a user on. Every clause of it
has a phrase of small talk, and no word that says more: "Hi Anna, thanks for asking!" is small talk, and "Thanks, the
refund is on its way." is not. The rules are about English.
"""

from __future__ import annotations

import re

from .calendar import DAYS

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
_POLICY_OFFER = re.compile(
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
_CONTACTING = re.compile(r"\b(?:ask|call|contact|e-?mail|reach|ring|visit|write)\b")
_TIME = re.compile(rf"\d|\b(?:{'|'.join(DAYS)})s?\b")
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
    if any(pattern.search(clause) for pattern in (_WE, _CLAIM, _POLICY_OFFER)):
        return True
    if not _PERSONAL.search(clause) and (_STATE.search(clause) or _PASSIVE.search(clause)):
        return True
    is_exclamation = clause.endswith("!")
    return not is_exclamation and (_PROMISE.search(clause) or _INSTRUCTION.search(clause)) is not None


def _has_time(clause: str) -> bool:
    """Whether the clause after "but" or a semicolon states a time, beside an admission that something is not known."""
    return not (_UNKNOWING.search(clause) or _PERSONAL.search(clause) or _CONTACTING.search(clause)) and bool(
        _TIME.search(clause)
    )


_NICE = (
    r"(?:amazing|awesome|beautiful|brilliant|cool|excellent|exciting|fantastic|good|great|interesting|kind|lovely|nice"
    r"|perfect|pleasant|super|terrific|wonderful)"
)
_DAY = r"(?:day|morning|afternoon|evening|night|week|weekend|time|trip|journey|birthday|holidays?|christmas|year)"
_PHRASE = re.compile(
    # greetings, thanks, wishes, goodbyes
    r"\b(?:hi+|hello+|hey+|hiya|howdy|greetings|thanks|thank you|cheers|congratulations|congrats|(?:good)?bye"
    r"|farewell|no (?:problem|worries)|don't mention it|my pleasure|a (?:real )?pleasure|pleasure is all mine"
    r"|(?:i|we|i'd|much) (?:(?:really|would|do) )*appreciated?|see you|take care|good luck"
    r"|talk (?:to you )?(?:soon|later)"
    r"|best wishes|regards|all the best|sleep well|stay safe|likewise|you too|same to you|how are you)\b"
    r"|^(?:(?:you're|you are) (?:\w+ )?)?welcome(?! to)\b|\bwelcome back\b|^(?:i |we )?hope (?:this|that|it) helps$"
    rf"|\b(?:{_NICE}|happy|merry|enjoy your) (?:{_NICE} |rest of your )?{_DAY}\b"
    rf"|\b(?:{_NICE}|glad|happy|pleased|delighted) (?:to|that) (?:have|hear|know|meet|see|you|it)\b"
    rf"|\b(?:{_NICE}) (?:chatting|talking|meeting|to (?:chat|talk|speak))\b"
    # offers of help, and who offers it
    r"|\b(?:i|we|i'm|i'd|i'll|we're|we'd|we'll|glad|happy|pleased|delighted|here|ready|love) (?:\w+ )*?"
    r"(?:help|assist|answer|support|chat|talk|be of service|for you|do for you)\b"
    r"|\b(?:how|what) (?:can|may|could) (?:i|we)\b|\b(?:glad|happy) (?:that )?(?:i could|you)\b"
    r"|^(?:i'm|i am|as) (?:just )?an? (?:ai|virtual|digital|language|chat)? ?"
    r"(?:ai|assistant|bot|chatbot|model|program)$"
    r"|\bdon't have (?:any )?(?:feelings|emotions)\b"
    # passing the user on, and asking for patience
    r"|\b(?:let me|i'll|i will|i can|we'll|we can) (?:connect you|transfer you|put you through|hand you over"
    r"|pass (?:that|this|it|your question)|check (?:that|this|it)|look (?:into|(?:that|this|it) up)"
    r"|find (?:that|this|it) out)\b"
    r"|^(?:just )?(?:one|a) (?:moment|second|minute)(?: please)?$|\b(?:hold on|bear with me)\b"
    # reactions
    rf"|\bwhat an? {_NICE}\b|^(?:(?:that's|that is|sounds|that sounds) )?(?:an? )?(?:(?:really|so|very) )?{_NICE}"
    r"(?: (?:question|idea|to (?:hear|know|see)))?$"
    r"|^(?:i'm|i am|we're|doing|feeling)(?: (?:doing|feeling|very|quite|really|pretty))*"
    r" (?:fine|good|great|okay|ok|well)\b"
    r"|^(?:ok|okay|got it|i see|i understand|understood|noted|makes sense|fair enough|wow|oh|aww|haha|lol)$"
)
_TALK_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_TALK_WORDS = frozenset(
    _TALK_WORD.findall("""
    a aboard about afternoon again agent ahead ai all always am an and answer any anything anytime appreciate
    appreciated are around as ask asking assist assistance assistant at aww awww back be bear been being best better
    birthday bot both bye can care certainly chat chatbot chatting check cheers christmas colleague colleagues
    congrats congratulations connect contacting could day dear definitely delighted desk did digital do doing don't
    else emotions enjoy evening ever every everybody everyone everything fair farewell feedback feel feeling
    feelings find fine for friend friendly from front further get getting glad go goodbye got greetings haha hand
    happy have having hear hearing hello help helping helps here hey hi hiya hm hold holiday holidays hope how howdy
    human i i'd i'll i'm i've idea if in information into is it it's joining journey just kind know language large
    later let letting like likewise lol look lot love luck makes many may me mean meet meeting mention merry message
    mine minute model moment more morning most much my need new night no not noted nothing now of off oh ok okay on
    one or other our out over pass patience person please pleased pleasure pretty problem program put question
    questions quite reaching ready real really regards rest safe same say second see seeing sense service sleep so
    someone soon sounds speak speaking stay stopping such support sure take talk talking team tell thank thanks that
    that's the them then there things think this through time to today tomorrow tonight too touch transfer trip
    truly trust understand understanding understood until up us very virtual visit visiting waiting was way we we'd
    we'll we're week weekend welcome well what what's whatever whenever while wish wishes with wonderful words
    worries would wow writing year you you'd you're your yourself
    """)
)
_OPENING = re.compile(r"(?:sure(?: thing)?|of course|certainly|absolutely|definitely|alright|all right|well|please)")
"""Words that may stand before small talk, and that answer a question when they are alone."""
_GREETED = re.compile(
    r"\b((?i:hi|hello|hey|dear|thanks|thank you|welcome|bye|goodbye"
    r"|good (?:morning|afternoon|evening|night)|meet you(?: too)?|back)),?"
    r" (?:[A-Z][\w'.-]+(?: |(?=[,.!;]|$))){1,2}"
)
"""Who is greeted or thanked."""
_LONGEST_TALK = 300
"""Characters of small talk, at most."""
_BREAK = re.compile(
    r"[,;:!.…–—()\"“”*~\n]+|\s-\s|\s(?:and|but|so)\s(?=(?:i|we|you|have|how|i'm|i'd|i'll|it|it's|that|the)\b)"
)
_NICE_WORD = re.compile(_NICE)


def is_small_talk(sentence: str) -> bool:
    """Whether a sentence only greets, thanks, wishes well, takes leave, or offers help.

    >>> is_small_talk("Hello, Anna, how nice to meet you!"), is_small_talk("Sure, I can help with that.")
    (True, True)
    >>> is_small_talk("Hello, the shop is open."), is_small_talk("Yes."), is_small_talk("It can help.")
    (False, False, False)
    """
    if len(sentence) > _LONGEST_TALK:
        return False
    lower = _GREETED.sub(r"\1 ", sentence.replace("’", "'")).lower().replace("?", "!")
    clauses = [" ".join(words) for clause in _BREAK.split(lower) if (words := _TALK_WORD.findall(clause))]
    stated = [clause for clause in clauses if not _OPENING.fullmatch(clause)]
    return bool(stated) and all(map(_is_talk, stated))


def _is_talk(clause: str) -> bool:
    if _PHRASE.search(clause) is None:
        return False
    return all(word in _TALK_WORDS or _NICE_WORD.fullmatch(word) for word in clause.split())


_WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_FIRST_PERSON = frozenset({"i", "i'm", "i've", "i'd", "i'll", "my", "me", "mine", "myself"})
_ABSTAINING = re.compile(
    r"\b(?:don't|do not|doesn't|does not|didn't|couldn't|could not|can't|cannot|can not|unable to|not able to)\s+"
    r"(?:\w+\s+)?(?:know|find|have (?:\w+ )?(?:information|details|data)|see (?:any|that)|help|answer|say"
    r"|tell|share|provide|confirm|check|access|mention|specify)\b"
    r"|\b(?:not sure|no information|no idea|sorry|apologi[sz]e|unfortunately i|afraid i)\b"
)
_OFFER = re.compile(
    r"\byou(?:'ll| will| can| may| must| could| need to| have to| are entitled to| are eligible| get| receive"
    r"| pay| qualify| won't| cannot| can't| don't (?:need|have) to|'re (?:entitled|eligible)) \w+"
)
_CONTACT = re.compile(
    r"\b(?:contact|reach|call|ask|email|e-mail|write|visit|tell|let|say|imagine|see|bet|guess|feel|try|enjoy|love|like|think"
    r"|believe|want|count on|do it)\b"
)
_CONDITION = re.compile(r"\b(?:if|unless|provided|as long as|only when|in case|until|before|after|within|without)\b")
_POLITE = re.compile(
    r"\b(?:any (?:other |more |further )?(?:questions?|help|problems?)|let me know|feel free|anything else)\b"
)


def states_terms(sentence: str, *, amounts: bool) -> bool:
    """Whether a sentence states a value, a condition, an offer or a policy; no question, refusal or own story.

    ``amounts``: whether it has a number, a date, a time or a code.

    >>> states_terms("You can return it if it is unopened.", amounts=False)
    True
    >>> states_terms("It's 20 euros, I think.", amounts=True), states_terms("I have 2 dogs!", amounts=True)
    (True, False)
    >>> states_terms("I don't know, please call 0124 556677.", amounts=True), states_terms("At 9?", amounts=True)
    (False, False)
    """
    if states_policy(sentence):
        return True
    if abstains(sentence):
        return False
    lower = _fold(sentence)
    words = _WORD.findall(lower)
    is_personal = any(word in _FIRST_PERSON for word in words)
    if amounts:
        return not is_personal or any(word in ("you", "your") for word in words) or _HEDGE.search(lower) is not None
    offer = _OFFER.search(lower)
    if offer is None or is_personal or lower.endswith("!"):
        return False
    return _CONTACT.search(lower) is None and (_CONDITION.search(lower) is not None or len(words) > _SHORT)


def asserts(sentence: str) -> bool:
    """Whether a sentence says something of others than its speaker, and does not abstain or exclaim.

    >>> asserts("You withdrew from the course."), asserts("I love soy."), asserts("Poor birds!")
    (True, False, False)
    """
    lower = _fold(sentence)
    return not (abstains(sentence) or lower.endswith("!") or _FIRST_PERSON.intersection(_WORD.findall(lower)))


def abstains(sentence: str) -> bool:
    """Whether a sentence asks, says that its speaker does not know, apologises, greets, or offers help.

    >>> abstains("Sorry, I couldn't find that."), abstains("What is your order number?"), abstains("It costs 20 euros.")
    (True, True, False)
    """
    lower = _fold(sentence)
    asks = lower.rstrip("\"')*_ ").endswith("?")
    is_polite = _POLITE.search(lower) is not None or is_small_talk(sentence)
    return asks or is_polite or _ABSTAINING.search(lower) is not None


def _fold(sentence: str) -> str:
    return sentence.lower().replace("’", "'").strip()


_HEDGE = re.compile(r"\bi (?:think|believe|guess|would say)\b|\bi'm (?:fairly |pretty |quite )?(?:sure|certain)\b")
_SHORT = 4
"""Words of a sentence at most that offers nothing: "You can do it."."""
_CLAIM_CLAUSE = re.compile(
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
_SOURCE = r"\b(?:context|documents?|information|knowledge|materials?|passages?|sources?{})\b"
_DENIED = r"\bnot?\b|n't\b|\bnothing\b"
_NO_SOURCE = (
    (re.compile(_SOURCE.format("|texts?")), re.compile(_DENIED)),
    (re.compile(rf"{_DENIED}|\black\w*\b"), re.compile(_SOURCE.format(""))),
)
"""What a source does not say is not what the world is like: the second follows the first in a line."""
_LEADING_HEDGE = re.compile(
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
_PAST = (
    r"(?:\w{2,}ed|began|bought|broke|brought|built|came|caught|chose|cut|did|drew|drove|fell|fought|found|froze|gave|got"
    r"|grew|had|held|hit|kept|knew|led|left|let|lost|made|met|paid|put|ran|read|rose|said|sang|saw|sent|set|sold|spent"
    r"|split|sunk|taught|claimed|took|went|won|wore|wrote|written|done|been|gone|known|taken|given|seen|shown|born)"
)
_DOING = re.compile(
    rf"\b(?:i|we)(?:'ve| have| had)?(?: (?:just|already|also|now|finally|once|all|only))* {_PAST}\b"
    r"|\b(?:i|we) (?:can|will|am able to|are able to) (?:\w+ )?\w+"
    r"|\b(?:i|we) (?:have|own|work|live|play|run|teach|study|speak|use|drive|keep|support|handle|offer)\b"
    r"|\b(?:i'm|i am|we're|we are) (?:an?|from|the|\w+ing)\b"
)
_FINITE = re.compile(
    rf"\b(?:is|are|was|were|isn't|aren't|wasn't|weren't|has|hasn't|have|haven't|had|hadn't|can|can't|cannot|will|won't|does"
    rf"|doesn't|do|don't|did|didn't|used to|{_PAST})\b|(?:\w'(?:s|re|ve|ll))\b|^(?:\w+ ){{1,4}}[a-z]{{2,}}s\b"
    r"|^(?:they|he|she|it|these|those) \w+"
)
_SHORT_CLAIM = 3
"""Words of a clause that states something, at least."""
_LONG_CLAIM = 300
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
    return abstains(text) or any(map(_has_no_source, text.lower().replace("’", "'").split("\n")))


def _has_no_source(line: str) -> bool:
    """Whether a line says what a source does not. Each expression reads it once: joined by ``.*`` they would read it
    again after each "no"."""
    return any(
        (begin := first.search(line)) is not None and second.search(line, begin.end()) is not None
        for first, second in _NO_SOURCE
    )


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
    if len(_WORD.findall(claimed)) >= _SHORT_CLAIM and _PARTNERS.search(claimed) is None:
        return True
    return any(_is_claim(clause.strip(" \"'*_,")) for clause in _CLAIM_CLAUSE.split(lower) if clause)


def _is_claim(clause: str) -> bool:
    if len(clause) > _LONG_CLAIM:
        return True
    clause = _LEADING_HEDGE.sub("", clause)
    if len(_WORD.findall(clause)) < _SHORT_CLAIM or abstains(clause) or is_small_talk(clause):
        return False
    if _ADVICE.search(clause) or _OPINION.search(clause) or _has_no_source(clause):
        return False
    if _NAMED.search(clause):
        return _LIKING.search(clause) is None and _DOING.search(clause) is not None
    return _LIKING.search(clause) is None and _FINITE.search(clause) is not None
