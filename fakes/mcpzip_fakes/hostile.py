"""The faults of stage ``answer``: answers of a hostile server.

The rule: a correct answer is turned into one that is costly, endless or contains hostile text. Each kind has
a row in `_ACTIONS`. No I/O here, except for the messages of a flood.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import cast

import msgspec

from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.faults import Fault, Firing
from mcpzip_fakes.request import Channel, Refused, Request, as_object

TEXT = (
    "\x1b]52;c;ZXZpbA==\x07\x1b]8;;https://evil.example/\x1b\\click\x1b]8;;\x1b\\\x1b]0;title\x1b\\"
    "\x1b[2J\x1b[31m\x9b32m\x9d0;title\x9c[/boom]\\[/boom][link=https://evil.example]\\[bold]"
    "\r\nother: connected, 3 tools\u2028\u202egnp.exe\u2066\u2069\u200f\U000e0068\U000e0069"
)
"""The default of `hostile-text`: OSC 52, 8 and 0, CSI, the same in C1, markup, a newline
that forges a line, bidi controls and tag characters."""

LISTED: Mapping[str, str] = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
_MORE = "more-"
"""Prefix of the cursors of `endless-pages`."""


def spoilt(method: str, answer: JsonObject | bytes, firing: Firing) -> JsonObject | bytes:
    """The ``answer`` to a request of ``method`` as the faults change it: an object, or its JSON text."""
    for fault in firing.faults:
        if action := _ACTIONS.get(fault.kind):
            if isinstance(answer, bytes):
                answer = as_object(msgspec.json.decode(answer))
            answer = action(fault, method, answer)
    return answer


def worded(refusal: Refused, firing: Firing) -> Refused:
    """The error as the faults change it."""
    if fault := firing.get("hostile-text"):
        return Refused(refusal.code, refusal.message + _text(fault), refusal.data)
    return refusal


def page(request: Request) -> JsonObject | None:
    """A later page of an endless list; None if the request has no cursor of one."""
    fault, asked = request.firing.get("endless-pages"), request.params.get("cursor")
    if fault is None or request.method not in LISTED or not str(asked).startswith(_MORE):
        return None
    number = str(asked).removeprefix(_MORE)
    thing: JsonObject = {"name": f"more_{number}", "description": "x" * int(fault.number("size"))}
    match request.method:
        case "tools/list":
            thing["inputSchema"] = {"type": "object"}
        case "resources/list":
            thing["uri"] = f"more://{number}"
        case "resources/templates/list":
            thing["uriTemplate"] = f"more://{number}/{{id}}"
    return {LISTED[request.method]: [thing], **_cursor(fault, int(number))}


def listening(request: Request) -> Request:
    """``request`` with a channel that appends hostile text to progress messages, if that fault fires."""
    if fault := request.firing.get("hostile-text"):
        return msgspec.structs.replace(request, channel=_Loud(request.channel, _text(fault)))
    return request


async def flood(request: Request) -> None:
    """Send the messages of the fault ``flood``, if it fires. Requests to the client are sent together, and
    their answers awaited; a modern client gets no requests."""
    fault = request.firing.get("flood")
    if fault is None:
        return
    method, count = _FLOODS[fault.string("what")], int(fault.number("count"))
    keys: JsonObject = {f"key-{number}": number for number in range(int(fault.number("keys")))}
    params: JsonObject = {"_meta": {"text": "x" * int(fault.number("size"))}, **keys}
    if method in ("ping", "roots/list"):
        asks = (request.channel.ask(method, params) for _ in range(0 if request.modern else count))
        await asyncio.gather(*asks, return_exceptions=True)
        return
    for number in range(count):
        match method:
            case "notifications/progress":
                token = request.meta.get("progressToken")
                params = {
                    "progressToken": token,
                    "progress": number,
                    "message": "x" * int(fault.number("size")),
                    **keys,
                }
                if token is None:
                    return
            case "notifications/message":
                params = {"level": "info", "data": "x" * int(fault.number("size")), **keys}
        await request.channel.notify(method, params)


_FLOODS: Mapping[str, str] = {
    "progress": "notifications/progress",
    "log": "notifications/message",
    "list-changed": "notifications/tools/list_changed",
    "ping": "ping",
    "request-roots": "roots/list",
}


class _Loud:
    """A channel that appends a text to each progress message."""

    def __init__(self, channel: Channel, text: str) -> None:
        self._channel, self._text = channel, text

    async def notify(self, method: str, params: JsonObject) -> None:
        if method == "notifications/progress":
            params = {**params, "message": f"{params.get('message', '')}{self._text}"}
        await self._channel.notify(method, params)

    async def ask(self, method: str, params: JsonObject) -> object:
        return await self._channel.ask(method, params)

    async def hang_up(self) -> None:
        await self._channel.hang_up()


def _bomb(fault: Fault, method: str, answer: JsonObject) -> JsonObject:
    tools, name = _things(answer, "tools"), fault.string("name")
    schema = _SHAPES[fault.string("shape")](int(fault.number("size")), int(fault.number("count")))
    for number, tool in enumerate(tools):
        if name in ("", tool.get("name")):
            tools[number] = {**tool, "inputSchema": schema}
            break
    return {**answer, "tools": tools}


def _refs(size: int, count: int) -> JsonObject:
    """``count`` references to one enum of ``size`` values."""
    return _referring(["#/$defs/any"] * count, {"any": {"enum": [f"v{number}" for number in range(size)]}})


def _all_of(size: int, count: int) -> JsonObject:
    """``count`` properties, each an ``allOf`` of one object with ``size`` properties."""
    properties = {f"q{number}": {"type": "string"} for number in range(size)}
    every = {f"p{number}": {"allOf": [{"$ref": "#/$defs/any"}, {}]} for number in range(count)}
    return {"type": "object", "properties": every, "$defs": {"any": {"properties": properties}}}


def _pointer(size: int, count: int) -> JsonObject:
    """``count`` references by one pointer of ``size`` percent-encoded letters."""
    return _referring(["#/$defs/" + "%61" * size] * count, {"a" * size: {"type": "string"}})


def _anchor(size: int, count: int) -> JsonObject:
    """``count`` references to anchors after ``size`` definitions without one."""
    defs: JsonObject = {f"d{number}": {"type": "string"} for number in range(size)}
    defs |= {f"last{number}": {"$anchor": f"a{number}"} for number in range(count)}
    return _referring([f"#a{number}" for number in range(count)], defs)


def _deep(size: int, count: int) -> JsonObject:
    """``count`` definitions, each an object that refers to the next one twice: expanded, 2 to the power of
    ``count``. The last is an enum of ``size`` values."""
    defs: JsonObject = {
        f"d{number}": {"properties": {key: {"$ref": f"#/$defs/d{number + 1}"} for key in "ab"}}
        for number in range(count)
    }
    return _referring(
        ["#/$defs/d0"], {**defs, f"d{count}": {"enum": [f"v{number}" for number in range(size)]}}
    )


_SHAPES: Mapping[str, Callable[[int, int], JsonObject]] = {
    "refs": _refs,
    "all-of": _all_of,
    "pointer": _pointer,
    "anchor": _anchor,
    "deep": _deep,
}


def _referring(references: list[str], defs: JsonObject) -> JsonObject:
    properties = {f"p{number}": {"$ref": reference} for number, reference in enumerate(references)}
    return {"type": "object", "properties": properties, "$defs": defs}


def _long_name(fault: Fault, method: str, answer: JsonObject) -> JsonObject:
    named = {"name": "n" * int(fault.number("size")), "inputSchema": {"type": "object"}}
    return {**answer, "tools": [*_things(answer, "tools"), named]}


def _endless(fault: Fault, method: str, answer: JsonObject) -> JsonObject:
    return answer if "nextCursor" in answer else {**answer, **_cursor(fault, 0)}


def _cursor(fault: Fault, number: int) -> JsonObject:
    """The cursor of the page after ``number`` generated pages; empty if there is none."""
    count = int(fault.number("count"))
    return {"nextCursor": f"{_MORE}{number + 1}"} if not count or number < count else {}


def _hostile(fault: Fault, method: str, answer: JsonObject) -> JsonObject:
    text = _text(fault)
    if (key := LISTED.get(method)) and key in answer:
        return {**answer, key: [_said(thing, text) for thing in _things(answer, key)]}
    if method == "tools/call":
        return {**answer, "content": [_ended(block, text) for block in _things(answer, "content")]}
    if method in ("initialize", "server/discover"):
        told = {**answer, "instructions": f"{answer.get('instructions', '')}{text}"}
        return (
            {**told, "serverInfo": _titled(info, text)}
            if (info := as_object(told.get("serverInfo")))
            else told
        )
    return answer


def _said(thing: JsonObject, text: str) -> JsonObject:
    return {**_titled(thing, text), "description": f"{thing.get('description', '')}{text}"}


def _titled(thing: JsonObject, text: str) -> JsonObject:
    return {**thing, "title": f"{thing.get('title', thing.get('name', ''))}{text}"}


def _ended(block: JsonObject, text: str) -> JsonObject:
    return {**block, "text": f"{block['text']}{text}"} if "text" in block else block


def _text(fault: Fault) -> str:
    return TEXT if fault.text is None else fault.text


def _things(answer: JsonObject, key: str) -> list[JsonObject]:
    """The items under ``key``, decoded."""
    return cast(list[JsonObject], msgspec.json.decode(msgspec.json.encode(answer.get(key, []))))


_ACTIONS: Mapping[str, Callable[[Fault, str, JsonObject], JsonObject]] = {
    "schema-bomb": _bomb,
    "long-name": _long_name,
    "endless-pages": _endless,
    "hostile-text": _hostile,
}
