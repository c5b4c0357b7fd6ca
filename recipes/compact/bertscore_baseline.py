"""Measures the baseline that BERTScore is rescaled by: the score of unrelated sentences.

Cosines of contextual vectors are large for any two texts, between 0.8 and 0.9 for RoBERTa. For each checkpoint and
layer the authors of BERTScore therefore publish the mean over random pairs of sentences; for any other embedder this
measures it. ``store_bertscore_baseline`` writes the result into a bundle; ``EmbedderSettings.baseline`` takes it when
the role is exported again, and ``BertScoreOptions.baseline`` for one request.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import msgspec
import numpy as np

from groundwire.engine import Engine, Options
from groundwire.engine.schema.explanations import BertScoreExplanation
from groundwire.engine.schema.options import BertScoreOptions
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import EmbedderRole
from groundwire.runtime.errors import InvalidRequest

from ..synthesis.articles import Articles

FILE = "text_wikipedia.jsonl.gz"
"""Articles of Wikipedia, the sentences that the embedded bundle's baseline is measured on."""
MAX_WORDS = 32
"""Sentences of this many words and more are left out, as in bert-score's ``get_rescale_baseline.py``."""


def measure_bertscore_baseline(
    bundle: str | Path, sentences: Iterable[str], *, seed: int = 0
) -> tuple[float, float, float]:
    """Mean precision, recall and F1 of random pairs of ``sentences`` under the embedder of ``bundle``.

    Every sentence is used once, in a pair that ``seed`` draws; the authors take a million lines of news. InvalidRequest
    when there are not two sentences of fewer than ``MAX_WORDS`` words.

    >>> measure_bertscore_baseline("my-bundle", Path("news.txt").read_text().splitlines())  # doctest: +SKIP
    (0.1923, 0.1921, 0.1894)
    """
    short = [text for line in sentences if (text := line.strip()) and len(text.split(" ")) < MAX_WORDS]
    random.Random(seed).shuffle(short)
    half = len(short) // 2
    options = Options(bertscore=BertScoreOptions(baseline="none", lower_knowledge=False))
    pair_scores: list[tuple[float, float, float]] = []
    with Engine.load(bundle) as engine:
        pairs = zip(short[:half], short[half : 2 * half], strict=True)
        for score in engine.score_many(pairs, metrics=["bertscore"], options=options):
            explanation = score.metrics["bertscore"].explanation
            if isinstance(explanation, BertScoreExplanation):
                pair_scores.append((explanation.precision, explanation.recall, explanation.f1))
    if not pair_scores:
        raise InvalidRequest(f"{len(short)} sentences of fewer than {MAX_WORDS} words make no pair; give two or more.")
    precision, recall, f1 = np.mean(pair_scores, axis=0).tolist()
    return precision, recall, f1


def draw_sentences(data: Path, count: int, seed: int = 0) -> list[str]:
    """``count`` sentences of Wikipedia that are short enough, from paragraphs in the order that ``seed`` draws."""
    articles = Articles.read(data / "more" / FILE)
    order = list(range(len(articles.texts)))
    random.Random(seed).shuffle(order)
    drawn: list[str] = []
    for paragraph in order:
        drawn += [text for text in articles.list_sentences(paragraph) if len(text.split(" ")) < MAX_WORDS]
        if len(drawn) >= count:
            break
    return drawn[:count]


def store_bertscore_baseline(bundle: Path, baseline: tuple[float, float, float]) -> Bundle:
    """Write a baseline into the embedder of ``bundle``; verdicts, which are drawn from cosines, stay as they are."""
    opened = Bundle.open(bundle)
    role = opened.manifest.roles.get("embedder")
    if not isinstance(role, EmbedderRole):
        raise InvalidRequest(f"{bundle} has no embedder, so there is nothing to rescale.")
    rounded = tuple(round(number, 6) for number in baseline)
    roles = {**opened.manifest.roles, "embedder": msgspec.structs.replace(role, baseline=rounded)}
    return opened.rewrite(msgspec.structs.replace(opened.manifest, roles=roles))
