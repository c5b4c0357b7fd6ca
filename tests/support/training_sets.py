"""Training sets in miniature, in the formats of the real ones, and how tests write them."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DIALOGUES = [
    {
        "knowledge": "The guitar is an instrument in Ohio.",
        "history": ["Hi."],
        "response": "It is in Ohio.",
        "dialogue": "a",
    },
    {
        "knowledge": ["Pizza is from Naples.", "It was sold."],
        "history": "Food?",
        "response": "From Naples!",
        "label": 1,
    },
    {"knowledge": "Huskies pull sleds.", "history": [], "response": "They can swim.", "label": "inconsistent"},
    {"knowledge": "Huskies pull sleds.", "response": "They were bred.", "label": "consistent"},
    {"knowledge": "The ship sank.", "response": "It swam.", "label": 0},
]


def write_jsonl(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def finished(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).mkdir(parents=True)
        (root / name / ("config.cfg" if name == "spans" else "config.json")).write_text("{}")
    return root


PARAGRAPHS = {
    "Elvis_Presley": [
        "Elvis Presley was born in Tupelo in 1935. He moved to Memphis with his family in 1948. His first record was "
        "made at Sun Studio by Sam Phillips. The song became popular in the southern states of America.",
        "Presley acted in 31 films between 1956 and 1969. His best film was directed by Michael Curtiz in New Orleans. "
        "Critics praised the actor, but the audience liked the songs more.",
    ],
    "Amazon_River": [
        "The Amazon river flows through Brazil, Peru and Colombia. It carries more water than any other river on "
        "Earth. The mouth of the Amazon was discovered by Vicente Pinzon in 1500.",
        "Most of the Amazon basin is covered by forest. The forest is home to 390 billion trees. Iquitos is the "
        "largest city in the Peruvian part of the forest, and it cannot be reached by road.",
    ],
}


QUESTIONS = {
    ("Elvis_Presley", 0): [
        ("Where was Elvis Presley born?", "Tupelo"),
        ("When did he move to Memphis?", "1948"),
        ("Who was his first record made by?", "Sam Phillips"),
    ],
    ("Elvis_Presley", 1): [
        ("How many films did Presley act in?", "31"),
        ("Who directed his best film?", "Michael Curtiz"),
    ],
    ("Amazon_River", 0): [
        ("Which countries does the river flow through?", "Brazil, Peru and Colombia"),
        ("Who discovered the mouth of the Amazon?", "Vicente Pinzon"),
        ("In what year was the mouth of the Amazon discovered?", "1500"),
    ],
    ("Amazon_River", 1): [
        ("How many trees are there in the forest?", "390 billion"),
        ("What is the largest city in the Peruvian part?", "Iquitos"),
    ],
}


INFERENCE = [
    ("A man plays a guitar on a stage.", "A person is making music.", "entailment"),
    ("A man plays a guitar on a stage.", "The man is asleep.", "contradiction"),
    ("A man plays a guitar on a stage.", "The man is famous.", "neutral"),
]


TURNS = [
    "Hi, how are you? Do you like football?",
    "I love football! Did you know the NFL has tracking chips in the shoulder pads of its players?",
    "Wow, that is so cool. The first playoff game was played on an 80 yard field in 1932.",
    "I didn't know that. The Iowa locker room for visiting teams is painted pink.",
    "That's hilarious. Tom Brady was drafted by the Patriots in 2000, and he has won six titles.",
    "You should watch the next game. Have a good day!",
]


CONLLU = """\
# newdoc id = answers-1
# sent_id = answers-1-1
1\tI\t_\tPRON\tPRP\t_\t2\tnsubj\t_\t_
2\tlike\t_\tVERB\tVBP\t_\t0\troot\t_\t_
3\tmy\t_\tPRON\tPRP$\t_\t4\tnmod:poss\t_\t_
4\tbakery\t_\tNOUN\tNN\t_\t2\tobj\t_\tSpaceAfter=No
5\t.\t_\tPUNCT\t.\t_\t2\tpunct\t_\t_

"""


def write_gzipped(path: Path, rows: Iterable[Any]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


UNANSWERABLE = [
    {
        "id": "sq2u-1",
        "title": "Amazon_River",
        "context": PARAGRAPHS["Amazon_River"][0],
        "question": "Who discovered the mouth of the Nile?",
        "answers": [],
        "unanswerable": True,
        "plausible_answer": "Vicente Pinzon",
    },
    {
        "id": "sq2u-2",
        "title": "Amazon_River",
        "context": PARAGRAPHS["Amazon_River"][0],
        "question": "Does the Thames carry more water than the Rhine?",
        "answers": [],
        "unanswerable": True,
    },
]
