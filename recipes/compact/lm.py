"""Trains a small causal language model that reads a document: PMI-Faith's ``lm``, in GPT-2's architecture.

PMI-Faith asks how much more probable a response is given its document than without it, so the model must learn to use a
document when it helps and to do without one. It is trained on the prompt of the authors' code, ``Document: {d}``,
blank line, ``{h}.``, newline, ``Agent: {r}.``, the three parts tokenized separately, without special tokens, and
joined; the tokenizer is the backbone's and drops newlines. Some documents are left out, some are of another article. A
special token ends the text, so that the model can also generate.

The word embeddings, input and head, are MiniLM's, frozen.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import BertModel, GPT2LMHeadModel, PreTrainedTokenizerFast

from ..common import backbone
from ..common.loop import ParameterGroup, Row, Schedule, collate, fit, make_batches, write_report
from ..synthesis.prompts import Prompt, PromptSampler
from . import induction_heads

DOCUMENT, HISTORY, RESPONSE = "Document: {}\n\n", "{}.\n", "Agent: {}."
MAX_DOCUMENT, MAX_HISTORY, MAX_RESPONSE = 112, 40, 48
"""Tokens kept of each part: the first of the document and of the response, the last of the history."""
POSITIONS = 1024
"""Tokens that the model can read at once: a document of about 700 words."""
LONG_SHARE, LONG_WORDS = 0.3, (150, 250, 400, 650)
"""Share of the prompts whose document may be long, and how many words it then has at most."""
LAYERS = 4
FILL = {"input_ids": 0, "part": 0}
REST_SHARE, REST_WEIGHT = 0.15, 0.5
"""Share of the tokens before the response that is predicted too, and their weight in the loss."""
EPOCH = 100_000
"""Examples between two shuffles; all are drawn anew each time."""


_SAMPLE = (
    "Document: The Amazon river flows through Brazil, Peru and Colombia, and carries more water than any other river. "
    "Its mouth was discovered by Vicente Pinzon in 1500. Who discovered it? Agent: It was discovered by Pinzon in 1500."
)
"""Any English text: sizes of states hardly depend on it."""


def build_language_model(counts: torch.Tensor, layers: int = LAYERS, positions: int = POSITIONS) -> GPT2LMHeadModel:
    """The model before training: MiniLM's embeddings, and GPT-2 layers with induction-head initialisation.

    ``counts`` [V] are the expected frequencies of the tokens. More of MiniLM does not help: its layers see both sides
    and normalise after a block instead of before it. After 80 steps the loss was 5.45 from four of its layers, 5.32
    from random weights and 4.78 from this start.
    """
    source = BertModel.from_pretrained(backbone.PATH, add_pooling_layer=False)
    tokens = backbone.load_tokenizer()
    config = backbone.configure_language_model(layers, source.config.max_position_embeddings)
    model = GPT2LMHeadModel(config)
    embeddings, body = source.embeddings, model.transformer
    attention, first = source.encoder.layer[0].attention.self, body.h[0]
    with torch.no_grad():
        body.wte.weight.copy_(embeddings.word_embeddings.weight)
        body.wpe.weight.copy_(embeddings.position_embeddings.weight + embeddings.token_type_embeddings.weight[0])
        first.ln_1.load_state_dict(embeddings.LayerNorm.state_dict())
        # GPT-2 stores queries, keys and values in one matrix, the other way round.
        both = 2 * config.n_embd
        first.attn.c_attn.weight[:, :both] = torch.cat([attention.query.weight, attention.key.weight]).t()
        first.attn.c_attn.bias[:both] = torch.cat([attention.query.bias, attention.key.bias])
    induction_heads.set_induction_heads(model, torch.tensor([_tokenize(tokens, _SAMPLE)]), counts)
    extend_positions(model, positions)
    body.wte.weight.requires_grad = False
    return model


def extend_positions(model: GPT2LMHeadModel, positions: int) -> None:
    """Give ``model`` at least so many positions; new ones begin as copies of the trained ones, in order.

    A head that looks at the previous token finds it there by the same numbers, beside one token far away.
    """
    old = model.transformer.wpe.weight
    if len(old) >= positions:
        return
    copies = torch.arange(len(old), positions) % len(old)
    model.transformer.wpe = torch.nn.Embedding(positions, old.shape[1], _weight=torch.cat([old, old[copies]]).detach())
    model.config.n_positions = positions
    for block in model.transformer.h:
        causal = torch.ones(positions, positions, dtype=torch.bool).tril()
        block.attn.register_buffer("bias", causal[None, None], persistent=False)


def train_language_model(
    data: Path, out: Path, schedule: Schedule, lr: float = 6e-4, layers: int = LAYERS, start: Path | None = None
) -> None:
    """Train and save a ``GPT2LMHeadModel`` checkpoint and its tokenizer in ``out``, measured in ``out/report.json``.

    ``start`` is a checkpoint of an earlier run to train on.
    """
    torch.manual_seed(schedule.seed)
    tokens = backbone.load_tokenizer()
    tokens.model_max_length = POSITIONS
    prompts = PromptSampler.read(data)
    if start is None:
        model = build_language_model(count_response_tokens(tokens, prompts), layers)
    else:
        model = GPT2LMHeadModel.from_pretrained(start)
        extend_positions(model, POSITIONS)
        model.transformer.wte.weight.requires_grad = False

    def make(index: int, rng: random.Random) -> Row:
        words = rng.choice(LONG_WORDS) if rng.random() < LONG_SHARE else 0
        return encode_prompt(tokens, prompts.draw(rng, words), rng, POSITIONS if words else 0)

    def feed(start: int) -> Iterator[dict[str, torch.Tensor]]:
        return make_batches(EPOCH, make, FILL, schedule, start)

    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    fit(model, [ParameterGroup(trained, lr)], feed, response_loss, schedule, out)
    model.save_pretrained(out)
    tokens.save_pretrained(out)
    unseen = PromptSampler.read(data, "dev")
    write_report(
        out,
        {
            "steps": schedule.steps,
            "seed": schedule.seed,
            **measure_document_use(model, unseen),
            "long": measure_document_use(model, unseen, words=LONG_WORDS[-1]),
        },
    )


def encode_prompt(tokens: PreTrainedTokenizerFast, prompt: Prompt, rng: random.Random, limit: int = 0) -> Row:
    """The ids of a prompt, and the part of each: 2 the response, 1 context that is predicted too, 0 not predicted.

    With ``limit`` the document may be longer than ``MAX_DOCUMENT``, so that all together has at most so many tokens. As
    many tokens of a long context are predicted as of a short context.
    """
    document = max(MAX_DOCUMENT, limit - MAX_HISTORY - MAX_RESPONSE - 1)
    context = encode_prefix(tokens, prompt, document)
    response = [*_tokenize(tokens, RESPONSE.format(prompt.response))[:MAX_RESPONSE], tokens.sep_token_id]
    share = REST_SHARE * min(1.0, (MAX_DOCUMENT + MAX_HISTORY) / max(1, len(context)))
    parts = [int(rng.random() < share) for _ in context]
    return {"input_ids": context + response, "part": parts + [2] * len(response)}


def count_response_tokens(
    tokens: PreTrainedTokenizerFast, prompts: PromptSampler, count: int = 6000, seed: int = 3
) -> torch.Tensor:
    """How often each token occurs in ``count`` responses [V]."""
    rng = random.Random(seed)
    rows = [encode_prompt(tokens, prompts.draw(rng), rng) for _ in range(count)]
    response_tokens = [
        token for row in rows for token, part in zip(row["input_ids"], row["part"], strict=True) if part == 2
    ]
    return torch.bincount(torch.tensor(response_tokens), minlength=len(tokens))


def encode_prefix(tokens: PreTrainedTokenizerFast, prompt: Prompt, max_document: int = MAX_DOCUMENT) -> list[int]:
    """The ids of the text before the response."""
    document = _tokenize(tokens, DOCUMENT.format(prompt.document))[:max_document] if prompt.document else []
    history = _tokenize(tokens, HISTORY.format(prompt.history))[-MAX_HISTORY:] if prompt.history else []
    return document + history


def response_loss(model: GPT2LMHeadModel, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    """Cross-entropy of the response's tokens and, with less weight, of some tokens before it."""
    part = batch["part"][:, 1:]
    chosen = part > 0
    # No mask: padding comes after the text, where a causal model does not see it.
    hidden = model.transformer(batch["input_ids"]).last_hidden_state[:, :-1][chosen]
    each = torch.nn.functional.cross_entropy(
        model.lm_head(hidden).float(), batch["input_ids"][:, 1:][chosen], reduction="none"
    )
    weight = torch.where(part[chosen] == 2, 1.0, REST_WEIGHT)
    return (each * weight).sum() / weight.sum()


def measure_document_use(
    model: GPT2LMHeadModel, prompts: PromptSampler, count: int = 256, seed: int = 7, words: int = 0
) -> dict[str, Any]:
    """Mean log-probability per token of unseen responses given their document, given none, and given another.

    ``prefers_document`` is the share of responses that are more probable given their own document than given other
    sentences, half of them from the same article: what PMI-Faith relies on. With ``words`` both documents are
    surrounded by others of the article, about so many words in all.
    """
    tokens = backbone.load_tokenizer()
    means: dict[str, list[float]] = {"document": [], "none": [], "other": []}
    rng = random.Random(seed)
    for question in rng.sample(prompts.questions, min(count, len(prompts.questions))):
        prompt = prompts.draw_grounded(question, rng, words)
        other = prompts.draw_other_document(rng, question, words)
        for name, document in (("document", prompt.document), ("none", ""), ("other", other)):
            row = encode_prompt(
                tokens, Prompt(document, prompt.history, prompt.response), rng, POSITIONS if words else 0
            )
            means[name].append(_mean_log_prob(model, row))
    table = {name: np.array(values) for name, values in means.items()}
    return {
        "responses": len(table["document"]),
        "log_prob": {name: round(float(values.mean()), 4) for name, values in table.items()},
        "prefers_document": round(float((table["document"] > table["other"]).mean()), 4),
        "gains_from_document": round(float((table["document"] > table["none"]).mean()), 4),
    }


@torch.inference_mode()
def _mean_log_prob(model: GPT2LMHeadModel, row: Row) -> float:
    batch = {name: value.to(model.device) for name, value in collate([row], FILL).items()}
    batch["part"] = torch.where(batch["part"] == 2, 2, 0)
    return -float(response_loss(model, batch))


def _tokenize(tokens: PreTrainedTokenizerFast, text: str) -> list[int]:
    return list(tokens(text, add_special_tokens=False)["input_ids"])
