"""Turns a question and its answer into one statement, by rules.

An example: "When was Elvis born?", "1935" → "Elvis was born in 1935".

People who read the paragraph wrote SQuAD's questions in their own words, so the statements paraphrase it, which copied
sentences do not. Where no rule fits, the statement is the question and the answer ("when …? in 1935").
"""

from __future__ import annotations

import random
import re

_BE = {"is", "are", "was", "were"}
_DO = {"do", "does", "did"}
_AUX = _BE | _DO | {"has", "have", "had", "can", "could", "will", "would", "should", "may", "might", "must"}
_AT = "by for with to from in of as at on into after under between about during since before until around near"
_PREPOSITIONS = set(_AT.split())
_BEFORE_ANSWER = re.compile(rf"\b({_AT.replace(' ', '|')})(?: the| a| an)?\s+$", re.IGNORECASE)
_PASSIVE = (
    "born built made held found founded known written won "
    "taken given seen begun drawn driven forbidden broken chosen fought "
    "bought brought sold told sent spent led lost left met paid "  # terms: literal
    "put read run set shot shown spoken struck taught thrown worn "
    "kept laid cut become grown hit hidden withdrawn overthrown undertaken called "
)
_PARTICIPLES = set(_PASSIVE.split())
_IRREGULAR = (
    "become:became begin:began break:broke bring:brought build:built "
    "buy:bought catch:caught choose:chose come:came cost:cost "
    "cut:cut deal:dealt do:did draw:drew drive:drove eat:ate "
    "fall:fell feel:felt fight:fought find:found fly:flew get:got "
    "give:gave go:went grow:grew have:had hear:heard hit:hit "
    "hold:held keep:kept know:knew lay:laid lead:led leave:left "
    "lend:lent lose:lost make:made mean:meant meet:met pay:paid "
    "put:put read:read ride:rode rise:rose run:ran say:said "
    "see:saw seek:sought sell:sold send:sent set:set "
    "shoot:shot show:showed sing:sang sit:sat speak:spoke spend:spent "
    "stand:stood steal:stole strike:struck swear:swore "  # terms: literal
    "take:took teach:taught tell:told think:thought throw:threw "  # terms: literal
    "understand:understood wear:wore win:won withdraw:withdrew write:wrote "  # terms: literal
)
_PAST: dict[str, str] = dict(pair.split(":") for pair in _IRREGULAR.split())
_FINITE = set(_PAST.values()) | {
    "has",
    "have",
    "had",
    "can",
    "could",
    "contains",
    "includes",
    "makes",
    "uses",
    "causes",
}
_NOUN_NEXT = {
    "the",
    "a",
    "an",
    "his",
    "her",
    "its",
    "their",
    "this",
    "that",
    "these",
    "those",
    "it",
    "he",
    "she",
    "they",
}
_CLAUSE = {"that", "who", "which", "where", "when", "before", "after", "whose"}
_WH_DATE = re.compile(
    r"(?:in |on |during )?(?:what|which) (?:year|date|day|month|century|decade|season)\b", re.IGNORECASE
)
_WORD = re.compile(r"[\w'’-]+")


def make_statement(question: str, answer: str, context: str, start: int, rng: random.Random) -> str:
    """The statement that ``question`` and ``answer`` make; ``start`` is the answer's offset in ``context``.

    The context gives only the preposition before the answer and the past tense of the question's verb, so a wrong
    answer can be stated in the same words as the right one.
    """
    bare_question = " ".join(question.split()).rstrip(" ?.")
    text = declare(bare_question, answer, find_preposition(context, start), set(_WORD.findall(context.lower())))
    if text is None or rng.random() < 0.1:
        text = rng.choice(("{q}? {a}", "{q}? it was {a}", "{q}? i think {a}")).format(q=bare_question, a=answer)
    return f"{text[:1].upper()}{text[1:]}."


def find_preposition(context: str, start: int) -> str:
    """The preposition right before the answer; empty when there is none."""
    match = _BEFORE_ANSWER.search(context[max(0, start - 32) : start])
    return match.group(1).lower() if match else ""


def declare(question: str, answer: str, before: str, vocabulary: set[str]) -> str | None:
    """The declarative form of a question with its answer, or None when no rule fits.

    ``before`` is the preposition to put before an answer of place or time, ``vocabulary`` the lower-cased words of the
    text that answers the question.

    >>> declare("When did the oil crisis begin", "October 1973", "in", {"began"})
    'the oil crisis began in October 1973'
    >>> declare("Who was the album produced by", "Jay Z", "by", set())
    'the album was produced by Jay Z'
    >>> declare("How many states does it have", "50", "", set())
    'it has 50 states'
    """
    words = question.split()
    low = [word.lower() for word in words]
    date = _WH_DATE.match(question)
    if low[:2] == ["how", "many"]:
        return _declare_how_many(words, low, answer)
    if date or low[0] in ("when", "where"):
        skip = len(date.group().split()) if date else 1
        lead = low[0] if low[0] in _PREPOSITIONS else before
        return _declare_adverbial(words[skip:], answer, lead or ("in" if date or low[0] == "when" else ""), vocabulary)
    if len(words) < 3:
        return None
    if low[0] in _PREPOSITIONS and low[1] in ("what", "which", "whom", "how"):
        verb_index = next((i for i in range(2, min(6, len(words))) if low[i] in _DO | _BE), None)
        return _declare_adverbial(words[verb_index:], answer, low[0], vocabulary) if verb_index is not None else None
    if low[0] not in ("who", "what", "which"):
        return _declare_trailing(words, low, answer)
    if low[1] in _BE:
        return _declare_copula(words[1], words[2:], answer)
    if low[1] in _DO:
        return _declare_do_support(words[1:], answer, vocabulary, beside=True)
    if low[1] in _AUX:
        return f"{answer} {' '.join(words[1:])}" if _is_participle(words[2]) or low[2] == "been" else None
    if low[0] == "who":
        return f"{answer} {' '.join(words[1:])}"
    for verb_index in range(2, min(5, len(words) - 1)):
        if low[verb_index] in _DO:
            return _declare_do_support(words[verb_index:], answer, vocabulary, beside=True)
        adjective = (
            words[verb_index + 1].islower() and low[verb_index + 1] not in _NOUN_NEXT and low[-1] not in _PREPOSITIONS
        )
        if (low[verb_index] in _BE and adjective) or words[verb_index] in _FINITE or words[verb_index].endswith("ed"):
            return f"{answer} {' '.join(words[verb_index:])}"
    return None


def _declare_how_many(words: list[str], low: list[str], answer: str) -> str | None:
    verb_indices = [i for i, word in enumerate(low) if word in _AUX and i > 2]
    if not verb_indices:
        return None
    verb_index = verb_indices[0]
    counted = " ".join(words[2:verb_index])
    amount = answer if answer.lower().endswith(low[verb_index - 1]) else f"{answer} {counted}"
    if low[verb_index] in _DO and low[-1] == "have":
        verb = {"do": "have", "does": "has", "did": "had"}[low[verb_index]]
        return f"{' '.join(words[verb_index + 1 : -1])} {verb} {amount}"
    if low[verb_index] in _BE and len(words) > verb_index + 1 and low[verb_index + 1] in ("there", "in"):
        rest = words[verb_index + 2 :] if low[verb_index + 1] == "there" else words[verb_index + 1 :]
        return " ".join(["there", words[verb_index], amount, *rest])
    if low[verb_index] in _BE and len(words) > verb_index + 1 and _is_participle(words[verb_index + 1]):
        return " ".join([amount, *words[verb_index:]])
    return None


def _declare_adverbial(words: list[str], answer: str, before: str, vocabulary: set[str]) -> str | None:
    """When, where, in what year: the answer goes to the end, after its preposition."""
    if len(words) < 3:
        return None
    verb, rest = words[0].lower(), words[1:]
    led = answer.split(" ", 1)[0].lower() in _PREPOSITIONS
    tail = f"{before} {answer}" if before and not led else answer
    if verb in _DO:
        return _declare_do_support(words, tail, vocabulary, beside=False)
    if verb not in _BE:
        return None
    participle = next((i for i in range(1, len(rest)) if _is_participle(rest[i])), len(rest))
    return " ".join([*rest[:participle], verb, *rest[participle:], tail])


def _declare_trailing(words: list[str], low: list[str], answer: str) -> str | None:
    """… on what date: the answer replaces the last words."""
    index = next((i for i in range(max(2, len(words) - 4), len(words)) if low[i] in ("what", "which", "whom")), None)
    return " ".join([*words[:index], answer]) if index is not None else None


def _declare_copula(verb: str, rest: list[str], answer: str) -> str | None:
    """Who or what is …: the answer goes before the verb, or to the end after a final participle or preposition."""
    last = rest[-1].lower()
    clause = any(word in _CLAUSE for word in rest)
    if last in _PREPOSITIONS or (_is_participle(rest[-1]) and not clause):
        cut = next((i for i in range(len(rest) - 1, 0, -1) if _is_participle(rest[i])), None)
        clause_text = " ".join([*rest[:cut], verb, *rest[cut:]]) if cut is not None else None
        return f"{clause_text} {answer.removeprefix(f'{last} ')}" if clause_text else None
    return " ".join([answer, verb, *rest])


def _declare_do_support(words: list[str], tail: str, vocabulary: set[str], *, beside: bool) -> str | None:
    """``did … verb …`` with the verb inflected; ``tail`` goes right after the verb (``beside``) or to the end.

    The verb is the first word whose inflected form is in ``vocabulary``, or else the last word of a short question.
    """
    auxiliary, rest = words[0].lower(), words[1:]
    for verb_index in range(1, len(rest)):
        short = verb_index == len(rest) - 1 <= 2 and not any(word.lower() in _PREPOSITIONS for word in rest)
        form = _inflect(rest[verb_index], auxiliary, None if short else vocabulary)
        if form:
            after = rest[verb_index + 1 :]
            if beside and not (after and after[-1].lower() in _PREPOSITIONS):
                return " ".join([*rest[:verb_index], form, tail, *after])
            return " ".join([*rest[:verb_index], form, *after, tail])
    return None


def _inflect(word: str, did: str, vocabulary: set[str] | None) -> str | None:
    """The form of ``word`` that ``did`` requires, if ``vocabulary`` contains it; the regular form when it is None."""
    if not (word.islower() and word.isalpha() and len(word) > 1) or did == "do":
        return None
    if did == "did" and word in _PAST:
        return _PAST[word]
    ending = "s" if did == "does" else "ed"
    forms = [word + ending, word[:-1] + f"i{'es' if did == 'does' else 'ed'}"]
    forms += [f"{word}es"] if did == "does" else [f"{word}d", f"{word}{word[-1]}ed"]
    if vocabulary is None:
        return f"{word}d" if did == "did" and word.endswith("e") else forms[0]
    return next((form for form in forms if form in vocabulary), None)


def _is_participle(word: str) -> bool:
    return word in _PARTICIPLES or (word.islower() and word.endswith("ed") and len(word) > 4)
