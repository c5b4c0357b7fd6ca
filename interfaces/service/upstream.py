"""The server that answers: a client of OpenAI's and Anthropic's protocols, within limits of bytes and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing, contextmanager
from typing import Any

import httpx
import msgspec

from groundwire.engine import InvalidRequest

from .problems import Refusal
from .request import MAX_MEMBERS, has_too_many_members
from .settings import ProxySettings

CONNECT_SECONDS = 10.0
"""Time for a connection to the upstream."""
CREDENTIALS = ("authorization", "api-key", "x-api-key")
"""Headers of a request that are passed on where the proxy has neither tokens nor a key of its own."""
PASSED = (
    "openai-organization",
    "openai-project",
    "anthropic-version",
    "anthropic-beta",
    "traceparent",
    "tracestate",
)
"""Headers of a request that are always passed on."""
RETURNED = ("content-type", "retry-after", "retry-after-ms", "x-should-retry")
"""Headers of an answer that are passed back, with the headers of rate limits."""
RATE_LIMITS = "x-ratelimit-"
EVENTS = "text/event-stream"
END = b"[DONE]"
"""The data of the last event of a stream."""
PARTS_AT_ONCE = 64
"""Parts, and lines, of an answer that are read before others have their turn: those that have come need no wait."""


class Upstream:
    """Sends requests, each once: the client decides whether to try again."""

    def __init__(self, settings: ProxySettings, transport: httpx.AsyncBaseTransport | None = None) -> None:
        """``transport`` replaces the network; raises InvalidRequest for an address that cannot be used."""
        seconds = settings.max_idle_ms / 1000
        try:
            url = httpx.URL(settings.upstream)
            if url.scheme not in ("http", "https") or not url.host:
                raise ValueError("it has no http:// or https:// and host")
            self._client = httpx.AsyncClient(
                base_url=url,
                timeout=httpx.Timeout(seconds, connect=CONNECT_SECONDS),
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=settings.max_streams),
                transport=transport,
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise InvalidRequest(
                f"upstream is {settings.upstream!r}, no address of a server: {error}; write http://HOST:PORT/v1."
            ) from error
        self._name = settings.upstream
        self._key = settings.upstream_key
        self._has_tokens = bool(settings.tokens or settings.token_file or settings.tenant_tokens)
        self._limit = settings.max_body_bytes

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def ask(
        self, method: str, path: str, headers: Mapping[str, str], query: bytes = b"", body: Any = None
    ) -> UpstreamAnswer:
        """The upstream's answer, whatever its status, when its headers have come.

        Raises Refusal ``upstream`` if the upstream cannot be reached, ``deadline`` if it says nothing in time.
        """
        content = None if body is None else msgspec.json.encode(body)
        request = self._client.build_request(
            method, path, params=query or None, content=content, headers=self._choose_headers(headers, path)
        )
        with self.translate_errors():
            return UpstreamAnswer(self, await self._client.send(request, stream=True), self._limit)

    def _choose_headers(self, headers: Mapping[str, str], path: str) -> dict[str, str]:
        """What is passed on; the proxy's own tokens are not. Anthropic's key has a header of its own."""
        names = PASSED if self._key or self._has_tokens else (*PASSED, *CREDENTIALS)
        chosen = {name: headers[name] for name in names if name in headers}
        if self._key and path == "messages":
            chosen["x-api-key"] = self._key
        elif self._key:
            chosen["authorization"] = f"Bearer {self._key}"
        return chosen | {"content-type": "application/json", "accept-encoding": "identity"}

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Raise what goes wrong between the proxy and the upstream as Refusal."""
        try:
            yield
        except httpx.TimeoutException as error:
            raise Refusal("deadline", f"The upstream {self._name} did not answer in time.") from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise Refusal("upstream", f"The upstream {self._name} cannot be used: {error}.") from error


class UpstreamAnswer:
    """An answer whose headers have come. Close it."""

    def __init__(self, upstream: Upstream, response: httpx.Response, limit: int) -> None:
        self._upstream = upstream
        self._response = response
        self._limit = limit

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._response.status_code

    @property
    def is_stream(self) -> bool:
        """Whether it is server-sent events."""
        kind: str = self._response.headers.get("content-type", "")
        return kind.partition(";")[0].strip().lower() == EVENTS

    @property
    def headers(self) -> dict[str, str]:
        """The headers that are passed back."""
        names = (*RETURNED, *(name for name in self._response.headers if name.startswith(RATE_LIMITS)))
        return {name: self._response.headers[name] for name in names if name in self._response.headers}

    async def close(self) -> None:
        """Close the connection unless the answer was read to its end: the upstream stops to write."""
        await self._response.aclose()

    async def read(self) -> bytes:
        """The whole body; Refusal ``upstream`` if it is too long, is compressed, or breaks off."""
        content = bytearray()
        async with aclosing(self._read_parts()) as parts:
            async for part in parts:
                content += part
                self._check_size(len(content))
        return bytes(content)

    async def read_events(self) -> AsyncGenerator[bytes, None]:
        """The data of each event before ``END``.

        Raises Refusal ``upstream`` if an event is too long or compressed, or the stream ends without ``END``.
        """
        data, size = list[bytes](), 0
        async with aclosing(self._read_lines()) as lines:
            async for line in lines:
                if line.startswith(b"data:"):
                    data.append(line.removeprefix(b"data:").removeprefix(b" "))
                    size += len(line) + 1
                    self._check_size(size)
                elif not line and data:
                    event = b"\n".join(data)
                    data, size = [], 0
                    if event.strip() == END:
                        return
                    yield event
        raise Refusal("upstream", "The upstream's stream has ended before it was complete.")

    async def _read_lines(self) -> AsyncGenerator[bytes, None]:
        """The lines of the body, and an empty one at its end."""
        held, count = bytearray(), 0
        async with aclosing(self._read_parts()) as parts:
            async for part in parts:
                first, *others = part.split(b"\n")
                held += first
                for rest in others:
                    yield bytes(held).removesuffix(b"\r")
                    held = bytearray(rest)
                    count += 1
                    if count % PARTS_AT_ONCE == 0:
                        await asyncio.sleep(0)
                self._check_size(len(held))
        yield bytes(held)
        yield b""

    async def _read_parts(self) -> AsyncGenerator[bytes, None]:
        """The body as it comes. It may not be compressed: a few hundred bytes of layers unpack to gigabytes."""
        encoding = self._response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise Refusal(
                "upstream", f"The upstream's answer is compressed ({encoding!r:.100}); identity was asked for."
            )
        if self._response.is_stream_consumed:  # of a transport that passes whole answers, as httpx.MockTransport
            yield self._response.content
            return
        count = 0
        with self._upstream.translate_errors():
            async for part in self._response.aiter_raw():
                yield part
                count += 1
                if count % PARTS_AT_ONCE == 0:
                    await asyncio.sleep(0)

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise Refusal("upstream", f"The upstream's answer has more than {self._limit} bytes, max_body_bytes.")


def decode_answer(content: bytes) -> dict[str, Any]:
    """A completion or a chunk; Refusal ``upstream`` if it is not a JSON object, or too large a one."""
    if has_too_many_members(content):
        raise Refusal("upstream", f"The upstream's answer has more than {MAX_MEMBERS} members of lists and objects.")
    try:
        answer = msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise Refusal("upstream", f"The upstream's answer is not JSON: {error}.") from error
    if not isinstance(answer, dict):
        raise Refusal("upstream", f"The upstream's answer is {type(answer).__name__}, not an object.")
    return answer
