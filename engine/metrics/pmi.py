"""PMI-Faith: how much more probable the knowledge makes the response, token by token.

Source: Nandwani et al. 2023, "Pointwise Mutual Information Based Metric and Decoding Strategy for Faithful Generation
in Document Grounded Dialogs", §4.1; where paper and authors' code differ, the code: the score is the mean per token,
not the sum. ``pmi`` compares the response given document and history with the response given the history alone;
``upmi`` knows no history.

A token without anything before it has no prediction. ``upmi`` leaves the response's first one out of the mean without
the document only, as published. ``pmi`` meets the case of an empty history, which the paper does not describe: it
then compares the two forms over the tokens that both predict. Without a history the two metrics ask the same of the
model, and differ in that one token.

Knowledge that the model's window does not hold is read in part (``PmiOptions.too_long``); the authors' code gives NaN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby
from typing import Literal, NamedTuple

from groundwire.runtime.calls import MeasureTexts, ScoreText, TextScored
from groundwire.runtime.errors import TooLong, Unreadable
from groundwire.runtime.texts.unread import is_blank

from ..schema.explanations import PassageRange, PmiExplanation, PmiToken, UnsupportedSpan
from ..schema.options import Options, PmiOptions
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.retrieval import PassageSentence, RelevantSentence, count_shared_words, rank_by_overlap
from ..text.words import WORD
from .base import Metric, MetricNumber, RoleInfos, WordEvidence
from .requests import ReadRequest

SENTENCES_AT_ONCE = 256
"""Sentences of long knowledge that are compared with the response, or measured, in one go: about 50 ms."""
Name = Literal["pmi", "upmi"]


class Prompts(NamedTuple):
    """The three prompts, filled in but for the document."""

    document: str
    history: tuple[str, ...]
    """One, or none."""
    text: str
    """The response."""


def pmi(request: ReadRequest, options: Options, role_info: RoleInfos, name: Name = "pmi") -> Steps[MetricResult]:
    """The mean difference of the response's log-probabilities, in nats per token; above 0 the knowledge supports it."""
    settings = options.pmi
    turns = [turn for turn in request.history if not is_blank(turn)] if name == "pmi" else []
    history = (fill_prompt(settings.history, "history", settings.between_turns.join(turns)),) if turns else ()
    prompts = Prompts(settings.document, history, fill_prompt(settings.response, "response", request.response))
    left_out: tuple[PassageRange, ...] = ()
    try:
        scored = yield from score_response(prompts, settings.between_passages.join(request.knowledge))
    except TooLong as error:
        if settings.too_long == "fail" or isinstance(error, Unreadable):
            raise
        scored, left_out = yield from score_with_excerpt(request, prompts, settings, error)
    return compare_tokens(name, request, settings, prompts.text, *scored, left_out)


def score_response(prompts: Prompts, document: str) -> Steps[tuple[TextScored, TextScored]]:
    """The response's log-probabilities with ``document`` and without it."""
    filled = fill_prompt(prompts.document, "document", document)
    with_document, without = yield [
        ScoreText((filled, *prompts.history), prompts.text),
        ScoreText(prompts.history, prompts.text),
    ]
    return with_document, without


def score_with_excerpt(
    request: ReadRequest, prompts: Prompts, settings: PmiOptions, error: TooLong
) -> Steps[tuple[tuple[TextScored, TextScored], tuple[PassageRange, ...]]]:
    """``score_response`` with the most relevant sentences that fit the window, and what they leave out.

    Raises ``error`` when history and response leave no room for one.
    """
    fixed = (fill_prompt(prompts.document, "document", ""), *prompts.history, prompts.text)
    (lengths,) = yield [MeasureTexts(fixed)]
    room = lengths.limit - sum(lengths.tokens)
    if room < 1:
        raise error
    sentences: list[RelevantSentence] = []
    for sentence in count_shared_words(request.knowledge, request.response):
        sentences.append(sentence)
        if len(sentences) % SENTENCES_AT_ONCE == 0:
            yield []  # others have a turn, and a request that was stopped ends here
    candidates = [sentence.candidate for sentence in sentences]
    ranked = rank_by_overlap(sentences)
    chosen: list[PassageSentence] = []
    for start in range(0, len(ranked), SENTENCES_AT_ONCE):
        some = ranked[start : start + SENTENCES_AT_ONCE]
        (lengths,) = yield [MeasureTexts(tuple(f" {candidate.sentence.text}" for candidate in some))]
        for candidate, tokens in zip(some, lengths.tokens, strict=True):
            if tokens <= room:
                chosen.append(candidate)
                room -= tokens
        if room < 1:
            break
    while chosen:
        try:
            scored = yield from score_response(prompts, join_sentences(chosen, settings))
        except TooLong:
            # Sentences may have more tokens together than apart.
            chosen.pop()
            continue
        read = frozenset(chosen)
        rest = (candidate for candidate in candidates if candidate not in read)
        return scored, tuple(PassageRange(passage, sentence.start, sentence.end) for passage, sentence in rest)
    raise error


def join_sentences(chosen: Iterable[PassageSentence], settings: PmiOptions) -> str:
    """The sentences in the order of the knowledge: with a space between sentences of one passage."""
    passages = groupby(sorted(chosen, key=lambda item: (item.passage, item.sentence.start)), lambda item: item.passage)
    return settings.between_passages.join(" ".join(item.sentence.text for item in group) for _, group in passages)


def fill_prompt(template: str, field: str, value: str) -> str:
    """``template`` with its one ``{field}`` filled in; braces in the value are text."""
    return template.replace(f"{{{field}}}", value)


def compare_tokens(
    name: Name,
    request: ReadRequest,
    settings: PmiOptions,
    text: str,
    with_document: TextScored,
    without: TextScored,
    left_out: tuple[PassageRange, ...] = (),
) -> MetricResult:
    """The score and its explanation, from the log-probabilities of ``text``, the response in its prompt.

    ``left_out`` is the knowledge that was not in the document.
    """
    response = request.response
    begin = settings.response.index("{response}")
    tokens = tuple(_tokens(response, text, begin, with_document, without))
    counted = [token for token in tokens if settings.prompt_tokens or token.start is not None]
    if name == "pmi":
        counted = [token for token in counted if token.difference is not None]
    conditional = [token.with_document for token in counted if token.with_document is not None]
    alone = [token.without_document for token in counted if token.without_document is not None]
    if not conditional or not alone:
        return MetricResult(
            name, "nothing_to_verify", message="No token of the response is predicted with and without the knowledge."
        )
    means = sum(conditional) / len(conditional), sum(alone) / len(alone)
    total = sum(map(len, request.knowledge))
    missing = sum(passage_range.end - passage_range.start for passage_range in left_out)
    read = with_document.read
    read_share = read.share if read else 1.0
    return MetricResult(
        name,
        "scored",
        means[0] - means[1],
        message=_describe_left_out(len(left_out), missing, total),
        explanation=PmiExplanation(tokens, *means, left_out),
        unsupported=tuple(
            UnsupportedSpan(response[start:end], start, end, "less_likely", "", name)
            for start, end in less_likely_ranges(response, tokens, settings.below)
        ),
        coverage=(1 - missing / total) * read_share,
    )


def _describe_left_out(sentences: int, missing: int, total: int) -> str:
    if not sentences:
        return ""
    return (
        f"The knowledge does not fit the language model's window: {sentences} sentences with {missing} of its {total} "
        "characters were left out, those that share the fewest words with the response. Give less knowledge or history "
        "to have all of it read, or set PmiOptions.too_long to 'fail'."
    )


def _tokens(response: str, text: str, begin: int, with_document: TextScored, without: TextScored) -> Iterator[PmiToken]:
    """Every token of the prompt; a token without characters of the response has no range in it."""
    for index, (start, end) in enumerate(with_document.offsets):
        first, last = max(0, start - begin), min(len(response), end - begin)
        inside = first < last
        conditional, alone = (
            scored.log_probs[index - scored.first] if index >= scored.first else None
            for scored in (with_document, without)
        )
        difference = None if conditional is None or alone is None else conditional - alone
        yield PmiToken(
            text[start:end], first if inside else None, last if inside else None, conditional, alone, difference
        )


def less_likely_ranges(response: str, tokens: Sequence[PmiToken], below: float) -> list[tuple[int, int]]:
    """Runs of the response's tokens that the knowledge makes less likely, out to whole words; disjoint, in order."""
    words = [match.span() for match in WORD.finditer(response)]
    runs: list[tuple[int, int]] = []
    open_run = False
    for token in tokens:
        if token.start is None or token.end is None:
            continue
        doubt = token.difference is not None and token.difference < below
        if doubt and open_run:
            runs[-1] = runs[-1][0], token.end
        elif doubt:
            runs.append((token.start, token.end))
        open_run = doubt
    out: list[tuple[int, int]] = []
    for start, end in runs:
        touched = [word for word in words if word[0] < end and start < word[1]]
        if not touched:
            continue
        start, end = touched[0][0], touched[-1][1]
        if out and start < out[-1][1]:
            # Two runs meet in one word.
            out[-1] = out[-1][0], max(end, out[-1][1])
        else:
            out.append((start, end))
    return out


def _part(result: MetricResult, start: int, end: int) -> dict[str, float]:
    if not isinstance(result.explanation, PmiExplanation):
        return {}
    differences = [
        token.difference
        for token in result.explanation.tokens
        if token.difference is not None and token.start is not None and token.end is not None
        if start <= token.start and token.end <= end
    ]
    return {"": sum(differences) / len(differences)} if differences else {}


METRICS = (
    Metric(
        name="pmi",
        title="PMI-Faith",
        description="how much likelier the knowledge makes the response, given the history, in nats per token",
        compute=pmi,
        roles=frozenset({"lm"}),
        groups=frozenset({"paper"}),
        order=13,
        bounds=None,
        words=WordEvidence(0.4, precision=1, family="pmi"),
        part=_part,
        numbers=(MetricNumber(is_evidence=True),),
    ),
    Metric(
        name="upmi",
        title="UPMI-Faith",
        description="how much likelier the knowledge makes the response, in nats per token",
        compute=partial(pmi, name="upmi"),
        roles=frozenset({"lm"}),
        groups=frozenset({"paper"}),
        order=14,
        bounds=None,
        words=WordEvidence(0.4, precision=1, family="pmi"),
        part=_part,
    ),
)
