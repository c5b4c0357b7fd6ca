"""The Open Inference Protocol, version 2, as KServe and Triton speak it: health, metadata, inference with JSON tensors.

An engine is the model ``groundwire``; its version is that of the package.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from math import prod
from typing import Any

import msgspec
from starlette.responses import Response

from groundwire import __version__
from groundwire.engine import Options, Score

from .call import Call, make_json
from .health import healthz, readyz
from .limits import check_size, check_turn
from .problems import Refusal
from .records import (
    InferBody,
    Inference,
    Live,
    ModelMetadata,
    Ready,
    ScoreBody,
    ServerMetadata,
    Tensor,
    TensorMetadata,
)
from .scoring import estimate_score, note_score, refuse_stopped_score

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
    "score": ("BYTES", lambda score: score.to_json()),
    "value": ("FP64", lambda score: score.value),
    "probability": ("FP64", lambda score: score.verdict.probability),
}
USUAL = ("label", "status", "score")


async def live(call: Call) -> Response:
    """Say whether the server lives (Open Inference Protocol)."""
    await healthz(call)
    return make_json(Live(True))


async def ready(call: Call) -> Response:
    """Say whether the server is ready (Open Inference Protocol)."""
    await readyz(call)
    return make_json(Ready(True))


async def model_ready(call: Call) -> Response:
    """Say whether the model is ready (Open Inference Protocol)."""
    name = _check_model(call)
    await readyz(call)
    return make_json(Ready(True, name))


async def server_metadata(call: Call) -> Response:
    """Name the server (Open Inference Protocol)."""
    return make_json(ServerMetadata("groundwire", __version__))


async def model_metadata(call: Call) -> Response:
    """List the inputs and outputs of the model (Open Inference Protocol)."""
    outputs = tuple(TensorMetadata(name, datatype, (-1,)) for name, (datatype, _) in OUTPUTS.items())
    return make_json(ModelMetadata(_check_model(call), (__version__,), "groundwire_onnxruntime", INPUTS, outputs))


async def infer(call: Call) -> Response:
    """Score the rows of a request (Open Inference Protocol).

    Inputs are `response` [n], `knowledge` [n] or [n, passages] and perhaps `history` [n, turns], all BYTES as JSON
    strings; rows are filled with empty strings. Outputs are `label`, `status` and `score` (the record as JSON), or
    those that are named, `value` and `probability` among them. If a row was stopped, or has no number that was asked
    for, the request is refused.
    """
    name = _check_model(call)
    body = await call.read(BODY)
    service = call.service
    names = tuple(output.name for output in body.outputs) or USUAL
    for index, output in enumerate(names):
        if output not in OUTPUTS:
            allowed = ", ".join(OUTPUTS)
            raise Refusal("invalid", f"There is no output {output!r:.100}; use {allowed}.", f"$.outputs[{index}].name")
    rows = read_rows(body, service.settings.max_candidates)
    metrics, options = _read_parameters(call, body)
    bounded = call.bound_options(options)
    for row in rows:
        check_turn(service.settings, (row.response,), row.knowledge, row.history)

    async def score_rows() -> list[Score]:
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(
                    service.engine.ascore(
                        row.response, row.knowledge, history=row.history, metrics=metrics, options=bounded
                    )
                )
                for row in rows
            ]
        return [task.result() for task in tasks]

    cost = sum(estimate_score(row, len(metrics), bounded) for row in rows)
    try:
        scores = await call.run(score_rows, cost)
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    for score in scores:
        note_score(call, score)
    for score in scores:
        refuse_stopped_score(score)
    outputs = tuple(_make_output(output, scores) for output in names)
    return make_json(Inference(name, __version__, outputs, body.id))


def _check_model(call: Call) -> str:
    name = str(call.request.path_params["name"])
    if name != MODEL:
        raise Refusal("not_found", f"There is no model {name!r:.100}; this server has {MODEL!r}.")
    return name


def _read_parameters(call: Call, body: InferBody) -> tuple[tuple[str, ...], Options]:
    """The metrics and options of the parameters; other parameters are for other servers."""
    given = body.parameters.get("metrics")
    if not isinstance(given, str | None):
        raise Refusal("invalid", "metrics is no string; separate names by commas.", "$.parameters.metrics")
    names = tuple(part.strip() for part in (given or "").split(",") if part.strip())
    profile = body.parameters.get("profile", Options().profile)
    try:
        options = OPTIONS.decode(msgspec.json.encode({"profile": profile}))
    except msgspec.ValidationError as error:
        raise Refusal("invalid", f"profile is {profile!r:.100}: {error}.", "$.parameters.profile") from error
    return call.service.resolve_metrics(names or None), options


def read_rows(body: InferBody, limit: int) -> list[ScoreBody]:
    """The rows of the inputs; Refusal with the path of the wrong tensor."""
    indices = {tensor.name: index for index, tensor in enumerate(body.inputs)}
    columns: dict[str, list[list[str]]] = {}
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
        ScoreBody(
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


def _make_output(name: str, scores: list[Score]) -> Tensor:
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
