"""Knowledge for responses: BM25 against its formula, the embedder's cosine, and the command."""

from __future__ import annotations

import json
import math
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

from groundwire.cli.retrieve import retrieve
from groundwire.engine import InvalidRequest, ModelError
from groundwire.evaluate.retrieval import MeaningIndex, WordIndex, make_embedder
from groundwire.runtime.calls import Embed, Embedded, Read
from groundwire.runtime.errors import TooLong
from groundwire.runtime.fake import FakeRuntime
from groundwire.runtime.local import LocalRuntime
from groundwire.runtime.protocol import Outcome
from tests.support.usage import usage_error

pytest.importorskip("bm25s")

PASSAGES = [
    "Honey is golden and sweet.",
    "Bees make honey, and honey keeps for years.",
    "The tower is 324 metres tall.",
    "The violin has four strings.",
    "The and of it.",
]
TOPICS = ("honey", "tower", "violin")


def embed(call: Embed) -> Outcome:
    """A vector of which topics a text names, and one of a special token that must not count."""
    if "unreadable" in call.text:
        return TooLong("The text is too long.")
    known = np.array([float(topic in call.text.lower()) for topic in TOPICS], dtype=np.float32)
    vectors = np.stack([np.ones(3, dtype=np.float32), known])
    return Embedded(vectors, (0, 1), ((0, 0), (0, len(call.text))), (True, False), Read(1, 1, 1))


def count_bm25(query: list[str], passages: list[list[str]]) -> list[float]:
    """Lucene's formula, with its constants."""
    mean = sum(map(len, passages)) / len(passages)
    scores = []
    for passage in passages:
        counts, score = Counter(passage), 0.0
        for word in query:
            containing = sum(word in other for other in passages)
            idf = math.log(1 + (len(passages) - containing + 0.5) / (containing + 0.5))
            score += idf * counts[word] / (counts[word] + 1.5 * (1 - 0.75 + 0.75 * len(passage) / mean))
        scores.append(score)
    return scores


def test_words_are_weighed_as_bm25_says() -> None:
    content = [
        ["honey", "golden", "sweet"],
        ["bees", "honey", "honey", "keeps", "years"],
        ["tower", "324", "metres", "tall"],
        ["violin", "strings"],
        [],
    ]
    nearest = WordIndex(PASSAGES).search("Is the honey of the tower golden?", 5)
    expected = count_bm25(["honey", "tower", "golden"], content)
    assert [passage.position for passage in nearest] == [0, 2, 1]
    assert [passage.score for passage in nearest] == pytest.approx([expected[index] for index in (0, 2, 1)], rel=1e-5)
    assert [passage.position for passage in WordIndex(PASSAGES).search("golden honey", 1)] == [0]


def test_what_shares_no_word_is_not_found() -> None:
    assert WordIndex(PASSAGES).search("Marathon runners.", 3) == []
    assert WordIndex(PASSAGES).search("of the", 3) == []
    with pytest.raises(InvalidRequest, match="No passage of the corpus"):
        WordIndex(["of the", ""])


def test_meaning_is_the_cosine_of_mean_vectors_without_special_tokens() -> None:
    runtime = FakeRuntime({"embedder": embed}, batch=2)
    index = MeaningIndex(PASSAGES[:4], make_embedder(runtime))
    assert [len(calls) for _, calls in runtime.batches] == [2, 2]
    nearest = index.search("A violin of honey.", 3)
    assert [passage.position for passage in nearest] == [0, 1, 3]
    assert [passage.score for passage in nearest] == pytest.approx([math.sqrt(0.5)] * 3)


def test_what_the_embedder_cannot_read_is_an_error() -> None:
    embed_texts = make_embedder(FakeRuntime({"embedder": embed}))
    with pytest.raises(TooLong):
        embed_texts(["unreadable"])
    with pytest.raises(ModelError, match="no direction"):
        embed_texts(["nothing known"])
    with pytest.raises(InvalidRequest, match="no role 'embedder'"):
        make_embedder(FakeRuntime({}))


def run(*args: object) -> Result:
    app = typer.Typer()
    app.command("retrieve")(retrieve)
    app.command("other")(lambda: None)
    return CliRunner().invoke(app, ["retrieve", *map(str, args)])


def write(path: Path, lines: list[Any]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = write(
        tmp_path / "corpus.jsonl", [{"context": PASSAGES[:2]}, *({"context": text} for text in PASSAGES[1:4])]
    )
    lines: list[Any] = [
        {"id": "a", "response": "It is golden.", "history": ["What of the tower?"], "knowledge": "old"},
        {"id": "b", "response": "Marathon."},
    ]
    source = write(tmp_path / "in.jsonl", lines)
    out = tmp_path / "out.jsonl"
    result = run(source, "--corpus", corpus, "--out", out, "--query", "both", "--top", 2)
    assert result.exit_code == 3
    assert "line 2: No passage of the corpus has a word of it" in result.stderr
    (line,) = map(json.loads, out.read_text().splitlines())
    assert (line["id"], line["history"], line["response"]) == ("a", ["What of the tower?"], "It is golden.")
    assert sorted(line["knowledge"]) == sorted([PASSAGES[0], PASSAGES[2]])
    assert line["retrieved"] == sorted(line["retrieved"], reverse=True)

    runtime = FakeRuntime({"embedder": embed})
    monkeypatch.setattr(LocalRuntime, "load", lambda *args, **kwargs: runtime)
    both = write(tmp_path / "tower.jsonl", [{"response": "A tower."}])
    meant = run(both, "--corpus", corpus, "--method", "meaning", "--top", 1)
    assert meant.exit_code == 0, f"{meant.output} {meant.exception}"
    assert json.loads(meant.stdout)["knowledge"] == [PASSAGES[2]]
    assert runtime.closed


def test_wrong_usage(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", [{"response": "Honey."}])
    empty = write(tmp_path / "empty.jsonl", [{"knowledge": " "}])
    assert "use words, meaning" in usage_error(run(source, "--corpus", source, "--method", "bm25"))
    assert "use response, history, both" in usage_error(run(source, "--corpus", source, "--query", "all"))
    assert "no passage to search" in str(run(source, "--corpus", empty).exception)
