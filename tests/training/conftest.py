"""Training sets in miniature, in the formats of the real ones, and a tiny backbone in place of MiniLM."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("groundwire.train", reason="needs the train extra", exc_type=ImportError)

import torch
from transformers import BertConfig, BertModel

from groundwire.train.common import backbone
from tests.support.models import word_pieces

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


def write(path: Path, rows: Iterable[Any]) -> None:
    with gzip.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture(scope="session")
def sets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of training sets."""
    root = tmp_path_factory.mktemp("sets")
    squad = [
        {
            "title": title,
            "paragraph": number,
            "context": text,
            "qas": [
                {"question": question, "answers": [answer], "answerable": True}
                for question, answer in QUESTIONS[title, number]
            ],
        }
        for title, texts in PARAGRAPHS.items()
        for number, text in enumerate(texts)
    ]
    pairs = [{"source": "x", "premise": p, "hypothesis": h, "label": label} for p, h, label in INFERENCE]
    for split in ("train", "dev"):
        write(root / f"squad1_{split}.jsonl.gz", squad)
        write(root / f"nli_{split}.jsonl.gz", pairs)
    held_out = {"id": "t_2", "split": "test_freq", "turns": ["The held out dialogue was recorded in 1999.", "Yes!"]}
    write(root / "topical_chat.jsonl.gz", [{"id": "t_1", "split": "valid_freq", "turns": TURNS}, held_out])
    write(root / "query_wellformedness_train.jsonl.gz", [{"question": "How many leagues in a mile ?", "rating": 0.6}])
    for name in ("ud_ewt_train", "gum"):
        with gzip.open(root / f"{name}.conllu.gz", "wt", encoding="utf-8") as file:
            file.write(CONLLU)
    return root


@pytest.fixture(scope="session")
def tiny_backbone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of MiniLM's kind with random weights: 4 layers of width 64, a vocabulary of some hundred word pieces."""
    folder = tmp_path_factory.mktemp("backbone")
    tokens = word_pieces()
    config = BertConfig(
        vocab_size=len(tokens),
        hidden_size=64,
        num_hidden_layers=4,
        num_attention_heads=4,
        # Large enough for a bundle to store these weights outside its graphs.
        intermediate_size=1536,
        max_position_embeddings=256,
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = BertModel(config)
        for parameter in model.parameters():
            # Norms and biases too, so that one that is left out or swapped is seen.
            parameter.data += 0.05 * torch.randn_like(parameter)
    model.save_pretrained(folder)
    tokens.save_pretrained(folder)
    return folder


@pytest.fixture
def small(tiny_backbone: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Recipes start from the tiny backbone instead of MiniLM."""
    monkeypatch.setattr(backbone, "PATH", tiny_backbone)
    return tiny_backbone
