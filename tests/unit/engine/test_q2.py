"""Q², on models small enough to compute by hand."""

from __future__ import annotations

import re

import pytest

from groundwire.engine import Engine, InvalidRequest, LoadOptions, Options, Score
from groundwire.engine.metrics.claims import keep_overlapping
from groundwire.engine.schema.explanations import Q2Explanation
from groundwire.engine.schema.options import Q2Options
from groundwire.engine.text.reading import WINDOW_SIZE, count_pieces
from groundwire.engine.text.sentences import Sentence
from groundwire.generation import BeamSearch
from groundwire.runtime.calls import (
    Answer,
    Answered,
    Classified,
    Classify,
    GeneratedQuestion,
    GenerateQuestions,
    Read,
    TextSpan,
)
from groundwire.runtime.errors import TooLong
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome
from tests.support.fakes import ROLES, world
from tests.support.work import count_steps


def run(response: str, knowledge: str, options: Options | None = None, metric: str = "q2", **other: object) -> Score:
    with Engine(world(**other)) as engine:  # type: ignore[arg-type]
        return engine.score(response, knowledge, metrics=[metric], options=options)


def get_explanation(score: Score, name: str = "q2") -> Q2Explanation:
    explanation = score.metrics[name].explanation
    assert isinstance(explanation, Q2Explanation)
    return explanation


def test_equal_answers_score_1() -> None:
    score = run("Elvis was born in 1935.", "Elvis came in 1935.")
    assert (score.status, score.value, score.unsupported) == ("scored", 1.0, ())
    kept = [c for c in get_explanation(score).questions if c.kept]
    assert [(c.span.text, c.question, c.rank, c.value) for c in kept] == [
        ("Elvis", "which name?", 1, 1.0),
        ("1935", "which number?", 1, 1.0),
    ]


def test_a_contradiction_scores_0_and_marks_its_span() -> None:
    score = run("Elvis was born in 1936.", "Elvis came in 1935.")
    assert score.value == 0.5
    (span,) = score.unsupported
    assert (span.text, span.start, span.end) == ("1936", 18, 22)
    assert (span.reason, span.knowledge_says) == ("contradiction", "1935")


def test_a_question_without_answer_in_the_knowledge_scores_0() -> None:
    score = run("Elvis was born in 1936.", "Elvis was a singer.")
    assert score.value == 0.5
    assert [(s.text, s.reason) for s in score.unsupported] == [("1936", "no_answer")]


def test_a_neutral_label_keeps_the_token_f1() -> None:
    score = run("Elvis sang.", "Presley sang.")
    (kept,) = [c for c in get_explanation(score).questions if c.kept]
    assert (kept.nli, kept.f1, kept.value) == ("neutral", 0.0, 0.0)


def test_without_nli_a_contradiction_keeps_its_f1() -> None:
    options = Options(q2=Q2Options(nli=False))
    score = run("Elvis was born in 1936.", "Elvis came in 1935.", options)
    assert score.value == 0.5
    assert all(c.nli is None for c in get_explanation(score).questions)
    assert run("Elvis was born in 1936.", "Elvis came in 1935.", metric="q2_no_nli").value == 0.5


def test_a_discarded_question_has_a_reason() -> None:
    score = run("Elvis was born in 1935.", "Elvis came in 1935.")
    reasons = [c.discarded for c in get_explanation(score).questions if not c.kept]
    assert reasons == ["no_answer_in_response", "no_answer_in_response"]


def test_questions_about_the_speakers_are_dropped_only_with_the_filter() -> None:
    def ask_speaker(call: GenerateQuestions) -> tuple[object, ...]:
        return (GeneratedQuestion("what is your name?", -0.1), GeneratedQuestion("which name?", -0.2))

    filtered = get_explanation(run("Elvis sang.", "Elvis sang.", qg=ask_speaker))
    assert [(c.rank, c.kept, c.discarded) for c in filtered.questions] == [(0, False, "personal"), (1, True, "")]
    unfiltered = get_explanation(
        run("Elvis sang.", "Elvis sang.", Options(q2=Q2Options(personal_filter=False)), qg=ask_speaker)
    )
    assert [(c.rank, c.kept) for c in unfiltered.questions] == [(0, True)]


def test_with_all_every_valid_question_is_kept() -> None:
    score = run("Elvis sang.", "Elvis sang.", Options(q2=Q2Options(questions="all")))
    assert [(c.rank, c.kept) for c in get_explanation(score).questions] == [(0, False), (1, True), (2, True)]


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_scores_do_not_depend_on_the_number_of_questions_at_once(at_once: int) -> None:
    sequential = run("Elvis was born in 1936.", "Elvis came in 1935.")
    concurrent = run("Elvis was born in 1936.", "Elvis came in 1935.", Options(q2=Q2Options(questions_at_once=at_once)))
    assert concurrent.metrics == sequential.metrics


def test_with_single_no_question_follows_the_first_valid_one() -> None:
    runtime = world()
    with Engine(runtime) as engine:
        engine.score("Elvis sang.", "Elvis sang.")
    answered = {call.question for _, calls in runtime.batches for call in calls if isinstance(call, Answer)}
    assert answered == {"what else?", "which name?"}


@pytest.mark.parametrize("spare", [0, 1, 2])
def test_a_device_with_time_to_spare_is_asked_all_questions_at_once(spare: int) -> None:
    runtime = FakeRuntime(ROLES, spare_requests=spare)
    with Engine(runtime, LoadOptions(cache_bytes=0)) as engine:
        # The second of the two requests starts while the first is unfinished.
        first, second = engine.score_many([("Elvis sang.", "Elvis sang.")] * 2)
    with Engine(world()) as engine:
        assert first.metrics == second.metrics == engine.score("Elvis sang.", "Elvis sang.").metrics
    rounds = [[call.question for call in calls if isinstance(call, Answer)] for _, calls in runtime.batches]
    asked = max(filter(None, rounds), key=len)
    assert len(asked) > 1 if spare else len(set(asked)) == 1


@pytest.mark.parametrize(("name", "value"), [("entailment", 1.0), ("neutral", 0.5), ("contradiction", 0.0)])
def test_the_fallback_classifies_the_whole_response_lower_cased(name: str, value: float) -> None:
    classified: list[Classify] = []

    def label(call: Classify) -> object:
        classified.append(call)
        return Classified(name, {name: 1.0}, 0, Read(1, 1, 1))

    score = run("no SPAN here", "Some Knowledge", nli=label, spans=lambda call: ())
    assert (score.value, get_explanation(score).fallback) == (value, name)
    assert classified == [Classify("nli", ("some knowledge",), "no span here")]


def test_without_the_fallback_there_is_nothing_to_verify() -> None:
    score = run("hello there", "Some Knowledge", Options(q2=Q2Options(fallback=False)))
    assert (score.status, score.value) == ("nothing_to_verify", None)
    assert "fallback" in score.message


def test_given_spans_replace_those_of_the_span_finder() -> None:
    score = run("Elvis was born in 1935.", "Elvis 1935", Options(q2=Q2Options(spans=((18, 22),))))
    assert [c.span.text for c in get_explanation(score).questions if c.kept] == ["1935"]


@pytest.mark.parametrize("spans", [((5, 5),), ((-1, 3),), ((0, 99),)])
def test_the_message_names_a_span_outside_the_response(spans: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(InvalidRequest, match=re.escape(str(spans[0]))):
        run("Elvis sang.", "Elvis", Options(q2=Q2Options(spans=spans)))


def test_an_empty_answer_scores_0_without_a_call_to_nli() -> None:
    def answer_from_response_only(call: Answer) -> object:
        if call.passages == ("Elvis sang.",):
            return Answered("answered", "Elvis", 0, 0, 5, 1.0, Read(1, 1, 1))
        return Answered("empty", "", -1, -1, -1, 1.0, Read(1, 1, 1))

    score = run("Elvis sang.", "Somebody else", qa=answer_from_response_only)
    kept = [c for c in get_explanation(score).questions if c.kept]
    assert [(c.knowledge_answer, c.f1, c.nli, c.value) for c in kept] == [(None, 0.0, None, 0.0)]
    assert [c.answer_status for c in kept] == ["empty"]


def test_a_missing_answer_differs_from_an_empty_one() -> None:
    kept = [c for c in get_explanation(run("Elvis was born in 1936.", "Elvis was a singer.")).questions if c.kept]
    assert [(c.knowledge_answer, c.answer_status) for c in kept] == [("Elvis", "answered"), (None, "none")]


@pytest.mark.parametrize(("fold_accents", "value"), [(True, 1.0), (False, 0.0)])
def test_answers_are_compared_without_accents_unless_asked(fold_accents: bool, value: float) -> None:
    score = run("Haṭha counts.", "Hatha counts.", Options(q2=Q2Options(fold_accents=fold_accents)))
    (kept,) = [c for c in get_explanation(score).questions if c.kept]
    assert (kept.knowledge_answer, kept.value) == ("Hatha", value)


def test_the_decoding_reaches_the_question_generator() -> None:
    runtime = world()
    with Engine(runtime) as engine:
        engine.score(
            "Elvis sang.",
            "Elvis",
            options=Options(q2=Q2Options(decoding=BeamSearch(num_beams=3, num_return_sequences=2))),
        )
    decodings = [c.decoding for _, calls in runtime.batches for c in calls if isinstance(c, GenerateQuestions)]
    assert decodings == [BeamSearch(num_beams=3, num_return_sequences=2)]


# The rules of the authors' code


def answered(call: Answer, text: str) -> Answered:
    """An answer that is nowhere in the passages, as a reader's may be."""
    return Answered("answered" if text else "none", text, -1, -1, -1, 1.0, Read(1, 1, 1))


def test_inference_is_asked_about_the_question_with_either_answer() -> None:
    """Premise: the question, the knowledge's answer and a full stop; hypothesis: with the span, in its own case."""
    asked: list[Classify] = []

    def label(call: Classify) -> object:
        asked.append(call)
        return Classified("entailment", {"entailment": 1.0}, 0, Read(1, 1, 1))

    score = run("Elvis sang.", "Presley sang.", nli=label)
    assert asked == [Classify("nli", ("which name? Presley.",), "which name? Elvis.")]
    # Entailment counts 1 although the answers share no word.
    assert score.value == 1.0


@pytest.mark.parametrize("response_answer", ["Elvis", "elvis", "the Elvis", "Elvis!", "our  Elvis,"])
def test_a_question_is_valid_if_the_cleaned_answer_is_the_cleaned_span(response_answer: str) -> None:
    score = run(
        "Elvis sang.",
        "Somebody else",
        qa=lambda call: answered(call, response_answer if call.passages == ("Elvis sang.",) else ""),
    )
    assert [c.kept for c in get_explanation(score).questions] == [True]


@pytest.mark.parametrize("response_answer", ["Elvis sang", "Elvis's", "El vis", ""])
def test_any_other_answer_makes_it_invalid(response_answer: str) -> None:
    score = run(
        "Elvis sang.",
        "Somebody else",
        qa=lambda call: answered(call, response_answer if call.passages == ("Elvis sang.",) else ""),
    )
    assert not any(c.kept for c in get_explanation(score).questions)


def test_an_answer_that_touches_a_special_token_never_makes_a_question_valid() -> None:
    def empty(call: Answer) -> object:
        return Answered("empty", "", -1, -1, -1, 9.0, Read(1, 1, 1))

    score = run("Elvis sang.", "Elvis sang.", qa=empty)
    assert {c.discarded for c in get_explanation(score).questions} == {"no_answer_in_response"}
    assert get_explanation(score).fallback is not None


def test_the_score_is_the_mean_over_questions_and_not_over_spans() -> None:
    """Two valid questions about the name count 1 each, the one about the number 0."""

    def generate(call: GenerateQuestions) -> object:
        texts = ("which number?",) if call.answer.isdigit() else ("which name?", "what name?")
        return tuple(GeneratedQuestion(text, -0.1) for text in texts)

    score = run("Elvis, 1936", "Elvis, 1935", Options(q2=Q2Options(questions="all")), qg=generate)
    assert [c.value for c in get_explanation(score).questions] == [1.0, 1.0, 0.0]
    assert score.value == pytest.approx(2 / 3)


@pytest.mark.parametrize(("name", "value"), [("entailment", 1.0), ("contradiction", 0.0), ("neutral", 2 / 3)])
def test_neutral_inference_alone_keeps_the_token_f1(name: str, value: float) -> None:
    def label(call: Classify) -> object:
        return Classified(name, {name: 1.0}, 0, Read(1, 1, 1))

    knowledge_answer = "Elvis Presley"
    score = run(
        "Elvis sang.",
        "Somebody else",
        nli=label,
        qa=lambda call: answered(call, "Elvis" if call.passages == ("Elvis sang.",) else knowledge_answer),
    )
    assert score.value == pytest.approx(value)


@pytest.mark.parametrize("metric", ["q2", "feqa"])
def test_a_long_response_that_the_question_generator_cannot_read_is_refused_once_for_each_size_of_windows(
    metric: str,
) -> None:
    asked: list[GenerateQuestions] = []

    def refuse(call: GenerateQuestions) -> Outcome:
        asked.append(call)
        return TooLong("A text of 3000 characters makes 700 tokens.")

    with Engine(world(qg=refuse)) as engine:
        score = engine.score(
            " ".join(f"Elvis sang in {year}." for year in range(1900, 2050)), "Elvis.", metrics=[metric]
        )
    assert (score.status, len(asked)) == ("truncated", 6)


def test_the_questions_about_a_long_response_are_those_of_all_spans() -> None:
    response = " ".join(f"Elvis sang in {year}." for year in range(1900, 2050))
    score = run(response, "Elvis came in 1935.")
    spans = {comparison.span.start for comparison in get_explanation(score).questions}
    assert len(spans) == 300
    assert count_pieces(response) > WINDOW_SIZE


def test_the_work_of_leaving_spans_out_grows_linearly() -> None:
    def count(number: int) -> int:
        spans = [TextSpan("", start, start + 3, "") for start in range(0, 10 * number, 5)]
        claims = [Sentence("", start, start + 4) for start in range(0, 10 * number, 10)]
        assert keep_overlapping(spans, claims) == tuple(span for span in spans if span.start % 10 == 0)
        return count_steps(lambda: keep_overlapping(spans, claims))

    assert count(200) < 2.5 * count(100)
