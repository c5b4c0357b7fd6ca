"""Response and knowledge on the console: unsupported words in the one, and where the support of the other is."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, Group
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from groundwire.engine import Score
from groundwire.engine.extend import shown
from groundwire.engine.schema.explanations import PassageRange
from groundwire.engine.schema.results import number_evidence

from . import display

LABEL = "bold cyan"
CITED = "underline"


def print_texts(console: Console, response: str, knowledge: Sequence[str], score: Score) -> None:
    """Print the response and the passages; with citations beside each other, and the cited sentences numbered.

    A number follows a sentence of the response, and precedes the sentence of the knowledge that supports it.
    """
    numbers = number_evidence(score.citations)
    passages = [
        Panel(_mark_passage(passage, index, numbers), title="knowledge", title_align="left", border_style="dim")
        for index, passage in enumerate(knowledge)
    ]
    of_response = Panel(_mark_response(response, score, numbers), title="response", title_align="left")
    if not numbers:
        console.print(Group(of_response, *passages))
        return
    table = Table.grid(expand=True, padding=(0, 1))
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    table.add_row(of_response, Group(*passages))
    console.print(table)


def _mark_response(response: str, score: Score, numbers: dict[PassageRange, int]) -> Text:
    labels: dict[int, list[int]] = {}
    for citation in score.citations:
        labels.setdefault(citation.end, []).append(numbers[citation.evidence])
    marked, position = Text(), 0
    for end, of_sentence in sorted(labels.items()):
        marked.append_text(display.mark_unsupported(response, score, position, end))
        marked.append(" " + "".join(f"[{number}]" for number in sorted(of_sentence)), style=LABEL)
        position = end
    return marked.append_text(display.mark_unsupported(response, score, position))


def _mark_passage(passage: str, index: int, numbers: dict[PassageRange, int]) -> Text:
    marked, position = Text(), 0
    for evidence, number in numbers.items():
        if evidence.passage == index:
            marked.append(shown(passage[position : evidence.start]))
            marked.append(f"[{number}] ", style=LABEL)
            marked.append(shown(passage[evidence.start : evidence.end]), style=CITED)
            position = evidence.end
    return marked.append(shown(passage[position:]))
