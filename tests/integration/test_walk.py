"""How many files one request enters: what somebody has to read who follows a score through the house."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MAX_FILES = 69
"""45 are wanted. 24 of 69 have one idea each of the rules about values, whose long files were divided; the number may
only fall."""
PROGRAM = """
import sys, threading
from pathlib import Path

root, entered, is_on = sys.argv[1] + "/", set(), False

def enter(frame, event, argument):
    if is_on and event == "call" and frame.f_code.co_filename.startswith(root):
        entered.add(frame.f_code.co_filename.removeprefix(root))

threading.setprofile(enter)
sys.setprofile(enter)
from groundwire.engine import Engine

with Engine.load("compact", device="cpu", threads=1) as engine:
    engine.score("Bees sing in the morning of 1936.", "Bees fly in the evening of 1935. They make honey.")
    is_on = True
    score = engine.score(
        "Each player begins with twelve pieces on a board of 100 squares.",
        "Chess is played on a board of 64 squares. Each player begins with sixteen pieces, among them eight pawns.",
    )
    is_on = False
assert score.status == "scored"
print(*sorted(path for path in entered if "/site-packages/" not in path), sep="\\n")
"""


def test_a_default_score_enters_few_files() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(ROOT)], capture_output=True, text=True, check=True)
    entered = done.stdout.split()
    assert len(entered) > 20
    assert len(entered) <= MAX_FILES, "\n".join(entered)
