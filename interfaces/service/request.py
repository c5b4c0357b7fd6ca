"""One request while it is served: its body within the server's limits, its deadline, and whether its client waits."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request

from groundwire.engine import InvalidRequest, Options, Plan, Triple
from groundwire.engine.extend import list_turns
from groundwire.files.json_text import MalformedText, decode_json
from groundwire.runtime.arguments import name_values, suggest
from groundwire.runtime.texts.characters import is_digits

from .context import RequestContext
from .problems import Refusal, find_path
from .records import History, Knowledge, Metrics, Triples
from .settings import GATEWAY, Settings
from .state import Service

T = TypeVar("T")
MAX_MEMBERS = 50_000
"""Members of lists and objects of a body: more than what the limits on passages, turns and triples let through."""
GRACE_SECONDS = 0.4
"""Time after a deadline in which the engine says what there is of a result."""
LARGE_BODY_BYTES = 1 << 15
"""A longer body is decoded beside the event loop: some milliseconds, which other requests need not wait."""
LOOK_SECONDS = 0.5
"""Between two looks at the worker processes while a request waits."""
CLIENT_LEFT = "The client has closed the connection."
DEADLINE_HEADER = "groundwire-deadline-ms"
GRPC_HEADER = "grpc-timeout"
_GRPC = re.compile(r"(\d{1,8})([HMSmun])")
_UNITS_MS = {"H": 3_600_000.0, "M": 60_000.0, "S": 1000.0, "m": 1.0, "u": 1e-3, "n": 1e-6}
_PATH = re.compile(r" - at `(?P<path>[^`]*)`$")
_STRING = re.compile(rb'"([^"\\]*+(?:\\.[^"\\]*+)*+)"(\s*+:)?', re.S)
"""A string of a JSON text, and the colon where it is a key."""
_TEXT = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.S)
"""A string of a text that may be JSON: without its end it goes to the end, so that no byte is looked at twice."""
_FIELD_NAME = re.compile(r"(?:required|unknown) field `(?P<name>[^`]*)`")


class ServiceRequest:
    """A request, with what its handler needs."""

    def __init__(self, service: Service, http: Request, context: RequestContext, deadline: Deadline) -> None:
        self.service = service
        self.http = http
        """The request, or the WebSocket, as Starlette has it."""
        self.context = context
        self.deadline = deadline

    async def read(self, decoder: msgspec.json.Decoder[T]) -> T:
        """The record in the body; Refusal says what is wrong with it."""
        body = await self.read_json()
        if len(body) <= LARGE_BODY_BYTES:
            return decode(body, decoder)
        return await asyncio.get_running_loop().run_in_executor(self.service.threads, decode, body, decoder)

    async def read_json(self) -> bytes:
        """The body of a request that says it is JSON."""
        check_media_type(self.http.headers, "application/json")
        body = await self.read_bytes()
        if self.service.settings.log_texts:
            self.context.log_fields["body"] = body.decode("utf-8", "replace")
        return body

    async def read_bytes(self) -> bytes:
        """The body, within the limit of bytes and the deadline."""
        limit = self.service.settings.max_body_bytes
        declared = self.http.headers.get("content-length", "")
        if is_digits(declared) and int(declared) > limit:
            raise _make_too_large(limit)
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.deadline.left_ms() / 1000):
                async for part in self.http.stream():
                    size += len(part)
                    if size > limit:
                        raise _make_too_large(limit)
                    parts.append(part)
        except TimeoutError as error:
            raise Refusal("body_timeout", f"The body was not complete within {self.deadline.ms:g} ms.") from error
        except ClientDisconnect as error:
            raise Refusal("client_closed", CLIENT_LEFT) from error
        return b"".join(parts)

    def plan(self, metrics: Metrics | None, options: Options) -> Plan:
        """The one plan of the request, without its deadline, so that equal requests share it.

        The options are bounded by the server's, and their deadline takes the default's place. Raises InvalidRequest
        for metrics or options that the engine does not have, Refusal ``invalid`` for a priority that is too high.
        """
        self.deadline = self.deadline.choose(options.deadline_ms)
        bounded = replace(bound_options(options, self.service.settings, self.context.tenant), deadline_ms=None)
        return self.service.engine.plan(self.service.choose_metrics(metrics), bounded)

    def bound_options(self, options: Options) -> Options:
        """The options within the server's limits, with what is left of the deadline."""
        self.deadline = self.deadline.choose(options.deadline_ms)
        return replace(
            bound_options(options, self.service.settings, self.context.tenant), deadline_ms=self.deadline.left_ms()
        )

    async def wait_in_time(self, work: Awaitable[T]) -> T:
        """``wait_for``, and Refusal ``deadline`` if there is no result ``GRACE_SECONDS`` after the deadline."""
        try:
            async with asyncio.timeout(self.deadline.left_ms() / 1000 + GRACE_SECONDS):
                return await self.wait_for(work)
        except TimeoutError as error:
            raise Refusal("deadline", f"The request was not finished within {self.deadline.ms:g} ms.") from error

    async def wait_for(self, work: Awaitable[T]) -> T:
        """The result of ``work``, which is cancelled if the client leaves; then Refusal ``client_closed``.

        Refusal ``not_ready`` if all worker processes end meanwhile. The body must have been read.
        """
        return await run_both(refuse_when_gone(self.http), _await(work), self.service.readiness.check_computes)


async def _await(work: Awaitable[T]) -> T:
    return await work


async def run_both(
    reading: Coroutine[Any, Any, None], work: Coroutine[Any, Any, T], check: Callable[[], None] = lambda: None
) -> T:
    """The result of ``work``, when it has one; before, the error that ends ``reading``.

    The error that ``check`` raises ends both; it is called every ``LOOK_SECONDS``. Whatever is not finished then is
    cancelled, and has ended when this returns.
    """
    working, listening = asyncio.ensure_future(work), asyncio.ensure_future(reading)
    try:
        both = working, listening
        while not (await asyncio.wait(both, timeout=LOOK_SECONDS, return_when=asyncio.FIRST_COMPLETED))[0]:
            check()
        if not working.done():
            listening.result()
        return await working
    finally:
        for task in (working, listening):
            task.cancel()
        await asyncio.gather(working, listening, return_exceptions=True)


async def refuse_when_gone(request: Request) -> None:
    """Raise Refusal ``client_closed`` when the client has left. The body must have been read."""
    await wait_until_gone(request)
    raise Refusal("client_closed", CLIENT_LEFT)


async def wait_until_gone(request: Request) -> None:
    """Return when the client has left. The body must have been read."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def check_media_type(headers: Mapping[str, str], allowed: str) -> None:
    """Raise Refusal ``unsupported_media_type`` for a body that says that it is of another type, or is compressed."""
    kind = (headers.get("content-type") or allowed).partition(";")[0].strip().lower()
    if kind != allowed and not (allowed == "application/json" and kind.endswith("+json")):
        raise Refusal(
            "unsupported_media_type", f"The body is {kind!r:.100}; send {allowed}, and say so in Content-Type."
        )
    encoding = headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("", "identity"):
        raise Refusal("unsupported_media_type", f"The body's encoding is {encoding!r:.100}; send it as it is.")


def _make_too_large(limit: int) -> Refusal:
    return Refusal(
        "too_large",
        f"The body has more than {limit} bytes; send less, or start the server with a larger max_body_bytes.",
    )


def read_headers(headers: Mapping[str, str]) -> float | None:
    """Milliseconds of ``Groundwire-Deadline-Ms`` or ``grpc-timeout``, the shorter; None without either.

    Raises Refusal ``invalid`` for a value that is not a duration.

    >>> read_headers({"grpc-timeout": "2S", "groundwire-deadline-ms": "500"})
    500.0
    """
    times = []
    if (value := headers.get(DEADLINE_HEADER)) is not None:
        times.append(_parse_ms(value))
    if (value := headers.get(GRPC_HEADER)) is not None:
        match = _GRPC.fullmatch(value.strip())
        if match is None:
            raise Refusal(
                "invalid",
                f"{GRPC_HEADER} is {value!r:.40}; allowed are up to eight digits and a unit of H, M, S, m, u, n, as in "
                "500m for 500 milliseconds.",
            )
        times.append(int(match[1]) * _UNITS_MS[match[2]])
    return min(times, default=None)


def _parse_ms(value: str) -> float:
    try:
        ms = math.nan if "_" in value else float(value)
    except ValueError:
        ms = math.nan
    if not (ms > 0 and math.isfinite(ms)):
        raise Refusal("invalid", f"{DEADLINE_HEADER} is {value!r:.40}; allowed are milliseconds above 0, as in 500.")
    return ms


class Deadline(NamedTuple):
    """When a request must be finished, counted from its arrival."""

    arrived: float
    ms: float
    now: Callable[[], float]
    longest_ms: float
    """What may be chosen: the headers' deadline, else the server's bound."""

    def choose(self, ms: float | None) -> Deadline:
        """This, or ``ms`` after the arrival as far as that may be chosen."""
        if ms is None:
            return self
        chosen = min(ms, self.longest_ms)
        return self._replace(ms=chosen, longest_ms=chosen)

    def left_ms(self) -> float:
        """Milliseconds that are left; Refusal ``deadline`` if there are none."""
        left = self.ms - (self.now() - self.arrived) * 1000
        if left <= 0:
            raise Refusal("deadline", f"The request was not finished within {self.ms:g} ms.")
        return left


def make_deadline(
    headers: Mapping[str, str], default_ms: float, max_ms: float, arrived: float, now: Callable[[], float]
) -> Deadline:
    """The deadline of a request: its headers', else the default; never later than ``max_ms``."""
    ms = read_headers(headers)
    longest = max_ms if ms is None else min(ms, max_ms)
    return Deadline(arrived, min(default_ms, max_ms) if ms is None else longest, now, longest)


def check_size(name: str, size: int, limit: int, unit: str = "characters", path: str = "") -> None:
    """Raise Refusal ``too_large`` if a field has more than the limit."""
    if size > limit:
        raise Refusal(
            "too_large",
            f"{name} has {size} {unit}; this server allows {limit}. Send less, or start it with a larger limit.",
            path or f"$.{name}",
        )


def check_texts(
    settings: Settings,
    responses: Sequence[str],
    knowledge: Knowledge | None,
    history: History | Sequence[str],
    triples: Triples = (),
) -> None:
    """Raise Refusal ``too_large`` if texts, or their number, exceed the limits."""
    for response in responses:
        check_size("response", len(response), settings.max_response_chars)
    passages = [
        part if isinstance(part, str) else str(part)
        for part in (knowledge if isinstance(knowledge, tuple) else () if knowledge is None else (knowledge,))
    ]
    check_size("knowledge", len(passages), settings.max_passages, "passages")
    check_size("knowledge", sum(map(len, passages)), settings.max_knowledge_chars)
    turns = list_turns(history)
    check_size("history", len(turns), settings.max_turns, "turns")
    check_size("history", sum(map(len, turns)), settings.max_history_chars)
    check_size("triples", len(triples), settings.max_triples, "triples")
    check_size("triples", sum(map(_count_chars, triples)), settings.max_knowledge_chars)


def _count_chars(triple: Triple | tuple[str, str, str]) -> int:
    parts = triple if isinstance(triple, tuple) else (triple.subject, triple.predicate, triple.object)
    return sum(map(len, parts))


def bound_options(options: Options, settings: Settings, tenant: str = "") -> Options:
    """The options of a request of a tenant within the server's limits on texts.

    Raises Refusal ``invalid`` for a priority that is too high.
    """
    if options.priority > settings.max_priority:
        raise Refusal(
            "invalid",
            f"options.priority is {options.priority}; this server allows {settings.max_priority} and below.",
            "$.options.priority",
        )
    return replace(
        options,
        tenant=options.tenant if tenant == GATEWAY else tenant,
        max_response_chars=min(options.max_response_chars, settings.max_response_chars),
        max_knowledge_chars=min(options.max_knowledge_chars, settings.max_knowledge_chars),
        max_history_chars=min(options.max_history_chars, settings.max_history_chars),
    )


@contextmanager
def translate_paths(paths: Mapping[str, str]) -> Iterator[None]:
    """Let errors in this block name the fields of another protocol: ``paths`` are its paths by ours."""
    try:
        yield
    except InvalidRequest as error:
        raise Refusal("invalid", str(error), _translate(find_path(str(error)), paths)) from error
    except Refusal as refusal:
        refusal.path = _translate(refusal.path, paths)
        raise


def _translate(path: str, paths: Mapping[str, str]) -> str:
    for ours, theirs in paths.items():
        if path.startswith(ours):
            return theirs + path.removeprefix(ours)
    return path


def decode(body: bytes | str, decoder: msgspec.json.Decoder[T]) -> T:
    """The record in a body.

    Refusal ``malformed`` if it is not JSON or repeats a key, ``invalid`` if a field does not fit, ``too_large`` if it
    has too many members.
    """
    if has_too_many_members(body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body):
        raise Refusal("too_large", f"The body has more than {MAX_MEMBERS} members of lists and objects; send fewer.")
    try:
        record = decoder.decode(body)
        if may_repeat_keys(body):
            decode_json(body)
        return record
    except MalformedText as error:
        raise Refusal("malformed", f"The body is not usable: {error}.") from error
    except RecursionError as error:
        raise Refusal("malformed", "The body is nested too deeply; pass flat records.") from error
    except msgspec.ValidationError as error:
        reason, path = split_path(str(error))
        allowed = _name_fields(reason, path, decoder.type) or name_values(decoder.type, str(error))
        raise Refusal("invalid", f"{reason}{allowed}.", path) from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Refusal("malformed", f"The body is not JSON: {error}.") from error


def has_too_many_members(body: bytes) -> bool:
    """Whether the lists and objects of a JSON text have more than ``MAX_MEMBERS`` in all.

    They are counted by their commas, before any becomes an object of Python: a hundred times their bytes, and time in
    which the event loop does nothing else.
    """
    if body.count(b",") < MAX_MEMBERS:
        return False
    commas = end = 0
    for match in _TEXT.finditer(body):
        commas += body.count(b",", end, match.start())
        end = match.end()
        if commas >= MAX_MEMBERS:
            return True
    return commas + body.count(b",", end) >= MAX_MEMBERS


def may_repeat_keys(body: bytes | str) -> bool:
    """Whether a key may be twice in an object of a JSON text: if not, it need not be decoded a second time."""
    text = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    keys = [key for key, colon in _STRING.findall(text) if colon]
    return len(set(keys)) < len(keys) or any(b"\\" in key for key in keys)


def split_path(message: str) -> tuple[str, str]:
    """A message of msgspec apart from the path that it ends with, to which a missing or unknown field is added.

    >>> split_path("Expected `str`, got `int` - at `$.knowledge[0]`")
    ('Expected `str`, got `int`', '$.knowledge[0]')
    >>> split_path("Object missing required field `response`")
    ('Object missing required field `response`', '$.response')
    """
    match = _PATH.search(message)
    reason, path = (message[: match.start()], match["path"]) if match else (message, "$")
    name = _FIELD_NAME.search(reason)
    return reason, f"{path}.{name['name']}" if name else path


def _name_fields(reason: str, path: str, record: Any) -> str:
    """For an unknown field of the body itself: the nearest name, and the valid names."""
    name = _FIELD_NAME.search(reason)
    is_struct = isinstance(record, type) and issubclass(record, msgspec.Struct)
    if name is None or "unknown" not in reason or path != f"$.{name['name']}" or not is_struct:
        return ""
    names = [field.encode_name for field in msgspec.structs.fields(record)]
    return f"{suggest(name['name'], names)}; allowed are {', '.join(names)}"
