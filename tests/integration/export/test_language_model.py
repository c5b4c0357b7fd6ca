"""The one graph of a language model against transformers: prefixes read once, then the texts after them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import onnx_ir as ir
import pytest
import torch
from transformers import AutoModel, AutoModelForCausalLM, BertConfig, BertLMHeadModel, Gemma2Config, Gemma2ForCausalLM

from groundwire.export import Gate, RoleOptions, export_bundle, export_role, store
from groundwire.export.checkpoint import Checkpoint
from groundwire.export.passes import fold_transposes, head, list_quantizable, quantize, to_half
from groundwire.export.roles import language_model
from groundwire.export.roles.registry import KINDS
from groundwire.export.session import CpuSession
from groundwire.runtime.bundles.manifest import LanguageModelRole, Template
from groundwire.runtime.errors import ExportError, ParityError
from tests.support import models
from tests.support.graphs import Loader
from tests.support.processor import exact_products

Array = npt.NDArray[Any]
WITH_PAST = ("gpt2", "bloom", "llama", "qwen3")
FAMILIES = tuple(models.LANGUAGE_MODELS)
_MADE: dict[tuple[str, bool], language_model.ScoringGraph] = {}


def made(loaded: Checkpoint, family: str, *, streamed: bool = True) -> language_model.ScoringGraph:
    """The float graph of a family, traced once and never changed."""
    if (family, streamed) not in _MADE:
        scoring = language_model.build_scoring_graph(loaded.model, streamed=streamed)
        fold_transposes(scoring.graph)
        _MADE[family, streamed] = scoring
    return _MADE[family, streamed]


class Case(NamedTuple):
    """Prefixes, and the same number of texts after each; ids."""

    prefixes: list[list[int]]
    texts: list[list[list[int]]]


def case(vocabulary: int, lengths: tuple[int, ...] = (11, 16, 1), texts: int = 3, width: int = 7) -> Case:
    rng = np.random.default_rng(0)
    return Case(
        [rng.integers(4, vocabulary, length).tolist() for length in lengths],
        [rng.integers(4, vocabulary, (texts, width)).tolist() for _ in lengths],
    )


def expected(model: Any, given: Case) -> Array:
    """Log-probabilities [S, C, T] by the checkpoint, each text read alone from scratch."""
    log_probs = []
    for prefix, texts in zip(given.prefixes, given.texts, strict=True):
        for text in texts:
            with torch.inference_mode():
                logits = model(torch.tensor([prefix + text])).logits[0, len(prefix) - 1 : -1]
            log_probs.append(logits.log_softmax(-1)[range(len(text)), text].numpy())
    return np.stack(log_probs).reshape(len(given.prefixes), -1, len(given.texts[0][0]))


def scored(graph: ir.Model, given: Case, *, spare: int = 5) -> Array:
    """The same by a graph: all prefixes in one pass and all texts in another, ``spare`` positions of padding in each.

    Padding is token 9, not zeros, and the past in front of a prefix is noise: neither may be seen. As in the runtime,
    the scored positions are filled up to a multiple of 8.
    """
    session = CpuSession(graph)
    sources, width = len(given.prefixes), len(given.texts[0][0])
    new = np.array([[[prefix[-1], *text[:-1]] for text in texts] for prefix, texts in zip(*given, strict=True)])
    tokens = np.full((*new.shape[:2], width + spare), 9)
    tokens[..., :width] = new
    rows = np.arange(tokens.size).reshape(tokens.shape)[..., :width].ravel()
    count = len(rows)
    if "past_mask" not in session.inputs:
        whole = [prefix + text[:-1] for prefix, texts in zip(*given, strict=True) for text in texts]
        ids = np.full((len(whole), max(map(len, whole)) + spare), 9)
        mask = np.zeros_like(ids)
        for row, line in enumerate(whole):
            ids[row, : len(line)], mask[row, : len(line)] = line, 1
        starts = [row * ids.shape[1] + len(line) - width for row, line in enumerate(whole)]
        asked = filled(np.concatenate([start + np.arange(width) for start in starts]), given)
        log_probs = session({"input_ids": ids, "attention_mask": mask, **asked})["log_probs"]
        return log_probs[:count].reshape(sources, -1, width)
    read = np.full((sources, max(map(len, given.prefixes)) - 1 + spare), 9)
    mask = np.zeros_like(read)
    for row, prefix in enumerate(given.prefixes):
        read[row, : len(prefix) - 1], mask[row, : len(prefix) - 1] = prefix[:-1], 1
    rng = np.random.default_rng(1)
    noise = {
        name: rng.normal(size=(sources, session.shape(name)[1], 3, session.shape(name)[3])).astype(session.dtype(name))
        for name in session.inputs
        if name.startswith(("past.key", "past.value"))
    }
    nothing = {"past_mask": np.zeros((sources, 3), np.int64), "rows": np.array([0]), "targets": np.array([-1])}
    states = session({"tokens": read[:, None], **nothing, **noise})
    past = {name.replace("present", "past"): states[name] for name in states if name.startswith("present")}
    log_probs = session({"tokens": tokens, "past_mask": mask, **filled(rows, given), **past})["log_probs"]
    return log_probs[:count].reshape(new.shape)


def filled(rows: Array, given: Case) -> dict[str, Array]:
    spare = -len(rows) % 8
    return {"rows": np.pad(rows, (0, spare)), "targets": np.pad(np.array(given.texts).ravel(), (0, spare))}


@pytest.mark.parametrize("streamed", [True, False], ids=["streamed", "plain"])
@pytest.mark.parametrize("family", FAMILIES)
def test_log_probabilities_are_those_of_transformers(load: Loader, family: str, streamed: bool) -> None:
    loaded = load("language_model", family)
    given = case(loaded.model.config.vocab_size)
    log_probs = scored(made(loaded, family, streamed=streamed).graph, given)
    np.testing.assert_allclose(log_probs, expected(loaded.model, given), atol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
def test_signature(load: Loader, family: str) -> None:
    loaded = load("language_model", family)
    scoring = made(loaded, family)
    names = [value.name for value in scoring.graph.graph.inputs]
    if family not in WITH_PAST:
        assert (scoring.layers, scoring.heads, scoring.head_dim) == (0, 0, 0)
        assert names == ["input_ids", "attention_mask", "rows", "targets"]
        assert [value.name for value in scoring.graph.graph.outputs] == ["log_probs"]
        return
    config = loaded.model.config
    width = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    assert (scoring.layers, scoring.heads, scoring.head_dim) == (models.LAYERS, heads, width)
    states = [f"{part}.{index}" for index in range(models.LAYERS) for part in ("key", "value")]
    assert set(names) == {"tokens", "past_mask", "rows", "targets", *(f"past.{name}" for name in states)}
    outputs = [value.name for value in scoring.graph.graph.outputs]
    assert outputs == ["log_probs", *(f"present.{name}" for name in states)]


@exact_products
@pytest.mark.parametrize("family", FAMILIES)
def test_int8_is_near_and_ignores_batch_mates(load: Loader, family: str) -> None:
    loaded = load("language_model", family)
    graph = made(loaded, family).graph.clone()
    quantize(graph)
    given = case(loaded.model.config.vocab_size, lengths=(12, 12, 12))
    together = scored(graph, given)
    for source in range(3):
        for text in range(3):
            alone = Case([given.prefixes[source]], [[given.texts[source][text]]])
            assert np.array_equal(scored(graph, alone)[0, 0], together[source, text])
    exact = expected(loaded.model, given)
    assert 0 < np.abs(together - exact).std() < 0.15 * exact.std()


@pytest.mark.parametrize("family", FAMILIES)
def test_half_gives_float32_log_probabilities(load: Loader, family: str) -> None:
    loaded = load("language_model", family)
    graph = made(loaded, family, streamed=False).graph.clone()
    to_half(graph, loaded.float_modules)
    given = case(loaded.model.config.vocab_size)
    log_probs = scored(graph, given)
    np.testing.assert_allclose(log_probs, expected(loaded.model, given), atol=0.1)
    assert log_probs.dtype == np.float32
    # Half precision near -10 has steps of 2 ** -7: rounding after the softmax would show.
    assert (np.abs(log_probs * 128 - np.rint(log_probs * 128)) > 1e-3).mean() > 0.5
    states = [value.dtype for value in graph.graph.outputs if str(value.name).startswith("present")]
    assert set(states) == ({ir.DataType.FLOAT16} if family in WITH_PAST else set())


def test_a_tied_table_is_stored_once_and_never_transposed(load: Loader) -> None:
    """Look-up and head read one initializer; no other initializer is as large."""
    loaded = load("language_model", "bloom")
    table = loaded.model.transformer.word_embeddings.weight
    graph = made(loaded, "bloom").graph.clone()
    assert "embed.words.weight" in list_quantizable(graph)
    quantize(graph)
    stored, scale = (graph.graph.initializers[f"embed.words.weight.{part}"] for part in ("int8", "scale"))
    held = [value for value in graph.graph.initializers.values() if value.const_value.size >= table.numel()]
    assert held == [stored]
    assert stored.dtype == ir.DataType.UINT8
    assert list(stored.shape) == [3, 2048, 48]
    ((flip, _),) = stored.uses()
    assert flip.op_type == "BitwiseXor"
    assert sorted(node.op_type for node, _ in flip.outputs[0].uses()) == ["GatherND", "Int8Head"]
    rows = stored.const_value.numpy().view(np.int8).reshape(-1, 48).astype(np.float32)
    rows *= scale.const_value.numpy().reshape(-1, 1)
    bound = np.abs(table.detach().numpy()).max(axis=1, keepdims=True) / 254 * 1.001
    assert (np.abs(rows - table.detach().numpy()) <= bound).all()


def test_a_large_table_is_stored_as_it_is_used(load: Loader, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = load("language_model", "bloom")
    given = case(loaded.model.config.vocab_size)
    small, large = made(loaded, "bloom").graph.clone(), made(loaded, "bloom").graph.clone()
    quantize(small)
    monkeypatch.setattr(head, "SHARED", 1000)
    quantize(large)
    stored = large.graph.initializers["embed.words.weight.int8"]
    assert sorted(node.op_type for node, _ in stored.uses()) == ["GatherND", "Int8Head"]
    assert np.array_equal(scored(large, given), scored(small, given))


def test_a_bundle_with_one_backbone_stores_its_word_embeddings_once(
    folder: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A classifier's look-up and a language model's blocks are the same bytes of weights.bin."""
    monkeypatch.setattr(store, "INLINE_BYTES", 1024)
    words = AutoModel.from_pretrained(folder("classifier", "bert")).embeddings.word_embeddings.weight
    model = AutoModelForCausalLM.from_pretrained(models.language_model(tmp_path / "gpt2", "gpt2"))
    model.resize_token_embeddings(len(words), mean_resizing=False)
    model.transformer.wte.weight.data.copy_(words)
    model.save_pretrained(tmp_path / "lm")
    models.word_pieces().save_pretrained(tmp_path / "lm")
    loose = Gate(decision_agreement=0.3, max_error=2.0)
    roles = {
        "nli": RoleOptions(str(folder("classifier", "bert")), gate=loose),
        "lm": RoleOptions(str(tmp_path / "lm"), gate=loose, max_tokens=models.MAX_TOKENS),
    }
    bundle = export_bundle(roles, tmp_path / "b")
    extents = []
    for role, name in (("nli", "bert.embeddings.word_embeddings.weight"), ("lm", "embed.words.weight")):
        tensor = ir.load(bundle.file(f"{role}.onnx")).graph.initializers[f"{name}.int8"].const_value
        assert isinstance(tensor, ir.ExternalTensor)
        extents.append((tensor.offset, tensor.length))
    assert extents == [(extents[0][0], words.numel())] * 2


def test_a_head_of_its_own_leaves_the_embeddings_alone(load: Loader) -> None:
    graph = made(load("language_model", "llama"), "llama").graph.clone()
    names = list_quantizable(graph)
    assert {"head.weight", "embed.words.weight"} < set(names)
    quantize(graph, frozenset({"head.weight"}))
    assert "head.weight" in graph.graph.initializers
    assert graph.graph.initializers["embed.words.weight.int8"].dtype == ir.DataType.INT8


@exact_products
def test_a_kept_table_stays_float_in_both_places(load: Loader) -> None:
    loaded = load("language_model", "bloom")
    graph = made(loaded, "bloom").graph.clone()
    quantize(graph, frozenset({"embed.words.weight"}))
    kept = graph.graph.initializers["embed.words.weight"]
    assert sorted(node.op_type for node, _ in kept.uses()) == ["GatherND", "Head"]
    given = case(loaded.model.config.vocab_size)
    exact = expected(loaded.model, given)
    assert np.abs(scored(graph, given) - exact).std() < 0.15 * exact.std()


@pytest.mark.parametrize("family", FAMILIES)
def test_parity_of_exact_and_of_broken_graphs(load: Loader, family: str) -> None:
    loaded = load("language_model", family)
    graph = made(loaded, family).graph
    parity = KINDS["language_model"].reference(loaded, Template("{text}")).compare((graph,))
    assert parity.max_logit_error < 1e-3
    assert (parity.decision_agreement, parity.texts) == (1.0, 64)
    assert Gate.exact().failures(parity) == []
    broken = graph.clone()
    name = next(name for name in list_quantizable(broken) if "embed" in name)
    table = broken.graph.initializers[name]
    table.const_value = ir.tensor(np.roll(table.const_value.numpy(), 1, axis=-1), name=name)
    parity = KINDS["language_model"].reference(loaded, Template("{text}")).compare((broken,))
    assert parity.decision_agreement < 0.9
    assert len(Gate().failures(parity)) == 2


def test_end_to_end(folder: Callable[[str, str], Path], tmp_path: Path) -> None:
    loose = Gate(decision_agreement=0.5, max_error=2.0)
    roles = {}
    for family in ("bloom", "opt"):
        source = str(folder("language_model", family))
        bundle = export_role("lm", RoleOptions(source, gate=loose), tmp_path / family)
        bundle.verify()
        role = bundle.manifest.roles["lm"]
        assert isinstance(role, LanguageModelRole)
        assert role.precision == "int8"
        assert role.parity is not None
        assert 0 < role.parity.max_logit_error < 2 * role.parity.logit_std
        roles[family] = role
    assert (roles["bloom"].layers, roles["bloom"].heads, roles["bloom"].head_dim) == (models.LAYERS, 6, 8)
    assert roles["opt"].layers == 0
    assert [role.max_tokens for role in roles.values()] == [models.MAX_TOKENS] * 2
    assert roles["bloom"].pad_id == 3


def test_mixed_precision_finds_what_hurts(folder: Callable[[str, str], Path], tmp_path: Path) -> None:
    """A gate between int8's error and float's: some weights come back, and not all."""
    source = str(folder("language_model", "gpt2"))
    whole = export_role("lm", RoleOptions(source, gate=Gate(0.5, 0.5, 2.0)), tmp_path / "a").manifest.roles["lm"]
    assert isinstance(whole, LanguageModelRole)
    assert whole.parity is not None
    bound = 0.6 * whole.parity.max_logit_error / whole.parity.logit_std
    role = export_role("lm", RoleOptions(source, gate=Gate(0.5, 0.5, bound)), tmp_path / "b").manifest.roles["lm"]
    assert isinstance(role, LanguageModelRole)
    assert role.precision == "mixed"
    assert role.parity is not None
    assert 0 < len(role.parity.kept_float) <= 7


def bert(folder: Path) -> Path:
    tokenizer = models.word_pieces()
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
    )
    BertLMHeadModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def capped(folder: Path) -> Path:
    tokenizer = models.byte_pairs_opt()
    config = Gemma2Config(
        vocab_size=len(tokenizer),
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=16,
        intermediate_size=32,
        final_logit_softcapping=0.1,
    )
    Gemma2ForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("build", "message"), [(bert, "is not causal"), (capped, "changes its logits after the head")])
def test_models_that_cannot_score_are_refused(build: Callable[[Path], Path], message: str, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=message):
        export_role("lm", RoleOptions(str(build(tmp_path / "c"))), tmp_path / "b")
    assert not (tmp_path / "b").exists()


def test_a_wrong_conversion_is_not_saved(
    folder: Callable[[str, str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slopes of ALiBi halved: the gate of fp32 sees it."""
    from groundwire.export.roles.language_model import bloom

    right = bloom.build_bloom_decoder

    def wrong(model: Any) -> Any:
        decoder = right(model)
        decoder.slopes.data *= 0.5
        return decoder

    monkeypatch.setattr(bloom, "build_bloom_decoder", wrong)
    with pytest.raises(ParityError, match="do not agree with the checkpoint"):
        export_role("lm", RoleOptions(str(folder("language_model", "bloom")), precision="fp32"), tmp_path / "b")


def test_other_scalings_of_gpt2(tmp_path: Path) -> None:
    """Scores divided by the layer's number, and not by the root of the head's width."""
    folder = models.language_model(tmp_path / "c", "gpt2")
    model = AutoModelForCausalLM.from_pretrained(
        folder, scale_attn_by_inverse_layer_idx=True, scale_attn_weights=False, attn_implementation="eager"
    ).eval()
    given = case(model.config.vocab_size)
    scoring = language_model.build_scoring_graph(model, streamed=True)
    np.testing.assert_allclose(scored(scoring.graph, given), expected(model, given), atol=1e-4)


def test_bloom_with_residuals_after_the_norm(tmp_path: Path) -> None:
    folder = models.language_model(tmp_path / "c", "bloom")
    model = AutoModelForCausalLM.from_pretrained(
        folder, apply_residual_connection_post_layernorm=True, attn_implementation="eager"
    ).eval()
    given = case(model.config.vocab_size)
    scoring = language_model.build_scoring_graph(model, streamed=True)
    np.testing.assert_allclose(scored(scoring.graph, given), expected(model, given), atol=1e-4)
