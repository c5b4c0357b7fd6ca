"""LiteLLM's generic guardrail: the gateway shows a request, and then its answer, and does what is answered here.

An answer that was not checked is blocked, unless the guardrail's configuration says otherwise.
"""

from __future__ import annotations

import msgspec
from starlette.responses import Response

from groundwire.engine import Score
from groundwire.engine.extend import list_passages
from groundwire.guard import Redact
from groundwire.guard.chat import read_history, read_knowledge
from groundwire.runtime.texts.unread import is_blank

from .chats import RememberedChat
from .problems import make_json
from .records import GuardrailAnswer, GuardrailBody, GuardrailParameters, ResponseBody
from .request import ServiceRequest, check_size, check_texts, translate_paths
from .scoring import score_body

PATH = "/beta/litellm_basic_guardrail_api"
BODY = msgspec.json.Decoder(GuardrailBody)
_PATHS = {
    "$.response": "$.texts",
    "$.knowledge": "$.additional_provider_specific_params.knowledge",
    "$.history": "$.structured_messages",
}


async def check_guardrail(request: ServiceRequest) -> Response:
    """Check an answer for LiteLLM, by the request that it showed before.

    A request is remembered and passes. An answer is blocked if a sentence of it is inconsistent, or if it could not be
    checked: without knowledge, or without a verdict.
    """
    body = await request.read(BODY)
    check_size("texts", len(body.texts or ()), request.service.settings.max_candidates, "texts")
    with translate_paths(_PATHS):
        if body.input_type == "request":
            _remember(request, body)
            return make_json(GuardrailAnswer("NONE"))
        return make_json(await _check_answers(request, body))


def _remember(request: ServiceRequest, body: GuardrailBody) -> None:
    if not body.litellm_call_id:
        return
    messages = body.structured_messages or ()
    knowledge = _read_parameters(body) or read_knowledge({"messages": messages})
    history = tuple(read_history(messages)) if messages else body.texts or ()
    check_texts(request.service.settings, (), knowledge, history)
    request.service.chats.add(request.context.tenant, body.litellm_call_id, RememberedChat(knowledge, history))


def _read_parameters(body: GuardrailBody) -> tuple[str, ...]:
    """The knowledge of the guardrail's parameters, which the configuration or the request gives."""
    parameters = body.additional_provider_specific_params
    return list_passages(parameters.knowledge) if parameters else ()


async def _check_answers(request: ServiceRequest, body: GuardrailBody) -> GuardrailAnswer:
    parameters = body.additional_provider_specific_params or GuardrailParameters()
    chat = request.service.chats.get(request.context.tenant, body.litellm_call_id)
    knowledge = _read_parameters(body) or chat.knowledge
    answers = body.texts or ()
    texts = list(answers)
    for index, text in enumerate(answers):
        if is_blank(text) or (not knowledge and parameters.on_unknown == "pass"):
            continue
        if not knowledge:
            return GuardrailAnswer("BLOCKED", "Not checked: the request has no knowledge, or is not known here.")
        response = ResponseBody(response=text, knowledge=knowledge, history=chat.history)
        _, _, score = await score_body(request, response)
        label = score.verdict.label
        if label == "unknown" and parameters.on_unknown == "block":
            return GuardrailAnswer("BLOCKED", f"Not checked: {score.verdict.message}".strip())
        if label == "inconsistent" and parameters.on_inconsistent == "block":
            return GuardrailAnswer("BLOCKED", _explain(score))
        if label == "inconsistent":
            texts[index] = _redact(text, score)
    if texts != list(answers):
        return GuardrailAnswer("GUARDRAIL_INTERVENED", texts=tuple(texts))
    return GuardrailAnswer("NONE")


def _explain(score: Score) -> str:
    wrong = [span.text for span in score.unsupported if span.text]
    wrong = wrong or [part.text for part in score.sentences if part.verdict.label == "inconsistent"]
    words = ", ".join(f"“{text}”" for text in wrong)
    return f"The knowledge does not support {words or 'the answer'}."


def _redact(text: str, score: Score) -> str:
    """An answer with a mark in the place of its inconsistent sentences; of an answer without any, the mark."""
    wrong = [sentence for sentence in score.sentences if sentence.verdict.label == "inconsistent"]
    if not wrong:
        return Redact().mark
    for sentence in reversed(wrong):
        text = text[: sentence.start] + Redact().mark + text[sentence.end :]
    return text
