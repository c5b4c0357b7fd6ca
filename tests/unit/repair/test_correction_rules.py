"""The rules of corrections: alignment, removals, and what may stand for what."""

from __future__ import annotations

import pytest

from groundwire.engine import MetricResult, Score, UnsupportedSpan, Verdict
from groundwire.engine.schema.explanations import (
    Comparison,
    PassageRange,
    Q2Explanation,
    StatedValue,
    ValuesExplanation,
)
from groundwire.engine.schema.results import SentenceVerdict, Timings
from groundwire.engine.text.sentences import Sentence, sentences
from groundwire.repair.correction.alignment import MAX_LENGTH, align_words
from groundwire.repair.correction.choosing import ScoredDraft, choose_drafts, find_sentence, is_better, sum_model_shares
from groundwire.repair.correction.drafts import Draft, DraftEdit, make_drafts, remove_sentence
from groundwire.repair.correction.proposals import Proposal, propose
from groundwire.repair.correction.removal import MAX_CHARS, find_removals
from groundwire.repair.correction.sources import Sources, SourceSentence
from groundwire.runtime.calls import TextSpan


@pytest.mark.parametrize(
    ("ours", "known", "expected"),
    [
        ("the plan was rejected by them", "the plan was approved by them", [("rejected", "approved", True)]),
        # Other words are exchanged only one for one, and only if they say something.
        (
            "the plan was rejected by them",
            "the plan was at last approved by them",
            [("rejected", "at last approved", False)],
        ),
        ("the plan was made by them", "the plan was made for them", [("by", "for", False)]),
        # Without enough equal words around it, a difference says nothing.
        ("the old plan", "the new idea", []),
        # Too many words differ.
        ("a b c " + "x " * 8 + "d e f", "a b c y d e f", []),
        # Words that only one side has count if they are a negation.
        ("they had not seen the old town", "they had seen the old town", [("had not", "had", False)]),
        ("they had seen the old town", "they had never seen the old town", [("had", "had never", False)]),
        ("they had seen the old town", "they had often seen the old town", []),
        # What the sentence says besides must be the same.
        ("Ann is not known as one of them", "such as one of them, not as Ann", []),
        ("they did not see the old town", "they were near the old town", []),
        ("not seen by the old town", "seen by the old town", []),
        ("they had seen the old town", "they never, to my mind, had seen the old town", []),
        ("we had not a b c d e f g", "they had x y z v a b c", []),
        ("word " * (MAX_LENGTH + 1), "word", []),
    ],
)
def test_sentences_are_aligned(ours: str, known: str, expected: list[tuple[str, str, bool]]) -> None:
    results = list(align_words(ours, known))
    assert [(ours[item.start : item.end], item.text, item.is_plain) for item in results] == expected
    assert all(known[item.known_start : item.known_end] == item.text for item in results)


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("Ann won a prize (in Rome) at last.", "Rome", [" (in Rome)"]),
        ("Ann, who is from Rome, won a prize.", "Rome", [", who is from Rome,"]),
        ("Ann won a prize, which Bob gave her.", "Bob", [", which Bob gave her"]),
        ("Ann won a prize and sang in Rome.", "sang", [" and sang in Rome"]),
        ("Ann won a prize in Rome!", "Rome", [" in Rome"]),
        # What needs it is left with it.
        ("The old prize was in Rome.", "Rome", []),
        ("The old town is located in Rome.", "Rome", []),
        # Too little would remain.
        ("Ann sang in Rome.", "Rome", []),
        ("Ann won a prize in Rome.", "Ann", []),
        ("Ann won " + "a prize " * (MAX_CHARS // 8) + "in Rome.", "Rome", []),
    ],
)
def test_parts_are_left_out(text: str, part: str, expected: list[str]) -> None:
    start = text.index(part)
    results = find_removals(text, start, start + len(part))
    assert [text[item.start : item.end] for item in results] == expected


def test_evidence_outside_the_knowledge_is_none() -> None:
    sources = Sources(["One is here. Two is there.", "Three."])
    around = sources.find_around(PassageRange(0, 13, 16))
    assert around is not None
    assert (around.text, around.start) == ("Two is there.", 13)
    assert around is sources.find_around(PassageRange(0, 20, 25))
    for evidence in (
        PassageRange(0, 5, 5),
        PassageRange(0, 5, 20),
        PassageRange(2, 0, 1),
        PassageRange(-1, 0, 1),
        PassageRange(0, -1, 1),
        PassageRange(1, 0, 99),
        PassageRange(0, 90, 99),
    ):
        assert sources.find_around(evidence) is None


def make_proposal(response: str, old: str, known: str, new: str) -> Proposal:
    start, at = response.index(old), known.index(new)
    where = PassageRange(0, at, at + len(new))
    return Proposal(start, start + len(old), new, "value", 1.0, where, SourceSentence(0, known, 0))


@pytest.mark.parametrize(
    ("response", "old", "known", "new"),
    [
        # "4 million" is no number of the knowledge, "Ann Ross" no name.
        ("It has 9 million stars.", "9", "It has 4 hundred stars.", "4"),
        ("Bob Ross sang it.", "Bob", "Ann met Eve Ross.", "Ann"),
        # A word of the proposal that the sentence does not have.
        ("Bob sang it.", "Bob", "Ann sang it.", "Ann sang it."),
    ],
)
def test_a_draft_that_says_something_new_is_none(response: str, old: str, known: str, new: str) -> None:
    proposal = make_proposal(response, old, known, new)
    if new == "Ann sang it.":
        proposal = proposal._replace(text="Zoe")
    assert list(make_drafts(response, sentences(response)[0], [proposal], [], [])) == []


def test_a_removal_that_joins_two_names_is_none() -> None:
    text = "Ann met Bob (in Oslo) Ross there."
    doubt = UnsupportedSpan("Oslo", 16, 20, "not_in_knowledge", type="entity", knowledge="silent", severity="medium")
    assert list(make_drafts(text, sentences(text)[0], [], [doubt], [])) == []
    text = text.replace(" Ross", "")
    (draft,) = make_drafts(text, sentences(text)[0], [], [doubt], [])
    assert draft.response == "Ann met Bob there."
    # Not with what is supported, and not for what hardly matters.
    assert list(make_drafts(text, sentences(text)[0], [], [doubt], [TextSpan("Oslo", 16, 20)])) == []
    minor = UnsupportedSpan("Oslo", 16, 20, "not_in_knowledge", type="addition", knowledge="silent", severity="low")
    assert list(make_drafts(text, sentences(text)[0], [], [minor], [])) == []


def test_proposals_that_are_trusted_are_drafted_together_first() -> None:
    response, known = "Bob sang in Oslo.", "Ann sang in Rome."
    proposals = [make_proposal(response, *pair) for pair in (("Bob", known, "Ann"), ("Oslo", known, "Rome"))]
    drafts = list(make_drafts(response, sentences(response)[0], [*proposals, proposals[0]], [], []))
    assert [draft.response for draft in drafts] == ["Ann sang in Rome.", "Ann sang in Oslo.", "Bob sang in Rome."]


def test_the_last_sentence_is_not_removed() -> None:
    assert remove_sentence("It is so.", Sentence("It is so.", 0, 9)) is None
    draft = remove_sentence("It is. It is so. No.", Sentence("It is so.", 7, 16))
    assert draft is not None
    assert draft.response == "It is. No."


def make_score(
    *sentence_labels: tuple[str, float | None], value: float = 0.5, contributions: dict[str, float] | None = None
) -> Score:
    """A score of sentences of ten characters each, with these labels and probabilities.

    Without ``contributions`` a model is as sure as the probability says.
    """
    parts = tuple(
        SentenceVerdict(
            "x" * 10,
            10 * index,
            10 * index + 10,
            Verdict(label, probability, contributions=contributions or {"nli.expected": probability or 0.0}),
        )  # type: ignore[arg-type]
        for index, (label, probability) in enumerate(sentence_labels)
    )
    return Score(
        "scored",
        value,
        parts[0].verdict if parts else Verdict("unknown"),
        {"nli": MetricResult("nli", "scored", value)},
        (),
        None,
        Timings(0.0, {}),
        "",
        sentences=parts,
    )


def make_draft(trust: float = 1.0) -> Draft:
    edit = DraftEdit(2, 4, 2, 5, "replace", "value", None)
    return Draft("", (edit,), Sentence("x" * 10, 0, 10), trust)


WRONG = make_score(("inconsistent", 0.2))


@pytest.mark.parametrize(
    ("after", "trust", "chosen"),
    [
        (make_score(("consistent", 0.8)), 1.0, True),
        (make_score(("inconsistent", 0.3)), 1.0, True),
        (make_score(("inconsistent", 0.22)), 1.0, False),
        (make_score(("unverifiable", 0.9)), 1.0, False),
        (make_score(("unknown", None)), 1.0, False),
        (make_score(), 1.0, False),
        # A guess has to convince.
        (make_score(("inconsistent", 0.45)), 0.3, False),
        (make_score(("consistent", 0.7)), 0.3, True),
    ],
)
def test_a_draft_is_chosen_if_its_sentence_is_better(after: Score, trust: float, chosen: bool) -> None:
    assert bool(choose_drafts(WRONG, [ScoredDraft(make_draft(trust), after)])) is chosen


def test_what_a_rule_refuted_is_not_won_by_an_edit_alone() -> None:
    """A sentence without its contradicted value is more probable whatever is in its place."""
    old = make_score(("inconsistent", 0.03), contributions={"nli.expected": -1.0, "values.contradicted": -4.0})
    shared, learned = (
        make_score(("consistent", 0.6), contributions={"nli.expected": share, "overlap_precision": 3.0})
        for share in (-1.0, 0.0)
    )
    assert (sum_model_shares(old.sentences[0].verdict), sum_model_shares(shared.sentences[0].verdict)) == (-1.0, -1.0)
    assert choose_drafts(old, [ScoredDraft(make_draft(1.0), shared)])
    assert not choose_drafts(old, [ScoredDraft(make_draft(0.7), shared)])
    assert choose_drafts(old, [ScoredDraft(make_draft(0.7), learned)])
    assert sum_model_shares(Verdict("unknown")) == 0.0


def test_the_best_of_several_drafts_is_chosen_for_each_sentence() -> None:
    good, better = (ScoredDraft(make_draft(), make_score(("consistent", share))) for share in (0.6, 0.9))
    assert choose_drafts(WRONG, [good, better]) == [better]
    assert find_sentence(WRONG.sentences, 99) is None
    stopped = Score(
        **{**_fields(make_score(("consistent", 0.9))), "metrics": {"nli": MetricResult("nli", "failed", message="x")}}
    )
    assert choose_drafts(WRONG, [ScoredDraft(make_draft(), stopped)]) == []
    assert not is_better(WRONG, stopped)


def _fields(score: Score) -> dict[str, object]:
    return {name: getattr(score, name) for name in score.__struct_fields__}


def test_answers_replace_what_is_of_their_type_alone() -> None:
    response, knowledge = "The tale was heard to Ann in 1950.", "In 1960, the tale was heard to Eve by a quiet man."

    def propose_for(text: str, answer: str, kind: str = "ent:DATE", known: str = knowledge) -> list[str]:
        start, at = response.index(text), known.find(answer)
        where = PassageRange(0, at, at + len(answer)) if answer else None
        span = TextSpan(text, start, start + len(text), kind)
        asked = Comparison(span, "?", 0, True, knowledge_answer=answer, value=0.0, evidence=where)
        doubt = UnsupportedSpan(text, start, start + len(text), "contradiction", answer, "q2")
        result = MetricResult("q2", "scored", 0.0, explanation=Q2Explanation((span,), (asked,)))
        score = Score(**{**_fields(WRONG), "metrics": {"q2": result}, "unsupported": (doubt,)})
        results = propose(response, sentences(response)[0], score, Sources([known]))
        return [item.text for item in results if item.source == "answer"]

    assert propose_for("1950", "1960") == ["1960"]
    assert propose_for("1950", "Eve") == []
    assert propose_for("1950", "a quiet man") == []
    assert propose_for("1950", "") == []
    assert propose_for("Ann", "Eve", "ent:PERSON") == ["Eve"]
    assert propose_for("The tale", "a quiet man", "noun_chunk") == []
    # A number that belongs to a name is no answer.
    assert propose_for("1950", "50", known="The tale was heard to Eve in Super Bowl 50.") == []


@pytest.mark.parametrize(
    ("knowledge", "objection"),
    [
        ("Members over 70 are exempt. The plot has 65 trees.", ""),
        ("Members over 65 are exempt, members over 70 are exempt twice.", "it is not plain"),
        ("The plot has 70 members and 65 trees.", "it is not plain"),
    ],
)
def test_a_value_of_something_else_gives_way_to_the_value_of_the_same_words(knowledge: str, objection: str) -> None:
    response = "Members over 65 are exempt."
    start, at = response.index("65"), knowledge.index("65")
    stated = StatedValue("number", "65", start, start + 2, "65", "supported", "65", PassageRange(0, at, at + 2))
    result = MetricResult("values", "scored", 1.0, explanation=ValuesExplanation((stated,)))
    doubt = UnsupportedSpan("65", start, start + 2, "detected", "", "reader")
    score = Score(**{**_fields(WRONG), "metrics": {"values": result}, "unsupported": (doubt,)})
    results = propose(response, sentences(response)[0], score, Sources([knowledge]))
    (proposal,) = {item.text: item for item in results if item.text == "70"}.values()
    assert objection in proposal.objection
    assert bool(objection) == bool(proposal.objection)
