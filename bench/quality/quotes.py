"""Says whether quotations of answers are read rightly: those of ``bench/quality/quotes``, and made ones.

    python -m bench quotes                              the development half
    python -m bench quotes --file sealed.jsonl.gz       the sealed half, for a final figure only
    python -m bench quotes --made FILE                  200 made quotations of the texts of a file of JSON Lines
    python -m bench quotes --marks                      citation marks, by the embedded bundle
    python -m bench quotes --rows                       each quotation that is read wrongly

A quotation is right if it is found with its outcome; what is found and is no quotation is wrong. Changed words are
right if they are those of the row. The interval (95 %) is Wilson's.
"""

from __future__ import annotations

import gzip
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).with_name("quotes")
sys.path.insert(0, str(ROOT))

from bench.quality.pairs import make_parser  # noqa: E402
from groundwire.engine import Engine, Score  # noqa: E402
from groundwire.engine.schema.explanations import CitationsExplanation, QuotedText  # noqa: E402
from groundwire.evaluate.quotations import make_quotations  # noqa: E402
from groundwire.monitor.prevalence import share  # noqa: E402
from groundwire.runtime.fake import FakeRuntime  # noqa: E402

MADE = 200


class LabelledQuotation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A quotation of an answer, and what it is."""

    text: str
    outcome: str
    changed: tuple[str, ...] = ()
    """Its words that the source does not have; none of an omission."""


class LabelledMark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A citation mark of an answer: the first of this text after the beginning of ``statement``."""

    text: str
    statement: str
    outcome: str


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer with all of its quotations."""

    id: str
    kind: str
    knowledge: tuple[str, ...]
    history: tuple[str, ...]
    response: str
    quotations: tuple[LabelledQuotation, ...]
    marks: tuple[LabelledMark, ...] = ()


class Finding(NamedTuple):
    """What a quotation is, and what it was taken for; empty where it is none."""

    row: Row
    text: str
    expected: str
    outcome: str
    changes_right: bool = True


def read_rows(path: Path) -> list[Row]:
    """Return the rows of a file of JSON Lines, which gzip may have compressed."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [msgspec.json.decode(line, type=Row) for line in text.splitlines()]


def make_rows(path: Path, count: int = MADE) -> list[Row]:
    """Return rows of made quotations of the texts of a file."""
    lines = (gzip.open if path.suffix == ".gz" else open)(path, "rt", encoding="utf-8").read().splitlines()
    texts = [row.get("text") or row.get("context") or row["knowledge"] for row in map(msgspec.json.decode, lines)]
    return [
        Row(
            f"made-{number:03}",
            "made",
            made.knowledge,
            (),
            made.response,
            () if made.outcome is None else (LabelledQuotation(made.text, made.outcome, made.changed),),
        )
        for number, made in enumerate(make_quotations(texts, count), 1)
    ]


def compare(row: Row, score: Score) -> Iterator[Finding]:
    """Yield what became of each quotation of a row, and what was taken for one."""
    found = list(score.quotations)
    position = 0
    for labelled in row.quotations:
        start = row.response.index(labelled.text, position)
        position = start + len(labelled.text)
        match = next((item for item in found if item.start < position and start < item.end), None)
        if match is None:
            yield Finding(row, labelled.text, labelled.outcome, "")
            continue
        found.remove(match)
        yield Finding(row, labelled.text, labelled.outcome, match.outcome, _list_changed(match) == labelled.changed)
    for item in found:
        yield Finding(row, item.text, "", item.outcome)


def compare_marks(row: Row, score: Score) -> Iterator[Finding]:
    """Yield what became of each citation mark of a row; a mark that cites several items is as its worst."""
    explanation = score.metrics["citations"].explanation
    sentences = explanation.sentences if isinstance(explanation, CitationsExplanation) else ()
    for labelled in row.marks:
        place = row.response.index(labelled.statement)
        cited = next((sentence for sentence in sentences if sentence.start <= place < sentence.end), None)
        items = [item for item in (cited.items if cited else ()) if item.text == labelled.text]
        yield Finding(row, f"{labelled.text} {labelled.statement}", labelled.outcome, items[0].outcome if items else "")


def _list_changed(item: QuotedText) -> tuple[str, ...]:
    return tuple(part.text for part in item.changed if part.text)


def describe(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the lines of the table: all quotations, and each outcome."""
    yield "| outcome | count | right | taken for |"
    yield "|---|---|---|---|"
    outcomes = dict.fromkeys(sorted({finding.expected for finding in findings}))
    for title in ("all", *outcomes):
        of_title = [finding for finding in findings if title in ("all", finding.expected)]
        right = sum(finding.outcome == finding.expected for finding in of_title)
        rate = share(right, len(of_title))
        wrong = Counter(finding.outcome or "none" for finding in of_title if finding.outcome != finding.expected)
        taken = "" if title == "all" else ", ".join(f"{name} {count}" for name, count in sorted(wrong.items()))
        name = title or "no quotation"
        yield f"| {name} | {len(of_title)} | {rate.value:.1%} ({rate.low:.1%}–{rate.high:.1%}) | {taken} |"
    altered = [finding for finding in findings if finding.expected == finding.outcome == "altered"]
    if altered:
        right = sum(finding.changes_right for finding in altered)
        yield f"\nChanged words right in {right} of {len(altered)} altered quotations."


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = make_parser(__doc__)
    parser.add_argument("--file", default="development.jsonl")
    parser.add_argument("--made", type=Path)
    parser.add_argument("--marks", action="store_true")
    parser.add_argument("--rows", action="store_true")
    options = parser.parse_args(arguments)
    rows = make_rows(options.made) if options.made else read_rows(FOLDER / options.file)
    with Engine.load() if options.marks else Engine(FakeRuntime({})) as engine:
        findings = list(_compare_all(rows, engine, "citations" if options.marks else "quotations"))
    for line in describe(findings):
        print(line)
    for finding in findings if options.rows else ():
        if finding.outcome != finding.expected or not finding.changes_right:
            print(f"\n{finding.row.id} {finding.expected or '–'} → {finding.outcome or '–'}: {finding.text}")
            print(f"    {finding.row.response}")


def _compare_all(rows: Iterable[Row], engine: Engine, metric: str) -> Iterator[Finding]:
    rows = list(rows)
    compare_row = compare if metric == "quotations" else compare_marks
    items = [{"response": row.response, "knowledge": row.knowledge, "history": row.history} for row in rows]
    for row, score in zip(rows, engine.score_many(items, metrics=[metric]), strict=True):
        yield from compare_row(row, score)


if __name__ == "__main__":
    main()
