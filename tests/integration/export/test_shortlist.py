"""A decoder that chooses among few tokens, against the whole head of the same graph."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest

from groundwire.export import QuestionGeneratorSettings, RoleOptions, export_role
from groundwire.export.options import read_shortlist
from groundwire.export.passes import quantize
from groundwire.export.passes.shortlist import shorten_head
from groundwire.export.pipeline import shorten_role
from groundwire.export.roles import generation
from groundwire.export.verify.generation import start_id
from groundwire.runtime.bundles.bundle import Bundle
from groundwire.runtime.bundles.manifest import QuestionGeneratorRole
from groundwire.runtime.calls import (
    BeamSampling,
    BeamSearch,
    Decoding,
    GeneratedQuestion,
    GenerateQuestions,
    Greedy,
    Sampling,
)
from groundwire.runtime.errors import ExportError
from groundwire.runtime.local import LocalRuntime
from tests.support import models
from tests.support.graphs import Array, Loader, Stepper, batch_of, graphs
from tests.support.processor import exact_products

FREQUENT = (2, 3, 40, 41, 150, 190)
UNCOPIED = (0, 7)
WORDS = ("the", "what", "?")


def pairs(load: Loader, family: str) -> tuple[tuple[ir.Model, ir.Model], tuple[ir.Model, ir.Model]]:
    """int8 graphs of a family, whole and shortened."""
    whole = graphs(load("question_generator", family), family)
    for graph in whole:
        quantize(graph)
    short = whole[0].clone(), whole[1].clone()
    shorten_head(*short, FREQUENT, UNCOPIED)
    return whole, short


def by_token(step: dict[str, Array], vocabulary: int) -> Array:
    """Scores in the order of the vocabulary [B, K, V]; -inf for what is no candidate."""
    table = np.full((*step["scores"].shape[:2], vocabulary), -np.inf)
    for index in np.ndindex(*step["scores"].shape):
        at = (*index[:2], step["candidates"][index])
        # A token is a candidate once.
        assert np.isneginf(table[at]) or np.isneginf(step["scores"][index])
        table[at] = max(table[at], step["scores"][index])
    return table


@exact_products
@pytest.mark.parametrize("family", sorted(models.ENCODER_DECODERS))
def test_scores_are_those_of_the_whole_head_among_fewer(load: Loader, family: str) -> None:
    loaded = load("question_generator", family)
    batch, start = batch_of(loaded), start_id(loaded.model)
    batch["input_ids"][0, 3] = batch["input_ids"][0, 1]  # twice
    batch["input_ids"][0, 4], batch["input_ids"][2, 0] = FREQUENT[2], UNCOPIED[1]
    whole, short = (Stepper(pair, batch, start) for pair in pairs(load, family))
    vocabulary = generation.split_model(loaded.model).step.vocabulary
    for _ in range(3):
        wide, narrow = whole.step(vocabulary), short.step(vocabulary)
        everything, few = by_token(wide, vocabulary), by_token(narrow, vocabulary)
        for source, ids in enumerate(batch["input_ids"]):
            read = set(ids[batch["attention_mask"][source] == 1].tolist())
            allowed = sorted({*FREQUENT, *(read - set(UNCOPIED))})
            assert np.flatnonzero(np.isfinite(few[source, 0])).tolist() == allowed
            logits = np.array([everything[source, :, token] for token in allowed]).T
            difference = few[source][:, allowed] - logits
            # The same logits over another sum: the difference is one number of the beam.
            assert np.ptp(difference, axis=1).max() < 1e-4
            assert np.logaddexp.reduce(few[source][:, allowed], axis=1) == pytest.approx(0, abs=1e-5)
        tokens = narrow["candidates"][:, :, :2].reshape(3, -1)[:, :2]
        parents = np.zeros_like(tokens)
        whole.choose(parents, tokens)
        short.choose(parents, tokens)


def test_missing_candidates_are_ruled_out(load: Loader) -> None:
    loaded = load("question_generator", "bert")
    stepper = Stepper(pairs(load, "bert")[1], batch_of(loaded), start_id(loaded.model))
    step = stepper.step(150)
    assert step["scores"].shape == step["candidates"].shape == (3, 1, 150)
    assert np.isfinite(step["scores"]).sum(-1).max() <= len(FREQUENT) + 9
    assert np.isneginf(step["scores"][:, :, len(FREQUENT) + 9 :]).all()
    assert step["candidates"].min() >= 0


def test_a_source_brings_its_own_tokens_alone(load: Loader) -> None:
    """What a source may say does not depend on its batch-mates, to the last bit."""
    loaded = load("question_generator", "bert")
    batch, start = batch_of(loaded), start_id(loaded.model)
    short = pairs(load, "bert")[1]
    together = Stepper(short, batch, start).step(12)
    for row in range(3):
        alone = Stepper(short, {name: array[row : row + 1] for name, array in batch.items()}, start).step(12)
        for name in ("scores", "candidates"):
            assert np.array_equal(alone[name][0], together[name][row])


def test_other_heads_are_refused(load: Loader) -> None:
    whole = graphs(load("question_generator", "bert"), "bert")
    with pytest.raises(ExportError, match="head is int8"):
        shorten_head(*whole, FREQUENT, UNCOPIED)
    for graph in whole:
        quantize(graph)
    with pytest.raises(ExportError, match="token ids from 0 to"):
        shorten_head(*whole, (1, 10**6), UNCOPIED)
    with pytest.raises(ExportError, match="token ids from 0 to"):
        shorten_head(*whole, (), UNCOPIED)


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A bundle with a whole generator, and one whose generator was shortened as it was exported."""
    root = tmp_path_factory.mktemp("shortlist")
    source = str(models.encoder_decoder(root / "bert", "bert"))
    for name, words in (("whole", ()), ("short", WORDS)):
        export_role(
            "qg", RoleOptions(source, QuestionGeneratorSettings(shortlist=words), allow_unverified=True), root / name
        )
    return root / "whole", root / "short"


DECODINGS: tuple[Decoding, ...] = (
    BeamSearch(num_beams=5, num_return_sequences=5, max_new_tokens=11),
    BeamSearch(num_beams=20, num_return_sequences=20, max_new_tokens=5),
    Greedy(max_new_tokens=11),
    Sampling(num_return_sequences=3, top_k=0, top_p=1.0, seed=1, max_new_tokens=11),
    BeamSampling(num_beams=4, num_return_sequences=4, top_k=0, top_p=1.0, seed=1, max_new_tokens=11),
)


@exact_products
@pytest.mark.parametrize(
    "decoding", DECODINGS, ids=lambda decoding: f"{type(decoding).__name__}{getattr(decoding, 'num_beams', '')}"
)
def test_texts_are_made_of_the_source_and_the_list(bundles: tuple[Path, Path], decoding: Decoding) -> None:
    text = "the band was in paris"  # words of one piece each
    call = GenerateQuestions("paris", text, decoding)
    runtime = LocalRuntime.load(str(bundles[1]), "cpu", threads=1)
    (questions,) = runtime.run("qg", [call], 64)
    assert isinstance(questions, tuple)
    allowed = {*text.split(), *WORDS, "answer", "context", ":"}  # those of the template are the source's too
    for question in questions:
        assert isinstance(question, GeneratedQuestion)
        assert set(re.findall(r"\w+|\S", question.text)) <= allowed


def test_a_bundle_shortened_later_is_the_same(bundles: tuple[Path, Path], tmp_path: Path) -> None:
    whole, short = bundles
    shutil.copytree(whole, tmp_path / "later")
    later = shorten_role(tmp_path / "later", "qg", WORDS)
    exported = Bundle.open(str(short))
    record = later.manifest.roles["qg"]
    assert isinstance(record, QuestionGeneratorRole)
    assert record == exported.manifest.roles["qg"]
    assert record.shortlist == len(WORDS) + len(record.eos_ids)
    for name in (record.encoder, record.decoder):
        assert later.file(name).read_bytes() == exported.file(name).read_bytes()
    with pytest.raises(ExportError, match="already"):
        shorten_role(tmp_path / "later", "qg", WORDS)


def test_what_cannot_be_shortened_is_said(bundles: tuple[Path, Path], tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="no token 'unheard-of'"):
        shorten_role(bundles[0], "qg", ("the", "unheard-of"))
    with pytest.raises(ExportError, match="no question generator 'qa'"):
        shorten_role(bundles[0], "qa", WORDS)
    assert Bundle.open(str(bundles[0])).manifest.roles["qg"] == Bundle.open(str(bundles[0])).manifest.roles["qg"]
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n")
    with pytest.raises(ExportError, match="is empty"):
        read_shortlist(empty)
    (tmp_path / "some.txt").write_text("the\n##s\n\nthe\n")
    assert read_shortlist(tmp_path / "some.txt") == ("the", "##s")
