"""LiteLLM's generic guardrail: the gateway shows a request, and then its answer, and does what is answered here.

An answer that was not checked is blocked, unless the guardrail's configuration says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec
from starlette.responses import Response

from groundwire.engine import Options, Score
from groundwire.engine.extend import SentenceReader, list_passages
from groundwire.guard import Redact, TurnPolicy
from groundwire.guard.chat import read_history, read_knowledge
from groundwire.guard.steps import arun
from groundwire.guard.turns import TurnGuard
from groundwire.metrics import sentences
from groundwire.runtime.texts.unread import is_blank

from .chats import RememberedChat
from .problems import make_json
from .records import GuardrailAnswer, GuardrailBody, GuardrailParameters, JsonObject, ResponseBody
from .request import ServiceRequest, check_size, check_texts, translate_paths
from .scoring import score_body

PATH = "/beta/litellm_basic_guardrail_api"
BODY = msgspec.json.Decoder(GuardrailBody)
_PATHS = {
    "$.response": "$.texts",
    "$.knowledge": "$.additional_provider_specific_params.knowledge",
    "$.history": "$.structured_messages",
}
_FULL_STOP = re.compile(r"[.!?…。！？．।](?:\s*(?:\[[^\]]*\]|<[^>]*>|[^\w\s]|_))*\s*$")
"""The end of a sentence, with what may follow it: quotation marks, citations, tags."""
_OPEN_NUMBER = re.compile(r"\d[\d.,]*\.$")
"""A number at the end of a text that may have decimals."""


async def check_guardrail(request: ServiceRequest) -> Response:
    """Check an answer for LiteLLM, by the request that it showed before.

    A request is remembered and passes. An answer is blocked if a sentence of it is inconsistent, or if it could not be
    checked: without knowledge, or without a verdict. With `on_unfinished: wait` a last sentence without its end is not
    looked at, as LiteLLM shows a stream before it is complete.
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
    checks_calls = _get_parameters(body).on_invented == "block"
    chat = msgspec.json.encode({"messages": messages, "tools": body.tools or ()}) if checks_calls else b""
    history = tuple(read_history(messages)) if messages else body.texts or ()
    check_texts(request.service.settings, (), knowledge, history)
    request.service.chats.add(request.context.tenant, body.litellm_call_id, RememberedChat(knowledge, history, chat))


def _read_parameters(body: GuardrailBody) -> tuple[str, ...]:
    """The knowledge of the guardrail's parameters, which the configuration or the request gives."""
    return list_passages(_get_parameters(body).knowledge)


def _get_parameters(body: GuardrailBody) -> GuardrailParameters:
    return body.additional_provider_specific_params or GuardrailParameters()


async def _check_answers(request: ServiceRequest, body: GuardrailBody) -> GuardrailAnswer:
    parameters = _get_parameters(body)
    chat = request.service.chats.get(request.context.tenant, body.litellm_call_id)
    knowledge = _read_parameters(body) or chat.knowledge
    if body.tool_calls and parameters.on_invented == "block":
        reason = await _check_calls(request, body.tool_calls, parameters, chat)
        if reason:
            return GuardrailAnswer("BLOCKED", reason)
    answers = body.texts or ()
    texts = list(answers)
    for index, answer in enumerate(answers):
        if is_blank(answer) or (not knowledge and parameters.on_unknown == "pass"):
            continue
        if not knowledge:
            return GuardrailAnswer("BLOCKED", "Not checked: the request has no knowledge, or is not known here.")
        is_whole = parameters.on_unfinished == "check" or bool(body.tool_calls)  # calls come with whole answers
        end = len(answer) if is_whole else _find_end(answer, (*knowledge, *chat.history))
        text = answer[:end]
        if is_blank(text):
            continue
        response = ResponseBody(response=text, knowledge=knowledge, history=chat.history)
        _, _, score = await score_body(request, response)
        label = score.verdict.label
        if label == "unknown" and parameters.on_unknown == "block":
            return GuardrailAnswer("BLOCKED", f"Not checked: {score.verdict.message}".strip())
        if label == "inconsistent" and parameters.on_inconsistent == "block":
            return GuardrailAnswer("BLOCKED", _explain(score))
        if label == "inconsistent":
            texts[index] = _redact(text, score) + answer[end:]
    if texts != list(answers):
        return GuardrailAnswer("GUARDRAIL_INTERVENED", texts=tuple(texts))
    return GuardrailAnswer("NONE")


def _find_end(text: str, sources: Sequence[str]) -> int:
    """Where the last complete sentence of an answer ends that may still be written.

    Args:
        text: The answer so far.
        sources: What it rests on: a number at its end that goes on there is not complete.
    """
    complete = SentenceReader().feed(text)
    last = sentences(text)[-1:]
    if text.endswith("\n") or (last and _is_complete(last[0].text, sources)):
        return len(text)
    return max((sentence.end for sentence in complete), default=0)


def _is_complete(sentence: str, sources: Sequence[str]) -> bool:
    """Whether a sentence has its full stop, which ends no abbreviation and is not within a number."""
    stop = _FULL_STOP.search(sentence)
    if stop is None:
        return False
    number = _OPEN_NUMBER.search(sentence)
    if number and any(re.search(rf"(?<!\d){re.escape(number[0])}\d", source) for source in sources):
        return False
    return len(sentences(f"{sentence[: stop.start() + 1]} It is so.")) > 1


async def _check_calls(
    request: ServiceRequest, calls: Sequence[JsonObject], parameters: GuardrailParameters, chat: RememberedChat
) -> str:
    """Why the calls of an answer do not pass; empty if they do."""
    check_size("tool_calls", sum(len(str(call)) for call in calls), request.service.settings.max_response_chars)
    if not chat.messages:
        return "" if parameters.on_unknown == "pass" else "Not checked: the request is not known here."
    policy = TurnPolicy(argument="block", unknown="block" if parameters.on_unknown == "block" else "annotate")
    options = request.bound_options(Options())
    guard = TurnGuard(request.service.engine, policy, msgspec.json.decode(chat.messages), parameters.knowledge, options)
    turn = await request.wait_in_time(arun(guard.check("", calls)))
    if not policy.list_blocked(turn):
        return ""
    wrong = [f"{finding.where}: {finding.message}" for finding in turn.problems]
    return " ".join(wrong) or f"Not checked: {turn.message}".strip()


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
