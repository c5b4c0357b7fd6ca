"""BERTScore: match every token of response and knowledge with the nearest of the other, by contextual vectors.

Source: Zhang et al. 2020, "BERTScore: Evaluating Text Generation with BERT"; the numbers equal the numbers of the
authors' package bert-score 0.3.13. The file reads in the order of the data: texts → token vectors → matches → means →
rescaling.

Several passages are embedded one by one, and the response is matched with the tokens of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from groundwire.runtime.calls import Call, CountTokens, Embed, Embedded, TokenCounts
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.models.embedder import best_matches

from ..schema.explanations import BertScoreExplanation, MatchedWord
from ..schema.options import BertScoreOptions, Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.reading import ReadText
from ..text.words import within, words
from .base import Metric, MetricNumber, RoleInfos
from .requests import ReadRequest, open_knowledge

ROLE = "embedder"
Triple: TypeAlias = tuple[float, float, float]
"""Precision, recall, F1."""
Numbers: TypeAlias = NDArray[np.float32]


def bertscore(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """F1 of greedy matching: a cosine, -1 to 1, or after rescaling 1 for equal texts and about 0 for unrelated ones.

    A response without a token that weighs anything has nothing to verify.
    """
    settings = options.bertscore
    baseline = role_info(ROLE).baseline if settings.baseline == "role" else check_baseline(settings)
    whole = request.whole
    response = whole.text.strip()  # as the package does
    evidence = yield from open_knowledge(request)
    passages = [prepare_text(passage, settings) for passage in evidence.select_all(whole)]
    calls: list[Call] = [Embed(response), *map(Embed, passages)]
    if settings.idf_documents:
        calls.append(CountTokens(tuple(prepare_text(text, settings) for text in settings.idf_documents)))
    results = yield calls
    counts: TokenCounts | None = results.pop() if settings.idf_documents else None
    result = match_texts(whole, results[0], results[1:], counts, baseline)
    if result.coverage is None:
        return result
    return replace(result, message=evidence.message, coverage=evidence.share * result.coverage)


def prepare_text(text: str, settings: BertScoreOptions) -> str:
    """A passage or document as it is embedded."""
    return (text.lower() if settings.lower_knowledge else text).strip()


def check_baseline(settings: BertScoreOptions) -> Triple | None:
    """The caller's baseline; InvalidRequest when nothing can be rescaled by it."""
    if isinstance(settings.baseline, str):
        return None
    if len(settings.baseline) != 3 or not all(-1 <= number < 1 for number in settings.baseline):
        raise InvalidRequest(
            f"BertScoreOptions.baseline is {settings.baseline}; give precision, recall and F1, each at least -1 and "
            "below 1, or 'role' or 'none'."
        )
    return settings.baseline


def match_texts(
    whole: ReadText,
    response: Embedded,
    knowledge: Sequence[Embedded],
    counts: TokenCounts | None,
    baseline: Triple | None,
) -> MetricResult:
    """The score of ``whole``, what models read of the response, and its explanation."""
    ours, theirs = (
        token_weights(response, counts),
        np.concatenate([token_weights(passage, counts) for passage in knowledge]),
    )
    if not ours.any():
        message = "The response has no token that weighs anything."
        return MetricResult("bertscore", "nothing_to_verify", message=message)
    matched, recalled = best_matches(response.vectors, np.concatenate([passage.vectors for passage in knowledge]))
    precision, recall, f1 = rescale(weighted_means(matched, ours, recalled, theirs), baseline)
    return MetricResult(
        "bertscore",
        "scored",
        f1,
        explanation=BertScoreExplanation(precision, recall, f1, baseline, _locate_words(whole, response, matched)),
        coverage=sum(passage.read.characters for passage in knowledge)
        / sum(passage.read.total for passage in knowledge),
    )


def token_weights(embedded: Embedded, counts: TokenCounts | None) -> Numbers:
    """Weight of every token [T]: 1, or its inverse document frequency; 0 for the model's own tokens.

    The model's own tokens may be the best match of others all the same, as in the package.
    """
    if counts is None:
        return 1.0 - np.array(embedded.special, dtype=np.float32)
    idf = [math.log((counts.texts + 1) / (counts.counts.get(index, 0) + 1)) for index in embedded.ids]
    return np.where(embedded.special, 0.0, idf).astype(np.float32)


def weighted_means(matched: Numbers, ours: Numbers, recalled: Numbers, theirs: Numbers) -> Triple:
    """Weighted means of the matches of the response's tokens and of the knowledge's, and their harmonic mean.

    All 0 when no token of the knowledge weighs anything.
    """
    if not theirs.any():
        return 0.0, 0.0, 0.0
    precision, recall = float(np.average(matched, weights=ours)), float(np.average(recalled, weights=theirs))
    return precision, recall, 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def rescale(numbers: Triple, baseline: Triple | None) -> Triple:
    """``numbers`` on a line on which ``baseline`` is 0 and 1 is 1, each with its own."""
    if baseline is None:
        return numbers
    precision, recall, f1 = ((number - zero) / (1 - zero) for number, zero in zip(numbers, baseline, strict=True))
    return precision, recall, f1


def match_words(text: str, response: Embedded, matched: Numbers) -> tuple[MatchedWord, ...]:
    """The words of ``text`` with the mean of their tokens' matches; words without a token are left out."""
    text_tokens = np.flatnonzero(~np.array(response.special))
    begin = len(text) - len(text.lstrip())
    ranges = np.array(response.offsets)[text_tokens] + begin
    similarity = matched[text_tokens]
    out = []
    for word in words(text):
        # Tokens are in the order of the text, so the tokens that touch a word are neighbours.
        first = int(np.searchsorted(ranges[:, 1], word.start, side="right"))
        last = int(np.searchsorted(ranges[:, 0], word.end, side="left"))
        if first < last:
            out.append(MatchedWord(word.text, word.start, word.end, float(similarity[first:last].mean())))
    return tuple(out)


def _locate_words(whole: ReadText, response: Embedded, matched: Numbers) -> tuple[MatchedWord, ...]:
    """``match_words`` with the positions of the response; words of context have none."""
    placed = ((word, whole.locate(word.start, word.end)) for word in match_words(whole.text, response, matched))
    return tuple(
        MatchedWord(word.text, *position, word.similarity) for word, position in placed if position is not None
    )


def _features(explanation: BertScoreExplanation) -> dict[str, float]:
    """Cosines, whatever baseline rescaled the value: another one changes no verdict and no decision."""
    numbers = explanation.precision, explanation.recall, explanation.f1
    zeros = explanation.baseline or (0.0, 0.0, 0.0)
    precision, recall, f1 = (number * (1 - zero) + zero for number, zero in zip(numbers, zeros, strict=True))
    return {
        "": f1,
        "precision": precision,
        "recall": recall,
        "worst": min((word.similarity for word in explanation.words), default=0.0),
    }


def _part(result: MetricResult, start: int, end: int) -> dict[str, float]:
    explanation = result.explanation
    if not isinstance(explanation, BertScoreExplanation):
        return {}
    similarities = [word.similarity for word in within(explanation.words, start, end)]
    if not similarities:
        return {}
    return {"precision": sum(similarities) / len(similarities), "worst": min(similarities)}


METRICS = (
    Metric(
        name="bertscore",
        title="BERTScore",
        description="likeness of the words’ vectors",
        compute=bertscore,
        roles=frozenset({ROLE}),
        groups=frozenset({"paper"}),
        order=12,
        bounds=None,
        features=_features,
        part=_part,
        numbers=(MetricNumber("precision", is_evidence=True), MetricNumber("worst", is_evidence=True)),
    ),
)
