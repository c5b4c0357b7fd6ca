"""Statements of bare answers: "Yes." after "Is the warranty 36 months?" says that the warranty is 36 months.

The statement is made of the question's own words, by rules about English. A request and small talk state nothing, and
their answers are read as they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from groundwire.runtime.texts.characters import is_digits, is_letters

from .sentences import Sentence, read_sentences, sentences
from .terms import is_small_talk, states_claim, states_terms

_PRONOUN = r"(?:it|he|she|they|you|we|i|that|this|these|those|there)"
_AUXILIARY = r"(?:is|are|was|were|am|does|do|did|has|have|had|can|could|will|would|shall|should|may|might|must)"
_FILLER = (
    r"(?:oh|well|hi|hello|hey|sorry|please|sir|madam|thanks|thank you|no (?:problem|worries)|(?:with|my) pleasure"
    r"|(?:happy|glad) to help|of course|i (?:think|believe)(?: so)?|great|(?:great|good) question|i'm afraid|sadly"
    r"|unfortunately|actually|really|okay|ok|at all|that's it|you bet|for sure|very much)"
)
_YES = (
    r"(?:yes|yeah|yep|yup|aye|sure|sure thing|absolutely|definitely|certainly|of course|indeed|correct|right|exactly"
    r"|precisely|true|affirmative|naturally|totally|always|you bet|for sure|i (?:think|believe) so"
    r"|(?:that|it|this)(?:'s| is) (?:(?:absolutely|perfectly|quite|exactly) )?(?:right|correct|true|so|the case)"
    rf"|you(?:'re| are) (?:absolutely |quite )?(?:right|correct)|{_PRONOUN} (?:(?:certainly|definitely|sure|indeed) )?"
    rf"{_AUXILIARY}(?: indeed)?)"
)
_NO = (
    r"(?:no|nope|nah|never|not at all|(?:absolutely|certainly|definitely|of course|unfortunately|sadly|probably) not"
    r"|no way|false|incorrect|wrong|untrue|negative|i'm afraid not|not really|i (?:don't|do not) think so"
    r"|(?:that|it|this)(?:'s| is) (?:not (?:right|correct|true|so|the case)|wrong|false|incorrect|untrue)"
    rf"|{_PRONOUN} (?:{_AUXILIARY}(?: not|n't)|can't|cannot|won't))"
)
_IS_YES, _IS_NO = (re.compile(rf"(?:(?:{answer}|{_FILLER}) )+") for answer in (_YES, _NO))
_HAS_YES, _HAS_NO = (re.compile(rf"(?:^|(?<= )){answer} (?!problem|worries)") for answer in (_YES, _NO))
_LONGEST, _SEARCHED = 80, 400
"""Characters of a bare answer at most, and of a response in which one is looked for."""
_LONGEST_TURN = 1_000
"""Characters of the end of a turn in which its question is looked for."""
_STOP = re.compile(r"[.!?…\n]+")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)*")


def read_answer(sentence: str) -> bool | None:
    """Return whether a sentence only says yes (True) or no (False); None if it says more.

    >>> read_answer("Yes, of course!"), read_answer("No, it isn't."), read_answer("Yes, until 8.")
    (True, False, None)

    Args:
        sentence: A sentence of a response.
    """
    if len(sentence) > _LONGEST:
        return None
    folded = "".join(f"{word} " for word in _WORD.findall(sentence.lower().replace("’", "'")))
    if _IS_NO.fullmatch(folded) and _HAS_NO.search(folded):
        return False
    return True if _IS_YES.fullmatch(folded) and _HAS_YES.search(folded) else None


class StatedAnswer(NamedTuple):
    """A bare answer to a question that states something."""

    start: int
    end: int
    """The answer's characters in the response."""
    statement: str
    """What it says; empty if the rules make no statement of the question."""
    denied: str = ""
    """What it says is not so; empty for a yes."""


def state_answer(response: str, turn: str) -> StatedAnswer | None:
    """Return the bare answer of a response to a question, and what it says; None without either.

    >>> state_answer("Sure, no problem!", "Is the warranty 36 months?").statement
    'The warranty is 36 months.'
    >>> state_answer("Sure, no problem!", "Can you help me?")

    Args:
        response: A response; sentences of small talk may be before the answer.
        turn: The turn before it, which ends with the question.
    """
    if "?" not in turn or all(read_answer(part) is None for part in _STOP.split(response[:_SEARCHED])):
        return None
    for sentence in read_sentences(response):
        is_yes = read_answer(sentence.text)
        if is_yes is not None:
            return _state(sentence, turn, is_yes=is_yes)
        if not is_small_talk(sentence.text):
            return None
    return None


def answers_turn(sentence: str, before: str) -> bool:
    """Return whether a sentence answers the turn before its response: the first one, or a yes or no after small talk.

    Args:
        sentence: A sentence of a response.
        before: What the response has before it.
    """
    return not before.strip() or (read_answer(sentence) is not None and is_small_talk(before))


def _state(answer: Sentence, turn: str, *, is_yes: bool) -> StatedAnswer | None:
    *before, last = sentences(turn[-_LONGEST_TURN:])
    question = " ".join(last.text.split())
    if not question.endswith("?"):
        return None
    if before and _ASKS_BACK.fullmatch(question):
        question = before[-1].text
    asked, statement = declare_question(question), declare_question(question, is_yes=is_yes)
    if asked is None or statement is None or (_OWN.match(statement) and not _states_something(asked)):
        return None
    return StatedAnswer(answer.start, answer.end, _end(statement), "" if is_yes else _end(asked))


def _end(statement: str) -> str:
    return f"{statement[:1].upper()}{statement[1:]}." if statement else ""


def _states_something(text: str) -> bool:
    return states_claim(text) or states_terms(text, amounts=any(map(is_digits, text)))


_ASKS_BACK = re.compile(
    r"(?:(?:is|isn't|was) (?:that|this|it) (?:really )?)?(?:right|correct|true|so|the case|accurate)\?", re.IGNORECASE
)
"""What is asked about the sentence before."""
_OWN = re.compile(r"(?:i|we)\b", re.IGNORECASE)
_LEAD_IN = re.compile(
    r"(?:(?:so|and|but|ok|okay|oh|well|wait|hi|hello|hey|thanks|thank you|sorry|excuse me|please|also|then|great"
    r"|just to (?:confirm|check|be sure)|quick question|if i (?:may|can) ask)[,:!-]? )+",
    re.IGNORECASE,
)
_EMBEDDED = re.compile(
    r"(?:do you (?:happen to )?know|do you think|(?:can|could|would|will) you (?:please )?"
    r"(?:tell me|confirm|check|verify)|is it (?:true|correct|right)|are you (?:sure|saying)|did you know"
    r"|i(?:'d| would) like to know|i wonder|may i ask|do i understand (?:correctly|right)|am i right)"
    r"(?: (?:if|whether|that))? (?=\S)",
    re.IGNORECASE,
)
"""What is before the question itself: "could you tell me if"."""
_WH = r"(?:who|whom|whose|what|which|when|where|why|how)\b"
_REQUEST = re.compile(
    rf"(?:(?:in|on|at|for|from|to|by|with|about|until|since) )?{_WH}|.*,\s*{_WH}"
    r"|(?:can|could|would|will) you (?:(?:please|kindly|just|maybe) )*(?:tell|help|explain|give|show|say|send|repeat"
    r"|describe|recommend|suggest|share|elaborate|clarify|name|list|write|speak|wait|talk|look|see|hear|remind"
    r"|summari[sz]e|translate|be (?:so kind|more))\b"
    r"|(?:would you (?:like|mind|prefer|rather)|do you (?:want|mind|need)|shall (?:i|we)|may i|can i (?:ask|help)"
    r"|could i (?:ask|get)|can we talk|are you (?:there|ok|okay|ready|serious|kidding)|really)\b",
    re.IGNORECASE,
)
"""Questions that a yes or no does not make a statement of: for something else, for help, about what the other wants."""
_CHOICE = re.compile(r"\bor (?!(?:not|so|more|less|later|earlier)\b)", re.IGNORECASE)
_TAG = re.compile(
    r"(?P<stated>.+\S),? (?:right|correct|yes|no|true|ok|okay|is that (?:right|correct|true)"
    rf"|{_AUXILIARY}(?:n't| not)? {_PRONOUN}(?: not)?|(?:won't|can't|shan't) {_PRONOUN})",
    re.IGNORECASE,
)
_INVERTED = re.compile(
    rf"(?:(?P<verb>{_AUXILIARY})(?:n't| not)?|(?P<negated>won't|can't|shan't)) (?P<rest>\S+ .+)", re.IGNORECASE
)
_POSITIVE = {"won't": "will", "can't": "can", "shan't": "shall"}
_FINITE = re.compile(rf"\b{_AUXILIARY}\b|\w'(?:s|re|ve|ll)\b|\b[a-z]{{2,}}(?:s|ed)\b|^{_PRONOUN} \w+ ", re.IGNORECASE)
_AUXILIARY_INSIDE = re.compile(rf"(?<=\S ){_AUXILIARY}\b(?!n't)", re.IGNORECASE)
_TURNED = {
    **{"i": "you", "me": "you", "my": "your", "mine": "yours", "we": "you", "us": "you", "our": "your"},
    **{"you": "we", "your": "our", "am": "are"},
}
"""Words of the one who asks, as the one who answers says them."""


def declare_question(question: str, *, is_yes: bool = True) -> str | None:
    """Return what the answer to a yes/no question states, without its full stop.

    >>> declare_question("So does the warranty last 36 months?"), declare_question("Can I pay?", is_yes=False)
    ('the warranty does last 36 months', 'you can not pay')
    >>> declare_question("It's free, isn't it?"), declare_question("Is it 24 or 36?"), declare_question("How old?")
    ("It's free", '', None)

    Args:
        question: A sentence that ends with a question mark.
        is_yes: Whether the answer is yes.

    Returns:
        The statement; empty where the rules make none, and None where the question states nothing.
    """
    text = question.replace("’", "'").rstrip("?!. ")
    for opening in (_LEAD_IN, _EMBEDDED):
        if match := opening.match(text):
            text = text[match.end() :]
    if not text or _REQUEST.match(text):
        return None
    if _CHOICE.search(text):
        return ""
    inverted = _INVERTED.fullmatch(text)
    if inverted is None:
        with_tag = _TAG.fullmatch(text)
        stated = with_tag["stated"].rstrip(",") if with_tag else text
        return _turn((stated if is_yes else _deny(stated)).split()) if _FINITE.search(stated) else ""
    verb = (inverted["verb"] or _POSITIVE[inverted["negated"].lower()]).lower()
    words = inverted["rest"].split()
    if not is_yes and words[0].lower() == "there" and verb in _COPULAS and words[1].lower() in _SOME:
        return _turn(["there", verb, "no", *words[2:]])
    size = _find_subject(words, verb)
    verbs = [verb] if verb != "do" else []
    return _turn([*words[:size], *(verbs if is_yes else [verb, "not"]), *words[size:]])


def _turn(words: Sequence[str]) -> str:
    return " ".join(_TURNED.get(word.lower(), word) for word in words)


def _deny(statement: str) -> str:
    """A statement with its first auxiliary negated, or called false (``denial``)."""
    auxiliary = _AUXILIARY_INSIDE.search(statement)
    if auxiliary is None:
        return f"It is false that {statement}"
    return f"{statement[: auxiliary.end()]} not{statement[auxiliary.end() :]}"


_DETERMINERS = frozenset({
    *("a", "an", "the", "my", "your", "his", "her", "its", "our", "their", "this", "that", "these", "those", "no"),
    *("any", "every", "each", "some", "all", "both"),
})  # fmt: skip
_BINDING = frozenset({"of", "and"})
_OPENERS = frozenset({
    *("in", "on", "at", "for", "from", "to", "with", "by", "about", "under", "over", "within", "without", "until"),
    *("till", "during", "after", "before", "between", "than", "as", "like", "near", "into", "onto", "through", "per"),
    *("not", "still", "only", "also", "always", "ever", "never", "already", "just", "really", "currently", "usually"),
    *("more", "less", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven"),
    *("twelve", "twenty", "thirty", "forty", "fifty", "hundred", "thousand", "today", "tomorrow", "tonight", "now"),
    "soon",
})  # fmt: skip
"""Words that follow a verb rather than a noun."""
_PREDICATE = re.compile(
    r"\w+(?:ed|ing|able|ible)|open|closed|free|true|valid|safe|due|old|big|long|far|cheaper|near|likely|sold"
)
"""Words that follow a form of "be" or "have"."""
_SOME = frozenset({"a", "an", "any"})
_COPULAS = frozenset({"is", "are", "was", "were", "am", "has", "have", "had"})


def _find_subject(words: Sequence[str], verb: str) -> int:
    """How many of the words after the verb of a question are its subject; a guess by the words that follow."""
    low = [word.lower() for word in words]
    if re.fullmatch(_PRONOUN, low[0]) and (low[0] not in _DETERMINERS or len(words) == 2):
        return 1
    for index in range(1 + (low[0] in _DETERMINERS), len(words)):
        if low[index - 1] in _BINDING or low[index - 1] in _DETERMINERS or low[index] in _BINDING:
            continue
        opens = low[index] in _DETERMINERS or low[index] in _OPENERS or not is_letters(words[index][0])
        if verb in _COPULAS and (opens or _PREDICATE.fullmatch(low[index])):
            return index
        if opens:
            return max(1, index - 1)
    return len(words) - 1
