"""The Open Inference Protocol, version 2, as KServe and Triton speak it: health, metadata, inference with JSON tensors.

An engine is the model ``groundwire``; its version is the package's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import msgspec
from starlette.responses import Response

from groundwire import __version__
from groundwire.engine import Options, Plan, Score
from groundwire.engine.extend import count_tokens, make_request
from groundwire.runtime.arguments import name_values

from .probes import healthz, readyz
from .problems import Refusal, make_json
from .records import (
    InferBody,
    Inference,
    Live,
    ModelMetadata,
    Ready,
    ResponseBody,
    ServerMetadata,
    Tensor,
    TensorMetadata,
)
from .request import ServiceRequest, check_size, check_texts
from .scoring import MAX_ENTRIES, note_score, refuse_stopped_score

MODEL = "groundwire"
BODY = msgspec.json.Decoder(InferBody)
OPTIONS = msgspec.json.Decoder(Options)
INPUTS = (
    TensorMetadata("response", "BYTES", (-1,)),
    TensorMetadata("knowledge", "BYTES", (-1, -1)),
    TensorMetadata("history", "BYTES", (-1, -1)),
)
OUTPUTS: dict[str, tuple[str, Callable[[Score], Any]]] = {
    "label": ("BYTES", lambda score: score.verdict.label),
    "status": ("BYTES", lambda score: score.status),
    "score": ("BYTES", lambda score: score.shorten(MAX_ENTRIES).to_json()),
    "value": ("FP64", lambda score: score.value),
    "probability": ("FP64", lambda score: score.verdict.probability),
}
USUAL = ("label", "status", "score")


async def live(request: ServiceRequest) -> Response:
    """Say whether the server lives (Open Inference Protocol)."""
    await healthz(request)
    return make_json(Live(True))


async def ready(request: ServiceRequest) -> Response:
    """Say whether the server is ready (Open Inference Protocol)."""
    await readyz(request)
    return make_json(Ready(True))


async def model_ready(request: ServiceRequest) -> Response:
    """Say whether the model is ready (Open Inference Protocol)."""
    name = _check_model(request)
    await readyz(request)
    return make_json(Ready(True, name))


async def server_metadata(request: ServiceRequest) -> Response:
    """Name the server (Open Inference Protocol)."""
    return make_json(ServerMetadata("groundwire", __version__))


async def model_metadata(request: ServiceRequest) -> Response:
    """List the inputs and outputs of the model (Open Inference Protocol)."""
    outputs = tuple(TensorMetadata(name, datatype, (-1,)) for name, (datatype, _) in OUTPUTS.items())
    return make_json(ModelMetadata(_check_model(request), (__version__,), "groundwire_onnxruntime", INPUTS, outputs))


async def infer(request: ServiceRequest) -> Response:
    """Score the rows of a request (Open Inference Protocol).

    Inputs are `response` [n], `knowledge` [n] or [n, passages] and perhaps `history` [n, turns], all BYTES as JSON
    strings; rows are filled with empty strings. Outputs are `label`, `status` and `score` (the record as JSON), or
    the named ones, such as `value` and `probability`. If a row was stopped, or has no number that was asked
    for, the request is refused.
    """
    name = _check_model(request)
    body = await request.read(BODY)
    service = request.service
    names = tuple(output.name for output in body.outputs) or USUAL
    for index, output in enumerate(names):
        if output not in OUTPUTS:
            allowed = ", ".join(OUTPUTS)
            raise Refusal("invalid", f"There is no output {output!r:.100}; use {allowed}.", f"$.outputs[{index}].name")
    rows = read_rows(body, service.settings.max_candidates)
    plan = _make_plan(request, body)
    for row in rows:
        check_texts(service.settings, (row.response,), row.knowledge, row.history)
    texts = [make_request(row.response, row.knowledge, row.history, plan.options) for row in rows]
    request.context.log_fields["tokens"] = count_tokens(texts, plan)
    scores = await request.wait_in_time(service.engine.core.score_together(texts, plan, request.deadline.left_ms()))
    for score in scores:
        note_score(request, score)
    for score in scores:
        refuse_stopped_score(score)
    outputs = tuple(_make_output(output, scores) for output in names)
    return make_json(Inference(name, __version__, outputs, body.id))


def _check_model(request: ServiceRequest) -> str:
    name = str(request.http.path_params["name"])
    if name != MODEL:
        raise Refusal("not_found", f"There is no model {name!r:.100}; this server has {MODEL!r}.")
    return name


def _make_plan(request: ServiceRequest, body: InferBody) -> Plan:
    """The plan with the metrics and options of the parameters; other parameters are for other servers."""
    metrics = body.parameters.get("metrics")
    if not isinstance(metrics, str | None):
        raise Refusal("invalid", "metrics is no string; separate names by commas.", "$.parameters.metrics")
    names = tuple(part.strip() for part in (metrics or "").split(",") if part.strip())
    profile = body.parameters.get("profile", Options().profile)
    try:
        options = OPTIONS.decode(msgspec.json.encode({"profile": profile}))
    except msgspec.ValidationError as error:
        reason = f"{error}{name_values(Options, str(error))}"
        raise Refusal("invalid", f"profile is {profile!r:.100}: {reason}.", "$.parameters.profile") from error
    return request.plan(names or None, options)


def read_rows(body: InferBody, limit: int) -> list[ResponseBody]:
    """The rows of the inputs; Refusal with the path of the wrong tensor."""
    indices = {tensor.name: index for index, tensor in enumerate(body.inputs)}
    columns: dict[str, list[list[str]]] = {}
    if len(indices) < len(body.inputs):
        index = next(index for index, tensor in enumerate(body.inputs) if indices[tensor.name] != index)
        path = f"$.inputs[{indices[body.inputs[index].name]}].name"
        raise Refusal("invalid", f"The input {body.inputs[index].name!r:.100} is there twice; keep one of them.", path)
    for name, index in indices.items():
        path = f"$.inputs[{index}]"
        if name not in {tensor.name for tensor in INPUTS}:
            raise Refusal(
                "invalid", f"There is no input {name!r:.100}; use response, knowledge, history.", f"{path}.name"
            )
        columns[name] = _read_column(body.inputs[index], path, limit)
    for name in ("response", "knowledge"):
        if name not in columns:
            raise Refusal("invalid", f"There is no input {name}; pass it.", "$.inputs")
    count = len(columns["response"])
    for name, column in columns.items():
        if len(column) != count:
            raise Refusal(
                "invalid",
                f"{name} has {len(column)} rows, but response has {count}; pass as many.",
                f"$.inputs[{indices[name]}].shape",
            )
    histories = columns.get("history", [[]] * count)
    return [
        ResponseBody(
            response="".join(columns["response"][row]),
            knowledge=tuple(filter(None, columns["knowledge"][row])),
            history=tuple(filter(None, histories[row])),
        )
        for row in range(count)
    ]


def _read_column(tensor: Tensor, path: str, limit: int) -> list[list[str]]:
    """The strings of each row of a tensor."""
    if tensor.datatype != "BYTES":
        raise Refusal("invalid", f"datatype is {tensor.datatype!r:.100}; use BYTES.", f"{path}.datatype")
    wide = 1 if tensor.name == "response" else 2
    if not 1 <= len(tensor.shape) <= wide or min(tensor.shape) < 1:
        allowed = "[rows]" if wide == 1 else "[rows] or [rows, texts]"
        raise Refusal("invalid", f"shape is {list(tensor.shape)!r:.100}; use {allowed}.", f"{path}.shape")
    check_size("inputs", tensor.shape[0], limit, "rows", f"{path}.shape")
    if len(tensor.data) != prod(tensor.shape):
        raise Refusal(
            "invalid", f"data has {len(tensor.data)} entries; the shape says {prod(tensor.shape)}.", f"{path}.data"
        )
    for index, text in enumerate(tensor.data):
        if not isinstance(text, str):
            raise Refusal("invalid", f"Expected `str`, got `{type(text).__name__}`.", f"{path}.data[{index}]")
    size = prod(tensor.shape[1:])
    return [tensor.data[start : start + size] for start in range(0, len(tensor.data), size)]


def _make_output(name: str, scores: Sequence[Score]) -> Tensor:
    datatype, read = OUTPUTS[name]
    data = [read(score) for score in scores]
    if None in data:
        index = data.index(None)
        raise Refusal(
            "unreadable",
            f"Row {index} has no {name}: {scores[index].status}, {scores[index].verdict.label}. Ask for label, status "
            "and score, without numbers.",
            result=scores,
        )
    return Tensor(name, (len(data),), datatype, data)
