"""The question generator's architecture: BERT's encoder and a BERT decoder of a few layers."""

from __future__ import annotations

from transformers import BertConfig, BertLMHeadModel, BertModel, EncoderDecoderModel

from . import backbone


def build_question_decoder(layers: int) -> BertLMHeadModel:
    """A decoder of so many layers with cross-attention, in the backbone's sizes; its weights are random."""
    return BertLMHeadModel(
        BertConfig.from_pretrained(backbone.PATH, is_decoder=True, add_cross_attention=True, num_hidden_layers=layers)
    )


def join_question_generator(encoder: BertModel, decoder: BertLMHeadModel) -> EncoderDecoderModel:
    """The model of both; ``decoder`` writes between the backbone's first and last special token."""
    decoder.tie_weights()
    model = EncoderDecoderModel(encoder=encoder, decoder=decoder)
    tokens = backbone.load_tokenizer()
    start, end, pad = tokens.cls_token_id, tokens.sep_token_id, tokens.pad_token_id
    model.config.update(
        {"decoder_start_token_id": start, "eos_token_id": end, "pad_token_id": pad, "bos_token_id": start}
    )
    generation = model.generation_config
    generation.decoder_start_token_id = start
    generation.eos_token_id, generation.pad_token_id, generation.bos_token_id = end, pad, start
    return model
