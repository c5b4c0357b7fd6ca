"""The hand-made heads: before any training, MiniLM's language model repeats what it has read."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import GPT2LMHeadModel

from groundwire.recipes.common import backbone
from groundwire.recipes.compact import induction_heads, lm


@pytest.fixture(scope="module")
def model() -> GPT2LMHeadModel:
    """MiniLM's language model before training; 300 of its words are frequent."""
    torch.manual_seed(0)
    return lm.build_language_model(COUNTS).eval()


COUNTS = torch.zeros(30522)
COUNTS[2000:2300] = 50


def gain(model: GPT2LMHeadModel, ids: list[int]) -> float:
    """How much more probable, per token, the second half of ``ids`` is than the first."""
    half = len(ids) // 2
    with torch.inference_mode():
        logs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
    each = [float(logs[position - 1, ids[position]]) for position in range(1, len(ids))]
    return sum(each[half:]) / len(each[half:]) - sum(each[: half - 1]) / (half - 1)


def test_what_was_read_is_expected_again(model: GPT2LMHeadModel) -> None:
    ids = torch.randint(5000, 20000, (40,), generator=torch.Generator().manual_seed(5)).tolist()
    assert gain(model, ids * 2) > 5
    # A text that does not repeat itself in order gains nothing.
    assert abs(gain(model, ids + ids[::-1])) < 1.5


def test_only_a_document_with_the_words_makes_a_response_more_probable(model: GPT2LMHeadModel) -> None:
    tokens = backbone.load_tokenizer()

    def mean(document: str) -> float:
        texts = (document, "Agent: It was found by Pinzon in 1500.")
        first, second = (tokens(text, add_special_tokens=False)["input_ids"] for text in texts)
        with torch.inference_mode():
            logs = model(torch.tensor([first + second])).logits[0].log_softmax(-1)
        return sum(float(logs[len(first) + i - 1, token]) for i, token in enumerate(second)) / len(second)

    none, other = mean("Agent:"), mean("Document: A husky is a dog that was bred in Siberia to pull sleds.")
    assert mean("Document: The mouth of the river was found by Pinzon in 1500.") > max(none, other) + 1
    assert abs(none - other) < 1


def test_frequent_words_are_expected_where_nothing_else_is(model: GPT2LMHeadModel) -> None:
    with torch.inference_mode():
        probabilities = model(torch.tensor([[7000]])).logits[0, 0].softmax(-1)
    assert float(probabilities[2000:2300].sum()) > 0.3
    assert float(probabilities[7000]) < 0.05  # the present word is not expected again


def test_frequencies_are_fitted() -> None:
    table = torch.randn(500, 20, generator=torch.Generator().manual_seed(0))
    state = torch.randn(20, generator=torch.Generator().manual_seed(1)) / 4
    counts = (table @ state).exp() * 1000
    fitted = induction_heads.fit_frequency_bias(table, counts)
    torch.testing.assert_close((table @ fitted).softmax(0), (table @ state).softmax(0), rtol=0.1, atol=1e-4)


def test_minilm_has_a_head_for_the_previous_token(model: GPT2LMHeadModel) -> None:
    ids = torch.tensor([backbone.load_tokenizer()("Pizza is a dish from Naples; it was sold in 1905.")["input_ids"]])
    head, count = induction_heads.find_previous_token_head(model, ids), ids.shape[1]
    eager = GPT2LMHeadModel(model.config)
    eager.load_state_dict(model.state_dict())
    eager.set_attn_implementation("eager")
    with torch.inference_mode():
        weights = eager(ids, output_attentions=True).attentions[0][0]
    assert float(weights[head, range(1, count), range(count - 1)].min()) > 0.9


def test_words_read_in_few_numbers_keep_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    words = torch.randn(3000, 64, generator=generator) * torch.linspace(0.1, 2, 64)
    positions = torch.randn(100, 4, generator=generator) @ torch.randn(4, 64, generator=generator)
    code = induction_heads._make_word_code(words, positions, 8)
    projected = (words - words.mean(0)) @ (code - code.mean(0))
    covariance = torch.cov(projected.T)
    assert float((covariance - torch.eye(8)).abs().max()) < 0.25
    # Positions are hardly seen: far less than their own size would let them be.
    assert float((positions @ code).std()) < 0.2 * float((positions @ torch.randn(64, 8, generator=generator)).std())
    quiet = induction_heads._find_quiet_directions(words, positions, 8)
    torch.testing.assert_close(quiet.T @ quiet, torch.eye(8))
    assert float(((words - words.mean(1, keepdim=True)) @ quiet).std()) < 0.5
    assert math.isclose(float(quiet.sum(0).abs().max()), 0, abs_tol=1e-3)
