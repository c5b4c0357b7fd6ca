"""Published checkpoints that a paper used, or the nearest public ones, as ready sets of roles."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from groundwire.runtime.bundles.bundle import locate
from groundwire.runtime.bundles.manifest import Template
from groundwire.runtime.errors import BundleError, ExportError

from .options import (
    ClassifierSettings,
    JudgeSettings,
    KindSettings,
    QuestionGeneratorSettings,
    RequestedPrecision,
    RoleOptions,
    TokenClassifierSettings,
)

SPACY_PIPELINE = "en_core_web_sm"
"""The spaCy pipeline with which the Q² authors find spans."""


def preset(name: str) -> dict[str, RoleOptions]:
    """Return the roles of a preset.

    >>> roles = override(preset("paper-q2"), "qa", precision="fp16", max_tokens=384)
    >>> roles["qa"].source
    'ktrapeznikov/albert-xlarge-v2-squad-v2'

    Args:
        name: A key of ``PRESETS``.

    Returns:
        The options by role.

    Raises:
        ExportError: The name is unknown.
    """
    try:
        return PRESETS[name]()
    except KeyError as error:
        raise ExportError(f"Unknown preset {name!r}; presets are {', '.join(PRESETS)}.") from error


def override(
    roles: Mapping[str, RoleOptions],
    role: str,
    *,
    source: str | None = None,
    revision: str | None = None,
    precision: RequestedPrecision | None = None,
    kind: KindSettings | None = None,
    max_tokens: int | None = None,
) -> dict[str, RoleOptions]:
    """Return a set of roles with one of them changed; arguments that are None change nothing.

    Args:
        roles: The options by role.
        role: Name of the role to change, or of a new role.
        source: Another checkpoint. The role's revision and the settings of its kind, which belonged to the former one,
            are reset, but for the template.
        revision: Revision of the checkpoint on the hub.
        precision: Precision of the graphs.
        kind: Settings of the role's kind of model: ``ClassifierSettings(labels=…)``.
        max_tokens: Tokens of a window, at most.

    Returns:
        A new mapping.

    Raises:
        ExportError: ``roles`` has no such role, and no source is given.
    """
    if role not in roles and source is None:
        raise ExportError(f"The set has no role {role!r} to change; it has {', '.join(roles)}. Give its source.")
    options = roles.get(role) or RoleOptions(source or "")
    if source is not None and source != options.source:
        options = RoleOptions(source, _keep_template(options.kind), precision=options.precision)
    options = replace(
        options,
        revision=revision or options.revision,
        precision=precision or options.precision,
        kind=kind or options.kind,
        max_tokens=max_tokens or options.max_tokens,
    )
    return {**roles, role: options}


def _keep_template(kind: KindSettings | None) -> KindSettings | None:
    if isinstance(kind, ClassifierSettings | TokenClassifierSettings | QuestionGeneratorSettings):
        return type(kind)(template=kind.template)
    return None


def _paper_q2() -> dict[str, RoleOptions]:
    """Return the roles of Q² at the sizes of the paper.

    The authors' NLI model is AllenNLP's RoBERTa-large on SNLI, which is not a transformers checkpoint; this preset
    takes a public three-way RoBERTa-large that saw SNLI, MNLI, FEVER and ANLI, with its own label order.
    """
    return {
        "qg": RoleOptions(
            "mrm8488/t5-base-finetuned-question-generation-ap", QuestionGeneratorSettings(strip_prefix="question: ")
        ),
        "qa": RoleOptions("ktrapeznikov/albert-xlarge-v2-squad-v2"),
        "nli": RoleOptions(
            "ynie/roberta-large-snli_mnli_fever_anli_R1_R2_R3-nli",
            ClassifierSettings(labels=("entailment", "neutral", "contradiction")),
        ),
        "spans": RoleOptions(_find_pipeline()),
    }


def _paper_q2_small() -> dict[str, RoleOptions]:
    """Return the same roles several times smaller: T5-small, ALBERT-base, RoBERTa-base.

    For machines where the paper's sizes are too slow; its scores are not the paper's.
    """
    return {
        "qg": RoleOptions(
            "valhalla/t5-small-qg-prepend",
            QuestionGeneratorSettings(template=Template("answer: {answer} context: {context}")),
        ),
        "qa": RoleOptions("twmkn9/albert-base-v2-squad2"),
        "nli": RoleOptions(
            "cross-encoder/nli-roberta-base", ClassifierSettings(labels=("contradiction", "entailment", "neutral"))
        ),
        "spans": RoleOptions(_find_pipeline()),
    }


def _paper_detectors() -> dict[str, RoleOptions]:
    """Return the detectors that the papers compare: pair order (evidence, claim), labels as each checkpoint names them.

    A checkpoint that only names LABEL_0, LABEL_1, … is refused: export it as a single role with ``--labels``. BERT on
    Conv-FEVER is not published; ``groundwire.recipes`` has its recipe.
    """
    return {
        "detector.vitaminc": RoleOptions("tals/albert-base-vitaminc"),
        "detector.vitaminc-fever": RoleOptions("tals/albert-base-vitaminc-fever"),
        "detector.mnli": RoleOptions("tals/albert-base-mnli"),
        "detector.vitaminc-mnli": RoleOptions("tals/albert-base-vitaminc-mnli"),
        "detector.factcc": RoleOptions("manueldeprada/FactCC", ClassifierSettings(labels=("CORRECT", "INCORRECT"))),
        "detector.faithcritic": RoleOptions(
            "McGill-NLP/roberta-large-faithcritic", ClassifierSettings(labels=("faithful", "hallucinated"))
        ),
    }


def _minicheck() -> dict[str, RoleOptions]:
    """Return MiniCheck (Tang et al. 2024): (document, claim), each sentence of the response alone, the lowest counts.

    Its RoBERTa reads the pair joined by one end token; its DeBERTa's pairs have one separator anyway. The second logit
    is "supported" in the authors' code.
    """
    labels = ("unsupported", "supported")
    return {
        "detector.minicheck-roberta": RoleOptions(
            "lytang/MiniCheck-RoBERTa-Large", ClassifierSettings(labels=labels, unit="sentence", one_separator=True)
        ),
        "detector.minicheck-deberta": RoleOptions(
            "lytang/MiniCheck-DeBERTa-v3-Large", ClassifierSettings(labels=labels, unit="sentence")
        ),
    }


def _minicheck_flan_t5() -> dict[str, RoleOptions]:
    """Return MiniCheck's Flan-T5 (MIT): each sentence alone, the lowest counts; "1" is "supported".

    The authors' code cuts a document into chunks of 500 words, and the best chunk counts, as it does here of windows of
    as many tokens as 500 words and a claim have.
    """
    settings = JudgeSettings(("0", "1"), ("1",), Template("predict: {premise}</s>{hypothesis}</s>"), unit="sentence")
    return {"judge": RoleOptions("lytang/MiniCheck-Flan-T5-Large", settings, max_tokens=1024)}


def _true_t5() -> dict[str, RoleOptions]:
    """Return TRUE's T5-XXL of 11 billion parameters (Honovich et al. 2022): the whole response, "1" is entailment."""
    settings = JudgeSettings(("0", "1"), ("1",), Template("premise: {premise} hypothesis: {hypothesis}</s>"))
    return {"judge": RoleOptions("google/t5_xxl_true_nli_mixture", settings)}


def _hhem() -> dict[str, RoleOptions]:
    """Return Vectara's HHEM-2.1-open (Apache-2.0), a T5 whose second logit at the first token is "consistent"."""
    prompt = (
        "<pad> Determine if the hypothesis is true given the premise?\n\nPremise: {premise}\n\n"
        "Hypothesis: {hypothesis}</s>"
    )
    settings = JudgeSettings(("inconsistent", "consistent"), template=Template(prompt))
    return {"judge": RoleOptions("vectara/hallucination_evaluation_model", settings)}


def _granite_guardian() -> dict[str, RoleOptions]:
    """Return IBM's Granite Guardian 3.1 2B (Apache-2.0), asked about groundedness: "Yes" is a risk.

    Its chat template writes the prompt. Versions from 3.3 on answer between tags, which no first token shows.
    """
    settings = JudgeSettings(
        ("Yes", "No"),
        ("No",),
        messages=(("context", "{premise}"), ("assistant", "{hypothesis}")),
        chat_options={"guardian_config": {"risk_name": "groundedness"}},
    )
    return {"judge": RoleOptions("ibm-granite/granite-guardian-3.1-2b", settings)}


def _qwen3_reranker() -> dict[str, RoleOptions]:
    """Return Qwen3-Reranker-0.6B (Apache-2.0): the response is the query, the knowledge the document."""
    prompt = (
        "<|im_start|>system\nJudge whether the Document meets the requirements based on the Query and the Instruct "
        'provided. Note that the answer can only be "yes" or "no".<|im_end|>\n<|im_start|>user\n'
        "<Instruct>: Given a claim, retrieve documents that support the claim\n<Query>: {hypothesis}\n"
        "<Document>: {premise}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    settings = JudgeSettings(("no", "yes"), ("yes",), Template(prompt), unit="sentence")
    return {"judge": RoleOptions("Qwen/Qwen3-Reranker-0.6B", settings, max_tokens=2048)}


def _bge_reranker() -> dict[str, RoleOptions]:
    """Return BAAI's bge-reranker-v2-m3, a cross-encoder of one logit: the response is the query."""
    settings = ClassifierSettings(
        supported=("relevant",), unit="sentence", template=Template("{hypothesis}", "{premise}")
    )
    return {"detector.bge-reranker": RoleOptions("BAAI/bge-reranker-v2-m3", settings, max_tokens=1024)}


def _lettucedetect() -> dict[str, RoleOptions]:
    """Return LettuceDetect (Kovács and Recski 2025, MIT): a ModernBERT that flags the tokens of an answer.

    Label 1 is a flag. Each passage is read in the model's prompt for texts without a question. Where several passages
    or windows are read, a token counts as supported when one of them supports it; the authors' code requires all of
    them to.
    """
    return _flag_tokens("lettucedect-base-modernbert-en-v1", _SUMMARY)


def _lettucedetect_large() -> dict[str, RoleOptions]:
    """Return LettuceDetect's ModernBERT-large (MIT)."""
    return _flag_tokens("lettucedect-large-modernbert-en-v1", _SUMMARY)


def _lettucedetect_v2() -> dict[str, RoleOptions]:
    """Return LettuceDetect's mmBERT-base for seven languages (Apache-2.0): (context, answer), without a prompt."""
    return _flag_tokens("lettucedect-v2-mmbert-base", Template("{premise}", "{hypothesis}"))


def _tinylettuce() -> dict[str, RoleOptions]:
    """Return LettuceDetect's Ettin of 68 million parameters (MIT)."""
    return _flag_tokens("tinylettuce-ettin-68m-en", _SUMMARY)


_SUMMARY = Template("Summarize the following text:\n{premise}\noutput:", "{hypothesis}")


def _flag_tokens(name: str, template: Template) -> dict[str, RoleOptions]:
    settings = TokenClassifierSettings(labels=("supported", "hallucinated"), template=template)
    return {"token_classifier": RoleOptions(f"KRLabsOrg/{name}", settings)}


def _nli_deberta() -> dict[str, RoleOptions]:
    """Return a DeBERTa-v3 cross-encoder for the role nli, stronger than the papers' RoBERTa at a third of its size."""
    labels = ("contradiction", "entailment", "neutral")
    return {"nli": RoleOptions("cross-encoder/nli-deberta-v3-base", ClassifierSettings(labels=labels))}


def _paper_pmi() -> dict[str, RoleOptions]:
    """Return PMI-Faith's language model. It was trained on texts of 2,048 tokens, which its configuration may not
    state.

    The models with which the paper decodes, BART-large fine-tuned on each of its data sets, are not published, so no
    preset names one: role ``generator`` takes any hub id or directory of a BART, T5, GPT-2, Llama or Qwen that was
    trained to write responses, and ``groundwire.recipes`` has the recipe.
    """
    return {"lm": RoleOptions("bigscience/bloom-560m", max_tokens=2048)}


def _paper_all() -> dict[str, RoleOptions]:
    """Return every model that the papers' tables need, for one bundle; the embedder is BERTScore's default for English.

    About 1.6 GB in int8. FeQA uses the question generator and the extractive QA model of Q².
    """
    return {**_paper_q2(), **_paper_pmi(), **_paper_detectors(), "embedder": RoleOptions("roberta-large")}


def _find_pipeline() -> str:
    """Return the installed spaCy pipeline of the paper, else the one of the embedded bundle."""
    if importlib.util.find_spec(SPACY_PIPELINE) is None:
        try:
            embedded = locate("compact") / "spans"
        except BundleError:
            return SPACY_PIPELINE
        if Path(embedded, "config.cfg").is_file():
            return str(embedded)
    return SPACY_PIPELINE


PRESETS: Mapping[str, Callable[[], dict[str, RoleOptions]]] = MappingProxyType(
    {
        "paper-q2": _paper_q2,
        "paper-q2-small": _paper_q2_small,
        "paper-pmi": _paper_pmi,
        "paper-detectors": _paper_detectors,
        "paper-all": _paper_all,
        "minicheck": _minicheck,
        "minicheck-flan-t5": _minicheck_flan_t5,
        "true-t5": _true_t5,
        "hhem": _hhem,
        "granite-guardian": _granite_guardian,
        "qwen3-reranker": _qwen3_reranker,
        "bge-reranker": _bge_reranker,
        "lettucedetect": _lettucedetect,
        "lettucedetect-large": _lettucedetect_large,
        "lettucedetect-v2": _lettucedetect_v2,
        "tinylettuce": _tinylettuce,
        "nli-deberta": _nli_deberta,
    }
)
"""By name; each call makes a fresh set."""
