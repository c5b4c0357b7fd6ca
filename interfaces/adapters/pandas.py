"""Scores for the rows of a data frame.

Needs the extra: ``pip install 'groundwire[pandas]'``.

>>> import groundwire.adapters.pandas                                                       # doctest: +SKIP
>>> scores = frame.groundwire.score(response="answer", knowledge="document")                    # doctest: +SKIP
>>> frame.join(scores, rsuffix="_groundwire")  # where the frame has a "label" of its own       # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from groundwire.engine import Engine, InvalidRequest, Options, default_engine

from .checking import read_score
from .extras import needs

with needs("pandas"):
    import pandas

__all__ = ["GroundwireAccessor"]


@pandas.api.extensions.register_dataframe_accessor("groundwire")
class GroundwireAccessor:
    """``frame.groundwire``, in every program that imports this module."""

    def __init__(self, frame: pandas.DataFrame) -> None:
        """Use ``frame.groundwire``.

        Args:
            frame: The frame whose rows are scored.
        """
        self._frame = frame

    def score(
        self,
        response: str = "response",
        knowledge: str = "knowledge",
        history: str | None = None,
        *,
        engine: Engine | None = None,
        metrics: Sequence[str] | str | None = None,
        options: Options | None = None,
    ) -> pandas.DataFrame:
        """Score every row.

        Args:
            response: Column of the responses, texts.
            knowledge: Column of the knowledge, a text or a list of passages.
            history: Column of the history, lists of utterances; None for none.
            engine: The engine; None is ``default_engine``.
            metrics: As for ``Engine.score``.
            options: As for ``Engine.score``.

        Returns:
            A frame with the same index: ``label``, ``passed`` (boolean), ``probability`` and the ``threshold`` that it
            is compared with (Float64), ``reason``, the list ``spans``, ``status`` and ``signature`` of the score, and
            one Float64 column for each metric, with NA wherever a number is missing.

        Raises:
            InvalidRequest: The frame does not have a column.
        """
        columns = {"response": response, "knowledge": knowledge} | ({"history": history} if history else {})
        if absent := [name for name in columns.values() if name not in self._frame.columns]:
            raise InvalidRequest(f"The frame has no column {absent[0]!r}; it has {list(self._frame.columns)}.")
        engine = engine or default_engine()

        def read_rows() -> Iterator[dict[str, Any]]:
            for cells in zip(*(self._frame[name] for name in columns.values()), strict=True):
                yield dict(zip(columns, cells, strict=True))

        names = engine.plan(metrics).names
        rows = []
        for score in engine.score_many(read_rows(), metrics=metrics, options=options):
            checked = read_score(score)
            values = {name: result.value for name, result in score.metrics.items()}
            about = {"threshold": checked.threshold, "status": score.status, "signature": score.signature}
            rows.append(checked.to_dict() | about | {name: values.get(name) for name in names})
        kinds = {
            "label": "string",
            "passed": "boolean",
            "probability": "Float64",
            "threshold": "Float64",
            "reason": "string",
            "spans": "object",
            "status": "string",
            "signature": "string",
        }
        kinds |= dict.fromkeys(names, "Float64")
        return pandas.DataFrame(rows, index=self._frame.index, columns=list(kinds)).astype(kinds)
