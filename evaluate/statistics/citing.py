"""How well a score cites the sentences of the knowledge that a person named as evidence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from groundwire.engine import Score
from groundwire.engine.schema.explanations import PassageRange
from groundwire.metrics import bind_results, sentences

from ..datasets.examples import Example
from .human_labels import HumanLabels
from .marking import measure_classes
from .results import CitingFigures


def measure_citing(examples: Sequence[Example], scores: Sequence[Score], human: HumanLabels) -> CitingFigures | None:
    """Figures over the examples with evidence, "none" included; None where nothing is named.

    Counted are sentences of the knowledge, over all responses together. Precision is the share of cited sentences that
    touch the evidence, recall the share of sentences touching it that are cited. A response that states nothing cites
    nothing; one without the result of a metric that cites is left out.
    """
    counts = np.zeros((3, len(examples)))
    responses = 0
    for index, (example, score) in enumerate(zip(examples, scores, strict=True)):
        result = next((result for metric, result in bind_results(score.metrics) if metric.cites), None)
        if example.evidence is None or result is None or result.status not in ("scored", "nothing_to_verify"):
            continue
        responses += 1
        wanted = find_sentences(example.knowledge, example.evidence)
        cited = find_sentences(example.knowledge, (citation.evidence for citation in score.citations))
        counts[:, index] = len(cited & wanted), len(cited), len(wanted)
    figures = measure_classes(counts, human)
    return None if figures is None else CitingFigures(responses, figures)


def find_sentences(knowledge: Sequence[str], ranges: Iterable[PassageRange]) -> set[tuple[int, int]]:
    """The sentences that a range touches: passage and number of the sentence in it.

    >>> find_sentences(["It is old. It is long.", "So what?"], [PassageRange(0, 12, 14), PassageRange(1, 0, 8)])
    {(0, 1), (1, 0)}
    """
    return {
        (part.passage, number)
        for part in ranges
        for number, sentence in enumerate(sentences(knowledge[part.passage]))
        if sentence.start < part.end and part.start < sentence.end
    }
