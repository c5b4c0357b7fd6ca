"""BLEU, ROUGE-L and METEOR of response and knowledge, computed by the packages that define them.

The packages are not a part of the base installation (``pip install 'groundwire[metrics]'``), and some take seconds to
import: a metric imports its own when it is first computed, and the caller, perhaps an event loop, goes on. Several
passages are joined by a space into the one reference that these metrics take.
"""

from __future__ import annotations

import importlib
import importlib.util
import re
from functools import cache, lru_cache, partial
from types import SimpleNamespace
from typing import Any, Literal

from groundwire.runtime.errors import InvalidRequest, TooLong

from ..schema.options import Options
from ..schema.results import MetricResult
from ..schema.steps import Steps
from ..text.words import check_words, words
from .base import Metric, RoleInfos, without_calls
from .requests import ReadRequest

MAX_BLEU_WORDS = 50_000
"""BLEU: words of response and knowledge, which sacrebleu counts in a fifth of a second."""
MAX_CELLS = 4_000_000
"""ROUGE-L: words of the response times words of the knowledge; its table is filled in plain Python, in a second."""
_ROUGE_WORD = re.compile("[a-z0-9]+")
MAX_WORDS = 50_000
"""METEOR: words of response and knowledge, which plain Python stems in a second."""
KEPT_STEMS = 10_000
"""Words whose stems are remembered: 2 MB."""
KEPT_LETTERS = 40
"""Letters of such a word at most."""


def bleu(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """BLEU of the response with the knowledge as its reference, **0 to 100**, as sacrebleu and the papers print it.

    sacrebleu's ``corpus_bleu`` with its defaults; the knowledge is lower-cased, the response is not (authors' code of
    Q² and of PMI-Faith). A response that sacrebleu finds no token in has nothing to verify; texts beyond
    ``MAX_BLEU_WORDS`` are ``truncated``.
    """
    _check_package("bleu", "sacrebleu")

    def result() -> MetricResult:
        sacrebleu = _import("bleu", "sacrebleu")
        check_words((request.response, *request.knowledge), MAX_BLEU_WORDS, "BLEU")
        bleu_score = sacrebleu.corpus_bleu([request.response], [[reference(request).lower()]])
        return MetricResult("bleu", "scored", bleu_score.score) if bleu_score.sys_len else _nothing("bleu")

    return without_calls(result)


def rouge_l(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """F-measure, 0–1, of the longest common subsequence of words, by Google's rouge-score.

    Words are runs of the letters a to z and digits, lower-cased and, with ``LexicalOptions.rouge_stemmer``, stemmed. A
    response without any has nothing to verify; texts beyond ``MAX_CELLS`` are ``truncated``.
    """
    _check_package("rouge_l", "rouge_score")

    def result() -> MetricResult:
        scorers, tokens = _import("rouge_l", "rouge_score.rouge_scorer"), _import("rouge_l", "rouge_score.tokenize")
        stemmer = _load_stemmer() if options.lexical.rouge_stemmer else None
        ours, theirs = count_rouge_words(request.response), count_rouge_words(reference(request))
        if not ours:
            return _nothing("rouge_l")
        if ours * theirs > MAX_CELLS:
            raise TooLong(
                f"ROUGE-L compares up to {MAX_CELLS} pairs of words; the response has {ours} and the knowledge "
                f"{theirs} words. Retrieve fewer passages, or leave rouge_l out."
            )
        tokenizer = SimpleNamespace(tokenize=partial(tokens.tokenize, stemmer=stemmer))
        scorer = scorers.RougeScorer(["rougeL"], tokenizer=tokenizer)
        return MetricResult("rouge_l", "scored", scorer.score(reference(request), request.response)["rougeL"].fmeasure)

    return without_calls(result)


def count_rouge_words(text: str) -> int:
    """As many words as rouge-score's tokenizer returns, which reads a long text without giving others a turn."""
    return sum(1 for _ in _ROUGE_WORD.finditer(text.lower()))


def meteor(request: ReadRequest, options: Options, role_info: RoleInfos) -> Steps[MetricResult]:
    """METEOR, 0–1, by nltk, over spaCy's English tokens, punctuation included.

    Exact words, then stems, then with ``LexicalOptions.meteor_synonyms`` synonyms are matched; without synonyms values
    are a little lower than published ones. Texts beyond ``MAX_WORDS`` are ``truncated``. InvalidRequest when
    synonyms are asked for and nltk's WordNet data is not installed.
    """
    _check_package("meteor", "nltk")
    wordnet = _synonyms(options.lexical.meteor_synonyms)

    def result() -> MetricResult:
        score, stemmer = _import("meteor", "nltk.translate.meteor_score").meteor_score, _load_stemmer()
        check_words((request.response, *request.knowledge), MAX_WORDS, "METEOR")
        ours = [word.text for word in request.words]
        if not ours:
            return _nothing("meteor")
        theirs = [word.text for word in words(reference(request))]
        return MetricResult("meteor", "scored", score([theirs], ours, stemmer=stemmer, wordnet=wordnet))

    return without_calls(result)


def reference(request: ReadRequest) -> str:
    """The passages as one text."""
    return " ".join(request.knowledge)


class Stemmer:
    """A stemmer that remembers its last words."""

    def __init__(self, stemmer: Any) -> None:
        self._stem = stemmer.stem
        self._recall = lru_cache(KEPT_STEMS)(stemmer.stem)

    def stem(self, word: str) -> str:
        """The stem of a word."""
        return str(self._recall(word) if len(word) <= KEPT_LETTERS else self._stem(word))


@cache
def _load_stemmer() -> Stemmer:
    """The stemmer of rouge-score and of nltk's METEOR."""
    return Stemmer(_import("meteor", "nltk.stem.porter").PorterStemmer())


class NoSynonyms:
    """What nltk's METEOR needs of WordNet, without a single synonym."""

    def synsets(self, word: str) -> tuple[()]:
        """No meanings, so no synonyms, of any word."""
        return ()


def _synonyms(source: Literal["none", "wordnet"]) -> Any:
    if source == "none":
        return NoSynonyms()
    wordnet = _import("meteor", "nltk.corpus").wordnet
    try:
        wordnet.ensure_loaded()
    except LookupError as error:
        raise InvalidRequest(
            "LexicalOptions.meteor_synonyms is 'wordnet', but nltk's WordNet data is not installed; run: "
            "python -m nltk.downloader wordnet (it needs the network), or use 'none'."
        ) from error
    return wordnet


def _check_package(metric: str, package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise _make_missing(metric, package, "it is not installed")


def _import(metric: str, module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise _make_missing(metric, module.partition(".")[0], error) from error


def _make_missing(metric: str, package: str, reason: object) -> InvalidRequest:
    return InvalidRequest(
        f"Metric {metric!r} needs {package}, which cannot be imported ({reason}); "
        "run: pip install 'groundwire[metrics]'."
    )


def _nothing(name: str) -> MetricResult:
    return MetricResult(name, "nothing_to_verify", message="The response has no words that this metric reads.")


METRICS = (
    Metric(
        name="bleu",
        title="BLEU",
        description="phrases of up to four words that response and knowledge share, 0–100",
        compute=bleu,
        package="sacrebleu",
        groups=frozenset({"paper"}),
        order=9,
        bounds=(0.0, 100.0),
    ),
    Metric(
        name="rouge_l",
        title="ROUGE-L",
        description="longest common sequence of words",
        compute=rouge_l,
        package="rouge_score",
        groups=frozenset({"paper"}),
        order=10,
    ),
    Metric(
        name="meteor",
        title="METEOR",
        description="words aligned by form and stem",
        compute=meteor,
        package="nltk",
        groups=frozenset({"paper"}),
        order=11,
    ),
)
