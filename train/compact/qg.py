"""Trains answer-aware question generation: a MiniLM encoder with a three-layer decoder, on SQuAD 1.1 sentences.

The decoder starts from three layers of the same encoder (cross-attention copied from self-attention) and shares the
encoder's word embeddings, so training takes hours, not weeks. Source: the pair (answer, context); target: the question.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import BertConfig, BertLMHeadModel, BertModel, EncoderDecoderModel, PreTrainedTokenizerFast

from ..common import backbone
from ..common.corpus import Squad
from ..common.loop import ParameterGroup, Row, Schedule, fit, make_batches
from . import shortlist

MAX_SOURCE = 72
MAX_TARGET = 28
FILL = dict.fromkeys((*backbone.INPUTS, "target"), 0)
DECODER_LAYERS = (1, 3, 5)
LABEL_SMOOTHING = 0.05


def build_question_generator() -> EncoderDecoderModel:
    """The warm-started encoder-decoder, not yet trained."""
    encoder = BertModel.from_pretrained(backbone.PATH, add_pooling_layer=False)
    config = BertConfig.from_pretrained(
        backbone.PATH, is_decoder=True, add_cross_attention=True, num_hidden_layers=len(DECODER_LAYERS)
    )
    decoder = BertLMHeadModel(config)
    decoder.bert.embeddings.load_state_dict(encoder.embeddings.state_dict())
    for index, source in enumerate(DECODER_LAYERS):
        layer, origin = decoder.bert.encoder.layer[index], encoder.encoder.layer[source]
        layer.attention.load_state_dict(origin.attention.state_dict())
        layer.crossattention.load_state_dict(origin.attention.state_dict())
        layer.intermediate.load_state_dict(origin.intermediate.state_dict())
        layer.output.load_state_dict(origin.output.state_dict())
    torch.nn.init.eye_(decoder.cls.predictions.transform.dense.weight)
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


def train_question_generator(
    data: Path, out: Path, schedule: Schedule, lr: float = 1e-4, decoder_lr: float = 4e-4
) -> None:
    """Train and save an ``EncoderDecoderModel`` checkpoint in ``out``."""
    squad = Squad.read(data / "squad1_train.jsonl.gz")
    tokens = backbone.load_tokenizer()
    questions = [q for q in squad.questions if q.text.endswith("?") and 3 <= len(q.text.split()) <= 20]

    def make(index: int, rng: random.Random) -> Row:
        passage, _ = squad.cut_window(questions[index], 2 if rng.random() < 0.15 else 1, rng)
        return encode_qg_example(tokens, questions[index].answer, passage, questions[index].text)

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        return make_batches(len(questions), make, FILL, schedule, start)

    model = build_question_generator()
    backbone.freeze_word_embeddings(model)
    encoder = [p for p in model.encoder.parameters() if p.requires_grad]
    decoder = [p for p in model.decoder.parameters() if p.requires_grad]
    fit(model, [ParameterGroup(encoder, lr), ParameterGroup(decoder, decoder_lr)], feed, question_loss, schedule, out)
    model.save_pretrained(out)
    tokens.save_pretrained(out)
    (out / shortlist.FILE).write_text("\n".join(shortlist.select_frequent_tokens(data)) + "\n", encoding="utf-8")


def question_loss(model: EncoderDecoderModel, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Label-smoothed cross-entropy of the target question, teacher-forced."""
    target = batch["target"]
    logits = model(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        encoder_outputs=model.encoder(
            input_ids=batch["input_ids"],
            attention_mask=batch["attention_mask"],
            token_type_ids=batch["token_type_ids"],
        ),
        decoder_input_ids=target[:, :-1],
        decoder_attention_mask=(target[:, :-1] != 0).long(),
        use_cache=False,
    ).logits
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), target[:, 1:].flatten(), ignore_index=0, label_smoothing=LABEL_SMOOTHING
    )


def encode_qg_example(tokens: PreTrainedTokenizerFast, answer: str, context: str, question: str) -> Row:
    """Source and target ids of an example."""
    source = tokens(answer, context, truncation="only_second", max_length=MAX_SOURCE)
    row: Row = {name: source[name] for name in backbone.INPUTS}
    return row | {"target": tokens(question, truncation=True, max_length=MAX_TARGET)["input_ids"]}
