"""BeamSearch over a small random T5 returns the sequences of the model's own generate()."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from transformers import T5Config, T5ForConditionalGeneration

from groundwire.runtime import _native

VOCABULARY, PAD, EOS, SECOND_EOS = 40, 0, 1, 2
LENGTHS = (3, 9, 5, 1, 7)

CASES: list[dict[str, Any]] = [
    {},
    {"early_stopping": True},
    {"no_repeat_ngram_size": 2, "early_stopping": True},
    {"no_repeat_ngram_size": 3},
    {"no_repeat_ngram_size": 1, "min_length": 6},
    {"length_penalty": 0.6},
    {"length_penalty": 2.0, "early_stopping": True},
    {"length_penalty": 2.0, "no_repeat_ngram_size": 2},
    {"min_length": 5, "early_stopping": True},
    {"min_length": 8, "no_repeat_ngram_size": 2, "length_penalty": 0.6},
    {"max_length": 4},
    {"eos": [EOS, SECOND_EOS], "early_stopping": True},
    {"eos": [EOS, SECOND_EOS], "min_length": 4, "no_repeat_ngram_size": 2},
]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    # Threads cost more than they save on a model this small.
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model() -> T5ForConditionalGeneration:
    torch.manual_seed(0)
    config = T5Config(
        vocab_size=VOCABULARY,
        d_model=16,
        d_kv=8,
        d_ff=32,
        num_layers=1,
        num_heads=2,
        dropout_rate=0.0,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=PAD,
        tie_word_embeddings=False,
    )
    # In double precision, so that generate()'s cache and the recomputed prefixes here give the same float32 logits.
    model = T5ForConditionalGeneration(config).double().eval()
    with torch.no_grad():
        # With the weights as drawn, every prefix gives the same logits and sequences hardly ever end.
        for weight in model.parameters():
            weight.mul_(2)
        model.lm_head.weight.mul_(1.5)
        model.lm_head.weight[EOS].mul_(2)
    return model


@pytest.fixture(scope="module")
def batch() -> tuple[torch.Tensor, torch.Tensor]:
    mask = (torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None]).long()
    ids = torch.randint(3, VOCABULARY, mask.shape, generator=torch.Generator().manual_seed(3))
    return ids * mask, mask


@torch.inference_mode()
def search(
    model: T5ForConditionalGeneration, batch: tuple[torch.Tensor, torch.Tensor], settings: dict[str, Any]
) -> list[list[tuple[list[int], float]]]:
    ids, mask = batch
    states = model.get_encoder()(input_ids=ids, attention_mask=mask).last_hidden_state
    beams = _native.BeamSearch(sources=len(ids), start=PAD, vocabulary=VOCABULARY, **settings)
    prefixes = torch.full((len(ids), 1, 1), PAD)
    closed = False
    while not closed:
        sources, width, length = prefixes.shape
        logits = model(
            encoder_outputs=(states.repeat_interleave(width, 0),),
            attention_mask=mask.repeat_interleave(width, 0),
            decoder_input_ids=prefixes.reshape(-1, length),
        ).logits[:, -1]
        best = torch.log_softmax(logits.float(), -1).topk(beams.wanted())
        shape = (sources, width, -1)
        closed = beams.advance(best.values.reshape(shape).numpy(), best.indices.reshape(shape).numpy())
        if not closed:
            rows = torch.from_numpy(beams.open())
            states, mask = states[rows], mask[rows]
            parents = torch.from_numpy(beams.parents())[:, :, None].expand(-1, -1, length)
            kept = prefixes[rows].gather(1, parents)
            prefixes = torch.cat([kept, torch.from_numpy(beams.tokens())[:, :, None]], -1)
    return beams.results()


@torch.inference_mode()
def generate(
    model: T5ForConditionalGeneration, batch: tuple[torch.Tensor, torch.Tensor], settings: dict[str, Any]
) -> tuple[list[list[int]], np.ndarray | None]:
    ids, mask = batch
    generated = model.generate(
        input_ids=ids,
        attention_mask=mask,
        num_beams=settings["num_beams"],
        num_return_sequences=settings["num_return_sequences"],
        eos_token_id=settings["eos"],
        max_length=settings["max_length"],
        min_length=settings["min_length"],
        no_repeat_ngram_size=settings["no_repeat_ngram_size"],
        return_dict_in_generate=True,
        output_scores=True,
        do_sample=False,
        **(
            {name: settings[name] for name in ("length_penalty", "early_stopping")} if settings["num_beams"] > 1 else {}
        ),
    )
    sequences = []
    for row in generated.sequences[:, 1:].tolist():
        ends = [position for position, token in enumerate(row) if token in settings["eos"]]
        sequences.append(row[: ends[0] + 1] if ends else row)
    scores = generated.sequences_scores.numpy() if settings["num_beams"] > 1 else None
    return sequences, scores


DEFAULTS: dict[str, Any] = {
    "eos": [EOS],
    "max_length": 14,
    "min_length": 0,
    "no_repeat_ngram_size": 0,
    "length_penalty": 1.0,
    "early_stopping": False,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: " ".join(f"{k}={v}" for k, v in case.items()) or "defaults")
@pytest.mark.parametrize(("num_beams", "num_return_sequences"), [(1, 1), (4, 1), (4, 3), (5, 5)])
def test_equals_generate(
    model: T5ForConditionalGeneration,
    batch: tuple[torch.Tensor, torch.Tensor],
    case: dict[str, Any],
    num_beams: int,
    num_return_sequences: int,
) -> None:
    settings = DEFAULTS | {"num_beams": num_beams, "num_return_sequences": num_return_sequences} | case
    sequences, scores = generate(model, batch, settings)
    hypotheses = [pair for source in search(model, batch, settings) for pair in source]
    assert [tokens for tokens, _ in hypotheses] == sequences
    if scores is not None:
        np.testing.assert_allclose([score for _, score in hypotheses], scores, atol=1e-4, rtol=0)


def test_the_random_model_gives_varied_hypotheses(
    model: T5ForConditionalGeneration, batch: tuple[torch.Tensor, torch.Tensor]
) -> None:
    results = search(model, batch, DEFAULTS | {"num_beams": 4, "num_return_sequences": 4})
    assert len({len(tokens) for source in results for tokens, _ in source}) > 4
    assert len({tuple(tokens) for source in results for tokens, _ in source}) > 12
