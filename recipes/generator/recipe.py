"""Fine-tunes a response generator, an encoder-decoder or causal LM, on {knowledge, history, response} rows.

PMI-Decode reads the dialogue twice, with the knowledge and without, in the exporter's prompt (``export.options``). An
encoder-decoder reads the prompt as one text; a causal model reads its parts without special tokens, as the runtime
does, followed by the response and an end token.

The PMI-Faith paper fine-tunes BART-large on FaithDial, Topical-Chat and MultiDoc2Dial with the code published with
FaithDial and names no settings of its own; ``GeneratorPreset``'s defaults are that code's. The runs the paper makes::

    python -m groundwire.recipes generator --base facebook/bart-large --rows faithdial.jsonl --out faithdial

and the same with ``topical_chat.jsonl`` (the "rare" part, without turns marked as personal knowledge) and
``multidoc2dial.jsonl`` (the agent's turns only). One row a line: ``{"knowledge": "…" or ["…", …], "history": ["…", …],
"response": "…"}``, history oldest first.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    EncoderDecoderModel,
    PreTrainedTokenizerBase,
)

from groundwire.export.options import PROMPT
from groundwire.runtime.models.prompt import BETWEEN_PASSAGES, BETWEEN_TURNS, fill_prompt

from ..common.corpus import read_rows
from ..common.loop import ParameterGroup, Row, Schedule, collate, fit, make_batches, write_report

IGNORED = -100
"""Label of a token that is not predicted."""


@dataclass(frozen=True, slots=True)
class GeneratorPreset:
    """Hyper-parameters; the defaults are FaithDial's published ones, which PMI-Faith's authors used."""

    lr: float = 6.25e-5
    """Peak learning rate; it falls linearly to 0."""
    batch: int = 16
    epochs: float = 10
    """Passes over the rows. The published code stops early by the perplexity of a development set; this does not."""
    warmup: float = 0.04
    """Share of the steps over which the learning rate rises."""
    weight_decay: float = 0.0
    max_knowledge: int = 320
    """Tokens kept of the knowledge, from its beginning. The published code bounds all together by 512."""
    max_history: int = 128
    """Tokens kept of the history, from its end."""
    max_response: int = 100
    without_knowledge: float = 0.0
    """Share of the rows read without their knowledge, 0–1, so that the model learns that prompt too. Published: 0."""
    freeze_words: bool = False
    """Leave the word embeddings as they are: a bundle stores the embeddings of several models once."""
    seed: int = 13

    def schedule(self, rows: int, steps: int | None = None) -> Schedule:
        """The schedule of ``epochs`` passes over so many rows, or of ``steps`` where given."""
        steps = steps or max(1, int(self.epochs * (rows // self.batch)))
        return Schedule(steps, self.batch, warmup=self.warmup, weight_decay=self.weight_decay, seed=self.seed)


SMALL = GeneratorPreset(lr=4e-4, epochs=2, max_knowledge=112, max_history=40, max_response=48, without_knowledge=0.2)
"""For a model of some million weights on a CPU."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A response with its knowledge and history."""

    knowledge: tuple[str, ...]
    history: tuple[str, ...]
    response: str


def train_generator(
    base: str | Path,
    rows: Path,
    out: Path,
    preset: GeneratorPreset | None = None,
    steps: int | None = None,
    held_out: Path | None = None,
) -> None:
    """Fine-tune the checkpoint ``base`` and save it in ``out`` with its tokenizer; ``out/report.json`` measures it.

    ``held_out`` are rows to measure on. ValueError for rows that ``read_exchanges`` refuses.
    """
    preset = preset or GeneratorPreset()
    torch.manual_seed(preset.seed)
    exchanges = read_exchanges(rows)
    tokens = AutoTokenizer.from_pretrained(base, use_fast=True)
    model = load_base_model(base)
    schedule = preset.schedule(len(exchanges), steps)
    encode, fill, loss = make_encoding(model, tokens, preset)

    def make(index: int, rng: random.Random) -> Row:
        return encode(exchanges[index], rng.random() >= preset.without_knowledge)

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        return make_batches(len(exchanges), make, fill, schedule, start)

    if preset.freeze_words:
        model.get_input_embeddings().weight.requires_grad = False
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    fit(model, [ParameterGroup(trained, preset.lr)], feed, loss, schedule, out)
    model.save_pretrained(out)
    tokens.save_pretrained(out)
    report: dict[str, Any] = {"base": str(base), "rows": len(exchanges), "steps": schedule.steps, "seed": preset.seed}
    if held_out is not None:
        report["held_out"] = measure_perplexity(model, tokens, read_exchanges(held_out), preset)
    write_report(out, report)


def load_base_model(base: str | Path) -> Any:
    """The encoder-decoder or causal LM of a checkpoint, in float32."""
    config = AutoConfig.from_pretrained(base)
    if config.model_type == "encoder-decoder":
        return EncoderDecoderModel.from_pretrained(base)
    kind = AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
    return kind.from_pretrained(base).float()


def read_exchanges(path: Path) -> list[Exchange]:
    """The rows of a file; ValueError names the first without a response, or with neither knowledge nor history."""
    exchanges = []
    for number, row in enumerate(read_rows(path), 1):
        exchange = Exchange(
            _list_texts(row.get("knowledge")), _list_texts(row.get("history")), str(row.get("response") or "").strip()
        )
        if not exchange.response or not (exchange.knowledge or exchange.history):
            raise ValueError(f"{path}, row {number}: it needs a response, and knowledge or history.")
        exchanges.append(exchange)
    if not exchanges:
        raise ValueError(f"{path} has no rows.")
    return exchanges


def make_source(
    tokens: PreTrainedTokenizerBase, exchange: Exchange, preset: GeneratorPreset, *, with_knowledge: bool
) -> list[str]:
    """The parts that the model reads, their texts cut to the preset's tokens: knowledge's first, history's last."""
    knowledge = _truncate(tokens, BETWEEN_PASSAGES.join(exchange.knowledge), preset.max_knowledge, from_end=False)
    history = _truncate(tokens, BETWEEN_TURNS.join(exchange.history), preset.max_history, from_end=True)
    read = fill_prompt(PROMPT, (knowledge,), (history,))
    return read.grounded if with_knowledge else read.alone


EncodeExchange = Callable[[Exchange, bool], Row]
BatchLoss = Callable[[torch.nn.Module, dict[str, torch.Tensor]], torch.Tensor]


def make_encoding(
    model: Any, tokens: PreTrainedTokenizerBase, preset: GeneratorPreset
) -> tuple[EncodeExchange, dict[str, int], BatchLoss]:
    """The encoding of a row, its padding values and the loss: they differ between the two kinds of models."""
    pad = tokens.pad_token_id or 0
    if not model.config.is_encoder_decoder:
        end = _first_end_token(model.config.eos_token_id)

        def encode_causal(exchange: Exchange, with_knowledge: bool) -> Row:
            pieces = make_source(tokens, exchange, preset, with_knowledge=with_knowledge)
            prompt = [token for piece in pieces for token in _tokenize(tokens, piece)]
            # After "Agent:" the response begins with a space, which byte-level tokenizers make part of its first token.
            target = [*_tokenize(tokens, " " + exchange.response)[: preset.max_response], end]
            return {"input_ids": prompt + target, "labels": [IGNORED] * len(prompt) + target}

        return encode_causal, {"input_ids": pad, "labels": IGNORED}, causal_loss
    start = model.config.decoder_start_token_id
    if start is None:
        start = model.generation_config.decoder_start_token_id

    def encode_seq2seq(exchange: Exchange, with_knowledge: bool) -> Row:
        text = "".join(make_source(tokens, exchange, preset, with_knowledge=with_knowledge))
        read = tokens(text, truncation=True, return_token_type_ids=False)["input_ids"]
        target = list(
            tokens(text_target=exchange.response, truncation=True, max_length=preset.max_response)["input_ids"]
        )
        if target[0] == start:  # BERT's tokenizer begins with the start token, T5's and BART's do not
            target = target[1:]
        return {
            "input_ids": read,
            "attention_mask": [1] * len(read),
            "decoder_input_ids": [start, *target[:-1]],
            "labels": target,
        }

    return (
        encode_seq2seq,
        {"input_ids": pad, "attention_mask": 0, "decoder_input_ids": pad, "labels": IGNORED},
        seq2seq_loss,
    )


def causal_loss(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Cross-entropy of the response's tokens.

    The head reads only the positions that predict one of them: with a large vocabulary the head is half the work.
    Padding comes after the text, where a causal model does not see it, so no mask is needed.
    """
    labels = batch["labels"][:, 1:]
    predicted = labels != IGNORED
    causal_model: Any = model
    hidden = causal_model.base_model(batch["input_ids"]).last_hidden_state[:, :-1][predicted]
    return torch.nn.functional.cross_entropy(causal_model.get_output_embeddings()(hidden).float(), labels[predicted])


def seq2seq_loss(model: torch.nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Cross-entropy of the response's tokens given the encoded source."""
    logits = model(
        input_ids=batch["input_ids"],
        attention_mask=batch["attention_mask"],
        decoder_input_ids=batch["decoder_input_ids"],
        use_cache=False,
    ).logits
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1).float(), batch["labels"].flatten(), ignore_index=IGNORED
    )


@torch.inference_mode()
def measure_perplexity(
    model: Any,
    tokens: PreTrainedTokenizerBase,
    exchanges: Sequence[Exchange],
    preset: GeneratorPreset,
    count: int = 128,
) -> dict[str, float]:
    """Perplexity of unseen responses with and without their knowledge, and the share that is likelier with it."""
    encode, fill, loss = make_encoding(model, tokens, preset)
    nats: dict[bool, list[float]] = {True: [], False: []}
    for exchange in exchanges[:count]:
        for with_knowledge, values in nats.items():
            batch = collate([encode(exchange, with_knowledge)], fill)
            values.append(float(loss(model, {name: value.to(model.device) for name, value in batch.items()})))
    helped = sum(a < b for a, b in zip(nats[True], nats[False], strict=True))
    return {
        "responses": len(nats[True]),
        "perplexity": round(math.exp(sum(nats[True]) / len(nats[True])), 2),
        "perplexity_without_knowledge": round(math.exp(sum(nats[False]) / len(nats[False])), 2),
        "knowledge_helps": round(helped / len(nats[True]), 4),
    }


def _list_texts(value: str | Sequence[str] | None) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value or ()
    return tuple(text for text in texts if text.strip())


def _truncate(tokens: PreTrainedTokenizerBase, text: str, most: int, *, from_end: bool) -> str:
    offsets = tokens(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    if len(offsets) <= most:
        return text
    return text[offsets[-most][0] :] if from_end else text[: offsets[most - 1][1]]


def _tokenize(tokens: PreTrainedTokenizerBase, text: str) -> list[int]:
    return list(tokens(text, add_special_tokens=False)["input_ids"])


def _first_end_token(ids: int | list[int] | None) -> int:
    if ids is None:
        raise ValueError("The checkpoint's configuration names no end token (eos_token_id); set one.")
    return ids if isinstance(ids, int) else ids[0]
