"""Citations: which sentences of the knowledge support each sentence of the response?

Every sentence of the response is compared with every sentence of the knowledge by content words and token vectors, and
the inference model reads it with the nearest ones (docs/adr, nr 22). BERTScore makes the same calls, and end-to-end
inference some of them, so beside these metrics few are computed again.

Where the response cites items itself (``text.citation_marks``), the nearest sentence of each cited passage is read too:
does the item support the sentence? Recall and precision of its citations are those of ALCE (Gao et al. 2023, section
4.3).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from groundwire.runtime.calls import Classified, Classify, Embed, Embedded

from ..schema.explanations import (
    CitationCandidate,
    CitationsExplanation,
    CitedItem,
    CitedItemOutcome,
    CitedSentence,
    PassageRange,
)
from ..schema.options import BertScoreOptions, CitationOptions, Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.citation_marks import CitationMark, Statement, divide_statements, find_citation_marks
from ..text.retrieval import PassageSentence, content_words
from ..text.sentences import Sentence, read_sentences
from ..text.words import WORD, RangeIndex, check_words, within
from ..values.knowledge import Location
from ..values.owners import Owners
from ..values.support import MAX_COMPARISONS
from ..values.tokens import tokenize
from .alignment import TokenTable, align, find_content_tokens
from .base import Details, Metric, RoleInfos
from .bertscore import prepare_text
from .claims import find_claims, nothing_to_verify
from .requests import ReadRequest
from .support import EMBEDDED, SupportFeatures, SupportModel

MAX_WORDS = 250_000
"""Words of response and knowledge, which spaCy splits in four seconds."""
QUOTED = 3
"""Words, at least, that are a quotation of the knowledge."""
_COMPARED = re.compile(rf"{WORD.pattern}|[$€£¥₹%]")
_QUOTATION = re.compile(r"[\"“]([^\"“”]+)[\"”]")
SENTENCES_AT_ONCE = 200
"""Sentences of long knowledge that are read or compared in one go: about 100 ms."""


class KnowledgeSentence(NamedTuple):
    """A sentence of the knowledge and its content words."""

    source: PassageSentence
    content: frozenset[str]


class Nearby(NamedTuple):
    """A sentence of the knowledge and how near it is to one of the response."""

    source: PassageSentence
    similarity: float
    overlap: float


def citations(
    request: ReadRequest, options: Options, role_info: RoleInfos, model: SupportModel = EMBEDDED
) -> Steps[MetricResult]:
    """The share, 0–1, of the response's sentences for which a sentence of the knowledge is cited.

    Sentences without content words do not count; a response of such sentences has nothing to verify. Texts beyond
    ``MAX_WORDS``, and knowledge of more windows than ``Options.max_windows``, are ``truncated``.
    """
    check_words((request.response, *request.knowledge), MAX_WORDS, "Citations")
    statements = yield from _find_statements(request, options)
    if not statements:
        return nothing_to_verify("citations")
    claims = [statement.sentence for statement in statements]
    knowledge_sentences = yield from _read_knowledge(request.knowledge)
    texts = [_prepare(passage, options.bertscore) for passage in request.knowledge]
    response, *passages = yield [Embed(request.response.strip()), *map(Embed, texts)]
    nearest = yield from _find_nearest(
        request, statements, knowledge_sentences, response, passages, options.citations, model
    )
    joint = [_join_cited(statement, nearby) for statement, nearby in zip(statements, nearest, strict=True)]
    answers = yield [
        Classify("nli", (premise,), " ".join(claim.text.split()))
        for claim, candidates, cited in zip(claims, nearest, joint, strict=True)
        for premise in (
            *(_write_premise(nearby.source, request.knowledge) for nearby in candidates),
            *([" ".join(_write_premise(nearby.source, request.knowledge) for nearby in cited)] if cited else ()),
        )
    ]
    labels = iter(answers)
    needed = _list_needed(request, statements)
    least = options.citations.min_support
    sentences = []
    for statement, nearby, cited, values in zip(statements, nearest, joint, needed, strict=True):
        rated = _rate(statement.sentence, nearby, [next(labels) for _ in nearby], values, model)
        together = _rate_joint(cited, next(labels), values, model) if cited else None
        sentences.append(_cite(request.response, statement, rated, together, least))
    recall, precision = _measure(sentences)
    return MetricResult(
        "citations",
        "scored",
        sum(sentence.candidates[0].support >= least for sentence in sentences) / len(sentences),
        explanation=CitationsExplanation(tuple(sentences), least, recall, precision),
        coverage=sum(passage.read.characters for passage in passages) / sum(passage.read.total for passage in passages),
    )


def _find_statements(request: ReadRequest, options: Options) -> Steps[list[Statement]]:
    """The sentences with content words that state something, and the marks that cite for them."""
    claims = yield from find_claims(request, options)
    marks, end = find_citation_marks(request.response, request.knowledge)
    if not marks:
        statements = [Statement(claim, ()) for claim in claims]
    else:
        stating = RangeIndex(claims)
        divided = divide_statements(request.response, request.sentences, marks, end)
        statements = [statement for statement in divided if stating.overlaps(statement.sentence)]
    return [statement for statement in statements if content_words(statement.sentence.text)]


def _read_knowledge(passages: Sequence[str]) -> Steps[list[KnowledgeSentence]]:
    knowledge_sentences: list[KnowledgeSentence] = []
    for index, passage in enumerate(passages):
        for sentence in read_sentences(passage):
            source = PassageSentence(index, sentence)
            knowledge_sentences.append(KnowledgeSentence(source, frozenset(content_words(sentence.text))))
            if len(knowledge_sentences) % SENTENCES_AT_ONCE == 0:
                yield []  # others have a turn, and a request that was stopped ends here
    return knowledge_sentences


def _prepare(passage: str, settings: BertScoreOptions) -> str:
    """A passage as BERTScore embeds it, if that has a character for every character."""
    prepared = prepare_text(passage, settings)
    return prepared if len(prepared) == len(passage.strip()) else passage.strip()


def _write_premise(source: PassageSentence, knowledge: Sequence[str]) -> str:
    """A sentence after the first one of its passage, which says who "she" or "the film" is."""
    passage, sentence = source
    first = next(read_sentences(knowledge[passage]))
    return sentence.text.lower() if first == sentence else f"{first.text} {sentence.text}".lower()


def _weigh_words(content: Set[str], counts: Mapping[str, int]) -> dict[str, float]:
    """The weight of each word: the fewer sentences of the knowledge have it, the more it says which one is meant."""
    return {word: 1 / (1 + max(counts.get(word, 0), 1)) for word in sorted(content)}  # sums depend on the order


def _find_nearest(
    request: ReadRequest,
    statements: Sequence[Statement],
    knowledge_sentences: Sequence[KnowledgeSentence],
    response: Embedded,
    passages: Sequence[Embedded],
    settings: CitationOptions,
    model: SupportModel,
) -> Steps[list[list[Nearby]]]:
    """For each claim, the sentences of the knowledge that are nearest to it, the first of equals first.

    The nearest one of each passage that it cites is among them.
    """
    table = TokenTable.join(
        passages,
        [_count_indent(passage) for passage in request.knowledge],
        [item.source for item in knowledge_sentences],
    )
    counts = Counter(word for item in knowledge_sentences for word in item.content)
    nearest: list[list[Nearby]] = []
    compared = 0
    for claim, marks in statements:
        weights = _weigh_words(content_words(claim.text), counts)
        total = sum(weights.values())
        rows = find_content_tokens(response, claim, _count_indent(request.response))
        similarities = align(response.vectors[rows], table)
        nearby = [
            Nearby(
                item.source,
                float(similarity),
                sum(weight for word, weight in weights.items() if word in item.content) / total,
            )
            for item, similarity in zip(knowledge_sentences, similarities, strict=True)
        ]
        nearby.sort(
            key=lambda item: (not is_quoted(claim.text, item.source.sentence.text), -model.rank(item[1], item[2]))
        )
        chosen = nearby[: settings.candidates]
        for passage in _list_cited(marks):
            best = next((item for item in nearby if item.source.passage == passage), None)
            chosen += [best] if best is not None and best not in chosen else []
        nearest.append(chosen)
        compared += len(knowledge_sentences)
        if compared >= SENTENCES_AT_ONCE:
            compared = 0
            yield []
    return nearest


def _count_indent(text: str) -> int:
    """How many characters of ``text`` are left out before the text that is embedded."""
    return len(text) - len(text.lstrip())


def is_quoted(claim: str, known_sentence: str) -> bool:
    """Whether a claim is words of a sentence of the knowledge, or quotes ``QUOTED`` words of it or more.

    Capitals and punctuation do not count, signs of currencies do.

    >>> is_quoted("the bar closes at one", "The bar closes at one, the kitchen at nine.")
    True
    >>> is_quoted("Vik says: “We lend 300 works a year.”", 'Curator Hanne Vik: "We lend 300 works a year."')
    True
    """
    theirs = f" {' '.join(_fold(known_sentence))} "
    quotes = (match[1] for match in _QUOTATION.finditer(claim))
    texts = (words for text in (claim, *quotes) if len(words := _fold(text)) >= QUOTED)
    return any(f" {' '.join(words)} " in theirs for words in texts)


def _fold(text: str) -> list[str]:
    return [match[0].lower().replace("’", "'") for match in _COMPARED.finditer(text)]


def _list_cited(marks: Sequence[CitationMark]) -> list[int]:
    """The passages that marks cite, each once."""
    return [passage for passage in dict.fromkeys(p for mark in marks for p in mark.passages) if passage is not None]


def _join_cited(statement: Statement, nearby: Sequence[Nearby]) -> list[Nearby]:
    """The nearest sentence of each passage that a claim cites; none unless it cites several."""
    cited = _list_cited(statement.marks)
    by_passage = {item.source.passage: item for item in reversed(nearby)}
    return [by_passage[passage] for passage in cited if passage in by_passage] if len(cited) > 1 else []


def _rate_joint(
    cited: Sequence[Nearby], answer: Classified, needed: Sequence[Sequence[Location]], model: SupportModel
) -> float:
    """The probability that several sentences together support a claim: for its words by the one that has most."""
    if not all(any(_has_all(nearby.source, [items]) for nearby in cited) for items in needed):
        return 0.0
    similarity, overlap = max(item.similarity for item in cited), max(item.overlap for item in cited)
    entailment, contradiction = (answer.probabilities[label] for label in ("entailment", "contradiction"))
    return model.support(SupportFeatures(similarity, overlap, entailment, contradiction))


def _cite(
    response: str,
    statement: Statement,
    candidates: tuple[CitationCandidate, ...],
    joint_support: float | None,
    least: float,
) -> CitedSentence:
    """A claim with its candidates, and what the items that the response cites say of it."""
    supports: dict[int, float] = {}
    for candidate in candidates:
        supports.setdefault(candidate.evidence.passage, candidate.support)
    cited = _list_cited(statement.marks)
    is_joint = all(supports.get(passage, 0.0) < least for passage in cited) and (joint_support or 0.0) >= least
    is_elsewhere = any(support >= least for passage, support in supports.items() if passage not in cited)
    items = []
    for mark in statement.marks:
        for passage in mark.passages:
            outcome: CitedItemOutcome = "other" if is_elsewhere else "unsupported"
            support = 0.0 if passage is None else supports.get(passage, 0.0)
            if passage is None:
                outcome = "no_item"
            elif support >= least or is_joint:
                outcome = "supported"
            items.append(CitedItem(response[mark.start : mark.end], mark.start, mark.end, passage, outcome, support))
    sentence = statement.sentence
    return CitedSentence(sentence.start, sentence.end, candidates, tuple(items), joint_support)


def _measure(sentences: Sequence[CitedSentence]) -> tuple[float | None, float | None]:
    """Recall and precision of the citations of a response; None where it has none."""
    items = [item for sentence in sentences for item in sentence.items]
    if not items:
        return None, None
    supported = [any(item.outcome == "supported" for item in sentence.items) for sentence in sentences]
    return sum(supported) / len(sentences), sum(item.outcome == "supported" for item in items) / len(items)


def _list_needed(request: ReadRequest, statements: Sequence[Statement]) -> list[list[list[Location]]]:
    """For each value of each claim that can be compared, where the knowledge has it of the claim's subject.

    A sentence with another row's, fare's or person's value supports nothing (docs/adr, nr 22).
    """
    values, knowledge = request.values.amounts[0], request.read_knowledge.values
    if not values or len(values) * sum(len(text.amounts[0]) for text in knowledge) > MAX_COMPARISONS:
        return [[] for _ in statements]
    owners, asked = Owners(knowledge), [token for turn in request.history[-1:] for token in tokenize(turn)]
    needed, last = [], 0
    for claim, marks in statements:
        inside, before = (
            within(request.values.tokens, *ends) for ends in ((claim.start, claim.end), (last, claim.start))
        )
        cited = RangeIndex(marks)
        stated = [value for value in within(values, claim.start, claim.end) if not cited.overlaps(value)]
        compared = [owners.find(value, inside, [*asked, *before]) for value in stated]
        needed.append([[item.location for item in equal] for equal, differing in compared if equal or differing])
        last = claim.start
    return needed


def _has_all(source: PassageSentence, needed: Sequence[Sequence[Location]]) -> bool:
    """Whether a sentence of the knowledge has all values that a claim needs."""
    passage, (_, start, end) = source
    return all(any(item.passage == passage and start <= item.start < end for item in items) for items in needed)


def _rate(
    claim: Sentence,
    candidates: Sequence[Nearby],
    answers: Sequence[Classified],
    needed: Sequence[Sequence[Location]],
    model: SupportModel,
) -> tuple[CitationCandidate, ...]:
    rated = []
    for (source, similarity, overlap), answer in zip(candidates, answers, strict=True):
        entailment, contradiction = (answer.probabilities[label] for label in ("entailment", "contradiction"))
        sentence = source.sentence
        support = model.support(SupportFeatures(similarity, overlap, entailment, contradiction))
        if is_quoted(claim.text, sentence.text):
            support = 1.0
        elif not _has_all(source, needed):
            support = 0.0
        where = PassageRange(source.passage, sentence.start, sentence.end)
        rated.append(CitationCandidate(where, sentence.text, similarity, overlap, entailment, contradiction, support))
    return tuple(sorted(rated, key=lambda candidate: -candidate.support))


def _details(result: MetricResult) -> Details | None:
    explanation = result.explanation
    if not isinstance(explanation, CitationsExplanation):
        return None
    rows = tuple(
        (f"{sentence.start}–{sentence.end}", candidate.text, candidate.support)
        for sentence in explanation.sentences
        for candidate in sentence.candidates
    )
    note = f"A sentence of the knowledge is cited from a support of {explanation.min_support:.2f} on."
    return Details(("characters", "sentence of the knowledge", "support"), rows, (note,))


METRICS = (
    Metric(
        name="citations",
        title="Citations",
        description="share of the response’s sentences for which the knowledge has a supporting sentence",
        compute=citations,
        roles=frozenset({"embedder", "nli"}),
        order=14,
        cites=True,
        details=_details,
    ),
)
