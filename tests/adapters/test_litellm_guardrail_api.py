"""LiteLLM's own client of the generic guardrail, before the service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from groundwire.engine import Engine
from groundwire.service import app
from tests.support.adapters import CONSISTENT, INCONSISTENT, KNOWLEDGE, load

load("litellm.proxy.guardrails.guardrail_hooks.generic_guardrail_api")
from litellm import ModelResponseStream  # noqa: E402
from litellm.exceptions import GuardrailRaisedException  # noqa: E402
from litellm.proxy._types import UserAPIKeyAuth  # noqa: E402
from litellm.proxy.guardrails.guardrail_hooks.generic_guardrail_api.generic_guardrail_api import (  # noqa: E402
    GenericGuardrailAPI,
)
from litellm.proxy.guardrails.guardrail_hooks.unified_guardrail.unified_guardrail import (  # noqa: E402
    UnifiedLLMGuardrails,
)

MESSAGES = [{"role": "system", "content": KNOWLEDGE}, {"role": "user", "content": "What is honey like?"}]


@asynccontextmanager
async def open_guardrail(engine: Engine, parameters: dict[str, Any], **settings: Any) -> AsyncIterator[Any]:
    application = app(engine)
    await application.warm()
    transport = httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://groundwire") as client:
        guardrail = GenericGuardrailAPI(
            api_base="http://groundwire",
            additional_provider_specific_params=parameters,
            async_handler=client,
            guardrail_name="groundwire",
            event_hook=["pre_call", "post_call"],
            **settings,
        )
        guardrail.timeout = 30
        yield guardrail


def guard(
    engine: Engine, *texts: str, messages: Any = MESSAGES, calls: Sequence[Any] = (), **parameters: Any
) -> list[str]:
    """The texts that LiteLLM lets pass, of an answer after its request."""

    async def run() -> list[str]:
        async with open_guardrail(engine, parameters) as guardrail:
            call = SimpleNamespace(litellm_call_id="c-1", litellm_trace_id=None, model_call_details={})
            request = {"texts": [MESSAGES[1]["content"]], "structured_messages": messages}
            await guardrail.apply_guardrail(request, {}, "request", call)
            answered = {"texts": list(texts)} | ({"tool_calls": list(calls)} if calls else {})
            answer = await guardrail.apply_guardrail(answered, {}, "response", call)
            return list(answer["texts"])

    return asyncio.run(run())


def test_an_answer_passes_or_is_blocked_with_the_reason(engine: Engine) -> None:
    assert guard(engine, CONSISTENT) == [CONSISTENT]
    with pytest.raises(GuardrailRaisedException, match="does not support"):
        guard(engine, INCONSISTENT)


def test_an_answer_without_knowledge_is_blocked(engine: Engine) -> None:
    with pytest.raises(GuardrailRaisedException, match="Not checked"):
        guard(engine, CONSISTENT, messages=MESSAGES[1:])
    assert guard(engine, CONSISTENT, messages=MESSAGES[1:], knowledge=KNOWLEDGE) == [CONSISTENT]


def test_inconsistent_sentences_are_redacted(engine: Engine) -> None:
    (text,) = guard(engine, f"{CONSISTENT} {INCONSISTENT}", on_inconsistent="redact")
    assert text.startswith(CONSISTENT)
    assert INCONSISTENT not in text


def test_a_call_with_an_invented_argument_is_blocked(engine: Engine) -> None:
    said = [{"role": "user", "content": "A table for three at Lido, please."}]

    def book(guests: int) -> list[str]:
        function = {"name": "book_table", "arguments": json.dumps({"place": "Lido", "guests": guests})}
        call = {"id": "1", "index": 0, "type": "function", "function": function}
        return guard(engine, messages=said, calls=[call], on_invented="block")

    assert book(3) == []
    with pytest.raises(GuardrailRaisedException, match="guests"):
        book(7)


BUFFERED = {"streaming_buffer_until_moderated": True}
REWRITTEN = {"streaming_end_of_stream_only": True, "streaming_transform_mode": "incremental_diff"}


@pytest.mark.parametrize(
    ("settings", "on_inconsistent", "left"),
    [(BUFFERED, "block", ""), (REWRITTEN, "block", ""), (REWRITTEN, "redact", f"{CONSISTENT} […] ")],
)
def test_of_a_stream_nothing_leaves_unchecked_by_the_guides_settings(
    engine: Engine, settings: dict[str, Any], on_inconsistent: str, left: str
) -> None:
    """LiteLLM gives an answer away as it comes, unless a setting stops it, and does not read a redacted text."""

    async def answer(text: str) -> AsyncIterator[Any]:
        for piece in [*text.split(), None]:
            delta = {"role": "assistant", "content": piece and f"{piece} "}
            choice = {"index": 0, "delta": delta, "finish_reason": None if piece else "stop"}
            yield ModelResponseStream(id="c-1", model="m", choices=[choice])

    async def run(text: str) -> str:
        received = ""
        parameters = {"knowledge": KNOWLEDGE, "on_inconsistent": on_inconsistent}
        async with open_guardrail(engine, parameters, default_on=True, **settings) as guardrail:
            chunks = UnifiedLLMGuardrails().async_post_call_streaming_iterator_hook(
                user_api_key_dict=UserAPIKeyAuth(request_route="/chat/completions"),
                response=answer(text),
                request_data={"messages": MESSAGES, "litellm_call_id": "c-1", "guardrail_to_apply": guardrail},
            )
            try:
                async for chunk in chunks:
                    received += chunk.choices[0].delta.content or ""
            except GuardrailRaisedException:
                assert on_inconsistent == "block"
        return received

    assert asyncio.run(run(CONSISTENT)) == f"{CONSISTENT} "
    assert asyncio.run(run(f"{CONSISTENT} {INCONSISTENT}")) == left
