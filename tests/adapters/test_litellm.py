"""The guardrail on completions, and in the proxy's own dispatch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from groundwire.engine import Engine
from tests.support.adapters import CONSISTENT, FAILURE, GREETING, INCONSISTENT, KNOWLEDGE, load

litellm = load("litellm")
load("litellm.integrations.custom_guardrail")
from litellm.exceptions import GuardrailRaisedException  # noqa: E402

from groundwire.adapters.litellm import LiteLLMGuardrail  # noqa: E402

DATA = {
    "metadata": {"knowledge": [KNOWLEDGE]},
    "messages": [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "What is honey like?"}],
}


class Guardrail(LiteLLMGuardrail):
    """One whose knowledge is somewhere else; the hooks are those of its base."""

    def read_knowledge(self, data: Mapping[str, Any]) -> str:
        return str(data["document"])


def complete(*texts: str | None) -> Any:
    choices = [
        {"index": i, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        for i, text in enumerate(texts)
    ]
    return litellm.ModelResponse(choices=choices)


def check(engine: Engine, response: Any, data: dict[str, Any] = DATA) -> Any:
    guardrail = LiteLLMGuardrail(engine, guardrail_name="groundwire", event_hook="post_call", default_on=True)
    return asyncio.run(guardrail.async_post_call_success_hook(data, None, response))


def make_chunks(text: str) -> list[Any]:
    """The chunks of a stream, a word each."""
    (response,) = [litellm.completion("gpt-4o", [{"role": "user", "content": "So?"}], mock_response=text, stream=True)]
    return list(response)


def stream(engine: Engine, chunks: list[Any], data: dict[str, Any] = DATA) -> tuple[list[Any], Exception | None]:
    """The chunks that a client gets, and the error that ends the stream."""
    guardrail = LiteLLMGuardrail(engine, guardrail_name="groundwire", event_hook="post_call", default_on=True)

    async def read() -> tuple[list[Any], Exception | None]:
        async def source() -> AsyncIterator[Any]:
            for chunk in chunks:
                yield chunk

        received = []
        try:
            async for chunk in guardrail.async_post_call_streaming_iterator_hook(None, source(), data):
                received.append(chunk)
        except Exception as error:
            return received, error
        return received, None

    return asyncio.run(read())


@pytest.mark.parametrize("texts", [(CONSISTENT,), (GREETING, CONSISTENT), (None,), ()])
def test_a_completion_that_passes_is_returned(engine: Engine, texts: tuple[str | None, ...]) -> None:
    response = complete(*texts)
    assert check(engine, response) is response


@pytest.mark.parametrize("texts", [(INCONSISTENT,), (CONSISTENT, INCONSISTENT)])
def test_an_inconsistent_choice_is_blocked(engine: Engine, texts: tuple[str, ...]) -> None:
    with pytest.raises(GuardrailRaisedException, match="does not support") as caught:
        check(engine, complete(*texts))
    assert caught.value.blocked_content is True


@pytest.mark.parametrize("data", [{}, {"metadata": None}, {"metadata": {"knowledge": ""}}])
def test_a_request_without_knowledge_is_refused(engine: Engine, data: dict[str, Any]) -> None:
    with pytest.raises(GuardrailRaisedException, match="knowledge is missing") as caught:
        check(engine, complete(CONSISTENT), data)
    assert caught.value.blocked_content is False


def test_a_failed_metric_refuses_the_answer(failing_engine: Engine) -> None:
    with pytest.raises(GuardrailRaisedException, match=FAILURE) as caught:
        check(failing_engine, complete(CONSISTENT))
    assert caught.value.blocked_content is False


def test_answers_of_other_kinds_are_refused_unless_they_have_no_text(engine: Engine) -> None:
    text_completion = litellm.TextCompletionResponse(choices=[{"text": INCONSISTENT, "index": 0}])
    with pytest.raises(GuardrailRaisedException, match="does not support"):
        check(engine, text_completion)
    with pytest.raises(GuardrailRaisedException, match="not dict"):
        check(engine, {"content": CONSISTENT})
    assert check(engine, litellm.EmbeddingResponse()) is not None


def test_a_stream_is_released_when_its_text_has_passed(engine: Engine) -> None:
    chunks = make_chunks(CONSISTENT)
    assert len(chunks) > 2
    assert stream(engine, chunks) == (chunks, None)
    assert stream(engine, []) == ([], None)


def test_nothing_of_a_stream_that_does_not_pass_is_released(engine: Engine, failing_engine: Engine) -> None:
    for received, error in (
        stream(engine, make_chunks(INCONSISTENT)),
        stream(failing_engine, make_chunks(CONSISTENT)),
        stream(engine, make_chunks(CONSISTENT), {}),
        stream(engine, [b"event: not a chunk"]),
    ):
        assert received == []
        assert isinstance(error, GuardrailRaisedException)


def test_the_proxy_finds_the_hooks_of_a_subclass(engine: Engine) -> None:
    """It looks for them in the class itself: a stream would pass unchecked."""
    for name in ("async_post_call_success_hook", "async_post_call_streaming_iterator_hook"):
        assert name in vars(Guardrail)
    guardrail = Guardrail(engine, guardrail_name="groundwire")
    with pytest.raises(GuardrailRaisedException):
        asyncio.run(guardrail.async_post_call_success_hook({"document": KNOWLEDGE}, None, complete(INCONSISTENT)))
