"""The critic: what it reads, what it learns from, how it is measured, and that a bundle of it says the same."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

pytest.importorskip("groundwire.recipes", reason="needs the train extra", exc_type=ImportError)

import torch
from transformers import AutoTokenizer, BertForTokenClassification
from typer.testing import CliRunner

from groundwire.engine.metrics.critic import critic_call
from groundwire.engine.schema.explanations import FlaggedMention, FlaggedToken
from groundwire.export import Gate, RoleOptions, export_role
from groundwire.recipes.cli import app
from groundwire.recipes.common import backbone
from groundwire.recipes.common.loop import Schedule
from groundwire.recipes.common.sentence_pieces import EntityMention
from groundwire.recipes.nph import critic, small_talk
from groundwire.recipes.nph.bundle import collect_nph_roles
from groundwire.recipes.nph.corruption import LABELS, CorruptedDialogue, keep_clean
from groundwire.recipes.nph.critic import (
    UNLABELLED,
    CriticExamples,
    CriticOutcome,
    CriticRecipe,
    build_critic,
    encode_case,
    make_premise,
    measure_critic,
    measure_critique,
    score_outcomes,
)
from groundwire.recipes.nph.templates import GraphDialogue
from groundwire.repair import Critic
from groundwire.runtime.bundles.manifest import TokenClassifierRole
from groundwire.runtime.triples import Triple
from tests.support import graph_sets

SCHEDULE = Schedule(steps=2, batch=4, seed=2, autocast="off")
FACTS = (Triple("Red River", "directed by", "Ann Cole"), Triple("Red River", "year", "1994"))
DIALOGUE = GraphDialogue(
    ("Hello!", "Who made Red River?"),
    FACTS,
    "Bob Dunn directed it in 1994.",
    (EntityMention(0, 8, "Bob Dunn"), EntityMention(24, 28, "1994", FACTS[1:])),
)
CASE = CorruptedDialogue(DIALOGUE, "extrinsic", ((0, 8),), DIALOGUE)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graph_sets.save(tmp_path_factory.mktemp("graph"))


@pytest.fixture(scope="module")
def trained(data: Path, tiny_backbone: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoint after two steps from the tiny backbone."""
    out = tmp_path_factory.mktemp("critic")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(backbone, "PATH", tiny_backbone)
        critic.train_critic(data, out, SCHEDULE, measured=20)
    return out


def test_training_reads_what_the_engine_asks() -> None:
    call = critic_call(DIALOGUE.triples, DIALOGUE.history, DIALOGUE.response)
    assert call.premises == (make_premise(DIALOGUE),)
    assert (
        make_premise(DIALOGUE) == "Red River directed by Ann Cole | Red River year 1994 | Hello! | Who made Red River?"
    )
    assert (call.role, call.text) == (critic.ROLE, DIALOGUE.response)


def test_only_the_response_is_labelled(small: Path) -> None:
    tokens = backbone.load_tokenizer()
    row = encode_case(tokens, CASE)
    encoded = tokens(make_premise(DIALOGUE), DIALOGUE.response, return_offsets_mapping=True)
    assert row["input_ids"] == encoded["input_ids"]
    for label, owner, (start, end) in zip(
        row["labels"], encoded.sequence_ids(), encoded["offset_mapping"], strict=True
    ):
        if owner != 1:
            assert label == UNLABELLED
        else:
            assert (LABELS[label] != "O") == (start < 8), DIALOGUE.response[start:end]
    assert next(LABELS[label] for label in row["labels"] if label > 0) == "B"
    assert row["labels"].count(LABELS.index("B")) == 1


def test_long_examples_lose_what_is_not_stated(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = backbone.load_tokenizer()
    others = tuple(Triple(f"Film {n}", "directed by", f"Person {n}") for n in range(60))
    fat = GraphDialogue(DIALOGUE.history, (*others[:30], *FACTS, *others[30:]), DIALOGUE.response, DIALOGUE.mentions)
    monkeypatch.setattr(critic, "MAX_TOKENS", 150)
    row = encode_case(tokens, CorruptedDialogue(fat, "extrinsic", ((0, 8),), fat))
    assert len(row["input_ids"]) <= 150
    text = tokens.decode(row["input_ids"])
    assert all(part in text for part in tokens.decode(tokens("1994 | Who made")["input_ids"][1:-1]).split())
    # All of the response is still there.
    assert sum(label != UNLABELLED for label in row["labels"]) == sum(
        label != UNLABELLED for label in encode_case(tokens, CASE)["labels"]
    )


def test_examples_have_idle_responses_and_silent_histories(data: Path) -> None:
    cases = CriticExamples.read(data).sample(600)
    idle = [case for case in cases if case.dialogue.response in small_talk.IDLE]
    silent = [case for case in cases if not case.dialogue.history]
    assert 10 < len(idle) < 80
    assert 10 < len(silent) < 80
    assert all(case.kind == "clean" and not case.dialogue.mentions for case in idle)
    assert all(mention.triples for case in silent for mention in case.original.mentions)
    assert CriticExamples.read(data).sample(600) == cases
    assert {case.kind for case in cases} == {"clean", "extrinsic", "swapped", "misplaced", "unseen"}
    assert 0.35 < sum(case.kind == "clean" for case in cases) / len(cases) < 0.65


def test_the_checkpoint_is_a_token_classifier_on_a_shortened_backbone(trained: Path, tiny_backbone: Path) -> None:
    model = BertForTokenClassification.from_pretrained(trained)
    assert [model.config.id2label[i] for i in range(3)] == ["O", "B", "I"]
    start = BertForTokenClassification.from_pretrained(tiny_backbone, num_labels=3)
    same = {n for n, value in model.bert.state_dict().items() if torch.equal(value, start.bert.state_dict()[n])}
    assert same == {"embeddings.word_embeddings.weight"}, "frozen, so that graphs share it"
    report = json.loads((trained / "report.json").read_text())
    assert (report["steps"], report["seed"], report["fb15k237_test"]["responses"]) == (2, 2, 20)


def test_fewer_layers_are_kept_from_the_bottom(small: Path) -> None:
    model = build_critic(CriticRecipe(layers=2))
    assert model.config.num_hidden_layers == 2
    whole = BertForTokenClassification.from_pretrained(small, num_labels=3)
    for name, value in model.bert.state_dict().items():
        torch.testing.assert_close(value, whole.bert.state_dict()[name])


def test_another_checkpoint_can_be_the_base(data: Path, tiny_backbone: Path, trained: Path, tmp_path: Path) -> None:
    recipe = replace(critic.PAPER, base=str(tiny_backbone))
    critic.train_critic(data, tmp_path, SCHEDULE, recipe, measured=5)
    model = BertForTokenClassification.from_pretrained(tmp_path)
    start = BertForTokenClassification.from_pretrained(tiny_backbone, num_labels=3)
    name = "embeddings.word_embeddings.weight"
    assert not torch.equal(model.bert.state_dict()[name], start.bert.state_dict()[name]), "all of it is trained"


def test_the_command_takes_the_papers_recipe_and_its_table_5(data: Path, tiny_backbone: Path, tmp_path: Path) -> None:
    given = [
        "critic",
        "--data",
        data,
        "--out",
        tmp_path,
        "--paper",
        "--steps",
        1,
        "--layers",
        1,
        "--corruption",
        "intrin",
    ]
    result = CliRunner().invoke(app, [*map(str, given), "--base", str(tiny_backbone)])
    assert result.exit_code == 0, result.output
    assert BertForTokenClassification.from_pretrained(tmp_path).config.num_hidden_layers == 1
    report = json.loads((tmp_path / "report.json").read_text())
    assert (report["steps"], report["corruption"], report["dialogues"]) == (1, "intrin", "templates")
    assert "extrinsic" not in report["fb15k237_test"]["response_recall"]


def test_a_start_is_refused_where_it_would_not_count(data: Path, trained: Path, tmp_path: Path) -> None:
    given = ["critic", "--data", data, "--out", tmp_path, "--paper", "--start", trained]
    result = CliRunner().invoke(app, list(map(str, given)))
    assert result.exit_code == 2
    assert "leave out --paper" in " ".join(result.output.split())


def test_a_critic_trained_on_opendialkg_is_not_shipped(tmp_path: Path) -> None:
    (tmp_path / "critic").mkdir()
    (tmp_path / "critic" / "config.json").touch()
    (tmp_path / "critic" / "report.json").write_text(json.dumps({"dialogues": "opendialkg"}))
    with pytest.raises(ValueError, match="CC BY-NC"):
        collect_nph_roles(tmp_path)


def test_the_papers_critic_has_its_size() -> None:
    assert critic.PAPER.layers is None
    assert (critic.PAPER.base, critic.PAPER.corruption.corruption.every) == ("roberta-large", True)
    assert (CriticRecipe().layers, CriticRecipe().corruption.corruption.every) == (4, False)


def test_a_run_on_the_same_seed_is_the_same(data: Path, small: Path, trained: Path, tmp_path: Path) -> None:
    critic.train_critic(data, tmp_path, SCHEDULE, measured=20)
    for name in ("model.safetensors", "report.json"):
        assert (tmp_path / name).read_bytes() == (trained / name).read_bytes()


def test_a_bundle_says_what_the_model_says(data: Path, trained: Path, tmp_path: Path) -> None:
    bundle = export_role(
        "critic", RoleOptions(str(trained), precision="fp32", max_tokens=critic.WINDOW), tmp_path / "b"
    )
    record = bundle.manifest.roles["critic"]
    assert isinstance(record, TokenClassifierRole)
    assert (record.labels, record.supported) == (("O", "B", "I"), "O")
    cases = CriticExamples.read(data, "test").sample(12)
    model = BertForTokenClassification.from_pretrained(trained).eval()
    wanted = critic.wrap_critic_model(model, AutoTokenizer.from_pretrained(trained))(cases)
    scored = critic.load_critic(tmp_path / "b")(cases)
    checked = 0
    for expected, actual, case in zip(wanted, scored, cases, strict=True):
        if len(backbone_ids(trained, case)) > critic.WINDOW:
            continue
        checked += 1
        assert [(token.start, token.end) for token in expected] == [(token.start, token.end) for token in actual]
        doubts = [token.probability for token in actual]
        assert [token.probability for token in expected] == pytest.approx(doubts, abs=1e-3)
    assert checked > 3
    other_script = msgspec.structs.replace(cases[0].dialogue, response="Анна Каренина. Анна Каренина")
    assert critic.load_critic(tmp_path / "b")([keep_clean(other_script)]) == [()]


@pytest.mark.slow
def test_it_is_exported_in_int8(trained: Path, tmp_path: Path) -> None:
    options = RoleOptions(str(trained), precision="int8", gate=Gate(decision_agreement=0, max_error=10))
    bundle = export_role("critic", options, tmp_path / "b")
    record = bundle.manifest.roles["critic"]
    assert isinstance(record, TokenClassifierRole)
    assert record.precision == "int8"


def backbone_ids(folder: Path, case: CorruptedDialogue) -> Sequence[int]:
    tokens = AutoTokenizer.from_pretrained(folder)
    return list(tokens(make_premise(case.dialogue), case.dialogue.response)["input_ids"])


# Measuring


def test_figures_by_hand() -> None:
    outcomes = [
        CriticOutcome(
            "extrinsic", (True, True, False), (True, False, False), (True,), frozenset({(0, 1)}), frozenset({(0, 0)})
        ),
        CriticOutcome(
            "swapped",
            (True, False, True),
            (False, True, False),
            (False, False),
            frozenset({(0, 0), (2, 2)}),
            frozenset({(0, 0)}),
        ),
        CriticOutcome("clean", (False, False), (False, False), ()),
        CriticOutcome("clean", (False, False), (True, False), ()),
    ]
    assert score_outcomes(outcomes) == {
        "responses": 4,
        # Of 3 flagged tokens 1 is right, of 4 wrong ones 1 is flagged.
        "token": {"precision": 0.3333, "recall": 0.25, "f1": 0.2857},
        "entity": {"precision": 0.5, "recall": 0.3333, "f1": 0.4},
        # The swapped response is flagged for a wrong token, and counts.
        "response": {"precision": 0.6667, "recall": 1.0, "f1": 0.8},
        "mention_recall": 0.3333,
        "response_recall": {"extrinsic": 1.0, "swapped": 1.0},
        "clean_flagged": 0.5,
    }


def test_figures_of_nothing() -> None:
    assert score_outcomes([])["token"] == {"precision": 0.0, "recall": 0.0, "f1": 0.0}


@pytest.mark.parametrize(
    ("doubts", "token", "mention", "flagged_clean"),
    [
        ((0.9, 0.9, 0.1), 1.0, 1.0, 0.0),
        ((0.9, 0.5, 0.0), 1.0, 1.0, 0.0),
        ((0.9, 0.49, 0.0), 0.6667, 1.0, 0.0),
        ((0.0, 0.0, 0.0), 0.0, 0.0, 0.0),
        ((0.0, 0.0, 0.9), 0.0, 0.0, 1.0),
    ],
)
def test_measure_holds_a_critic_against_the_marks(
    doubts: tuple[float, ...], token: float, mention: float, flagged_clean: float
) -> None:
    def critic(cases: Sequence[CorruptedDialogue]) -> list[Sequence[FlaggedToken]]:
        # On the clean copy, a good critic would doubt nothing; this one doubts the last word as before.
        words = ((0, 3), (4, 8), (9, 17))
        return [
            [
                FlaggedToken(a, b, doubt if case.flagged or number == 2 else 0.0, begins=number == 0)
                for number, ((a, b), doubt) in enumerate(zip(words, doubts, strict=True))
            ]
            for case in cases
        ]

    report = measure_critic(critic, [CASE, keep_clean(DIALOGUE)])
    assert report["token"]["f1"] == token
    assert report["entity"]["f1"] == (1.0 if token == 1.0 else 0.0)
    assert report["mention_recall"] == mention
    assert report["clean_flagged"] == flagged_clean


@pytest.mark.parametrize(
    ("ranges", "precision", "recall", "flagged_clean"),
    [
        (((0, 8),), 0.5, 1.0, 1.0),
        (((0, 3),), 0.0, 0.0, 1.0),
        ((), 0.0, 0.0, 0.0),
    ],
)
def test_a_name_of_a_critique_counts_when_its_range_is_right(
    ranges: tuple[tuple[int, int], ...], precision: float, recall: float, flagged_clean: float
) -> None:
    asked: list[tuple[object, ...]] = []

    class StoredCritic:
        def critique(self, response: str, knowledge: object, *, history: Sequence[str]) -> SimpleNamespace:
            asked.append((response, knowledge, history))
            mentions = [FlaggedMention(response[start:end], start, end, 0.9) for start, end in ranges]
            return SimpleNamespace(mentions=mentions)

    report = measure_critique(cast("Critic", StoredCritic()), [CASE, keep_clean(DIALOGUE)])
    assert asked == [(DIALOGUE.response, FACTS, DIALOGUE.history)] * 2
    assert (report["entity"]["precision"], report["entity"]["recall"]) == (precision, recall)
    assert report["clean_flagged"] == flagged_clean


def test_random_examples_are_encoded_as_their_marks(data: Path, small: Path) -> None:
    tokens = backbone.load_tokenizer()
    examples = CriticExamples.read(data)
    for seed in range(60):
        case = examples.draw(random.Random(seed))
        row = encode_case(tokens, case)
        response_labels = [label for label in row["labels"] if label != UNLABELLED]
        assert response_labels.count(LABELS.index("B")) == len(case.flagged)
        assert len(row["labels"]) == len(row["input_ids"]) <= critic.WINDOW


def test_what_another_recipe_has_learnt_can_be_the_start(small: Path, trained: Path) -> None:
    model = build_critic(CriticRecipe(layers=2), trained)
    former = BertForTokenClassification.from_pretrained(trained)
    for name, value in model.bert.state_dict().items():
        torch.testing.assert_close(value, former.bert.state_dict()[name])
    assert model.config.num_hidden_layers == 2
