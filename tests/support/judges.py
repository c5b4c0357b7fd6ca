"""Tiny generative checkpoints that answer prompts: the classes of the models that people ask about support."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    GPT2TokenizerFast,
    T5Config,
    T5ForTokenClassification,
)

from groundwire.export import JudgeSettings
from groundwire.runtime.bundles.manifest import Template

from . import models

MAX_TOKENS = 256
"""The window of every family; a BART reads no more than ``models.MAX_TOKENS``."""
CHAT_TOKENS = ["<|im_start|>", "<|im_end|>"]
CHAT = Template(
    "<|im_start|>user\nDocument: {premise}\nClaim: {hypothesis}<|im_end|>\n"
    "<|im_start|>assistant\n<think>\n\n</think>\n\n"
)
T5 = Template("predict: {premise}</s>{hypothesis}</s>")
HHEM = Template(
    "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {premise}\n\nHypothesis: {hypothesis}</s>"
)
BART = Template("<s>{premise}</s></s>{hypothesis}</s>")
CAUSAL: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": MAX_TOKENS},
    "llama": {"num_key_value_heads": 2},
    "mistral": {"num_key_value_heads": 2, "sliding_window": None},
    "qwen2": {"num_key_value_heads": 2},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 16},
    "granite": {"num_key_value_heads": 2, "logits_scaling": 6.0, "embedding_multiplier": 3.0},
    "gemma2": {"num_key_value_heads": 2, "head_dim": 8, "final_logit_softcapping": 2.0},
}
"""The configuration of a family beside the sizes that most have in common."""
YES_NO = ("no", "yes")


def chat_tokenizer() -> GPT2TokenizerFast:
    """A byte-level tokenizer with a chat's special tokens, one token more that is not special, and a chat template."""
    tokenizer = models.byte_pairs_gpt2()
    tokenizer.add_special_tokens({"additional_special_tokens": CHAT_TOKENS})
    tokenizer.add_tokens(["<think>", "</think>"])
    tokenizer.chat_template = (
        "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% if not think %}<think>\n\n</think>\n\n{% endif %}"
        "{% endif %}"
    )
    return tokenizer


def _build_causal(family: str) -> models.Checkpoint:
    tokenizer = chat_tokenizer()
    sizes = {} if family == "gpt2" else {**models.SIZES, "max_position_embeddings": MAX_TOKENS}
    config = AutoConfig.for_model(
        family,
        **{
            "vocab_size": len(tokenizer),
            "initializer_range": 0.3,
            "pad_token_id": 0,
            "eos_token_id": 0,
            "bos_token_id": 0,
            **sizes,
            **CAUSAL[family],
        },
    )
    return AutoModelForCausalLM.from_config(config), tokenizer


def write(folder: Path, family: str, seed: int = 0) -> Path:
    """Write a checkpoint of one of ``FAMILIES``; return ``folder``."""
    if family in models.ENCODER_DECODERS:
        return models.encoder_decoder(folder, family, seed)
    return models._save(folder, seed, lambda: _build_causal(family))


def write_foundation(folder: Path) -> Path:
    """Write T5's token classifier; return ``folder``."""
    tokenizer = models.unigrams_t5()
    config = T5Config(
        vocab_size=len(tokenizer),
        d_model=32,
        d_kv=8,
        d_ff=64,
        num_layers=2,
        num_heads=4,
        relative_attention_num_buckets=8,
        relative_attention_max_distance=16,
        initializer_factor=3.0,
    )
    return models._save(folder, 0, lambda: (T5ForTokenClassification(config), tokenizer))


def write_hhem(folder: Path, foundation: Path) -> Path:
    """Write the weights of ``foundation`` as HHEM-2.1's repository has them; return ``folder``."""
    folder.mkdir(parents=True)
    weights = {f"t5.{name}": tensor for name, tensor in load_file(foundation / "model.safetensors").items()}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    content = {
        "model_type": "HHEMv2",
        "architectures": ["HHEMv2ForSequenceClassification"],
        "auto_map": {"AutoConfig": "configuration_hhem_v2.HHEMv2Config"},
        "foundation": str(foundation),
    }
    (folder / "config.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def settings(family: str, **others: Any) -> JudgeSettings:
    """How a family's checkpoint is asked."""
    if family == "hhem":
        return JudgeSettings(("unsupported", "supported"), template=HHEM, **others)
    template = T5 if family.startswith("t5") else BART if family == "bart" else CHAT
    labels = ("0", "1") if family.startswith("t5") else YES_NO
    return JudgeSettings(labels, (labels[1],), template, **others)


FAMILIES = ("t5", "t5-gated", "bart", "hhem", *CAUSAL)


def make_reference(folder: Path, family: str) -> Callable[[str], torch.Tensor]:
    """Return what transformers answers: the two logits of the filled prompt, by the publishers' own steps."""
    from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

    if family == "hhem":
        foundation = folder.with_name("t5-foundation")
        classifier = T5ForTokenClassification.from_pretrained(foundation).eval()
        tokenizer = AutoTokenizer.from_pretrained(foundation)
        return lambda prompt: classifier(**tokenizer(prompt, add_special_tokens=False, return_tensors="pt")).logits[
            0, 0
        ]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    labels = settings(family).labels or ()
    ids = [tokenizer(label, add_special_tokens=False).input_ids[0] for label in labels]
    auto_class = AutoModelForCausalLM if family in CAUSAL else AutoModelForSeq2SeqLM
    model = auto_class.from_pretrained(folder, attn_implementation="eager").eval()

    def answer(prompt: str) -> torch.Tensor:
        inputs = tokenizer(prompt, add_special_tokens=False, return_tensors="pt")
        if family in CAUSAL:
            return model(input_ids=inputs.input_ids, attention_mask=inputs.attention_mask).logits[0, -1, ids]
        start = torch.full((1, 1), model.config.decoder_start_token_id)
        return model(input_ids=inputs.input_ids, attention_mask=inputs.attention_mask, decoder_input_ids=start).logits[
            0, 0, ids
        ]

    return answer
