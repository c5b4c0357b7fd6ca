"""A score is the same to the last bit whatever seed Python hashes strings with: sets have an order of their own in each
process."""

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
import msgspec
from groundwire.engine import Engine
from groundwire.engine.schema.results import Timings
from groundwire.runtime.without_torch import leave_torch_out
leave_torch_out()
with Engine.load("compact", device="cpu", threads=1) as engine:
    for score in engine.score_many({ITEMS!r}, metrics="all"):
        sys.stdout.buffer.write(msgspec.structs.replace(score, timings=Timings(0.0, {{}})).to_json().encode() + b"\\n")
"""


def score(seed: int) -> list[bytes]:
    """The scores of all items in a process of their own."""
    environment = os.environ | {"PYTHONHASHSEED": str(seed)}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True, stdout=subprocess.PIPE)
    return done.stdout.splitlines()


def test_scores_do_not_depend_on_the_order_of_sets() -> None:
    with ThreadPoolExecutor(2) as pool:
        first, *others = pool.map(score, range(3))
    assert len(first) == len(ITEMS)
    for seed, scores in enumerate(others, 1):
        changed = [index for index, pair in enumerate(zip(first, scores, strict=True)) if pair[0] != pair[1]]
        assert not changed, f"seed {seed} changes the scores of items {changed}"
