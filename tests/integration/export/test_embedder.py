"""Embedders: cut, exported and verified against transformers."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import bert_score
import numpy as np
import onnx_ir as ir
import pytest
import torch
from bert_score.utils import model2layers
from transformers import (
    AlbertConfig,
    AlbertModel,
    BartConfig,
    BartModel,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertModel,
)

from groundwire.export import EmbedderSettings, Gate, RoleOptions, checkpoint, export_role, override
from groundwire.export.passes import fold_transposes, quantize, to_half
from groundwire.export.roles import embedder
from groundwire.export.roles.registry import KINDS, find_kind
from groundwire.export.session import CpuSession
from groundwire.export.texts import EXAMPLES
from groundwire.export.verify.embedder import compare_tokens
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import EmbedderRole, Template
from groundwire.runtime.errors import ExportError, ParityError
from groundwire.runtime.models.embedder import unit
from tests.support import models
from tests.support.commands import command, invoke_export
from tests.support.graphs import Loader, inputs
from tests.support.processor import exact_products
from tests.support.usage import usage_error

FAMILIES = list(models.EMBEDDERS)
Folder = Callable[[str, str], Path]
LOOSE = Gate(decision_agreement=0.3, max_error=3.0)
"""Random weights round badly; what int8 does to trained ones is in docs/adr, nr 17."""


def role_of(bundle: Bundle) -> EmbedderRole:
    role = bundle.manifest.roles["embedder"]
    assert isinstance(role, EmbedderRole)
    return role


def fresh(folder: Folder, family: str) -> checkpoint.Checkpoint:
    """A checkpoint that may be cut: the shared ones are left whole."""
    return KINDS["embedder"].load(RoleOptions(str(folder("embedder", family))))


@pytest.mark.parametrize("layer", [1, 2, 3])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_cut_graph_gives_that_layers_states(folder: Folder, load: Loader, family: str, layer: int) -> None:
    cut = fresh(folder, family)
    embedder.keep_layers(cut.model, layer)
    session = CpuSession(embedder.build_embedder_graph(cut.model))
    assert session.outputs == ["hidden"]
    for rows, width in ((4, 13), (2, 9)):
        batch = inputs(rows, width, pad=cut.pad_id)
        with torch.inference_mode():
            output = load("embedder", family).model(
                **{name: torch.from_numpy(batch[name]) for name in session.inputs}, output_hidden_states=True
            )
        hidden, real = session(batch)["hidden"], batch["attention_mask"] == 1
        assert hidden.dtype == np.float32
        np.testing.assert_allclose(hidden[real], output.hidden_states[layer].numpy()[real], atol=5e-5)


def test_a_family_whose_layers_have_another_name() -> None:
    torch.manual_seed(0)
    config = DistilBertConfig(vocab_size=300, dim=32, n_layers=3, n_heads=4, hidden_dim=64, max_position_embeddings=32)
    model = DistilBertModel(config).eval()
    batch = inputs()
    with torch.inference_mode():
        ids, mask = (torch.from_numpy(batch[name]) for name in ("input_ids", "attention_mask"))
        expected = model(ids, attention_mask=mask, output_hidden_states=True).hidden_states[2].numpy()
    embedder.keep_layers(model, 2)
    hidden, real = CpuSession(embedder.build_embedder_graph(model))(batch)["hidden"], batch["attention_mask"] == 1
    np.testing.assert_allclose(hidden[real], expected[real], atol=1e-5)


@pytest.mark.parametrize("layer", [-1, 0, 4])
def test_a_layer_that_is_not_there(folder: Folder, layer: int) -> None:
    with pytest.raises(ExportError, match=f"layer={layer}; BertModel has the layers 1 to 3"):
        embedder.keep_layers(fresh(folder, "bert").model, layer)


def test_what_cannot_be_cut_is_refused() -> None:
    small = {"vocab_size": 50, "d_model": 16, "encoder_layers": 1, "decoder_layers": 1}
    bart = BartModel(BartConfig(**small, encoder_attention_heads=2, decoder_attention_heads=2))
    grouped = AlbertModel(AlbertConfig(vocab_size=50, hidden_size=16, num_hidden_groups=2, num_attention_heads=2))
    for model in (bart, grouped):
        with pytest.raises(ExportError, match="cannot be cut after a layer"):
            embedder.keep_layers(model, 1)


@exact_products
@pytest.mark.parametrize("family", FAMILIES)
def test_int8_is_near_and_ignores_batch_mates(load: Loader, family: str) -> None:
    graph = embedder.build_embedder_graph(load("embedder", family).model)
    fold_transposes(graph)
    exact, batch = CpuSession(graph.clone())(inputs(9))["hidden"], inputs(9)
    quantize(graph)
    assert sum(node.op_type == "MatMulIntegerToFloat" for node in graph.graph) >= 12
    session = CpuSession(graph)
    together = session(batch)["hidden"]
    for rows in (slice(0, 1), slice(3, 8)):
        alone = session({name: values[rows] for name, values in batch.items()})["hidden"]
        assert np.array_equal(alone, together[rows])
    assert 0 < np.sqrt(np.square(together - exact).mean()) < 0.2 * exact.std()


@pytest.mark.parametrize("family", FAMILIES)
def test_half_is_near(load: Loader, family: str) -> None:
    graph = embedder.build_embedder_graph(load("embedder", family).model)
    fold_transposes(graph)
    exact = CpuSession(graph.clone())(inputs())["hidden"]
    to_half(graph)
    weights = [value.const_value for value in graph.graph.initializers.values() if value.const_value is not None]
    assert {weight.dtype for weight in weights if weight.size > 500} == {ir.DataType.FLOAT16}
    hidden = CpuSession(graph)(inputs())["hidden"]
    assert hidden.dtype == np.float32
    assert np.sqrt(np.square(hidden - exact).mean()) < 0.01 * exact.std()


@pytest.mark.parametrize("precision", ["fp32", "fp16", pytest.param("int8", marks=exact_products)])
def test_whole_exports(folder: Folder, tmp_path: Path, precision: str) -> None:
    options = RoleOptions(str(folder("embedder", "mpnet")), precision=precision, gate=LOOSE)  # type: ignore[arg-type]
    bundle = export_role("embedder", options, tmp_path / "b")
    bundle.verify()
    role = role_of(bundle)
    assert (role.source, role.architecture, role.precision) == ("embedder-mpnet", "MPNetModel", precision)
    assert (role.layer, role.baseline, role.stride) == (3, None, 64)
    assert (role.max_tokens, role.pad_id) == (models.MAX_TOKENS, 1)
    assert role.parity is not None
    assert (role.parity.texts, role.parity.gate) == (64, "passed")
    assert (role.parity.max_logit_error < 1e-4) == (precision == "fp32")


def test_the_options_choose_layer_and_baseline(folder: Folder, tmp_path: Path) -> None:
    options = RoleOptions(
        str(folder("embedder", "bert")), EmbedderSettings(layer=2, baseline=(0.1, 0.2, 0.3)), precision="fp32"
    )
    bundle = export_role("embedder", options, tmp_path / "b")
    assert (role_of(bundle).layer, role_of(bundle).baseline) == (2, (0.1, 0.2, 0.3))
    # Another role beside it, and the embedder's files are kept.
    reader = RoleOptions(str(folder("extractive_qa", "bert")), precision="fp32")
    again = export_role("qa", reader, tmp_path / "b")
    again.verify()
    assert role_of(again) == role_of(bundle)
    with pytest.raises(ExportError, match="layer=9; BertModel has the layers 1 to 3"):
        export_role("embedder", replace(options, kind=EmbedderSettings(layer=9)), tmp_path / "c")


def test_another_source_forgets_layer_and_baseline() -> None:
    roles = {"embedder": RoleOptions("a", EmbedderSettings(layer=2, baseline=(0.1, 0.1, 0.1)))}
    assert override(roles, "embedder", precision="fp32")["embedder"].kind == roles["embedder"].kind
    other = override(roles, "embedder", source="b")["embedder"]
    assert other.kind is None


def test_published_values_equal_those_of_bert_score() -> None:
    """Layers and baselines, compared with the package's own tables."""
    tables = Path(bert_score.__file__).parent / "rescale_baseline" / "en"
    for name, known in embedder.PUBLISHED.items():
        assert known.layer == model2layers[name]
        path = tables / f"{name}.tsv"
        assert (known.baseline is not None) == path.exists(), name
        if known.baseline is not None:
            rows = {int(row["LAYER"]): row for row in csv.DictReader(path.read_text().splitlines())}
            assert known.baseline == tuple(float(rows[known.layer][column]) for column in "PRF")


@pytest.mark.parametrize(
    ("source", "layer"),
    [
        ("roberta-large", 17),
        ("FacebookAI/roberta-large", 17),
        ("albert/albert-base-v2", 9),
        ("microsoft/mpnet-base", 8),
    ],
)
def test_known_checkpoints(source: str, layer: int) -> None:
    published = embedder.look_up_published(source)
    assert published is not None
    assert published.layer == layer
    assert embedder.look_up_published(f"someone/{source}") is None


def test_the_recommended_layer_is_the_default(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = str(folder("embedder", "roberta"))
    monkeypatch.setitem(embedder.PUBLISHED, source, embedder.Published(2, (0.5, 0.5, 0.5)))
    options = RoleOptions(source, precision="fp32")
    role = role_of(export_role("embedder", options, tmp_path / "b"))
    assert (role.layer, role.baseline) == (2, (0.5, 0.5, 0.5))
    other = role_of(export_role("embedder", replace(options, kind=EmbedderSettings(layer=3)), tmp_path / "c"))
    assert (other.layer, other.baseline) == (3, None), "the baseline is that of one layer"


def test_the_first_word_of_roberta_is_like_any_other(folder: Folder) -> None:
    embedding, answering = (
        fresh(folder, "roberta"),
        KINDS["extractive_qa"].load(RoleOptions(str(folder("extractive_qa", "roberta")))),
    )
    spaced, usual = (json.loads(checkpoint.tokenizer) for checkpoint in (embedding, answering))
    for part in ("pre_tokenizer", "post_processor"):
        assert (spaced[part]["add_prefix_space"], usual[part]["add_prefix_space"]) == (True, False)


def test_a_checkpoint_with_a_head_and_without_a_pooler_will_do(load: Loader, tmp_path: Path) -> None:
    whole = load("embedder", "bert")
    model = BertForMaskedLM(whole.model.config)
    model.save_pretrained(tmp_path / "c")
    models.word_pieces().save_pretrained(tmp_path / "c")
    loaded = KINDS["embedder"].load(RoleOptions(str(tmp_path / "c")))
    name = "encoder.layer.0.output.dense.weight"
    assert torch.equal(loaded.model.state_dict()[name], model.bert.state_dict()[name])


def test_the_gate_sees_a_wrong_graph(folder: Folder, load: Loader) -> None:
    loaded = load("embedder", "bert")
    reference = KINDS["embedder"].reference(loaded, Template("{text}"))
    graph = embedder.build_embedder_graph(loaded.model)
    right = reference.compare([graph])
    assert right.decision_agreement == 1
    assert right.max_logit_error < 1e-5
    bias = graph.graph.initializers["encoder.layer.2.output.LayerNorm.bias"]
    assert bias.const_value is not None
    bias.const_value = ir.tensor(np.zeros_like(bias.const_value.numpy()))
    assert Gate.exact().failures(reference.compare([graph]))
    other = fresh(folder, "bert")
    embedder.keep_layers(other.model, 1)
    wrong = reference.compare([embedder.build_embedder_graph(other.model)])
    assert wrong.decision_agreement < 0.9
    assert Gate().failures(wrong)


def test_an_export_that_disagrees_is_refused(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    build = embedder.build_embedder_graph

    def broken(model: object) -> ir.Model:
        graph = build(model)
        for value in graph.graph.initializers.values():
            if value.const_value is not None and str(value.name).endswith("LayerNorm.weight"):
                value.const_value = ir.tensor(value.const_value.numpy()[::-1].copy())
        return graph

    monkeypatch.setattr(embedder, "build_embedder_graph", broken)
    with pytest.raises(ParityError, match="decision agreement"):
        export_role("embedder", RoleOptions(str(folder("embedder", "bert")), precision="fp32"), tmp_path / "b")


def test_nearest_passages_by_hand() -> None:
    east, north = np.array([1.0, 0.0], np.float32), np.array([0.0, 1.0], np.float32)
    between = unit(np.array([[1.0, 1.0]]))[0]
    claims = [[np.stack([east, north]), north[None]], [between[None]]]
    passages = [[east[None], np.stack([north, north])], [np.stack([east, north, north])]]
    outcome = compare_tokens(claims, passages)
    # The first claim has both directions, as the last passage; the second is all north.
    assert outcome.decisions.tolist()[:2] == [2, 1]
    half = pytest.approx(np.sqrt(0.5))
    of_claims = outcome.logits[: 4 * 3].reshape(4, 3)
    assert of_claims[0].tolist() == [1, 0, 1]
    assert of_claims[1].tolist() == [0, 1, 1]
    assert of_claims[3].tolist() == [half, half, half]
    of_passages = outcome.logits[4 * 3 :].reshape(3, 6)
    assert of_passages[1].tolist() == [0, 1, 1, 0, 1, 1]


def test_the_fixed_texts_have_passages_to_tell_apart() -> None:
    assert len({example.passage for example in EXAMPLES}) == 32
    assert find_kind("embedder").name == "embedder"


def test_command(folder: Folder, tmp_path: Path) -> None:
    arguments = ["--source", str(folder("embedder", "albert")), "--out", str(tmp_path / "b"), "--precision", "fp32"]
    output = command("embedder", *arguments, "--set", "layer=2")
    assert "embedder embedder-albert fp32 (passed: 100.0% of decisions equal" in output
    assert role_of(Bundle.open(tmp_path / "b")).layer == 2
    refused = invoke_export("paper-q2", "--set", "layer=2", "--out", str(tmp_path / "c"))
    assert "--set layer belong to one role" in usage_error(refused)
