"""The retriever's recipe on a graph in miniature and a tiny backbone: its examples, its training, its measurements."""

from __future__ import annotations

import json
import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("groundwire.recipes", reason="needs the train extra", exc_type=ImportError)

import torch

from groundwire.export import RoleOptions, export_role
from groundwire.export.roles.retriever import EntityRetriever, record, retriever_of
from groundwire.recipes.common import backbone
from groundwire.recipes.common.loop import Schedule
from groundwire.recipes.nph import ablation, bundle, evaluate, retriever
from groundwire.recipes.nph.batches import RetrieverBatcher, collate_examples, draw_batches, load_text_encoder
from groundwire.recipes.nph.compgcn import CompGCN, GraphMemory, use_graph_memory
from groundwire.recipes.nph.examples import RetrievalExample, RetrievalExamples
from groundwire.recipes.nph.loss import RetrieverLoss, RetrieverRecipe
from groundwire.recipes.nph.retriever import align_joint, build_retriever
from groundwire.recipes.nph.templates import TemplateDialogues
from groundwire.runtime.calls import Candidate, Retrieve
from groundwire.runtime.models.masked_input import build_memory_text, group_triples
from tests.support import graph_sets

SMALL = RetrieverRecipe(inner=64, max_tokens=96, words=0, aligned=32, lr=2e-3)
SCHEDULE = Schedule(steps=2, batch=8, autocast="off")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graph_sets.save(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def templates(data: Path) -> TemplateDialogues:
    return TemplateDialogues.read(data)


@pytest.fixture(scope="module")
def examples(templates: TemplateDialogues) -> list[RetrievalExample]:
    make, rng = RetrievalExamples(templates.index, sans=8), random.Random(1)
    made = (make.make(templates.draw(rng), rng) for _ in range(150))
    return [example for example in made if example is not None]


def test_an_example_can_be_answered_and_its_length_reveals_nothing(examples: list[RetrievalExample]) -> None:
    assert len(examples) > 100
    given_away = 0
    for call, truth, gold in examples:
        assert len(call.mentions) == len(call.candidates) == len(truth)
        joined = group_triples(call.triples)
        for (start, end), entity, number, candidates in zip(call.mentions, truth, gold, call.candidates, strict=True):
            assert candidates[number].entity == entity
            assert len(set(candidates)) == len(candidates) <= 8
            for candidate in candidates:
                # Each is a neighbour of its anchor.
                assert " | " in build_memory_text(candidate, joined, paths=True)
                assert build_memory_text(candidate, joined, paths=False) == candidate.entity
            given_away += call.response[start:end] == entity
    assert given_away < 0.1 * len(examples)


@pytest.mark.usefixtures("small")
def test_the_loss_is_the_formula(examples: list[RetrievalExample]) -> None:
    """NCE and the language model's loss, number by number, from the scores of the runtime's own code."""
    model = build_retriever(SMALL).eval()
    some = [example for example in examples if len(example.truth) == 1][:6]
    tokenizer = backbone.read_tokenizer_json()
    retriever = retriever_of(model, record(model, tokenizer), tokenizer)
    wanted = []
    for example in some:
        (retrieved,) = retriever.run([example.call], 1)
        assert isinstance(retrieved, tuple)
        score_of = {(candidate.anchor, candidate.entity): candidate.score for candidate in retrieved[0]}
        scores = [score_of[candidate.anchor, candidate.entity] for candidate in example.call.candidates[0]]
        right = [
            s
            for s, candidate in zip(scores, example.call.candidates[0], strict=True)
            if candidate.entity == example.truth[0]
        ]
        wanted.append(np.logaddexp.reduce(scores) - np.logaddexp.reduce(right))
    batch = collate_examples(RetrieverBatcher(model.config), some)
    with torch.inference_mode():
        language, contrast, _ = RetrieverLoss(replace(SMALL, negatives="sans")).parts(model, batch)
        assert float(contrast) == pytest.approx(np.mean(wanted), abs=1e-4)
        whole = RetrieverLoss(replace(SMALL, negatives="sans", weight=0.5))(model, batch)
        assert float(whole) == pytest.approx(float(language) + 0.5 * float(contrast), abs=1e-4)
        alone = RetrieverLoss(replace(SMALL, negatives="none"))(model, batch)
        assert float(alone) == pytest.approx(float(language), abs=1e-5)
        # More negatives, more loss.
        assert float(RetrieverLoss(replace(SMALL, negatives="both")).parts(model, batch)[1]) > float(contrast)
    # The model is untrained: all words are about equally probable.
    assert abs(float(language) - math.log(len(backbone.load_tokenizer()))) < 3


@pytest.mark.usefixtures("small")
def test_the_language_model_predicts_the_response_and_no_mention(examples: list[RetrievalExample]) -> None:
    tokens = backbone.load_tokenizer()
    batcher = RetrieverBatcher(build_retriever(SMALL).config)
    example = next(example for example in examples if len(example.truth) == 2)
    targets = collate_examples(batcher, [example])["targets"][0]
    masked = example.call.response
    for start, end in reversed(example.call.mentions):
        masked = masked[:start] + " [MASK] " + masked[end:]
    expected = [t for t in tokens(masked)["input_ids"][1:] if t != tokens.mask_token_id]
    assert [t for t in targets.tolist() if t >= 0] == expected


@pytest.mark.usefixtures("small")
def test_batches_depend_on_seed_and_step_alone(templates: TemplateDialogues) -> None:
    make, batcher = RetrievalExamples(templates.index), RetrieverBatcher(build_retriever(SMALL).config)
    schedule = replace(SCHEDULE, steps=5)
    whole = list(draw_batches(templates, make, batcher, schedule, 0, block=2))
    rest = list(draw_batches(templates, make, batcher, schedule, 3, block=2))
    assert len(whole) == 5
    for expected, actual in zip(whole[3:], rest, strict=True):
        assert all(torch.equal(expected[name], actual[name]) for name in expected)


@pytest.mark.usefixtures("small")
def test_a_first_guess_and_training_rank_the_truth_higher(
    templates: TemplateDialogues, examples: list[RetrievalExample]
) -> None:
    batcher, loss = RetrieverBatcher(build_retriever(SMALL).config), RetrieverLoss(SMALL)
    batches = [collate_examples(batcher, examples[at : at + 16]) for at in range(0, 64, 16)]
    torch.manual_seed(0)
    model = build_retriever(SMALL)
    words = model.encoder.embeddings.word_embeddings.weight.clone()

    def contrast() -> float:
        with torch.inference_mode():
            return float(np.mean([float(loss.parts(model.eval(), batch)[1]) for batch in batches]))

    start = contrast()
    align_joint(model, batches)
    aligned = contrast()
    assert aligned < start
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=2e-3)
    for batch in batches * 3:
        loss(model.train(), batch).backward()
        optimizer.step()
        optimizer.zero_grad()
    assert contrast() < aligned - 0.02
    assert torch.equal(model.encoder.embeddings.word_embeddings.weight, words)


def test_figures_are_those_worked_out_by_hand() -> None:
    assert evaluate.score_ranks([1, 1, 2, 4, 20]) == {
        "hits@1": 0.4,
        "hits@3": 0.6,
        "hits@10": 0.8,
        "mr": 5.6,
        "mrr": 0.56,
    }


def test_measured_cases_are_corrupted_responses(templates: TemplateDialogues) -> None:
    cases = evaluate.make_corrupted_cases(templates, 60)
    assert {case.kind for case in cases} == {"extrinsic", "swapped"}
    for case in cases:
        for (start, end), truth in zip(case.example.call.mentions, case.example.truth, strict=True):
            assert case.example.call.response[start:end] != truth
    everything = evaluate.make_corrupted_cases(templates, 60, all_mentions=True)
    assert sum(len(case.example.truth) for case in everything) > sum(len(case.example.truth) for case in cases)


def test_the_baseline_of_types_counts_shared_roles_and_rare_ones_most(templates: TemplateDialogues) -> None:
    people = [Candidate("Red River", name) for name in ("Ann Archer", "Dan Dunn", "Drama", "Unknown")]
    wrong = "Ann Brook"  # directs, was born, is married
    asked = Retrieve((), (), f"{wrong} made it.", ((0, len(wrong)),), (tuple(people),))
    scores = dict(
        zip(people, evaluate.TypeScorer(templates.index)(RetrievalExample(asked, ("",), (0,)), 0), strict=True)
    )
    director, actor, genre, unknown = (scores[person] for person in people)
    assert director > actor > 0
    assert genre == unknown == 0


@pytest.mark.usefixtures("small")
def test_a_checkpoint_has_its_report_and_becomes_a_bundle(data: Path, tmp_path: Path) -> None:
    retriever.train_retriever(data, tmp_path / "retriever", SCHEDULE, SMALL, measured=8)
    report = json.loads((tmp_path / "retriever" / "report.json").read_text())
    assert report["mentions"] >= 8
    assert 0 < report["retriever"]["mrr"] <= 1
    assert report["ppl"] > 1
    assert isinstance(EntityRetriever.load(tmp_path / "retriever"), EntityRetriever)
    made = bundle.export_nph_bundle(tmp_path, tmp_path / "bundle", lambda role, stage: None, precision="fp32")
    assert set(made.manifest.roles) == {"retriever"}
    bundled = evaluate.report_retrieval(
        _opened(tmp_path / "bundle"), evaluate.make_corrupted_cases(TemplateDialogues.read(data, "dev"), 8)
    )
    assert bundled["retriever"] == report["retriever"]
    with pytest.raises(ValueError, match="no finished critic or retriever"):
        bundle.collect_nph_roles(tmp_path / "bundle")


@pytest.mark.usefixtures("small")
def test_ablations_are_trained_and_measured(data: Path, tmp_path: Path) -> None:
    recipes = {
        "sans": replace(SMALL, negatives="sans", aligned=0),
        "without_mlm": replace(SMALL, masked=False, aligned=0),
        "compgcn": replace(SMALL, paths=False, memory="compgcn", graph_steps=2, aligned=0),
    }
    done = ablation.ablate_retriever(data, tmp_path, replace(SCHEDULE, steps=1), 6, recipes)
    assert set(done) == set(recipes)
    assert all(0 < row["retriever"]["mrr"] <= 1 for row in done.values())
    assert json.loads((tmp_path / "ablations.json").read_text()) == done
    for name in recipes:
        options = RoleOptions(str(tmp_path / name), precision="fp32")
        made = export_role("retriever", options, tmp_path / "bundles" / name)
        cases = evaluate.make_corrupted_cases(TemplateDialogues.read(data, "dev"), 6)
        bundled = evaluate.report_retrieval(_opened(made.directory), cases)
        assert bundled["retriever"] == done[name]["retriever"], name


@pytest.mark.usefixtures("small")
def test_a_graphs_entities_are_remembered_by_the_table_and_others_by_their_text() -> None:
    text = build_retriever(replace(SMALL, paths=False)).eval()
    encoder, names = load_text_encoder(96), ["Ann Archer", "Red River"]
    memory = GraphMemory(names, torch.randn(2, text.width))
    graph = use_graph_memory(text, encoder, memory).eval()
    ids = [encoder.encode_plain(name).ids for name in ("Red River", "Ann", "Ann Archer", "red river")]
    width = max(map(len, ids)) + 2
    rows = torch.tensor([row + [7] * (width - len(row)) for row in ids])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ids])
    with torch.inference_mode():
        remembered, by_text = graph.remember(rows, mask), text.remember(rows, mask)
        table = text.memory_norm(memory.vectors)
    assert torch.allclose(remembered[[0, 2]], table[[1, 0]], atol=1e-6)
    assert torch.equal(remembered[1], by_text[1])
    # The tokenizer takes no account of case.
    assert torch.equal(remembered[3], remembered[0])


def test_messages_go_along_both_directions() -> None:
    """CompGCN with one edge and the identity in every matrix: a node is itself and its neighbour times the relation."""
    entities = torch.tensor([[0.1, 0.2], [0.3, -0.1], [0.5, 0.5]])
    relations = torch.tensor([[2.0, -1.0]])
    vectors, related = CompGCN(entities, relations)(torch.tensor([[0, 0, 1]]))
    r = relations[0]
    expected = torch.stack(
        [
            torch.tanh((entities[0] + entities[1] * r) / 2),
            torch.tanh((entities[1] + entities[0] * r) / 2),
            torch.tanh(entities[2]),
        ]
    )
    assert torch.allclose(vectors, expected)
    assert torch.equal(related, relations)


def _opened(folder: Path) -> evaluate.Retriever:
    from groundwire.runtime.bundles.bundle import Bundle
    from groundwire.runtime.bundles.manifest import RetrieverRole
    from groundwire.runtime.ort.session import DeviceProfile

    bundle = Bundle.open(folder)
    role = bundle.manifest.roles["retriever"]
    assert isinstance(role, RetrieverRole)
    return evaluate.Retriever.load(bundle, role, DeviceProfile.of("cpu", 1))
