"""Exporting entity retrievers: precision, parity reports, shared words, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from groundwire.export import RoleOptions, export_role
from groundwire.export.passes.int8 import list_quantizable
from groundwire.export.retrieval_calls import calls
from groundwire.export.roles.retriever import EntityRetriever, build_retriever_graphs
from groundwire.runtime.bundles.manifest import RetrieverRole
from groundwire.runtime.errors import ExportError, ParityError
from groundwire.runtime.models.masked_input import check_retrieve
from groundwire.runtime.models.retriever import Retriever
from groundwire.runtime.ort.session import DeviceProfile
from groundwire.runtime.triples import Triple
from tests.support import retrievers

TABLE = "model.encoder.embeddings.word_embeddings.weight"


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return retrievers.save(tmp_path_factory.mktemp("retriever") / "checkpoint")


def test_int8_is_verified_on_all_three_graphs(checkpoint: Path, tmp_path: Path) -> None:
    made = export_role("retriever", RoleOptions(str(checkpoint), allow_unverified=True), tmp_path / "bundle")
    role = made.manifest.roles["retriever"]
    assert isinstance(role, RetrieverRole)
    assert (role.precision, role.width, role.turns, role.paths, role.pooling) == ("int8", 32, 3, True, "mean")
    assert role.parity is not None
    # Rounded, and yet the same model.
    assert 1e-4 < role.parity.max_logit_error < role.parity.logit_std
    assert {role.encoder, role.query, role.memory} <= set(made.manifest.files)
    made.verify()


def test_every_graph_has_the_one_table_of_words(checkpoint: Path) -> None:
    model = EntityRetriever.load(checkpoint)
    for graph in build_retriever_graphs(model):
        table = graph.graph.initializers[TABLE].const_value
        assert table is not None
        assert np.array_equal(table.numpy(), model.encoder.embeddings.word_embeddings.weight.detach().numpy())
        assert isinstance(graph, ir.Model)
        assert list_quantizable(graph)


def test_positions_that_no_window_reaches_are_not_stored(checkpoint: Path, tmp_path: Path) -> None:
    options = RoleOptions(str(checkpoint), precision="fp32", max_tokens=60)
    made = export_role("retriever", options, tmp_path / "bundle")
    role = made.manifest.roles["retriever"]
    assert isinstance(role, RetrieverRole)
    assert role.max_tokens == 60
    held = ir.load(made.file(role.encoder)).graph.initializers
    table = held["model.encoder.embeddings.position_embeddings.weight"]
    assert table.shape is not None
    assert 60 <= int(table.shape[0]) <= 64  # type: ignore[arg-type]
    # A text as long as the window is padded to a width that has positions.
    long = retrievers.call(triples=tuple(Triple(f"film {n}", "by", "x") for n in range(40)))
    (retrieved,) = Retriever.load(made, role, DeviceProfile.of("cpu", 1)).run([long], 1)
    assert isinstance(retrieved, tuple), retrieved


def test_a_wrong_graph_is_not_saved(checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The graphs of another model in place of the checkpoint's."""
    other = EntityRetriever.load(retrievers.save(tmp_path / "other", seed=5))
    monkeypatch.setattr(
        "groundwire.export.roles.retriever.kind.build_retriever_graphs", lambda model: build_retriever_graphs(other)
    )
    with pytest.raises(ParityError, match="do not agree with the checkpoint"):
        export_role("retriever", RoleOptions(str(checkpoint), precision="fp32"), tmp_path / "bundle")
    assert not (tmp_path / "bundle").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [("config.json", "{}"), ("config.json", "not json"), ("config.json", None), ("model.safetensors", "")],
)
def test_what_is_no_checkpoint_is_refused(tmp_path: Path, name: str, content: str | None) -> None:
    folder = retrievers.save(tmp_path / "checkpoint")
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    with pytest.raises(ExportError, match="cannot be loaded"):
        export_role("retriever", RoleOptions(str(folder), precision="fp32"), tmp_path / "bundle")


def test_a_tokenizer_without_a_mask_is_refused(tmp_path: Path) -> None:
    folder = retrievers.save(tmp_path / "checkpoint")
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    text = json.dumps(tokenizer).replace("[MASK]", "[HIDE]")
    (folder / "tokenizer.json").write_text(text)
    for name in ("tokenizer_config.json", "special_tokens_map.json"):
        (folder / name).write_text((folder / name).read_text().replace("[MASK]", "[HIDE]"))
    with pytest.raises(ExportError, match=r"has no \[MASK\]"):
        export_role("retriever", RoleOptions(str(folder), precision="fp32"), tmp_path / "bundle")


def test_the_fixed_calls_make_sense() -> None:
    made = calls()
    assert len(made) == 64
    for call in made:
        check_retrieve(call)
        for (start, end), candidates in zip(call.mentions, call.candidates, strict=True):
            assert call.response[start:end] in [candidate.entity for candidate in candidates]
            assert len(set(candidates)) == len(candidates)
