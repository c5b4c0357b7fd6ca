"""Settings of a request, one frozen record per metric. Defaults follow the papers' authors' code."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal

import msgspec

from groundwire.runtime.arguments import OptionRecord
from groundwire.runtime.bundles.calibration import ProfileName
from groundwire.runtime.calls import AnswerRule, BeamSearch, Decoding

from .base import Count, Milliseconds, Probability, Record


class Q2Options(Record, OptionRecord, frozen=True):
    """How Q² asks and compares. Defaults: the setting of the paper's main tables, as in the authors' code."""

    decoding: Decoding = BeamSearch()
    """``BeamSearch()``, ``Greedy()`` or ``Sampling()``; the paper's table 9 compares beam search with greedy search."""
    questions: Literal["single", "all"] = "single"
    """``single``: the first valid question of each span, in beam order; ``all``: every valid one."""
    personal_filter: bool = True
    """Drop questions about the speakers ("what do you …", "… my …"). Off for personal dialogue (the DNLI setting)."""
    nli: bool = True
    """Compare unequal answers by inference; off is the ablation "Q² w/o NLI"."""
    fallback: bool = True
    """Without any valid question, classify (knowledge, response) end to end: 1, 0.5 or 0. Off:
    ``nothing_to_verify``."""
    rule: AnswerRule = "independent"
    """How the reader picks an answer; ``independent`` follows the authors' code, but a range that touches a special
    token is not an answer."""
    fold_accents: bool = True
    """Compare answers without their accents: "haṭha" equals "hatha". The tokenizer of the authors' QA model drops
    accents from what it reads, so that their answers have none."""
    spans: tuple[tuple[int, int], ...] | None = None
    """Character ranges of the response to ask about, instead of those the span finder gives."""
    questions_at_once: Count | None = None
    """``single`` only: questions asked per span and round of model calls. 1 does the least work, the number that
    ``decoding`` returns the fewest rounds; the score is the same. None: as the device suits, which is 1 on a CPU, and
    on a GPU all while few requests are in flight."""


class NliOptions(Record, OptionRecord, frozen=True):
    """How the response is classified end to end. Defaults: the paper's baseline."""

    direction: Literal["forward", "backward", "both"] = "forward"
    """``forward``: the knowledge is the premise, the response the hypothesis (Q², §5.1 and the code); ``backward`` the
    other way round (Q², §2); ``both``: the mean of the two values."""
    value: Literal["label", "probability"] = "label"
    """``label``: 1, 0.5 or 0 for entailment, neutral or contradiction; ``probability``: their expectation."""
    sentences: bool | None = None
    """Classify each sentence of the response too, to say which ones are not supported; the value is still the
    value of the whole response. None: unless the verdict reads the metric ``reader``, which reads the sentences."""


class DetectorOptions(Record, OptionRecord, frozen=True):
    """How detectors read a response."""

    unit: Literal["response", "sentence"] | None = None
    """What is classified at once; with sentences the worst one counts. None: as the bundle says (MiniCheck reads
    sentences, the papers' detectors whole responses)."""
    sentences: bool | None = None
    """Classify each sentence too, to say which ones are not supported, when the unit is the response. None: as in
    ``NliOptions``."""


class TokenClassifierOptions(Record, OptionRecord, frozen=True):
    """When a token of the response counts as unsupported."""

    threshold: Probability = 0.5
    """Probability, 0–1, from which a token is flagged."""


class CriticOptions(Record, OptionRecord, frozen=True):
    """When a token of the response counts as hallucinated."""

    threshold: Probability = 0.5
    """Probability, 0–1, of the labels for hallucinated tokens together, from which a token is flagged."""


class FeqaOptions(Record, OptionRecord, frozen=True):
    """How FeQA asks."""

    decoding: Decoding | None = None
    """The best question of each span is asked. None: as ``Q2Options.decoding``, so that both share their questions;
    the authors' code decodes with ``BeamSearch(num_beams=10, num_return_sequences=1)``."""
    rule: AnswerRule = "independent"
    """How the reader picks an answer."""


class LexicalOptions(Record, OptionRecord, frozen=True):
    """How the word-matching metrics compare words."""

    rouge_stemmer: bool = True
    """ROUGE-L: compare the stems of words of more than three letters (Porter). The PMI-Faith authors' code does; the
    rouge-score package does not unless asked."""
    meteor_synonyms: Literal["none", "wordnet"] = "none"
    """METEOR: ``none`` matches words and stems; ``wordnet`` synonyms too, as published, and needs nltk's WordNet data,
    which no package brings along."""


class BertScoreOptions(Record, OptionRecord, frozen=True):
    """How BERTScore weighs and rescales. Defaults: the Q² authors' code."""

    baseline: tuple[float, float, float] | Literal["role", "none"] = "role"
    """Precision, recall and F1 of unrelated sentences: what rescaling makes 0. ``role``: the values of the
    bundle's embedder, and no rescaling where it has none (the explanation says which), as ``rescale_with_baseline`` of
    bert-score; ``none``: no rescaling."""
    idf_documents: tuple[str, ...] = ()
    """Weigh every token by its inverse document frequency in these texts, the references of a test set for example;
    they are read as knowledge is. Empty: all tokens weigh the same."""
    lower_knowledge: bool = True
    """Lower-case the knowledge, and only that, as the papers' authors do."""


class CitationOptions(Record, OptionRecord, frozen=True):
    """How the support of a sentence is looked for."""

    candidates: Count = 2
    """Sentences of the knowledge that the inference model reads for each sentence of the response. The nearest by
    words and vectors are read, and no others are cited."""
    min_support: Probability = 0.5
    """Support from which a sentence of the knowledge is cited."""


class PmiOptions(Record, OptionRecord, frozen=True):
    """How PMI-Faith puts its texts to the language model. Defaults: the authors' code.

    The three prompts are tokenized apart and joined; each has its field once, in braces.
    """

    document: str = "Document: {document}\n\n"
    history: str = "{history}.\n"
    """Left out when the history is empty, where the authors' code keeps the bare ".\\n" of this prompt."""
    response: str = "Agent: {response}."
    between_passages: str = " "
    """Joins several passages of knowledge into the document. The paper has one."""
    between_turns: str = "\n"
    """Joins the turns of the history, which the authors' code is given as one text."""
    prompt_tokens: bool = True
    """Count the tokens of the response's own prompt ("Agent:" and the full stop) in the mean, as published."""
    too_long: Literal["relevant", "fail"] = "relevant"
    """What happens to knowledge that the model's window does not hold beside history and response. ``relevant``: it
    reads the sentences that share most content words with the response, as many as fit, in their order; ``coverage``,
    ``message`` and the explanation say what was left out. ``fail``: status ``truncated``, where the authors' code
    returns NaN. History and response are never cut. Knowledge that fits is read as a whole either way."""
    below: float = 0.0
    """Nats. Tokens whose log-probability the document changes by less than this are reported as unsupported."""


class Options(Record, OptionRecord, frozen=True):
    """Settings of one request."""

    ELSEWHERE = MappingProxyType(
        {
            "metrics": "Metrics are an argument of their own: score(…, metrics='fast'), Engine.load(metrics='fast').",
            "calibration": "A calibration is loaded: Engine.load(options=LoadOptions(calibration='mine.json')).",
        }
    )
    q2: Q2Options = Q2Options()
    nli: NliOptions = NliOptions()
    detector: DetectorOptions = DetectorOptions()
    token_classifier: TokenClassifierOptions = TokenClassifierOptions()
    critic: CriticOptions = CriticOptions()
    feqa: FeqaOptions = FeqaOptions()
    lexical: LexicalOptions = LexicalOptions()
    bertscore: BertScoreOptions = BertScoreOptions()
    pmi: PmiOptions = PmiOptions()
    citations: CitationOptions = CitationOptions()
    claim_filter: Literal["none", "verifiable"] = "none"
    """``verifiable``: Q², FeQA, inference and detectors check only the sentences that the bundle's verifiability
    classifier takes for factual claims, and end with ``nothing_to_verify`` without any. ``none``: all sentences."""
    profile: ProfileName = "balanced"
    """The verdict's operating point, by purpose. ``balanced``: right most often, where consistent and inconsistent
    responses are equally frequent. ``strict``: at most 15 % of the inconsistent responses are called consistent.
    ``lenient``: at most 5 % of the consistent responses are called inconsistent. The bundle's calibration states both
    error rates of each, measured on sets that were left out."""
    max_false_positive_rate: Annotated[float, msgspec.Meta(ge=0.001, lt=1)] | None = None
    """A bound of your own, from 0.001, in place of the profile's: the share of consistent responses that are called
    inconsistent is at most this, for responses like the responses of the calibration. None: the profile's."""
    threshold: Probability | None = None
    """A threshold of your own, in place of the profile's: a response is called consistent from this probability, 0–1,
    on. Not beside another profile than ``balanced``, nor beside ``max_false_positive_rate``. None: the profile's."""
    deadline_ms: Milliseconds | None = None
    """Milliseconds after which the request ends with status ``deadline``; None waits without limit. A request that
    cannot be finished in time because others are before it ends so at once."""
    priority: Annotated[int, msgspec.Meta(ge=-100, le=100)] = 0
    """Requests with a higher one, -100 to 100, are served first; requests of one priority by deadline, then by age.
    The items of ``score_many`` come after the single requests of their priority."""
    tenant: Annotated[str, msgspec.Meta(max_length=200)] = ""
    """For whom the request is. While requests wait, the engine's time is shared between the tenants of one priority,
    by ``LoadOptions.tenant_weights``."""
    max_windows: Count = 512
    """Windows of knowledge that one model call may read; more is status ``truncated``, never a silent cut."""
    max_response_chars: Count = 20_000
    """Characters of a response; a longer one is InvalidRequest."""
    max_knowledge_chars: Count = 4_000_000
    """Characters of knowledge, over all passages; more is InvalidRequest."""
    max_history_chars: Count = 200_000
    """Characters of history, over all turns; more is InvalidRequest."""
