"""The document-conditioned language model: where it starts, what it reads, what its loss counts."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer
from transformers import BertModel, GPT2LMHeadModel

from groundwire.recipes.common import backbone
from groundwire.recipes.common.loop import Schedule, collate
from groundwire.recipes.compact import lm
from groundwire.recipes.compact.lm import build_language_model, encode_prefix, encode_prompt, response_loss
from groundwire.recipes.synthesis.prompts import Prompt, PromptSampler

SCHEDULE = Schedule(steps=3, batch=4, seed=2, autocast="off")


@pytest.fixture(scope="module")
def trained(sets: Path, tiny_backbone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint after three steps, with two layers, from the tiny backbone."""
    out = tmp_path_factory.mktemp("lm")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbone, "PATH", tiny_backbone)
        lm.train_language_model(sets, out, SCHEDULE, layers=2)
    return out


def built() -> GPT2LMHeadModel:
    """The model before training, every token equally frequent."""
    return build_language_model(torch.ones(len(backbone.load_tokenizer())), 2)


def test_the_first_block_looks_where_minilm_looks(small: Path) -> None:
    torch.manual_seed(0)
    model, bert = built().eval(), BertModel.from_pretrained(small, add_pooling_layer=False).eval()
    ids = torch.tensor([[5, 17, 40, 8, 30]])
    first, minilm = model.transformer.h[0], bert.encoder.layer[0].attention.self
    with torch.inference_mode():
        embedded = model.transformer.wte(ids) + model.transformer.wpe(torch.arange(5))
        state = bert.embeddings(ids)
        torch.testing.assert_close(first.ln_1(embedded), state)
        queries, keys, _ = first.attn.c_attn(state).split(64, dim=-1)
        torch.testing.assert_close(queries, minilm.query(state))
        torch.testing.assert_close(keys, minilm.key(state))


def test_more_positions_leave_what_the_others_compute(small: Path) -> None:
    torch.manual_seed(0)
    short = build_language_model(torch.ones(len(backbone.load_tokenizer())), 2, positions=0).eval()
    old = short.config.n_positions
    ids = torch.arange(5, 5 + old)[None] % 50
    with torch.inference_mode():
        expected = short(ids).logits
        lm.extend_positions(short, 2 * old + 3)
        torch.testing.assert_close(short(ids).logits, expected)
        assert short(ids.repeat(1, 2)).logits.shape[1] == 2 * old
    assert short.config.n_positions == len(short.transformer.wpe.weight) == 2 * old + 3
    torch.testing.assert_close(short.transformer.wpe.weight[old : 2 * old], short.transformer.wpe.weight[:old])


def test_long_documents_are_surrounded_by_their_article(sets: Path, small: Path) -> None:
    tokens = backbone.load_tokenizer()
    prompts = PromptSampler.read(sets)
    for seed in range(30):
        question = prompts.questions[seed % len(prompts.questions)]
        short = prompts.draw_grounded(question, random.Random(seed))
        long = prompts.draw_grounded(question, random.Random(seed), 60)
        assert short.document in long.document
        assert long.document.count(short.document) == 1
        assert len(long.document.split()) <= max(60, len(short.document.split()))
        row = encode_prompt(tokens, long, random.Random(seed), lm.POSITIONS)
        assert len(row["input_ids"]) <= lm.POSITIONS
    assert any(
        len(prompts.draw_grounded(question, random.Random(1), 60).document.split()) > 30
        for question in prompts.questions
    )


def test_a_run_goes_on_from_a_checkpoint(sets: Path, small: Path, trained: Path, tmp_path: Path) -> None:
    lm.train_language_model(sets, tmp_path / "lm", SCHEDULE, start=trained)
    before, after = (GPT2LMHeadModel.from_pretrained(path) for path in (trained, tmp_path / "lm"))
    assert after.config.n_layer == before.config.n_layer
    torch.testing.assert_close(after.transformer.wte.weight, before.transformer.wte.weight)


def test_the_parts_are_tokenized_separately(small: Path) -> None:
    tokens = backbone.load_tokenizer()
    prompt = Prompt("The river is long.", "How long?", "It is 6,400 km")
    expected = []
    for text in ("Document: The river is long.\n\n", "How long?.\n", "Agent: It is 6,400 km."):
        expected += tokens(text, add_special_tokens=False)["input_ids"]
    row = encode_prompt(tokens, prompt, random.Random(0))
    assert row["input_ids"] == [*expected, tokens.sep_token_id]
    # Newlines are nothing to word pieces.
    assert (
        tokens("a\n\nb", add_special_tokens=False)["input_ids"] == tokens("a b", add_special_tokens=False)["input_ids"]
    )
    assert encode_prefix(tokens, Prompt("", "", "It is.")) == []
    assert (
        encode_prefix(tokens, Prompt("", "Why?", "It is.")) == tokens("Why?.\n", add_special_tokens=False)["input_ids"]
    )


def test_the_response_is_predicted_and_some_of_the_rest(small: Path) -> None:
    tokens = backbone.load_tokenizer()
    prompt = Prompt("The river is long. " * 9, "How long?", "It is 6,400 km")
    rows = [encode_prompt(tokens, prompt, random.Random(seed)) for seed in range(50)]
    response_length = len(tokens("Agent: It is 6,400 km.", add_special_tokens=False)["input_ids"]) + 1
    before = len(rows[0]["part"]) - response_length
    assert all(row["part"][before:] == [2] * response_length for row in rows)
    share = sum(sum(row["part"][:before]) for row in rows) / (50 * before)
    assert abs(share - lm.REST_SHARE) < 0.04


def test_long_parts_are_cut_on_their_own_side(small: Path) -> None:
    tokens = backbone.load_tokenizer()
    prompt = Prompt("river " * 500, " ".join(["shop"] * 500) + " film", "city " * 500)
    ids = encode_prefix(tokens, prompt)
    assert len(ids) == lm.MAX_DOCUMENT + lm.MAX_HISTORY
    first = tokens("Document: river", add_special_tokens=False)["input_ids"]
    last = tokens("film.", add_special_tokens=False)["input_ids"]
    assert (ids[: len(first)], ids[-len(last) :]) == (first, last)
    assert len(encode_prompt(tokens, prompt, random.Random(0))["input_ids"]) == len(ids) + lm.MAX_RESPONSE + 1


def test_the_loss_counts_responses_fully_and_the_rest_by_weight(small: Path) -> None:
    torch.manual_seed(0)
    model = built().eval()
    tokens = backbone.load_tokenizer()
    prompts = [Prompt("The river is long.", "How long?", "It is."), Prompt("", "", "The film is in New York.")]
    rows = [encode_prompt(tokens, prompt, random.Random(3)) for prompt in prompts]
    total, weights = 0.0, 0.0
    for row in rows:
        ids = torch.tensor([row["input_ids"]])
        with torch.inference_mode():
            logs = model(ids).logits[0].log_softmax(-1)
        for position in range(1, ids.shape[1]):
            weight = {0: 0.0, 1: lm.REST_WEIGHT, 2: 1.0}[row["part"][position]]
            total -= weight * float(logs[position - 1, ids[0, position]])
            weights += weight
    # Padded together: padding changes nothing.
    assert float(response_loss(model, collate(rows, lm.FILL)).detach()) == pytest.approx(total / weights, rel=1e-5)


def test_prompts_have_their_document_another_or_none(sets: Path) -> None:
    source = PromptSampler.read(sets)
    kinds = {"own": 0, "other": 0, "none": 0}
    for seed in range(600):
        prompt = source.draw(random.Random(seed))
        assert prompt.response
        answered = any(answer in prompt.document and answer in prompt.response for answer in _answers(source))
        kinds["none" if not prompt.document else "own" if answered else "other"] += 1
    shares = {name: count / 600 for name, count in kinds.items()}
    assert 0.25 < shares["none"] < 0.4
    assert shares["own"] > 0.35
    assert shares["other"] > 0.12
    chats = [source.draw(random.Random(seed)) for seed in range(300)]
    assert any(prompt.response.startswith("That's hilarious.") for prompt in chats)
    assert not any("held out" in prompt.response + prompt.history for prompt in chats)


def test_a_document_from_elsewhere_lacks_the_answer(sets: Path) -> None:
    source = PromptSampler.read(sets, "dev")
    question = next(question for question in source.questions if question.answer == "Tupelo")
    near = [source.draw_other_document(random.Random(seed), question) for seed in range(40)]
    assert len({"Presley" in text for text in near}) == 2
    assert sum("Tupelo" in text for text in near) < 12  # none of its own article, some of the random ones


def test_a_checkpoint_loads_and_its_word_embeddings_are_the_backbones(trained: Path, small: Path) -> None:
    model = GPT2LMHeadModel.from_pretrained(trained)
    bert = BertModel.from_pretrained(small, add_pooling_layer=False)
    assert torch.equal(model.transformer.wte.weight, bert.embeddings.word_embeddings.weight)
    assert torch.equal(model.lm_head.weight, model.transformer.wte.weight)
    assert len(model.transformer.h) == 2
    assert not torch.equal(model.transformer.wpe.weight, built().transformer.wpe.weight)


def test_the_saved_tokenizer_is_the_backbones(trained: Path, small: Path, tmp_path: Path) -> None:
    """So a bundle stores it once; who scores a text leaves its special tokens out."""
    backbone.load_tokenizer().save_pretrained(tmp_path)
    saved, original = (Tokenizer.from_file(str(folder / "tokenizer.json")) for folder in (trained, tmp_path))
    for tokens in (saved, original):
        tokens.no_truncation()  # how far the last text was cut says nothing about the tokenizer
        tokens.no_padding()
    assert saved.to_str() == original.to_str()


def test_the_report_compares_documents(trained: Path) -> None:
    report = json.loads((trained / "report.json").read_text())
    assert report["responses"] == 10
    assert set(report["log_prob"]) == {"document", "none", "other"}
    assert all(value < 0 for value in report["log_prob"].values())
    assert 0 <= report["prefers_document"] <= 1


def test_a_run_on_the_same_seed_is_the_same(sets: Path, small: Path, trained: Path, tmp_path: Path) -> None:
    lm.train_language_model(sets, tmp_path, SCHEDULE, layers=2)
    assert (tmp_path / "model.safetensors").read_bytes() == (trained / "model.safetensors").read_bytes()


def _answers(source: PromptSampler) -> list[str]:
    return [question.answer for question in source.questions]
