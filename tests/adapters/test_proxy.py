"""OpenAI's own client, the proxy, and a server of OpenAI's protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.adapters import CONSISTENT, INCONSISTENT, KNOWLEDGE, load, open_engine
from tests.support.streams import METRICS

openai = load("openai")
load("prometheus_client")
from groundwire.service.proxy import make_proxy  # noqa: E402
from groundwire.service.settings import ProxySettings  # noqa: E402
from tests.support.chat_server import ChatServer, listen  # noqa: E402

ASKED = {
    "model": "m",
    "messages": [{"role": "user", "content": "What is honey like?"}],
    "extra_body": {"groundwire": {"knowledge": [KNOWLEDGE]}},
}


@pytest.fixture(scope="module")
def address() -> Iterator[dict[str, Any]]:
    upstream = ChatServer(f"{CONSISTENT} {INCONSISTENT}")
    with listen(upstream.app) as url, open_engine() as engine:
        settings = ProxySettings(upstream=f"{url}/v1", metrics=METRICS, tokens=("secret",))
        proxy = make_proxy(engine, settings)
        with listen(proxy) as url:
            yield {"base_url": f"{url}/v1", "api_key": "secret", "max_retries": 0}


@pytest.fixture
def client(address: dict[str, Any]) -> Iterator[Any]:
    with openai.OpenAI(**address) as client:
        client.with_options(max_retries=10).models.list()  # until the models are warm
        yield client


def test_an_answer(client: Any) -> None:
    answer = client.chat.completions.create(**ASKED)
    (choice,) = answer.choices
    assert (choice.message.content, choice.finish_reason) == (CONSISTENT, "content_filter")
    assert choice.groundwire["label"] == "inconsistent"
    assert [span["text"] for span in choice.groundwire["unsupported"]] == ["blue"]


def test_a_stream(client: Any) -> None:
    chunks = list(client.chat.completions.create(**ASKED, stream=True))
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(choice.delta.content or "" for choice in choices) == CONSISTENT
    assert choices[-1].finish_reason == "content_filter"
    assert choices[-1].groundwire["label"] == "inconsistent"
    assert chunks[-1].usage.total_tokens == 3


def test_the_streams_helper_of_the_client(client: Any) -> None:
    with client.chat.completions.stream(**ASKED) as stream:
        texts = [event.delta for event in stream if event.type == "content.delta"]
    assert "".join(texts) == CONSISTENT


def test_an_asynchronous_stream(client: Any, address: dict[str, Any]) -> None:
    async def run() -> list[Any]:
        async with openai.AsyncOpenAI(**address) as client:
            return [chunk async for chunk in await client.chat.completions.create(**ASKED, stream=True)]

    chunks = asyncio.run(run())
    choices = [choice for chunk in chunks for choice in chunk.choices]
    assert "".join(choice.delta.content or "" for choice in choices) == CONSISTENT


def test_errors_are_the_clients_own(client: Any, address: dict[str, Any]) -> None:
    with pytest.raises(openai.RateLimitError, match=r"Slow down\."):
        client.chat.completions.create(**ASKED | {"model": "busy"})
    with pytest.raises(openai.UnprocessableEntityError) as refused:
        client.chat.completions.create(**ASKED | {"extra_body": {"groundwire": {"knowledge": 5}}})
    assert (refused.value.code, refused.value.param) == ("invalid", "$.groundwire.knowledge")
    with pytest.raises(openai.APIError, match="ended before it was complete"):
        list(client.chat.completions.create(**ASKED | {"model": "broken"}, stream=True))
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="other").models.list()
    with pytest.raises(openai.NotFoundError, match="would let answers of other paths leave unchecked"):
        client.embeddings.create(model="m", input="Honey?")


def test_a_response_and_its_stream(client: Any) -> None:
    asked = {"model": "m", "input": "What is honey like?", "extra_body": ASKED["extra_body"]}
    answer = client.responses.create(**asked)
    assert (answer.output_text, answer.status) == (CONSISTENT, "incomplete")
    assert answer.incomplete_details.reason == "content_filter"
    assert answer.groundwire["label"] == "inconsistent"
    with client.responses.stream(**asked) as stream:
        texts = [event.delta for event in stream if event.type == "response.output_text.delta"]
    assert "".join(texts) == CONSISTENT


def test_a_message_and_its_stream_of_anthropics_client(address: dict[str, Any]) -> None:
    anthropic = load("anthropic")
    asked = ASKED | {"max_tokens": 9}
    with anthropic.Anthropic(**address | {"base_url": address["base_url"].removesuffix("/v1")}) as client:
        message = client.messages.create(**asked)
        assert ([block.text for block in message.content], message.stop_reason) == ([CONSISTENT], "refusal")
        assert message.groundwire["label"] == "inconsistent"
        with client.messages.stream(**asked) as stream:
            assert "".join(stream.text_stream) == CONSISTENT
            assert stream.get_final_message().stop_reason == "refusal"
        with pytest.raises(anthropic.AuthenticationError, match="not known"):
            client.with_options(api_key="other").messages.create(**asked)
