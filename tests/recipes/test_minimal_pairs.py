"""Minimal pairs: what the halves share, what they support, and that no half shows its label by itself."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from groundwire.recipes.common.corpus import Squad, word_coverage
from groundwire.recipes.synthesis.chat_style import ChatStyle
from groundwire.recipes.synthesis.harmless import HarmlessResponses
from groundwire.recipes.synthesis.minimal_pairs import MinimalPair, MinimalPairs
from groundwire.recipes.synthesis.structured_edits import REASONS
from tests.support import graph_sets
from tests.support.training_sets import PARAGRAPHS, write_gzipped

DRAWS = 500


@pytest.fixture(scope="module")
def drawn(sets: Path, tmp_path_factory: pytest.TempPathFactory) -> list[MinimalPair]:
    """Pairs from SQuAD, plain texts and triples in miniature."""
    data = graph_sets.save(tmp_path_factory.mktemp("minimal"))
    (data / "more").mkdir()
    texts = [text for title in PARAGRAPHS for text in PARAGRAPHS[title]]
    write_gzipped(data / "more" / "text_wikipedia.jsonl.gz", [{"doc": "a", "text": text} for text in texts])
    squad = Squad.read(sets / "squad1_train.jsonl.gz")
    pairs = MinimalPairs.read(data, squad, ChatStyle(["I love that!", "What do you think?"]))
    return [pairs.draw(70, random.Random(seed)) for seed in range(DRAWS)]


def test_one_half_is_supported_and_the_halves_share_a_side(drawn: list[MinimalPair]) -> None:
    for supported, unsupported in drawn:
        assert supported.supported
        assert not unsupported.supported
        assert (supported.knowledge == unsupported.knowledge) != (supported.response == unsupported.response)
        for span in unsupported.spans:
            assert 0 <= span.start < span.end <= len(unsupported.response)
            assert span.reason in REASONS


def test_spans_avoid_the_chat_around_the_claim(drawn: list[MinimalPair]) -> None:
    for _, unsupported in drawn:
        for span in unsupported.spans:
            text = unsupported.response[span.start : span.end]
            assert "I love that!" not in text
            assert "What do you think?" not in text


def test_every_reason_and_both_kinds_of_pairs_occur(drawn: list[MinimalPair]) -> None:
    reasons = Counter(span.reason for pair in drawn for span in pair.unsupported.spans)
    assert set(reasons) == set(REASONS)
    same = np.mean([pair.supported.knowledge == pair.unsupported.knowledge for pair in drawn])
    assert 0.2 < same < 0.8


def test_a_supported_half_has_its_words_in_its_knowledge(drawn: list[MinimalPair]) -> None:
    coverage = [word_coverage(pair.supported.response, pair.supported.knowledge) for pair in drawn]
    assert np.mean(coverage) > 0.7


def test_neither_length_nor_wording_shows_the_label(drawn: list[MinimalPair]) -> None:
    halves = [half for pair in drawn for half in pair]
    labels = [half.supported for half in halves]
    for measure in (
        lambda half: len(half.response),
        lambda half: len(half.knowledge),
        lambda half: " not " in half.response or "n't" in half.response,
        lambda half: sum(character.isdigit() for character in half.response),
    ):
        assert abs(roc_auc_score(labels, [measure(half) for half in halves]) - 0.5) < 0.08
    # The same response is supported by one knowledge and not by the other.
    both = {h.response for h in halves if h.supported} & {h.response for h in halves if not h.supported}
    assert len(both) > DRAWS / 5


def test_a_pair_depends_on_the_source_of_randomness_alone(sets: Path) -> None:
    squad = Squad.read(sets / "squad1_train.jsonl.gz")
    first, second = (MinimalPairs.read(sets, squad, ChatStyle(())) for _ in range(2))
    first.draw(70, random.Random(1))
    assert first.draw(70, random.Random(5)) == second.draw(70, random.Random(5))


def test_harmless_responses_have_a_kind_and_use_the_topic() -> None:
    harmless = HarmlessResponses(["I love it!"], ["Who was he?"], ChatStyle(()))
    drawn = [harmless.draw("Tupelo", random.Random(seed)) for seed in range(200)]
    assert {kind for _, kind in drawn} == {"chat", "about", "plain", "asked", "question"}
    assert all("tupelo" in text.lower() for text, kind in drawn if kind == "about")
    assert "about" not in {harmless.draw("", random.Random(seed))[1] for seed in range(100)}
