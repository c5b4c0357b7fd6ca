"""A process that only scores imports spaCy without torch, and everything else with it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from groundwire.runtime.interpreter import leave_torch_out
leave_torch_out()
import spacy
print("torch" in sys.modules)
import torch
print(torch.__file__)
"""


def test_spacy_finds_no_torch_and_others_do(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("")
    program = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    assert done.stdout.split() == ["False", str(tmp_path / "torch.py")]
