"""Recorded answers as the faults of stage ``answer`` change them."""

import msgspec
from msgspec import UNSET

from mcpzip.wire import NotAnObject, split_object, with_members
from mcpzip_fakes.answer import JsonObject
from mcpzip_fakes.engine import refuse_if_told
from mcpzip_fakes.faults import Firing
from mcpzip_fakes.hostile import spoilt
from mcpzip_fakes.replay.messages import Message
from mcpzip_fakes.request import Refused, as_object


def changed(line: bytes, message: Message, firing: Firing) -> bytes:
    """The answer ``line`` to ``message`` as the faults change it."""
    try:
        refuse_if_told(firing)
        fields = split_object(line)
        if (result := fields.get("result")) is None:
            return line
        told = spoilt(message.method, result, firing)
        text = told if isinstance(told, bytes) else msgspec.json.encode(told)
        return line if text == result else with_members(line, {"result": text})
    except Refused as refusal:
        error: dict[str, object] = {"code": refusal.code, "message": refusal.message}
        if refusal.data is not UNSET:
            error["data"] = refusal.data
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (message.id, msgspec.json.encode(error))
    except NotAnObject:
        return line


def params_of(message: Message) -> JsonObject:
    """The params of a request, decoded; {} if it has none."""
    try:
        return as_object(msgspec.json.decode(message.params or b"{}"))
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
