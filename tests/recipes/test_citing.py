"""Citations against named evidence, claims of FEVER, and the fit: counts worked out by hand, and recovered weights."""

from __future__ import annotations

import gzip
from pathlib import Path

import msgspec
import numpy as np
import pytest

from groundwire.engine import MetricResult, Score
from groundwire.engine.metrics.support import SupportFeatures, SupportModel
from groundwire.engine.schema.explanations import CitationCandidate, PassageRange
from groundwire.engine.schema.results import Citation
from groundwire.evaluate.datasets import read_dataset
from groundwire.evaluate.datasets.examples import Example
from groundwire.evaluate.report.text import PassagePiece, split_into_pieces, split_passage
from groundwire.evaluate.statistics.citing import measure_citing
from groundwire.evaluate.statistics.human_labels import HumanLabels
from groundwire.evaluate.statistics.results import CitingFigures
from groundwire.recipes.citing.fever import assign_part, find_text, read_fever_claims
from groundwire.recipes.citing.fitting import RatedSentence, fit_support, measure_reach
from groundwire.runtime.errors import InvalidRequest
from tests.support.evaluation import make_example, score

PASSAGE = "It is old. It is long. It is blue."
FIRST, SECOND, THIRD = (PassageRange(0, 0, 10), PassageRange(0, 11, 22), PassageRange(0, 23, 34))


def cite(*evidence: PassageRange, status: str = "scored") -> Score:
    """A score that cites ``evidence`` for its only sentence."""
    value = 1.0 if status == "scored" else None
    result = MetricResult("citations", status, value)  # type: ignore[arg-type]
    citations = tuple(Citation(0, 5, part, PASSAGE[part.start : part.end], 0.9) for part in evidence)
    return msgspec.structs.replace(score({"nli": 0.2}), metrics={"citations": result}, citations=citations)


def name(number: int, *evidence: PassageRange, looked: bool = True) -> Example:
    example = msgspec.structs.replace(make_example(str(number), 0), knowledge=(PASSAGE,))
    return msgspec.structs.replace(example, evidence=evidence if looked else None)


def measure(examples: list[Example], scores: list[Score]) -> CitingFigures | None:
    return measure_citing(examples, scores, HumanLabels(examples, 20, 0))


def test_sentences_are_counted_over_all_responses() -> None:
    examples = [name(0, FIRST), name(1, PassageRange(0, 2, 14)), name(2), name(3, looked=False)]
    figures = measure(examples, [cite(FIRST, THIRD), cite(SECOND), cite(THIRD), cite(THIRD)])
    assert figures is not None
    # Cited: first, third; second; third. Wanted: first; first, second; none. Two of four are right.
    assert figures.examples == 3
    assert figures.sentences.precision.value == pytest.approx(2 / 4)
    assert figures.sentences.recall.value == pytest.approx(2 / 3)
    assert figures.sentences.f1.value == pytest.approx(4 / 7)


def test_what_has_no_citations_or_no_evidence_is_left_out() -> None:
    assert measure([name(0, looked=False)], [cite(FIRST)]) is None
    assert measure([name(0, FIRST)], [cite(status="failed")]) is None
    assert measure([name(0, FIRST)], [score({"nli": 0.2})]) is None
    figures = measure([name(0, FIRST), name(1, FIRST)], [cite(status="nothing_to_verify"), cite(status="truncated")])
    assert figures is not None
    assert (figures.examples, figures.sentences.recall.value) == (1, 0.0)


def test_evidence_is_read_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    row = {"response": "It is old.", "knowledge": ["So.", f"  {PASSAGE} "]}
    part = {"passage": 1, "start": 2, "end": 12}
    rows = [{**row, "evidence": [part]}, {**row, "evidence": []}, row]
    file.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    first, *others = read_dataset(file)
    assert first.evidence == (PassageRange(1, 0, 10),)
    assert first.knowledge[1][:10] == "It is old."
    assert [example.evidence for example in others] == [(), None]
    for wrong, message in (
        ({**part, "passage": 2}, "evidence names passage 2; the knowledge has 2"),
        ({**part, "end": 99}, "evidence has the characters 2 to 99; passage 1 has 37"),
    ):
        file.write_bytes(msgspec.json.encode({**row, "evidence": [wrong]}))
        with pytest.raises(InvalidRequest, match=message):
            read_dataset(file)


def test_claims_are_read_with_the_evidence_in_their_article(tmp_path: Path) -> None:
    titles = {
        part: next(title for title in map(str, range(50)) if assign_part(title) == part) for part in ("fit", "held_out")
    }
    articles = tmp_path / "articles.jsonl"
    articles.write_bytes(
        b"\n".join(msgspec.json.encode({"title": title, "text": PASSAGE}) for title in titles.values())
    )
    claims = tmp_path / "claims.jsonl.gz"
    claim = {"id": "1", "hypothesis": "The hat is long.", "premise": "it is long", "label": "entailment"}
    rows = [
        {**claim, "title": titles["fit"]},
        {**claim, "title": titles["fit"], "id": "2", "label": "contradiction"},
        {**claim, "title": titles["held_out"], "id": "3"},
        {**claim, "title": titles["fit"], "premise": "It is loud"},
        {**claim, "title": "no article"},
    ]
    claims.write_bytes(gzip.compress(b"\n".join(map(msgspec.json.encode, rows))))
    fitted = read_fever_claims(claims, articles, "fit")
    assert [(example.id, example.label, example.evidence) for example in fitted] == [
        ("1", 1, (PassageRange(0, 11, 21),)),
        ("2", 0, ()),
    ]
    assert [example.id for example in read_fever_claims(claims, articles, "held_out")] == ["3"]
    claims.write_bytes(gzip.compress(msgspec.json.encode({**claim, "title": "no article"})))
    with pytest.raises(InvalidRequest, match=r"No claim of .* has its evidence"):
        read_fever_claims(claims, articles, "fit")
    with pytest.raises(InvalidRequest, match="cannot be read as lines of Claim"):
        read_fever_claims(tmp_path / "missing.jsonl", articles, "fit")


def test_text_is_found_by_its_letters_and_digits() -> None:
    assert find_text("Kesha (born March 1, 1987) sings.", "born march 1 1987") == (7, 25)
    assert find_text("Kesha", "Elvis") is None
    assert find_text("Kesha", "?!") is None


def test_the_fit_recovers_the_model_that_drew_the_labels() -> None:
    rng = np.random.default_rng(1)
    model = SupportModel(-2.0, 2.0, 1.0, 1.0, -0.5, 1.0)

    def draw() -> RatedSentence:
        similarity, overlap, entailment = rng.random(3).tolist()
        contradiction = (1 - entailment) * rng.random()
        evidence = SupportFeatures(similarity, overlap, entailment, contradiction)
        supports = bool(rng.random() < model.support(evidence))
        return RatedSentence(CitationCandidate(FIRST, "It is old.", *evidence, 0.0), supports)

    rated = [[draw() for _ in range(2)] for _ in range(4000)]
    fitted = fit_support(rated, 2)
    drawn = [SupportFeatures(*msgspec.structs.astuple(item.candidate)[2:6]) for sentence in rated for item in sentence]
    means = [np.mean([support_model.support(item) for item in drawn]) for support_model in (model, fitted)]
    assert means[0] == pytest.approx(means[1], abs=0.02)
    assert list(fitted[1:5]) == pytest.approx(list(model[1:5]), abs=0.35)
    assert measure_reach(rated, fitted, 2) == 1.0


def test_the_order_that_finds_most_evidence_is_chosen() -> None:
    """Where similarity is noise and overlap says everything, overlap has the largest weight."""
    rng = np.random.default_rng(2)
    rated = []
    for _ in range(200):
        right = int(rng.integers(4))
        rated.append(
            [
                RatedSentence(
                    CitationCandidate(FIRST, "", float(rng.random()), float(number == right), 0.5, 0.1, 0.0),
                    number == right,
                )
                for number in range(4)
            ]
        )
    model = fit_support(rated, 2)
    assert measure_reach(rated, model._replace(rank_overlap=0.0), 2) < 0.7
    assert measure_reach(rated, model, 2) == 1.0


def test_the_report_links_both_texts() -> None:
    response = "It is blue and old. So."
    citations = (Citation(0, 19, THIRD, "", 0.9), Citation(0, 19, FIRST, "", 0.8))
    pieces = split_into_pieces(response, (), citations)
    assert [(piece.text, piece.cited) for piece in pieces] == [("It is blue and old.", (1, 2)), (" So.", ())]
    assert split_passage(PASSAGE, 0, citations) == (
        PassagePiece("It is old.", 1),
        PassagePiece(" It is long. "),
        PassagePiece("It is blue.", 2),
    )
    assert split_passage("other", 1, citations) == (PassagePiece("other"),)
    assert split_passage("short", 0, citations) == (PassagePiece("short"),)
