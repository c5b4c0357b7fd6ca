"""The logits processor inside ``generate``, against a reference that reads everything again for every token."""

from __future__ import annotations

import importlib
import math
import sys
from typing import Any, NamedTuple

import pytest

pytest.importorskip("transformers", reason="needs the transformers extra")

import numpy as np
import torch
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from groundwire.adapters.transformers import FLOOR, PMILogitsProcessor, contrast
from groundwire.runtime.errors import InvalidRequest
from tests.reference import pmi_decode
from tests.reference.beam_search import Options, beam_search
from tests.support import models

HISTORY = ("how many strings does the guitar have?", "where was the show filmed?")
KNOWLEDGE = (
    "The guitar is a string instrument, and most guitars have six strings. ",
    "It was filmed in a small studio in Indiana. ",
)
GRID = [(0.0, 0.6), (0.25, 0.6), (0.25, 1.0), (0.5, 0.75), (0.5, 0.9), (1.0, 0.6), (1.0, 1.0)]
"""Alpha and top-p; tests/runtime goes through all of the paper's."""
NEW, BEAMS = 6, 3


class Family(NamedTuple):
    model: Any
    given: Any
    alone: Any
    """Both contexts of both sources, padded: input_ids and attention_mask."""
    references: list[pmi_decode.PmiDecodeReference]
    starts: list[int]
    eos: tuple[int, ...]
    width: int
    """Columns in front of what ``generate`` adds."""


@pytest.fixture(scope="module", params=["bart", "t5", "bert", "gpt2", "bloom"])
def family(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Family:
    folder, name = tmp_path_factory.mktemp(request.param), request.param
    causal = name in ("gpt2", "bloom")
    path = models.language_model(folder, name) if causal else models.encoder_decoder(folder, name)
    tokens = AutoTokenizer.from_pretrained(path, padding_side="left" if causal else "right")
    if tokens.pad_token is None:
        tokens.pad_token = tokens.eos_token
    kind = AutoModelForCausalLM if causal else AutoModelForSeq2SeqLM
    model = kind.from_pretrained(path).eval()
    model.generation_config.pad_token_id = tokens.pad_token_id
    texts = [[a + b for a, b in zip(KNOWLEDGE, HISTORY, strict=True)], list(HISTORY)]
    given, alone = (tokens(text, return_tensors="pt", padding=True, return_token_type_ids=False) for text in texts)
    rows = [[tokens(text)["input_ids"] for text in context] for context in texts]
    start = None if causal else (model.generation_config.decoder_start_token_id or 0)
    return Family(
        model,
        given,
        alone,
        [pmi_decode.PmiDecodeReference(model, *pair) for pair in zip(*rows, strict=True)],
        [row[-1] if start is None else start for row in rows[0]],
        (model.generation_config.eos_token_id,),
        given.input_ids.shape[1] if causal else 1,
    )


def write(family: Family, alpha: float, top_p: float, **options: Any) -> list[list[int]]:
    """What ``generate`` adds for each source, without padding after the end token."""
    rule = PMILogitsProcessor(
        family.model, family.alone.input_ids, family.alone.attention_mask, alpha=alpha, pmi_top_p=top_p
    )
    out = family.model.generate(**family.given, logits_processor=[rule], max_new_tokens=NEW, **options)
    return [ended(row[family.width :].tolist(), family.eos) for row in out]


def ended(ids: list[int], eos: tuple[int, ...]) -> list[int]:
    ends = [index for index, token in enumerate(ids) if token in eos]
    return ids[: ends[0] + 1] if ends else ids


def test_greedy_search_gives_the_tokens_of_the_reference(family: Family) -> None:
    written = set()
    for alpha, top_p in GRID:
        sequences = write(family, alpha, top_p, do_sample=False)
        expected = [
            reference.greedy(start, family.eos, alpha, top_p, NEW)
            for reference, start in zip(family.references, family.starts, strict=True)
        ]
        assert sequences == expected, (alpha, top_p)
        written.add(str(sequences))
    assert len(written) > 3, "the settings must matter, or this test compares nothing"


def test_beam_search_gives_the_best_sequence_of_the_reference(family: Family) -> None:
    for alpha, top_p in GRID[1::2]:
        sequences = write(family, alpha, top_p, do_sample=False, num_beams=BEAMS)
        for reference, start, tokens in zip(family.references, family.starts, sequences, strict=True):
            options = Options(BEAMS, 1, start, family.eos, NEW + 1, 0, 0, 1.0, False)
            (best, _), *_ = beam_search(reference.scores(alpha, top_p), options)
            assert tokens == best, (alpha, top_p)


def test_alpha_0_and_top_p_1_is_plain_decoding(family: Family) -> None:
    for options in ({}, {"num_beams": BEAMS}):
        plain = family.model.generate(**family.given, max_new_tokens=NEW, do_sample=False, **options)
        assert write(family, 0.0, 1.0, do_sample=False, **options) == [
            ended(row[family.width :].tolist(), family.eos) for row in plain
        ]


@pytest.mark.parametrize("beams", [1, BEAMS])
def test_what_is_sampled_is_in_the_top_p_set(family: Family, beams: int) -> None:
    torch.manual_seed(1)
    options = {"num_beams": beams, "num_return_sequences": BEAMS}
    sequences = write(family, 0.5, 0.6, do_sample=True, top_k=0, **options)
    for row, tokens in enumerate(sequences):
        reference, start = family.references[row // BEAMS], family.starts[row // BEAMS]
        scores = reference.scores(0.5, 0.6)
        assert all(scores((start, *tokens[:at]))[token] > -math.inf for at, token in enumerate(tokens))


def test_the_reference_reads_both_contexts(family: Family) -> None:
    reference, start = family.references[0], family.starts[0]
    given, without = (reference.log_probs(context, (start,)) for context in (0, 1))
    assert abs(given - without).max() > 0.01


LOGITS = st.lists(st.one_of(st.floats(-6, 6), st.just(-math.inf)), min_size=3, max_size=9)


@settings(deadline=None)
@drawn(LOGITS, LOGITS, st.sampled_from([0.0, 0.25, 0.5, 1.0]), st.sampled_from([0.3, 0.6, 0.9, 1.0]))
def test_the_rule_is_the_formula_also_with_impossible_tokens(
    a: list[float], b: list[float], alpha: float, top_p: float
) -> None:
    size = min(len(a), len(b))
    rows = [torch.tensor(values[:size], dtype=torch.float64) for values in (a, b)]
    if any((row == -math.inf).all() for row in rows):
        return
    given, without = (torch.log_softmax(row, -1) for row in rows)
    scores = contrast(given[None], without[None], alpha, top_p)[0]
    assert not scores.isnan().any()
    bounded = without.clamp(min=FLOOR)
    expected = pmi_decode.contrast(given.tolist(), bounded.tolist(), alpha, top_p)
    assert scores.tolist() == pytest.approx(expected)
    shifted = contrast(given[None] + 3.0, without[None], alpha, top_p)[0]
    assert shifted.tolist() == pytest.approx((scores + 3.0).tolist()), "logits are as good"


IMPOSSIBLE = -math.inf


@pytest.mark.parametrize(
    ("a", "b", "alpha", "expected"),
    [
        # both impossible: the difference is -inf, never NaN
        ([0.0, IMPOSSIBLE], [0.0, IMPOSSIBLE], 0.5, [0.0, IMPOSSIBLE]),
        ([0.0, IMPOSSIBLE], [0.0, IMPOSSIBLE], 1.0, [0.0, IMPOSSIBLE]),
        # impossible without the knowledge only: nothing speaks for the knowledge more
        ([math.log(0.5), math.log(0.5)], [0.0, IMPOSSIBLE], 0.25, [math.log(0.5), math.log(0.5) - 0.25 * FLOOR]),
        # ... but alpha 0 does not ask
        ([math.log(0.5), math.log(0.5)], [0.0, IMPOSSIBLE], 0.0, [math.log(0.5), math.log(0.5)]),
        # impossible with the knowledge stays so
        ([0.0, IMPOSSIBLE], [math.log(0.5), math.log(0.5)], 1.0, [math.log(2), IMPOSSIBLE]),
    ],
)
def test_impossible_tokens(a: list[float], b: list[float], alpha: float, expected: list[float]) -> None:
    scores = contrast(torch.tensor([a]), torch.tensor([b]), alpha, 1.0)[0].tolist()
    assert scores == pytest.approx(expected)


def test_blocked_words_stay_blocked_and_beams_keep_their_scores(family: Family) -> None:
    """Blocking takes words out before the set is taken, and beams compare scores of the whole vocabulary."""
    alpha, top_p = 0.5, 0.6
    sequences = write(family, alpha, top_p, do_sample=False, num_beams=BEAMS, min_new_tokens=3)
    for reference, start, tokens in zip(family.references, family.starts, sequences, strict=True):

        def scores(prefix: tuple[int, ...], reference: pmi_decode.PmiDecodeReference = reference) -> Any:
            a, b = (reference.log_probs(context, prefix).copy() for context in (0, 1))
            if len(prefix) <= 3:
                a[list(family.eos)] = -math.inf
            lost = float(np.log(np.exp(a).sum()))
            kept = pmi_decode.contrast((a - lost).tolist(), b.tolist(), alpha, top_p)
            return np.array(kept, dtype=np.float32) + np.float32(lost)

        (best, _), *_ = beam_search(scores, Options(BEAMS, 1, start, family.eos, NEW + 1, 0, 0, 1.0, False))
        assert tokens == best


def test_at_least_one_token_is_kept() -> None:
    given = torch.log_softmax(torch.tensor([[30.0, 0.0, 0.0]]), -1)
    kept = contrast(given, given, 0.5, 1e-9) > -math.inf
    assert kept.tolist() == [[True, False, False]]


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return AutoModelForCausalLM.from_pretrained(models.language_model(tmp_path_factory.mktemp("g"), "gpt2")).eval()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"alpha": 1.5}, r"alpha=1\.5; allowed are 0 \(plain decoding\) to 1"),
        ({"alpha": float("nan")}, "alpha=nan"),
        ({"pmi_top_p": 0.0}, r"pmi_top_p=0\.0; allowed is above 0 up to 1"),
        ({"unconditional_mask": torch.tensor([[1, 1, 0]])}, "padded on the right"),
        ({"unconditional_mask": torch.tensor([[0, 0, 0]])}, "a token in every row"),
        ({"unconditional_mask": torch.tensor([[1, 1]])}, r"shape \(1, 3\) and its mask \(1, 2\)"),
    ],
)
def test_settings_out_of_range(gpt2: Any, settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(InvalidRequest, match=problem):
        PMILogitsProcessor(gpt2, torch.tensor([[5, 6, 7]]), **settings)


def test_one_processor_serves_one_call(gpt2: Any) -> None:
    rule = PMILogitsProcessor(gpt2, torch.tensor([[5, 6, 7]]))
    prompt = {"input_ids": torch.tensor([[9, 5, 6, 7]]), "attention_mask": torch.ones(1, 4, dtype=torch.int64)}
    gpt2.generate(**prompt, logits_processor=[rule], max_new_tokens=3, pad_token_id=0)
    with pytest.raises(InvalidRequest, match="make a new one for every call"):
        gpt2.generate(**prompt, logits_processor=[rule], max_new_tokens=3, pad_token_id=0)


def test_rows_that_are_no_multiple_of_the_sources(gpt2: Any) -> None:
    rule = PMILogitsProcessor(gpt2, torch.tensor([[5, 6], [6, 7]]))
    with pytest.raises(InvalidRequest, match=r"works on 1 rows and unconditional_ids has 2"):
        gpt2.generate(torch.tensor([[9, 5]]), logits_processor=[rule], max_new_tokens=3, pad_token_id=0)


def test_without_transformers_the_import_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "groundwire.adapters.transformers")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(ImportError, match=r"pip install 'groundwire\[transformers\]'"):
        importlib.import_module("groundwire.adapters.transformers")
