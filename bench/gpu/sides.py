"""A role's graph and its checkpoint in PyTorch on the same batch: what each side computes, from host to host."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
)

from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import (
    EmbedderRole,
    EncoderRole,
    LanguageModelRole,
    QuestionGeneratorRole,
    Role,
)
from groundwire.runtime.calls import ScoreText, TextScored
from groundwire.runtime.models.graphs import load_encoder, load_graph, place_role
from groundwire.runtime.models.language_model import LanguageModel
from groundwire.runtime.models.question_generator import QuestionGenerator
from groundwire.runtime.ort.session import Array, DeviceProfile, Graph
from groundwire.runtime.texts.tokenization import Window

from ..support.common import check
from ..support.fresh_pmi import Words
from ..support.pieces import QUESTION
from .setup import Setup
from .work import find_repeats, once

Tensors: TypeAlias = dict[str, torch.Tensor]
KINDS: dict[str, Any] = {
    "qa": AutoModelForQuestionAnswering,
    "nli": AutoModelForSequenceClassification,
    "qg": AutoModelForSeq2SeqLM,
    "lm": AutoModelForCausalLM,
    "embedder": AutoModel,
    "detector": AutoModelForSequenceClassification,
}
OUTPUTS = {"qa": ("start_logits", "end_logits"), "embedder": ("last_hidden_state",)}
"""Outputs of a PyTorch model, by role; other encoders have ``logits``."""
ENCODER_ROWS = {"qa": (26, 512), "nli": (5, 256), "embedder": (2, 256), "detector": (1, 256)}
"""Rows of one response, and of a full batch."""
TOKENS = {"qa": 48, "nli": 64, "embedder": 48, "detector": 64}
"""Tokens of a row."""
SOURCES, SOURCE_TOKENS = (5, 128), 48
"""Sources of the question generator: as many as one response has, and as many as decode together."""
RESPONSES = (1, 64)
"""Responses that the language model scores."""
STEPS = QUESTION.max_new_tokens


@dataclass(frozen=True)
class Sides:
    """One batch."""

    input: str
    rows: int
    ours: Callable[[int], list[Array]]
    """Our outputs for the first rows, row by row."""
    inputs: dict[str, Array]
    """Those of PyTorch."""
    profile: DeviceProfile
    """Where our side runs, with what it captured."""
    graphs: tuple[str, ...]
    """Files of the graphs that our side runs."""
    forward: Callable[[Any, Tensors], list[torch.Tensor]]
    """The same outputs by a PyTorch model, from inputs on its device."""
    ways: tuple[str, ...] = ("eager", "graph", "compile")
    """How PyTorch can run it."""
    repeats: Callable[[str], tuple[int, int]] = once
    """For ``count_work``."""
    forward_once: Callable[[Any, Tensors], Any] | None = None
    """What ``count_work`` runs, where it is not ``forward``."""


def kind_of(role: str) -> str:
    """The role without the detector's name."""
    return role.partition(".")[0]


def load_model(role: str, folder: Path, device: str, dtype: torch.dtype) -> Any:
    """The checkpoint in PyTorch, ready to run."""
    without_pooler = {"add_pooling_layer": False} if role == "embedder" else {}
    return KINDS[kind_of(role)].from_pretrained(folder, dtype=dtype, **without_pooler).eval().to(device)


def make_sides(setup: Setup, role: str, folder: Path) -> tuple[Sides, Sides]:
    """The batch of one response, and a full one, with the graphs that the device of ``setup`` runs."""
    opened = setup.open_bundle(role)
    record, profile = place_role(role, opened.manifest.roles[role], setup.profile)
    match record:
        case QuestionGeneratorRole():
            sides = _make_generator_sides(setup, opened, record, profile)
        case LanguageModelRole():
            sides = _make_language_model_sides(setup, opened, record, profile, folder)
        case _:
            sides = _make_encoder_sides(setup, opened, role, record, profile)
    of_one_response, full = sides
    return of_one_response, full


def _make_encoder_sides(setup: Setup, opened: Bundle, role: str, record: Role, profile: DeviceProfile) -> list[Sides]:
    graph: Graph
    if isinstance(record, EmbedderRole):
        graph = load_encoder(opened, record.graph, record.max_tokens, profile)
    else:
        assert isinstance(record, EncoderRole)
        graph = load_graph(opened, record, profile)
    kind = kind_of(role)
    names = OUTPUTS.get(kind, ("logits",))

    def forward(model: Any, tensors: Tensors) -> list[torch.Tensor]:
        output = model(**tensors)
        return [output[name] for name in names]

    def make(rows: int) -> Sides:
        tokens = TOKENS[kind]
        if graph.plan is not None:  # both sides read what the engine pads to
            tokens = next(width for width in graph.plan.widths if width >= tokens)
        rng = np.random.default_rng(rows)
        feeds = {"input_ids": rng.integers(10, _vocabulary(setup, kind), (rows, tokens))}
        feeds["attention_mask"] = np.ones((rows, tokens), np.int64)
        types = np.tile(np.arange(tokens) > tokens // 3, (rows, 1)).astype(np.int64)
        if "token_type_ids" in graph.inputs:
            feeds["token_type_ids"] = types
        # Without padding PyTorch needs no mask, and is quicker without one.
        inputs = {name: value for name, value in feeds.items() if name != "attention_mask"}
        return Sides(
            f"{rows} × {tokens} tokens",
            rows,
            lambda count: graph.run({name: value[:count] for name, value in feeds.items()}),
            inputs,
            profile,
            record.graph_files,
            forward,
        )

    return [make(2 * index + 1 if setup.tiny else rows) for index, rows in enumerate(ENCODER_ROWS[kind])]


def _make_generator_sides(
    setup: Setup, opened: Bundle, record: QuestionGeneratorRole, profile: DeviceProfile
) -> list[Sides]:
    generator = QuestionGenerator.load(opened, record, profile)
    decoding = QUESTION
    beams = decoding.num_beams

    def search(model: Any, tensors: Tensors, **how: Any) -> list[torch.Tensor]:
        ids = tensors["input_ids"]
        generated = model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            num_beams=beams,
            num_return_sequences=decoding.num_return_sequences,
            no_repeat_ngram_size=decoding.no_repeat_ngram_size,
            early_stopping=decoding.early_stopping,
            length_penalty=decoding.length_penalty,
            min_new_tokens=decoding.min_new_tokens,
            max_new_tokens=decoding.max_new_tokens,
            do_sample=False,
            return_dict_in_generate=True,
            output_scores=True,
            **how,
        )
        return [generated.sequences_scores.reshape(len(ids), -1)]

    def forward_once(model: Any, tensors: Tensors) -> Any:
        ids = tensors["input_ids"]
        return model(input_ids=ids, decoder_input_ids=ids[:, :1].expand(-1, STEPS).contiguous())

    def make(rows: int) -> Sides:
        tokens = 12 if setup.tiny else SOURCE_TOKENS
        ids = np.random.default_rng(rows).integers(10, _vocabulary(setup, "qg"), (rows, tokens))
        windows = [Window(row, [0] * tokens, [0] * tokens, [(0, 0)] * tokens) for row in ids.tolist()]

        def ours(count: int) -> list[Array]:
            groups = generator.generate(windows[:count], decoding)
            return [np.array([[score for _, score in group] for group in groups], np.float32)]

        # forward_once reads the weights once for all steps, and every step for one sequence of each source.
        rows_and_reads = find_repeats(beams, STEPS)
        shape = f"{rows} sources of {tokens} tokens, beam {beams}, {STEPS} tokens"
        return Sides(
            shape,
            rows,
            ours,
            {"input_ids": ids},
            profile,
            record.graph_files,
            search,
            ("eager", "static"),
            rows_and_reads,
            forward_once,
        )

    return [make(rows) for rows in ((2, 3) if setup.tiny else SOURCES)]


def _make_language_model_sides(
    setup: Setup, opened: Bundle, record: LanguageModelRole, profile: DeviceProfile, folder: Path
) -> list[Sides]:
    model = LanguageModel.load(opened, record, profile)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    words = Words(20, 12, 6) if setup.tiny else Words()
    vocabulary = _vocabulary(setup, "lm")

    def forward(model: Any, tensors: Tensors) -> list[torch.Tensor]:
        scored = []
        for ids in tensors.values():
            # The head over the response alone: over every token it would be most of the work.
            hidden = model.transformer(input_ids=ids, use_cache=False).last_hidden_state
            logits = model.lm_head(hidden[:, -words.response - 1 : -1])
            chosen = logits.float().log_softmax(-1).gather(2, ids[:, -words.response :, None])
            scored.append(chosen[..., 0])
        return scored

    def make(rows: int) -> Sides:
        rng = random.Random(rows)

        def some(count: int) -> str:
            return " ".join(f"w{rng.randrange(vocabulary - 2000):05d}" for _ in range(count))

        texts = [(some(words.document), some(words.history), some(words.response)) for _ in range(rows)]
        prefixes = [((document, history), (history,)) for document, history, _ in texts]

        def ours(count: int) -> list[Array]:
            calls = [
                ScoreText(prefix, response)
                for (_, _, response), both in zip(texts[:count], prefixes, strict=False)
                for prefix in both
            ]
            rows = [_read_log_probs(outcome) for outcome in model.run(calls, 1)]
            return [np.array(rows[::2], np.float32), np.array(rows[1::2], np.float32)]

        inputs = {
            name: _encode(tokenizer, [(*both[index], text[2]) for text, both in zip(texts, prefixes, strict=True)])
            for index, name in enumerate(("with_document", "without"))
        }
        shape = f"{rows} responses of {words.response} tokens after {words.document + words.history} and after "
        return Sides(shape + f"{words.history}", rows, ours, inputs, profile, record.graph_files, forward)

    return [make(rows) for rows in ((1, 3) if setup.tiny else RESPONSES)]


def _read_log_probs(outcome: object) -> Sequence[float]:
    check(isinstance(outcome, TextScored), f"the language model gave {outcome}")
    assert isinstance(outcome, TextScored)
    return outcome.log_probs


def _encode(tokenizer: Any, texts: Sequence[Sequence[str]]) -> Array:
    """Ids of texts in parts, all of one length."""
    rows = [[i for part in parts for i in tokenizer(part, add_special_tokens=False).input_ids] for parts in texts]
    return np.array(rows, np.int64)


def _vocabulary(setup: Setup, kind: str) -> int:
    size = setup.size
    sizes = {"qa": size.albert, "qg": size.t5, "lm": size.bloom, "detector": size.bert}
    return sizes.get(kind, size.roberta)["vocab_size"]
