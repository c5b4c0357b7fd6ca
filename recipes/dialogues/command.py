"""``groundwire convert``: writes a published set as lines that every other command reads."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from groundwire.cli import evaluation as common
from groundwire.cli.output import JsonStream
from groundwire.engine.schema.explanations import PassageRange
from groundwire.evaluate.datasets.plain import CharacterRange
from groundwire.files.results_file import Entry
from groundwire.runtime.errors import InvalidRequest

if TYPE_CHECKING:
    from groundwire.evaluate.datasets.examples import Example


class ConvertedLine(msgspec.Struct, frozen=True, omit_defaults=True):
    """A line as ``groundwire evaluate`` reads it (``datasets.plain``), without what an example does not have."""

    id: str
    response: str
    knowledge: tuple[str, ...]
    history: tuple[str, ...] = ()
    label: int | None = None
    grade: float | None = None
    verifiable: bool | None = None
    hallucination: bool | None = None
    unsupported: tuple[CharacterRange, ...] | None = None
    evidence: tuple[PassageRange, ...] | None = None
    system: str = ""
    context: str = ""
    source: str = ""


def convert(
    name: Annotated[str, typer.Argument(help="The set: wow, topical-chat, cmu-dog, multidoc2dial, or a labelled one.")],
    path: Annotated[Path, typer.Argument(help="Its file or folder, as the authors publish it.")],
    out: Annotated[Path | None, typer.Option(help="Write the lines to this file; standard output if left out.")] = None,
) -> None:
    """Write a published dialogue set as JSON Lines: every response with its knowledge and history.

    Wizard of Wikipedia, Topical-Chat, CMU-DoG and MultiDoc2Dial are conversations that point into knowledge. Written
    are the turns that rest on some, without labels, as people wrote them. The labelled sets that `groundwire evaluate`
    reads (faithdial, begin, q2, …) are written with their labels. A set is fetched from its authors, under their
    licence.

        groundwire convert topical-chat alexa/conversations/valid_freq.json --out valid.jsonl
        groundwire convert faithdial FaithDial/test.json | groundwire score -
    """
    common.require_extra()
    examples = _read(name, path)
    output = JsonStream[Entry](out)
    count = 0
    try:
        for example in examples:
            output.append(make_line(example))
            count += 1
    finally:
        output.close()
    if not count:
        raise InvalidRequest(f"{path} has no turn that rests on knowledge, so nothing was written.")
    if out is not None:
        typer.echo(f"{count:,} responses written to {out}")


def _read(name: str, path: Path) -> Iterable[Example]:
    from groundwire.evaluate.datasets import list_formats, read_dataset

    from . import DIALOGUES

    if name in DIALOGUES:
        return DIALOGUES[name].read(path)
    formats = list_formats()
    if name in formats:
        return read_dataset(path, name)
    entries = [f"  {key}: {dialogues.about}" for key, dialogues in DIALOGUES.items()]
    entries += [f"  {key}: {format_.about}" for key, format_ in formats.items()]
    listed = "\n".join(entries)
    raise InvalidRequest(f"Unknown set {name!r}. Sets are:\n{listed}")


def make_line(example: Example) -> ConvertedLine:
    """An example as a line of Groundwire's own format."""
    values = {
        name: value
        for name, value in msgspec.structs.asdict(example).items()
        if name in ConvertedLine.__struct_fields__
    }
    marked = example.unsupported
    values["unsupported"] = None if marked is None else tuple(CharacterRange(*part) for part in marked)
    return ConvertedLine(**values, hallucination=example.hallucinated)
