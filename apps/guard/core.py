"""The state of a checked stream: its text, its sentences, their checks, and what the policy releases.

Nothing here waits. ``feed`` and ``finish`` are generators of what has to be waited for, which ``stream`` drives from
threads and from asyncio.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from math import inf
from typing import Any, NamedTuple, TypeAlias

import msgspec

from groundwire.engine import MetricResult, Plan, Request, Score
from groundwire.engine.extend import (
    Failure,
    Job,
    JobResult,
    Procedure,
    SentenceReader,
    answers_turn,
    find_code,
    fold_outcomes,
    make_response,
)
from groundwire.metrics import ReadRequest, Sentence, sentences
from groundwire.runtime.errors import EngineClosed, InvalidRequest, Overloaded, StreamClosed
from groundwire.runtime.texts.characters import is_alphanumeric, is_space
from groundwire.runtime.texts.unread import is_blank

from .checks import Check, check_alone, check_in_whole
from .policies import (
    Correct,
    Fallback,
    Policy,
    Redact,
    Refine,
    Regenerate,
    Rewriting,
    find_action,
    name_action,
    resolve,
)
from .records import ActionName, Blocked, EarlyVerdict, Event, FinalEvent, Outcome, Release, SentenceEvent

ScoreJob: TypeAlias = Job[MetricResult]
Start: TypeAlias = Callable[[Request, float | None], ScoreJob]
"""Starts the metrics of a request, with a deadline in milliseconds; None is without a deadline."""
Repair: TypeAlias = Callable[[str, str, Refine | Correct], str | None]
"""Refines or corrects a sentence, after the text before it; None where none is possible."""
AT_ONCE = 8
"""Sentences of a stream that are checked at the same time, if so many come at once."""
AHEAD_CHARACTERS, AHEAD_SHARE = 4_000, 4
"""Checks ahead read so many characters of a stream, and so many for each character that was fed: in "A. A. A. A." every
full stop may end the sentence, and to check it at each of them would take quadratic time."""
ALONE_INCONSISTENT = (
    "A sentence was inconsistent when it was checked by itself, which the policy went by; the whole response is not."
)
"""A warning of the score that a stream ends with."""
_COUNTED = re.compile(r"\w{1,16}|[^\w\s]")


class StartedCheck(NamedTuple):
    """A request about text of the stream, and its job."""

    request: ReadRequest
    job: ScoreJob


@dataclass(slots=True)
class WaitingSentence:
    """A complete sentence that waits for its check, and the check once it is started."""

    sentence: Sentence
    pending: StartedCheck | None = None


class WordCount:
    """The words and punctuation marks of the end of a text that grows: each character is read about once."""

    def __init__(self) -> None:
        self._begin = self._at = self._count = 0

    def count(self, text: str, begin: int) -> int:
        """How many there are from ``begin`` on, which only grows, as ``text`` does."""
        if begin != self._begin:
            self._begin, self._at, self._count = begin, begin, 0
        new = tuple(match.span() for match in _COUNTED.finditer(text, self._at))
        self._at, self._count = len(text), self._count + len(new)
        if not new or new[-1][1] < len(text):
            return self._count
        self._at, self._count = new[-1][0], self._count - 1  # the last may go on
        return self._count + 1


class StreamCore:
    """The state of a stream. Not thread-safe, but for ``close``."""

    def __init__(
        self,
        request: Request,
        plan: Plan,
        policy: Policy,
        start: Start,
        cancel: Callable[[ScoreJob], None],
        repair: Repair,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A stream of the response to ``request``, whose own response does not matter; ``clock`` gives seconds."""
        self._request = ReadRequest.of(request)
        self._plan = plan
        self._policy = policy
        self._start = start
        self._cancel = cancel
        self._repair = repair
        self._clock = clock
        self._opened = clock()
        self._fed: deque[tuple[int, float]] = deque()
        """Where each part of the held text ends, and when it came."""
        self._lone_surrogate = ""
        """The first half of a surrogate pair whose second half was not fed yet, or nothing."""
        self._reader = SentenceReader()
        self._waiting: deque[WaitingSentence] = deque()
        self._ahead: WaitingSentence | None = None
        """A sentence that has its full stop, but is not complete: its check runs while the next word is awaited."""
        self._read_ahead = 0
        """How many characters the checks ahead have read."""
        self._last_shown = -1
        """Where the last character of the text is that is not blank."""
        self._words = WordCount()
        self.released_end = 0
        """Characters of the text that were released or replaced: the rest is held."""
        self.released: list[str] = []
        self._checked = 0
        """How many sentences have their event."""
        self._inconsistent = False
        self.is_ended = False
        """The policy has ended the stream."""
        self.is_closed = False
        self.score: Score | None = None
        self.events: list[Event] = []
        """Those that no call has returned yet."""
        self._jobs: list[ScoreJob] = []

    @property
    def text(self) -> str:
        """All text that was fed."""
        return self._reader.text

    def close(self) -> None:
        """Cancel what runs, and let nothing more leave. From any thread."""
        self.is_closed = True
        self.cancel_jobs()

    def cancel_jobs(self) -> None:
        """Cancel what runs; what is not checked is started again by the next call."""
        for job in tuple(self._jobs):
            self._cancel(job)

    def forget_jobs(self) -> None:
        """Cancel what runs, and forget it."""
        self.cancel_jobs()
        self._jobs.clear()
        self._ahead = None
        for waiting in self._waiting:
            waiting.pending = None

    def feed(self, delta: Any) -> Procedure[None]:
        """Take a part of the text, check the sentences that it completes, and do what the policy says."""
        if not isinstance(delta, str):
            raise InvalidRequest(f"delta is {type(delta).__name__}; pass a string.")
        if self.is_ended:
            return
        self._take(delta)
        yield from self._check_waiting()
        if not self.is_ended:
            self._bound_held()
            self._look_ahead()

    def finish(self) -> Procedure[None]:
        """Score the whole text, and do what the policy says about the sentences that remain."""
        if self._lone_surrogate:
            self._lone_surrogate = ""
            raise InvalidRequest("The text ended inside a surrogate pair; the half of it is left out.")
        whole = self._request.ask(make_response(self.text, self._plan.options))
        yield from self._check_waiting()
        score = yield from self._score(whole)
        rest = sentences(self.text)[self._checked :]
        for sentence, check in zip(rest, check_in_whole(score, rest), strict=True):
            if not self.is_ended:
                is_last = sentence is rest[-1]
                yield from self._apply(sentence, check, len(self.text) if is_last else sentence.end, early=False)
        if self._inconsistent and score.verdict.label != "inconsistent":
            score = msgspec.structs.replace(score, warnings=(*score.warnings, ALONE_INCONSISTENT))
        self.events.append(FinalEvent(score, "".join(self.released)))
        self.score = score

    def seconds_left(self) -> float | None:
        """Seconds until what is held, or the stream, has its time; None without a limit."""
        if self._last_shown < self.released_end or self.is_ended:
            return None
        return max(0.0, self._find_limit(self._fed[0][1]) - self._clock())

    def _find_limit(self, since: float | None) -> float:
        """When the stream has its time, or text that is held ``since`` then; infinite without a limit."""
        held = inf if since is None else since + self._policy.max_held_ms / 1000
        deadline_ms = self._policy.deadline_ms
        return held if deadline_ms is None else min(held, self._opened + deadline_ms / 1000)

    # Text.

    def _take(self, delta: str) -> None:
        """Append ``delta``; InvalidRequest, and nothing is appended, if it is not usable."""
        text, self._lone_surrogate = self._lone_surrogate + delta, ""
        half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        text = _join_surrogates(text.removesuffix(half) if half else text)
        if "\0" in text:
            raise InvalidRequest(f"delta has a NUL character at offset {text.index(chr(0))}; remove it.")
        length, allowed = len(self.text) + len(text), self._plan.options.max_response_chars
        if length > allowed:
            raise InvalidRequest(
                f"The response has {length} characters with this piece; allowed are {allowed}. Finish the stream, or "
                "raise Options.max_response_chars."
            )
        self._lone_surrogate = half
        if text:
            self._fed.append((length, self._clock()))
            shown = next((index for index in reversed(range(len(text))) if not is_blank(text[index])), None)
            if shown is not None:
                self._last_shown = length - len(text) + shown
            for sentence in self._reader.feed(text):
                waiting = WaitingSentence(sentence)
                if self._ahead is not None and self._ahead.sentence == sentence:
                    waiting, self._ahead = self._ahead, None
                self._waiting.append(waiting)

    def _leave(self, text: str, end: int, outcome: Outcome, action: ActionName, *, checked: bool) -> None:
        """Let ``text`` leave in the place of what is held up to ``end``."""
        self.events.append(Release(text, self.released_end, end, outcome, action, checked))
        self.released.append(text)
        self.released_end = end
        while self._fed and self._fed[0][0] <= end:
            self._fed.popleft()

    def _bound_held(self) -> None:
        """Do what the policy says about a sentence that is not complete if too much of it is held, or for too long."""
        if self.seconds_left() == 0.0:
            self._overflow(len(self.text))
        elif self._words.count(self.text, self.released_end) > self._policy.max_held_words:
            held = self.text[self.released_end :]
            words = held.rstrip().rsplit(None, 1)
            # The last word may go on, unless it is alone.
            goes_on = len(words) > 1 and not is_space(held[-1])
            self._overflow(len(self.text) - (len(words[-1]) if goes_on else 0))

    def _overflow(self, end: int) -> None:
        """Do what the policy says about the beginning of a sentence that is not complete, up to ``end``."""
        action = resolve(self._policy.overflow)
        text = self.text[self.released_end : end]
        if isinstance(action, Redact):
            text = _replace_all(text, action.mark)
        if isinstance(action, Redact) or action == "flag":
            self._leave(text, end, "overflow", name_action(action), checked=False)
        else:
            message = "More words of a sentence that is not complete were held than the policy allows, or for longer."
            self._end(action if isinstance(action, Fallback) else None, "overflow", message)

    # Checks.

    def _start_request(self, request: ReadRequest, since: float | None) -> StartedCheck:
        """Start a request about text that is held ``since`` then; it has the time of the options, or less."""
        deadline_ms = self._plan.options.deadline_ms
        left_ms = min((self._find_limit(since) - self._clock()) * 1000, inf if deadline_ms is None else deadline_ms)
        pending = StartedCheck(request, self._start(request, None if left_ms == inf else max(0.0, left_ms)))
        self._jobs.append(pending.job)
        if self.is_closed:  # in the meantime, by another thread
            self._cancel(pending.job)
        return pending

    def _wait_for(self, pending: StartedCheck) -> Procedure[JobResult[MetricResult]]:
        job_result: JobResult[MetricResult] = yield pending.job
        self._jobs.remove(pending.job)
        self._check_open()
        if any(isinstance(outcome, Failure) and outcome.status == "cancelled" for outcome in job_result.outcomes):
            raise EngineClosed("The engine was closed while a sentence was checked; nothing more leaves.")
        return job_result

    def _check_open(self) -> None:
        if self.is_closed:
            raise StreamClosed("The stream was closed while a sentence was checked.")

    def _check_waiting(self) -> Procedure[None]:
        """Check the complete sentences in their order, ``AT_ONCE`` at a time."""
        while self._waiting and not self.is_ended:
            self._start_waiting()
            waiting = self._waiting[0]
            assert waiting.pending is not None
            check = yield from self._check(waiting.pending)
            yield from self._apply(
                waiting.sentence, check.shift(waiting.sentence.start), waiting.sentence.end, early=True
            )
            if not self.is_ended:
                self._waiting.popleft()

    def _start_waiting(self) -> None:
        for index, waiting in enumerate(islice(self._waiting, AT_ONCE)):
            try:
                self._start_check(waiting)
            except Overloaded:
                if index == 0:
                    raise
                return  # the first is waited for, and makes room

    def _look_ahead(self) -> None:
        """Start the check of a sentence that is probably complete; nothing waits for it."""
        candidate = self._reader.candidate
        if candidate is None or self.is_ended or candidate.end <= self.released_end:
            return
        if self._ahead is not None and self._ahead.sentence == candidate:
            return
        self._drop_ahead()
        length = candidate.end - candidate.start
        if self._read_ahead + length > AHEAD_CHARACTERS + AHEAD_SHARE * len(self.text):
            return
        self._read_ahead += length
        with suppress(Overloaded, EngineClosed):  # the next call says so if the sentence has to be checked
            self._ahead = self._start_check(WaitingSentence(candidate))

    def _drop_ahead(self) -> None:
        if self._ahead is not None and self._ahead.pending is not None:
            self._cancel(self._ahead.pending.job)
            self._jobs.remove(self._ahead.pending.job)
        self._ahead = None

    def _start_check(self, waiting: WaitingSentence) -> WaitingSentence:
        if waiting.pending is None:
            answers = answers_turn(waiting.sentence.text, self.text[: waiting.sentence.start])
            history = None if answers else (*self._request.original.history, "")  # an empty turn, which asks nothing
            request = self._request.ask(waiting.sentence.text, history)
            waiting.pending = self._start_request(request, self._fed[0][1])
        return waiting

    def _check(self, pending: StartedCheck) -> Procedure[Check]:
        job_result = yield from self._wait_for(pending)
        outcomes, timings = job_result.outcomes, job_result.timings
        score = fold_outcomes(pending.request, outcomes, timings, self._plan, is_sentence=True)
        return check_alone(score)

    def _score(self, whole: ReadRequest) -> Procedure[Score]:
        pending = self._start_request(whole, None)
        self._drop_ahead()  # what both ask is asked once, and goes on
        job_result = yield from self._wait_for(pending)
        return fold_outcomes(whole, job_result.outcomes, job_result.timings, self._plan)

    # The policy.

    def _apply(self, sentence: Sentence, check: Check, end: int, *, early: bool) -> Procedure[None]:
        """Do what the policy says about a sentence that is checked, with what is held of the text up to ``end``."""
        action = find_action(self._policy, check.outcome, sure=check.verdict.sure)
        event = SentenceEvent(
            self._checked,
            *sentence,
            check.outcome,
            name_action(action),
            check.verdict,
            check.unsupported,
            check.citations,
        )
        rewritten = None
        if isinstance(action, Rewriting):
            rewritten = yield from self._rewrite(event, action)
        self._add_event(event, early)
        by = name_action(action)
        if isinstance(action, Rewriting) and rewritten is None:
            action = resolve(action.otherwise)
            by = name_action(action)
        if action == "block" or isinstance(action, Fallback):
            self._end(action if isinstance(action, Fallback) else None, check.outcome, check.verdict.message)
        elif end > self.released_end:
            text, outcome, checked = self.text[self.released_end : end], check.outcome, check.has_verdict
            if rewritten is not None:
                text = self.text[self.released_end : sentence.start] + rewritten[0] + self.text[sentence.end : end]
                outcome = rewritten[1].outcome
            elif isinstance(action, Redact):
                text, checked = self._redact(sentence, check, end, action.mark)
            self._leave(text, end, outcome, by, checked=checked)

    def _add_event(self, event: SentenceEvent, early: bool) -> None:
        self._checked += 1
        self.events.append(event)
        if event.outcome == "inconsistent" and not self._inconsistent:
            self._inconsistent = True
            if early:
                self.events.append(EarlyVerdict(event.index, event.verdict))

    def _redact(self, sentence: Sentence, check: Check, end: int, mark: str) -> tuple[str, bool]:
        """What leaves of a sentence, up to ``end``, and whether it is its own, supported words.

        Code leaves as it is: with a mark inside it is another program.
        """
        begin = min(max(self.released_end, sentence.start), sentence.end)
        ranges = [(max(span.start, begin), span.end) for span in check.unsupported if span.end > begin]
        has_own = check.has_verdict and bool(ranges)
        doubted = ranges if has_own else [(begin, sentence.end)]
        outside = _leave_out(self.text, doubted, find_code(self.text[: sentence.end]))
        redacted = _replace(self.text, begin, sentence.end, outside, mark)
        return (
            self.text[self.released_end : begin] + redacted + self.text[max(sentence.end, self.released_end) : end],
            has_own and outside == ranges,
        )

    def _end(self, fallback: Fallback | None, outcome: Outcome, message: str) -> None:
        """Let nothing of the text leave any more, but the spaces before a text in its place."""
        if fallback is not None:
            held = self.text[self.released_end :]
            text = held[: len(held) - len(held.lstrip())] + fallback.text
            self._leave(text, len(self.text), outcome, "fallback", checked=False)
        else:
            self.events.append(Blocked(self.released_end, outcome, message))
        self.is_ended = True
        self._waiting.clear()
        self.forget_jobs()

    def _rewrite(self, event: SentenceEvent, action: Rewriting) -> Procedure[tuple[str, Check] | None]:
        """Another text for a sentence and what is known about it; None if there is none that may leave."""
        if self.released_end > event.start:
            return None
        since = self._fed[0][1]
        for _ in range(action.attempts if isinstance(action, Regenerate) else 1):
            if isinstance(action, Regenerate):
                text = yield partial(action.callback, event)
            else:
                text = yield partial(self._repair, self.text[: event.start], event.text, action)
            self._check_open()
            if text is None:
                return None
            request = self._request.ask(make_response(text, self._plan.options))
            check = yield from self._check(self._start_request(request, since))
            if self._may_leave(check):
                return text, check
            event = msgspec.structs.replace(
                event,
                text=text,
                outcome=check.outcome,
                verdict=check.verdict,
                unsupported=check.unsupported,
                citations=check.citations,
            )
        return None

    def _may_leave(self, check: Check) -> bool:
        """Whether a text leaves as it is when ``check`` says that it is not inconsistent."""
        if check.outcome == "unverifiable":
            return self._policy.unverifiable == "flag"
        return check.outcome == "consistent"


def _join_surrogates(text: str) -> str:
    """``text`` with the halves of characters that were cut in two put together; InvalidRequest for other halves."""
    if not any("\ud800" <= character <= "\udfff" for character in text):
        return text
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            "delta has half of a surrogate pair without the other; it is not valid text. "
            "Decode the source with errors='replace'."
        ) from error


def _replace_all(text: str, mark: str) -> str:
    """``mark``, between the spaces that ``text`` begins and ends with."""
    words = text.strip()
    return text.replace(words, mark, 1) if words else text


def _leave_out(text: str, ranges: list[tuple[int, int]], code: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The parts of ranges that are not code, without spaces at their ends; both are in order and disjoint."""
    parts = []
    for begin, stop in ranges:
        edges = [begin, *(edge for span in code if span[0] < stop and begin < span[1] for edge in span), stop]
        for start, end in zip(edges[::2], edges[1::2], strict=True):
            part = text[start:end]
            if any(map(is_alphanumeric, part)):
                parts.append((start + len(part) - len(part.lstrip()), end - len(part) + len(part.rstrip())))
    return parts


def _replace(text: str, start: int, end: int, ranges: list[tuple[int, int]], mark: str) -> str:
    """Characters ``start`` to ``end`` of ``text`` with ``mark`` in the place of ``ranges``, in order and disjoint.

    Ranges with nothing but spaces between them have one mark.
    """
    parts: list[str] = []
    for begin, stop in ranges:
        if not parts or text[start:begin].strip():
            parts += [text[start:begin], mark]
        start = stop
    return "".join((*parts, text[start:end]))
