"""The address of a model server, and the check of the arguments that name one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, TypeAlias, get_args

import msgspec

from ..errors import InvalidRequest

Backend: TypeAlias = Literal["local", "kserve"]


class Endpoint(msgspec.Struct, frozen=True):
    """Where a model server is, and how long to wait for it."""

    url: str
    """``http://HOST:PORT``, or https; what comes before ``/v2`` on the server, a path included."""
    headers: Mapping[str, str] = MappingProxyType({})
    """Sent with each request: ``Authorization``, or the ``Host`` of a KServe ingress."""
    connect_timeout_ms: float = 5_000
    """For a connection to the server."""
    timeout_ms: float = 60_000
    """For an answer: of no byte for so long, the call fails."""
    models: Mapping[str, str] = MappingProxyType({})
    """The names of models that are deployed under another name than ``groundwire export triton`` gave them: by the file
    of the graph, ``nli.onnx`` say."""
    binary: bool | None = None
    """Whether tensors are sent as bytes; None: if the server is known to read them so. JSON takes several times as
    long, and has no numbers for infinity, which the question generator of the bundle ``compact`` gives."""


def check_backend(backend: str, url: str | Endpoint | None, **of_this_machine: object) -> Endpoint | None:
    """The server that the arguments of ``Engine.load`` name, None for this machine; InvalidRequest if they do not fit.

    ``of_this_machine`` are arguments that a server has no use for.
    """
    if backend not in get_args(Backend):
        raise InvalidRequest(f"backend={backend!r} is unknown; use {' or '.join(get_args(Backend))}.")
    if backend == "local":
        if url is not None:
            raise InvalidRequest("url is given, but backend is 'local'; pass backend='kserve' too.")
        return None
    if not isinstance(url, str | Endpoint):
        raise InvalidRequest(f"backend='kserve' needs url=: 'http://HOST:PORT', or an Endpoint, not {url!r}.")
    for name, value in of_this_machine.items():
        if value is not None:
            raise InvalidRequest(f"{name} is of this machine; leave it out with backend='kserve'.")
    return url if isinstance(url, Endpoint) else Endpoint(url)
