"""Finds sentences that are only small talk: greetings, thanks, wishes, goodbyes, offers of help, passing a user on.

Every clause of such a sentence has a phrase of small talk, and no word that says more: "Hi Anna, thanks for asking!" is
small talk, and "Thanks, the refund is on its way." is not. The rules are about English.
"""

from __future__ import annotations

import re

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
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_WORDS = frozenset(
    _WORD.findall("""
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
_NAME = re.compile(
    r"\b((?i:hi|hello|hey|dear|thanks|thank you|welcome|bye|goodbye"
    r"|good (?:morning|afternoon|evening|night)|meet you(?: too)?|back)),?"
    r" (?:[A-Z][\w'.-]+(?: |(?=[,.!;]|$))){1,2}"
)
"""Who is greeted or thanked."""
_LONGEST = 300
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
    if len(sentence) > _LONGEST:
        return False
    lower = _NAME.sub(r"\1 ", sentence.replace("’", "'")).lower().replace("?", "!")
    clauses = [" ".join(words) for clause in _BREAK.split(lower) if (words := _WORD.findall(clause))]
    stated = [clause for clause in clauses if not _OPENING.fullmatch(clause)]
    return bool(stated) and all(map(_is_talk, stated))


def _is_talk(clause: str) -> bool:
    if _PHRASE.search(clause) is None:
        return False
    return all(word in _WORDS or _NICE_WORD.fullmatch(word) for word in clause.split())
