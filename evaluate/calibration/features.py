"""What a fit reads of labelled examples and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groundwire.engine import MetricResult, Score
from groundwire.engine.verdict import features, features_of_part
from groundwire.metrics import bind_results, sentences
from groundwire.monitor.shift import describe_texts

from ..datasets.examples import Example
from .fusion import LabelledFeatures


def collect_features(
    sets: Mapping[str, Sequence[Example]], scores: Mapping[str, Sequence[Score]]
) -> list[LabelledFeatures]:
    """The features of the labelled examples; examples about the same knowledge are one group."""
    return [
        LabelledFeatures(
            name,
            "\n".join(example.knowledge),
            example.label,
            features(bind_results(score.metrics)),
            list_sentences(example.response, score.metrics),
            describe_texts(example.response, example.knowledge),
            example.digest,
            example.request,
            score.metrics,
        )
        for name, examples in sets.items()
        for example, score in zip(examples, scores[name], strict=True)
        if example.label is not None and score.metrics
    ]


def list_sentences(response: str, results: Mapping[str, MetricResult]) -> tuple[dict[str, float], ...]:
    """The features of each sentence of a response of several; none for one of a single sentence."""
    parts, bound = sentences(response), bind_results(results)
    return tuple(features_of_part(bound, part.start, part.end) for part in parts) if len(parts) > 1 else ()
