"""Random checkpoints of the paper's architectures at true size, and their bundles, kept in a work directory.

Timing a graph needs no trained weights: the cost of a forward pass depends on shapes alone. Vocabulary sizes are the
true ones, because a generator's head and top-k over 32,128 tokens are part of its time. The three tokenizers split text
into words and share the words ``w00000``, ``w00001``, … that fill their vocabularies, so a generated question of 20
tokens is 20 tokens for extractive QA and the classifier too, whichever words it has: work is equal by construction.
"""

from __future__ import annotations

import hashlib
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

import onnx
import torch
from rich.console import Console
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import (
    AlbertConfig,
    AlbertForQuestionAnswering,
    BartConfig,
    BartForConditionalGeneration,
    BertConfig,
    BertForSequenceClassification,
    BloomConfig,
    BloomForCausalLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForSequenceClassification,
    RobertaModel,
    T5Config,
    T5ForConditionalGeneration,
)

import groundwire.export
from groundwire.export import RoleOptions, export_role
from groundwire.export.checkpoint import Checkpoint
from groundwire.runtime.bundles.bundle import MANIFEST, Bundle

from . import spans
from .dialogues import examples

LABELS = ("contradiction", "entailment", "neutral")
WINDOW = 512
NAMES = {
    "qa": "ALBERT-xlarge",
    "nli": "RoBERTa-large",
    "qg": "T5-base",
    "lm": "BLOOM-560m",
    "detector.consistency": "BERT-base",
    "detector.verifiability": "BERT-base",
    "embedder": "RoBERTa-large, 17 layers",
}
Precision: TypeAlias = Literal["fp32", "fp16", "int8"]


@dataclass(frozen=True)
class Size:
    """Widths and depths of the models."""

    name: str
    albert: dict[str, int]
    roberta: dict[str, int]
    t5: dict[str, int]
    bloom: dict[str, int]
    bart: dict[str, int]
    bert: dict[str, int]
    embedder: dict[str, int]
    """What the embedder's RoBERTa has otherwise."""


PAPER = Size(
    "paper",
    albert={
        "vocab_size": 30_000,
        "embedding_size": 128,
        "hidden_size": 2048,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 8192,
    },
    roberta={
        "vocab_size": 50_265,
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    },
    t5={"vocab_size": 32_128, "d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12},
    bloom={"vocab_size": 250_880, "hidden_size": 1024, "n_layer": 24, "n_head": 16},
    bart={
        "vocab_size": 50_265,
        "d_model": 1024,
        "encoder_layers": 12,
        "decoder_layers": 12,
        "encoder_attention_heads": 16,
        "decoder_attention_heads": 16,
        "encoder_ffn_dim": 4096,
        "decoder_ffn_dim": 4096,
        "max_position_embeddings": 1024,
    },
    bert={
        "vocab_size": 30_522,
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
    },
    embedder={"num_hidden_layers": 17},
)
TINY = Size(
    "tiny",
    albert={
        "vocab_size": 900,
        "embedding_size": 32,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
    },
    roberta={
        "vocab_size": 1_000,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
    },
    t5={"vocab_size": 800, "d_model": 64, "d_kv": 32, "d_ff": 128, "num_layers": 2, "num_heads": 4},
    bloom={"vocab_size": 4 * 2048, "hidden_size": 64, "n_layer": 2, "n_head": 4},
    bart={
        "vocab_size": 1_000,
        "d_model": 64,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 128,
        "decoder_ffn_dim": 128,
        "max_position_embeddings": 256,
    },
    bert={
        "vocab_size": 1_000,
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 128,
    },
    embedder={"num_hidden_layers": 2},
)


def checkpoints(work: Path, size: Size) -> dict[str, Path]:
    """The checkpoint directories of the roles qa, nli, qg and spans, written if missing."""
    folders = {role: checkpoint(work, size, role) for role in ("qa", "nli", "qg")}
    return folders | {"spans": spans.pipeline(folders["qa"].parent / "random-spans")}


def checkpoint(work: Path, size: Size, role: str) -> Path:
    """The checkpoint directory of a role of ``NAMES``, written if missing.

    The words of the examples are in every vocabulary.
    """
    texts = [text.lower() for dialogue in examples() for text in (dialogue.response, *dialogue.knowledge)]
    words = list(dict.fromkeys(word for text in texts for word in re.findall(r"\w+|[^\w\s]+", text)))
    digest = hashlib.sha256(" ".join(("lower", *words)).encode()).hexdigest()[:8]
    builders: dict[str, Callable[[], tuple[Any, Tokenizer]]] = {
        "qa": lambda: _albert(size.albert, words),
        "nli": lambda: _roberta(size.roberta, words),
        "qg": lambda: _t5(size.t5, words),
        "lm": lambda: _bloom(size.bloom, words),
        "detector.consistency": lambda: _bert(size.bert, words),
        "detector.verifiability": lambda: _bert(size.bert, words),
        "embedder": lambda: _embedder({**size.roberta, **size.embedder}, words),
    }
    name = "-".join([*re.findall(r"[\w-]+", NAMES[role].lower()), *role.split(".")[1:]])
    folder = work / f"{size.name}-checkpoints-{digest}" / f"random-{name}"
    if not (folder / "tokenizer.json").exists():
        torch.manual_seed(0)
        model, tokenizer = builders[role]()
        model.eval().save_pretrained(folder)
        fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=WINDOW, **_SPECIAL[role])
        # Written last: its presence says that the checkpoint is complete.
        fast.save_pretrained(folder)
    return folder


def language_model(work: Path, size: Size) -> Path:
    """The checkpoint directory of BLOOM, written if missing; its words are w00000, w00001, …"""
    folder = work / f"{size.name}-bloom-checkpoints" / "random-bloom"
    if not (folder / "tokenizer.json").exists():
        torch.manual_seed(0)
        model, tokenizer = _bloom(size.bloom, ["document", "agent", ":", "."])
        model.eval().save_pretrained(folder)
        fast = PreTrainedTokenizerFast(tokenizer_object=tokenizer, **_SPECIAL["lm"])
        # Written last: its presence says that the checkpoint is complete.
        fast.save_pretrained(folder)
    return folder


PEAKED = 6.0
"""The last norm of BART times this, so that a top-p set has a few tokens, as after training, and not half of them."""


def response_generator(size: Size) -> Checkpoint:
    """Return BART as the exporter loads it, in memory; it never ends a response; its words are w00000, w00001, …"""
    torch.manual_seed(0)
    model = BartForConditionalGeneration(BartConfig(**size.bart, forced_eos_token_id=None)).eval()
    with torch.no_grad():
        model.final_logits_bias[:, model.config.eos_token_id] = -100.0
        model.model.decoder.layers[-1].final_layer_norm.weight *= PEAKED
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    tokenizer = _words(specials, ["document", "agent", ":", "."], size.bart["vocab_size"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return Checkpoint(model, tokenizer.to_str(), "random-bart", None, size.bart["max_position_embeddings"], 1)


def bundle(work: Path, sources: dict[str, Path], precision: Precision) -> Bundle:
    """Return a bundle with at least the roles of ``sources``; export the roles that this exporter has not exported yet.

    Roles are exported one after another, so that only one model is in memory and an interrupted run can continue.
    Parity is waived where it fails, and the manifest records that: with random weights the best and the second best
    logit are as close as noise, so that disagreement means nothing.
    """
    prefix = next(iter(sources.values())).parent.name.replace("checkpoints", precision)
    folder = work / f"{prefix}-{exporter()}"
    for stale in set(work.glob(f"{prefix}-*")) - {folder}:
        shutil.rmtree(stale)
    there = Bundle.open(folder).manifest.roles if (folder / MANIFEST).exists() else {}
    with Console(stderr=True).status("export") as line:

        def watch(role: str, stage: str) -> None:
            line.update(f"{precision} {role}: {stage}")

        for role, source in sources.items():
            if role not in there:
                options = RoleOptions(str(source), precision=precision, allow_unverified=True)
                export_role(
                    role, options, folder, watch=lambda role, stage: line.update(f"{precision} {role}: {stage}")
                )
    return Bundle.open(folder)


def graph_bytes(opened: Bundle, role: str) -> int:
    """Return the bytes of a role's graph files, of those for targets if it has any, and of their external weights."""
    record = opened.manifest.roles[role]
    paths = [opened.file(name) for name in record.target_files or record.graph_files]
    outside: dict[tuple[str, int], int] = {}
    for path in paths:
        for tensor in onnx.load(path, load_external_data=False).graph.initializer:
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                extent = {entry.key: entry.value for entry in tensor.external_data}
                outside[extent["location"], int(extent["offset"])] = int(extent["length"])
    return sum(path.stat().st_size for path in paths) + sum(outside.values())


_SPECIAL: dict[str, dict[str, str]] = {
    "qa": {"pad_token": "<pad>", "unk_token": "<unk>", "cls_token": "[CLS]", "sep_token": "[SEP]"},
    "nli": {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"},
    "qg": {"pad_token": "<pad>", "unk_token": "<unk>", "eos_token": "</s>"},
    "lm": {"pad_token": "<pad>", "unk_token": "<unk>"},
}
_SPECIAL |= {"embedder": _SPECIAL["nli"]}
_SPECIAL |= dict.fromkeys(("detector.consistency", "detector.verifiability"), _SPECIAL["qa"])


_ROBERTA = {"max_position_embeddings": WINDOW + 2, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
_NAMED_LABELS: dict[str, Any] = {
    "num_labels": len(LABELS),
    "id2label": dict(enumerate(LABELS)),
    "label2id": {label: index for index, label in enumerate(LABELS)},
}


def _albert(size: dict[str, int], words: list[str]) -> tuple[Any, Tokenizer]:
    config = AlbertConfig(**size, hidden_act="gelu_new", max_position_embeddings=WINDOW)
    return AlbertForQuestionAnswering(config), _paired_words(size, words)


def _paired_words(size: dict[str, int], words: list[str]) -> Tokenizer:
    tokenizer = _words(["<pad>", "<unk>", "[CLS]", "[SEP]"], words, size["vocab_size"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return tokenizer


def _roberta(size: dict[str, int], words: list[str]) -> tuple[Any, Tokenizer]:
    config = RobertaConfig(**size, **_ROBERTA, **_NAMED_LABELS)
    return RobertaForSequenceClassification(config), _roberta_words(size, words)


def _embedder(size: dict[str, int], words: list[str]) -> tuple[Any, Tokenizer]:
    return RobertaModel(RobertaConfig(**size, **_ROBERTA), add_pooling_layer=False), _roberta_words(size, words)


def _roberta_words(size: dict[str, int], words: list[str]) -> Tokenizer:
    tokenizer = _words(["<s>", "<pad>", "</s>", "<unk>"], words, size["vocab_size"])
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return tokenizer


def _bert(size: dict[str, int], words: list[str]) -> tuple[Any, Tokenizer]:
    config = BertConfig(**size, max_position_embeddings=WINDOW, **_NAMED_LABELS)
    return BertForSequenceClassification(config), _paired_words(size, words)


def _bloom(size: dict[str, int], words: list[str]) -> tuple[Any, Tokenizer]:
    model = BloomForCausalLM(BloomConfig(**size, seq_length=2048))
    return model, _words(["<unk>", "<s>", "</s>", "<pad>"], words, size["vocab_size"])


def _t5(size: dict[str, int], words: list[str]) -> tuple[Any, Tokenizer]:
    config = T5Config(**size, decoder_start_token_id=0)
    tokenizer = _words(["<pad>", "</s>", "<unk>"], words, size["vocab_size"])
    tokenizer.post_processor = processors.TemplateProcessing(single="$A </s>", special_tokens=[("</s>", 1)])
    return T5ForConditionalGeneration(config), tokenizer


def _words(specials: list[str], words: list[str], size: int) -> Tokenizer:
    listed = [*specials, *(word for word in words if word not in specials)]
    filler = (f"w{number:05d}" for number in range(size - len(listed)))
    vocabulary = {word: index for index, word in enumerate([*listed, *filler])}
    if len(vocabulary) != size:
        raise ValueError(f"{len(listed)} words do not fit a vocabulary of {size}")
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.add_special_tokens(specials)
    return tokenizer


def exporter() -> str:
    """Eight digits that change with the exporter's code, so that no graph of another version is timed."""
    digest = hashlib.sha256()
    for root in groundwire.export.__path__:
        for path in sorted(Path(root).rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:8]
