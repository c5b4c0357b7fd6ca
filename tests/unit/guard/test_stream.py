"""Responses that are checked while they are written: what leaves, when, and that it does not depend on the cuts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from groundwire.engine import Engine, InvalidRequest, LoadOptions, Options, Score, StreamClosed
from groundwire.engine.schema.options import Q2Options
from groundwire.engine.schema.results import Timings
from groundwire.engine.text import sentences as reading_sentences
from groundwire.engine.text.sentences import LineReader, sentences
from groundwire.guard import (
    Blocked,
    Correct,
    Fallback,
    FinalEvent,
    Guard,
    Policy,
    Redact,
    Refine,
    Regenerate,
    Release,
    SentenceEvent,
)
from groundwire.guard.core import _COUNTED, ALONE_INCONSISTENT, StreamCore, WordCount, _replace
from groundwire.guard.records import Event
from groundwire.guard.stream import ResponseStream
from groundwire.repair import KnowledgeGraph
from groundwire.runtime.bundles.calibration import Feature
from groundwire.runtime.calls import ClassifiedToken, ClassifiedTokens, Read
from groundwire.runtime.errors import GroundwireError, ModelError, TooLong
from groundwire.runtime.protocol import Outcome
from groundwire.runtime.texts.unread import is_blank
from tests.support import graph_world
from tests.support.correcting import make_engine as make_correcting_engine
from tests.support.streams import CALIBRATION, CUTS, KNOWLEDGE, METRICS, ROLES, TEXTS, cut, cut_units, text_of, world

FLAG_ALL = Policy(
    inconsistent="flag",
    unverifiable="flag",
    unknown="flag",
    deadline="flag",
    failed="flag",
    truncated="flag",
    overflow="flag",
    max_held_words=10**6,
    max_held_ms=1e9,
)
TEXT = "Hi there! Honey is sweet. Honey is blue. It is golden. "


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    with Engine(world()) as opened:
        yield opened


def open_stream(engine: Engine, policy: Policy | None = None, **settings: Any) -> ResponseStream:
    return Guard(engine).open(KNOWLEDGE, metrics=METRICS, policy=policy, **settings)


def run(stream: ResponseStream, pieces: list[str]) -> list[Event]:
    """All events of a stream, which is finished after ``pieces``."""
    events = [event for piece in pieces for event in stream.feed(piece)]
    stream.finish()
    return [*events, *stream.last_events]


def without_time(score: Score) -> Score:
    return msgspec.structs.replace(score, timings=Timings(0.0, {}))


def timeless(events: list[Event]) -> list[Event]:
    return [
        msgspec.structs.replace(event, score=without_time(event.score)) if isinstance(event, FinalEvent) else event
        for event in events
    ]


@given(TEXTS.map(lambda text: text.replace("x", " blue ")) | TEXTS, CUTS)
@example("end.Ne blue t blue  ? i.e.", [])
def test_the_score_and_every_event_are_the_same_wherever_the_text_is_cut(
    engine: Engine, text: str, cuts: list[int]
) -> None:
    assume(not is_blank(text))
    streams = [open_stream(engine, FLAG_ALL) for _ in range(4)]
    pieces = [[text], list(text), cut(text, cuts), cut_units(text)]
    events = [timeless(run(stream, of_one)) for stream, of_one in zip(streams, pieces, strict=True)]
    assert events[0] == events[1] == events[2] == events[3]
    score = engine.score(text, KNOWLEDGE, metrics=METRICS)
    for stream in streams:
        assert stream.text == stream.released == text
        assert stream.score is not None
        assert without_time(stream.score) == without_time(score)
    checked = [event for event in events[0] if isinstance(event, SentenceEvent)]
    assert [(event.index, event.text, event.start, event.end) for event in checked] == [
        (index, *sentence) for index, sentence in enumerate(sentences(text))
    ]
    assert [(event.verdict.label, event.verdict.probability, event.unsupported) for event in checked] == [
        (sentence.verdict.label, sentence.verdict.probability, sentence.unsupported) for sentence in score.sentences
    ]


@given(TEXTS)
def test_nothing_leaves_before_its_sentence_is_complete(engine: Engine, text: str) -> None:
    stream = open_stream(engine, FLAG_ALL)
    fed = ""
    for character in text:
        fed += character
        events = stream.feed(character)
        assert [event.end for event in events if isinstance(event, Release)] == [
            event.end for event in events if isinstance(event, SentenceEvent)
        ]
        assert stream.released + stream.held == stream.text == fed
        assert len(stream.released) <= max(sentence.start for sentence in sentences(fed))


def list_kinds(events: list[Event]) -> list[str]:
    return [type(event).__name__ for event in events]


def test_a_consistent_response_leaves_sentence_by_sentence(engine: Engine) -> None:
    stream = open_stream(engine)
    assert stream.feed("Hi there! Honey is") == (
        *stream.last_events[:1],
        Release("Hi there!", 0, 9, "unverifiable", "flag", True),
    )
    assert stream.feed(" sweet") == ()
    first, release = stream.feed(". It is golden. 🙂 ")
    assert isinstance(first, SentenceEvent)
    assert (first.index, first.text, first.start, first.end) == (1, "Honey is sweet.", 10, 25)
    assert (first.outcome, first.action, first.verdict.label, first.unsupported) == (
        "consistent",
        "release",
        "consistent",
        (),
    )
    assert release == Release(" Honey is sweet.", 9, 25, "consistent", "release", True)
    assert (stream.held, stream.is_ended, stream.score) == (" It is golden. 🙂 ", False, None)
    score = stream.finish()
    assert list_kinds([*stream.last_events]) == ["SentenceEvent", "Release", "FinalEvent"]
    assert stream.last_events[1] == Release(" It is golden. 🙂 ", 25, 42, "consistent", "release", True)
    assert stream.last_events[2] == FinalEvent(score, stream.text)
    assert stream.is_ended
    assert stream.released == stream.text


@pytest.mark.parametrize(
    ("policy", "released", "kinds"),
    [
        (Policy(), "Hi there! Honey is sweet.", "sentence early_verdict blocked"),
        (Policy(inconsistent="flag"), TEXT, "sentence early_verdict release"),
        (
            Policy(inconsistent="redact"),
            "Hi there! Honey is sweet. Honey is […]. It is golden. ",
            "sentence early_verdict release",
        ),
        (
            Policy(inconsistent=Redact("-"), unverifiable="redact"),
            "[…] Honey is sweet. Honey is -. It is golden. ",
            "sentence early_verdict release",
        ),
        (
            Policy(inconsistent=Fallback("I do not know.")),
            "Hi there! Honey is sweet. I do not know.",
            "sentence early_verdict release",
        ),
        (Policy(unverifiable="block"), "", ""),
    ],
)
def test_what_a_policy_lets_leave(engine: Engine, policy: Policy, released: str, kinds: str) -> None:
    stream = open_stream(engine, policy)
    events = run(stream, [TEXT])
    assert stream.released == released
    if kinds:
        assert [msgspec.to_builtins(event)["type"] for event in events[4 : 4 + len(kinds.split())]] == kinds.split()
    final = events[-1]
    assert isinstance(final, FinalEvent)
    assert final.released == released
    assert final.score.verdict.label == "inconsistent"
    assert without_time(final.score) == without_time(engine.score(TEXT, KNOWLEDGE, metrics=METRICS))
    for event in events:
        assert type(event).from_json(event.to_json()) == event


@pytest.mark.parametrize(
    ("text", "released"),
    [
        ("Honey is `blue`. It is golden. ", "Honey is `blue`. It is golden. "),
        ("So:\n```\nHoney is blue.\n```\nHoney is blue. ", "So:\n```\nHoney is blue.\n```\nHoney is […]. "),
    ],
)
def test_code_is_not_redacted(engine: Engine, text: str, released: str) -> None:
    stream = open_stream(engine, Policy(inconsistent="redact", unverifiable="redact", unknown="redact"))
    events = run(stream, [*text])
    assert stream.released == released
    assert "inconsistent" in [event.outcome for event in events if isinstance(event, SentenceEvent)]


def test_neighbouring_doubts_have_one_mark() -> None:
    assert _replace("a bad  one here", 0, 15, [(2, 5), (7, 10)], "[…]") == "a […] here"
    assert _replace("a bad, one here", 0, 15, [(2, 5), (7, 10)], "[…]") == "a […], […] here"


def test_a_warning_says_that_a_sentence_was_inconsistent_and_the_response_is_not() -> None:
    """The other sentence has no verdict, so the score has that on all numbers, which is another."""
    (fusion,) = CALIBRATION.fusions
    silent = Feature(name="token_classifier", mean=1.0, deviation=0.25, weight=1.5)
    fusion = msgspec.structs.replace(fusion, features=(*fusion.features, silent))
    calibration = msgspec.structs.replace(CALIBRATION, fusions=(fusion,), verifiable=None)

    def classify(call: Any) -> Outcome:
        wrong = call.hypothesis == "Honey is blue."
        return ROLES["nli"](msgspec.structs.replace(call, hypothesis="wrong" if wrong else "right"))

    def find_honey(call: Any) -> Outcome:
        start = call.text.find("Honey") if "Honey" in call.text else len(call.text)
        token = ClassifiedToken(start, start + 5, (1.0, 0.0))
        return ClassifiedTokens(("fine", "made up"), (token,), Read(1, 1, 1))

    with Engine(world(calibration, nli=classify, token_classifier=find_honey)) as engine:
        stream = open_stream(engine, FLAG_ALL)
        events = run(stream, ["Honey is blue. It is golden. So", " it is."])
    outcomes = [event.outcome for event in events if isinstance(event, SentenceEvent)]
    assert outcomes == ["inconsistent", "unknown", "unknown"]
    assert isinstance(events[-1], FinalEvent)
    assert events[-1].score.verdict.label == "consistent"
    assert events[-1].score.warnings == (ALONE_INCONSISTENT,)


def test_an_only_sentence_has_the_verdict_of_the_response(engine: Engine) -> None:
    stream = open_stream(engine)
    assert stream.feed("Honey is sweet. 🙂") == ()
    score = stream.finish()
    (sentence,) = [event for event in stream.last_events if isinstance(event, SentenceEvent)]
    assert sentence.verdict == score.verdict == score.sentences[0].verdict
    assert stream.released == "Honey is sweet. 🙂"


def test_an_inconsistent_last_sentence_does_not_leave_and_is_not_early(engine: Engine) -> None:
    stream = open_stream(engine)
    events = run(stream, ["Honey is sweet. Honey is blue."])
    assert stream.released == "Honey is sweet."
    assert list_kinds(events) == ["SentenceEvent", "Release", "SentenceEvent", "Blocked", "FinalEvent"]


def test_after_its_end_a_stream_takes_no_text(engine: Engine) -> None:
    stream = open_stream(engine)
    assert isinstance(stream.feed("Honey is blue. It")[-1], Blocked)
    assert stream.is_ended
    assert stream.feed(" is golden. Really") == ()
    score = stream.finish()
    assert stream.text == "Honey is blue. It"
    assert list_kinds([*stream.last_events]) == ["FinalEvent"]
    assert without_time(score) == without_time(engine.score(stream.text, KNOWLEDGE, metrics=METRICS))
    for call in (stream.finish, lambda: stream.feed("")):
        with pytest.raises(StreamClosed, match="finished"):
            call()


def test_without_a_calibration_nothing_leaves() -> None:
    with Engine(world(None)) as engine:
        stream = open_stream(engine)
        event, blocked = stream.feed("Honey is sweet. It")
        assert isinstance(event, SentenceEvent)
        assert (event.outcome, event.action) == ("unknown", "block")
        assert isinstance(blocked, Blocked)
        assert "has no calibration" in blocked.message
        stream = open_stream(engine)
        stream.feed("Honey is sweet")
        stream.finish()
        assert stream.released == ""


def test_without_a_metric_that_the_verdict_needs_nothing_leaves(engine: Engine) -> None:
    with Guard(engine).open(KNOWLEDGE, metrics=["verifiability"]) as stream:
        blocked = stream.feed("Honey is sweet. It")[-1]
    assert isinstance(blocked, Blocked)
    assert "needs the metric nli" in blocked.message


# Faults: whatever fails, nothing leaves as checked.

FAULTS: dict[str, Callable[[], object]] = {
    "failed": lambda: ModelError("a fault"),
    "truncated": lambda: TooLong("too long"),
    "defect": lambda: ZeroDivisionError("a defect"),
    "exit": lambda: SystemExit(1),
    "garbage": lambda: "no result",
}


@given(st.data())
def test_with_any_fault_nothing_leaves_as_checked(data: st.DataObject) -> None:
    """Compared with a model of the stream in a few lines: outcomes, actions, and what leaves."""
    number = data.draw(st.integers(1, 5))
    texts = [f"Honey {i} is {data.draw(st.sampled_from(('sweet', 'blue')))}." for i in range(number)]
    faults = {
        f"Honey {i} ": data.draw(st.tuples(st.sampled_from(sorted(ROLES)), st.sampled_from(sorted(FAULTS))) | st.none())
        for i in range(number)
    }
    actions = st.sampled_from(("flag", "block", "redact", Fallback("No."), Regenerate(lambda event: "Honey is wrong.")))
    policy = Policy(**{name: data.draw(actions) for name in ("inconsistent", "failed", "truncated", "unknown")})

    def answer(role: str) -> Callable[[Any], Outcome]:
        def respond(call: Any) -> Outcome:
            for part, fault in faults.items():
                if fault is not None and fault[0] == role and part in text_of(call):
                    problem = FAULTS[fault[1]]()
                    if isinstance(problem, BaseException):
                        raise problem
                    return problem  # type: ignore[return-value]
            return ROLES[role](call)

        return respond

    with Engine(world(**{role: answer(role) for role in ROLES})) as engine:
        stream = open_stream(engine, policy)
        events = run(stream, [" ".join(texts)])
    broken = [faults[f"Honey {i} "] for i in range(number)]
    any_broken = any(fault is not None for fault in broken)
    for event in events:
        if isinstance(event, SentenceEvent):
            fault = broken[event.index]
            is_last = event.index == number - 1
            if fault is not None or (is_last and any_broken):
                assert event.outcome in ("failed", "truncated")
                assert event.verdict.label == "unknown"
            else:
                assert event.outcome == ("inconsistent" if "blue" in event.text else "consistent")
        if isinstance(event, Release) and event.checked:
            index = sum(end <= event.start for end in [len(" ".join(texts[: i + 1])) for i in range(number)])
            assert broken[index] is None
            assert index < number - 1 or not any_broken
            assert event.outcome in ("consistent", "inconsistent")
    by_default = Policy()
    if policy.failed == policy.truncated == policy.inconsistent == by_default.failed:
        good = 0
        while good < number and broken[good] is None and "blue" not in texts[good]:
            good += 1
        good = min(good, number - 1) if any_broken else good
        assert stream.released == " ".join(texts[:good])


@pytest.mark.parametrize("fault", sorted(FAULTS))
@pytest.mark.parametrize("role", sorted(ROLES))
def test_by_default_nothing_leaves_when_a_model_fails(role: str, fault: str) -> None:
    def fail(call: Any) -> Outcome:
        problem = FAULTS[fault]()
        if isinstance(problem, BaseException):
            raise problem
        return problem  # type: ignore[return-value]

    with Engine(world(**{role: fail})) as engine:
        stream = open_stream(engine)
        events = run(stream, ["Honey is sweet. It is golden."])
    assert stream.released == ""
    blocked = next(event for event in events if isinstance(event, Blocked))
    assert blocked.start == 0
    assert blocked.outcome in ("failed", "truncated")
    assert "ended without a value" in blocked.message


# Other texts for a sentence.


def test_another_text_leaves_only_when_it_is_consistent(engine: Engine) -> None:
    asked: list[tuple[str, str]] = []
    answers = iter(["Honey is wrong.", "Honey is golden. It is sweet."])

    def rewrite(event: SentenceEvent) -> str:
        asked.append((event.text, event.unsupported[0].text))
        return next(answers)

    stream = open_stream(engine, Policy(inconsistent=Regenerate(rewrite)))
    events = run(stream, [TEXT])
    assert asked == [("Honey is blue.", "blue"), ("Honey is wrong.", "wrong")]
    assert stream.released == "Hi there! Honey is sweet. Honey is golden. It is sweet. It is golden. "
    release = next(event for event in events if isinstance(event, Release) and event.action == "regenerate")
    assert release == Release(" Honey is golden. It is sweet.", 25, 40, "consistent", "regenerate", True)


@pytest.mark.parametrize(
    ("action", "released"),
    [
        (Regenerate(lambda event: None), ""),
        (Regenerate(lambda event: None, otherwise="redact"), "Honey is […]. It is golden."),
        (Regenerate(lambda event: "Honey is wrong.", attempts=1, otherwise="flag"), "Honey is blue. It is golden."),
        (Regenerate(lambda event: "Hi you!", otherwise=Fallback("Sorry.")), "Hi you! It is golden."),
        (Regenerate(lambda event: "It is so. It is wrong. So", otherwise=Fallback("Sorry.")), "Sorry."),
    ],
)
def test_what_happens_when_no_text_is_good_enough(engine: Engine, action: Regenerate, released: str) -> None:
    stream = open_stream(engine, Policy(inconsistent=action))
    run(stream, ["Honey is blue. It is golden."])
    assert stream.released == released


def test_a_chat_in_place_of_a_sentence_leaves_only_if_the_policy_lets_chat_leave(engine: Engine) -> None:
    stream = open_stream(engine, Policy(inconsistent=Regenerate(lambda event: "Hi you!"), unverifiable="redact"))
    run(stream, ["Honey is blue. It is golden."])
    assert stream.released == ""


def test_an_error_of_the_callers_function_lets_nothing_leave_and_the_call_can_be_made_again(engine: Engine) -> None:
    answers: list[Any] = [StopIteration(), KeyError("x"), 7, "", "Honey is golden."]

    def rewrite(event: SentenceEvent) -> Any:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    stream = open_stream(engine, Policy(inconsistent=Regenerate(rewrite)))
    for error in (StopIteration, KeyError, InvalidRequest, InvalidRequest):
        with pytest.raises(error):
            stream.feed("Honey is blue. It " if not stream.text else "")
        assert stream.released == ""
        assert stream.held == "Honey is blue. It "
    assert list_kinds([*stream.feed("is sweet. So ")]) == [
        "SentenceEvent", "EarlyVerdict", "Release", "SentenceEvent", "Release",
    ]  # fmt: skip
    assert stream.released == "Honey is golden. It is sweet."


def test_a_coroutine_function_needs_asyncio(engine: Engine) -> None:
    async def rewrite(event: SentenceEvent) -> str:
        return "Honey is golden."

    stream = open_stream(engine, Policy(inconsistent=Regenerate(rewrite)))
    with pytest.raises(InvalidRequest, match="is a coroutine function; use afeed and afinish"):
        stream.feed("Honey is blue. It ")


@pytest.mark.parametrize("by_graph", [True, False])
def test_a_sentence_is_repaired_with_a_graph(by_graph: bool) -> None:
    def classify(call: Any) -> Outcome:
        wrong = "James Cameron" in call.hypothesis
        return ROLES["nli"](msgspec.structs.replace(call, hypothesis="wrong" if wrong else "right"))

    runtime = graph_world.world(**(ROLES | {"nli": classify}))
    graph = KnowledgeGraph.from_triples(graph_world.FILMS)
    action = Refine(graph) if by_graph else Refine()
    with Engine(runtime, LoadOptions(calibration=CALIBRATION)) as engine:
        stream = Guard(engine).open(
            "Ridley Scott directed Alien.",
            history=["Do you know Alien?"],
            triples=() if by_graph else graph_world.FILMS,
            metrics=["nli", "verifiability"],
            policy=Policy(inconsistent=action),
        )
        run(stream, ["It was directed by James Cameron. It is old. James Cameron likes it. Really."])
    assert stream.released == "It was directed by Ridley Scott. It is old."  # for the third there is no repair


@pytest.mark.parametrize("otherwise", ["block", "redact"])
def test_a_sentence_is_corrected_by_the_knowledge_or_else(otherwise: Any) -> None:
    with make_correcting_engine() as engine:
        stream = Guard(engine).open(
            "The violin has four strings.", policy=Policy(inconsistent=Correct(otherwise), unknown="flag")
        )
        events = run(stream, ["The violin has six strings. ", "The violin sings loudly. ", "Four strings."])
    released = [event for event in events if isinstance(event, Release)]
    assert (released[0].text.strip(), released[0].action, released[0].checked) == (
        "The violin has four strings.",
        "correct",
        True,
    )
    # For the second nothing is better, so what else was said happens.
    assert "loudly" not in stream.released
    assert any(isinstance(event, Blocked) for event in events) == (otherwise == "block")


def test_without_a_verdict_nothing_is_corrected() -> None:
    with make_correcting_engine(None) as engine:
        policy = Policy(unknown=Correct("redact"))
        stream = Guard(engine).open("The violin has four strings.", metrics=["nli", "values"], policy=policy)
        run(stream, ["The violin has six strings."])
    assert stream.released == "[…]"


# How much is held.


@pytest.mark.parametrize(
    ("overflow", "released"),
    [
        ("flag", "Honey is sweet and it is golden. So it is."),
        ("block", ""),
        ("redact", "[…] it is golden. So it is."),
        (Redact("-"), "- it is golden. So it is."),
        (Fallback("Sorry."), "Sorry."),
    ],
)
def test_too_many_held_words_are_the_policys_to_decide(engine: Engine, overflow: Any, released: str) -> None:
    stream = open_stream(engine, Policy(overflow=overflow, max_held_words=4))
    events = list(stream.feed("Honey is sweet and"))
    assert events == []
    events += stream.feed(" it")
    (event,) = events
    if isinstance(event, Blocked):
        assert (event.start, event.outcome) == (0, "overflow")
    else:
        assert isinstance(event, Release)
        assert not event.checked
        assert (event.start, event.outcome) == (0, "overflow")
        assert event.end == (21 if isinstance(overflow, Fallback) else 19)
    run(stream, [" is golden. So", " it is."])
    assert stream.released == released


def test_a_sentence_that_has_left_in_part_keeps_its_event(engine: Engine) -> None:
    """What is wrong has left already, so all of the rest is replaced."""
    stream = open_stream(engine, Policy(inconsistent="redact", overflow="flag", max_held_words=4))
    events = run(stream, ["Honey is blue and", " it is", " so. Honey", " is golden."])
    assert [event.text for event in events if isinstance(event, SentenceEvent)] == [
        "Honey is blue and it is so.",
        "Honey is golden.",
    ]
    assert stream.released == "Honey is blue and it […] Honey is golden."
    assert [(event.text, event.checked) for event in events if isinstance(event, Release)] == [
        ("Honey is blue and it ", False),
        ("[…]", False),
        (" Honey is golden.", True),
    ]


def test_a_sentence_that_has_left_in_part_is_not_rewritten(engine: Engine) -> None:
    policy = Policy(
        inconsistent=Regenerate(lambda event: "Honey is golden.", otherwise="redact"), overflow="flag", max_held_words=4
    )
    stream = open_stream(engine, policy)
    run(stream, ["So it is that honey", " is blue. It is"])
    assert stream.released == "So it is that honey is […]. It is"


def test_a_sentence_that_has_left_whole_releases_nothing_more(engine: Engine) -> None:
    stream = open_stream(engine, Policy(inconsistent="redact", overflow="flag", max_held_words=3))
    assert list_kinds([*stream.feed("Honey is blue.  ")]) == ["Release"]
    assert stream.released == "Honey is blue.  "
    assert list_kinds([*stream.feed("It is")]) == ["SentenceEvent", "EarlyVerdict"]
    stream.finish()
    assert stream.released == "Honey is blue.  It is"


def test_time_passes_for_what_is_held(engine: Engine) -> None:
    now = [0.0]
    stream = open_stream(engine, Policy(overflow="flag", max_held_ms=1000))
    stream._core._clock = lambda: now[0]
    stream.feed("Honey is sweet. It ")
    now[0] = 0.5
    stream.feed("is ")
    now[0] = 0.9
    assert stream.feed("") == ()
    assert stream._core.seconds_left() == pytest.approx(0.1)
    now[0] = 1.0
    assert stream.feed("") == (Release(" It is ", 15, 22, "overflow", "flag", False),)
    assert stream._core.seconds_left() is None
    now[0] = 3.0
    assert stream.feed("  ") == ()  # nothing to say about spaces
    assert stream.feed("golden") == ()
    now[0] = 4.0
    assert stream.feed("") == (Release("  golden", 22, 30, "overflow", "flag", False),)


def test_after_the_streams_deadline_nothing_is_checked(engine: Engine) -> None:
    now = [0.0]
    stream = open_stream(engine, Policy(deadline="redact", overflow="flag", deadline_ms=1000))
    stream._core._clock = lambda: now[0]
    stream._core._opened = 0.0
    assert stream.feed("Honey is sweet. It is sweet")[-1] == Release(
        "Honey is sweet.", 0, 15, "consistent", "release", True
    )
    assert stream._core.seconds_left() == pytest.approx(1.0)
    now[0] = 1.5
    events = stream.feed(". So")
    assert isinstance(events[0], SentenceEvent)
    assert (events[0].outcome, events[0].action, events[0].verdict.label) == ("deadline", "redact", "unknown")
    assert events[1:] == (
        Release(" […]", 15, 28, "deadline", "redact", False),
        Release(" So", 28, 31, "overflow", "flag", False),
    )
    stream.feed(" it is")
    score = stream.finish()
    assert score.status == "deadline"
    assert [event.outcome for event in stream.last_events if isinstance(event, SentenceEvent)] == ["deadline"]


# Input that is refused.


@pytest.mark.parametrize(
    ("piece", "message"),
    [
        (7, "delta is int"),
        ("a\0b", "NUL character at offset 1"),
        ("ab\udc00", "half of a surrogate pair"),
        ("\ud83d!", "half of a surrogate pair"),
        ("a" * 100, "allowed are 99"),
    ],
)
def test_unusable_text_is_refused_and_not_taken(engine: Engine, piece: Any, message: str) -> None:
    stream = open_stream(engine, scoring=Options(max_response_chars=99))
    stream.feed("So")
    with pytest.raises(InvalidRequest, match=message):
        stream.feed(piece)
    assert stream.text == "So"
    stream.feed(" it is.")
    stream.finish()
    assert stream.released == "So it is."


def test_a_text_that_ends_inside_a_character_is_refused_once(engine: Engine) -> None:
    stream = open_stream(engine)
    stream.feed("So it is \ud83d")
    assert stream.text == "So it is "
    with pytest.raises(InvalidRequest, match="inside a surrogate pair"):
        stream.finish()
    stream.finish()
    assert stream.released == "So it is "


def test_a_stream_without_words_has_no_score(engine: Engine) -> None:
    stream = open_stream(engine)
    stream.feed(" \n")
    with pytest.raises(InvalidRequest, match="response is empty"):
        stream.finish()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "flag"}, "policy is str; pass an instance of Policy"),
        (
            {"policy": Policy(failed="ignore")},
            "Policy.failed is 'ignore'; use one of 'flag', 'block', 'redact', Redact",
        ),  # type: ignore[arg-type]
        ({"policy": Policy(unknown=7)}, "Policy.unknown is 7"),  # type: ignore[arg-type]
        ({"policy": Policy(overflow=Regenerate(print))}, "Policy.overflow is Regenerate"),  # type: ignore[arg-type]
        ({"policy": Policy(inconsistent=Redact(7))}, "Policy.inconsistent.mark is 7"),  # type: ignore[arg-type]
        ({"policy": Policy(deadline=Fallback(None))}, "Policy.deadline.text is None"),  # type: ignore[arg-type]
        ({"policy": Policy(inconsistent=Regenerate("x"))}, "callback is 'x'; pass a function"),  # type: ignore[arg-type]
        ({"policy": Policy(inconsistent=Regenerate(print, 0))}, "attempts is 0"),
        ({"policy": Policy(inconsistent=Regenerate(print, otherwise=Regenerate(print)))}, "inconsistent.otherwise is"),  # type: ignore[arg-type]
        ({"policy": Policy(inconsistent=Refine("x"))}, "graph is str; pass a KnowledgeGraph"),  # type: ignore[arg-type]
        ({"policy": Policy(inconsistent=Refine())}, "needs critic and retriever among the bundle's roles"),
        ({"policy": Policy(max_held_words=0)}, "max_held_words is 0"),
        ({"policy": Policy(max_held_ms=0)}, "max_held_ms is 0; allowed are numbers above 0"),
        ({"policy": Policy(max_held_ms=None)}, "max_held_ms is None"),  # type: ignore[arg-type]
        ({"policy": Policy(deadline_ms=float("inf"))}, "deadline_ms is inf"),
        ({"scoring": Options(q2=Q2Options(spans=((0, 1),)))}, "Q2Options.spans is given"),
        ({"history": 7}, "history is int"),
        ({"metrics": "psychic"}, "Unknown metric 'psychic'"),
    ],
)
def test_a_stream_that_cannot_be_opened(engine: Engine, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        Guard(engine).open(KNOWLEDGE, **settings)


def test_a_repair_needs_facts() -> None:
    with Engine(graph_world.world(**ROLES)) as engine, pytest.raises(InvalidRequest, match="Refine without a graph"):
        Guard(engine).open(KNOWLEDGE, metrics=["nli"], policy=Policy(inconsistent=Refine()))


def test_errors_are_of_one_tree() -> None:
    assert issubclass(StreamClosed, GroundwireError)


ACTIONS = st.sampled_from(
    ("flag", "block", "redact", Redact(""), Fallback("No."), Regenerate(lambda event: "Honey is golden."))
)


@given(TEXTS.map(lambda text: text.replace("so", "blue").replace("Dr", "Hi. Thanks. It")), CUTS, ACTIONS, ACTIONS)
def test_what_any_policy_lets_leave_does_not_depend_on_the_cuts(
    engine: Engine, text: str, cuts: list[int], inconsistent: Any, unverifiable: Any
) -> None:
    assume(not is_blank(text))
    policy = Policy(inconsistent=inconsistent, unverifiable=unverifiable, max_held_words=10**6)
    streams = [open_stream(engine, policy) for _ in range(3)]
    results = []
    for stream, pieces in zip(streams, ([text], list(text), cut(text, cuts)), strict=True):
        events = run(stream, pieces)
        results.append(([event for event in events if isinstance(event, SentenceEvent)], stream.released))
        releases = [event for event in events if isinstance(event, Release)]
        assert "".join(event.text for event in releases) == stream.released
        assert [event.start for event in releases] == [0, *(event.end for event in releases)][: len(releases)]
        ends = [
            event
            for event in events
            if isinstance(event, Blocked) or (event in releases and event.action == "fallback")
        ]
        assert len(ends) <= 1
        if not ends:
            assert stream.text == text
            assert stream.held == ""
        assert all(
            event.text == text[event.start : event.end] for event in releases if event.action in ("release", "flag")
        )
    assert results[0] == results[1] == results[2]


SHAPES = (
    "\n", " ", "a", "a ", ".", ") ", "```\n", "\u200b", "a:\n", "# a\n", "| a ", "1. ", "Dr. ", "A. ", "A? ", "- a\n",
    "\r\n",
)  # fmt: skip
"""Texts that grow without an end of a sentence, or with one at every character."""


@pytest.mark.parametrize("shape", SHAPES)
def test_small_pieces_cost_work_in_proportion_to_their_number(
    engine: Engine, shape: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted are the characters that are searched and checked: "A. " had each beginning of itself checked."""
    policy = msgspec.structs.replace(FLAG_ALL, max_held_words=10**9)
    lengths: list[int] = []

    def count(owner: Any, name: str, measure: Callable[..., int]) -> None:
        call = getattr(owner, name)

        def counting(*arguments: Any) -> Any:
            lengths.append(measure(*arguments))
            return call(*arguments)

        monkeypatch.setattr(owner, name, counting)

    count(StreamCore, "_start_request", lambda _, request, since: len(request.response))
    count(LineReader, "is_unsplit", lambda _, line: len(line))
    count(LineReader, "read", lambda _, line: len(line))
    count(reading_sentences, "settle_tokens", lambda line, begin: len(line) - begin)
    count(reading_sentences, "read_tokens", lambda part, build: len(part))

    def measure(length: int) -> int:
        lengths.clear()
        stream = open_stream(engine, policy, scoring=Options(max_response_chars=10**6))
        for character in (shape * length)[:length]:
            stream.feed(character)
        stream.close()
        return sum(lengths)

    assert measure(2_000) <= 2.5 * max(measure(1_000), 1_000)


@given(st.lists(TEXTS | st.sampled_from(["word" * 20, " ", "_", "."]), max_size=8), st.integers(0, 3))
def test_words_are_counted_as_in_the_whole_text(pieces: list[str], leave: int) -> None:
    counter, text, begin = WordCount(), "", 0
    for index, piece in enumerate(pieces):
        text += piece
        if index == leave:
            begin = len(text) // 2
        assert counter.count(text, begin) == len(_COUNTED.findall(text[begin:]))
