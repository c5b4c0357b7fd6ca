"""BERTScore against the authors' package, on tiny checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bert_score import score as package
from bert_score.utils import get_idf_dict, get_tokenizer

from groundwire.engine import Engine, Options
from groundwire.engine.schema.options import BertScoreOptions
from groundwire.export import EmbedderSettings, RoleOptions, export_role
from tests.support import models
from tests.support.bertscore import get_explanation, get_values
from tests.support.texts import sentences

SENTENCES = list(sentences())
PAIRS = list(zip(SENTENCES, [*SENTENCES[4:], *SENTENCES[:4]], strict=True))
LAYER = 2
FAMILIES = list(models.EMBEDDERS)
TOLERANCE = 2e-5
"""The float32 rounding of two programs. Random vectors lie close together, so relevant differences are small too."""


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[Engine, Path]]]:
    """Returns a family's engine, with a tiny embedder cut after the second of three layers, and the checkpoint."""
    root = tmp_path_factory.mktemp("bertscore")
    loaded: dict[str, tuple[Engine, Path]] = {}

    def get(family: str) -> tuple[Engine, Path]:
        if family not in loaded:
            source = models.embedder(root / family, family)
            options = RoleOptions(str(source), EmbedderSettings(layer=LAYER), precision="fp32")
            bundle = export_role("embedder", options, root / f"{family}-bundle")
            loaded[family] = Engine.load(bundle.directory, "cpu", threads=1), source
        return loaded[family]

    yield get
    for engine, _ in loaded.values():
        engine.close()


Engines = Callable[[str], tuple[Engine, Path]]


def score_with_package(source: Path, response: str, knowledge: str, **settings: object) -> list[float]:
    """Precision, recall and F1 as the authors' package computes them."""
    values = package(
        [response], [knowledge.lower()], model_type=str(source), num_layers=LAYER, lang="en", device="cpu", **settings
    )
    return [float(value[0]) for value in values]


@pytest.mark.parametrize("family", FAMILIES)
def test_values_equal_those_of_the_package(engines: Engines, family: str) -> None:
    engine, source = engines(family)
    rounded_f1 = set()
    for response, knowledge in PAIRS[:12]:
        values = get_values(engine.score(response, knowledge, metrics=["bertscore"]))
        assert values == pytest.approx(score_with_package(source, response, knowledge), abs=TOLERANCE)
        rounded_f1.add(round(values[2], 3))
    assert len(rounded_f1) > 5


@pytest.mark.parametrize("family", FAMILIES)
def test_idf_weights_equal_those_of_the_package(engines: Engines, family: str) -> None:
    engine, source = engines(family)
    documents = (*SENTENCES, SENTENCES[0], "  bob ross  ")
    table = get_idf_dict([text.lower() for text in documents], get_tokenizer(str(source)), nthreads=0)
    options = Options(bertscore=BertScoreOptions(idf_documents=documents))
    differences = []
    for response, knowledge in PAIRS[12:20]:
        values = get_values(engine.score(response, knowledge, metrics=["bertscore"], options=options))
        assert values == pytest.approx(score_with_package(source, response, knowledge, idf=table), abs=TOLERANCE)
        plain = get_values(engine.score(response, knowledge, metrics=["bertscore"]))
        differences.append(abs(values[2] - plain[2]))
    assert max(differences) > 20 * TOLERANCE


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning")
@pytest.mark.parametrize("family", FAMILIES)
def test_rescaling_equals_that_of_the_package(engines: Engines, family: str, tmp_path: Path) -> None:
    engine, source = engines(family)
    baseline = (0.3, -0.1, 0.25)
    rows = ["LAYER,P,R,F", *(f"{i},0.9,0.9,0.9" for i in range(LAYER)), f"{LAYER},0.3,-0.1,0.25"]
    (tmp_path / "baseline.tsv").write_text("\n".join(rows))
    for response, knowledge in PAIRS[:4]:
        options = Options(bertscore=BertScoreOptions(baseline=baseline))
        score = engine.score(response, knowledge, metrics=["bertscore"], options=options)
        expected = score_with_package(
            source, response, knowledge, rescale_with_baseline=True, baseline_path=str(tmp_path / "baseline.tsv")
        )
        assert get_values(score) == pytest.approx(expected, abs=TOLERANCE)
        assert get_explanation(score).baseline == baseline


def test_spaces_around_a_text_change_nothing(engines: Engines) -> None:
    engine, _ = engines("roberta")
    response, knowledge = PAIRS[0]
    plain = engine.score(response, knowledge, metrics=["bertscore"])
    padded = engine.score(f" \n{response}  ", f"\t{knowledge} ", metrics=["bertscore"])
    assert get_values(padded) == get_values(plain)
    assert [(word.text, word.start - 2) for word in get_explanation(padded).words] == [
        (word.text, word.start) for word in get_explanation(plain).words
    ]


def test_a_long_text_is_embedded_completely(engines: Engines) -> None:
    engine, _ = engines("bert")
    long = " ".join(SENTENCES)
    score = engine.score(SENTENCES[-1], long, metrics=["bertscore"])
    assert (score.status, score.coverage) == ("scored", 1.0)
    precision, recall, _ = get_values(score)
    assert precision > recall, "the knowledge contains the whole response, and the rest of the knowledge has no match"
    refused = engine.score(SENTENCES[-1], long, metrics=["bertscore"], options=Options(max_windows=2))
    assert (refused.status, refused.value) == ("truncated", None)
