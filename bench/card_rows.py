"""Writes labelled rows by kind of text, for the error card of the default: ``make card`` runs this first.

    python -m bench card_rows --out build/card-rows                    the hand-written rows of the repository
    python -m bench card_rows --out build/card-rows --data DATA/bench  and 100 rows of each public set
    python -m bench card_rows --out build/card-rows --sealed           and the sealed halves: for a release only

The calibration was fitted to the development halves of production pairs and twins, so the card leaves those out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

QUALITY = Path(__file__).with_name("quality")
VISITORS = {"support": "support answers", "operation": "operation of servers", "various": "various short answers"}
"""Kinds of ``production/visitors.jsonl``."""
OWN = {
    "values_pairs.jsonl": "values of policies and tariffs",
    "roles/roles.jsonl": "roles and relations",
    "public_reports.jsonl": "what users reported",
    "owners.jsonl": "values of another row or person",
}
PUBLIC = {
    "q2_wow": "chat about Wikipedia (Q²)",
    "begin_wow_test": "chat about Wikipedia (BEGIN)",
    "begin_cmu_dev": "chat about films (BEGIN)",
    "begin_tc_dev": "chat about news (BEGIN)",
    "factual_crowd_knn": "answers with search results",
    "fever_symmetric_test": "claims and evidence (FEVER)",
    "clasp_dnli_test": "inference between turns (DNLI)",
}
SAMPLE = 100
"""Rows of each public set."""


def read(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file of JSON Lines, which gzip may have compressed."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    yield from map(json.loads, text.decode().splitlines())


def convert(row: dict[str, Any], source: str) -> Iterator[dict[str, Any]]:
    """Yield a row, or both sides of a pair, as ``groundwire card`` reads them."""
    texts = {"knowledge": row["knowledge"], "history": row.get("history") or [], "source": source}
    if "right" in row:
        for side, label in (("right", 1), ("wrong", 0)):
            yield {"id": f"{row['id']}-{side}", "response": row[side], "label": label, **texts}
    else:
        label = row["expected"] if "expected" in row else row["label"]
        yield {"id": row["id"], "response": row["response"], "label": label, **texts}


def list_sets(data: Path | None, sealed: bool) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the rows of each set by its name."""
    visitors = read(QUALITY / "production" / "visitors.jsonl")
    yield "visitors", [row for item in visitors for row in convert(item, VISITORS[item["kind"]])]
    for name, source in OWN.items():
        yield Path(name).stem, [row for item in read(QUALITY / name) for row in convert(item, source)]
    for folder, source in (("production", "production pairs, sealed"), ("twins", "twins, sealed")) if sealed else ():
        items = read(QUALITY / folder / "sealed.jsonl.gz")
        yield f"{folder}_sealed", [row for item in items for row in convert(item, source)]
    for name, source in PUBLIC.items() if data else ():
        assert data is not None
        rows = [row for item in read(data / f"{name}.jsonl") for row in convert(item, source)]
        labelled = [row for row in rows if row["label"] in (0, 1)]
        yield name, random.Random(13).sample(labelled, min(SAMPLE, len(labelled)))


def main() -> None:
    """Write a file for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--sealed", action="store_true")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    for name, rows in list_sets(options.data, options.sealed):
        lines = (json.dumps(row, ensure_ascii=False) for row in rows)
        (options.out / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        print(f"{name}: {len(rows)} rows")


if __name__ == "__main__":
    main()
