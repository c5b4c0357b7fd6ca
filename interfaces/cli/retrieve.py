"""``groundwire retrieve``: finds knowledge for responses in a corpus."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args

import msgspec
import typer

from groundwire.cli import display, options
from groundwire.cli.output import JsonStream
from groundwire.files.reading import Line
from groundwire.files.results_file import Entry
from groundwire.runtime.errors import GroundwireError, InvalidRequest
from groundwire.runtime.local import LocalRuntime

from . import evaluation as common

if TYPE_CHECKING:
    from groundwire.evaluate.retrieval import Index

Method = Literal["words", "meaning"]
Query = Literal["response", "history", "both"]


class RetrievedLine(msgspec.Struct, frozen=True):
    """A line of the input with the knowledge that was found for it."""

    id: Any
    response: str
    knowledge: list[str]
    history: list[str]
    retrieved: list[float]
    """How near each passage is."""


def retrieve(
    responses: Annotated[
        Path,
        typer.Argument(help="Responses, as for `groundwire score`, with or without knowledge; - is standard input."),
    ],
    corpus: Annotated[
        Path, typer.Option(help="Lines with passages as `knowledge` (or context, doc): all of them are searched.")
    ],
    out: Annotated[Path | None, typer.Option(help="Write the lines to this file; standard output if left out.")] = None,
    method: Annotated[str, typer.Option(help="words: BM25; meaning: the bundle's embedder.")] = "words",
    query: Annotated[str, typer.Option(help="What is searched for: the response, the history, or both.")] = "response",
    top: Annotated[int, typer.Option(help="Passages for each response.", min=1)] = 3,
    bundle: options.BundleOption = "compact",
    device: options.DeviceOption = "auto",
    threads: options.ThreadsOption = None,
    columns: options.ColumnsOption = None,
) -> None:
    """Find knowledge for responses that have none: the passages of a corpus that are nearest to each.

    Writes lines that `groundwire score` reads, with the passages as knowledge, nearest first. `--method words` needs
    `pip install 'groundwire[retrieval]'`. That a passage is near does not say that the response rests on it: score it.

        groundwire retrieve answers.jsonl --corpus articles.jsonl --out with_knowledge.jsonl
        groundwire retrieve answers.jsonl --corpus articles.jsonl --method meaning --top 1 | groundwire score -
    """
    common.require_extra()
    for option, value, allowed in (("--method", method, get_args(Method)), ("--query", query, get_args(Query))):
        if value not in allowed:
            raise typer.BadParameter(f"{value} is unknown; use {', '.join(allowed)}.", param_hint=option)
    passages = _read_corpus(corpus, columns)
    problems = 0
    with contextlib.ExitStack() as stack:
        index = _build_index(stack, method, passages, bundle, device, threads)
        output = JsonStream[Entry](out)
        stack.callback(output.close)
        lines = stack.enter_context(options.open_lines(responses, columns, frozenset({"response"})))
        for line in lines:
            try:
                output.append(_find_knowledge(line, index, passages, query, top))
            except GroundwireError as error:
                problems += 1
                display.print_line_error(display.error_console(), line.number, str(error))
    if problems:
        raise typer.Exit(display.EXIT_UNSCORED)


def _read_corpus(path: Path, columns: str | None) -> list[str]:
    """The passages, each once."""
    passages: dict[str, None] = {}
    names = options.parse_column_names(columns)
    chosen = ",".join(f"{field}={name}" for field, name in names.items() if field == "knowledge") or None
    with options.open_lines(path, chosen, frozenset({"knowledge"})) as lines:
        for line in lines:
            given = line.row.get("knowledge") if line.row is not None else None
            several = [given] if isinstance(given, str) else given
            if not isinstance(several, list) or not all(isinstance(passage, str) for passage in several):
                message = line.problem or f"knowledge is {given!r:.80}; give a text or a list of texts."
                display.print_line_error(display.error_console(), line.number, message)
                continue
            passages |= dict.fromkeys(passage for passage in several if passage.strip())
    if not passages:
        raise InvalidRequest(f"{path} has no passage to search.")
    return list(passages)


def _build_index(
    stack: contextlib.ExitStack, method: str, passages: list[str], bundle: str, device: str, threads: int | None
) -> Index:
    from groundwire.evaluate.retrieval import MeaningIndex, WordIndex, make_embedder

    if method == "words":
        return WordIndex(passages)
    with options.refuse_absent_bundles(bundle, None):
        runtime = LocalRuntime.load(bundle, options.parse_device(device), None, threads)
    stack.callback(runtime.close)
    return MeaningIndex(passages, make_embedder(runtime))


def _find_knowledge(line: Line, index: Index, passages: list[str], query: str, top: int) -> RetrievedLine:
    if line.row is None:
        raise InvalidRequest(line.problem)
    response, history = line.row.get("response"), line.row.get("history") or []
    if not isinstance(response, str) or not all(isinstance(turn, str) for turn in _iterate(history)):
        raise InvalidRequest("response is a text, and history a list of texts.")
    searched = {"response": [response], "history": history, "both": [*history, response]}[query]
    retrieved = index.search("\n".join(searched), top)
    if not retrieved:
        raise InvalidRequest("No passage of the corpus has a word of it; nothing is written for this line.")
    knowledge = [passages[passage.position] for passage in retrieved]
    return RetrievedLine(
        line.row.get("id"), response, knowledge, list(history), [passage.score for passage in retrieved]
    )


def _iterate(history: Any) -> Iterator[Any]:
    yield from history if isinstance(history, list | tuple) else [None]
