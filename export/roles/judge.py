"""Judges: language models that are given a prompt and answer by one of two words, one ONNX graph.

The graph gives the logits of the first tokens of the two words alone: of an encoder-decoder's first step (MiniCheck's
Flan-T5, TRUE), or of the token after the prompt of a causal model (Granite Guardian, Qwen3 rerankers, Llama-class
models). HHEM-2.1 reads a prompt too, and answers by a token classifier's two logits at its first token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import onnx_ir as ir
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from transformers import AutoConfig, PretrainedConfig, T5ForTokenClassification
from transformers.utils import cached_file

from groundwire.runtime.bundles.manifest import JudgeRole, Template
from groundwire.runtime.errors import ExportError, InvalidRequest
from groundwire.runtime.texts.tokenization import TextEncoder, fill, pad

from ..checkpoint import AutoGenerativeModel, Checkpoint, load_pretrained, load_tokenizer
from ..labels import find_supported_labels
from ..options import JudgeSettings, RoleOptions
from ..sources import is_gguf
from ..texts import EXAMPLES
from ..tokens import Batch, forbid_added_tokens
from ..trace import trace
from ..verify.encoder import EncoderReference
from ..verify.examples import ROWS
from .kind import CommonFields, Conversion, ExportKind, set_aggregation

NAME = "judge"
FIELDS = ("premise", "hypothesis")
_HHEM = "HHEMv2"
"""The model type of HHEM-2.1, a T5 token classifier whose class is in its own repository."""


class AnswerLogits(nn.Module):
    """A model up to the logits of its answer, [B, 2]."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(self, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """Return the logits of the two answers to the prompts ``input_ids`` [B, T], padded on the right."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if isinstance(self.model, T5ForTokenClassification):
            logits: Tensor = self.model(**inputs).logits[:, 0]
        elif self.model.config.is_encoder_decoder:
            start = torch.full_like(input_ids[:, :1], self.model.config.decoder_start_token_id)
            logits = self.model(**inputs, decoder_input_ids=start, use_cache=False).logits[:, 0]
        else:
            every: Tensor = self.model(**inputs, use_cache=False).logits
            last = (attention_mask.sum(1) - 1)[:, None, None].expand(-1, 1, every.shape[-1])
            logits = every.gather(1, last)[:, 0]
        return logits


class _AutoModel:
    """Loads a generative model, or HHEM-2.1 without the code of its repository."""

    @staticmethod
    def from_pretrained(**arguments: Any) -> Any:
        if "gguf_file" in arguments:
            return AutoGenerativeModel.from_pretrained(**arguments)
        source, revision = arguments["pretrained_model_name_or_path"], arguments["revision"]
        config = _read_hhem(source, revision)
        if config is None:
            return AutoGenerativeModel.from_pretrained(**arguments)
        weights = load_file(str(cached_file(source, "model.safetensors", revision=revision)))
        named = {name.removeprefix("t5."): tensor for name, tensor in weights.items()}
        others = {name: arguments[name] for name in arguments.keys() - {"pretrained_model_name_or_path", "revision"}}
        return T5ForTokenClassification.from_pretrained(None, config=config, state_dict=named, **others)


def _read_hhem(source: str, revision: str | None) -> Any:
    """Return the configuration of HHEM-2.1's T5, which its own names; None for another checkpoint."""
    content, _ = PretrainedConfig.get_config_dict(source, revision=revision)
    return AutoConfig.from_pretrained(content["foundation"]) if content.get("model_type") == _HHEM else None


def _read_tokenizer(options: RoleOptions) -> Any:
    if is_gguf(options.source):
        return load_tokenizer(options)
    config = _read_hhem(options.source, options.revision)
    return load_tokenizer(options if config is None else RoleOptions(config.name_or_path))


def _load(options: RoleOptions) -> Checkpoint:
    labels = _read_words(options.read(JudgeSettings))
    checkpoint = load_pretrained(NAME, options, _AutoModel, read_tokenizer=_read_tokenizer)
    checkpoint = replace(checkpoint, tokenizer=forbid_added_tokens(checkpoint.tokenizer))
    if not isinstance(checkpoint.model, T5ForTokenClassification):
        keep_rows(checkpoint.model, find_first_tokens(checkpoint.tokenizer, labels))
    elif checkpoint.model.config.num_labels != len(labels):
        raise ExportError(f"{options.source!r} has {checkpoint.model.config.num_labels} logits; a judge has two.")
    return checkpoint


def _read_words(settings: JudgeSettings) -> tuple[str, ...]:
    if settings.labels is None or len(settings.labels) != 2:
        raise ExportError(
            f"A judge answers by one of two words, and {len(settings.labels or ())} are given. Give both, the order is "
            "free: --labels yes,no, or what the checkpoint's documentation says."
        )
    return settings.labels


def find_first_tokens(tokenizer: str, words: Sequence[str]) -> tuple[int, ...]:
    """Return the id of the first token of each word; ExportError when they are the same token."""
    encode = Tokenizer.from_str(tokenizer).encode
    ids = tuple(encode(word, add_special_tokens=False).ids[0] for word in words)
    if len(set(ids)) < len(ids):
        raise ExportError(
            f"{' and '.join(words)} begin with the same token ({ids[0]}), so its logit does not tell them apart. Give "
            "other words, or write a prompt after which they differ."
        )
    return ids


@torch.no_grad()
def keep_rows(model: Any, ids: Sequence[int]) -> None:
    """Keep those rows of a model's head, in place, so that it computes no other logits."""
    head = model.get_output_embeddings()
    if head is None or getattr(head, "weight", None) is None or head.weight.ndim != 2:
        raise ExportError(f"{type(model).__name__} has no output embeddings; give a generative model.")
    rows = nn.Linear(head.weight.shape[1], len(ids), bias=head.bias is not None)
    rows.weight = nn.Parameter(head.weight[list(ids)].clone())
    if head.bias is not None:
        rows.bias = nn.Parameter(head.bias[list(ids)].clone())
    model.set_output_embeddings(rows)
    if hasattr(model, "final_logits_bias"):  # BART's
        model.final_logits_bias = model.final_logits_bias[:, list(ids)]


def _make_template(options: RoleOptions) -> Template:
    """Return the prompt; ExportError when there is none, or it has not both fields."""
    settings = options.read(JudgeSettings)
    template = settings.template
    if settings.messages:
        chat = [{"role": role, "content": text} for role, text in settings.messages]
        arguments = {"add_generation_prompt": True, **settings.chat_options}
        try:
            template = Template(_read_tokenizer(options).apply_chat_template(chat, tokenize=False, **arguments))
        except Exception as error:  # whatever the template of a checkpoint raises, or that there is none
            raise ExportError(
                f"The chat template of {options.source!r} refuses the messages: {error}. Give the whole prompt as "
                "template instead."
            ) from error
    if template is None:
        raise ExportError(
            "A judge needs its prompt. Give it as the checkpoint's documentation writes it, special tokens included: "
            "--set template='predict: {premise}</s>{hypothesis}</s>'."
        )
    try:
        template.check(FIELDS)
    except InvalidRequest as error:
        raise ExportError(str(error)) from error
    return template


def _convert(role: str, checkpoint: Checkpoint, options: RoleOptions) -> Conversion:
    file, settings = f"{role}.onnx", options.read(JudgeSettings)
    template, labels = _make_template(options), _read_words(settings)
    supported = find_supported_labels(role, labels, settings.supported)

    def record(common: CommonFields) -> JudgeRole:
        return JudgeRole(
            **common,
            graph=file,
            labels=labels,
            template=template,
            supported=supported,
            unit=settings.unit,
            aggregation=set_aggregation(settings.aggregation),
        )

    return Conversion({file: build_judge_graph(checkpoint.model)}, template, record)


def build_judge_graph(model: Any) -> ir.Model:
    """Return the float32 graph: ``input_ids``, ``attention_mask`` int64 [B, T] to ``logits`` float32 [B, 2]."""
    # Padding, so that no model leaves its mask out of the graph.
    mask = torch.ones(2, 5, dtype=torch.int64)
    mask[1, 4] = 0
    batch = {0: "batch_size", 1: "sequence_length"}
    examples = {"input_ids": torch.arange(2, 12).reshape(2, 5), "attention_mask": mask}
    inputs = [(name, example, batch) for name, example in examples.items()]
    return trace(AnswerLogits(model).eval(), inputs, [("logits", {0: "batch_size"})])


def fill_prompts(checkpoint: Checkpoint, template: Template) -> list[Batch]:
    """Return the prompts of the fixed texts, in batches of similar length, as the runtime reads them.

    ExportError where the checkpoint's tokenizer reads a prompt otherwise, special tokens included.
    """
    encoder = TextEncoder(Tokenizer.from_str(checkpoint.tokenizer), checkpoint.max_tokens)
    plain = Tokenizer.from_str(checkpoint.tokenizer)
    pieces = encoder.split_prompt(template.first)
    prompts = []
    for example in EXAMPLES:
        fields = {"premise": example.passage, "hypothesis": example.claim}
        windows = encoder.encode_prompt(pieces, fields, "premise", 0)
        expected = plain.encode(fill(template.first, fields), add_special_tokens=False).ids
        if len(windows) == 1 and windows[0].ids != expected:
            raise ExportError(
                f"The tokenizer of {checkpoint.name!r} reads the prompt otherwise than piece by piece, so its special "
                "tokens cannot be kept apart from those that a text spells. Write a prompt without special tokens "
                "inside, or give another checkpoint."
            )
        prompts.append(windows[0].ids)
    prompts.sort(key=len)
    batches = []
    for start in range(0, len(prompts), ROWS):
        rows = prompts[start : start + ROWS]
        ids, mask = pad(rows, max(map(len, rows)), checkpoint.pad_id)
        batches.append({"input_ids": ids, "attention_mask": mask, "token_type_ids": mask * 0})
    return batches


def _build_reference(checkpoint: Checkpoint, template: Template) -> EncoderReference:
    module = AnswerLogits(checkpoint.model).eval()

    def run(batch: Batch) -> Sequence[Tensor]:
        return (module(*(torch.from_numpy(batch[name]) for name in ("input_ids", "attention_mask"))),)

    return EncoderReference(fill_prompts(checkpoint, template), "label", run, (False,))


KIND = ExportKind(NAME, _load, _convert, _build_reference)
