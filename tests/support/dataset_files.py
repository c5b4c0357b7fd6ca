"""Files of labelled sets in the authors' layouts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def save(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def lines(*records: dict[str, Any]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def table(columns: Sequence[str], *rows: Sequence[str], ending: str = "\n") -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator=ending).writerows([columns, *rows])
    return text.getvalue()


Q2 = ("", "episode_idx", "round", "topic", "message")


CROSS = (*Q2, "dodeca_response", "memnet_response", "knowledge", "gold", "dodeca_label", "memnet_label")


BEGIN = "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label\n"


FACTUAL = (
    "conv_index",
    "model_type",
    "decoding",
    "context",
    "knowledge",
    "response",
    "Avg Factual Correctness",
    "Hallucination",
    "Verifiable",
)
