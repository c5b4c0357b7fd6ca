"""Scores a response, drafts corrections, scores them, and builds the result.

The drafts are compared with the response by its metrics that read both texts at most once, and by the metrics that the
verdict needs: Q², which asks new questions about every new text, is asked about the original alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from itertools import islice
from typing import Any, NamedTuple, cast

from msgspec.structs import asdict

from groundwire.engine import Engine, MetricResult, Options, Pending, Plan, Request, Score, UnsupportedSpan
from groundwire.engine.extend import JobResult, Knowledge, Procedure, fold_outcomes, make_request
from groundwire.engine.schema.base import Count, Record, check_record
from groundwire.engine.schema.results import STOPPED, Timings
from groundwire.engine.verdict import find_feature
from groundwire.metrics import ReadRequest, Sentence
from groundwire.runtime.bundles.calibration import Fusion
from groundwire.runtime.texts.characters import is_alphanumeric

from ..records import Correction, CorrectionEdit, CorrectionStatus, StoppedStatus
from .alternatives import (
    OtherValue,
    ScoredAlternative,
    choose_alternatives,
    find_most_probable,
    list_alternatives,
)
from .choosing import ScoredDraft, choose_drafts, is_better
from .drafts import Draft, DraftEdit, make_drafts, remove_sentence
from .keeping import Kept
from .proposals import Proposal, list_values, propose
from .question import UserQuestion, find_opener
from .refusals import Inquiry, explain_refusal
from .sources import Sources, SourceSentence

MAX_SENTENCES = 8
"""Inconsistent sentences of a response that are corrected, at most."""
VALUES = 3
"""Other values that are tried, at most, for each draft that is allowed."""
CLEAN = "The verdict is consistent, so nothing is corrected."
ABSENT = " The knowledge does not have {values}."
UNVERIFIABLE = "The verdict is that the response states nothing that could be checked."
NO_VERDICT = "Without a verdict nothing is corrected. {}"
STILL_INCONSISTENT = "The response is better, and a sentence of it is still inconsistent."
UNCHECKED = "The corrections could not be checked: a metric was stopped."
NOT_COMPARED = "The metrics that corrections are compared by give no verdict. {}"


class CorrectOptions(Record, frozen=True):
    """How a response is corrected."""

    max_drafts: Count = 4
    """Drafts that are scored, at most, 1 or more; at least one for each inconsistent sentence. Where none is better, up
    to three times as many follow, with other values of the knowledge."""
    remove_sentences: bool = False
    """Whether an inconsistent sentence may be left out where it cannot be corrected and others remain."""


class Corrector:
    """Replaces words that the knowledge does not support by its own, or leaves them out.

    The response is scored as by ``Engine.score``. For each inconsistent sentence, values, answers and words of the
    knowledge are drafted in the place of its unsupported words, or parts of it are left out. The drafts are scored
    together by the metrics that read both texts once. The best is taken if the sentence is more probably consistent
    with it. No name and no number is written that neither the knowledge nor the response has, and everything else stays
    as it is, character by character. Without a verdict nothing is corrected.

    >>> with Engine.load() as engine:                                                          # doctest: +SKIP
    ...     Corrector(engine).correct("The violin has six strings.", "The violin has four strings.").response
    """

    def __init__(self, engine: Engine) -> None:
        """Use the models of ``engine``, from any thread.

        Args:
            engine: The engine that scores drafts. The caller closes it.
        """
        self._core = engine.core

    def correct(
        self,
        response: str,
        knowledge: Knowledge,
        *,
        history: Sequence[str] = (),
        metrics: Sequence[str] | str | None = None,
        options: CorrectOptions | None = None,
        scoring: Options | None = None,
    ) -> Correction:
        """Correct a response.

        Args:
            response: The text to correct.
            knowledge: The text that the response should rest on, one text or several passages.
            history: The utterances before the response, oldest first.
            metrics: As for ``Engine.score``.
            options: How many drafts are scored, and whether sentences may be left out; None takes the defaults.
            scoring: Options of the scores; None takes the defaults.

        Returns:
            The correction. With the status ``refused`` no draft is better, and the response is unchanged.

        Raises:
            InvalidRequest: An argument is not usable.
        """
        return self._start(response, knowledge, history, metrics, options, scoring).result()

    async def acorrect(
        self,
        response: str,
        knowledge: Knowledge,
        *,
        history: Sequence[str] = (),
        metrics: Sequence[str] | str | None = None,
        options: CorrectOptions | None = None,
        scoring: Options | None = None,
    ) -> Correction:
        """Correct a response in asyncio, as ``correct``; cancelling the awaiting task gives the request up."""
        return await self._start(response, knowledge, history, metrics, options, scoring)

    def _start(
        self, response: Any, knowledge: Any, history: Any, metrics: Any, options: Any, scoring: Options | None
    ) -> Pending[Correction]:
        plan = self._core.plan(metrics, scoring)
        settings = CorrectOptions() if options is None else check_record(options, CorrectOptions)
        request = make_request(response, knowledge, history, plan.options)
        return self._core.drive(self._correct(request, plan, settings))

    def _correct(self, request: Request, plan: Plan, settings: CorrectOptions) -> Procedure[Correction]:
        read = ReadRequest.of(request)
        job_result: JobResult[MetricResult] = yield self._core.start([read], plan)
        before = fold_outcomes(read, job_result.outcomes, job_result.timings, plan)
        work = Work(request, read, before, before.timings, f"{plan.signature}|correct:{_format(settings)}")
        if before.verdict.label != "inconsistent":
            return work.leave_as_it_is()
        quick = self._make_quick_plan(plan)
        by_name = dict(zip(plan.names, job_result.outcomes, strict=True))
        compared = fold_outcomes(read, [by_name[name] for name in quick.names], before.timings, quick)
        if compared.verdict.label == "unknown":
            return work.leave("unknown", NOT_COMPARED.format(compared.verdict.message))
        drafter = Drafter(request, before)
        drafts, objections = drafter.draft(settings)
        checked, work = yield from self._check(drafts, work, quick)
        chosen = choose_drafts(compared, checked)
        alternatives = drafter.list_alternatives(settings, {item.draft.sentence.start for item in chosen})
        tried, work = yield from self._check([item.draft for item in alternatives], work, quick)
        scored = [ScoredAlternative(item, draft.score) for item, draft in zip(alternatives, tried, strict=True)]
        chosen = sorted([*chosen, *choose_alternatives(compared, scored)], key=lambda item: item.draft.sentence.start)
        if len(chosen) > 1:
            joined = join_drafts(request.response, [item.draft for item in chosen])
            (whole,), work = yield from self._check([joined], work, quick)
            chosen = [whole] if is_better(compared, whole.score) else chosen[:1]
        if chosen:
            return work.change(*chosen[0], compared)
        if stopped := _find_stopped(item.score for item in checked):
            return work.leave(stopped, UNCHECKED)
        contradiction, work = yield from self._find_contradiction(drafter, work, plan)
        most_probable = find_most_probable(compared, scored)
        message = explain_refusal(request.response, before, objections, most_probable, checked, contradiction)
        return work.leave("refused", message)

    def _find_contradiction(
        self, drafter: Drafter, work: Work, plan: Plan
    ) -> Procedure[tuple[SourceSentence | None, Work]]:
        """The sentence of the knowledge that the reader finds contradicting, and the work with the time of that."""
        inquiry = drafter.inquire() if "reader" in plan.names else None
        if inquiry is None or not inquiry.requests:
            return None, work
        asked = self._core.plan(["reader"], plan.options)
        reads = [ReadRequest.of(request) for request in inquiry.requests]
        job_result: JobResult[MetricResult] = yield self._core.start(
            reads, asked, work.find_left_ms(plan), is_bounded=False
        )
        return inquiry.choose(job_result.outcomes), work._replace(timings=work.timings + job_result.timings)

    def _check(self, drafts: Sequence[Draft], work: Work, plan: Plan) -> Procedure[tuple[list[ScoredDraft], Work]]:
        """The drafts with their scores, and the work with the time that these took."""
        if not drafts:
            return [], work
        requests = [work.read.ask(draft.response) for draft in drafts]
        job_result: JobResult[MetricResult] = yield self._core.start(
            requests, plan, work.find_left_ms(plan), is_bounded=False
        )
        size = len(plan.metrics)
        scores = [
            fold_outcomes(request, job_result.outcomes[index * size : (index + 1) * size], job_result.timings, plan)
            for index, request in enumerate(requests)
        ]
        checked = [ScoredDraft(draft, score) for draft, score in zip(drafts, scores, strict=True)]
        return checked, work._replace(timings=work.timings + job_result.timings)

    def _make_quick_plan(self, plan: Plan) -> Plan:
        """The plan with the metrics that drafts are compared by."""
        assert plan.calibration is not None  # there is a verdict
        fusion = min(
            (fusion for fusion in plan.calibration.fusions if _list_needed(fusion) <= set(plan.names)),
            key=lambda fusion: len(_list_needed(fusion)),
        )
        names = [item.name for item in plan.metrics if "fast" in item.groups or item.name in _list_needed(fusion)]
        return self._core.plan(names, plan.options)


class Work(NamedTuple):
    """What is known about a response that is corrected."""

    request: Request
    read: ReadRequest
    """The request as metrics read it."""
    before: Score
    timings: Timings
    """Timings of all jobs so far."""
    signature: str

    def find_left_ms(self, plan: Plan) -> float | None:
        """Milliseconds that are left for further jobs; None without a deadline."""
        deadline_ms = plan.options.deadline_ms
        return None if deadline_ms is None else max(0.0, deadline_ms - self.timings.total_ms)

    def leave_as_it_is(self) -> Correction:
        """The result for a response that is not inconsistent."""
        label = self.before.verdict.label
        if label == "consistent":
            whole = Sentence(self.request.response, 0, len(self.request.response))
            absent = [value.text for value in list_values(self.before, whole) if value.outcome == "absent"]
            return self.leave("clean", CLEAN + (ABSENT.format(values=", ".join(absent)) if absent else ""))
        if label == "unverifiable":
            return self.leave("unverifiable", UNVERIFIABLE)
        stopped = _find_stopped([self.before])
        return self.leave(stopped or "unknown", NO_VERDICT.format(self.before.verdict.message))

    def leave(self, status: CorrectionStatus, message: str) -> Correction:
        """The response unchanged."""
        return Correction(
            status=status,
            original=self.request.response,
            response=self.request.response,
            edits=(),
            unresolved=self.before.unsupported,
            accepted=None,
            before=self.before,
            after=None,
            probability_before=None,
            timings=self.timings,
            signature=self.signature,
            message=message,
        )

    def change(self, draft: Draft, after: Score, compared: Score) -> Correction:
        """The response with the edits of a draft."""
        original, doubts = self.request.response, self.before.unsupported
        accepted = after.verdict.label in ("consistent", "unverifiable")
        return Correction(
            status="corrected" if accepted else "partial",
            original=original,
            response=draft.response,
            edits=tuple(_describe(original, draft, edit, doubts) for edit in draft.edits),
            unresolved=tuple(span for span in doubts if not any(_overlap(span, edit) for edit in draft.edits)),
            accepted=accepted,
            before=self.before,
            after=after,
            probability_before=compared.verdict.probability,
            timings=self.timings,
            signature=self.signature,
            message="" if accepted else STILL_INCONSISTENT,
        )


class Drafter:
    """Drafts corrections of the inconsistent sentences of a response."""

    def __init__(self, request: Request, score: Score) -> None:
        """Read the knowledge when it is first needed."""
        self._request = request
        self._score = score
        self._response = request.response
        self._sources = Sources(request.knowledge)
        self._untouched = Kept(request.response, request.knowledge, request.history)
        self._question = UserQuestion(request.response, request.history)
        self._doubted = [part for part in score.sentences if part.verdict.label == "inconsistent"][:MAX_SENTENCES]

    def draft(self, settings: CorrectOptions) -> tuple[list[Draft], list[Proposal]]:
        """Drafts sentence by sentence, the most trusted first; and the proposals that are not drafted."""
        response, untouched, question = self._response, self._untouched, self._question
        drafts: list[Draft] = []
        objections: list[Proposal] = []
        for part in self._doubted:
            sentence = Sentence(part.text, part.start, part.end)
            proposals = propose(response, sentence, self._score, self._sources, untouched, question)
            objections += [proposal for proposal in proposals if proposal.objection]
            supported = [value for value in list_values(self._score, sentence) if value.outcome == "supported"]
            made = make_drafts(response, sentence, proposals, part.unsupported, supported, untouched, question)
            drafts += islice(made, max(1, settings.max_drafts // len(self._doubted)))
            if settings.remove_sentences and not find_opener(response[: part.start], ""):
                drafts += filter(None, [remove_sentence(response, sentence)])
        return drafts, objections

    def inquire(self) -> Inquiry | None:
        """What to ask about the most doubted sentence; None where none is inconsistent."""
        return Inquiry(self._request, self._doubted, self._sources) if self._doubted else None

    def list_alternatives(self, settings: CorrectOptions, corrected: Set[int]) -> list[OtherValue]:
        """Other values for the sentences that do not begin at one of the places ``corrected``."""
        left = [part for part in self._doubted if part.start not in corrected]
        values = [
            alternatives
            for part in left
            for alternatives in list_alternatives(
                self._response,
                Sentence(part.text, part.start, part.end),
                self._score,
                self._sources,
                self._untouched,
                self._question,
            )
        ]
        share = max(1, VALUES * settings.max_drafts // max(1, len(values)))
        return list(
            islice((item for alternatives in values for item in alternatives[:share]), VALUES * settings.max_drafts)
        )


def join_drafts(response: str, drafts: Sequence[Draft]) -> Draft:
    """The edits of drafts for several sentences, in one response; the last sentence stays where none would be left."""
    text, position = "", 0
    edits = []
    for draft in drafts:
        for edit in draft.edits:
            start, end = max(edit.start, position), edit.end  # two removals may both have the space between them
            text += response[position:start]
            if edit.action == "remove_sentence" and not text:
                end += len(response[end:]) - len(response[end:].lstrip())
            new = draft.response[edit.new_start : edit.new_end]
            edits.append(
                DraftEdit(start, end, len(text), len(text) + len(new), edit.action, edit.source, edit.evidence)
            )
            text += new
            position = end
    text += response[position:]
    if not any(map(is_alphanumeric, text)):
        return join_drafts(response, drafts[:-1])
    return Draft(text, tuple(edits), drafts[0].sentence, min(draft.trust for draft in drafts))


def _describe(original: str, draft: Draft, edit: DraftEdit, doubts: Sequence[UnsupportedSpan]) -> CorrectionEdit:
    return CorrectionEdit(
        old=original[edit.start : edit.end],
        new=draft.response[edit.new_start : edit.new_end],
        start=edit.start,
        end=edit.end,
        new_start=edit.new_start,
        new_end=edit.new_end,
        action=edit.action,
        source=edit.source,
        evidence=edit.evidence,
        span=next((span for span in doubts if _overlap(span, edit)), None),
    )


def _overlap(span: UnsupportedSpan, edit: DraftEdit) -> bool:
    return span.start < edit.end and edit.start < span.end


def _find_stopped(scores: Iterable[Score]) -> StoppedStatus | None:
    """The status of the first score or metric that was stopped; None if none was."""
    statuses = (
        status for score in scores for status in (score.status, *(result.status for result in score.metrics.values()))
    )
    return next((cast(StoppedStatus, status) for status in statuses if status in STOPPED), None)


def _list_needed(fusion: Fusion) -> set[str]:
    return {find_feature(feature.name).metric.name for feature in fusion.features if feature.needed}


def _format(settings: CorrectOptions) -> str:
    return ",".join(f"{name}={value}" for name, value in asdict(settings).items())
