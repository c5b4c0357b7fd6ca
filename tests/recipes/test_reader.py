"""The reader: labels that line up with tokens, its loss, resuming, the short backbone, its measure."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from transformers import MPNetConfig, MPNetModel, PreTrainedTokenizerFast

from groundwire.evaluate.twins.edits import EditedSpan
from groundwire.export import Gate, ReaderSettings, RoleOptions, export_bundle
from groundwire.recipes.common import backbone
from groundwire.recipes.common.loop import Schedule, collate
from groundwire.recipes.compact.multitask_examples import MultitaskExample
from groundwire.recipes.compact.multitask_model import IGNORED, TOKEN_HEAD, TOKEN_LABELS
from groundwire.recipes.reader import composition, contrasts, measure, recipe
from groundwire.recipes.reader.bundle import make_checkpoint
from groundwire.recipes.reader.examples import ReaderExamples
from groundwire.recipes.reader.feed import FILL, make_local_batches, make_worker_batches
from groundwire.recipes.reader.loss import ReaderLoss, compute_head_logits, compute_losses, compute_ranking_loss
from groundwire.recipes.reader.model import (
    PUBLISHED_CONFIG,
    SENTENCE_HEAD,
    SENTENCE_IDS,
    STATES_NOTHING,
    SUPPORTED,
    UNSUPPORTED,
    Reader,
    build_reader,
    freeze,
    load_reader,
    load_start,
    make_pooling,
    map_words,
    name_frozen,
    read_checkpoint,
)
from groundwire.recipes.reader.rows import HISTORY_MARK, AnswerRow, LabelledRange, encode_answer, label_ranges
from groundwire.recipes.reader.worlds_source import draw_world_pair, load_worlds
from tests.support.readers import make_decided, make_tiny
from tests.support.training_sets import write_gzipped, write_jsonl

SCHEDULE = Schedule(steps=3, batch=4, seed=2, autocast="off")
KNOWLEDGE = "The shop opens at nine. It is in Leeds."
RESPONSE = "Hello! It opens at ten. It is in Leeds."
SPAN = EditedSpan(RESPONSE.index("ten"), RESPONSE.index("ten") + 3, "number")
INCONSISTENT = MultitaskExample(KNOWLEDGE, RESPONSE, "x", {"consistency": "inconsistent"}, (SPAN,))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a tiny MPNet of six layers."""
    folder = tmp_path_factory.mktemp("mpnet")
    make_tiny(layers=6).backbone.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def tokens() -> PreTrainedTokenizerFast:
    return backbone.load_tokenizer()


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory, sets: Path) -> ReaderExamples:
    return ReaderExamples.read(sets)


def test_the_words_of_bert_become_those_of_mpnet() -> None:
    words = map_words(30527)
    assert len(words) == 30522
    assert [int(words[index]) for index in (101, 102, 0, 100, 2054)] == [0, 2, 1, 3, 2058]


def test_sentences_and_spans_line_up_with_tokens(tokens: PreTrainedTokenizerFast) -> None:
    answer = AnswerRow(INCONSISTENT, label_ranges(INCONSISTENT, frozenset({"hello"})), ("When does it open?",))
    row = encode_answer(tokens, answer, 64, cut=False)
    assert row is not None
    pieces = tokens.convert_ids_to_tokens(row["input_ids"])
    assert HISTORY_MARK.strip() in pieces
    by_sentence = [
        [piece for piece, number in zip(pieces, row[SENTENCE_IDS], strict=True) if number == sentence]
        for sentence in (1, 2, 3)
    ]
    assert by_sentence == [["hello", "!"], ["it", "opens", "at", "ten", "."], ["it", "is", "in", "leeds", "."]]
    assert row[SENTENCE_HEAD] == [STATES_NOTHING, UNSUPPORTED, SUPPORTED]
    labelled = [(p, label) for p, label in zip(pieces, row[TOKEN_HEAD], strict=True) if label != IGNORED]
    assert [piece for piece, _ in labelled] == [piece for part in by_sentence for piece in part]
    assert [p for p, label in labelled if label == TOKEN_LABELS.index("number")] == ["ten"]


@pytest.mark.parametrize(
    ("example", "labels"),
    [
        (MultitaskExample("k", "One. Two.", "x", {"consistency": "consistent"}), [SUPPORTED, SUPPORTED]),
        (MultitaskExample("k", "One. Is it?", "x", {"consistency": "consistent"}), [SUPPORTED, STATES_NOTHING]),
        (MultitaskExample("k", "One. Two.", "x", {"consistency": "inconsistent"}), [IGNORED, IGNORED]),
        (MultitaskExample("k", "Is it?", "x", {"consistency": "inconsistent"}), [UNSUPPORTED]),
        (MultitaskExample("k", "Hello there!", "chat", {}, ()), [STATES_NOTHING]),
        (MultitaskExample("k", "One.", "x", {"nli": "entailment"}), []),
        (MultitaskExample("k", None, "x", {"verifiability": "verifiable"}), []),
    ],
)
def test_sentence_labels_follow_from_the_labels_of_the_answer(example: MultitaskExample, labels: list[int]) -> None:
    assert [part.label for part in label_ranges(example)] == labels


def test_the_number_of_a_list_item_belongs_to_it_and_a_cut_item_has_no_label(tokens: PreTrainedTokenizerFast) -> None:
    text = "1. It opens at nine.\n2. It is in Leeds, which is a large town in the north."
    example = MultitaskExample("k", text, "x", {"consistency": "consistent"})
    first, second = text.index("It"), text.index("It is")
    answer = AnswerRow(example, (LabelledRange(first, 20, SUPPORTED), LabelledRange(second, len(text), SUPPORTED)))
    whole, cut = (encode_answer(tokens, answer, limit, cut=True) for limit in (64, 20))
    assert whole is not None
    assert cut is not None
    assert whole[SENTENCE_HEAD] == [SUPPORTED, SUPPORTED]
    assert cut[SENTENCE_HEAD] == [SUPPORTED, IGNORED]
    assert encode_answer(tokens, answer, 20, cut=False) is None


def test_pooling_averages_the_tokens_of_a_sentence() -> None:
    pooling = make_pooling(torch.tensor([[0, 1, 1, 2, 0]]), 3)
    assert pooling.tolist() == [[[0, 0.5, 0.5, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 0, 0]]]


def test_padding_changes_no_logits(tokens: PreTrainedTokenizerFast) -> None:
    answer = AnswerRow(INCONSISTENT, label_ranges(INCONSISTENT))
    longer = replace(answer, history=("When does it open, and where is it?",) * 3)
    rows = [encode_answer(tokens, each, 128, cut=False) for each in (answer, longer)]
    reader = make_tiny().eval()
    together = compute_head_logits(reader, collate([row for row in rows if row], FILL))
    alone = compute_head_logits(reader, collate([row for row in rows[:1] if row], FILL))
    assert torch.allclose(together[SENTENCE_HEAD][0, :3], alone[SENTENCE_HEAD][0, :3], atol=1e-5)
    assert torch.allclose(together["consistency"][0], alone["consistency"][0], atol=1e-5)


def test_the_sentence_loss_is_the_weighted_mean_of_labelled_sentences(tokens: PreTrainedTokenizerFast) -> None:
    row = encode_answer(
        tokens, AnswerRow(INCONSISTENT, label_ranges(INCONSISTENT, frozenset({"hello"}))), 64, cut=False
    )
    assert row is not None
    batch, reader = collate([row] * 2, FILL), make_tiny().eval()
    log_probs = compute_head_logits(reader, batch)[SENTENCE_HEAD][0].log_softmax(-1)
    expected = -(0.7 * log_probs[0, STATES_NOTHING] + 2 * log_probs[1, UNSUPPORTED] + log_probs[2, SUPPORTED]) / 3.7
    assert compute_losses(reader, batch)[1].item() == pytest.approx(expected.item(), rel=1e-5)


def test_the_ranking_loss_compares_the_rows_of_a_group() -> None:
    """A group of one label has no order; the better row is the consistent one, wherever it is in the group."""
    whole = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.0, 1.0], [2.0, 0.0], [5.0, 0.0], [0.0, 5.0]])
    sentences = torch.zeros(6, 2, 3)
    sentences[1, 1, UNSUPPORTED] = 9.0  # the row has one sentence, so this is padding
    batch = {
        "consistency": torch.tensor([0, 1, 1, 0, 0, 0]),
        SENTENCE_IDS: torch.ones(6, 3, dtype=torch.long),
    }
    loss = compute_ranking_loss({"consistency": whole, SENTENCE_HEAD: sentences}, batch)
    expected = 2 * (np.log1p(np.exp(-3.0)) + np.log(2)) / 3
    assert loss.item() == pytest.approx(expected, rel=1e-5)


def test_parts_of_a_batch_add_up_to_its_loss(tokens: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    """Rows that are equal have equal losses, so parts weigh as they do in the whole."""
    row = encode_answer(tokens, AnswerRow(INCONSISTENT, label_ranges(INCONSISTENT)), 64, cut=False)
    assert row is not None
    batch, reader = collate([row] * 6, FILL), make_tiny().eval()
    gradients = []
    for max_tokens in (0, 2 * len(row["input_ids"]) + 20):
        reader.zero_grad()
        loss = ReaderLoss(tmp_path / "losses.jsonl", max_tokens, every=1)(reader, batch)
        torch.autograd.backward(loss)
        gradient = reader.whole.weight.grad
        assert gradient is not None
        gradients.append((loss.item(), gradient))
    assert gradients[0][0] == pytest.approx(gradients[1][0], rel=1e-5)
    assert torch.allclose(gradients[0][1], gradients[1][1], atol=1e-6)
    lines = [json.loads(line) for line in (tmp_path / "losses.jsonl").read_text().splitlines()]
    assert lines[0]["others"] == pytest.approx(lines[1]["others"], abs=1e-3)


def test_sentences_around_an_answer_keep_its_labels() -> None:
    knowledge = "The old shop opens at nine. It was founded in Leeds by Ann Miller."
    answers = [
        AnswerRow(example, label_ranges(example))
        for example in (
            MultitaskExample(
                knowledge, "It opens at nine", "x", {"consistency": "consistent", "nli": "entailment"}, ()
            ),
            MultitaskExample(
                knowledge, "It opens at ten", "x", {"consistency": "inconsistent"}, (replace(SPAN, start=12, end=15),)
            ),
        )
    ]
    for seed in range(20):
        good, bad = composition.surround((answers[0], answers[1]), lambda _: "Hi there!", random.Random(seed))
        text = bad.example.second or ""
        assert bad.example.spans is not None
        assert [text[span.start : span.end] for span in bad.example.spans] == ["ten"]
        for answer, label in ((good, SUPPORTED), (bad, UNSUPPORTED)):
            whole = answer.example.second or ""
            parts = {whole[part.start : part.end].rstrip("."): part.label for part in answer.ranges}
            assert next(kind for part, kind in parts.items() if part.startswith("It opens")) == label
            assert all(
                kind == (STATES_NOTHING if part == "Hi there!" else label if "It op" in part else SUPPORTED)
                for part, kind in parts.items()
            )
        assert "nli" not in good.example.labels


def test_contrasts_have_one_claim_and_two_revisions(tmp_path: Path) -> None:
    rows = [
        {"premise": f"{count} people came.", "hypothesis": "More than 5 people came.", "label": label,
         "case": "a", "title": "A -LRB-song-RRB-"}
        for count, label in ((9, "entailment"), (3, "contradiction"))
    ]  # fmt: skip
    (tmp_path / "more").mkdir()
    write_gzipped(tmp_path / "more" / "nli_vitaminc.jsonl.gz", rows)
    drawn = contrasts.read_contrasts(tmp_path)["vitaminc"].draw(random.Random(1))
    assert {answer.example.second for answer in drawn} == {"More than 5 people came."}
    assert {answer.ranges[0].label for answer in drawn} <= {SUPPORTED, UNSUPPORTED}
    assert contrasts.clean_title("A -LRB-song-RRB-") == "A (song)"


def test_labels_of_worlds_agree(tokens: PreTrainedTokenizerFast) -> None:
    worlds = load_worlds("train")
    for seed in range(10):
        good, bad = draw_world_pair(worlds, 80, random.Random(seed))
        for answer in (good, bad):
            row = encode_answer(tokens, answer, 512, cut=False)
            assert row is not None
            wrong = answer.example.labels["consistency"] == "inconsistent"
            assert (UNSUPPORTED in row[SENTENCE_HEAD]) == wrong
            assert any(label > 0 for label in row[TOKEN_HEAD]) == wrong


def test_every_source_gives_groups_that_fit(examples: ReaderExamples) -> None:
    assert {"worlds", "minimal", "public", "facts"} <= set(examples.shares)
    for source in examples.shares:
        for row in examples.draw(source, random.Random(5)):
            assert len(row["input_ids"]) == len(row[SENTENCE_IDS]) <= 320
            assert max(row[SENTENCE_IDS]) <= len(row[SENTENCE_HEAD])


def test_a_resumed_feed_gives_the_same_batches(examples: ReaderExamples) -> None:
    feed = partial(make_local_batches, examples.make, replace(SCHEDULE, steps=6, batch=4))
    whole, rest = list(feed(0)), list(feed(3))
    assert len(rest) == 3
    for expected, batch in zip(whole[3:], rest, strict=True):
        assert all(torch.equal(expected[name], batch[name]) for name in FILL)


def _make_row(index: int, rng: random.Random) -> tuple[dict[str, list[int]], ...]:
    ids = [index % 1000 + 200] * rng.randint(2, 20)
    row = {name: ids if "input" in name else [0] if name in ("nli", "consistency", "verifiability") else [1] * len(ids)
           for name in FILL}  # fmt: skip
    return row, row


def _build() -> Any:
    return _make_row


def test_worker_processes_give_the_same_batches() -> None:
    schedule = replace(SCHEDULE, steps=60)
    local = list(make_local_batches(_make_row, schedule, 10))
    drawn = list(make_worker_batches(_build, schedule, 10, workers=1))
    assert len(local) == len(drawn) == 50
    assert all(torch.equal(a["input_ids"], b["input_ids"]) for a, b in zip(local, drawn, strict=True))


@pytest.mark.parametrize("layers", [2, 6])
def test_the_lowest_layers_are_kept(source: Path, layers: int) -> None:
    reader, whole = build_reader(source, layers), build_reader(source, 6)
    kept = reader.backbone.state_dict()
    assert len(reader.backbone.encoder.layer) == layers
    assert all(torch.equal(value, whole.backbone.state_dict()[name]) for name, value in kept.items())


def test_a_run_continues_and_is_measured(
    sets: Path, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recipe, "check_published_weights", lambda _: None)
    options = recipe.ReaderOptions(source, layers=2, frozen=1)
    before = build_reader(source, 2).state_dict()
    recipe.train_reader(sets, tmp_path, replace(SCHEDULE, steps=2), options)
    (source / "model.safetensors").rename(tmp_path / "unused")  # a run has all weights
    reader = recipe.train_reader(sets, tmp_path, SCHEDULE, options)
    (tmp_path / "unused").rename(source / "model.safetensors")
    assert torch.load(tmp_path / "checkpoint.pt", weights_only=True)["step"] == 3
    frozen = [name for name, value in reader.state_dict().items() if torch.equal(value, before[name])]
    assert all("embeddings" in name or "layer.0." in name for name in frozen if "backbone" in name)
    assert any("layer.0." in name for name in frozen)
    assert len(freeze(reader, 1)) < len(list(reader.parameters()))
    write_jsonl(
        tmp_path / "q2_wow_600.jsonl",
        [{"knowledge": KNOWLEDGE, "response": RESPONSE, "history": [], "label": label} for label in (0, 1)],
    )
    report = measure.measure_reader(tmp_path, tmp_path, pairs=0)
    assert json.loads((tmp_path / "measure-3.json").read_text()) == report
    assert report["q2_wow_600"]["by_sentences"]["2-3"]["rows"] == 2
    loaded = load_reader(tmp_path)
    assert loaded.backbone.config.num_hidden_layers == 2
    figures = measure.measure_source(loaded, partial(draw_world_pair, load_worlds("train")), 4)
    assert figures["rows"] == 8
    assert set(figures["roc_auc"]) == {"whole", "nli", "worst_sentence", "worst_token", "sentence"}


def test_a_checkpoint_of_the_trial_is_a_start(source: Path, tmp_path: Path) -> None:
    names = {"backbone.": "bert.", "whole.": "dense."}
    trained = make_tiny(layers=6)
    weights = {
        next((new + key.removeprefix(old) for old, new in names.items() if key.startswith(old)), key): value + 1
        for key, value in trained.state_dict().items()
        if "sentence" not in key
    }
    torch.save({"m": weights, "step": 5}, tmp_path / "ck.pt")
    reader = build_reader(source, 2, tmp_path / "ck.pt")
    for name, value in reader.state_dict().items():
        assert "sentence" in name or torch.equal(value, trained.state_dict()[name] + 1)


def test_span_f1_and_errors_by_length() -> None:
    tokens = torch.log(torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.2, 0.8], [0.9, 0.1]])).numpy()
    sentences = torch.tensor([[0.2, 0.7, 0.1], [0.8, 0.1, 0.1]]).numpy()
    labels: dict[str, Any] = {"label": 0, "whole": -1.0, "nli": -2.0, "sentences": sentences, "tokens": tokens}
    reading = measure.Reading(
        **labels, sentence_labels=torch.tensor([1, 0]).numpy(), token_labels=torch.tensor([0, 2, 2, 0]).numpy()
    )
    good = replace(reading, label=1, token_labels=torch.tensor([0, 0, 2, 0]).numpy())
    assert measure.measure_token_spans([reading, good]) == {"token_f1": pytest.approx(6 / 7, abs=1e-4), "span_f1": 0.5}
    report = measure.describe([reading, good])
    assert report["by_sentences"]["2-3"]["false_positive_rate"] == {"rows": 1, "whole": 1.0, "sentence": 1.0}
    assert report["by_sentences"]["2-3"]["false_negative_rate"] == {"rows": 1, "whole": 0.0, "sentence": 0.0}
    assert report["roc_auc"]["whole"] == 0.5


@pytest.mark.filterwarnings("ignore")  # The exporter warns of its own ways.
def test_the_graph_takes_any_number_of_sentences_and_tokens(tmp_path: Path) -> None:
    reader, names = make_tiny().eval(), ["input_ids", "attention_mask", "pooling"]
    axes = {"input_ids": {0: "b", 1: "t"}, "attention_mask": {0: "b", 1: "t"}, "pooling": {0: "b", 1: "s", 2: "t"}}

    def draw(rows: int, sentences: int, length: int) -> tuple[torch.Tensor, ...]:
        ids = torch.randint(200, 900, (rows, length))
        ids[0, -2:] = 0
        return ids, (ids > 0).long(), torch.rand(rows, sentences, length)

    options: dict[str, Any] = {"dynamo": False, "input_names": names, "output_names": list(reader.heads)}
    torch.onnx.export(reader, draw(2, 3, 12), str(tmp_path / "graph.onnx"), dynamic_axes=axes, **options)
    session = onnxruntime.InferenceSession(tmp_path / "graph.onnx", providers=["CPUExecutionProvider"])
    inputs = draw(3, 5, 20)
    outputs = session.run(None, {name: value.numpy() for name, value in zip(names, inputs, strict=True)})
    with torch.inference_mode():
        expected = reader(*inputs)
    for name, values in zip(expected, outputs, strict=True):
        assert torch.allclose(expected[name], torch.from_numpy(values), atol=1e-5)


def test_rows_are_chosen_at_equal_distances() -> None:
    rows = [{"number": index} for index in range(10)]
    assert [row["number"] for row in measure.choose_rows(rows, 4)] == [0, 2, 5, 7]
    assert measure.choose_rows(rows, 20) == rows


def test_a_bundle_is_a_start(tmp_path: Path) -> None:
    """The embeddings stay the published ones; the other weights move by no more than their rounding."""
    trained, other = make_decided(6), make_tiny(6)
    role = RoleOptions("tiny", ReaderSettings(make_checkpoint(trained, "tiny", 64), HISTORY_MARK), gate=Gate(0.5))
    before = {name: value.clone() for name, value in other.state_dict().items()}
    load_start(other, read_checkpoint(export_bundle({"reader": role}, tmp_path / "bundle").directory), published=True)
    for name, value in other.state_dict().items():
        expected = before[name] if name.startswith(name_frozen(0)) else trained.state_dict()[name]
        assert torch.allclose(value, expected, atol=float(expected.abs().max()) / 100), name


def test_a_bundle_is_read_as_a_run_is(tmp_path: Path) -> None:
    """A reader of one layer, with the widths of the published model."""
    torch.manual_seed(3)
    trained = Reader(MPNetModel(MPNetConfig(**PUBLISHED_CONFIG, num_hidden_layers=1), add_pooling_layer=False)).eval()
    with torch.no_grad():  # equal weights are stored once, under one name
        for parameter in trained.parameters():
            parameter += 0.02 * torch.randn_like(parameter)
    role = RoleOptions("one", ReaderSettings(make_checkpoint(trained, "one", 64), HISTORY_MARK), precision="fp32")
    export_bundle({"reader": role}, tmp_path / "bundle")
    loaded = load_reader(tmp_path / "bundle").state_dict()
    assert loaded.keys() == trained.state_dict().keys()
    for name, value in trained.state_dict().items():
        assert torch.allclose(loaded[name], value, atol=1e-6), name
