"""The door for builders of products on the engine: what the packages above use besides ``groundwire.engine``.

It has what starts and drives requests, and what reads texts. Own metrics, and what reads their results, use
``groundwire.metrics``. Records are in ``groundwire.engine.schema``, whose modules ``results``, ``explanations`` and
``options`` the reference describes. Three narrow doors have a few users each, which an import contract names:
``groundwire.engine.values`` (numbers, dates, names of texts: corrections, twins, turns), ``groundwire.engine.verdict``
(features, fusions and thresholds: evaluation, streams, corrections), and ``groundwire.engine.metrics.critic`` (the
critic of Neural Path Hunter). Names of these doors may change between minor versions; everything else is private.
"""

from __future__ import annotations

from .api import Knowledge, Metrics, Triples
from .core.core import Core, count_tokens, fold_outcomes
from .core.many import Item, to_request
from .core.pending import NeedsAsyncio, Procedure
from .core.plan import make_plan
from .core.signature import signature
from .metrics.overlap import split_words
from .scheduling.admission import estimate_tokens
from .scheduling.jobs import Failure, Job, JobResult
from .schema.validation import (
    list_passages,
    list_turns,
    make_history,
    make_passages,
    make_request,
    make_response,
    make_triples,
)
from .text.answers import answers_turn
from .text.normalization import FUNCTION_WORDS, UNSHOWABLE, fold_word, shown
from .text.retrieval import PassageSentence, count_shared_in, rank_by_overlap, read_passages
from .text.sentences import SentenceReader, find_code
from .text.words import WORD, Range, find_overlaps, within, words

__all__ = [
    "FUNCTION_WORDS",
    "UNSHOWABLE",
    "WORD",
    "Core",
    "Failure",
    "Item",
    "Job",
    "JobResult",
    "Knowledge",
    "Metrics",
    "NeedsAsyncio",
    "PassageSentence",
    "Procedure",
    "Range",
    "SentenceReader",
    "Triples",
    "answers_turn",
    "count_shared_in",
    "count_tokens",
    "estimate_tokens",
    "find_code",
    "find_overlaps",
    "fold_outcomes",
    "fold_word",
    "list_passages",
    "list_turns",
    "make_history",
    "make_passages",
    "make_plan",
    "make_request",
    "make_response",
    "make_triples",
    "rank_by_overlap",
    "read_passages",
    "shown",
    "signature",
    "split_words",
    "to_request",
    "within",
    "words",
]
