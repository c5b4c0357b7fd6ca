"""The door for builders of products on the engine: what the packages above use besides ``groundwire.engine``.

Own metrics, and what reads them, use ``groundwire.metrics``; records are in ``groundwire.engine.schema.results``,
``.explanations`` and ``.options``, which the reference describes. Names here may change between minor versions.
Everything else in ``groundwire.engine`` is private: an import contract keeps the packages above from it.
"""

from __future__ import annotations

from .api import Knowledge, Metrics, Triples
from .core.core import Core, count_tokens, fold_outcomes
from .core.many import Item, to_request
from .core.pending import NeedsAsyncio, Procedure
from .core.plan import make_plan
from .core.signature import signature
from .metrics import bind_results, check_names
from .metrics.base import HasRange, within
from .metrics.claims import VERIFIABLE
from .metrics.critic import ROLE as CRITIC_ROLE
from .metrics.critic import TURNS as CRITIC_TURNS
from .metrics.critic import critic_call
from .metrics.detector import PREFIX as DETECTOR_PREFIX
from .metrics.detector import detector, is_detector
from .metrics.mentions import find_all_mentions, find_mentions, max_probabilities
from .metrics.overlap import split_words
from .scheduling.admission import estimate_tokens
from .scheduling.jobs import Failure, Job, JobResult
from .schema.base import MAX_DEADLINE_MS, Count, Milliseconds, Probability, Record, check_record, digest_fields
from .schema.validation import (
    list_passages,
    make_history,
    make_passages,
    make_request,
    make_response,
    make_triples,
)
from .text.normalization import (
    FUNCTION_WORDS,
    UNSHOWABLE,
    fold_word,
    shown,
)
from .text.retrieval import PassageSentence, count_shared_in, rank_by_overlap, read_passages
from .text.sentences import SentenceReader, find_code
from .text.words import WORD, find_overlaps, flag_tokens, words
from .values.comparing import compare
from .values.dates import MONTHS, NAMED_DAYS
from .values.knowledge import find_values
from .values.names import split_by_case
from .values.numbers import stem
from .values.support import check_values, find_computed
from .values.tokens import NEGATIONS, Clock, Date, Measure, Name, Value, tokenize
from .values.units import UNITS
from .verdict.adjustments import REFUTING, find_refutation, is_contradicted
from .verdict.decision import decide_again
from .verdict.fusion import (
    HALF,
    SentenceWeights,
    are_consistent,
    choose_fusion,
    features,
    features_of_part,
    find_feature,
    find_verifiability,
    is_apart,
    is_probability,
    list_unread,
    logit,
    name_metric,
    normalized,
    rates_verifiability,
    reads_in_response,
)
from .verdict.marks import LIGHT
from .verdict.operating_point import OperatingPoint, find_operating_point, find_threshold, smallest_level
from .verdict.score import rank_verdict
from .verdict.spans import VALUE_TYPES, TypedRange

__all__ = [
    "CRITIC_ROLE",
    "CRITIC_TURNS",
    "DETECTOR_PREFIX",
    "FUNCTION_WORDS",
    "HALF",
    "LIGHT",
    "MAX_DEADLINE_MS",
    "MONTHS",
    "NAMED_DAYS",
    "NEGATIONS",
    "REFUTING",
    "UNITS",
    "UNSHOWABLE",
    "VALUE_TYPES",
    "VERIFIABLE",
    "WORD",
    "Clock",
    "Core",
    "Count",
    "Date",
    "Failure",
    "HasRange",
    "Item",
    "Job",
    "JobResult",
    "Knowledge",
    "Measure",
    "Metrics",
    "Milliseconds",
    "Name",
    "NeedsAsyncio",
    "OperatingPoint",
    "PassageSentence",
    "Probability",
    "Procedure",
    "Record",
    "SentenceReader",
    "SentenceWeights",
    "Triples",
    "TypedRange",
    "Value",
    "are_consistent",
    "bind_results",
    "check_names",
    "check_record",
    "check_values",
    "choose_fusion",
    "compare",
    "count_shared_in",
    "count_tokens",
    "critic_call",
    "decide_again",
    "detector",
    "digest_fields",
    "estimate_tokens",
    "features",
    "features_of_part",
    "find_all_mentions",
    "find_code",
    "find_computed",
    "find_feature",
    "find_mentions",
    "find_operating_point",
    "find_overlaps",
    "find_refutation",
    "find_threshold",
    "find_values",
    "find_verifiability",
    "flag_tokens",
    "fold_outcomes",
    "fold_word",
    "is_apart",
    "is_contradicted",
    "is_detector",
    "is_probability",
    "list_passages",
    "list_unread",
    "logit",
    "make_history",
    "make_passages",
    "make_plan",
    "make_request",
    "make_response",
    "make_triples",
    "max_probabilities",
    "name_metric",
    "normalized",
    "rank_by_overlap",
    "rank_verdict",
    "rates_verifiability",
    "read_passages",
    "reads_in_response",
    "shown",
    "signature",
    "smallest_level",
    "split_by_case",
    "split_words",
    "stem",
    "to_request",
    "tokenize",
    "within",
    "words",
]
