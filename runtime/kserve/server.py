"""One model server: its metadata, inference, and one error for each way in which it fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from urllib.parse import quote

import msgspec

from ..arguments import check_number
from ..errors import InvalidRequest, ServerError, ServerUnavailable
from .endpoint import Endpoint
from .messages import (
    HEADER_LENGTH,
    Array,
    ErrorResponse,
    ModelMetadataResponse,
    ServerMetadataResponse,
    TensorDescription,
    decode_response,
    encode_request,
)
from .specs import GraphSpec, TensorSpec

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
BUSY = frozenset({408, 425, 429, 502, 503, 504})
"""Statuses that another attempt may not have."""
MAX_REASON = 300
"""Characters of a server's own explanation that an error repeats, at most."""


class Server:
    """A server that was reached, with its connections; safe to use from many threads."""

    def __init__(self, endpoint: Endpoint, client: httpx.Client, device: Literal["cpu", "cuda", "tensorrt"]) -> None:
        self.endpoint = endpoint
        self.device = device
        """The kind of device whose graphs of the bundle the server runs."""
        self._client = client
        self._metadata = ServerMetadataResponse("")
        self._binary = False

    @classmethod
    def open(cls, endpoint: Endpoint, device: Literal["cpu", "cuda", "tensorrt"] = "cpu") -> Server:
        """Reach the server and read what it says of itself.

        Raises InvalidRequest for an unusable URL or timeout, or without the extra ``kserve``; ServerUnavailable when it
        cannot be reached, ServerError when it does not speak the protocol.
        """
        check_number("connect_timeout_ms", endpoint.connect_timeout_ms, 1)
        check_number("timeout_ms", endpoint.timeout_ms, 1)
        try:
            import httpx
        except ImportError as error:
            raise InvalidRequest("backend='kserve' needs httpx; run: pip install 'groundwire[kserve]'") from error
        try:
            url = httpx.URL(endpoint.url)
            if url.scheme not in ("http", "https") or not url.host:
                raise ValueError("it has no http:// or https:// and host")
            client = httpx.Client(
                base_url=url,
                headers=dict(endpoint.headers),
                timeout=httpx.Timeout(endpoint.timeout_ms / 1000, connect=endpoint.connect_timeout_ms / 1000),
            )
        except (httpx.InvalidURL, ValueError, TypeError) as error:
            raise InvalidRequest(
                f"url={endpoint.url!r} is no address of a model server: {error}; write http://HOST:PORT."
            ) from error
        server = cls(endpoint, client, device)
        try:
            server._metadata = server._get("/v2", ServerMetadataResponse)
        except BaseException:
            server.close()
            raise
        server._binary = server._metadata.reads_bytes if endpoint.binary is None else endpoint.binary
        return server

    @property
    def identity(self) -> str:
        """Its name and version, ``triton-2.60.0`` say."""
        return "-".join(filter(None, (self._metadata.name, self._metadata.version)))

    def check_model(self, model: str, spec: GraphSpec) -> None:
        """Raise ServerError when the server lacks the model, or it has other inputs and outputs than the graph;
        ServerUnavailable when it is not ready."""
        path = f"/v2/models/{quote(model, safe='')}"
        try:
            metadata = self._get(path, ModelMetadataResponse)
        except ServerUnavailable:
            raise
        except ServerError as error:
            raise ServerError(
                f"{error} Put the graphs of this bundle on the server (groundwire export triton BUNDLE --out REPO), or "
                "name its models in Endpoint(url, models=…)."
            ) from error
        for described, expected, what in (
            (metadata.inputs, spec.inputs, "input"),
            (metadata.outputs, spec.outputs, "output"),
        ):
            if described:
                _compare_tensors(model, what, described, expected)
        response = self._send("GET", f"{path}/ready")
        if response.status_code != 200:
            raise ServerUnavailable(f"{self._describe(response, f'{path}/ready')} The model is not ready.")

    def infer(self, model: str, spec: GraphSpec, feeds: Mapping[str, Array]) -> list[Array]:
        """All outputs of a model, in the graph's order.

        Raises ServerError for an answer that does not fit the request, ServerUnavailable for none in time.
        """
        body, headers = encode_request(spec, feeds, model, binary=self._binary)
        path = f"/v2/models/{quote(model, safe='')}/infer"
        response = self._send("POST", path, content=body, headers=headers)
        self._check_status(response, path)
        return decode_response(
            spec, response.content, response.headers.get(HEADER_LENGTH), spec.name_sizes(feeds), model
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _get(self, path: str, kind: type[T]) -> T:
        response = self._send("GET", path)
        self._check_status(response, path)
        try:
            return msgspec.json.decode(response.content, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ServerError(
                f"{self.endpoint.url}{path} is no answer of the Open Inference Protocol, version 2: {error}."
            ) from error

    def _send(self, method: str, path: str, **arguments: Any) -> httpx.Response:
        import httpx

        url = f"{self.endpoint.url}{path}"
        try:
            return self._client.request(method, path, **arguments)
        except httpx.ConnectTimeout as error:
            raise ServerUnavailable(
                f"{url} was not reached within {self.endpoint.connect_timeout_ms:g} ms. Check the address."
            ) from error
        except httpx.TimeoutException as error:
            raise ServerUnavailable(
                f"{url} did not answer within {self.endpoint.timeout_ms:g} ms. Raise Endpoint.timeout_ms, or look at "
                "the server's queue."
            ) from error
        except httpx.ConnectError as error:
            raise ServerUnavailable(
                f"{url} cannot be reached: {error}. Start the server, or check the address."
            ) from error
        except (httpx.HTTPError, httpx.StreamError, RuntimeError) as error:  # RuntimeError: the client was closed
            raise ServerUnavailable(f"The connection to {url} broke: {error or type(error).__name__}.") from error

    def _check_status(self, response: httpx.Response, path: str) -> None:
        if response.status_code != 200:
            busy = response.status_code in BUSY
            raise (ServerUnavailable if busy else ServerError)(self._describe(response, path))

    def _describe(self, response: httpx.Response, path: str) -> str:
        try:
            reason = str(msgspec.json.decode(response.content, type=ErrorResponse).error)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            reason = response.text
        text = f"{self.endpoint.url}{path} answers with status {response.status_code}"
        reason = " ".join(reason.split())[:MAX_REASON]
        return f"{text}: {reason.rstrip('.')}." if reason else f"{text}."


def _compare_tensors(
    model: str, what: str, described: tuple[TensorDescription, ...], expected: tuple[TensorSpec, ...]
) -> None:
    by_name = {tensor.name: tensor for tensor in described}
    names = {spec.name for spec in expected}
    absent = names - by_name.keys() if what == "output" else names ^ by_name.keys()
    if absent:
        raise ServerError(
            f"The server's model {model} has the {what}s {sorted(by_name)}, but its graph has {sorted(names)}. Deploy "
            "the graphs of this bundle: groundwire export triton."
        )
    for spec in expected:
        tensor = by_name[spec.name]
        if tensor.datatype != spec.datatype.name:
            raise ServerError(
                f"The {what} {spec.name} of the server's model {model} is {tensor.datatype}, but that of its graph is "
                f"{spec.datatype.name}. Deploy the graphs of this bundle: groundwire export triton."
            )
        fixed = tuple(size if isinstance(size, int) else -1 for size in spec.shape)
        if tensor.shape and (
            len(tensor.shape) != len(fixed)
            or any(-1 not in pair and pair[0] != pair[1] for pair in zip(tensor.shape, fixed, strict=True))
        ):
            raise ServerError(
                f"The {what} {spec.name} of the server's model {model} has the shape {list(tensor.shape)}, but that of "
                f"its graph is {list(fixed)}. Deploy the graphs of this bundle: groundwire export triton."
            )
