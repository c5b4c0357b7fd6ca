"""Citations on models small enough to see by hand: a vector per word, and entailment of what a premise has all of."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from groundwire.cli import app
from groundwire.engine import Engine, InvalidRequest, Options, Score
from groundwire.engine.metrics.alignment import TokenTable, align, find_content_tokens
from groundwire.engine.metrics.support import EMBEDDED, SupportFeatures
from groundwire.engine.schema.explanations import CitationsExplanation
from groundwire.engine.schema.options import CitationOptions
from groundwire.engine.text.retrieval import PassageSentence
from groundwire.engine.text.sentences import sentences
from groundwire.guard import Guard, SentenceEvent
from groundwire.runtime.calls import Classify, Embed
from groundwire.runtime.errors import ModelError
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome
from tests.support.citing import ROLES, embed, split
from tests.support.streams import CALIBRATION, verify

HONEY = "Honey keeps for years. Bees make it in their hives."
SHOW = "  Bob Ross hosted the show. It ran until 1994 on public television."


def score(response: str, *knowledge: str, options: Options | None = None) -> Score:
    with Engine(FakeRuntime(ROLES)) as engine:
        return engine.score(response, knowledge, metrics=["citations"], options=options)


def cited(result: Score) -> list[tuple[str, str]]:
    """Each cited pair: the beginning of the response's sentence, and the sentence of the knowledge."""
    return [(str(citation.start), citation.text) for citation in result.citations]


def test_each_sentence_has_the_sentence_of_the_knowledge_that_supports_it() -> None:
    response = "  Bob Ross hosted the show! And honey keeps for years. Cats have tails."
    result = score(response, HONEY, SHOW)
    assert cited(result) == [("2", "Bob Ross hosted the show."), ("28", "Honey keeps for years.")]
    assert result.value == pytest.approx(2 / 3)
    for citation in result.citations:
        where = citation.evidence
        assert (HONEY, SHOW)[where.passage][where.start : where.end] == citation.text
        assert response[citation.start : citation.end] in [sentence.text for sentence in sentences(response)]
        assert 0.5 <= citation.support <= 1
    assert Score.from_json(result.to_json()) == result


def test_what_the_model_does_not_take_for_entailed_is_not_cited() -> None:
    result = score("Honey keeps for centuries.", HONEY)
    assert result.status == "scored"
    assert result.value == 0
    assert result.citations == ()
    explanation = result.metrics["citations"].explanation
    assert isinstance(explanation, CitationsExplanation)
    (sentence,) = explanation.sentences
    assert sentence.candidates[0].text == "Honey keeps for years."
    assert sentence.candidates[0].overlap == pytest.approx(2 / 3)


def test_the_threshold_and_the_number_of_candidates_are_options() -> None:
    twice = "Honey keeps for years. Well, honey keeps for years there. So honey keeps for years now."
    assert len(score("Honey keeps for years.", twice).citations) == 2
    single = Options(citations=CitationOptions(candidates=1))
    assert cited(score("Honey keeps for years.", twice, options=single)) == [("0", "Honey keeps for years.")]
    sure = Options(citations=CitationOptions(min_support=1.0))
    assert score("Honey keeps well for years.", twice, options=sure).citations == ()
    assert len(score("Honey keeps for years.", twice, options=sure).citations) == 2, "a quotation is certain"
    with pytest.raises(InvalidRequest, match=r"citations\.candidates is 0"):
        score("a", "b", options=Options(citations=CitationOptions(candidates=0)))


@pytest.mark.parametrize("response", ["So it is!", "?!", "Well, and that was it."])
def test_a_response_without_content_words_has_nothing_to_cite(response: str) -> None:
    result = score(response, HONEY)
    assert (result.status, result.value, result.citations) == ("nothing_to_verify", None, ())


def test_a_sentence_that_states_nothing_has_no_citation() -> None:
    with Engine(FakeRuntime(ROLES | {"detector.verifiability": verify}, calibration=CALIBRATION)) as engine:
        result = engine.score(
            "Thanks for the honey! Honey keeps for years.",
            HONEY,
            metrics=["nli", "verifiability", "citations"],
        )
    assert [sentence.verdict.label for sentence in result.sentences] == ["unverifiable", "consistent"]
    assert cited(result) == [("22", "Honey keeps for years.")]


def test_there_is_no_citation_without_the_metric_or_if_a_model_fails() -> None:
    def fail(call: Any) -> Outcome:
        raise ModelError("broken")

    with Engine(FakeRuntime(ROLES)) as engine:
        assert engine.score("Honey keeps for years.", HONEY, metrics=["nli"]).citations == ()
    for role in ("nli", "embedder"):
        with Engine(FakeRuntime(ROLES | {role: fail})) as engine:
            result = engine.score("Honey keeps for years.", HONEY, metrics=["citations"])
        assert (result.status, result.value, result.citations) == ("failed", None, ())


def test_the_calls_are_those_of_bertscore_and_inference() -> None:
    """So beside these metrics citations of a sentence by a one-sentence passage cost nothing."""
    asked: list[set[Any]] = []
    for metrics in (["bertscore", "nli"], ["bertscore", "nli", "citations"]):
        runtime = FakeRuntime(ROLES)
        with Engine(runtime) as engine:
            engine.score("Honey keeps for years.", ["Honey KEEPS for years.", "Bees make it."], metrics=metrics)
        asked.append({call for _, calls in runtime.batches for call in calls})
    extra = asked[1] - asked[0]
    assert asked[0] < asked[1]
    assert {type(call) for call in extra} == {Classify}
    assert len(extra) == 2


def test_the_first_sentence_of_a_passage_says_who_the_others_speak_of() -> None:
    runtime = FakeRuntime(ROLES)
    passage = "Bob Ross was a painter. He hosted the show on television."
    with Engine(runtime) as engine:
        result = engine.score(
            "Bob Ross hosted the show on television.", [passage, "The show ran."], metrics=["citations"]
        )
    premises = {call.premises[0] for _, calls in runtime.batches for call in calls if isinstance(call, Classify)}
    assert premises == {passage.lower(), "bob ross was a painter."}
    assert cited(result) == [("0", "He hosted the show on television.")]


def test_a_word_that_many_sentences_have_weighs_less() -> None:
    passage = "Honey is sweet. Honey is gold. Honey is old. Bees fly."
    explanation = score("Honey and bees.", passage).metrics["citations"].explanation
    assert isinstance(explanation, CitationsExplanation)
    overlaps = {candidate.text: candidate.overlap for candidate in explanation.sentences[0].candidates}
    # "honey" is in three sentences: 1/4; "bees" in one: 1/2.
    assert overlaps["Bees fly."] == pytest.approx((1 / 2) / (1 / 4 + 1 / 2))
    assert overlaps["Honey is sweet."] == pytest.approx((1 / 4) / (1 / 4 + 1 / 2))


def test_long_knowledge_is_truncated_with_a_message() -> None:
    result = score("Honey keeps for years.", "a " * 250_001)
    assert result.status == "truncated"
    assert "250000 words" in result.message


@given(st.lists(st.sampled_from(["Honey", "keeps", "bees", "Ross", "show", ".", "\n", "İ"]), min_size=1, max_size=30))
def test_each_sentence_is_aligned_as_if_token_by_token(parts: list[str]) -> None:
    passage = " ".join(parts)
    parsed = sentences(passage)
    embedded = embed(Embed(passage))
    table = TokenTable.join([embedded], [0], [PassageSentence(0, sentence) for sentence in parsed])
    query = embed(Embed("honey and bees"))
    rows = query.vectors[find_content_tokens(query, sentences("honey and bees")[0])]
    expected = [
        np.mean([word in split(sentence.text.lower()) for word in ("honey", "bees")]) if split(sentence.text) else 0.0
        for sentence in parsed
    ]
    assert align(rows, table).tolist() == pytest.approx(expected)


def test_support_grows_with_entailment_and_falls_with_nothing_that_supports() -> None:
    low, high = (SupportFeatures(0.8, 0.8, share, 0.05) for share in (0.1, 0.9))
    assert EMBEDDED.support(low) < EMBEDDED.support(high)
    assert EMBEDDED.support(SupportFeatures(0.1, 0.0, 0.9, 0.05)) < EMBEDDED.support(high)
    assert 0 <= EMBEDDED.support(SupportFeatures(0, 0, 0, 1)) < EMBEDDED.support(SupportFeatures(1, 1, 1, 0)) <= 1


def test_a_stream_cites_each_sentence_by_its_place() -> None:
    runtime = FakeRuntime(ROLES | {"detector.verifiability": verify}, calibration=CALIBRATION)
    text = "Honey keeps for years. Bees make it in their hives."
    metrics = ["nli", "verifiability", "citations"]
    with Engine(runtime) as engine:
        stream = Guard(engine).open(HONEY, metrics=metrics)
        events = [*stream.feed(text)]
        whole = stream.finish()
        events += stream.last_events
    streamed = [citation for event in events if isinstance(event, SentenceEvent) for citation in event.citations]
    assert len(streamed) == 2
    assert streamed == list(whole.citations)


def test_a_letter_whose_lower_case_is_two_moves_no_range() -> None:
    result = score("Honey keeps for years.", "İİ is old. Honey keeps for years.")
    assert cited(result) == [("0", "Honey keeps for years.")]
    assert result.citations[0].evidence.start == 11
    explanation = result.metrics["citations"].explanation
    assert isinstance(explanation, CitationsExplanation)
    assert explanation.sentences[0].candidates[0].similarity == pytest.approx(1.0)


def explain(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    def load(cls: type[Engine], *args: Any, **kwargs: Any) -> Engine:
        return cls(FakeRuntime(ROLES | {"detector.verifiability": verify}, calibration=CALIBRATION))

    monkeypatch.setattr(Engine, "load", classmethod(load))
    return CliRunner().invoke(app, ["explain", *arguments]).output


def test_explain_shows_both_texts_with_the_numbers_of_citations(monkeypatch: pytest.MonkeyPatch) -> None:
    response = "Cats have tails. And Bob Ross hosted the show! Honey keeps for years."
    output = explain(monkeypatch, response, "-k", HONEY, "-k", SHOW.strip(), "--table")
    assert re.search(r"show! \[2\]", output)
    assert output.count("[1]") == 2
    row = next(line for line in output.splitlines() if "│ Cats have tails" in line)
    assert "[1] Honey keeps for years." in row
    assert "[2] Bob Ross hosted the show." in output
    chosen = explain(monkeypatch, response, "-k", HONEY, "-k", SHOW.strip(), "--table", "--metrics", "nli")
    assert "[1]" not in chosen
    assert "citations" not in chosen
