"""``/score``, ``/evidence``, ``/correct``, ``/rank``, ``/refine`` and ``/generate``: one body, one answer."""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from groundwire.engine import Options, Score
from groundwire.evidence import Auditor
from groundwire.generation import Generation, Generator
from groundwire.generation.options import MAX_NEW_TOKENS, MAX_RESPONSES
from groundwire.repair import Correction, CorrectOptions, Corrector, Refinement, RefineOptions, Refiner

from .call import Call, make_json
from .limits import check_size, check_turn, estimate_tokens
from .problems import refuse_stopped
from .records import CorrectBody, EvidenceBody, GenerateBody, RankBody, Ranking, RefineBody, ScoreBody, ScoreLine

SCORE = msgspec.json.Decoder(ScoreBody)
EVIDENCE = msgspec.json.Decoder(EvidenceBody)
RANK = msgspec.json.Decoder(RankBody)
CORRECT = msgspec.json.Decoder(CorrectBody)
REFINE = msgspec.json.Decoder(RefineBody)
GENERATE = msgspec.json.Decoder(GenerateBody)


async def score(call: Call) -> Response:
    """Score a response.

    200 says that nothing was stopped. Look at the verdict's label, and treat `unknown` as "not checked"; a metric has a
    value if and only if its status is `scored`.
    """
    return make_json(await score_body(call, await call.read(SCORE)))


async def evidence(call: Call) -> Response:
    """Score a response, and answer with an evidence packet.

    The packet has the score, everything that it depends on, and digests; `groundwire verify` compares it with what is
    computed again.
    """
    body = await call.read(EVIDENCE)
    result = await score_body(call, body)
    packet = Auditor(call.service.engine).pack(
        result,
        body.response,
        body.knowledge,
        history=body.history,
        triples=body.triples,
        texts=body.texts,
        scoring=body.options,
    )
    return make_json(packet)


async def score_body(call: Call, body: ScoreBody) -> Score:
    """The score of a body, counted and logged; Refusal if a metric was stopped."""
    service = call.service
    check_turn(service.settings, (body.response,), body.knowledge, body.history, body.triples)
    options = call.bound_options(body.options)
    metrics = service.resolve_metrics(body.metrics)
    cost = estimate_score(body, len(metrics), options)
    score = await call.run(
        lambda: service.engine.ascore(
            body.response,
            body.knowledge,
            history=body.history,
            triples=body.triples,
            metrics=metrics,
            options=options,
        ),
        cost,
    )
    note_score(call, score)
    refuse_stopped_score(score)
    return score


def estimate_score(body: ScoreBody | ScoreLine, metrics: int, options: Options) -> int:
    """About how many tokens a score takes."""
    triples = [str(triple) for triple in body.triples]
    texts = (body.response, body.knowledge, body.history, triples)
    return estimate_tokens(texts, metrics, options.q2.decoding)


def note_score(call: Call, score: Score) -> None:
    """Count a score, and let the log say how it ended."""
    call.service.monitoring.add_score(score)
    call.log_fields |= {
        "score_status": score.status,
        "verdict": score.verdict.label,
        "engine_ms": round(score.timings.total_ms, 3),
        "queued_ms": round(score.timings.queued_ms, 3),
        "signature": score.signature,
    }


def refuse_stopped_score(score: Score) -> None:
    """Raise Refusal if one of the score's metrics was stopped."""
    messages = {f"{name}: {result.message}" for name, result in score.metrics.items() if result.value is None}
    refuse_stopped(
        score.status,
        (result.status for result in score.metrics.values()),
        " ".join(sorted(messages)) or score.message,
        score,
    )


async def rank(call: Call) -> Response:
    """Order candidate responses by a metric, best first."""
    body = await call.read(RANK)
    service = call.service
    check_size("candidates", len(body.candidates), service.settings.max_candidates, "candidates")
    check_turn(service.settings, body.candidates, body.knowledge, body.history, body.triples)
    options = call.bound_options(body.options)
    cost = estimate_tokens((body.knowledge, body.history), len(body.candidates), options.q2.decoding)
    cost += estimate_tokens(body.candidates, 1)
    ranked = await call.run(
        lambda: service.engine.arank(
            body.candidates,
            body.knowledge,
            history=body.history,
            triples=body.triples,
            metric=body.metric,
            options=options,
        ),
        cost,
    )
    ranking = Ranking(ranked)
    for candidate in ranked:
        service.monitoring.add_result(candidate.result)
    messages = {candidate.result.message for candidate in ranked if candidate.result.value is None}
    # One that cannot be read comes last, without a value; what was stopped might have been the best.
    refuse_stopped("", (candidate.result.status for candidate in ranked), " ".join(sorted(messages)), ranking)
    return make_json(ranking)


async def correct(call: Call) -> Response:
    """Put what the knowledge says in the place of what it does not support.

    Look at the status: only `corrected` changes the response, `unknown` says that there was no verdict.
    """
    body = await call.read(CORRECT)
    service = call.service
    check_turn(service.settings, (body.response,), body.knowledge, body.history)
    options = call.bound_options(body.options)
    metrics = service.resolve_metrics(body.metrics)
    texts = (body.response, body.knowledge, body.history)
    # Drafts are read by the quicker half of the metrics, about.
    cost = estimate_tokens(texts, len(metrics), options.q2.decoding)
    cost += estimate_tokens(texts, max(1, len(metrics) // 2) * body.max_drafts)
    correction: Correction = await call.run(
        lambda: Corrector(service.engine).acorrect(
            body.response,
            body.knowledge,
            history=body.history,
            metrics=metrics,
            scoring=options,
            options=CorrectOptions(max_drafts=body.max_drafts, remove_sentences=body.remove_sentences),
        ),
        cost,
    )
    note_score(call, correction.before)
    call.log_fields["correct_status"] = correction.status
    statuses = [result.status for result in correction.before.metrics.values()]
    refuse_stopped(correction.status, statuses, correction.message, correction)
    return make_json(correction)


async def refine(call: Call) -> Response:
    """Put entities of the triples in the place of names that they do not support.

    Needs a bundle with the roles `critic` and `retriever`: `groundwire serve --extra nph`.
    """
    body = await call.read(REFINE)
    service = call.service
    check_turn(service.settings, (body.response,), (), body.history, body.triples)
    options = call.bound_options(body.options)
    cost = estimate_tokens((body.response, body.history, [str(triple) for triple in body.triples]), 3)
    refinement: Refinement = await call.run(
        lambda: Refiner(service.engine).arefine(
            body.response,
            body.triples,
            history=body.history,
            scoring=options,
            options=RefineOptions(top=body.top, type_aware=body.type_aware, min_probability=body.min_probability),
        ),
        cost,
    )
    service.monitoring.add_timings(refinement.timings)
    call.log_fields["refine_status"] = refinement.status
    refuse_stopped(refinement.status, (), refinement.message, refinement)
    return make_json(refinement)


async def generate(call: Call) -> Response:
    """Generate responses that rest on the knowledge, and check them.

    Needs a generator: `groundwire serve --extra DIRECTORY`, made with `groundwire export generator`.
    """
    body = await call.read(GENERATE)
    service = call.service
    check_turn(service.settings, (), body.knowledge, body.history)
    options = call.bound_options(body.options)
    sequences = min(max(body.generation.n_candidates or body.generation.n, 1), MAX_RESPONSES)
    cost = estimate_tokens((body.knowledge, body.history), sequences)
    cost += sequences * min(max(body.generation.max_new_tokens, 1), MAX_NEW_TOKENS)
    generation: Generation = await call.run(
        lambda: Generator(service.engine).agenerate(
            body.knowledge, body.history, body.generation, metrics=body.metrics, scoring=options
        ),
        cost,
    )
    service.monitoring.add_timings(generation.timings)
    call.log_fields["generation_status"] = generation.status
    checks = [response.check for response in generation.responses if response.check is not None]
    statuses = [result.status for check in checks for result in check.metrics.values()]
    refuse_stopped(generation.status, statuses, generation.message, generation)
    return make_json(generation)
