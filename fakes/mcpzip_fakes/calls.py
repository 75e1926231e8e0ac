"""One tools/call: notifications, progress, the delay, the hold, questions to the client, and then the answer.

The rule: only what an era allows is sent. Progress needs the request's token; modern logs need the request's
level, legacy logs respect the session's level (2025-11-25 and 2026-07-28 `server/utilities/logging`). The
notifications of ``notify`` are sent unchanged.
"""

import asyncio
from collections.abc import Awaitable, Callable

import msgspec
from msgspec import UNSET

from mcpzip.wire import LOG_LEVEL_KEY
from mcpzip_fakes import questions
from mcpzip_fakes.answer import Answer, JsonObject, fill, json_value
from mcpzip_fakes.definitions import Tool
from mcpzip_fakes.request import Refused, Request, as_object

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
"""The levels of a log notification, the least first (RFC 5424)."""


async def call(
    request: Request,
    tool: Tool,
    number: int,
    level: str | None = None,
    *,
    held: Callable[[], Awaitable[None]],
    caller: Callable[[], JsonObject],
) -> JsonObject | bytes:
    """The result of the ``number``-th call of ``tool``: an object, or its JSON text.

    level: the minimum level of logs of the session, None for all; in the modern era the request has it. held:
    waits until the call is released; caller: who called. Raises Refused if the answer is an error;
    InputRequired if a modern client must answer questions first.
    """
    told = tool.result
    given = as_object(request.params.get("arguments"))

    def filled(value: object) -> object:
        return fill(value, given, number) if told.fill else value

    for log in told.log:
        await asyncio.sleep(log.wait)
        if heard(log.level, request.meta.get(LOG_LEVEL_KEY) if request.modern else level or LEVELS[0]):
            named: JsonObject = {} if log.logger is None else {"logger": log.logger}
            logged: JsonObject = {"level": log.level, **named, "data": filled(log.data)}
            await request.channel.notify("notifications/message", logged)
    for notice in told.notify:
        await asyncio.sleep(notice.wait)
        params = {} if notice.params is UNSET else as_object(filled(json_value(notice.params)))
        await request.channel.notify(notice.method, params)
    if told.hangs_up is not None:
        await asyncio.sleep(told.hangs_up)
        await request.channel.hang_up()
    await _wait(request, told, filled)
    if told.hold:
        await held()
    try:
        replies = await questions.replies(request, told.ask, state=told.state, filled=told.fill)
    except Refused as refusal:
        if request.modern:
            raise
        return text(refusal.message, is_error=True)
    if told.error is not None:
        data = UNSET if told.error.data is UNSET else filled(json_value(told.error.data))
        raise Refused(told.error.code, str(filled(told.error.message)), data)
    if told.caller:
        return text(msgspec.json.encode(caller()).decode(), is_error=told.is_error)
    if told.ask is not None and told.says_nothing:
        said = next(iter(replies.values())) if len(replies) == 1 else replies
        return text(msgspec.json.encode(said).decode(), is_error=told.is_error)
    values = {**given, **replies}
    return told.result(values, request.arguments, number)


async def _wait(request: Request, told: Answer, filled: Callable[[object], object]) -> None:
    """The delay, with its progress notifications. filled: replaces placeholders in their texts."""
    token = request.meta.get("progressToken")
    for step in told.steps():
        await asyncio.sleep(step.wait)
        if token is not None:
            params: JsonObject = {"progressToken": token, "progress": step.progress}
            params |= {} if step.total is None else {"total": step.total}
            params |= {} if step.message is None else {"message": str(filled(step.message))}
            await request.channel.notify("notifications/progress", params)
    if told.delay and not (isinstance(told.progress, int) and told.progress):
        await asyncio.sleep(told.delay)


def heard(level: str, least: object) -> bool:
    """Whether a log of ``level`` is sent to a client with this minimum level; not to one without a level."""
    if least not in LEVELS:
        return False
    return level not in LEVELS or LEVELS.index(level) >= LEVELS.index(str(least))


def text(said: str, *, is_error: bool = False) -> JsonObject:
    """A result that is one text block."""
    return {"content": [{"type": "text", "text": said}], **({"isError": True} if is_error else {})}
