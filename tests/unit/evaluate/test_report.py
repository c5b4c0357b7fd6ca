"""The report: what is in it, that untrusted text does no harm, and that the same results give the same files."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from groundwire.engine.schema.results import UnsupportedSpan
from groundwire.evaluate.report import plots
from groundwire.evaluate.report.page import write_report
from groundwire.evaluate.report.text import break_name, escape_text, replace_unshowable, sort_spans, split_into_pieces
from groundwire.evaluate.statistics.results import (
    ErrorCase,
    ErrorThreshold,
    MetricFigures,
    Results,
    SetFigures,
    VerdictFigures,
)
from groundwire.monitor.records import Estimate
from groundwire.runtime.errors import InvalidRequest
from tests.support.report_results import SHARPNESS, TEXT, build_errors, labelled, results

VOID = {"meta", "link", "input", "br", "wbr", "hr", "img"}
ODD = "lone \ud83d half, \x00 nul, \x1b[31m escape, \u202eesrever, \u200bzero, שלום, https://example.com/x?a=1&b=2"


class Tree(HTMLParser):
    """A page as elements, as strict as a browser is lenient: every element must be closed where it was opened."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.builder = ET.TreeBuilder()
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open
        self.root = self.builder.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        names = [key for key, _ in attributes]
        assert len(set(names)) == len(names), (tag, names)
        self.builder.start(tag, {key: value or "" for key, value in attributes})
        if tag in VOID:
            self.builder.end(tag)
        else:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, (tag, self.getpos())
        self.builder.end(tag)

    def handle_data(self, data: str) -> None:
        self.builder.data(data)


def text_of(element: ET.Element, without: str = "") -> str:
    """All text inside, without that of elements named ``without``."""
    out = element.text or ""
    for child in element:
        out += ("" if child.tag == without else text_of(child, without)) + (child.tail or "")
    return out


def of_class(root: ET.Element, wanted: str, tag: str = "*") -> Iterator[ET.Element]:
    for element in root.iter():
        if wanted in element.get("class", "").split() and tag in ("*", element.tag):
            yield element


def rows_of(table: ET.Element) -> list[ET.Element]:
    return list(next(table.iter("tbody")))


def heads_of(table: ET.Element) -> list[str]:
    return [text_of(cell).strip() for cell in next(table.iter("thead"))[-1]]


def one_set(errors: tuple[ErrorCase, ...], **changes: object) -> Results:
    made = msgspec.structs.replace(labelled("one", 80, 3, {"nli": 1.4}), errors=errors, **changes)
    return of_sets(made)


def of_sets(*sets: SetFigures) -> Results:
    return msgspec.structs.replace(results(20, {}), sets=sets)


@pytest.fixture(scope="module")
def made() -> Results:
    return results(120)


@pytest.fixture(scope="module")
def directory(made: Results, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("report") / "runs" / "mine"
    assert write_report(made, directory) == directory / "report.html"
    return directory


@pytest.fixture(scope="module")
def page(directory: Path) -> ET.Element:
    return Tree((directory / "report.html").read_text(encoding="utf-8")).root


def test_every_set_and_metric_is_there(page: ET.Element, made: Results) -> None:
    titles = [text_of(element).strip() for element in page.iter("h2")]
    assert titles == ["Overview", *(figures.name for figures in made.sets), "Terms"]
    for part, figures in zip(of_class(page, "set", "section"), made.sets, strict=True):
        table = next(part.iter("table"))
        assert {row[0].get("data-value") for row in rows_of(table)} == set(figures.metrics)


def test_a_figure_is_in_its_row_and_column(page: ET.Element, made: Results) -> None:
    figures = made.sets[0].metrics["q2"]
    table = next(next(of_class(page, "set", "section")).iter("table"))
    heads = heads_of(table)
    row = next(row for row in rows_of(table) if row[0].get("data-value") == "q2")
    values = dict(zip(heads, (cell.get("data-value") for cell in row), strict=False))
    assert figures.roc_auc is not None
    assert float(values["ROC-AUC"] or 0) == figures.roc_auc.value
    assert float(values["Examples"] or 0) == figures.examples
    assert f"{figures.roc_auc.value:.3f}" in text_of(row)
    tuned = [decision for decision in figures.decisions if decision.origin != "0.5"]
    assert float(values["Threshold"] or 0) == tuned[0].threshold
    assert float(row[heads.index("F1 consistent")].get("data-value") or 0) == figures.decisions[0].consistent.f1.value


def test_columns_without_any_value_are_left_out(page: ET.Element) -> None:
    sets = list(of_class(page, "set", "section"))
    assert heads_of(next(sets[-1].iter("table"))) == ["Metric", "Examples", "Spearman", "Pearson", "Ranking"]


def test_the_overview_has_the_sets_with_labels_and_names_the_others(page: ET.Element, made: Results) -> None:
    overview = next(element for element in page.iter("section") if element.get("id") == "overview")
    assert heads_of(overview) == ["Metric", "q2_wow_600", "begin_wow_test"]
    assert "usr_topicalchat is not in the table" in " ".join(text_of(overview).split())
    rows = [[cell.get("data-value") for cell in row] for row in rows_of(overview)]
    merits = [
        (sum(value is not None for value in row[1:]), sum(float(value or 0) for value in row[1:])) for row in rows
    ]
    assert merits == sorted(merits, reverse=True)
    assert {count for count, _ in merits} == {1, 2}
    assert {row[0] for row in rows} == set(made.sets[0].metrics)


def test_the_overview_counts_the_examples_of_a_metric_that_did_not_score_all(tmp_path: Path) -> None:
    whole, other = labelled("one", 80, 3, {"nli": 1.4, "q2": 1.0}), labelled("two", 80, 4, {"nli": 1.4})
    fewer = msgspec.structs.replace(whole.metrics["q2"], examples=72)
    write_report(of_sets(msgspec.structs.replace(whole, metrics=whole.metrics | {"q2": fewer}), other), tmp_path)
    tree = Tree((tmp_path / "report.html").read_text(encoding="utf-8")).root
    overview = next(element for element in tree.iter("section") if element.get("id") == "overview")
    counts = {row[0].get("data-value"): [text_of(e) for e in of_class(row, "examples")] for row in rows_of(overview)}
    assert counts == {"nli": [], "q2": ["of 72"]}


def test_a_plot_that_cannot_show_all_metrics_says_so(page: ET.Element, made: Results) -> None:
    part = next(of_class(page, "set", "section"))
    captions = [" ".join(text_of(caption).split()) for caption in part.iter("figcaption")]
    count = sum(metric.roc is not None for metric in made.sets[0].metrics.values())
    assert count > 5
    assert f"ROC curves of 5 of {count} metrics, the best ones" in captions


def test_intervals_are_explained(page: ET.Element) -> None:
    (button,) = (element for element in page.iter("button") if element.get("data-toggle") == "intervals")
    assert text_of(button) == "95 % intervals"
    assert "95 % interval" in button.get("title", "")
    glossary = next(element for element in page.iter("section") if element.get("id") == "glossary")
    assert "drawn with replacement" in text_of(glossary)


def test_no_legend_covers_the_axes(made: Results) -> None:
    """A legend in the axes covers curves and points."""
    metrics = [
        msgspec.structs.replace(metric, precision_recall_consistent=metric.precision_recall)
        for metric in made.sets[0].metrics.values()
    ]
    reliability = [(metric.metric, metric.reliability) for metric in metrics if metric.reliability is not None]
    for drawing in (
        plots.draw_roc(metrics, "a"),
        plots.draw_precision_recall(metrics, "b", 0.3),
        plots.draw_precision_recall(metrics, "c", 0.7, consistent=True),
        plots.draw_reliability(reliability, "d"),
    ):
        elements = {element.get("id"): element for element in ET.fromstring(drawing.svg).iter()}
        axes = next(element.get("d", "") for element in elements["patch_2"])
        bottom = max(float(y) for y in re.findall(r"[ML] [\d.]+ ([\d.]+)", axes))
        names = [float(text.get("y", 0)) for text in elements["legend_1"].iter() if text.get("x")]
        assert len(names) > 2
        assert min(names) > bottom


def test_the_best_of_a_column_is_named_in_words(page: ET.Element) -> None:
    overview = next(element for element in page.iter("section") if element.get("id") == "overview")
    rows = rows_of(overview)
    for column in (1, 2):
        best = max(rows, key=lambda row: float(row[column].get("data-value") or 0))
        assert [row for row in rows if "best" in text_of(row[column])] == [best]


def test_of_few_responses_no_best_is_marked(tmp_path: Path) -> None:
    """Nor is it of a part: 16 responses of a set of 80."""
    large = labelled("large", 80, 3, {"nli": 1.4, "q2": 1.0})
    counted = {
        name: msgspec.structs.replace(metric, part_examples={"system=dodeca": 64, "system=memnet": 16})
        for name, metric in large.metrics.items()
    }
    write_report(
        of_sets(msgspec.structs.replace(large, metrics=counted), labelled("small", 29, 4, SHARPNESS)), tmp_path
    )
    tree = Tree((tmp_path / "report.html").read_text(encoding="utf-8")).root
    first, second = of_class(tree, "set", "section")
    assert list(of_class(first, "best"))
    assert not list(of_class(second, "best"))
    assert "Each column’s best has a" in text_of(first)
    assert "Of fewer than 30 responses no best is marked" in text_of(second)
    parts = next(table for table in first.iter("table") if text_of(table[0]).startswith("ROC-AUC by part"))
    starred = {
        head
        for row in rows_of(parts)
        for head, cell in zip(heads_of(parts), row, strict=True)
        if "best" in text_of(cell)
    }
    assert starred == {"dodeca"}


@pytest.mark.parametrize(
    ("best", "said"),
    [
        (Estimate(0.95, 0.8, 0.99), "nli alone has 0.950; both scored the same responses, so that"),
        (Estimate(0.95, 0.93, 0.97), "nli alone does better: 0.950"),
    ],
)
def test_a_better_metric_is_named_as_far_as_the_intervals_tell(tmp_path: Path, best: Estimate, said: str) -> None:
    made = labelled("one", 80, 3, {"verdict": 1.4, "nli": 1.4})
    areas = {"verdict": Estimate(0.9, 0.85, 0.92), "nli": best}
    metrics = {name: msgspec.structs.replace(made.metrics[name], roc_auc=area) for name, area in areas.items()}
    write_report(of_sets(msgspec.structs.replace(made, metrics=metrics)), tmp_path)
    assert said in " ".join(text_of(Tree((tmp_path / "report.html").read_text(encoding="utf-8")).root).split())


@pytest.mark.parametrize(
    ("called", "said", "unsaid"),
    [
        ({"unknown": 40}, "No verdict: it needs metrics that were not computed", "The labels under"),
        ({"consistent": 30, "unknown": 10}, "consistent ones 0 are called inconsistent, 10 unknown.", "No verdict"),
    ],
)
def test_unknown_labels_are_not_taken_for_right_ones(
    tmp_path: Path, called: dict[str, int], said: str, unsaid: str
) -> None:
    figures = VerdictFigures("balanced", called, called={"consistent": called, "inconsistent": called})
    write_report(of_sets(msgspec.structs.replace(labelled("one", 80, 3, {"nli": 1.4}), verdicts=(figures,))), tmp_path)
    page = " ".join(text_of(Tree((tmp_path / "report.html").read_text(encoding="utf-8")).root).split())
    assert said in page
    assert unsaid not in page


def test_every_dot_has_its_name(page: ET.Element, made: Results) -> None:
    scale = next(of_class(page, "scale"))
    ranked = sorted(made.sets[0].metrics.values(), key=lambda metric: -(metric.roc_auc.value if metric.roc_auc else 0))
    assert [text_of(name) for name in scale.iter("code")] == [metric.metric for metric in ranked]
    assert len(list(of_class(scale, "dot"))) == len(ranked)
    (lead,) = of_class(scale, "lead")
    assert list(scale)[list(scale).index(lead) - 1].text == made.sets[0].leading


def test_unverifiable_responses_are_named(tmp_path: Path) -> None:
    made = labelled("one", 80, 3, {"nli": 1.4})
    labels = made.labels | {"unverifiable": 3, "none": 9}
    write_report(of_sets(msgspec.structs.replace(made, labels=labels)), tmp_path)
    text = " ".join(text_of(Tree((tmp_path / "report.html").read_text(encoding="utf-8")).root).split())
    assert "3 unverifiable, which are in no figure of agreement, 9 without such a label" in text


def test_parts_that_overlap_are_explained(tmp_path: Path) -> None:
    made = labelled("one", 80, 3, {"nli": 1.4})
    areas = {f"sentences={kind}": Estimate(0.9, 0.8, 0.95) for kind in ("question", "with a name")}
    nli = msgspec.structs.replace(made.metrics["nli"], by_source=areas, part_examples=dict.fromkeys(areas, 60))
    write_report(of_sets(msgspec.structs.replace(made, metrics={"nli": nli})), tmp_path)
    text = text_of(Tree((tmp_path / "report.html").read_text(encoding="utf-8")).root)
    assert "several kinds of sentences is in the part of each" in text


def test_the_errors_name_their_threshold(page: ET.Element, tmp_path: Path) -> None:
    text = " ".join(text_of(next(of_class(page, "errors"))).split())
    assert "All responses on the wrong side of its threshold" in text
    assert "(consistent from 0.410 upwards, profile balanced)" in text
    write_report(one_set(build_errors() * 7), tmp_path)  # a run keeps forty
    tree = Tree((tmp_path / "report.html").read_text(encoding="utf-8")).root
    assert "The 40 worst responses on the wrong side" in text_of(next(of_class(tree, "errors")))


def test_a_metric_without_an_error_says_so(tmp_path: Path) -> None:
    write_report(one_set((), error_threshold=ErrorThreshold(0.5, "0.5")), tmp_path)
    tree = Tree((tmp_path / "report.html").read_text(encoding="utf-8")).root
    text = " ".join(text_of(tree).split())
    assert (
        "every labelled response that it scored is on the right side of its threshold (consistent above 0.500)" in text
    )
    assert not list(of_class(tree, "error"))


def test_every_error_is_there_with_all_it_has(page: ET.Element, made: Results) -> None:
    cards = list(of_class(next(of_class(page, "set", "section")), "error"))
    assert len(cards) == len(made.sets[0].errors)
    for card, error in zip(cards, made.sets[0].errors, strict=True):
        text = text_of(card)
        assert text_of(next(of_class(card, "response")), "sup") == error.response
        assert ("False positive" in text, "False negative" in text) == (error.label == 1, error.label == 0)
        for part in (*error.knowledge, *error.history, error.example, error.system, error.source):
            assert part in text
        for question in error.questions:
            assert all(part in text for part in question)
        assert [text_of(key).strip() for key in next(of_class(card, "values")).iter("dt")] == list(error.values)


def test_spans_are_marked_at_their_characters(page: ET.Element, made: Results) -> None:
    cards = list(of_class(next(of_class(page, "set", "section")), "error"))
    overlapping = 0
    for card, error in zip(cards, made.sets[0].errors, strict=True):
        response, at = next(of_class(card, "response")), 0
        covered: dict[int, set[int]] = {}
        at += len(response.text or "")
        for child in response:
            if child.tag == "mark":
                for number in (child.get("data-spans") or "").split():
                    covered.setdefault(int(number), set()).update(range(at, at + len(text_of(child))))
                at += len(text_of(child))
            at += len(child.tail or "")
        expected = [set(range(span.start, span.end)) for span in error.unsupported]
        assert sorted(map(sorted, covered.values())) == sorted(map(sorted, expected))
        listed = [text_of(next(item.iter("q"))) for item in next(of_class(card, "spans"), ())]
        assert listed == [span.text for span in sort_spans(error.response, error.unsupported)]
        overlapping += any("many" in mark.get("class", "") for mark in response.iter("mark"))
    assert overlapping == 1


def test_nothing_refers_outside(directory: Path) -> None:
    text = (directory / "report.html").read_text(encoding="utf-8")
    root = Tree(text).root
    for element in root.iter():
        assert element.tag not in ("iframe", "object", "embed", "base", "form", "img", "image")
        for key, value in element.attrib.items():
            without_digest = re.sub("'sha256-[^']*'", "", value)  # which may have two slashes by chance
            assert "//" not in without_digest, (element.tag, key, value)
            assert not key.startswith("on"), (element.tag, key)
            if key in ("href", "src", "xlink:href", "action", "data"):
                assert value.startswith(("#", "data:,")), value
    for element in (*root.iter("style"), *root.iter("script")):
        assert not re.search(r"//|@import|url\((?!#)", element.text or "")
    assert "http" not in re.sub(r"http-equiv", "", text)


def test_ids_are_unique_and_meet_their_references(page: ET.Element) -> None:
    ids = [element.get("id", "") for element in page.iter() if "id" in element.attrib]
    assert len(set(ids)) == len(ids)
    for element in page.iter():
        wanted = [*re.findall(r"^#(.+)", element.get("href", "")), *element.get("aria-labelledby", "").split()]
        wanted += re.findall(r"url\(#([^)]+)\)", " ".join(element.attrib.values()))
        assert all(break_name in ids for break_name in wanted if break_name), (element.tag, wanted)


def test_plots_are_files_too(directory: Path, page: ET.Element) -> None:
    files = {path.name for path in (directory / "plots").iterdir()}
    stems = {Path(file).stem for file in files}
    assert files == {f"{stem}.{kind}" for stem in stems for kind in ("svg", "png")}
    for kind in ("roc", "precision-recall", "reliability", "values-verdict", "values-nli"):
        assert {f"q2-wow-600-{kind}", f"begin-wow-test-{kind}"} <= stems
    assert len(stems) == len(list(page.iter("svg")))
    for path in (directory / "plots").glob("*.svg"):
        ET.parse(path)
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in (directory / "plots").glob("*.png"))


def test_inline_plots_take_the_colours_of_the_page(page: ET.Element) -> None:
    for svg in page.iter("svg"):
        assert svg.get("aria-label")
        colours = {colour for element in svg.iter() for colour in re.findall(r"#[0-9a-f]{6}", element.get("style", ""))}
        assert not colours
        assert any("var(--" in element.get("style", "") for element in svg.iter())


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    small = one_set(build_errors()[:1])
    written = [write_report(small, tmp_path / folder).parent for folder in "ab"]
    files = [{path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")} for folder in written]
    assert files[0] == files[1]
    assert len(files[0]) > 5


def test_untrusted_text_does_no_harm(tmp_path: Path) -> None:
    span = UnsupportedSpan(ODD[5:11], 5, 11, "mismatch", TEXT, "nli", ("nli", TEXT))
    error = ErrorCase(
        TEXT, 0, "consistent", 0.9, 0.8, ODD, (TEXT, ODD), (ODD,), TEXT, ODD, (span,), {TEXT: 0.5}, ((TEXT, ODD, ""),)
    )
    figures = labelled("x", 60, 1, {TEXT: 1.0, "$\\frac{" + ODD: 0.5})
    parts = {ODD: Estimate(0.6, 0.5, 0.7), f"system={TEXT}": Estimate(0.4, 0.3, 0.5)}
    made = msgspec.structs.replace(
        figures,
        name="../../" + TEXT + ODD,
        notes=(TEXT, ODD),
        leading=TEXT,
        errors=(error,),
        metrics={key: msgspec.structs.replace(metric, by_source=parts) for key, metric in figures.metrics.items()},
    )
    page = write_report(msgspec.structs.replace(of_sets(made), signature=TEXT + ODD, when=ODD), tmp_path / "out")
    raw = page.read_bytes()
    root = Tree(raw.decode()).root
    assert b"\x00" not in raw
    assert b"\x1b" not in raw
    assert "\u202e" not in raw.decode()
    assert len(list(root.iter("script"))) == 1
    assert not list(root.iter("img"))
    assert "{{ 7 * 7 }}" in text_of(root)
    response = next(of_class(root, "response"))
    assert text_of(response, "sup") == (
        ODD.replace("\ud83d", "U+D83D")
        .replace("\x00", "U+0000")
        .replace("\x1b", "U+001B")
        .replace("\u202e", "U+202E")
        .replace("\u200b", "U+200B")
    )
    assert text_of(next(response.iter("mark"))) == "U+D83D half"
    assert TEXT in text_of(next(of_class(root, "knowledge")))
    assert {path.parent for path in tmp_path.rglob("*.svg")} == {tmp_path / "out" / "plots"}


def test_results_without_curves_labels_or_metrics(tmp_path: Path) -> None:
    bare = MetricFigures("q2", 0, {"failed": 3}, roc_auc=Estimate(float("nan"), float("nan"), float("nan")))
    sets = (
        SetFigures("nothing", 3, {}, {}),
        SetFigures("Nothing", 3, {"none": 3}, {"q2": bare}, leading="q2"),
    )
    page = write_report(of_sets(*sets), tmp_path)
    root = Tree(page.read_text(encoding="utf-8")).root
    first, second = of_class(root, "set", "section")
    assert (first.get("id"), second.get("id")) == ("set-nothing", "set-nothing-2")
    assert "failed" in text_of(second)
    assert not list(root.iter("svg"))
    assert "nan" not in text_of(root).lower().replace("unanimous", "")


def test_many_parts_are_rows_and_a_list(tmp_path: Path) -> None:
    many = [f"part {number}" for number in range(12)]
    errors = tuple(msgspec.structs.replace(build_errors()[0], source=part) for part in many)
    figures = labelled("one", 80, 3, {"nli": 1.4})
    by_source = {part: Estimate(0.6, 0.5, 0.7) for part in many}
    metrics = {"nli": msgspec.structs.replace(figures.metrics["nli"], by_source=by_source)}
    root = Tree(write_report(one_set(errors, metrics=metrics), tmp_path).read_text(encoding="utf-8")).root
    options = [text_of(option) for option in root.iter("option")]
    assert options == ["Every source", *many]
    table = next(table for table in root.iter("table") if text_of(table[0]).startswith("ROC-AUC by part"))
    assert {row[0].get("data-value") for row in rows_of(table)} == {f"source {name}" for name in many}


def test_no_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequest, match="no set"):
        write_report(of_sets(), tmp_path)


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidRequest, match=r"file/run: .* Give a directory"):
        write_report(one_set(()), tmp_path / "file" / "run")


@given(st.text(max_size=12), st.lists(st.tuples(st.integers(-3, 15), st.integers(-3, 15)), max_size=5))
def test_pieces_cover_what_spans_cover(response: str, ranges: list[tuple[int, int]]) -> None:
    spans = [UnsupportedSpan("", start, end, "detected") for start, end in ranges]
    cut = split_into_pieces(response, spans)
    assert "".join(piece.text for piece in cut) == response
    order = sort_spans(response, spans)
    said = [piece.covering for piece in cut for _ in piece.text]
    assert said == [
        tuple(number for number, span in enumerate(order, start=1) if span.start <= index < span.end)
        for index in range(len(response))
    ]
    assert sorted(number for piece in cut for number in piece.ending) == list(range(1, len(order) + 1))


@given(st.text(alphabet=st.characters()))
def test_any_text_can_be_shown(text: str) -> None:
    for made in (escape_text(text), break_name(text)):
        root = Tree(f"<p>{made}</p>").root
        assert {element.tag for element in root.iter()} <= {"p", "span", "wbr"}
        made.encode()
    replace_unshowable(text).encode()
    assert len(replace_unshowable(text)) == len(text)


def test_the_page_says_whether_responses_are_like_those_of_the_calibration(page: ET.Element) -> None:
    (table,) = [table for table in page.iter("table") if "Stability index" in " ".join(heads_of(table))][:1]
    assert heads_of(table)[-1].strip("↑↓ ") == "Band"
    assert [(text_of(row[0]).strip(), text_of(row[-1]).strip()) for row in rows_of(table)] == [
        ("probability", "alike"),
        ("length in words", "shifted"),
        ("word overlap with the knowledge", "different"),
    ]
