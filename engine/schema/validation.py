"""Turns what a caller passes into a Request, or says what is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundwire.runtime.arguments import check_sequence
from groundwire.runtime.errors import InvalidRequest
from groundwire.runtime.texts.unread import is_blank
from groundwire.runtime.triples import Triple, linearise

from .chats import is_message, read_chat
from .knowledge import Passage, ToolCall, write_item
from .options import Options
from .results import Request


def make_request(
    response: Any, knowledge: Any, history: Any = (), options: Options | None = None, triples: Any = ()
) -> Request:
    """Check the texts; InvalidRequest says what was given, what is allowed and what to do.

    ``knowledge`` is what ``list_passages`` takes.
    ``triples`` are records or (subject, predicate, object); without knowledge they are the knowledge, as one text, for
    the metrics that read text. Without both nothing supports the response (``decide_without_knowledge``).
    """
    options = options or Options()
    text = make_response(response, options)
    facts = make_triples(triples)
    passages = make_passages(knowledge, options) or _bound_knowledge((linearise(facts),) if facts else (), options)
    check_spans(options.q2.spans or (), len(text))
    return Request(text, passages, make_history(history, options), facts)


MAX_SPANS = 1_000
"""Ranges of a response that Q² may be given; each is asked about."""


def check_spans(spans: Sequence[tuple[int, int]], length: int) -> None:
    """Check the ranges that Q² is to ask about, of a response of so many characters."""
    if len(spans) > MAX_SPANS:
        raise InvalidRequest(f"Options.q2.spans has {len(spans)} ranges; allowed are {MAX_SPANS}. Ask about fewer.")
    for start, end in spans:
        if not 0 <= start < end <= length:
            raise InvalidRequest(
                f"Options.q2.spans has ({start}, {end}); a range must satisfy 0 <= start < end <= {length}, "
                "the length of the response in characters."
            )


PROMPTS = ("document", "history", "response")
MAX_PROMPT_CHARS = 10_000
"""Characters of a prompt of PMI, and of what it puts between texts."""


def check_texts(options: Options) -> None:
    """Check the texts inside the options: PMI's prompts, and the documents that BERTScore weighs by.

    The documents are bounded as knowledge is.
    """
    for name in (*PROMPTS, "between_passages", "between_turns"):
        text = _text(f"Options.pmi.{name}", getattr(options.pmi, name))
        if len(text) > MAX_PROMPT_CHARS:
            raise InvalidRequest(f"Options.pmi.{name} has {len(text)} characters; allowed are {MAX_PROMPT_CHARS}.")
        if name in PROMPTS and text.count(f"{{{name}}}") != 1:
            raise InvalidRequest(
                f"Options.pmi.{name} is {text!r:.200}; it must have {{{name}}} once, where the {name} belongs."
            )
    documents = options.bertscore.idf_documents
    for index, document in enumerate(documents):
        _text(f"Options.bertscore.idf_documents[{index}]", document)
    total = sum(map(len, documents))
    if total > options.max_knowledge_chars:
        raise InvalidRequest(
            f"Options.bertscore.idf_documents has {total} characters; allowed are {options.max_knowledge_chars}. Pass "
            "fewer documents, or raise Options.max_knowledge_chars."
        )


def make_response(response: Any, options: Options) -> str:
    """Check a response: a text with words, not longer than the options allow."""
    text = _text("response", response)
    if is_blank(text):
        raise InvalidRequest("response is empty; pass the text to check, or do not score this turn.")
    if len(text) > options.max_response_chars:
        raise InvalidRequest(
            f"response has {len(text)} characters; allowed are {options.max_response_chars}. "
            "Score it in parts, or raise Options.max_response_chars."
        )
    return text


def make_passages(knowledge: Any, options: Options) -> tuple[str, ...]:
    """Check the knowledge as ``list_passages``, and that it is not longer than the options allow."""
    return _bound_knowledge(list_passages(knowledge), options)


def list_passages(knowledge: Any) -> tuple[str, ...]:
    """Return the passages of knowledge, one or several, as texts; passages without words are left out.

    An item is a text, a ``Passage``, a ``ToolCall`` or a JSON object, such as a tool's result, which becomes lines of
    keys and values. Messages of a chat are read for the instructions and the tool log in them; each passage keeps its
    place. None is no knowledge. InvalidRequest for anything else.

    >>> list_passages(["It costs £5.", {"order": 17, "paid": True}])
    ('It costs £5.', 'order: 17\\npaid: true')
    """
    if knowledge is None:
        return ()
    items: tuple[Any, ...] = (knowledge,)
    if not isinstance(knowledge, str | Mapping | Passage | ToolCall):
        items = check_sequence("knowledge", knowledge, "a text, a JSON object, a tool call, or a list of these")
    # Whether it is a string is asked first, because there may be a million and Mapping is slow to ask about.
    if any(type(item) is not str and is_message(item) for item in items):
        items = read_chat(items).knowledge
    passages = tuple(
        _text(f"knowledge[{i}]", item if type(item) is str else _write_item(f"knowledge[{i}]", item))
        for i, item in enumerate(items)
    )
    return tuple(passage for passage in passages if not is_blank(passage))


def list_turns(history: Any) -> Any:
    """The utterances of a history: a string is one, None is none, and a chat's messages have what was said in them."""
    if not isinstance(history, list | tuple):
        return () if history is None else (history,) if isinstance(history, str) else history
    said = [[text for _, text in read_chat([turn]).history] if is_message(turn) else [turn] for turn in history]
    return [text for texts in said for text in texts]


def make_history(history: Any, options: Options) -> tuple[str, ...]:
    """Check the utterances before a response, oldest first; blank ones say nothing and are left out."""
    items = check_sequence("history", list_turns(history), "a list of utterances, oldest first, or one utterance")
    turns = tuple(_text(f"history[{i}]", turn) for i, turn in enumerate(items))
    turns = tuple(turn for turn in turns if not is_blank(turn))
    return _bounded("history", turns, options.max_history_chars, "Leave the oldest turns out")


def make_triples(triples: Any, name: str = "triples") -> tuple[Triple, ...]:
    """Check triples: records, sequences of three strings, or mappings with subject, predicate and object.

    Messages call the argument ``name``.

    >>> make_triples([("Alien", "directed by", "Ridley Scott")])
    (Triple(subject='Alien', predicate='directed by', object='Ridley Scott'),)
    """
    return tuple(
        _triple(f"{name}[{i}]", triple)
        for i, triple in enumerate(check_sequence(name, triples, "a list of (subject, predicate, object)"))
    )


def _triple(name: str, value: Any) -> Triple:
    if isinstance(value, Triple):
        parts: tuple[Any, ...] = (value.subject, value.predicate, value.object)
    elif isinstance(value, Mapping):
        absent = [part for part in Triple.__struct_fields__ if part not in value]
        if absent:
            raise InvalidRequest(f"{name} has no {' and no '.join(absent)}; it has {', '.join(map(str, value))}.")
        parts = tuple(value[part] for part in Triple.__struct_fields__)
    else:
        parts = check_sequence(name, value, "(subject, predicate, object)")
    if len(parts) != len(Triple.__struct_fields__):
        raise InvalidRequest(f"{name} has {len(parts)} parts; pass (subject, predicate, object).")
    texts = [_text(f"{name}.{part}", text) for part, text in zip(Triple.__struct_fields__, parts, strict=True)]
    for part, text in zip(Triple.__struct_fields__, texts, strict=True):
        if is_blank(text):
            raise InvalidRequest(f"{name} has an empty {part}; leave the triple out.")
    return Triple(*texts)


def _write_item(name: str, item: Any) -> Any:
    try:
        return write_item(item, name)
    except RecursionError as error:
        raise InvalidRequest(f"{name} is nested too deeply; pass the part that the response rests on.") from error


def _bound_knowledge(passages: tuple[str, ...], options: Options) -> tuple[str, ...]:
    return _bounded("knowledge", passages, options.max_knowledge_chars, "Retrieve fewer passages")


def _bounded(name: str, texts: tuple[str, ...], limit: int, remedy: str) -> tuple[str, ...]:
    total = sum(map(len, texts))
    if total > limit:
        raise InvalidRequest(
            f"{name} has {total} characters; allowed are {limit}. {remedy}, or raise Options.max_{name}_chars."
        )
    return texts


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"{name} is {type(value).__name__}; pass a string.")
    if "\0" in value:
        raise InvalidRequest(f"{name} has a NUL character at offset {value.index(chr(0))}; remove it.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"{name} has a lone surrogate at offset {error.start}; it is not valid text. "
            "Decode the source with errors='replace'."
        ) from error
    return value
