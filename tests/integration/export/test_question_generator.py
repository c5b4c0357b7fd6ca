"""The two graphs of a generator, step by step against transformers."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
import torch

from groundwire.export.checkpoint import Checkpoint
from groundwire.export.passes import quantize, to_half
from groundwire.export.roles import generation
from groundwire.export.verify.encoder import tensors
from groundwire.export.verify.generation import eos_ids, start_id
from groundwire.runtime.errors import ExportError
from tests.support import models
from tests.support.graphs import Array, Loader, Stepper, batch_of, graphs
from tests.support.processor import exact_products

FAMILIES = sorted(models.ENCODER_DECODERS)


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def log_probabilities(loaded: Checkpoint, batch: dict[str, Array], source: int, sequence: Array) -> Array:
    """Return the checkpoint's log-probabilities of the token after ``sequence``, computed from scratch."""
    rows = {name: tensor[source : source + 1] for name, tensor in tensors(loaded, batch).items()}
    with torch.inference_mode():
        output = loaded.model(
            encoder_outputs=loaded.model.get_encoder()(**rows),
            attention_mask=rows["attention_mask"],
            decoder_input_ids=torch.from_numpy(sequence)[None],
            use_cache=False,
        )
    result: Array = output.logits[0, -1].log_softmax(-1).numpy()
    return result


def test_greedy_steps_are_transformers_generate(load: Loader, family: str) -> None:
    loaded = load("question_generator", family)
    batch = batch_of(loaded)
    stepper = Stepper(graphs(loaded, family), batch, start_id(loaded.model))
    for _ in range(10):
        tokens = stepper.step(1)["candidates"][:, :, 0]
        stepper.choose(np.zeros_like(tokens), tokens)
    with torch.inference_mode():
        expected = loaded.model.generate(
            **tensors(loaded, batch), num_beams=1, do_sample=False, max_new_tokens=10, use_cache=True
        ).numpy()
    sequences = stepper.sequences[:, 0, : expected.shape[1]]
    for row, want in zip(sequences, expected, strict=True):
        ends = np.flatnonzero(np.isin(want[1:], eos_ids(loaded.model)))
        length = ends[0] + 2 if len(ends) else len(want)
        assert row[:length].tolist() == want[:length].tolist()


def test_beams_follow_their_parents(load: Loader, family: str) -> None:
    """J = 1 → K = 3 → K = 3 with crossing parents → K = 2: every beam scores its own history, past reordered."""
    loaded = load("question_generator", family)
    batch = batch_of(loaded)
    stepper = Stepper(graphs(loaded, family), batch, start_id(loaded.model))
    rng = np.random.default_rng(1)
    for beams in (3, 3, 3, 2):
        output = stepper.step(6)
        before = output["scores"].shape[1]
        for source in range(3):
            for beam in range(before):
                expected = log_probabilities(loaded, batch, source, stepper.sequences[source, beam])
                candidates = output["candidates"][source, beam]
                np.testing.assert_allclose(output["scores"][source, beam], expected[candidates], rtol=1e-5, atol=3e-5)
                np.testing.assert_allclose(
                    output["scores"][source, beam], np.sort(expected)[::-1][:6], rtol=1e-5, atol=3e-5
                )
        parents = rng.integers(0, before, (3, beams))
        tokens = np.stack([output["candidates"][np.arange(3), parents[:, k], k] for k in range(beams)], axis=1)
        stepper.choose(parents, tokens)


def test_signature(load: Loader, family: str) -> None:
    loaded = load("question_generator", family)
    encoder, decoder = graphs(loaded, family)
    layers = len(generation.split_model(loaded.model).step.layers)
    names = [value.name for value in decoder.graph.outputs]
    assert names == ["scores", "candidates", *(f"present.{p}.{i}" for i in range(layers) for p in ("key", "value"))]
    assert [value.name for value in encoder.graph.outputs] == [
        f"cross.{p}.{i}" for i in range(layers) for p in ("key", "value")
    ]
    inputs = {value.name for value in decoder.graph.inputs}
    assert {"tokens", "parents", "cross_mask", "count"} < inputs
    assert ("token_type_ids" in {value.name for value in encoder.graph.inputs}) == family.startswith("bert")


@exact_products
def test_int8_is_near_and_ignores_batch_mates(load: Loader, family: str) -> None:
    loaded = load("question_generator", family)
    pair = graphs(loaded, family)
    for graph in pair:
        quantize(graph)
    batch = batch_of(loaded)
    vocabulary = generation.split_model(loaded.model).step.vocabulary

    def run(rows: slice) -> list[tuple[Array, Array]]:
        part = {name: values[rows] for name, values in batch.items()}
        stepper = Stepper(pair, part, start_id(loaded.model))
        outputs = []
        for step in range(4):
            output = stepper.step(vocabulary)
            outputs.append((output["scores"], output["candidates"]))
            # The same choices whatever the batch: beams 0, 1 of source b continue with fixed tokens.
            tokens = np.tile(np.array([[7 + step, 11 + step]]), (len(part["input_ids"]), 1))
            stepper.choose(np.zeros_like(tokens) if step == 0 else np.array([[1, 0]]).repeat(len(tokens), 0), tokens)
        return outputs

    together, alone = run(slice(None)), [run(slice(i, i + 1)) for i in range(3)]
    for step, (scores, candidates) in enumerate(together):
        for source in range(3):
            assert np.array_equal(alone[source][step][0][0], scores[source])
            assert np.array_equal(alone[source][step][1][0], candidates[source])
    expected = log_probabilities(loaded, batch, 0, np.array([start_id(loaded.model)]))
    scores = np.empty(vocabulary, np.float32)
    scores[together[0][1][0, 0]] = together[0][0][0, 0]
    assert np.abs(scores - expected).std() < 0.15 * expected.std()


def test_half_keeps_states_in_float16(load: Loader, family: str) -> None:
    loaded = load("question_generator", family)
    pair = graphs(loaded, family)
    for graph in pair:
        to_half(graph, loaded.float_modules)
    batch = batch_of(loaded)
    stepper = Stepper(pair, batch, start_id(loaded.model))
    output = stepper.step(8)
    assert output["present.key.0"].dtype == np.float16
    assert output["scores"].dtype == np.float32
    expected = log_probabilities(loaded, batch, 0, np.array([start_id(loaded.model)]))
    np.testing.assert_allclose(output["scores"][0, 0], expected[output["candidates"][0, 0]], atol=0.1)


def test_t5_keeps_its_overflowing_products_in_float32(load: Loader) -> None:
    loaded = load("question_generator", "t5")
    assert loaded.float_modules == ("wo",)
    encoder, _ = graphs(loaded, "t5")
    to_half(encoder, loaded.float_modules)
    for name, value in encoder.graph.initializers.items():
        if "DenseReluDense.wo" in name:
            assert value.dtype == ir.DataType.FLOAT
    for node in encoder.graph:
        if node.op_type == "Pow":
            source = node.inputs[0]
            assert source is not None
            assert source.dtype == ir.DataType.FLOAT


def test_unknown_family_is_named() -> None:
    class Model:
        class config:  # noqa: N801
            model_type = "pegasus"
            is_encoder_decoder = True

    with pytest.raises(ExportError, match=r"'pegasus'.*Supported: t5, mt5, bart"):
        generation.split_model(Model())
