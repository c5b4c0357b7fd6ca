"""A checkpoint in llama.cpp's format loads as the same model in transformers' format does."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import torch
from torch import Tensor

from groundwire.export import RoleOptions
from groundwire.export.roles.registry import KINDS
from tests.support.graphs import Loader

PARTS = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
"""Names of parts of a model: transformers' and llama.cpp's."""


def write_gguf(path: Path, model: torch.nn.Module, tokenizer: str) -> None:
    """Write a Llama checkpoint and its byte pairs."""
    config, bpe = model.config, json.loads(tokenizer)["model"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_theta)
    writer.add_vocab_size(config.vocab_size)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(sorted(bpe["vocab"], key=bpe["vocab"].get))
    writer.add_token_merges([" ".join(merge) for merge in bpe["merges"]])
    writer.add_bos_token_id(2)
    writer.add_eos_token_id(2)
    for name, value in model.state_dict().items():
        writer.add_tensor(rename(name), permute(name, value, config).contiguous().numpy())
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def rename(name: str) -> str:
    """llama.cpp's name of a tensor."""
    body = name.removesuffix(".weight")
    block = ""
    if body.startswith("model.layers."):
        index, body = body.removeprefix("model.layers.").split(".", 1)
        block = f"blk.{index}."
    return f"{block}{PARTS[body]}.weight"


def permute(name: str, value: Tensor, config: object) -> Tensor:
    """llama.cpp turns neighbouring rows of queries and keys together, transformers rows that are half a head apart."""
    heads = {"q_proj": "num_attention_heads", "k_proj": "num_key_value_heads"}
    for part, field in heads.items():
        if part in name:
            return value.reshape(getattr(config, field), 2, -1, value.shape[1]).swapaxes(1, 2).reshape(value.shape)
    return value


def test_a_gguf_file_is_the_model_that_was_written(load: Loader, tmp_path: Path) -> None:
    original = load("language_model", "llama")
    path = tmp_path / "tiny.gguf"
    write_gguf(path, original.model, original.tokenizer)
    read = KINDS["language_model"].load(RoleOptions(str(path)))
    assert (read.name, read.max_tokens) == ("tiny.gguf", original.max_tokens)
    for name, value in original.model.state_dict().items():
        torch.testing.assert_close(read.model.state_dict()[name], value)
    written, source = (json.loads(checkpoint.tokenizer)["model"] for checkpoint in (read, original))
    assert (written["vocab"], written["merges"]) == (source["vocab"], source["merges"])
