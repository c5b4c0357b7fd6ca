"""What is wrong with a request, as the service answers it: ``application/problem+json`` (RFC 9457)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import msgspec
from starlette.responses import Response

from groundwire.runtime.errors import EngineClosed, GroundwireError, InvalidRequest, ModelError, Overloaded, TooLong

MEDIA_TYPE = "application/problem+json"

Code: TypeAlias = Literal[
    "malformed",
    "unauthorized",
    "not_found",
    "method_not_allowed",
    "body_timeout",
    "too_large",
    "unsupported_media_type",
    "invalid",
    "unreadable",
    "overloaded",
    "client_closed",
    "failed",
    "upstream",
    "not_ready",
    "closed",
    "deadline",
]
STATUS: Mapping[Code, int] = MappingProxyType(
    {
        "malformed": 400,
        "unauthorized": 401,
        "not_found": 404,
        "method_not_allowed": 405,
        "body_timeout": 408,
        "too_large": 413,
        "unsupported_media_type": 415,
        "invalid": 422,
        "unreadable": 422,
        "overloaded": 429,
        "client_closed": 499,
        "failed": 500,
        "upstream": 502,
        "not_ready": 503,
        "closed": 503,
        "deadline": 504,
    }
)
"""The HTTP status of each code. 499 is never sent: the client has gone."""
TITLES: Mapping[int, str] = MappingProxyType(
    {
        413: "Content Too Large",
        422: "Unprocessable Content",
        499: "Client Closed Request",
    }
)
"""Of statuses that Python does not know, or knows by an older name."""


class Problem(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a result is missing."""

    code: Code
    """``malformed``: not JSON; ``invalid``: JSON whose fields do not fit; ``too_large``: more than the limits allow;
    ``unreadable``: a text exceeds what the models may read; ``overloaded``: try again after ``Retry-After`` seconds;
    ``deadline``: not finished in time; ``failed``: a model failed; ``upstream``: the proxy's upstream did not answer,
    or its answer cannot be read; ``not_ready`` and ``closed``: ask another server."""
    status: int
    """The HTTP status."""
    title: str
    detail: str
    """What was given, what is allowed, and what to do."""
    path: str = ""
    """Where in the body, as in ``$.knowledge[2]``; empty where it is not about a field."""
    request_id: str = ""
    result: Any = None
    """What there is of the result all the same: the score whose metrics were stopped, each with its own status."""


class Refusal(Exception):
    """A request ends without a result; the service answers with the problem."""

    def __init__(
        self,
        code: Code,
        detail: str,
        path: str = "",
        *,
        result: Any = None,
        headers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(detail)
        self.code: Code = code
        self.status = STATUS[code]
        self.detail = detail
        self.path = path
        self.result = result
        self.headers = dict(headers)

    def describe(self, request_id: str = "") -> Problem:
        """The record that is sent."""
        title = TITLES.get(self.status) or HTTPStatus(self.status).phrase
        return Problem(self.code, self.status, title, self.detail, self.path, request_id, self.result)


def describe_error(problem: Problem) -> dict[str, Any]:
    """A problem in the form of OpenAI's and Anthropic's protocols, whose clients read ``error``."""
    error = {"message": problem.detail, "type": problem.code, "param": problem.path or None, "code": problem.code}
    return {"type": "error", "error": error, **msgspec.to_builtins(problem)}


def make_json(content: Any, status: int = 200, max_bytes: int | None = None, **headers: str) -> Response:
    """A response with a record as JSON; Refusal ``too_large`` if it has more than ``max_bytes``."""
    encoded = msgspec.json.encode(content)
    if max_bytes is not None and len(encoded) > max_bytes:
        raise refuse_large_answer(len(encoded), max_bytes)
    return Response(encoded, status, headers, "application/json")


def refuse_large_answer(size: int, limit: int) -> Refusal:
    """The refusal of an answer that is longer than the server sends."""
    return Refusal(
        "too_large",
        f"The answer has {size} bytes; this server sends up to {limit}. Send a shorter response or less knowledge, ask "
        "for fewer metrics, or start the server with a larger max_answer_bytes; a score without "
        '"explanations": "all" is shorter, too.',
    )


HTTP_WORDS = (
    ("Options.deadline_ms", "options.deadline_ms or the header Groundwire-Deadline-Ms"),
    (", or load the engine with a larger max_waiting.", "."),
    ("load the engine with", "start the server with"),
)
"""What messages of the engine advise in Python, and what a client of the service can do in its place."""


def _advise(message: str) -> str:
    for python, http in HTTP_WORDS:
        message = message.replace(python, http)
    return message


STOPPED: tuple[tuple[str, Code], ...] = (("failed", "failed"), ("cancelled", "closed"), ("deadline", "deadline"))
"""Statuses of what was stopped before it had a result, and their codes, the worst first."""


def refuse_stopped(main: str, others: Iterable[str], message: str, result: Any = None) -> None:
    """Raise Refusal if something that was asked for was stopped: nothing that is not finished is answered with 200.

    ``main`` is the status of the result, ``others`` its parts'; ``message`` says what happened. A part that
    could not read its texts (``truncated``) has no number and is left as it is; a result that could not is refused.
    """
    statuses = {main, *others}
    for status, code in STOPPED:
        if status in statuses:
            raise Refusal(code, _advise(message) or f"The status is {status}.", result=result)
    if main in ("truncated", "invalid"):
        raise Refusal("unreadable" if main == "truncated" else "invalid", message, result=result)


def refuse_error(error: GroundwireError) -> Refusal:
    """The refusal for an error of the engine."""
    if isinstance(error, InvalidRequest):
        return Refusal("invalid", str(error), find_path(str(error)))
    if isinstance(error, TooLong):
        return Refusal("unreadable", str(error))
    if isinstance(error, Overloaded):
        return Refusal("overloaded", _advise(str(error)), headers={"Retry-After": str(error.retry_after_s)})
    if isinstance(error, EngineClosed):
        return Refusal("closed", str(error))
    kind = "A model failed" if isinstance(error, ModelError) else type(error).__name__
    return Refusal("failed", f"{kind}: {error}")


_FIELD = re.compile(
    r"(?P<field>response|knowledge|history|triples|metrics?|candidates|fields|top|min_probability|type_aware)\b"
    r"(?P<rest>(?:\[\d+\])?(?:\.\w+)?)"
)
_OPTION = re.compile(r"(?P<record>\w*Options|Policy)\.(?P<rest>\w+(?:\.\w+)*)")
_RECORDS = {"Options": "options.", "GenerationOptions": "generation.", "Policy": "policy."}
"""Where the fields of a record are in the body; the fields of the other records of options are at its top."""


def find_path(message: str) -> str:
    """Where in the body the field is that a message of InvalidRequest begins with; empty where it names none.

    >>> find_path("knowledge[2] is int; pass a string.")
    '$.knowledge[2]'
    >>> find_path("Options.q2.questions_at_once is 0; ...")
    '$.options.q2.questions_at_once'
    >>> find_path("RefineOptions.top is 0; ...")
    '$.top'
    >>> find_path("The engine is closed.")
    ''
    """
    if match := _OPTION.match(message):
        return f"$.{_RECORDS.get(match['record'], '')}{match['rest']}"
    if match := _FIELD.match(message):
        return f"$.{match['field']}{match['rest']}"
    return ""
