"""Measure whether the excerpts that models read of long knowledge have the sentences that a response is about.

    python -m bench excerpts [--data DIR]

Knowledge is made long: the passages of a written document among passages of others, a claim's evidence among the
evidence of other claims, the whole log of a tool. The recall is the share of sentences of responses whose gold is in
their excerpt, for the right sentence and for the same with a wrong value, which must not lead the selection away.
Gold is the sentence of the knowledge that has the value of a slot (where only one has it), the evidence, or the
record's values.
"""

from __future__ import annotations

import json
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from groundwire.engine.metrics.reader import ANSWER_SIZE, CONTEXT
from groundwire.engine.text.reading import count_pieces
from groundwire.engine.text.retrieval import NEAR, KnowledgeIndex
from groundwire.engine.text.sentences import read_sentences, sentences
from groundwire.recipes.common.corpus import read_rows
from groundwire.recipes.tools.rendering import render_log
from groundwire.recipes.tools.swaps import ValueForms, list_swaps
from groundwire.recipes.tools.turns import read_turns
from groundwire.recipes.written.documents import WrittenAnswer
from groundwire.recipes.written.pairs import WrittenPairs, draw_slots, falsify

FOLDER = Path(__file__).parents[1] / "results"
SIZES = (3_000, 10_000, 30_000)
"""Characters of the knowledge."""
WANTED = 0.97
_RECORD = re.compile(r"(?<=\}),\s*(?=\{)")
"""Between records of JSON, of which a sentence may have many."""
_VALUE = re.compile(r"\d[\d.,:]*\d|\d|(?<=\s)[A-Z]\w+")


class Question(NamedTuple):
    """A window of a response, and what its excerpt must have."""

    passages: tuple[str, ...]
    text: str
    gold: tuple[str, ...]
    """Each of them must be in the excerpt."""


def list_written(size: int, rng: random.Random) -> Iterator[tuple[str, Question]]:
    """Yield the sentences of written answers beside the passages of other documents of the same kind."""
    documents = WrittenPairs.read("dev").documents
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for document in documents:
        kinds[document.title.partition(":")[0]] += document.passages
    every = [passage for document in documents for passage in document.passages]
    for document in documents:
        others = [p for p in kinds[document.title.partition(":")[0]] if p not in document.passages]
        passages = _surround(document.passages, others if sum(map(len, others)) > size else every, size, rng)
        for answer in document.answers:
            if not answer.states_nothing and answer.slots:
                yield from _ask(answer, document.passages, passages, rng)


def _ask(
    answer: WrittenAnswer, own: Sequence[str], passages: tuple[str, ...], rng: random.Random
) -> Iterator[tuple[str, Question]]:
    chosen = draw_slots(answer, rng)
    wrong, _ = falsify(answer, chosen, rng)
    right_texts, wrong_texts = ([part.text for part in sentences(text)] for text in (answer.supported, wrong))
    values = [value for index in chosen for value in _VALUE.findall(f" {answer.slots[index].supported}")]
    known = [part for passage in own for sentence in read_sentences(passage) for part in _RECORD.split(sentence.text)]
    for value in values:
        holders = [text for text in known if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text)]
        if len(holders) != 1:
            continue
        for index, (right, other) in enumerate(zip(right_texts, wrong_texts, strict=False)):
            if right != other and value in right:
                for kind, texts in (("right", right_texts), ("wrong", wrong_texts)):
                    yield kind, Question(passages, cut_window(texts, index), (holders[0],))


def list_claims(data: Path, size: int, rng: random.Random) -> Iterator[tuple[str, Question]]:
    """Yield claims, entailed and contradicted, whose evidence is among that of other claims, some of the same page."""
    rows = list(read_rows(data / "more" / "nli_fever.jsonl.gz"))
    pages = defaultdict(list)
    for row in rows:
        pages[row["title"]].append(row["premise"])
    for row in rng.sample(rows, 600):
        near = [text for text in dict.fromkeys(pages[row["title"]]) if text != row["premise"]][:5]
        others = [*near, *(other["premise"] for other in rng.sample(rows, 200))]
        passages = _surround((row["premise"],), others, size, rng)
        kind = "right" if row["label"] == "entailment" else "wrong"
        yield kind, Question(passages, row["hypothesis"], (row["premise"],))


def list_tools(data: Path, size: int, rng: random.Random) -> Iterator[tuple[str, Question]]:
    """Yield responses for tools beside several logs; the values that a response says must be in the excerpt."""
    turns = [turn for turn in read_turns(data, "dev") if turn.record is not None]
    forms = ValueForms(turns)
    for turn in rng.sample(turns, 400):
        said = [value for value in turn.values if value.source == "result" and value.act == "OFFER"]
        if not said:
            continue
        logs, total = [render_log(turn.calls, {}, rng)], 0
        while total < size:
            logs.append(render_log(rng.choice(turns).calls, {}, rng))
            total += len(logs[-1])
        rng.shuffle(logs)
        lines = [str(value.value) for value in said]
        yield "right", Question(tuple(logs), turn.response, tuple(lines))
        # With one value alone nothing says which record it should be of.
        swaps = [
            swap
            for value in said
            if len(said) > 1
            for swap in list_swaps(turn, turn.values.index(value), forms, rng, near=False)
        ]
        if swaps:
            swap = rng.choice(swaps)
            yield "wrong", Question(tuple(logs), swap.apply(turn)[0], (turn.values[swap.index].value,))


def cut_window(texts: Sequence[str], index: int) -> str:
    """The text that the reader reads with a sentence: the response, or the sentence and those before it."""
    whole = " ".join(texts)
    return whole if count_pieces(whole) <= ANSWER_SIZE else " ".join(texts[max(0, index - CONTEXT) : index + 1])


def _surround(own: Sequence[str], others: Sequence[str], size: int, rng: random.Random) -> tuple[str, ...]:
    passages, total = list(own), sum(map(len, own))
    for other in rng.sample(list(others), len(others)):
        if total >= size:
            break
        if other not in passages:
            passages.append(other)
            total += len(other)
    rng.shuffle(passages)
    return tuple(passages)


def has_gold(question: Question) -> bool:
    """Whether the excerpt for a sentence has its gold."""
    index = KnowledgeIndex(question.passages)
    for _ in index.read():
        pass
    queries = [sentence.text for sentence in sentences(question.text)]
    excerpt = index.find(queries, NEAR.excerpt)
    text = " ".join(" ".join(excerpt.passages).split())
    return all(" ".join(gold.split()) in text for gold in question.gold)


def main(
    data: Annotated[
        Path | None, typer.Option(help="Folder of the training sets; without it, written documents.")
    ] = None,
    out: Annotated[Path, typer.Option(help="The file of results.")] = FOLDER / "excerpts.json",
    show: Annotated[int, typer.Option(help="Misses of each kind to print.", min=0)] = 0,
) -> None:
    """Measure the recall and print it."""
    report: dict[str, dict[str, float]] = {}
    for size in SIZES:
        sources = {"written": list_written(size, random.Random(7))}
        if data is not None:
            sources |= {
                "claims": list_claims(data, size, random.Random(7)),
                "tools": list_tools(data, size, random.Random(7)),
            }
        for name, questions in sources.items():
            found = defaultdict(list)
            misses = 0
            for kind, question in questions:
                if sum(map(len, question.passages)) <= NEAR.whole:
                    continue
                hit = has_gold(question)
                found[kind].append(hit)
                if not hit and misses < show:
                    misses += 1
                    print(f"  {name} {kind}: {question.text!r}\n      {question.gold}")
            row = {kind: round(sum(hits) / len(hits), 4) for kind, hits in found.items()}
            report[f"{name}_{size}"] = row | {"count": sum(map(len, found.values()))}
            worst = min(row.values())
            print(f"{name:>8} {size:>6} {row} {'' if worst >= WANTED else 'FAIL'}", flush=True)
    out.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    typer.run(main)
