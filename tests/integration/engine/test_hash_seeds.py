"""A score is the same to the last bit whatever seed Python hashes strings with, how many requests are in flight, and
how many threads compute: sets have an order of their own in each process."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from groundwire.runtime.bundles.bundle import embedded

pytestmark = pytest.mark.skipif("compact" not in embedded(), reason="this checkout holds no trained bundle yet")

TOWER = (
    "The Eiffel Tower is a wrought-iron lattice tower on the Champ de Mars in Paris, France. It is named after the "
    "engineer Gustave Eiffel, whose company designed and built the tower from 1887 to 1889."
)
SHOP = (
    "Orders above 50 euros are delivered free of charge within three working days. Returns are accepted within 30 days "
    "of delivery, if the article is unused and in its original packaging. The shop in Utrecht opens at 9 on weekdays."
)
ITEMS = [
    ("The Eiffel Tower was built in 1899 by Gustave Eiffel in Paris, and it is 330 metres tall.", TOWER),
    (
        "Gustave Eiffel's company designed the wrought-iron tower, which was put up on the Champ de Mars in Paris.",
        TOWER,
    ),
    ("Between 1887 and 1889 the company of an engineer built a lattice tower in France. It is lovely!", TOWER),
    ("It was named after Alexandre Gustave, a French painter who never visited the Champ de Mars.", TOWER),
    ("Hi! You can return unused articles in their original packaging within 60 days of delivery.", SHOP),
    ("Our shop in Utrecht opens at 9 am on weekdays, and orders above 50 euros are delivered free.", SHOP),
    ("Delivery takes three working days and costs 5 euros. I have refunded your order already.", SHOP),
    ("The shop accepts returns of original articles, delivered free of charge, within 30 working days.", SHOP),
    ("- Free delivery: above 50 euros\n- Returns: within 30 days\n- Opens: 10 am on weekdays in Leiden", SHOP),
    ("Thanks! Unfortunately it is not known if the tower or the shop opens on Sunday.", f"{SHOP} {TOWER}"),
]
PROGRAM = f"""
import sys
from collections import deque
import msgspec
from groundwire.engine import Engine, Request
from groundwire.engine.schema.results import Timings
from groundwire.runtime.interpreter import leave_torch_out
leave_torch_out()
threads, in_flight = map(int, sys.argv[1:])
waiting, items = deque(), [Request(response, (knowledge,)) for response, knowledge in {ITEMS!r}] * 4
with Engine.load("compact", device="cpu", threads=threads) as engine:
    plan = engine.plan("all")
    while items or waiting:
        while items and len(waiting) < in_flight:
            waiting.append(engine.submit(items.pop(0), plan))
        score = msgspec.structs.replace(waiting.popleft().result(), timings=Timings(0.0, {{}}))
        sys.stdout.buffer.write(score.to_json().encode() + b"\\n")
"""
RUNS = ((0, 1, 1), (1, 2, 8), (2, 1, 32))
"""Seed, threads, and requests in flight of each process."""


def score(run: tuple[int, int, int]) -> list[bytes]:
    """The scores of all items, four times, in a process of their own."""
    seed, *arguments = run
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout.splitlines()


def test_scores_depend_on_neither_the_order_of_sets_nor_threads_nor_other_requests() -> None:
    with ThreadPoolExecutor(2) as pool:
        first, *others = pool.map(score, RUNS)
    assert len(first) == 4 * len(ITEMS)
    assert first == first[: len(ITEMS)] * 4
    for run, scores in zip(RUNS[1:], others, strict=True):
        changed = [index for index, pair in enumerate(zip(first, scores, strict=True)) if pair[0] != pair[1]]
        assert not changed, f"seed, threads, in flight {run}: the scores of items {changed} differ"
