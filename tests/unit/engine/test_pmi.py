"""PMI-Faith, on a language model small enough to compute by hand."""

from __future__ import annotations

import re

import pytest

from groundwire.cli.display import format_reasons
from groundwire.engine import Engine, InvalidRequest, MetricResult, Options, Score
from groundwire.engine.metrics import pmi
from groundwire.engine.schema.explanations import REASONS, PmiExplanation
from groundwire.engine.schema.options import PmiOptions
from groundwire.engine.text import retrieval
from groundwire.engine.text.retrieval import count_shared_words
from groundwire.runtime.calls import MeasureTexts, Read, ScoreText, TextLengths, TextScored
from groundwire.runtime.errors import ModelError, TooLong
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.protocol import Outcome

SEEN, NEW = -1.0, -4.0


def score_text(call: ScoreText) -> Outcome:
    """Scores a token that the prefix contains with ``SEEN``, any other with ``NEW``.

    A token is a word or a punctuation mark, with the space before it. A word of more than six letters has two tokens.
    """
    before = "".join(call.prefix).lower()
    offsets: list[tuple[int, int]] = []
    for match in re.finditer(r"\s?\w+|\s?[^\w\s]", call.text):
        start, end = match.span()
        middle = end - 3 if len(match[0].strip()) > 6 else end
        offsets += [(start, middle), (middle, end)] if middle < end else [(start, end)]
    values = [SEEN if call.text[start:end].strip().lower() in before else NEW for start, end in offsets]
    first = 0 if before else 1
    total = sum(map(len, call.prefix))
    return TextScored(tuple(offsets), tuple(values[first:]), first, Read(1, total, total))


def run(
    response: str,
    knowledge: str | tuple[str, ...],
    history: tuple[str, ...] = (),
    settings: PmiOptions | None = None,
    metric: str = "pmi",
    runtime: FakeRuntime | None = None,
) -> Score:
    with Engine(runtime or FakeRuntime({"lm": score_text})) as engine:
        return engine.score(
            response, knowledge, history=history, metrics=[metric], options=Options(pmi=settings or PmiOptions())
        )


def get_explanation(score: Score) -> PmiExplanation:
    (result,) = score.metrics.values()
    assert isinstance(result.explanation, PmiExplanation)
    return result.explanation


def list_calls(response: str, knowledge: str | tuple[str, ...], history: tuple[str, ...], metric: str) -> list[object]:
    runtime = FakeRuntime({"lm": score_text})
    run(response, knowledge, history, metric=metric, runtime=runtime)
    return [call for _, calls in runtime.batches for call in calls]


def test_the_prompts_are_the_published_ones() -> None:
    assert list_calls("He sang.", "He was {h} in 1935.", ("Who?",), "pmi") == [
        ScoreText(("Document: He was {h} in 1935.\n\n", "Who?.\n"), "Agent: He sang.."),
        ScoreText(("Who?.\n",), "Agent: He sang.."),
    ]
    assert list_calls("He sang.", "He was born.", ("Who?",), "upmi") == [
        ScoreText(("Document: He was born.\n\n",), "Agent: He sang.."),
        ScoreText((), "Agent: He sang.."),
    ]


def test_passages_and_turns_are_joined() -> None:
    (with_document, without_document) = list_calls("yes", ("One.", "Two."), ("Hi", " ", "Hello"), "pmi")
    assert with_document == ScoreText(("Document: One. Two.\n\n", "Hi\nHello.\n"), "Agent: yes.")
    assert without_document == ScoreText(("Hi\nHello.\n",), "Agent: yes.")


def test_the_value_is_the_mean_difference_per_token() -> None:
    """Two of six tokens gain 3 nats: ":" from the prompt of the document, "Elvis" from the document."""
    score = run("Elvis sang here", "Elvis", ("Who",))
    assert score.value == pytest.approx(1.0)
    explanation = get_explanation(score)
    assert [(token.text, token.difference) for token in explanation.tokens] == [
        ("Agent", 0.0), (":", 3.0), (" Elvis", 3.0), (" sang", 0.0), (" here", 0.0), (".", 0.0),
    ]  # fmt: skip
    assert (explanation.with_document, explanation.without_document) == (pytest.approx(-2.5), pytest.approx(-3.5))
    assert [(token.start, token.end) for token in explanation.tokens] == [
        (None, None), (None, None), (0, 5), (5, 10), (10, 15), (None, None),
    ]  # fmt: skip
    assert score.coverage == 1.0
    assert (score.status, score.unsupported) == ("scored", ())


def test_tokens_that_the_history_makes_likely_gain_nothing() -> None:
    """The history already makes "Elvis" likely, so that only ":" gains from the document."""
    assert run("Elvis sang here", "Elvis", ("Elvis",)).value == pytest.approx(0.5)


def test_upmi_leaves_the_first_token_out_of_the_mean_without_the_document() -> None:
    """The log probabilities are -4 -1 -1 -4 -4 with the document, and four times -4 without it."""
    score = run("Elvis sang", "Elvis", ("Elvis sang",), metric="upmi")
    assert score.value == pytest.approx(-14 / 5 + 4)
    explanation = get_explanation(score)
    assert (explanation.tokens[0].with_document, explanation.tokens[0].without_document) == (-4.0, None)
    assert explanation.tokens[0].difference is None


def test_pmi_without_history_compares_the_tokens_that_both_prompts_predict() -> None:
    """The log probabilities without that of the first token: -1 -1 -4 -4, and four times -4."""
    assert run("Elvis sang", "Elvis").value == pytest.approx(-10 / 4 + 4)


def test_both_metrics_share_their_calls_without_a_history() -> None:
    runtime = FakeRuntime({"lm": score_text})
    with Engine(runtime) as engine:
        engine.score("Elvis sang", "Elvis", metrics=["pmi", "upmi"])
    assert sum(len(calls) for _, calls in runtime.batches) == 2


@pytest.mark.parametrize(
    ("metric", "response", "published", "response_only"),
    [("pmi", "Elvis sang here", 6 / 5, 3 / 3), ("upmi", "Elvis sang", -14 / 5 + 4, 3 / 2)],
)
def test_the_tokens_of_the_prompt_can_be_left_out(
    metric: str, response: str, published: float, response_only: float
) -> None:
    assert run(response, "Elvis", metric=metric).value == pytest.approx(published)
    settings = PmiOptions(prompt_tokens=False)
    assert run(response, "Elvis", settings=settings, metric=metric).value == pytest.approx(response_only)


def test_the_prompts_can_be_changed() -> None:
    runtime = FakeRuntime({"lm": score_text})
    settings = PmiOptions(
        document="{document}|", history="[{history}]", response="{response}", between_passages="/", between_turns=" + "
    )
    score = run("Elvis", ("a", "b"), ("x", "y"), settings, runtime=runtime)
    assert runtime.batches[0][1][0] == ScoreText(("a/b|", "[x + y]"), "Elvis")
    assert [(token.start, token.end) for token in get_explanation(score).tokens] == [(0, 5)]


def make_shifted_runtime(differences: dict[str, float]) -> FakeRuntime:
    """A model for which the document changes the log probability of each word by the given difference, in nats."""

    def lm(call: ScoreText) -> Outcome:
        scored = score_text(call)
        assert isinstance(scored, TextScored)
        words = [call.text[start:end].strip() for start, end in scored.offsets]
        changes = [differences.get(word, 0.0) if call.prefix[0].startswith("Document") else 0.0 for word in words]
        return TextScored(scored.offsets, tuple(-5.0 + change for change in changes), 0)

    return FakeRuntime({"lm": lm})


@pytest.mark.parametrize(
    ("response", "differences", "expected"),
    [
        ("Elvis was born in 1936.", {"1936": -2.0}, [("1936", 18, 22)]),
        ("Elvis was born in 1936.", {"born": -1.0, "in": -0.1, "1936": -2.0}, [("born in 1936", 10, 22)]),
        ("Elvis was born in 1936.", {"was": -1.0, "1936": -2.0}, [("was", 6, 9), ("1936", 18, 22)]),
        ("from Mississippi, no", {"ppi": -1.0}, [("Mississippi", 5, 16)]),
        ("from Mississippi, no", {"from": -1.0, "Mississi": -1.0}, [("from Mississippi", 0, 16)]),
        ("it's fine", {"s": -1.0}, [("it's", 0, 4)]),
        ("yes — no", {"—": -1.0}, []),
        ("yes — no", {"—": -1.0, "no": -1.0}, [("no", 6, 8)]),
        ("Elvis sang", {"Agent": -1.0, ":": -1.0, ".": -1.0}, []),
        ("Elvis sang", {"Elvis": 1.0, "sang": 0.0}, []),
    ],
)
def test_runs_of_unlikely_tokens_are_unsupported_words(
    response: str, differences: dict[str, float], expected: list[tuple[str, int, int]]
) -> None:
    score = run(response, "anything", ("Who",), runtime=make_shifted_runtime(differences))
    spans = score.metrics["pmi"].unsupported
    assert [(span.text, span.start, span.end) for span in spans] == expected
    assert {(span.reason, span.metric) for span in spans} <= {("less_likely", "pmi")}
    assert all(response[span.start : span.end] == span.text for span in spans)


def test_two_runs_in_one_word_are_one_span() -> None:
    def lm(call: ScoreText) -> Outcome:
        begin = len("Agent: ")
        offsets = tuple((begin + a, begin + b) for a, b in ((0, 4), (4, 8), (8, 11), (11, 17)))
        with_document = call.prefix[0].startswith("Document")
        return TextScored(offsets, (-2.0, 0.0, -2.0, -0.5) if with_document else (-1.0, -1.0, -1.0, -1.0), 0)

    score = run("Mississippi river", "anything", ("Who",), runtime=FakeRuntime({"lm": lm}))
    assert [(span.start, span.end) for span in score.metrics["pmi"].unsupported] == [(0, 11)]


def test_the_threshold_of_unlikely_tokens_is_an_option() -> None:
    runtime = make_shifted_runtime({"Elvis": -1.0, "sang": -2.0})
    score = run("Elvis sang", "anything", ("Who",), PmiOptions(below=-1.5), runtime=runtime)
    assert [span.text for span in score.metrics["pmi"].unsupported] == ["sang"]
    assert "“sang” – the document makes these words less likely" in format_reasons(score).plain
    assert set(REASONS) >= {"less_likely"}


@pytest.mark.parametrize("field", ["document", "history", "response"])
@pytest.mark.parametrize("template", ["nothing", "{%s} and {%s}"])
def test_a_prompt_must_contain_its_field_once(field: str, template: str) -> None:
    given = template.replace("%s", field)
    with pytest.raises(
        InvalidRequest, match=re.escape(f"Options.pmi.{field} is '{given}'; it must have {{{field}}} once")
    ):
        run("Elvis", "Elvis", ("Who",), PmiOptions(**{field: given}))


@pytest.mark.parametrize(
    ("error", "status"), [(TooLong("3000 tokens; reads 2048"), "truncated"), (ModelError("nan"), "failed")]
)
def test_an_error_of_the_model_is_a_status(error: Exception, status: str) -> None:
    def lm(call: ScoreText) -> Outcome:
        raise error

    score = run("Elvis", "Elvis", ("Who",), runtime=FakeRuntime({"lm": lm}))
    assert (score.status, score.value, score.message) == (status, None, str(error))


def test_without_tokens_to_compare_there_is_nothing_to_verify() -> None:
    def lm(call: ScoreText) -> Outcome:
        return TextScored(((0, 5), (5, 6)), (-1.0, -1.0), 0)

    score = run("?", "Elvis", ("Who",), PmiOptions(prompt_tokens=False), runtime=FakeRuntime({"lm": lm}))
    assert (score.status, score.value) == ("nothing_to_verify", None)


def test_the_explanation_survives_json() -> None:
    result = run("Elvis sang", "Elvis", ("Who",)).metrics["pmi"]
    assert MetricResult.from_json(result.to_json()) == result
    assert '"type":"pmi"' in result.to_json()


def test_the_metrics_need_a_language_model() -> None:
    with Engine(FakeRuntime({"lm": score_text})) as engine:
        assert {"pmi", "upmi"} <= set(engine.plan("all").names)
        assert not {"pmi", "upmi"} & set(engine.plan("fast").names)
    with Engine(FakeRuntime({})) as engine:
        assert not {"pmi", "upmi"} & set(engine.plan("all").names)


def make_narrow_runtime(limit: int, joined: int = 0) -> FakeRuntime:
    """A model that reads ``limit`` words and marks; sentences have ``joined`` more together than apart."""

    def count(text: str) -> int:
        return len(re.findall(r"\w+|[^\w\s]", text))

    def lm(call: ScoreText | MeasureTexts) -> Outcome:
        if isinstance(call, MeasureTexts):
            return TextLengths(tuple(map(count, call.texts)), limit)
        length = sum(map(count, (*call.prefix, call.text))) + joined * (len(call.prefix) > 1)
        return TooLong(f"{length} tokens") if length > limit else score_text(call)

    return FakeRuntime({"lm": lm})


KNOWLEDGE = ("He ate. Elvis sang in Memphis. Rain fell.", "Clouds came. Elvis slept.")
"""Of 2, 4, 2 and 2, 2 words, and a full stop each; "Document: ", history and response have 2, 2 and 6."""


def documents(runtime: FakeRuntime) -> list[str]:
    return [
        call.prefix[0]
        for _, calls in runtime.batches
        for call in calls
        if isinstance(call, ScoreText) and call.prefix and call.prefix[0].startswith("Document")
    ]


@pytest.mark.parametrize(
    ("limit", "document"),
    [
        (27, "He ate. Elvis sang in Memphis. Rain fell. Clouds came. Elvis slept."),
        (24, "He ate. Elvis sang in Memphis. Rain fell. Elvis slept."),
        (18, "Elvis sang in Memphis. Elvis slept."),
        # The most relevant sentence has 5 tokens; where it does not fit, shorter ones may.
        (14, "Elvis slept."),
    ],
)
def test_of_knowledge_that_is_too_long_the_most_relevant_sentences_are_read(limit: int, document: str) -> None:
    runtime = make_narrow_runtime(limit)
    score = run("Elvis sang here", KNOWLEDGE, ("Who",), runtime=runtime)
    assert score.status == "scored"
    assert documents(runtime)[-1] == f"Document: {document}\n\n"
    whole = limit == 27
    assert (score.coverage == 1.0) is whole
    assert (get_explanation(score).left_out == ()) is whole
    assert (score.message == "") is whole


@pytest.mark.parametrize("limit", [27, 24, 18, 14])
def test_the_sentences_that_are_read_do_not_depend_on_how_many_are_measured_at_once(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    together, apart = make_narrow_runtime(limit), make_narrow_runtime(limit)
    expected = run("Elvis sang here", KNOWLEDGE, ("Who",), runtime=together)
    monkeypatch.setattr(pmi, "SENTENCES_AT_ONCE", 1)
    score = run("Elvis sang here", KNOWLEDGE, ("Who",), runtime=apart)
    assert documents(apart)[-1] == documents(together)[-1]
    assert get_explanation(score) == get_explanation(expected)


def test_only_sentences_with_a_word_of_the_response_are_split_into_words(monkeypatch: pytest.MonkeyPatch) -> None:
    split: list[str] = []
    original = retrieval.words
    monkeypatch.setattr(retrieval, "words", lambda text: split.append(text) or original(text))
    passages = ("ELVIS sang. Rain fell. He singed it.", "İstanbul is old. Elvises ate.")
    shared = {
        item.candidate.sentence.text: item.shared for item in count_shared_words(passages, "Elvis sang in İstanbul")
    }
    assert shared == {"ELVIS sang.": 2, "Rain fell.": 0, "He singed it.": 0, "İstanbul is old.": 1, "Elvises ate.": 0}
    assert split == ["Elvis sang in İstanbul", "ELVIS sang.", "İstanbul is old.", "Elvises ate."]


def test_what_was_left_out_is_said() -> None:
    score = run("Elvis sang here", KNOWLEDGE, ("Who",), runtime=make_narrow_runtime(18))
    left_out = [KNOWLEDGE[part.passage][part.start : part.end] for part in get_explanation(score).left_out]
    assert left_out == ["He ate.", "Rain fell.", "Clouds came."]
    missing, total = sum(map(len, left_out)), sum(map(len, KNOWLEDGE))
    assert score.coverage == pytest.approx(1 - missing / total)
    assert f"3 sentences with {missing} of its {total} characters were left out" in score.message


def test_sentences_that_do_not_fit_together_are_left_out_from_the_least_relevant_on() -> None:
    runtime = make_narrow_runtime(18, joined=2)
    run("Elvis sang here", KNOWLEDGE, ("Who",), runtime=runtime)
    assert documents(runtime)[1:] == [
        "Document: Elvis sang in Memphis. Elvis slept.\n\n",
        "Document: Elvis sang in Memphis.\n\n",
    ]


@pytest.mark.parametrize(
    ("limit", "settings"), [(18, PmiOptions(too_long="fail")), (11, PmiOptions())], ids=["asked to fail", "no room"]
)
def test_knowledge_that_is_too_long_can_be_a_status(limit: int, settings: PmiOptions) -> None:
    score = run("Elvis sang here", KNOWLEDGE, ("Who",), settings, runtime=make_narrow_runtime(limit))
    assert (score.status, score.value, score.message) == ("truncated", None, "27 tokens")


def test_upmi_reads_more_knowledge_because_it_reads_no_history() -> None:
    score = run("Elvis sang here", KNOWLEDGE, ("Who",), metric="upmi", runtime=make_narrow_runtime(25))
    assert score.coverage == 1.0
