"""Whole exports: checkpoint directories in, bundles out."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import onnx
import pytest
import torch
from transformers import BertConfig, BertModel

from groundwire.export import Gate, QuestionGeneratorSettings, RoleOptions, Title, export_bundle, export_role, store
from groundwire.export.roles.registry import KINDS
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import ClassifierRole, ExtractiveQARole, QuestionGeneratorRole, Template
from groundwire.runtime.errors import ExportError
from groundwire.runtime.local import LocalRuntime
from tests.support import models
from tests.support.commands import command, invoke_export
from tests.support.processor import exact_products
from tests.support.span_pipelines import train_tiny
from tests.support.usage import usage_error

Folder = Callable[[str, str], Path]
LOOSE = Gate(decision_agreement=0.5, span_agreement=0.3, max_error=2.0)
"""Random weights round badly; what int8 does to trained ones is measured where there are some."""
PAIR = Template("{answer}", "{context}")


def external(bundle: Bundle, graph: str) -> dict[str, int]:
    """Offset in weights.bin of every weight that lies there."""
    proto = onnx.load(bundle.directory / graph, load_external_data=False)
    return {
        tensor.name: int(next(entry.value for entry in tensor.external_data if entry.key == "offset"))
        for tensor in proto.graph.initializer
        if tensor.external_data
    }


def test_a_bundle_with_one_backbone(folder: Folder, tmp_path: Path) -> None:
    """As in the embedded bundle, extractive QA, classifier and both halves of the generator share word embeddings."""
    words = torch.randn(models.word_pieces().vocab_size, models.HIDDEN)
    for kind, name in (("extractive_qa", "qa"), ("classifier", "nli"), ("question_generator", "qg")):
        loaded = KINDS[kind].load(RoleOptions(str(folder(kind, "bert"))))  # type: ignore[arg-type]
        for module in loaded.model.modules():
            if hasattr(module, "word_embeddings"):
                module.word_embeddings.weight.data.copy_(words)
        loaded.model.save_pretrained(tmp_path / name)
        (tmp_path / name / "tokenizer.json").write_text(loaded.tokenizer)
        for config in ("tokenizer_config.json", "special_tokens_map.json"):
            (tmp_path / name / config).write_bytes((folder(kind, "bert") / config).read_bytes())  # type: ignore[arg-type]
    stages: list[tuple[str, str]] = []
    roles = {
        "qa": RoleOptions(str(tmp_path / "qa"), precision="fp32"),
        "nli": RoleOptions(str(tmp_path / "nli"), precision="fp32"),
        "qg": RoleOptions(
            str(tmp_path / "qg"), QuestionGeneratorSettings(PAIR, strip_prefix="q: "), precision="fp32", max_tokens=48
        ),
    }
    out = tmp_path / "bundle"
    bundle = export_bundle(
        roles, out, title=Title("tiny", license="Apache-2.0"), watch=lambda role, stage: stages.append((role, stage))
    )
    bundle.verify()
    assert [stage for role, stage in stages if role == "qa"] == [
        "load", "convert", "optimize", "quantize", "verify", "save",
    ]  # fmt: skip
    offsets = [
        external(bundle, graph)[name]
        for graph, name in (
            ("qa.onnx", "bert.embeddings.word_embeddings.weight"),
            ("nli.onnx", "bert.embeddings.word_embeddings.weight"),
            ("qg.encoder.onnx", "encoder.embeddings.word_embeddings.weight"),
            ("qg.decoder.onnx", "embed.words.weight"),
        )
    ]
    assert len(set(offsets)) == 1
    qa, nli, qg = (bundle.manifest.roles[name] for name in ("qa", "nli", "qg"))
    assert isinstance(qa, ExtractiveQARole)
    assert isinstance(nli, ClassifierRole)
    assert isinstance(qg, QuestionGeneratorRole)
    assert (qa.source, qa.architecture, qa.precision, qa.max_tokens, qa.pad_id) == (
        "qa", "BertForQuestionAnswering", "fp32", models.MAX_TOKENS, 0,
    )  # fmt: skip
    assert nli.labels == models.LABELS
    assert (qg.template, qg.strip_prefix, qg.max_tokens) == (PAIR, "q: ", 48)
    assert (qg.eos_ids, qg.start_id, qg.layers, qg.heads, qg.head_dim) == ((3,), 2, 2, 4, 8)
    for role in (qa, nli, qg):
        assert role.parity is not None
        assert (role.parity.gate, role.parity.decision_agreement, role.parity.texts) == ("passed", 1.0, 64)
        assert role.parity.max_logit_error < 1e-3
        content = json.loads(bundle.file(role.tokenizer).read_text())
        assert content["truncation"] is None


@exact_products
def test_int8_end_to_end(folder: Folder, tmp_path: Path) -> None:
    bundle = export_bundle(
        {
            "qa": RoleOptions(str(folder("extractive_qa", "albert")), gate=LOOSE),
            "qg": RoleOptions(str(folder("question_generator", "t5")), gate=LOOSE),
        },
        tmp_path / "b",
    )
    for role in bundle.manifest.roles.values():
        assert isinstance(role, (ExtractiveQARole, QuestionGeneratorRole))
        assert role.precision == "int8"
        assert role.parity is not None
        assert 0 < role.parity.max_logit_error < 2 * role.parity.logit_std


def test_max_tokens_of_offset_positions(folder: Folder, tmp_path: Path) -> None:
    """RoBERTa's position table has two rows more than its window."""
    role = export_role(
        "nli", RoleOptions(str(folder("classifier", "roberta")), precision="fp32"), tmp_path / "b"
    ).manifest.roles["nli"]
    assert isinstance(role, ClassifierRole)
    assert (role.max_tokens, role.pad_id) == (models.MAX_TOKENS, 1)


def test_failures_leave_no_trace(folder: Folder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "b"
    with pytest.raises(ExportError, match="There is no directory"):
        export_role("qa", RoleOptions(str(tmp_path / "nowhere")), out)
    models.classifier(tmp_path / "plain", "bert", labels=("LABEL_0", "LABEL_1", "LABEL_2"))
    with pytest.raises(ExportError, match="does not say what its logits mean"):
        export_role("nli", RoleOptions(str(tmp_path / "plain")), out)
    monkeypatch.setattr(store, "sha256", lambda path: (_ for _ in ()).throw(OSError("disk")))
    with pytest.raises(OSError, match="disk"):
        export_role("qa", RoleOptions(str(folder("extractive_qa", "bert")), precision="fp32"), out)
    assert [path.name for path in tmp_path.iterdir()] == ["plain"]


def test_a_checkpoint_without_a_head_is_refused(tmp_path: Path) -> None:
    tokenizer = models.word_pieces()
    config = BertConfig(vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2)
    BertModel(config).save_pretrained(tmp_path / "c")
    tokenizer.save_pretrained(tmp_path / "c")
    with pytest.raises(ExportError, match=r"the kind extractive_qa needs \(qa_outputs.bias, qa_outputs.weight\)"):
        export_role("qa", RoleOptions(str(tmp_path / "c")), tmp_path / "b")


def test_spans_from_a_directory(tmp_path: Path) -> None:
    train_tiny("ud").to_disk(tmp_path / "pipeline")
    bundle = export_role("spans", RoleOptions(str(tmp_path / "pipeline")), tmp_path / "b")
    assert (bundle.file("spans") / "config.cfg").is_file()
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.cfg").write_text("[nlp]")
    with pytest.raises(ExportError, match=r"do not run, so nothing was written: .* is not the configuration"):
        export_role("spans", RoleOptions(str(tmp_path / "broken")), tmp_path / "b", force=True)
    with pytest.raises(ExportError, match="No spaCy pipeline 'xx_none'"):
        export_role("spans", RoleOptions("xx_none"), tmp_path / "b", force=True)


def test_command(folder: Folder, tmp_path: Path) -> None:
    models.classifier(tmp_path / "plain", "bert", labels=("LABEL_0", "LABEL_1", "LABEL_2"))
    arguments = ["nli", "--source", str(tmp_path / "plain"), "--out", str(tmp_path / "b"), "--precision", "fp32"]
    with pytest.raises(ExportError, match="does not say what its logits mean"):
        command(*arguments)
    output = command(*arguments, "--labels", "contradiction, entailment,neutral", "--set", "max_tokens=32")
    assert "nli plain fp32 (passed: 100.0% of decisions equal" in output
    role = Bundle.open(tmp_path / "b").manifest.roles["nli"]
    assert isinstance(role, ClassifierRole)
    assert (role.labels, role.max_tokens) == (("contradiction", "entailment", "neutral"), 32)
    with pytest.raises(ExportError, match="pass --force"):
        command(*arguments, "--labels", "contradiction,entailment,neutral")
    assert "nli" in command(*arguments, "--labels", "neutral,entailment,contradiction", "--force")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["qa", "--out", "b"], "with --source"),
        (["poet", "--source", "x", "--out", "b"], "Unknown preset or role 'poet'"),
        (["paper-q2", "--labels", "a,b,c", "--out", "b"], "--labels belong to one role"),
        (["paper-q2", "--replace", "qa", "--out", "b"], "not ROLE=ID_OR_DIR"),
        (["qg", "--source", "x", "--set", "template_second={context}", "--out", "b"], "needs template"),
    ],
)
def test_command_refusals(arguments: list[str], message: str) -> None:
    assert message in usage_error(invoke_export(*arguments))


def test_help_has_an_example_to_copy() -> None:
    output = command("--help")
    assert "groundwire export paper-q2 --out paper-q2" in output
    assert "PRESET|ROLE" in output


def test_the_command_is_cheap_to_import() -> None:
    heavy = {"torch", "transformers", "onnx", "onnxruntime"}
    code = f"import sys, groundwire.cli.export; print({heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "set()\n"


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    import groundwire.export

    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "onnx" else object())
    with pytest.raises(ImportError, match=r"needs onnx; run: pip install 'groundwire\[export\]'"):
        groundwire.export.require()
    with pytest.raises(ExportError, match="pip install"):
        command("qa", "--source", "x", "--out", "b")


def test_public_names() -> None:
    import groundwire.export

    for name in groundwire.export.__all__:
        assert getattr(groundwire.export, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        groundwire.export.nothing  # noqa: B018


def test_an_export_records_what_its_models_compute(folder: Folder, tmp_path: Path) -> None:
    out = tmp_path / "bundle"
    first = export_role("qa", RoleOptions(str(folder("extractive_qa", "bert")), precision="fp32"), out)
    assert isinstance(first.manifest.canaries, dict)
    assert first.manifest.canaries == LocalRuntime.load(out, "cpu").record_canaries()
    marked = {"qa": tuple(msgspec.structs.replace(canary, numbers=()) for canary in first.manifest.canaries["qa"])}
    first.record(marked)
    second = export_role("nli", RoleOptions(str(folder("classifier", "bert")), precision="fp32"), out)
    assert isinstance(second.manifest.canaries, dict)
    assert second.manifest.canaries["qa"] == marked["qa"]
    assert second.manifest.canaries["nli"] == LocalRuntime.load(out, "cpu").record_canaries()["nli"]
    options = RoleOptions(str(folder("extractive_qa", "bert")), precision="fp32")
    third = export_role("qa", options, out, force=True)
    assert third.manifest.canaries == first.manifest.canaries | {"nli": second.manifest.canaries["nli"]}
