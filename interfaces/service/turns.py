"""``/check_turn``: what an assistant says and the calls that it is about to make, against dialogue and tool log."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace
from starlette.responses import Response

from groundwire.turns import TurnCheck, TurnChecker

from .problems import make_json, refuse_stopped
from .records import TurnBody
from .request import ServiceRequest, check_size, check_texts
from .scoring import MAX_ENTRIES, note_score, refuse_stopped_score

BODY = msgspec.json.Decoder(TurnBody)


async def check_turn(request: ServiceRequest) -> Response:
    """Check a turn of an assistant that calls tools, before its calls are made.

    Look at the label, and at the findings with the statuses `absent`, `other_record`, `failed`, `pending` and
    `miscounted`. The score of the text is beside them, and does not decide the label.
    """
    body = await request.read(BODY)
    settings = request.service.settings
    turns = [turn if isinstance(turn, str) else str(turn) for turn in body.history]
    check_texts(settings, (body.text,), body.log, turns)
    check_size("calls", sum(len(str(call)) for call in body.calls), settings.max_response_chars)
    check_size("tools", sum(len(str(tool)) for tool in body.tools), settings.max_knowledge_chars)
    checker = TurnChecker(
        request.service.engine,
        tools=body.tools,
        actions=body.actions,
        metrics=request.service.choose_metrics(body.metrics),
        options=request.bound_options(body.options),
    )
    checked: TurnCheck = await request.wait_in_time(
        checker.acheck(body.text, body.calls, log=body.log, history=body.history, sentences=body.sentences)
    )
    request.context.log_fields["turn_label"] = checked.label
    refuse_stopped(checked.status, (), checked.message, checked)
    if checked.score is not None:
        note_score(request, checked.score)
        refuse_stopped_score(checked.score)
        checked = replace(checked, score=checked.score.shorten(MAX_ENTRIES))
    return make_json(checked)
