"""``Corrector.correct`` on fake models: what is written, what is refused, and what never changes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from groundwire.engine import Engine, InvalidRequest, ModelError, Options
from groundwire.engine.schema.explanations import PassageRange
from groundwire.repair import Correction, CorrectOptions, Corrector
from groundwire.repair.correction.pipeline import VALUES
from groundwire.repair.correction.refusals import NO_DRAFT, explain_refusal
from groundwire.runtime.calls import Classify
from groundwire.runtime.protocol import Outcome
from tests.support import fakes
from tests.support.correcting import CALIBRATION, METRICS, entail, make_engine

SALE = "The pass ends with the year, and the sale begins in July."
VIOLIN = "The violin is old. It has four strings, and Stradivari made it in Cremona."


@pytest.mark.parametrize(
    ("response", "knowledge", "expected", "source"),
    [
        ("It has six strings.", VIOLIN, "It has four strings.", "value"),
        ("Six strings, it has.", VIOLIN, "Four strings, it has.", "value"),
        ("Stradivari made it in Turin.", VIOLIN, "Stradivari made it in Cremona.", "value"),
        ("it has\t six  strings!\n", VIOLIN, "it has\t four  strings!\n", "value"),
        # The noun after a number goes with it.
        ("The violin has 6 strings.", "The violin has 1 string.", "The violin has 1 string.", "value"),
        ("It is an Irish song.", "It is a French song.", "It is a French song.", "wording"),
        # Words and negations, where the rest of the sentence is the same.
        (
            "The plan was rejected by the old board.",
            "The plan was approved by the old board.",
            "The plan was approved by the old board.",
            "wording",
        ),
        ("Honey was not sold in the old town.", "Honey was sold in the old town.", None, "wording"),
        ("Honey was sold in the old town.", "Honey was not sold in the old town.", None, "wording"),
        ("Honey wasn't sold in the old town.", "Honey was sold in the old town.", None, "wording"),
        # A name of which the knowledge says nothing gives way to the only other one.
        (
            "Bob Ross sang the old song.",
            "The old song that Ann Lee sang is known.",
            "Ann Lee sang the old song.",
            "candidate",
        ),
        # What can be left out is left out, where nothing can be put in its place.
        ("Honey keeps for years in Oslo.", "Honey keeps for years.", None, "removal"),
        ("Honey keeps for years (in Oslo).", "Honey keeps for years.", None, "removal"),
        ("Honey, known from Oslo, keeps for years.", "Honey keeps for years.", None, "removal"),
    ],
)
def test_unsupported_words_give_way_to_those_of_the_knowledge(
    response: str, knowledge: str, expected: str | None, source: str
) -> None:
    with make_engine() as engine:
        correction = Corrector(engine).correct(response, knowledge)
    assert (correction.status, correction.response) == ("corrected", expected or knowledge)
    assert {edit.source for edit in correction.edits} == {source}
    assert correction.accepted
    assert correction.after is not None
    assert correction.after.verdict.label == "consistent"
    check_edits(correction, knowledge)


def check_edits(correction: Correction, knowledge: str) -> None:
    """Outside the edits nothing is changed, and their evidence has the words that they write."""
    rebuilt, position = "", 0
    for edit in correction.edits:
        assert correction.original[edit.start : edit.end] == edit.old
        assert correction.response[edit.new_start : edit.new_end] == edit.new
        rebuilt += correction.original[position : edit.start]
        assert len(rebuilt) == edit.new_start
        rebuilt += edit.new
        position = edit.end
        assert (edit.evidence is None) == (edit.source == "removal")
        if edit.evidence is not None:
            said = knowledge[edit.evidence.start : edit.evidence.end].casefold().split()
            assert set(edit.new.casefold().split()) <= {*said, *edit.old.casefold().split(), "a", "an", "the"}
    assert rebuilt + correction.original[position:] == correction.response


def test_an_edit_cites_what_it_is_taken_from_and_the_words_that_it_is_about() -> None:
    with make_engine() as engine:
        (edit,) = Corrector(engine).correct("It has six strings.", ["Nothing here.", VIOLIN]).edits
    assert edit.evidence == PassageRange(1, VIOLIN.index("four"), VIOLIN.index("four") + len("four"))
    assert edit.span is not None
    assert (edit.span.type, edit.span.knowledge, edit.span.severity) == ("number", "contradicts", "high")


def test_an_answer_of_the_knowledge_replaces_what_was_asked_about() -> None:
    roles = fakes.ROLES | {"nli": entail}
    with make_engine(**roles) as engine:
        # No value of the knowledge has the same role, but the reader finds one.
        correction = Corrector(engine).correct(
            "The tale was heard in 1950.",
            "In 1960, the tale was heard, and read again later.",
            metrics=["q2", *METRICS],
        )
    assert correction.response == "The tale was heard in 1960."
    assert correction.edits[0].source in ("answer", "value", "candidate")


def test_sentences_are_corrected_together_and_the_others_stay() -> None:
    response = "It has six strings.  The violin is old. Stradivari made it in Turin."
    with make_engine() as engine:
        correction = Corrector(engine).correct(response, VIOLIN, options=CorrectOptions(max_drafts=8))
    assert correction.response == "It has four strings.  The violin is old. Stradivari made it in Cremona."
    assert [edit.old for edit in correction.edits] == ["six", "Turin"]
    check_edits(correction, VIOLIN)


def test_a_sentence_is_left_out_only_if_the_caller_allows_it_and_another_remains() -> None:
    response = "Bob sings loudly. The violin is old."
    with make_engine() as engine:
        assert Corrector(engine).correct(response, VIOLIN).status == "refused"
        shorter = Corrector(engine).correct(response, VIOLIN, options=CorrectOptions(remove_sentences=True))
        last = Corrector(engine).correct(
            "The violin is old. Bob sings loudly.", VIOLIN, options=CorrectOptions(remove_sentences=True)
        )
        assert (
            Corrector(engine).correct("Bob sings loudly.", VIOLIN, options=CorrectOptions(remove_sentences=True)).status
            == "refused"
        )
    assert (shorter.response, last.response) == ("The violin is old.", "The violin is old.")
    assert [edit.action for edit in (*shorter.edits, *last.edits)] == ["remove_sentence"] * 2
    check_edits(shorter, VIOLIN)
    check_edits(last, VIOLIN)


def test_of_sentences_that_could_all_be_left_out_the_last_stays() -> None:
    response = "Bob sings loudly. Bob sings badly. Bob sings late."
    with make_engine() as engine:
        correction = Corrector(engine).correct(response, VIOLIN, options=CorrectOptions(remove_sentences=True))
    assert correction.response == "Bob sings late."
    assert correction.status == "partial"
    check_edits(correction, VIOLIN)


def test_what_is_consistent_is_clean() -> None:
    with make_engine() as engine:
        correction = Corrector(engine).correct("It has four strings.", VIOLIN)
    assert (correction.status, correction.response, correction.edits) == ("clean", "It has four strings.", ())
    assert (correction.after, correction.accepted, correction.probability_before) == (None, None, None)


def test_what_the_knowledge_has_nothing_for_is_refused_with_the_reason() -> None:
    with make_engine() as engine:
        correction = Corrector(engine).correct("Bob sings loudly.", VIOLIN)
    assert (correction.status, correction.response) == ("refused", "Bob sings loudly.")
    assert "nothing of the same kind" in correction.message
    assert correction.unresolved == correction.before.unsupported


def test_a_refusal_names_the_candidate_that_is_not_trusted() -> None:
    with make_engine() as engine:
        contradicted, silent = (
            explain_refusal(text, engine.score(text, VIOLIN)) for text in ("It has six strings.", "Bob sings loudly.")
        )
    assert "what the response gives as 'six'" in contradicted
    assert silent == NO_DRAFT


def test_a_draft_that_is_not_better_is_refused() -> None:
    def doubt(call: Classify) -> Outcome:
        return entail(Classify(call.role, ("nothing",), call.hypothesis))

    with make_engine(nli=doubt) as engine:
        # The values of the draft are right, but the model doubts it as before.
        correction = Corrector(engine).correct(
            "The plan was rejected by the old board.", "The plan was approved by the old board."
        )
    assert (correction.status, correction.response) == ("refused", "The plan was rejected by the old board.")
    assert "doubt every correction" in correction.message


def test_a_name_of_which_the_knowledge_has_a_part_is_not_exchanged() -> None:
    with make_engine() as engine:
        correction = Corrector(engine).correct(
            "The old song is that of Bob Ross.", "The old song that Ann Lee sang is of the year in which Ross was born."
        )
    assert "Bob Ross" in correction.response


def test_a_supported_value_in_other_words_is_not_touched() -> None:
    with make_engine() as engine:
        correction = Corrector(engine).correct("It was sung in the 19th century by Bob.", "It was sung in 1889 by Ann.")
    assert "19th century" in correction.response


@pytest.mark.parametrize(
    ("response", "knowledge", "expected"),
    [
        # The word before the date is said of something else in the knowledge.
        ("She was born in 1968.", "Born in Oslo, she moved to Rome in 1978.", "She was born in 1968."),
        ("The pass ends in May.", SALE, "The pass ends in May."),
        ("She was born in 1968.", "Raised in Oslo, she was born in 1978.", "She was born in 1978."),
        ("The sale begins in May.", SALE, "The sale begins in July."),
    ],
)  # fmt: skip
def test_a_date_is_not_replaced_by_that_of_something_else(response: str, knowledge: str, expected: str) -> None:
    with make_engine() as engine:
        assert Corrector(engine).correct(response, knowledge).response == expected


def test_without_a_verdict_nothing_is_corrected() -> None:
    with make_engine(None) as engine:
        correction = Corrector(engine).correct("It has six strings.", VIOLIN, metrics=METRICS)
    assert (correction.status, correction.response) == ("unknown", "It has six strings.")
    assert "no calibration" in correction.message
    with make_engine() as engine:
        correction = Corrector(engine).correct("It has six strings.", VIOLIN, metrics=["values"])
    assert (correction.status, correction.response) == ("unknown", "It has six strings.")


def test_a_model_that_fails_ends_the_correction_before_or_after_the_drafts() -> None:
    def fail(call: Classify) -> Outcome:
        raise ModelError("out of order")

    def fail_later(call: Classify) -> Outcome:
        if "four" in call.hypothesis:
            raise ModelError("out of order")
        return entail(call)

    for roles in (fail, fail_later):
        with make_engine(nli=roles) as engine:
            correction = Corrector(engine).correct("It has six strings.", VIOLIN)
        assert (correction.status, correction.response, correction.edits) == ("failed", "It has six strings.", ())
        assert correction.message


def test_a_deadline_that_has_passed_leaves_the_response_as_it_is() -> None:
    with make_engine() as engine:
        correction = Corrector(engine).correct("It has six strings.", VIOLIN, scoring=Options(deadline_ms=1e-9))
    assert (correction.status, correction.response) == ("deadline", "It has six strings.")


def test_no_more_drafts_are_scored_than_allowed() -> None:
    response = "The plan was rejected in 1950 by Bob Ross and Eve Poe."
    knowledge = "The plan was approved in 1960 by Ann Lee and Tom Fox. In 1970 and 1980, Kim Day and Lou May ran."
    for allowed in (1, 2, 5):
        asked: set[str] = set()

        def note(call: Classify, asked: set[str] = asked) -> Outcome:
            asked.add(call.hypothesis)
            return entail(Classify(call.role, ("nothing",), call.hypothesis))

        with make_engine(nli=note) as engine:
            Corrector(engine).correct(response, knowledge, options=CorrectOptions(max_drafts=allowed))
        assert 1 < len(asked) <= 1 + allowed * (1 + VALUES)


def test_asyncio_gives_the_same_and_records_survive_json() -> None:
    with make_engine() as engine:
        correction = Corrector(engine).correct("It has six strings.", VIOLIN)
        other = asyncio.run(Corrector(engine).acorrect("It has six strings.", VIOLIN))
    assert (other.response, other.edits, other.signature) == (
        correction.response,
        correction.edits,
        correction.signature,
    )
    assert Correction.from_json(correction.to_json()) == correction
    assert "correct:max_drafts=4,remove_sentences=False" in correction.signature


def test_cancelling_the_task_cancels_the_request() -> None:
    async def main(engine: Engine) -> None:
        task = asyncio.create_task(Corrector(engine).acorrect("It has six strings.", VIOLIN))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with make_engine() as engine:
        asyncio.run(main(engine))
        assert Corrector(engine).correct("It has six strings.", VIOLIN).status == "corrected"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"options": CorrectOptions(max_drafts=0)}, "max_drafts"),
        ({"options": CorrectOptions(remove_sentences="no")}, "remove_sentences is 'no'"),
        ({"knowledge": 5}, "knowledge is int"),
        ({"response": " "}, "response is empty"),
    ],
)
def test_unusable_arguments_are_named(settings: dict[str, Any], message: str) -> None:
    with make_engine() as engine, pytest.raises(InvalidRequest, match=message):
        Corrector(engine).correct(**{"response": "It is old.", "knowledge": VIOLIN, **settings})


def test_the_metrics_that_are_compared_are_those_of_the_verdict_and_the_quick_ones() -> None:
    roles = fakes.ROLES | {"nli": entail}
    with make_engine(**roles) as engine:
        correction = Corrector(engine).correct(
            "It has six strings.", VIOLIN, metrics=["q2", "nli", "values", "overlap"]
        )
    assert correction.after is not None
    assert "q2" in correction.before.metrics
    assert set(correction.after.metrics) == {"nli", "values", "overlap"}
    assert CALIBRATION.metrics == METRICS
