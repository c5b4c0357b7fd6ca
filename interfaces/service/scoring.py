"""``/score``, ``/evidence``, ``/correct``, ``/rank``, ``/refine`` and ``/generate``: one body, one answer."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from groundwire.engine import Plan, Request, Score
from groundwire.engine.extend import count_tokens, list_turns, make_request
from groundwire.engine.schema.results import check_fields
from groundwire.evidence.packet import make_packet
from groundwire.generation import Generation, Generator
from groundwire.repair import Correction, CorrectOptions, Corrector, Refinement, RefineOptions, Refiner

from .problems import make_json, refuse_stopped
from .records import (
    CorrectBody,
    EvidenceBody,
    Explanations,
    GenerateBody,
    RankBody,
    Ranking,
    RefineBody,
    ResponseBody,
    ScoreBody,
)
from .request import ServiceRequest, check_size, check_texts

MAX_ENTRIES = 500
"""Entries of each list of an answer, but unsupported words and citations: those of 2,000 characters."""
SCORE = msgspec.json.Decoder(ScoreBody)
EVIDENCE = msgspec.json.Decoder(EvidenceBody)
RANK = msgspec.json.Decoder(RankBody)
CORRECT = msgspec.json.Decoder(CorrectBody)
REFINE = msgspec.json.Decoder(RefineBody)
GENERATE = msgspec.json.Decoder(GenerateBody)


async def score(request: ServiceRequest) -> Response:
    """Score a response.

    200 says that nothing was stopped. Look at the verdict's label, and treat `unknown` as "not checked"; a metric has a
    value if and only if its status is `scored`. `fields` and `explanations` make the answer smaller.
    """
    body = await request.read(SCORE)
    check_fields(body.fields)
    _, _, result = await score_body(request, body, limit_entries(body.explanations))
    selected = select(result, body.fields, explanations=body.explanations)
    return make_json(selected, max_bytes=request.service.settings.max_answer_bytes)


def limit_entries(explanations: Explanations) -> int | None:
    """The entries that each list of a score may have; None for all."""
    return None if explanations == "all" else MAX_ENTRIES


def select(score: Score, fields: tuple[str, ...] | None, *, explanations: Explanations) -> Score | dict[str, Any]:
    """The score, or the requested fields of it."""
    return score if fields is None and explanations else score.select(fields, explanations=bool(explanations))


async def evidence(request: ServiceRequest) -> Response:
    """Score a response, and answer with an evidence packet.

    The packet has the score, everything that it depends on, and digests; `groundwire verify` compares it with what is
    computed again.
    """
    body = await request.read(EVIDENCE)
    texts, plan, result = await score_body(request, body)
    identity = request.service.engine.core.runtime.identity
    packet = make_packet(result, texts, plan, identity, None, texts=body.texts)
    return make_json(packet, max_bytes=request.service.settings.max_answer_bytes)


async def score_body(
    request: ServiceRequest, body: ResponseBody, max_entries: int | None = None
) -> tuple[Request, Plan, Score]:
    """The texts of a body, its plan and its score, counted and logged; Refusal if a metric was stopped."""
    service = request.service
    check_texts(service.settings, (body.response,), body.knowledge, body.history, body.triples)
    plan = request.plan(body.metrics, body.options)
    texts = make_request(body.response, body.knowledge, body.history, plan.options, body.triples)
    request.context.log_fields["tokens"] = count_tokens([texts], plan)
    left_ms = request.deadline.left_ms()
    result = await request.wait_in_time(service.engine.core.score(texts, plan, left_ms, max_entries=max_entries))
    note_score(request, result)
    refuse_stopped_score(result)
    return texts, plan, result


def note_score(request: ServiceRequest, score: Score) -> None:
    """Count a score, and let the log say how it ended."""
    request.service.monitoring.add_score(score)
    request.context.log_fields |= {
        "score_status": score.status,
        "verdict": score.verdict.label,
        "engine_ms": round(score.timings.total_ms, 3),
        "queued_ms": round(score.timings.queued_ms, 3),
        "signature": score.signature,
    }


def refuse_stopped_score(score: Score) -> None:
    """Raise Refusal if one of the score's metrics was stopped, or what draws the verdict from them failed."""
    names: dict[str, list[str]] = {}
    for name, result in sorted(score.metrics.items()):
        if result.value is None:
            names.setdefault(result.message, []).append(name)
    messages = [f"{', '.join(of_message)}: {message}" for message, of_message in names.items()]
    if score.message not in names:
        messages.append(score.message)
    refuse_stopped(
        score.status, (result.status for result in score.metrics.values()), " ".join(filter(None, messages)), score
    )


async def rank(request: ServiceRequest) -> Response:
    """Order candidate responses by a metric, best first."""
    body = await request.read(RANK)
    service = request.service
    check_size("candidates", len(body.candidates), service.settings.max_candidates, "candidates")
    check_texts(service.settings, body.candidates, body.knowledge, body.history, body.triples)
    options = request.bound_options(body.options)
    ranked = await request.wait_in_time(
        service.engine.arank(
            body.candidates,
            body.knowledge or (),
            history=list_turns(body.history),
            triples=body.triples,
            metric=body.metric,
            options=options,
        )
    )
    ranking = Ranking(ranked)
    for candidate in ranked:
        service.monitoring.add_result(candidate.result)
    messages = {candidate.result.message for candidate in ranked if candidate.result.value is None}
    # One that cannot be read comes last, without a value; what was stopped might have been the best.
    refuse_stopped("", (candidate.result.status for candidate in ranked), " ".join(sorted(messages)), ranking)
    return make_json(ranking)


async def correct(request: ServiceRequest) -> Response:
    """Put what the knowledge says in the place of what it does not support.

    Look at the status: only `corrected` and `partial`, which is still inconsistent, change the response; `unknown` says
    that the verdict was unknown.
    """
    body = await request.read(CORRECT)
    service = request.service
    check_texts(service.settings, (body.response,), body.knowledge, body.history)
    options = request.bound_options(body.options)
    correction: Correction = await request.wait_in_time(
        Corrector(service.engine).acorrect(
            body.response,
            body.knowledge,
            history=list_turns(body.history),
            metrics=service.choose_metrics(body.metrics),
            scoring=options,
            options=CorrectOptions(max_drafts=body.max_drafts, remove_sentences=body.remove_sentences),
        )
    )
    note_score(request, correction.before)
    request.context.log_fields["correct_status"] = correction.status
    statuses = [result.status for result in correction.before.metrics.values()]
    refuse_stopped(correction.status, statuses, correction.message, correction)
    before, after = (score and score.shorten(MAX_ENTRIES) for score in (correction.before, correction.after))
    return make_json(replace(correction, before=before, after=after))


async def refine(request: ServiceRequest) -> Response:
    """Put entities of the triples in the place of names that they do not support.

    Needs a bundle with the roles `critic` and `retriever`: `groundwire serve --extra nph`.
    """
    body = await request.read(REFINE)
    service = request.service
    check_texts(service.settings, (body.response,), (), body.history, body.triples)
    options = request.bound_options(body.options)
    refinement: Refinement = await request.wait_in_time(
        Refiner(service.engine).arefine(
            body.response,
            body.triples,
            history=list_turns(body.history),
            scoring=options,
            options=RefineOptions(top=body.top, type_aware=body.type_aware, min_probability=body.min_probability),
        )
    )
    service.monitoring.add_timings(refinement.timings)
    request.context.log_fields["refine_status"] = refinement.status
    refuse_stopped(refinement.status, (), refinement.message, refinement)
    return make_json(refinement)


async def generate(request: ServiceRequest) -> Response:
    """Generate responses that rest on the knowledge, and check them.

    Needs a generator: `groundwire serve --extra DIRECTORY`, made with `groundwire export generator`.
    """
    body = await request.read(GENERATE)
    service = request.service
    check_texts(service.settings, (), body.knowledge, body.history)
    options = request.bound_options(body.options)
    generation: Generation = await request.wait_in_time(
        Generator(service.engine).agenerate(
            body.knowledge, list_turns(body.history), body.generation, metrics=body.metrics, scoring=options
        )
    )
    service.monitoring.add_timings(generation.timings)
    request.context.log_fields["generation_status"] = generation.status
    checks = [response.check for response in generation.responses if response.check is not None]
    statuses = [result.status for check in checks for result in check.metrics.values()]
    refuse_stopped(generation.status, statuses, generation.message, generation)
    return make_json(generation)
