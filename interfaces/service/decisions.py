"""``/v1/systemone`` and ``/v1/decisions``: typed questions about a response, in two forms, answered with probabilities.

There are two questions: whether the knowledge supports the response, and which label it has. Others are refused by
name. A question has no answer where nothing is to verify, or the verdict is not sure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec
from starlette.responses import Response

from groundwire.engine import Score
from groundwire.engine.extend import count_tokens
from groundwire.engine.schema.chats import ASSISTANT, is_message, read_chat, read_text

from .inference import MODEL
from .problems import Refusal, make_json
from .records import (
    ChoiceAnswer,
    DecisionAnswers,
    DecisionsBody,
    DecisionState,
    DecisionUsage,
    ListedModel,
    ListedModels,
    NoulAnswer,
    PredicateAnswer,
    RefusedAnswer,
    ResponseBody,
    SystemOneAnswer,
    SystemOneBody,
    SystemOneChoice,
    TokenUsage,
    TypedQuestion,
    ValueProbability,
)
from .request import ServiceRequest, check_size, decode, translate_paths
from .scoring import score_body


class LabelChoice(NamedTuple):
    """The label of the verdict, which its threshold chooses, and the probabilities of the options."""

    label: str
    probabilities: Mapping[str, float]

    @property
    def confidence(self) -> float:
        """The probability of the label, which need not be the largest."""
        return self.probabilities[self.label]


Answer: TypeAlias = float | LabelChoice | str
"""A probability, the choice of an option, or why there is no answer."""
SYSTEM_ONE = msgspec.json.Decoder(SystemOneBody)
DECISIONS = msgspec.json.Decoder(DecisionsBody)
STATE = msgspec.json.Decoder(DecisionState)
SUPPORTED = ("supported", "is the response supported by the knowledge", "the response is supported by the knowledge")
"""Instructions of the question whether a response is supported; case and the mark at the end do not matter."""
LABELS = ("consistent", "inconsistent", "unverifiable")
"""Options of the question for the label: the first two, and perhaps the third."""
MAX_QUESTIONS = 400


async def answer_system_one(request: ServiceRequest) -> Response:
    """Answer typed questions about a response, in the form of System One.

    The state has `response`, `knowledge` and `history`, or is the messages of a chat whose last answer is the response.
    A question `noul` has the instructions `supported`; a `choice` has the criteria `consistent`, `inconsistent` and
    perhaps `unverifiable`, and is the verdict's label, whose threshold need not be 0.5. `refusals` says why a question
    has no answer.
    """
    body = await request.read(SYSTEM_ONE)
    asked = {f"$.questions.{name}": question for name, question in body.questions.items()}
    results, tokens = await _answer(request, body.state, "$.state", asked)
    answers: dict[str, NoulAnswer | SystemOneChoice] = {}
    refusals: dict[str, str] = {}
    for name, answer in zip(body.questions, results, strict=True):
        if isinstance(answer, str):
            refusals[name] = answer
        elif isinstance(answer, float):
            answers[name] = NoulAnswer(answer)
        else:
            answers[name] = SystemOneChoice(answer.label, answer.probabilities, answer.confidence)
    return make_json(SystemOneAnswer(MODEL, answers, TokenUsage(tokens), refusals))


async def decide(request: ServiceRequest) -> Response:
    """Answer typed questions about a response, in the form of OpenAI's decisions.

    The input is the JSON of an object with `response`, `knowledge` and `history`, or the messages of a chat whose last
    answer is the response. A question `predicate` has the instructions `supported`; a `choice` has the values
    `consistent`, `inconsistent` and perhaps `unverifiable`, and is the verdict's label, whose threshold need not be
    0.5. A `refusal` has its reason.
    """
    body = await request.read(DECISIONS)
    asked = {f"$.questions[{index}]": question for index, question in enumerate(body.questions)}
    results, tokens = await _answer(request, body.input, "$.input", asked)
    answers: list[PredicateAnswer | ChoiceAnswer | RefusedAnswer] = []
    for question, answer in zip(body.questions, results, strict=True):
        if isinstance(answer, str):
            answers.append(RefusedAnswer(question.name, answer))
        elif isinstance(answer, float):
            answers.append(PredicateAnswer(question.name, answer))
        else:
            listed = tuple(ValueProbability(value, probability) for value, probability in answer.probabilities.items())
            answers.append(ChoiceAnswer(question.name, answer.label, listed, answer.confidence))
    return make_json(DecisionAnswers(MODEL, tuple(answers), DecisionUsage(tokens, total_tokens=tokens)))


async def list_models(request: ServiceRequest) -> Response:
    """List the model that answers, in the forms of OpenAI and of System One."""
    models = (ListedModel(MODEL, MODEL),)
    return make_json(ListedModels(models, models))


async def _answer(
    request: ServiceRequest, state: Any, path: str, questions: Mapping[str, TypedQuestion]
) -> tuple[list[Answer], int]:
    """The answers to questions by their paths, and the estimated tokens of the texts."""
    check_size("questions", len(questions), MAX_QUESTIONS, "questions")
    options = [_list_options(question, question_path) for question_path, question in questions.items()]
    with translate_paths({f"$.{name}": f"{path}.{name}" for name in ("response", "knowledge", "history")}):
        read = _read_state(state, path)
        body = ResponseBody(response=read.response, knowledge=read.knowledge, history=read.history)
        texts, plan, score = await score_body(request, body)
    return [_find_answer(score, labels) for labels in options], count_tokens([texts], plan)


def _list_options(question: TypedQuestion, path: str) -> tuple[str, ...]:
    """The labels that a question offers, none of a question for support; Refusal for one that is not known."""
    name = question.name or path.removeprefix("$.")
    if question.type in ("noul", "predicate"):
        instructions = read_text(question.instructions).strip().rstrip("?. ").lower()
        if instructions in SUPPORTED:
            return ()
        raise Refusal(
            "invalid",
            f"The question {name!r:.100} is not known: its instructions are {instructions!r:.200}; allowed is "
            f"{' or '.join(map(repr, SUPPORTED))}.",
            f"{path}.instructions",
        )
    options = tuple(question.criteria) if isinstance(question.criteria, Mapping) else ()
    options += tuple(choice.value for choice in question.choices)
    if question.type == "choice" and set(options) in (set(LABELS[:2]), set(LABELS)):
        return options
    raise Refusal(
        "invalid",
        f"The question {name!r:.100} is not known: it is a {question.type} of {', '.join(options) or 'levels':.200}; "
        f"allowed are a choice of {' and '.join(LABELS[:2])}, perhaps with {LABELS[2]}, and {SUPPORTED[0]!r}.",
        path,
    )


def _read_state(state: Any, path: str) -> DecisionState:
    """What is asked about; Refusal if it is neither an object with a response nor a chat that ends with one."""
    messages: Sequence[Any] = state if isinstance(state, list | tuple) else ()
    if len(messages) == 1 and not read_chat(messages).calls:  # a client's way to send an object
        state = read_text(messages[0].get("content")) if isinstance(messages[0], Mapping) else state
    elif messages and all(map(is_message, messages)):
        *earlier, last = messages
        role = last.get("role") if isinstance(last, Mapping) else None
        chat = read_chat(earlier)
        if role != ASSISTANT:
            raise Refusal("invalid", "The chat does not end with an answer; its last message is what is checked.", path)
        history = tuple(text for _, text in chat.history)
        return DecisionState(response=read_text(last.get("content")), knowledge=chat.knowledge, history=history)
    try:
        return decode(state if isinstance(state, str) else msgspec.json.encode(state), STATE)
    except Refusal as refusal:
        refusal.path = f"{path}{refusal.path.removeprefix('$')}"
        raise


def _find_answer(score: Score, options: Sequence[str]) -> Answer:
    verdict = score.verdict
    if verdict.label == "unverifiable":
        if LABELS[2] in options:
            return LabelChoice(verdict.label, {option: float(option == LABELS[2]) for option in options})
        return "The response states nothing that knowledge could confirm."
    if verdict.probability is None or verdict.label == "unknown":
        return verdict.message or "There is no verdict."
    if not verdict.sure:
        return "The verdict is not sure."
    probability = verdict.probability
    shares = dict(zip(LABELS, (probability, 1 - probability, 0.0), strict=True))
    return LabelChoice(verdict.label, {option: shares[option] for option in options}) if options else probability
