"""``/classify``: Groundwire as the hallucination detector of vLLM semantic-router (contract token_spans.v1).

A list without spans is a clean answer for the router, so it is sent only for answers that were checked.
"""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from groundwire.engine import Score

from .problems import Refusal, make_json
from .records import ClassifyBody, LabelledSpan, LabelledSpans, ResponseBody
from .request import ServiceRequest, translate_paths
from .scoring import score_body

BODY = msgspec.json.Decoder(ClassifyBody)
_PATHS = {"$.response": "$.inputs", "$.knowledge": "$.parameters.context", "$.history": "$.parameters.question"}


async def classify(request: ServiceRequest) -> Response:
    """List the words of an answer that its context does not support, as vLLM semantic-router asks for them.

    Offsets count code points of `inputs`. There is no `truncated_at`: what cannot be read as a whole is an error.
    """
    body = await request.read(BODY)
    question = (body.parameters.question,) if body.parameters.question.strip() else ()
    with translate_paths(_PATHS):
        _, _, score = await score_body(
            request, ResponseBody(response=body.inputs, knowledge=body.parameters.context, history=question)
        )
    return make_json(LabelledSpans(find_spans(body.inputs, score, request.service.settings.classify_label)))


def find_spans(inputs: str, score: Score, label: str) -> tuple[LabelledSpan, ...]:
    """The unsupported words of an answer, each with the doubt about its sentence.

    An inconsistent sentence without marked words is a span as a whole, and so is an inconsistent answer without
    sentences. Raises Refusal for an answer without a verdict: ``unreadable``, or ``failed`` if the server draws none.
    """
    if score.verdict.label == "unknown":
        raise Refusal(
            "unreadable" if score.verdict.fusion else "failed",
            f"There is no verdict. {score.verdict.message}".strip(),
            result=score,
        )
    if score.verdict.label != "inconsistent":
        return ()
    spans = []
    for sentence in score.sentences:
        doubt = _doubt(sentence.verdict.probability, score)
        ranges = [(span.start, span.end) for span in sentence.unsupported if span.start < span.end]
        if not ranges and sentence.verdict.label == "inconsistent":
            ranges = [(sentence.start, sentence.end)]
        spans += [LabelledSpan(label, doubt, inputs[start:end], start, end) for start, end in ranges]
    if not spans:
        spans = [LabelledSpan(label, _doubt(None, score), inputs, 0, len(inputs))]
    return tuple(spans)


def _doubt(probability: float | None, score: Score) -> float:
    probability = score.verdict.probability if probability is None else probability
    return 1.0 if probability is None else 1.0 - probability
