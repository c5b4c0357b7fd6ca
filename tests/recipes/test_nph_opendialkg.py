"""OpenDialKG's turns, in miniature and in the files' format, as what the retriever learns from and is measured on."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("groundwire.recipes", reason="needs the train extra", exc_type=ImportError)

from typer.testing import CliRunner

from groundwire.export import RoleOptions, export_bundle
from groundwire.export.roles.retriever import EntityRetriever
from groundwire.recipes.cli import app
from groundwire.recipes.common.loop import Schedule
from groundwire.recipes.nph import bundle, evaluate, retriever
from groundwire.recipes.nph.dialogue_corpus import DialogueCorpus, read_held_out
from groundwire.recipes.nph.examples import RetrievalExample, select_answerable
from groundwire.recipes.nph.loss import RetrieverRecipe
from groundwire.recipes.nph.opendialkg import GRAPH_FILE, TURNS_FILE, OpenDialKGTurns, Part, has_opendialkg, select_part
from groundwire.recipes.nph.retriever import build_retriever
from groundwire.recipes.nph.templates import TemplateDialogues
from groundwire.runtime.calls import Candidate, Retrieve
from groundwire.runtime.errors import InvalidRequest
from tests.support import graph_sets
from tests.support.graph_sets import FILMS, PEOPLE
from tests.support.training_sets import write_gzipped

PARTS: Sequence[Part] = ("train", "valid", "test")
SMALL = RetrieverRecipe(inner=64, max_tokens=96, words=0, aligned=0, lr=2e-3)
SCHEDULE = Schedule(steps=2, batch=8, autocast="off")


def triples() -> list[tuple[str, str, str]]:
    """Every film's director and two of its actors."""
    rng = random.Random(5)
    rows = []
    for number, film in enumerate(FILMS):
        rows.append((film, "director", PEOPLE[number % 5]))
        rows += [(film, "actor", name) for name in rng.sample(PEOPLE[5:], 2)]
    return rows


def turns() -> list[dict[str, Any]]:
    """A dialogue of one turn about every triple; the parts take turns."""
    return [
        {
            "dialog_id": number,
            "turn_id": 1,
            "context": [f"Do you know {film}?"],
            "entity": [film],
            "rec": [],
            "resp": f"{film} is a film with {name}.",
            "split": PARTS[number % 3],
        }
        for number, (film, _, name) in enumerate(triples())
    ]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """FB15k-237 and OpenDialKG in miniature."""
    folder = graph_sets.save(tmp_path_factory.mktemp("graphs"))
    write_gzipped(folder / GRAPH_FILE, triples())
    write_gzipped(folder / TURNS_FILE, turns())
    return folder


@pytest.fixture(scope="module")
def source(data: Path) -> OpenDialKGTurns:
    return OpenDialKGTurns.read(data, "test")


def row(dialogue: int, split: Part) -> dict[str, Any]:
    return {"dialog_id": dialogue, "split": split}


@pytest.mark.parametrize(
    ("part", "dialogues"),
    [("train", [1]), ("valid", [2]), ("test", [3, 4, 5])],
)
def test_a_part_has_no_dialogue_that_a_later_part_goes_on_with(part: Part, dialogues: list[int]) -> None:
    table: Mapping[int, Sequence[Part]] = {
        1: ("train",),
        2: ("train", "valid"),
        3: ("train", "valid", "test"),
        4: ("valid", "test"),
        5: ("test",),
    }
    rows = [row(number, split) for number, splits in table.items() for split in splits]
    assert [row["dialog_id"] for row in select_part(rows, part)] == dialogues


def test_every_turn_is_measured_once_and_any_is_learnt_from(data: Path, source: OpenDialKGTurns) -> None:
    expected = {turn["resp"] for turn in turns() if turn["split"] == "test"}
    rng = random.Random(1)
    responses = [dialogue.response for dialogue in source.stream(rng)]
    assert sorted(responses) == sorted(expected)
    assert responses != [dialogue.response for dialogue in source.stream(rng)]
    assert {source.draw(rng).response for _ in range(200)} == expected
    made = TemplateDialogues.read(data)
    first, again = (list(islice(made.stream(random.Random(2)), 5)) for _ in range(2))
    rng = random.Random(2)
    assert first == again == [made.draw(rng) for _ in range(5)]


@pytest.mark.parametrize("gone", [GRAPH_FILE, TURNS_FILE])
def test_a_missing_file_is_named(data: Path, tmp_path: Path, gone: str) -> None:
    kept = {GRAPH_FILE, TURNS_FILE} - {gone}
    for name in kept:
        (tmp_path / name).write_bytes((data / name).read_bytes())
    assert has_opendialkg(tmp_path) == (gone != TURNS_FILE)
    with pytest.raises(InvalidRequest, match=f"lacks {gone}\\."):
        DialogueCorpus.OPENDIALKG.read(tmp_path)
    given = ("--data", tmp_path, "--out", tmp_path / "out", "--steps", 1, "--dialogues", "opendialkg")
    refused = CliRunner().invoke(app, ["retriever", *map(str, given)])
    assert refused.exit_code == 2
    assert "lacks" in refused.output
    assert not (tmp_path / "out").exists()


def test_turns_that_state_nothing_are_refused(tmp_path: Path) -> None:
    write_gzipped(tmp_path / GRAPH_FILE, triples())
    write_gzipped(tmp_path / TURNS_FILE, [{**turns()[0], "resp": "I would not know."}])
    with pytest.raises(InvalidRequest, match="accounts for none of the turns"):
        OpenDialKGTurns.read(tmp_path)


def test_gold_responses_have_all_their_stated_entities_masked(source: OpenDialKGTurns) -> None:
    """The mentions have other names; the rest of the response is unchanged."""
    cases = evaluate.make_gold_cases(source, 1000)
    responses = {dialogue.response: dialogue for dialogue in source.dialogues}
    assert len(cases) == len(responses)
    strangers = 0
    for example, kind in cases:
        assert kind == "gold"
        call = example.call
        response = call.response
        for (start, end), entity in reversed(list(zip(call.mentions, example.truth, strict=True))):
            strangers += response[start:end] != entity
            response = response[:start] + entity + response[end:]
        assert tuple(mention.entity for mention in select_answerable(responses[response])) == example.truth
    assert strangers > 0.8 * sum(len(case.example.truth) for case in cases)
    assert len(evaluate.make_gold_cases(source, 3)) == 3


def test_corrupted_turns_end_with_the_turns(source: OpenDialKGTurns) -> None:
    cases = evaluate.make_corrupted_cases(source, 1000)
    assert 0 < len(cases) <= len(source.dialogues)
    assert len(evaluate.make_corrupted_cases(source, 3)) == 3
    assert {case.kind for case in cases} == {"extrinsic", "swapped"}


@pytest.mark.usefixtures("small")
def test_similarity_does_not_read_the_masked_names_of_gold_responses() -> None:
    """With the other mention's name unread, it does not matter which it is."""
    similarity = evaluate.SimilarityScorer()
    candidates = (Candidate("Red River", "Ann Cole"), Candidate("Red River", "Bob Dunn"))

    def scores(other: str, read_others: bool) -> list[float]:
        response = f"Ann Dunn made {other}."
        mentions = ((0, 8), (14, 14 + len(other)))
        example = RetrievalExample(
            Retrieve(("Hi",), (), response, mentions, (candidates, candidates)), ("", ""), (0, 0)
        )
        return similarity(example, 0, paths=False, read_others=read_others)

    assert scores("Last Moon", read_others=False) == scores("Golden Hour", read_others=False)
    assert scores("Last Moon", read_others=True) != scores("Golden Hour", read_others=True)


@pytest.mark.usefixtures("small")
def test_trained_on_turns_and_measured_on_both(data: Path, tmp_path: Path) -> None:
    """From a checkpoint of templates; its perplexity is a checkpoint's alone, and both sets have their figures."""
    start = tmp_path / "start"
    build_retriever(SMALL).save(start)
    before = (start / "model.safetensors").read_bytes()
    out = tmp_path / "retriever"
    retriever.train_retriever(data, out, SCHEDULE, SMALL, measured=4, start=start, dialogues=DialogueCorpus.OPENDIALKG)
    assert (start / "model.safetensors").read_bytes() == before
    report = json.loads((out / "report.json").read_text())
    assert report["dialogues"] == "opendialkg"
    assert report["ppl"] > 1
    held_out = evaluate.make_corrupted_cases(OpenDialKGTurns.read(data, "valid"), 4)
    assert report["mentions"] == sum(len(case.example.truth) for case in held_out)

    sources = read_held_out(data)
    evaluated = evaluate.evaluate_retriever(out, sources, 4)
    assert set(evaluated) == {"fb15k237_test", "opendialkg_test"}
    for figures in evaluated.values():
        assert set(figures) == {"corrupted", "gold"}
        assert all(part["responses"] == 4 and part["ppl"] > 1 for part in figures.values())
        assert all(0 < part["retriever"]["mrr"] <= 1 for part in figures.values())
        assert "without_critic" in figures["corrupted"]
        assert set(figures["corrupted"]["baselines"]) - set(figures["gold"]["baselines"]) == {"type"}
    turned = evaluate.wrap_retriever_model(EntityRetriever.load(out))
    assert (
        evaluated["opendialkg_test"]["gold"]["retriever"]
        == evaluate.report_retrieval(turned, evaluate.make_gold_cases(OpenDialKGTurns.read(data, "test"), 4))[
            "retriever"
        ]
    )

    with pytest.raises(ValueError, match="CC BY-NC"):
        bundle.collect_nph_roles(tmp_path)
    export_bundle({"retriever": RoleOptions(str(out), precision="fp32")}, tmp_path / "bundle")
    bundled = evaluate.evaluate_retriever(tmp_path / "bundle", sources, 4, compared=False)
    for name, figures in bundled.items():
        for kind, part in figures.items():
            assert not {"ppl", "baselines"} & set(part)
            assert part["retriever"] == evaluated[name][kind]["retriever"]


@pytest.mark.usefixtures("small")
def test_without_the_files_templates_alone_are_measured(data: Path, tmp_path: Path) -> None:
    for split in ("train", "dev", "test"):
        name = f"fb15k237_{split}.jsonl.gz"
        (tmp_path / name).write_bytes((data / name).read_bytes())
    build_retriever(replace(SMALL, paths=False)).save(tmp_path / "retriever")
    given = ["--bundle", tmp_path / "retriever", "--data", tmp_path, "--count", 2, "--no-baselines"]
    done = CliRunner().invoke(app, ["measure-retriever", *map(str, given)])
    assert done.exit_code == 0, done.output
    assert set(json.loads(done.output)) == {"fb15k237_test"}
    refused = CliRunner().invoke(app, ["measure-retriever", *map(str, given), "--dialogues", "opendialkg"])
    assert refused.exit_code == 2
    assert "lacks" in refused.output
