"""Informative spans of a text, and questions about the speakers: the role ``spans``.

A spaCy pipeline gives named entities and a parse; noun chunks are read off the parse. Released English pipelines are
parsed in ClearNLP style, for which spaCy has its own noun chunks; a parser trained on Universal Dependencies gets the
same chunks from :func:`universal_noun_chunks`. The parser's labels say which of the two it is.

spaCy is imported with the first pipeline: a bundle without this role saves its 70 MB.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from ..calls import FindSpans, IsPersonal, TextSpan
from ..errors import BundleError, GroundwireError, InvalidRequest
from ..protocol import Outcome
from ..texts.linear_tokenizer import LinearTokenizer, LongZone

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Span, Token
    from thinc.api import Config

Chunks: TypeAlias = Callable[["Doc"], Iterable["Span"]]

_USED = {
    "tok2vec",
    "tagger",  # terms: literal
    "morphologizer",
    "attribute_ruler",
    "parser",
    "ner",
    "entity_ruler",
    "span_ruler",
}
_UNUSED = {
    "lemmatizer",
    "trainable_lemmatizer",
    "senter",
    "sentencizer",
    "textcat",
    "textcat_multilabel",
    "spancat",
    "spancat_singlelabel",
    "span_finder",
}
# What the components above are made of in spaCy's English pipelines and in pipelines from its quickstart.
# Others of spaCy's own functions read weights with PyTorch, load other packages or run code.
_FUNCTIONS = {
    "@architectures": {
        "spacy.CharacterEmbed.v2",
        "spacy.HashEmbedCNN.v2",
        "spacy.MaxoutWindowEncoder.v2",
        "spacy.MishWindowEncoder.v2",
        "spacy.MultiHashEmbed.v2",
        "spacy.Tagger.v1",  # terms: literal
        "spacy.Tagger.v2",  # terms: literal
        "spacy.Tok2Vec.v2",
        "spacy.Tok2VecListener.v1",
        "spacy.TransitionBasedParser.v2",
    },
    "@scorers": {
        "spacy.attribute_ruler_scorer.v1",
        "spacy.entity_ruler_scorer.v1",
        "spacy.morphologizer_scorer.v1",
        "spacy.ner_scorer.v1",
        "spacy.overlapping_labeled_spans_scorer.v1",
        "spacy.parser_scorer.v1",
        "spacy.tagger_scorer.v1",  # terms: literal
    },
    "@tokenizers": {"spacy.Tokenizer.v1"},
    "@vectors": {"spacy.Vectors.v1"},
    "@misc": {
        "spacy.first_longest_spans_filter.v1",
        "spacy.levenshtein_compare.v1",
        "spacy.prioritize_existing_ents_filter.v1",
        "spacy.prioritize_new_ents_filter.v1",
    },
}

_PARTS_OF_SPEECH = {"tagger", "morphologizer"}  # terms: literal
_ENTITIES = {"ner", "entity_ruler", "span_ruler"}
"""Components that assign nothing but entities and spans, which a personal question is not known by."""

_SPEAKERS = {"i", "you"}
_OWNERS = {"my", "your"}
KEPT_CHUNKS = 10_000
"""Chunks of questions that are remembered, with whether they name a speaker: 1 MB."""


class SpanFinder:
    """Finds the spans a response's questions are asked about (Q², section 3.1; FeQA).

    >>> finder = SpanFinder.load("bundles/compact/spans")
    >>> [span.text for span in finder.find("yes , bob ross was the creator of the joy of painting .")]
    ['bob ross', 'joy of painting', 'the creator', 'the joy', 'painting']

    Texts go through the pipeline one at a time, so the spans of a text never depend on another. Safe to share
    between threads; calls take turns.
    """

    def __init__(self, nlp: Language) -> None:
        """Wrap a loaded pipeline; components that neither spans nor the personal filter need are removed from it.

        Raises BundleError when it has no parser, no component that assigns parts of speech, or a parser of an unknown
        label set.
        """
        factories = {name: nlp.get_pipe_meta(name).factory for name in nlp.pipe_names}
        if "parser" not in factories or not _PARTS_OF_SPEECH & set(factories.values()):
            raise BundleError(
                f"The spaCy pipeline has the components {', '.join(factories) or '(none)'}; "
                "spans need a parser and a tagger or morphologizer. "  # terms: literal
                "Give an English pipeline that has both."
            )
        for name, factory in factories.items():
            if factory in _UNUSED:
                nlp.remove_pipe(name)
        self._chunks, self._subjects, self._owners = _choose_scheme(nlp.get_pipe("parser").labels)
        nlp.tokenizer = LinearTokenizer(nlp.tokenizer)
        self._nlp = nlp
        self._parsing = [component for name, component in nlp.pipeline if factories[name] not in _ENTITIES]
        self._zone = LongZone(nlp)
        # spaCy does not promise that one pipeline may run in two threads at once.
        self._lock = threading.Lock()
        self._may_be_personal = lru_cache(KEPT_CHUNKS)(self._names_speaker)

    @classmethod
    def load(cls, path_or_name: Path | str) -> SpanFinder:
        """Wrap the pipeline that ``load_pipeline`` loads; BundleError also when it cannot be used."""
        return cls(load_pipeline(path_or_name))

    def run(self, calls: Sequence[FindSpans | IsPersonal], max_windows: int) -> list[Outcome]:
        """One result or error per call, in order; ``max_windows`` does not apply, because texts are read whole."""
        outcomes: list[Outcome] = []
        for call in calls:
            try:
                outcomes.append(
                    self.find(call.text) if isinstance(call, FindSpans) else self.is_personal(call.question)
                )
            except GroundwireError as error:
                outcomes.append(error)
        return outcomes

    def find(self, text: str) -> tuple[TextSpan, ...]:
        """Named entities in order, then the noun chunks that are not among them; ``i`` is left out.

        Two spans count as the same when their lower-cased texts are equal; an entity named twice is returned twice (the
        Q² authors' code). Offsets are characters of ``text``. Raises InvalidRequest when ``text`` is longer than the
        pipeline's limit (a million characters unless it sets another).
        """
        if not text.strip():
            return ()
        self._check_length(text)
        # The memory zone returns strings and word records, so a service does not grow with the words it has seen.
        # Nothing of spaCy may outlive the block: the spans are plain strings by then.
        with self._lock, self._zone.read(len(text)):
            return tuple(self._informative(self._nlp(text)))

    def is_personal(self, question: str) -> bool:
        """Whether ``question`` is about the speakers: "i" or "you" is a subject, or "my" or "your" a possessor.

        Raises InvalidRequest as :meth:`find` does.
        """
        self._check_length(question)
        # Only these four words can make a question personal: a question without them needs no parse. Most have none,
        # and their chunks (runs without spaces) come again and again.
        if not any(map(self._may_be_personal, question.split())):
            return False
        with self._lock, self._zone.read(len(question)):
            return any(self._is_speaker(token) for token in self._parse(question))

    def _names_speaker(self, chunk: str) -> bool:
        """Whether a token of a chunk may be a speaker. No token of words goes beyond a chunk (``LinearTokenizer``)."""
        with self._lock, self._zone.read(len(chunk)):
            return any(token.lower_ in _SPEAKERS or token.lower_ in _OWNERS for token in self._nlp.make_doc(chunk))

    def _parse(self, text: str) -> Doc:
        """The document of a text without its entities."""
        doc = self._nlp.make_doc(text)
        for component in self._parsing:
            doc = component(doc)
        return doc

    def _informative(self, doc: Doc) -> Iterator[TextSpan]:
        seen: set[str] = set()
        for entity in doc.ents:
            seen.add(entity.text.lower())
            if entity.text.lower() != "i":
                yield _text_span(entity, f"ent:{entity.label_}")
        seen.add("i")
        for chunk in self._chunks(doc):
            if chunk.text.lower() not in seen:
                seen.add(chunk.text.lower())
                yield _text_span(chunk, "noun_chunk")

    def _is_speaker(self, token: Token) -> bool:
        word = token.lower_
        return (word in _SPEAKERS and token.dep_ in self._subjects) or (word in _OWNERS and token.dep_ in self._owners)

    def _check_length(self, text: str) -> None:
        if len(text) > self._nlp.max_length:
            raise InvalidRequest(
                f"The text has {len(text)} characters; the span finder reads up to {self._nlp.max_length}. Shorten it."
            )


# Heads of the nominals that ClearNLP calls subject, object, object of a preposition, attribute or apposition. Temporal
# and measure phrases without a preposition (obl:unmarked, nmod:unmarked; ClearNLP's npadvmod), modifiers of other nouns
# and vocatives do not make chunks of their own.
_ARGUMENTS = {
    "nsubj",
    "nsubj:pass",
    "nsubj:outer",
    "csubj",
    "csubj:pass",
    "obj",
    "iobj",
    "obl",
    "obl:agent",
    "nmod",
    "appos",
    "root",
    "ccomp",
    "xcomp",
    "advcl",
    "advcl:relcl",
    "acl",
    "acl:relcl",
    "parataxis",
    "list",
    "orphan",
    "dislocated",
    "dep",
}
_NOMINAL = {"NOUN", "PROPN", "PRON"}
_BEFORE = {
    "det",
    "det:predet",
    "cc:preconj",
    "amod",
    "advmod",
    "nummod",
    "compound",
    "flat",
    "nmod:poss",
    "nmod:desc",
    "nmod:unmarked",
}
_AFTER = {"flat", "goeswith", "compound", "nummod"}


def universal_noun_chunks(doc: Doc) -> Iterator[Span]:
    """Base noun phrases of a Universal Dependencies parse, left to right, none inside another.

    The counterpart of spaCy's English ``noun_chunks``: a chunk runs from the left edge of its nominal head to the head.
    Where the schemes differ, the chunk follows spaCy's: prepositions, copulas, conjunctions and the subject of a
    nominal predicate are left dependents of the head and are excluded; the further words of a flat name depend on its
    first word and are included.
    """
    children: list[list[Token]] = [[] for _ in doc]
    for token in doc:  # a token's own children, lefts and rights are found by a search of all that depend on it
        if token.head.i != token.i:
            children[token.head.i].append(token)
    conjunct_of: list[Token] = []
    done = 0
    for token in doc:
        first = conjunct_of[token.head.i] if token.dep_ == "conj" and token.head.i < token.i else token
        conjunct_of.append(first)
        # A run of spaces is a token of its own, which may be labelled a noun.
        if token.pos_ in _NOMINAL and not token.is_space and _is_argument(first):
            start, end = _left_edge(token, children[token.i]), _right_edge(token, children[token.i])
            # As in spaCy: what contains an earlier chunk ("a friend of mine's house") is not given again.
            if start >= done:
                done = end
                yield doc[start:end]


def _is_argument(token: Token) -> bool:
    """Whether a nominal is an argument; of coordinated nominals, the first says so of all."""
    if token.dep_ == "expl":
        # ClearNLP calls the "it" of "it rains" a subject; only "there" is an expletive.
        return bool(token.pos_ == "PRON" and token.lower_ != "there")
    return token.dep_.lower() in _ARGUMENTS


def _left_edge(head: Token, children: Sequence[Token]) -> int:
    start = head.i
    predicate = any(child.dep_ == "cop" for child in children)
    for child in reversed(children):
        if child.i > head.i or child.dep_ == "punct":
            continue
        # The adverb in "is also a hobby" hangs on the noun, but belongs to the sentence.
        if child.dep_ not in _BEFORE or (predicate and child.dep_ == "advmod"):
            break
        start = child.left_edge.i
    while head.doc[start].is_space:
        start += 1
    return int(start)


def _right_edge(head: Token, children: Sequence[Token]) -> int:
    end = head.i + 1
    for child in children:
        if child.i < head.i or child.dep_ == "punct":
            continue
        # Adjacent, or separated by punctuation only: "Elvis Presley", "World War II", "Jean-Luc".
        if child.dep_ not in _AFTER or any(not token.is_punct for token in head.doc[end : child.left_edge.i]):
            break
        end = child.right_edge.i + 1
    return int(end)


def _choose_scheme(labels: Iterable[str]) -> tuple[Chunks, set[str], set[str]]:
    """Noun chunks, subject labels and possessor labels for a parser with these labels."""
    names = set(labels)
    if "pobj" in names or "dobj" in names:
        return (lambda doc: doc.noun_chunks), {"nsubj"}, {"poss"}
    if "obl" in names or "obj" in names:
        return universal_noun_chunks, {"nsubj", "nsubj:outer"}, {"nmod:poss"}
    raise BundleError(
        f"The parser has the labels {', '.join(sorted(names)) or '(none)'}: neither ClearNLP (dobj, pobj) "
        "nor Universal Dependencies (obj, obl). Give an English pipeline with one of the two."
    )


def _text_span(span: Span, kind: str) -> TextSpan:
    return TextSpan(span.text, span.start_char, span.end_char, kind)


def load_pipeline(path_or_name: Path | str) -> Language:
    """Load a pipeline directory, as in a bundle, or an installed pipeline by name, with weights in float32.

    A directory is data from anywhere: only the listed components and functions are accepted. All of them keep their
    weights as plain arrays, so that nothing in it is executed. An installed pipeline is a Python package that its owner
    chose to trust.

    Raises BundleError when the pipeline is missing or damaged.
    """
    import spacy

    directory = Path(path_or_name)
    package = not directory.is_dir()
    if package and (isinstance(path_or_name, Path) or not spacy.util.is_package(path_or_name)):
        raise BundleError(
            f"No spaCy pipeline {str(path_or_name)!r}: it is neither a directory nor an installed pipeline. "
            "Give a directory written by spaCy's to_disk, or install the pipeline's package."
        )
    try:
        nlp = spacy.load(path_or_name) if package else _load_directory(directory)
    except GroundwireError:
        raise
    except Exception as error:  # damaged files surface as whatever the parser of that file raises
        raise BundleError(f"The spaCy pipeline {str(path_or_name)!r} cannot be loaded: {error}") from error
    _widen_weights(nlp)
    return nlp


def _widen_weights(nlp: Language) -> None:
    """Convert weights that are stored in half precision to float32, which spaCy computes with."""
    for _, component in nlp.pipeline:
        model = getattr(component, "model", None)
        for node in () if model is None or isinstance(model, bool) else model.walk():
            for name in node.param_names:
                value = node.get_param(name) if node.has_param(name) else None
                if value is not None and value.dtype == "float16":
                    node.set_param(name, value.astype("float32"))


def _load_directory(directory: Path) -> Language:
    """Build the components that are used from the checked configuration, and read their data."""
    from spacy.lang.en import English

    class WithoutRules(English):  # type: ignore[misc]
        """English whose tokenizer has no rules yet: making the usual ones takes as long as reading the directory's."""

        class Defaults(English.Defaults):  # type: ignore[misc]
            tokenizer_exceptions: ClassVar[dict[str, Any]] = {}
            prefixes = suffixes = infixes = None
            token_match = url_match = None

    config, unused = _read_config(directory / "config.cfg")
    nlp = WithoutRules.from_config(config, exclude=unused)
    for name, component in nlp.pipeline:
        refuse_shims(name, getattr(component, "model", None))
    return nlp.from_disk(directory, exclude=[*unused, "config.cfg"])


def refuse_shims(name: str, model: Any) -> None:
    """BundleError when a component's model wraps one of another library, whose weights may be a pickle."""
    nodes = model.walk() if hasattr(model, "walk") else ()
    if shims := [type(shim).__name__ for node in nodes for shim in node.shims]:
        raise BundleError(
            f"The component {name!r} wraps a model of another library ({', '.join(shims)}). A pipeline directory may "
            "not; install the pipeline as a package and give its name."
        )


def _read_config(path: Path) -> tuple[Config, list[str]]:
    """The sections of a configuration that build a pipeline, and the names of the components that are not used.

    Raises BundleError unless the pipeline is English and made of the listed components and functions only.
    """
    import spacy
    from thinc.api import Config

    try:
        config = spacy.util.load_config(path, interpolate=True)
        language, components = config["nlp"]["lang"], dict(config["components"])
        factories = {name: str(component.get("factory", "another pipeline")) for name, component in components.items()}
    except Exception as error:
        raise BundleError(f"{path} is not the configuration of a spaCy pipeline: {error}") from error
    if language != "en":
        raise BundleError(f"{path} is a pipeline for the language {language!r}; spans need an English one ('en').")
    for name, factory in factories.items():
        if not re.fullmatch(r"[\w-]+", name):
            raise BundleError(f"{path}: a component's data is in a file of its name, so {name!r} cannot be one.")
        # A component with "source" would be copied from another pipeline, wherever that is.
        if factory not in _USED | _UNUSED or "source" in components[name]:
            raise BundleError(
                f"{path}: the component {name!r} is made by {factory!r}. A pipeline directory "
                f"may use {', '.join(sorted(_USED | _UNUSED))}; install others as a package and give its name."
            )
    unused = [name for name, factory in factories.items() if factory in _UNUSED]
    used = {name: component for name, component in components.items() if name not in unused}
    for key, value in _iterate_references({"nlp": config["nlp"], "components": used}):
        if str(value) not in _FUNCTIONS.get(key, ()):
            allowed = sorted(_FUNCTIONS.get(key, _FUNCTIONS))
            raise BundleError(
                f"{path} uses {key} = {value!r}; a pipeline directory may use {', '.join(allowed)}. "
                "Install a pipeline that uses others as a package, and give its name."
            )
    return Config({"nlp": config["nlp"], "components": components}), unused


def _iterate_references(section: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Every reference to a registered function in a configuration section and its subsections."""
    for key, value in section.items():
        if key.startswith("@"):
            yield key, value
        elif isinstance(value, dict):
            yield from _iterate_references(value)
