"""BERTScore: on vectors small enough to work out by hand, and against the authors' package on a tiny checkpoint."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from bert_score import score as package
from bert_score.utils import get_idf_dict, get_tokenizer
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine import BertScoreExplanation, BertScoreOptions, Engine, Options, Score
from groundwire.engine.metrics.bertscore import match_words
from groundwire.engine.scheduling.cache import Cache, Key
from groundwire.engine.signature import signature
from groundwire.export import RoleOptions, export_role
from groundwire.runtime.calls import CountTokens, Embed, Embedded, Read, TokenCounts
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.models.embedder import unit
from groundwire.runtime.protocol import RoleInfo
from tests.support import models

SENTENCES = list(models.sentences())
PAIRS = list(zip(SENTENCES, [*SENTENCES[4:], *SENTENCES[:4]], strict=True))
LAYER = 2
FAMILIES = list(models.EMBEDDERS)
TOLERANCE = 2e-5
"""Two programs' float32 rounding; random vectors lie close together, so what matters is small."""


def explained(found: Score) -> BertScoreExplanation:
    explanation = found.metrics["bertscore"].explanation
    assert isinstance(explanation, BertScoreExplanation)
    return explanation


def triple(found: Score) -> tuple[float, float, float]:
    explanation = explained(found)
    assert found.value == explanation.f1
    return explanation.precision, explanation.recall, explanation.f1


# Against the package


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[Engine, Path]]]:
    """An engine per family over its tiny embedder, cut behind the second of three layers, and the checkpoint."""
    root = tmp_path_factory.mktemp("bertscore")
    made: dict[str, tuple[Engine, Path]] = {}

    def get(family: str) -> tuple[Engine, Path]:
        if family not in made:
            source = models.embedder(root / family, family)
            options = RoleOptions(str(source), precision="fp32", layer=LAYER)
            bundle = export_role("embedder", options, root / f"{family}-bundle")
            made[family] = Engine.load(bundle.directory, "cpu", threads=1), source
        return made[family]

    yield get
    for engine, _ in made.values():
        engine.close()


Engines = Callable[[str], tuple[Engine, Path]]


def direct(source: Path, response: str, knowledge: str, **settings: object) -> list[float]:
    """Precision, recall and F1 by the package."""
    found = package(
        [response], [knowledge.lower()], model_type=str(source), num_layers=LAYER, lang="en", device="cpu", **settings
    )
    return [float(numbers[0]) for numbers in found]


@pytest.mark.parametrize("family", FAMILIES)
def test_numbers_are_those_of_the_package(engines: Engines, family: str) -> None:
    engine, source = engines(family)
    seen = set()
    for response, knowledge in PAIRS[:12]:
        found = triple(engine.score(response, knowledge, metrics=["bertscore"]))
        assert found == pytest.approx(direct(source, response, knowledge), abs=TOLERANCE)
        seen.add(round(found[2], 3))
    assert len(seen) > 5


@pytest.mark.parametrize("family", FAMILIES)
def test_weights_are_those_of_the_package(engines: Engines, family: str) -> None:
    engine, source = engines(family)
    documents = (*SENTENCES, SENTENCES[0], "  bob ross  ")
    table = get_idf_dict([text.lower() for text in documents], get_tokenizer(str(source)), nthreads=0)
    options = Options(bertscore=BertScoreOptions(idf_documents=documents))
    differences = []
    for response, knowledge in PAIRS[12:20]:
        found = triple(engine.score(response, knowledge, metrics=["bertscore"], options=options))
        assert found == pytest.approx(direct(source, response, knowledge, idf=table), abs=TOLERANCE)
        plain = triple(engine.score(response, knowledge, metrics=["bertscore"]))
        differences.append(abs(found[2] - plain[2]))
    assert max(differences) > 20 * TOLERANCE


@pytest.mark.filterwarnings("ignore:The given NumPy array is not writable:UserWarning")
@pytest.mark.parametrize("family", FAMILIES)
def test_rescaling_is_that_of_the_package(engines: Engines, family: str, tmp_path: Path) -> None:
    engine, source = engines(family)
    baseline = (0.3, -0.1, 0.25)
    rows = ["LAYER,P,R,F", *(f"{i},0.9,0.9,0.9" for i in range(LAYER)), f"{LAYER},0.3,-0.1,0.25"]
    (tmp_path / "baseline.tsv").write_text("\n".join(rows))
    for response, knowledge in PAIRS[:4]:
        options = Options(bertscore=BertScoreOptions(baseline=baseline))
        score = engine.score(response, knowledge, metrics=["bertscore"], options=options)
        expected = direct(
            source, response, knowledge, rescale_with_baseline=True, baseline_path=str(tmp_path / "baseline.tsv")
        )
        assert triple(score) == pytest.approx(expected, abs=TOLERANCE)
        assert explained(score).baseline == baseline


def test_blanks_around_a_text_change_nothing(engines: Engines) -> None:
    engine, _ = engines("roberta")
    response, knowledge = PAIRS[0]
    plain = engine.score(response, knowledge, metrics=["bertscore"])
    padded = engine.score(f" \n{response}  ", f"\t{knowledge} ", metrics=["bertscore"])
    assert triple(padded) == triple(plain)
    assert [(word.text, word.start - 2) for word in explained(padded).words] == [
        (word.text, word.start) for word in explained(plain).words
    ]


def test_a_long_text_is_read_whole(engines: Engines) -> None:
    engine, _ = engines("bert")
    long = " ".join(SENTENCES)
    score = engine.score(SENTENCES[-1], long, metrics=["bertscore"])
    assert (score.status, score.coverage) == ("scored", 1.0)
    precision, recall, _ = triple(score)
    assert precision > recall, "the last sentence is all there, and the rest of the knowledge has no counterpart"
    refused = engine.score(SENTENCES[-1], long, metrics=["bertscore"], options=Options(max_windows=2))
    assert (refused.status, refused.value) == ("truncated", None)


# By hand, on a world in which a word is one token and a vector


WORLD: dict[str, tuple[float, float, float]] = {
    "bob": (1, 0, 0),
    "robert": (0.8, 0.6, 0),
    "paints": (0, 0, 1),
    "sings": (0, 1, 0),
}
START = (0.6, 0.8, 0.0)


def embed(call: Embed | CountTokens) -> Embedded | TokenCounts:
    """Words apart by blanks, one special token in front."""
    ids = {word: index for index, word in enumerate(WORLD, 1)}
    if isinstance(call, CountTokens):
        counts = {0: len(call.texts)}
        for index in (ids[word] for text in call.texts for word in set(text.split())):
            counts[index] = counts.get(index, 0) + 1
        return TokenCounts(len(call.texts), counts)
    tokens, at = [("", 0, 0)], 0
    for word in call.text.split():
        at = call.text.index(word, at)
        tokens.append((word, at, at + len(word)))
        at += len(word)
    rows = np.array([START, *(WORLD[word.lower()] for word, _, _ in tokens[1:])], dtype=np.float32)
    return Embedded(
        unit(rows),
        tuple(ids.get(word.lower(), 0) for word, _, _ in tokens),
        tuple((start, end) for _, start, end in tokens),
        tuple(not word for word, _, _ in tokens),
        Read(1, len(call.text), len(call.text)),
    )


NO_FACTS = RoleInfo()


def run(response: str, *knowledge: str, info: RoleInfo = NO_FACTS, **settings: object) -> Score:
    runtime = FakeRuntime({"embedder": embed}, role_info={"embedder": info})
    with Engine(runtime) as engine:
        options = Options(bertscore=BertScoreOptions(**settings))  # type: ignore[arg-type]
        return engine.score(response, knowledge, metrics=["bertscore"], options=options)


def test_values_worked_out_by_hand() -> None:
    """robert–bob 0.8, paints–paints 1; of the knowledge bob–robert 0.8, sings–start 0.8, paints–paints 1."""
    found = run("Robert paints", "bob sings paints")
    precision, recall = (0.96 + 1) / 2, (0.8 + 0.8 + 1) / 3
    # The special token takes part: "robert" is nearer to it (0.8·0.6 + 0.6·0.8 = 0.96) than to "bob".
    assert triple(found) == pytest.approx((precision, recall, 2 * precision * recall / (precision + recall)))
    assert [(word.text, word.start, word.end) for word in explained(found).words] == [
        ("Robert", 0, 6), ("paints", 7, 13),
    ]  # fmt: skip
    assert [word.similarity for word in explained(found).words] == pytest.approx([0.96, 1.0])


def test_passages_are_matched_together_and_embedded_apart() -> None:
    runtime = FakeRuntime({"embedder": embed})
    with Engine(runtime) as engine:
        two = engine.score("robert paints", ["bob", "sings paints"], metrics=["bertscore"])
        one = engine.score("robert paints", "bob sings paints", metrics=["bertscore"])
    assert triple(two) == pytest.approx(triple(one))
    texts = {call.text for _, calls in runtime.batches for call in calls if isinstance(call, Embed)}
    assert texts == {"robert paints", "bob", "sings paints", "bob sings paints"}


def test_only_the_knowledge_is_lower_cased() -> None:
    runtime = FakeRuntime({"embedder": embed})
    with Engine(runtime) as engine:
        engine.score("Bob", "PAINTS", metrics=["bertscore"])
        cased = Options(bertscore=BertScoreOptions(lower_knowledge=False, idf_documents=("bob",)))
        engine.score("Bob", "Sings", metrics=["bertscore"], options=cased)
    texts = [call.text for _, calls in runtime.batches for call in calls if isinstance(call, Embed)]
    assert sorted(texts) == ["Bob", "Sings", "paints"]


def test_rare_tokens_weigh_more() -> None:
    documents = ("bob paints", "bob", "bob sings")
    found = run("bob robert", "bob sings", idf_documents=documents)
    # bob is in all three documents and weighs nothing; robert is in none: log 4
    assert explained(found).precision == pytest.approx(0.96)
    assert explained(run("robert paints", "paints", idf_documents=documents)).precision == pytest.approx(
        (math.log(4) * 0.96 + math.log(2) * 1) / (math.log(4) + math.log(2))
    )


@pytest.mark.parametrize(
    ("role", "setting", "used"),
    [
        (None, "role", None),
        ((0.5, 0.4, 0.3), "role", (0.5, 0.4, 0.3)),
        ((0.5, 0.4, 0.3), "none", None),
        ((0.5, 0.4, 0.3), (0.1, 0.2, -0.3), (0.1, 0.2, -0.3)),
        (None, (0.1, 0.2, 0.3), (0.1, 0.2, 0.3)),
    ],
)
def test_which_baseline_rescales(
    role: tuple[float, float, float] | None, setting: object, used: tuple[float, float, float] | None
) -> None:
    found = run("robert paints", "bob sings paints", info=RoleInfo(baseline=role), baseline=setting)
    plain = triple(run("robert paints", "bob sings paints"))
    zero = used or (0.0, 0.0, 0.0)
    assert triple(found) == pytest.approx([(x - b) / (1 - b) for x, b in zip(plain, zero, strict=True)])
    assert explained(found).baseline == used


@pytest.mark.parametrize("baseline", [(0.1, 0.2, 1.0), (0.1, math.nan, 0.2), (-1.5, 0, 0), (0.1, 0.2)])
def test_a_baseline_that_rescales_nothing_is_named(baseline: tuple[float, ...]) -> None:
    found = run("bob", "bob", baseline=baseline)
    assert (found.status, found.value) == ("failed", None)
    assert str(baseline) in found.message


def test_equal_texts_score_one_on_any_scale() -> None:
    assert run("bob sings", "bob sings", baseline=(0.5, 0.5, 0.5)).value == pytest.approx(1.0)


def test_without_weight_there_is_nothing_to_verify_or_nothing_to_find() -> None:
    nothing = run("bob", "sings", idf_documents=("bob", "bob sings"))
    assert (nothing.status, nothing.value) == ("nothing_to_verify", None)
    # In the knowledge no token weighs anything: it supports nothing, as in the package.
    assert triple(run("paints", "bob", idf_documents=("bob", "bob sings"))) == (0.0, 0.0, 0.0)


def test_the_signature_names_documents_by_their_digest() -> None:
    def sign(*documents: str) -> str:
        options = Options(bertscore=BertScoreOptions(idf_documents=documents))
        return signature(FakeRuntime({}).identity, ("bertscore",), options)

    assert sign("bob").endswith("|options:bertscore.idf_documents=('bob',)")
    texts = [f"document {i}" for i in range(100)]
    long, other = sign(*texts), sign(*texts[1:], texts[0])
    assert "idf_documents=sha256:" in long
    assert len(long) < 200
    assert long != other == sign(*texts[1:], texts[0])


def test_the_cache_counts_the_bytes_of_vectors() -> None:
    cache = Cache(max_chars=3 * 256 + 100 + 2 * 4 * 30)
    found = embed(Embed("bob"))
    assert isinstance(found, Embedded)
    bulky = Embedded(np.zeros((10, 3), np.float32), found.ids, found.offsets, found.special, found.read)
    keys = [Key(Embed(name), 8) for name in "abc"]
    for key in keys:
        cache.put(key, bulky)
    assert [key.call.text for key in keys if cache.get(key)] == ["b", "c"]  # type: ignore[union-attr]
    small = Cache(max_chars=300)
    small.put(keys[0], bulky)
    assert len(small) == 0, "a result larger than the cache would only empty it"


# The words of an explanation


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[str, list[tuple[int, int]]]:
    """A text, and a division of it into pieces, some of them empty."""
    text = draw(st.text(st.sampled_from("ab ,.'é漢🙂\n"), min_size=1, max_size=30))
    bounds = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return text, list(zip([0, *bounds], [*bounds, len(text)], strict=True))


@given(cut_texts())
def test_a_words_similarity_is_the_mean_of_the_pieces_that_touch_it(case: tuple[str, list[tuple[int, int]]]) -> None:
    text, pieces = case
    inner = text.strip()
    if not inner:
        return
    begin = text.index(inner)
    inside = [
        (max(a - begin, 0), min(b - begin, len(inner))) for a, b in pieces if b > begin and a - begin < len(inner)
    ]
    count = len(inside)
    numbers = np.random.default_rng(count).random(count + 1).astype(np.float32)
    embedded = Embedded(
        np.zeros((count + 1, 2), np.float32),
        (0,) * (count + 1),
        ((0, 0), *inside),
        (True, *[False] * count),
        Read(1, 1, 1),
    )
    found = match_words(text, embedded, numbers)
    for word in found:
        assert word.text == text[word.start : word.end]
        touching = [
            number
            for (a, b), number in zip(inside, numbers[1:], strict=True)
            if a + begin < word.end and b + begin > word.start
        ]
        assert word.similarity == pytest.approx(float(np.mean(touching)), rel=1e-5)
    assert found
