"""How well a score marks the words that a person marked as unsupported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from groundwire.engine import Score
from groundwire.engine.extend import WORD
from groundwire.monitor.records import Estimate

from ..datasets.examples import Example
from .estimates import Floats
from .human_labels import HumanLabels
from .results import ClassFigures, MarkingFigures


def measure_marking(examples: Sequence[Example], scores: Sequence[Score], human: HumanLabels) -> MarkingFigures | None:
    """Figures over the examples whose unsupported words a person marked, "none" included; None where there are none.

    Words and runs of words are counted over all responses together. A score without a verdict is left out.
    """
    words, runs = np.zeros((3, len(examples))), np.zeros((3, len(examples)))
    labelled = np.zeros(len(examples), dtype=bool)
    for index, (example, score) in enumerate(zip(examples, scores, strict=True)):
        if example.unsupported is None or score.verdict.label == "unknown":
            continue
        labelled[index] = True
        wanted = find_words(example.response, example.unsupported)
        marked = find_words(example.response, [(span.start, span.end) for span in score.unsupported])
        words[:, index] = _count(set(marked), set(wanted))
        runs[:, index] = _count(set(join_runs(marked)), set(join_runs(wanted)))
    of_words, of_runs = (measure_classes(counts, human) for counts in (words, runs))
    return (
        MarkingFigures(int(labelled.sum()), of_words, of_runs) if of_words is not None and of_runs is not None else None
    )


def find_words(response: str, ranges: Iterable[tuple[int, int]]) -> list[int]:
    """The numbers of the words that a range of characters touches, in order.

    >>> find_words("It has six strings.", [(7, 10), (8, 12)])
    [2, 3]
    """
    ranges = list(ranges)
    return [
        number
        for number, word in enumerate(WORD.finditer(response))
        if any(word.start() < end and start < word.end() for start, end in ranges)
    ]


def join_runs(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """First and last number of each run of neighbours.

    >>> join_runs([2, 3, 5])
    [(2, 3), (5, 5)]
    """
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _count(marked: set[int] | set[tuple[int, int]], wanted: set[int] | set[tuple[int, int]]) -> tuple[int, int, int]:
    """How many are marked and wanted, marked, and wanted."""
    return len(marked & wanted), len(marked), len(wanted)


def measure_classes(counts: Floats, human: HumanLabels) -> ClassFigures | None:
    """Precision, recall and F1 from what is right, marked and wanted [3, examples].

    None where nothing is wanted. Where nothing is marked, precision is 0.
    """
    both, marked, wanted = counts
    nothing = Estimate(0.0, 0.0, 0.0)
    recall, f1 = human.share(both, wanted), human.share(2 * both, marked + wanted)
    return None if recall is None or f1 is None else ClassFigures(human.share(both, marked) or nothing, recall, f1)
