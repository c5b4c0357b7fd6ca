"""Texts scored at the fixed shapes of a GPU have the values of any shape, on the CPU provider and its memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import LanguageModelRole
from groundwire.runtime.calls import ScoreText, TextScored
from groundwire.runtime.capture import scorer as captured_scorer
from groundwire.runtime.capture import scoring_shapes
from groundwire.runtime.capture.graph import Address, CapturedGraph, Runnable
from groundwire.runtime.capture.scorer import CapturedScorer
from groundwire.runtime.capture.scoring_shapes import EMPTY
from groundwire.runtime.capture.shapes import BatchShape
from groundwire.runtime.errors import ModelError
from groundwire.runtime.models.language_model import LanguageModel
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.texts.tokenization import TextEncoder
from tests.support import host_cuda
from tests.support.zoo import Zoo

FAMILIES = ("gpt2", "bloom", "opt")
"""Two families that keep keys and values, and one that reads prefix and text together."""
DOCUMENT = "Document: The Amazon river flows through Brazil, Peru and Colombia. "
TEXTS = ["Yes, I was in Peru.", "No.", "It flows through Brazil, and through Peru too, I think.", "a river"]
CALLS = [
    *(ScoreText((DOCUMENT,), f"{text[:number]}{text}") for number in range(5) for text in TEXTS),
    *(ScoreText((DOCUMENT[10 * number :],), TEXTS[number % 4]) for number in range(6)),
    ScoreText((), TEXTS[2]),
    ScoreText(("A",), TEXTS[0]),
]
Launches = list[tuple[dict[str, int], dict[str, Address]]]
"""The sizes and addresses of each run."""


@pytest.fixture(autouse=True)
def host_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    host_cuda.use_host_memory(monkeypatch)


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> Launches:
    """Every run from now on."""
    recorded: Launches = []
    run = CapturedGraph.run

    def record(graph: CapturedGraph, shape: BatchShape) -> None:
        layout = graph._layout()
        assert layout is not None
        axes, addresses = layout(shape)
        recorded.append((dict(axes), dict(addresses)))
        run(graph, shape)

    monkeypatch.setattr(CapturedGraph, "run", record)
    return recorded


@pytest.fixture
def share_early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny models have a window of 96 tokens: let short prefixes be shared, and long texts be cut."""
    for name, value in {"SHARED_WIDTH": 32, "SMALL_TOKENS": 128, "MOST_SCORED": 32}.items():
        monkeypatch.setattr(scoring_shapes, name, value)


def load(bundle: Bundle, *, captured: bool, strict: bool = False) -> LanguageModel:
    role, profile = bundle.manifest.roles["lm"], replace(DeviceProfile.of("cpu", 1), strict=strict)
    assert isinstance(role, LanguageModelRole)
    if not captured:
        return LanguageModel.load(bundle, role, profile)
    encoder = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
    scorer = CapturedScorer.load(bundle, role, encoder.vocabulary_size, profile)
    assert scorer is not None
    return LanguageModel(role, scorer, encoder)


def run(model: LanguageModel, calls: Sequence[ScoreText]) -> list[TextScored]:
    results = model.run(calls, 8)
    assert all(isinstance(result, TextScored) for result in results), results
    return results  # type: ignore[return-value]


def assert_close(computed: Sequence[TextScored], expected: Sequence[TextScored]) -> None:
    for left, right in zip(computed, expected, strict=True):
        np.testing.assert_allclose(left.log_probs, right.log_probs, atol=1e-4)
        assert (left.first, left.offsets, left.read) == (right.first, right.offsets, right.read)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.usefixtures("share_early")
def test_values_are_those_of_any_shape(zoo: Zoo, family: str, launches: Launches) -> None:
    expected = run(zoo.language_model(family), CALLS)
    model = load(zoo.bundle("lm", family), captured=True)
    for _ in range(2):
        assert_close(run(model, CALLS), expected)
    backwards = run(model, CALLS[::-1])[::-1]
    assert_close(backwards, expected)
    alone = [run(model, [call])[0] for call in CALLS]
    assert_close(alone, expected)
    assert any(sizes["scored"] > sizes["batch"] * 32 for sizes, _ in launches) == (family != "opt"), "shared prefixes"


def test_values_of_the_embedded_model(launches: Launches, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its window is 1,024 tokens, so the shapes are those of a GPU; the weights are float32 as there."""
    host_cuda.rewrite_graphs(monkeypatch)
    bundle = Bundle.open("compact")
    calls = [*CALLS, *(ScoreText((DOCUMENT * 40,), text) for text in TEXTS * 2), ScoreText((), DOCUMENT * 40)]
    model = load(bundle, captured=True)
    assert_close(run(model, calls), run(load(bundle, captured=False), calls))
    assert {sizes["past"] for sizes, _ in launches} == {EMPTY, 1024}
    assert max(sizes["sources"] for sizes, _ in launches) >= 16


@pytest.mark.parametrize("family", ["gpt2", "bloom"])
@pytest.mark.usefixtures("share_early")
def test_a_shared_prefix_is_read_once_and_its_states_stay_where_they_are(
    zoo: Zoo, family: str, launches: Launches
) -> None:
    model = load(zoo.bundle("lm", family), captured=True)
    run(model, [ScoreText((DOCUMENT,), f"{letter} river") for letter in "abcdefghijk"])
    (prefix, written), *texts = launches
    assert (prefix["sources"], prefix["texts"], prefix["scored"]) == (1, 1, 1)
    assert [sizes["texts"] for sizes, _ in texts] == [16] or [sizes["texts"] for sizes, _ in texts] == [4, 4, 4]
    for sizes, read in texts:
        assert sizes["past"] == prefix["width"]
        for name, address in read.items():
            if name.startswith("past."):
                assert address == written[name.replace("past", "present")]
                assert address != written[name], "the prefix itself has no past"
    assert "log_probs" not in written


@pytest.mark.parametrize("family", FAMILIES)
def test_strict_values_do_not_depend_on_the_batch(zoo: Zoo, family: str) -> None:
    model = load(zoo.bundle("lm", family), captured=True, strict=True)
    together = run(model, CALLS)
    assert together == [run(model, [call])[0] for call in CALLS]
    assert_close(together, run(zoo.language_model(family), CALLS))


def test_a_batch_that_fills_the_page_locked_memory_waits_in_between(zoo: Zoo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(captured_scorer, "STAGING_BYTES", 0)
    monkeypatch.setattr(scoring_shapes, "MAX_TOKENS", 192)
    waits: list[None] = []
    monkeypatch.setattr(host_cuda.HostStream, "synchronize", lambda stream: waits.append(None))
    model = load(zoo.bundle("lm", "gpt2"), captured=True)
    waits.clear()
    assert_close(run(model, CALLS), run(zoo.language_model("gpt2"), CALLS))
    assert len(waits) > 1


def test_numbers_that_are_not_finite_fail_their_calls_alone(zoo: Zoo, tmp_path: Path) -> None:
    """A broken weight at position 60, which texts that are shorter reach with no padding in strict shapes."""
    bundle = zoo.bundle("lm", "gpt2")
    role, profile = bundle.manifest.roles["lm"], replace(DeviceProfile.of("cpu", 1), strict=True)
    assert isinstance(role, LanguageModelRole)
    graph = ir.load(bundle.file(role.graph))
    positions = graph.graph.initializers["embed.positions.weight"]
    assert positions.const_value is not None
    broken = positions.const_value.numpy().copy()
    broken[60] = np.nan
    positions.const_value = ir.tensor(broken, name="embed.positions.weight")
    ir.save(graph, tmp_path / "lm.onnx", external_data="weights.bin")
    encoder = TextEncoder.load(bundle.file(role.tokenizer), role.max_tokens)
    opened = Runnable.load(tmp_path / "lm.onnx", profile)
    model = LanguageModel(role, CapturedScorer(opened, role, encoder.vocabulary_size), encoder)
    bad, good = model.run([ScoreText(("x" * 64,), TEXTS[1]), CALLS[-1]], 8)
    assert isinstance(bad, ModelError)
    assert isinstance(good, TextScored)
    assert_close([good], run(zoo.language_model("gpt2"), [CALLS[-1]]))


def test_a_graph_with_other_axes_is_left_to_a_session(zoo: Zoo, tmp_path: Path) -> None:
    bundle = zoo.bundle("lm", "gpt2")
    role, profile = bundle.manifest.roles["lm"], DeviceProfile.of("cpu", 1)
    assert isinstance(role, LanguageModelRole)
    graph = ir.load(bundle.file(role.graph))
    next(value for value in graph.graph.inputs if value.name == "rows").shape = ir.Shape(["positions"])
    ir.save(graph, tmp_path / "lm.onnx", external_data="weights.bin")
    opened = Runnable.load(tmp_path / "lm.onnx", profile)
    with pytest.raises(KeyError):
        CapturedScorer(opened, role, 600)
