"""Readers: exported, and run as PyTorch runs them; in windows, and independent of the batch."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from groundwire.export import Gate, ReaderSettings, RoleOptions, Title, export_bundle
from groundwire.recipes.common import backbone
from groundwire.recipes.common.loop import collate
from groundwire.recipes.compact.multitask_examples import MultitaskExample
from groundwire.recipes.reader.bundle import ROLE, make_checkpoint
from groundwire.recipes.reader.feed import FILL
from groundwire.recipes.reader.loss import compute_head_logits
from groundwire.recipes.reader.model import SENTENCE_HEAD, Reader
from groundwire.recipes.reader.rows import HISTORY_MARK, AnswerRow, encode_answer
from groundwire.runtime.bundles import bundle
from groundwire.runtime.bundles.bundle import Bundle, open_bundles
from groundwire.runtime.bundles.manifest import ReaderHead, ReaderRole
from groundwire.runtime.calls import AnswerRead, ReadAnswer
from groundwire.runtime.errors import ExportError, InvalidRequest, TooLong, Unreadable
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.models.reader import choose_supporting
from groundwire.runtime.ort.device import Device
from groundwire.runtime.parity.certify import certify
from tests.support.readers import make_decided
from tests.support.roles import make_role

KNOWLEDGE = "The shop opens at nine. It is in Leeds."
ANSWER = "It opens at ten. It is in Leeds."
SENTENCES = ((0, 16), (17, 32))
CALL = ReadAnswer(ROLE, (KNOWLEDGE,), ("When does it open?",), ANSWER, SENTENCES)
WINDOW = 64


def export(reader: Reader, out: Path, precision: str) -> Bundle:
    options = RoleOptions(
        "tiny",
        ReaderSettings(make_checkpoint(reader, "tiny", WINDOW), HISTORY_MARK),
        precision="int8" if precision == "int8" else "fp32",
        gate=Gate(decision_agreement=0.9),
    )
    return export_bundle({ROLE: options}, out, title=Title(ROLE))


@pytest.fixture(scope="module")
def reader() -> Reader:
    return make_decided()


@pytest.fixture(scope="module")
def bundles(reader: Reader, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Bundle]:
    folder = tmp_path_factory.mktemp("readers")
    return {precision: export(reader, folder / precision, precision) for precision in ("fp32", "int8")}


@pytest.fixture(scope="module", params=["fp32", "int8"])
def runtime(request: pytest.FixtureRequest, bundles: dict[str, Bundle]) -> Iterator[LocalRuntime]:
    opened = LocalRuntime.load(bundles[request.param].directory, "cpu", threads=1)
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def exact(bundles: dict[str, Bundle]) -> Iterator[LocalRuntime]:
    opened = LocalRuntime.load(bundles["fp32"].directory, "cpu", threads=1)
    yield opened
    opened.close()


def read(runtime: LocalRuntime, *calls: ReadAnswer, max_windows: int = 16) -> list[AnswerRead]:
    answers = []
    for outcome in runtime.run(ROLE, calls, max_windows):
        assert isinstance(outcome, AnswerRead), outcome
        answers.append(outcome)
    return answers


def softmax(logits: torch.Tensor) -> np.ndarray:
    return logits.double().softmax(-1).detach().numpy()


def test_the_graph_gives_what_training_computes(reader: Reader, exact: LocalRuntime) -> None:
    """The row is made by the recipe: template, history, sentences and tokens line up."""
    answer = AnswerRow(MultitaskExample(KNOWLEDGE, ANSWER, "x", {"consistency": "consistent"}, ()), (), CALL.history)
    row = encode_answer(backbone.load_tokenizer(), answer, WINDOW, cut=False)
    assert row is not None
    logits = compute_head_logits(reader, collate([row], FILL))
    (result,) = read(exact, CALL)
    for name, probabilities in result.heads.items():
        assert probabilities == pytest.approx(softmax(logits[name][0]), abs=1e-4), name
    assert result.sentences == pytest.approx(softmax(logits[SENTENCE_HEAD][0, :2]), abs=1e-4)
    inside = [index for index, label in enumerate(row["token_classifier"]) if label >= 0]
    expected = softmax(logits["token_classifier"][0])[inside]
    assert [ANSWER[token.start : token.end] for token in result.tokens] == (
        ["It", "opens", "at", "ten", ".", "It", "is", "in", "Leeds", "."]
    )
    assert np.array([token.probabilities for token in result.tokens]) == pytest.approx(expected, abs=1e-4)


def test_the_manifest_and_the_gate(bundles: dict[str, Bundle]) -> None:
    for precision, exported in bundles.items():
        role = exported.manifest.roles[ROLE]
        assert isinstance(role, ReaderRole)
        assert role.architecture == "Reader"
        assert role.parity is not None
        assert role.parity.gate == "passed"
        assert role.turn_end == HISTORY_MARK
        assert role.info.heads[SENTENCE_HEAD].nothing == ("nothing",)
        assert set(exported.manifest.canaries or {}) == {ROLE}
        assert precision == "int8" or role.precision == "fp32"
        (report,) = certify(exported, Device("cpu")).values()
        assert report is not None
        assert report.batch_spread == 0.0
        assert report.parity.decision_agreement >= 0.9


def test_a_result_does_not_depend_on_the_batch(runtime: LocalRuntime) -> None:
    others = [
        ReadAnswer(ROLE, (f"{KNOWLEDGE} " * count,), (), "It opens at nine, or so they say.", ((0, 33),))
        for count in (1, 2, 3)
    ]
    (alone,) = read(runtime, CALL)
    together = read(runtime, *others, CALL, CALL)
    assert together[-2:] == [alone, alone]
    assert together[:3] == [read(runtime, call)[0] for call in others]


def test_a_sentence_is_labelled_the_same_whatever_is_asked_beside_it(exact: LocalRuntime) -> None:
    (both,) = read(exact, CALL)
    only = ReadAnswer(ROLE, CALL.premises, CALL.history, ANSWER, SENTENCES[1:])
    (second,) = read(exact, only)
    assert second.sentences[0] == pytest.approx(both.sentences[1], abs=1e-5)
    assert second.heads["consistency"] == pytest.approx(both.heads["consistency"], abs=1e-5)


def test_long_knowledge_is_read_in_windows(exact: LocalRuntime) -> None:
    passages = (*(f"Passage {number} is about other things and their prices. " * 4 for number in range(4)), KNOWLEDGE)
    call = ReadAnswer(ROLE, passages, (), ANSWER, SENTENCES)
    (result,) = read(exact, call)
    assert result.read.windows > 4
    assert result.read.characters == result.read.total == sum(map(len, passages))
    (last,) = read(exact, ReadAnswer(ROLE, passages[-1:], (), ANSWER, SENTENCES))
    assert len(result.tokens) == len(last.tokens)
    (outcome,) = exact.run(ROLE, [call], 2)
    assert isinstance(outcome, TooLong)


def test_the_newest_turns_are_read(exact: LocalRuntime) -> None:
    """A quarter of 64 tokens has room for the last turn alone."""
    turns = ("Tell me about the other shop, the one by the river, please.", "When does it open?")
    (result,) = read(exact, ReadAnswer(ROLE, (KNOWLEDGE,), turns, ANSWER, SENTENCES))
    assert result == read(exact, CALL)[0]


def test_unusable_calls_get_their_error(exact: LocalRuntime) -> None:
    calls = [
        ReadAnswer(ROLE, (KNOWLEDGE,), (), ANSWER, ((0, 20), (10, 32))),
        ReadAnswer(ROLE, (KNOWLEDGE,), (), ANSWER, ((0, 99),)),
        ReadAnswer(ROLE, (KNOWLEDGE,), (), f"{ANSWER} " * 20, SENTENCES),
        ReadAnswer(ROLE, (KNOWLEDGE,), (), "탑의 높이는 324미터입니다.", ((0, 5),)),
        CALL,
    ]
    outcomes = exact.run(ROLE, calls, 16)
    expected = [InvalidRequest, InvalidRequest, TooLong, Unreadable, AnswerRead]
    assert [type(outcome) for outcome in outcomes] == expected


def test_only_the_recipe_exports_a_reader(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="recipes reader bundle"):
        export_bundle({ROLE: RoleOptions(str(tmp_path))}, tmp_path / "out")


@pytest.mark.parametrize(
    ("heads", "message"),
    [
        ({}, "has the heads"),
        ({"consistency": ReaderHead(("yes", "no"), ("yes",), "answer")}, "has the heads"),
    ],
)
def test_a_reader_needs_its_heads(heads: dict[str, ReaderHead], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_role(ReaderRole, graph="g", heads=heads)


def test_the_window_that_supports_most_counts() -> None:
    head = ReaderHead(("no", "yes"), ("yes",), "token")
    first, second = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([[0.4, 0.6], [0.3, 0.7]])
    assert choose_supporting(head, [first, second]).tolist() == [[0.4, 0.6], [0.2, 0.8]]


def test_a_head_knows_its_labels() -> None:
    with pytest.raises(ValueError, match="maybe"):
        ReaderHead(("yes", "no"), ("maybe",), "answer")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bundles: dict[str, Bundle]) -> Path:
    """A checkout with a bundle compact that has no role, and the reader beside it."""
    monkeypatch.setattr(bundle, "CHECKOUT", tmp_path)
    monkeypatch.setattr(bundle, "ENTRY_POINTS", "groundwire.bundles.none")
    shutil.copytree(bundles["fp32"].directory, tmp_path / ROLE)
    empty = {"schema": 3, "name": "compact", "version": "1", "license": "x", "created_with": "x"}
    (tmp_path / "compact").mkdir()
    (tmp_path / "compact" / bundle.MANIFEST).write_text(json.dumps({**empty, "roles": {}, "files": {}}))
    return tmp_path


def test_the_reader_loads_beside_compact(checkout: Path) -> None:
    assert [opened.manifest.name for opened in open_bundles("compact")] == ["compact", ROLE]
    loaded = LocalRuntime.load("compact", "cpu", threads=1)
    assert loaded.roles == {ROLE}
    assert loaded.identity.bundle == "compact+reader"
    loaded.close()


def test_another_reader_takes_its_place(checkout: Path, bundles: dict[str, Bundle]) -> None:
    other = bundles["int8"].directory
    assert [opened.directory for opened in open_bundles("compact", [other])] == [checkout / "compact", other]
    assert [opened.directory for opened in open_bundles(str(checkout / "compact"))] == [checkout / "compact"]


def test_compact_loads_alone_where_the_reader_is_not_installed(checkout: Path) -> None:
    shutil.rmtree(checkout / ROLE)
    assert [opened.manifest.name for opened in open_bundles("compact")] == ["compact"]
