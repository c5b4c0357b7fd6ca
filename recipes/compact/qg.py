"""Trains answer-aware question generation: a MiniLM encoder with a small decoder, on sentences of SQuAD 1.1 and QAMR.

The decoder starts from layers of the same encoder (cross-attention copied from self-attention) and shares the
encoder's word embeddings, so training takes hours, not weeks. Source: the pair (answer, context); target: the question.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import torch
from transformers import BertModel, EncoderDecoderModel, PreTrainedTokenizerFast

from ..common import backbone
from ..common.corpus import Squad, read_rows
from ..common.loop import ParameterGroup, Row, Schedule, fit, make_batches
from ..common.question_model import build_question_decoder, join_question_generator
from . import qa, shortlist

MAX_SOURCE = 72
MAX_TARGET = 28
FILL = dict.fromkeys((*backbone.INPUTS, "target"), 0)
QAMR_SHARE = 0.25
"""Share of the QAMR questions that are used: each of its sentences has dozens, and they are plainer than SQuAD's."""
LABEL_SMOOTHING = 0.05


def build_question_generator(layers: int = 3, start: Path | None = None) -> EncoderDecoderModel:
    """The encoder-decoder before training: MiniLM's layers, or the checkpoint ``start``, with so many decoder layers.

    A checkpoint of more layers keeps as many, at even distances, its last one among them. ValueError for more layers
    than there are to start from.
    """
    if start is not None:
        model = EncoderDecoderModel.from_pretrained(start)
        model.encoder.pooler = None
        chosen = choose_layers(layers, model.decoder.config.num_hidden_layers)
        stack = model.decoder.bert.encoder
        stack.layer = torch.nn.ModuleList(stack.layer[index] for index in chosen)
        model.decoder.config.num_hidden_layers = model.config.decoder.num_hidden_layers = layers
        for index, layer in enumerate(stack.layer):
            layer.attention.self.layer_idx = layer.crossattention.self.layer_idx = index
        return model
    encoder = BertModel.from_pretrained(backbone.PATH, add_pooling_layer=False)
    decoder = build_question_decoder(layers)
    decoder.bert.embeddings.load_state_dict(encoder.embeddings.state_dict())
    for index, source in enumerate(choose_layers(layers, encoder.config.num_hidden_layers)):
        layer, origin = decoder.bert.encoder.layer[index], encoder.encoder.layer[source]
        layer.attention.load_state_dict(origin.attention.state_dict())
        layer.crossattention.load_state_dict(origin.attention.state_dict())
        layer.intermediate.load_state_dict(origin.intermediate.state_dict())
        layer.output.load_state_dict(origin.output.state_dict())
    torch.nn.init.eye_(decoder.cls.predictions.transform.dense.weight)
    return join_question_generator(encoder, decoder)


def choose_layers(count: int, available: int) -> list[int]:
    """Indices of ``count`` of ``available`` layers at even distances; the last is among them.

    >>> choose_layers(3, 6), choose_layers(2, 3)
    ([1, 3, 5], [0, 2])
    """
    if not 1 <= count <= available:
        raise ValueError(f"A decoder of {count} layers cannot start from {available}; give 1 to {available}.")
    return [(index + 1) * available // count - 1 for index in range(count)]


def train_question_generator(
    data: Path,
    out: Path,
    schedule: Schedule,
    layers: int = 3,
    start: Path | None = None,
    lr: float = 1e-4,
    decoder_lr: float = 4e-4,
) -> None:
    """Train and save an ``EncoderDecoderModel`` checkpoint in ``out``; ``start`` is one to continue from."""
    squad = Squad.read(data / qa.ANSWERABLE)
    if (data / qa.QAMR).is_file():
        rows = list(read_rows(data / qa.QAMR))
        squad = squad.add_questions(random.Random(3).sample(rows, int(len(rows) * QAMR_SHARE)))
    tokens = backbone.load_tokenizer()
    questions = [q for q in squad.questions if q.text.endswith("?") and 3 <= len(q.text.split()) <= 20]

    def make(index: int, rng: random.Random) -> Row:
        passage, _ = squad.cut_window(questions[index], 2 if rng.random() < 0.15 else 1, rng)
        return encode_qg_example(tokens, questions[index].answer, passage, questions[index].text)

    def feed(first: int) -> Iterator[dict[str, torch.Tensor]]:
        return make_batches(len(questions), make, FILL, schedule, first)

    model = build_question_generator(layers, start)
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
