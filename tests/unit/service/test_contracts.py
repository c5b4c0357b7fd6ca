"""What other programs expect: vLLM semantic-router's detector contract, and the Open Inference Protocol."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from groundwire import __version__
from groundwire.engine import Score
from groundwire.runtime.calls import Classify
from groundwire.runtime.errors import ModelError, TooLong
from groundwire.runtime.protocol import Outcome
from groundwire.service.front import Front
from tests.support.service import run, serve
from tests.support.streams import KNOWLEDGE, METRICS, classify, world


def ask(inputs: Any, context: Any = KNOWLEDGE, question: Any = "What is honey?", **settings: Any) -> httpx.Response:
    async def test(client: httpx.AsyncClient, front: Front) -> httpx.Response:
        body = {"inputs": inputs, "parameters": {"context": context, "question": question}}
        return await client.post("/classify", json=body)

    return run(test, **settings)


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ("Honey is sweet.", []),
        ("Hi!", []),
        ("Honey is blue.", [(9, 13)]),
        ("🐝👩‍👩‍👧 Honey is sweet. It is blue, 🙂 wrong.", None),
    ],
)
def test_spans_are_offsets_of_code_points(inputs: str, expected: list[tuple[int, int]] | None) -> None:
    answer = ask(inputs, metrics=METRICS)
    assert answer.status_code == 200
    assert set(answer.json()) == {"spans"}
    spans = answer.json()["spans"]
    if expected is not None:
        assert [(span["start"], span["end"]) for span in spans] == expected
    else:
        assert {span["text"] for span in spans} >= {"blue", "wrong"}
    for span in spans:
        assert list(inputs)[span["start"] : span["end"]] == list(span["text"])
        assert span["label"] == "HALLUCINATED"
        assert 0.5 < span["score"] <= 1
    keys = [(span["label"], span["start"], span["end"]) for span in spans]
    assert len(keys) == len(set(keys)), "the router refuses a span that comes twice"


def test_an_inconsistent_answer_always_has_a_span() -> None:
    unmarked = {"metrics": ("nli", "verifiability")}
    spans = ask("Honey is sweet. It is blue.", **unmarked).json()["spans"]
    assert spans
    assert all(span["start"] >= 16 for span in spans)


def test_the_label_is_the_mappings() -> None:
    assert ask("Honey is blue.", classify_label="UNSUPPORTED").json()["spans"][0]["label"] == "UNSUPPORTED"


@pytest.mark.parametrize(
    ("error", "status", "code"), [(ModelError("broken"), 500, "failed"), (TooLong("too long"), 422, "unreadable")]
)
def test_what_was_not_checked_is_never_clean(error: Exception, status: int, code: str) -> None:
    def fail(call: Classify) -> Outcome:
        if "wine" in call.hypothesis:
            raise error
        return classify(call)

    answer = ask("It is wine.", runtime=world(nli=fail))
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert "spans" not in answer.json()


def test_a_number_that_only_people_read_is_no_defect_of_the_server() -> None:
    answer = ask("Honey has 3⁶ calories.")
    assert (answer.status_code, answer.json()["code"]) == (422, "unreadable")
    assert "plain digits" in answer.json()["detail"]


def test_no_verdict_is_no_clean_answer() -> None:
    answer = ask("Honey is sweet.", runtime=world(calibration=None), metrics=("nli",))
    assert (answer.status_code, answer.json()["code"]) == (500, "failed")
    assert "calibration" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("arguments", "path"),
    [
        ((" ",), "$.inputs"),
        ((5,), "$.inputs"),
        (("Honey.", "\0"), "$.parameters.context[0]"),
        (("Honey.", ["a", "\0"]), "$.parameters.context[1]"),
        (("Honey.", "a", "\0"), "$.parameters.question[0]"),
        (("Honey.", "a" * 50_001), "$.parameters.context"),
    ],
)
def test_errors_name_the_contracts_fields(arguments: tuple[Any, ...], path: str) -> None:
    answer = ask(*arguments)
    assert answer.status_code in (413, 422)
    assert answer.json()["path"] == path


def tensor(name: str, data: list[Any], *shape: int, datatype: str = "BYTES") -> dict[str, Any]:
    return {"name": name, "shape": list(shape or (len(data),)), "datatype": datatype, "data": data}


RESPONSE = tensor("response", ["Honey is sweet.", "Honey is blue."])
KNOWN = tensor("knowledge", [KNOWLEDGE, KNOWLEDGE])


def infer(inputs: list[Any], path: str = "/v2/models/groundwire/infer", **body: Any) -> httpx.Response:
    return run(lambda client, _: client.post(path, json={"id": "7", "inputs": inputs, **body}))


def test_rows_are_scored() -> None:
    content = infer([RESPONSE, KNOWN]).json()
    assert (content["model_name"], content["model_version"], content["id"]) == ("groundwire", __version__, "7")
    label, status, score = content["outputs"]
    assert label == tensor("label", ["consistent", "inconsistent"])
    assert status == tensor("status", ["scored", "scored"])
    assert [Score.from_json(text).value for text in score["data"]] == [1.0, 0.0]


def test_outputs_and_metrics_can_be_named() -> None:
    passages = tensor("knowledge", ["Honey is golden.", "", KNOWLEDGE, "Honey."], 2, 2)
    history = tensor("history", ["Hi.", ""], 2, 1)
    outputs = [{"name": "value"}, {"name": "probability"}]
    content = infer([RESPONSE, passages, history], outputs=outputs, parameters={"metrics": "nli, verifiability"}).json()
    assert content["outputs"][0] == {"name": "value", "shape": [2], "datatype": "FP64", "data": [1.0, 0.0]}
    assert content["outputs"][1]["data"][0] > 0.5 > content["outputs"][1]["data"][1]


def test_a_number_that_is_absent_is_no_number() -> None:
    answer = infer([RESPONSE, KNOWN], outputs=[{"name": "probability"}], parameters={"metrics": "token_classifier"})
    assert answer.status_code == 422
    assert "Row 0 has no probability" in answer.json()["error"], "errors have the protocol's own member"


@pytest.mark.parametrize(
    ("inputs", "body", "path"),
    [
        ([], {}, "$.inputs"),
        ([RESPONSE], {}, "$.inputs"),
        ([RESPONSE, KNOWN, tensor("context", ["a"])], {}, "$.inputs[2].name"),
        ([RESPONSE, tensor("knowledge", ["a"])], {}, "$.inputs[1].shape"),
        ([RESPONSE, tensor("knowledge", ["a"], 2)], {}, "$.inputs[1].data"),
        ([RESPONSE, tensor("knowledge", ["a"], -1)], {}, "$.inputs[1].shape"),
        ([RESPONSE, tensor("knowledge", [], 0)], {}, "$.inputs[1].shape"),
        ([tensor("response", ["a"], 1, 1), KNOWN], {}, "$.inputs[0].shape"),
        ([RESPONSE, tensor("knowledge", [1, 2])], {}, "$.inputs[1].data[0]"),
        ([RESPONSE, tensor("knowledge", [1, 2], datatype="FP32")], {}, "$.inputs[1].datatype"),
        ([tensor("response", ["a"] * 65), KNOWN], {}, "$.inputs[0].shape"),
        ([RESPONSE, KNOWN], {"outputs": [{"name": "logits"}]}, "$.outputs[0].name"),
        ([RESPONSE, KNOWN], {"parameters": {"metrics": 5}}, "$.parameters.metrics"),
        ([RESPONSE, KNOWN], {"parameters": {"profile": "loud"}}, "$.parameters.profile"),
        ([tensor("response", ["Honey.", " "]), KNOWN], {}, "$.response"),
    ],
)
def test_wrong_tensors_are_refused(inputs: list[Any], body: dict[str, Any], path: str) -> None:
    answer = infer(inputs, **body)
    assert answer.status_code in (413, 422)
    assert answer.json()["path"] == path
    assert answer.json()["error"] == answer.json()["detail"]


@pytest.mark.anyio
async def test_the_protocol_describes_itself() -> None:
    async with serve() as (client, front):
        assert (await client.get("/v2")).json()["name"] == "groundwire"
        assert (await client.get("/v2/health/live")).json() == {"live": True}
        assert (await client.get("/v2/health/ready")).json() == {"ready": True}
        assert (await client.get("/v2/models/groundwire/ready")).json() == {"ready": True, "name": "groundwire"}
        metadata = (await client.get("/v2/models/groundwire")).json()
        assert {item["name"] for item in metadata["inputs"]} == {"response", "knowledge", "history"}
        assert {item["name"]: item["datatype"] for item in metadata["outputs"]}["value"] == "FP64"
        for path in ("/v2/models/other", "/v2/models/other/ready"):
            assert (await client.get(path)).status_code == 404
        assert (await client.post("/v2/models/other/infer", json={"inputs": []})).status_code == 404
        front.service.engine.close()
        for path in ("/v2/health/live", "/v2/health/ready", "/v2/models/groundwire/ready"):
            assert (await client.get(path)).status_code == 503
