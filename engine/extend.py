"""The door for builders of products on the engine: what the packages above use besides ``groundwire.engine``.

Names here may change between minor versions. Everything else in ``groundwire.engine`` is private: an import contract
keeps the packages above from it.
"""

from __future__ import annotations

from .api import Knowledge, Metrics, Triples
from .core.core import FOLD, Core, add_timings, count_tokens, fold_outcomes, fold_results, make_unscored, results_of
from .core.many import RETRY_SECONDS, Item, to_request
from .core.pending import NeedsAsyncio, Procedure
from .core.plan import make_plan
from .core.signature import signature
from .metrics import GROUPS, METRICS, Metric, bind_results, check_names, find, register
from .metrics.base import Details, HasRange, MetricNumber, RoleInfos, WordEvidence, within, without_calls
from .metrics.claims import VERIFIABLE
from .metrics.critic import ROLE as CRITIC_ROLE
from .metrics.critic import TURNS as CRITIC_TURNS
from .metrics.critic import critic_call
from .metrics.detector import PREFIX as DETECTOR_PREFIX
from .metrics.detector import detector, is_detector
from .metrics.mentions import find_all_mentions, find_mentions, max_probabilities
from .metrics.overlap import split_words
from .metrics.requests import ReadRequest
from .scheduling.admission import estimate_tokens
from .scheduling.jobs import Failure, Job, JobResult, explain_defect
from .schema.base import MAX_DEADLINE_MS, Count, Milliseconds, Probability, Record, check_record
from .schema.explanations import (
    REASONS,
    Comparison,
    DetectorExplanation,
    FlaggedMention,
    FlaggedToken,
    PassageRange,
    Q2Explanation,
    StatedValue,
    ValuesExplanation,
)
from .schema.options import DetectorOptions, NliOptions, Q2Options
from .schema.results import Citation, Label, SentenceVerdict, Timings, check_fields
from .schema.steps import Steps
from .schema.validation import (
    digest_fields,
    digest_request,
    is_drawn,
    make_history,
    make_passages,
    make_request,
    make_response,
    make_triples,
)
from .text.normalization import (
    ARTICLES,
    FUNCTION_WORDS,
    UNSHOWABLE,
    NormalizedWord,
    has_joiner,
    is_possessive,
    join_parts,
    normalize_name,
    normalize_words,
    shown,
)
from .text.retrieval import PassageSentence, count_shared_in, rank_by_overlap, read_passages
from .text.sentences import Sentence, SentenceReader, sentences
from .text.wording import Replacement, replace_names
from .text.words import WORD, find_overlaps, flag_tokens, words
from .values.comparing import compare
from .values.dates import MONTHS
from .values.knowledge import find_values
from .values.names import split_by_case
from .values.numbers import stem
from .values.support import check_values
from .values.tokens import NEGATIONS, Clock, Date, Measure, Name, Value, tokenize
from .values.units import UNITS
from .verdict.adjustments import REFUTING, find_refutation, is_contradicted
from .verdict.decision import STOPPED, decide_again, decide_alone, decide_without_knowledge
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
from .verdict.score import list_citations, mark_spans, number_evidence
from .verdict.spans import VALUE_TYPES, TypedRange

__all__ = [
    "ARTICLES",
    "CRITIC_ROLE",
    "CRITIC_TURNS",
    "DETECTOR_PREFIX",
    "FOLD",
    "FUNCTION_WORDS",
    "GROUPS",
    "HALF",
    "LIGHT",
    "MAX_DEADLINE_MS",
    "METRICS",
    "MONTHS",
    "NEGATIONS",
    "REASONS",
    "REFUTING",
    "RETRY_SECONDS",
    "STOPPED",
    "UNITS",
    "UNSHOWABLE",
    "VALUE_TYPES",
    "VERIFIABLE",
    "WORD",
    "Citation",
    "Clock",
    "Comparison",
    "Core",
    "Count",
    "Date",
    "Details",
    "DetectorExplanation",
    "DetectorOptions",
    "Failure",
    "FlaggedMention",
    "FlaggedToken",
    "HasRange",
    "Item",
    "Job",
    "JobResult",
    "Knowledge",
    "Label",
    "Measure",
    "Metric",
    "MetricNumber",
    "Metrics",
    "Milliseconds",
    "Name",
    "NeedsAsyncio",
    "NliOptions",
    "NormalizedWord",
    "OperatingPoint",
    "PassageRange",
    "PassageSentence",
    "Probability",
    "Procedure",
    "Q2Explanation",
    "Q2Options",
    "ReadRequest",
    "Record",
    "Replacement",
    "RoleInfos",
    "Sentence",
    "SentenceReader",
    "SentenceVerdict",
    "SentenceWeights",
    "StatedValue",
    "Steps",
    "Timings",
    "Triples",
    "TypedRange",
    "Value",
    "ValuesExplanation",
    "WordEvidence",
    "add_timings",
    "are_consistent",
    "bind_results",
    "check_fields",
    "check_names",
    "check_record",
    "check_values",
    "choose_fusion",
    "compare",
    "count_shared_in",
    "count_tokens",
    "critic_call",
    "decide_again",
    "decide_alone",
    "decide_without_knowledge",
    "detector",
    "digest_fields",
    "digest_request",
    "estimate_tokens",
    "explain_defect",
    "features",
    "features_of_part",
    "find",
    "find_all_mentions",
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
    "fold_results",
    "has_joiner",
    "is_apart",
    "is_contradicted",
    "is_detector",
    "is_drawn",
    "is_possessive",
    "is_probability",
    "join_parts",
    "list_citations",
    "list_unread",
    "logit",
    "make_history",
    "make_passages",
    "make_plan",
    "make_request",
    "make_response",
    "make_triples",
    "make_unscored",
    "mark_spans",
    "max_probabilities",
    "name_metric",
    "normalize_name",
    "normalize_words",
    "normalized",
    "number_evidence",
    "rank_by_overlap",
    "rates_verifiability",
    "read_passages",
    "reads_in_response",
    "register",
    "replace_names",
    "results_of",
    "sentences",
    "shown",
    "signature",
    "smallest_level",
    "split_by_case",
    "split_words",
    "stem",
    "to_request",
    "tokenize",
    "within",
    "without_calls",
    "words",
]
