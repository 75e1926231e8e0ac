"""What happens during one tools/call: logs, progress, the wait, a question to the client, and then the
answer.

The rule: only what an era allows goes out. Progress needs the request's token; on modern, logs need its level
and questions travel in the result (2026-07-28 `basic/patterns/mrtr`, `server/utilities/logging`).
"""

import asyncio
from typing import Protocol

import msgspec
from msgspec import UNSET, Struct

from fakes.answer import Answer, JsonObject, Log, json_value
from fakes.definitions import Tool
from fakes.faults import NOTHING, Firing
from mcpzip.wire import INVALID_PARAMS, LOG_LEVEL_KEY, MISSING_REQUIRED_CLIENT_CAPABILITY, MODERN_VERSIONS

_LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
_NEEDS = {"sampling/createMessage": "sampling", "elicitation/create": "elicitation", "roots/list": "roots"}
_QUESTION = "question"


class Refused(Exception):
    """A JSON-RPC error to answer with. ``data`` is a JSON value, UNSET for none."""

    def __init__(self, code: int, message: str, data: object = UNSET) -> None:
        self.code, self.message, self.data = code, message, data
        super().__init__(f"{message} ({code})")

    def error(self) -> JsonObject:
        """The ``error`` member of the answer."""
        said: JsonObject = {"code": self.code, "message": self.message}
        return said if self.data is UNSET else {**said, "data": self.data}


class Channel(Protocol):
    """The way back to a client."""

    async def notify(self, method: str, params: JsonObject) -> None:
        """Send a notification."""

    async def ask(self, method: str, params: JsonObject) -> object:
        """Send a request and wait for its result. Legacy only. Refused carries the client's error."""


class Request(Struct, frozen=True, kw_only=True):
    """One request. id: as the client spelt it, decoded; arguments: the JSON text of ``params.arguments`` as
    it came; version: the protocol version it is under; capabilities: what its client declared; channel: the
    way back on which what belongs to this request travels; firing: the faults that fire on it."""

    method: str
    params: JsonObject
    channel: Channel
    version: str
    id: object = None
    arguments: bytes = b"{}"
    capabilities: JsonObject = {}
    firing: Firing = NOTHING

    @property
    def modern(self) -> bool:
        """Whether it is under the stateless era."""
        return self.version in MODERN_VERSIONS

    @property
    def meta(self) -> JsonObject:
        """``params._meta``; empty when absent."""
        return as_object(self.params.get("_meta"))


async def call(request: Request, tool: Tool, number: int) -> JsonObject | bytes:
    """The result of the ``number``-th call of ``tool``: an object, or its JSON text. Refused when that is its
    answer."""
    told = tool.result
    for log in told.log:
        await _log(request, log)
    await _wait(request, told)
    if told.error is not None:
        data = UNSET if told.error.data is UNSET else json_value(told.error.data)
        raise Refused(told.error.code, told.error.message, data)
    if told.ask is not None:
        params = {} if told.ask.params is UNSET else as_object(json_value(told.ask.params))
        return await (_ask_within if request.modern else _ask)(request, told.ask.method, params)
    return told.result(as_object(request.params.get("arguments")), request.arguments, number)


async def _wait(request: Request, told: Answer) -> None:
    """The delay, and the progress told of meanwhile."""
    token = request.meta.get("progressToken")
    for step in told.steps():
        await asyncio.sleep(step.wait)
        if token is not None:
            params: JsonObject = {"progressToken": token, "progress": step.progress}
            params |= {} if step.total is None else {"total": step.total}
            params |= {} if step.message is None else {"message": step.message}
            await request.channel.notify("notifications/progress", params)
    if told.delay and not (isinstance(told.progress, int) and told.progress):
        await asyncio.sleep(told.delay)


async def _log(request: Request, log: Log) -> None:
    if request.modern:
        least = request.meta.get(LOG_LEVEL_KEY)
        if least not in _LEVELS or _LEVELS.index(log.level) < _LEVELS.index(least):
            return
    named: JsonObject = {} if log.logger is None else {"logger": log.logger}
    await request.channel.notify("notifications/message", {"level": log.level, **named, "data": log.data})


async def _ask(request: Request, method: str, params: JsonObject) -> JsonObject:
    """A question to a legacy client: a request of our own."""
    if not _able(request, method):
        return text(f"this client does not offer {_NEEDS[method]}", is_error=True)
    try:
        reply = await request.channel.ask(method, params)
    except Refused as refusal:
        return text(str(refusal), is_error=True)
    return text(msgspec.json.encode(reply).decode())


async def _ask_within(request: Request, method: str, params: JsonObject) -> JsonObject:
    """A question to a modern client: a result that asks; the client calls again with the answer."""
    if not _able(request, method):
        needs = _NEEDS[method]
        raise Refused(
            MISSING_REQUIRED_CLIENT_CAPABILITY,
            f"this tool needs {needs}",
            {"requiredCapabilities": {needs: {}}},
        )
    replies = as_object(request.params.get("inputResponses"))
    state = f"asked {method}"
    if _QUESTION not in replies:
        questions = {_QUESTION: {"method": method, "params": params}}
        return {"resultType": "input_required", "inputRequests": questions, "requestState": state}
    if request.params.get("requestState") != state:
        raise Refused(INVALID_PARAMS, "requestState is not the one this server gave out")
    return text(msgspec.json.encode(replies[_QUESTION]).decode())


def _able(request: Request, method: str) -> bool:
    return method not in _NEEDS or _NEEDS[method] in request.capabilities


def text(said: str, *, is_error: bool = False) -> JsonObject:
    """A result that is one text block."""
    return {"content": [{"type": "text", "text": said}], **({"isError": True} if is_error else {})}


def as_object(value: object) -> JsonObject:
    """``value`` when it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}
