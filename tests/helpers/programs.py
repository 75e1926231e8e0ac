"""Clients that run programs, on the bridge of `helpers.bridging`."""

import json
from typing import Any

from helpers.bridging import Bridge, Wire
from helpers.driver import Json, text_of

FORM: Json = {"elicitation": {}}
META: Json = {"expose": "meta", "code": True}


async def run_code(wire: Wire, code: str, **more: object) -> Json:
    answer = await wire.call({"code": code}, "run_code", **more)
    assert "result" in answer, answer
    return answer["result"]


async def value(wire: Wire, code: str) -> Any:
    """The value of a program that succeeds."""
    result = await run_code(wire, f"import json\n{code}")
    assert not result.get("isError"), result
    return json.loads(result["content"][0]["text"])


async def error(wire: Wire, code: str) -> str:
    result = await run_code(wire, code)
    assert result.get("isError") is True, result
    return text_of(result)


def call_to_make(result: Json) -> Json:
    """What the reply of a paused program says is to be called."""
    assert "is paused before" in text_of(result), result
    call = json.loads(text_of(result).split("\n")[1])
    assert isinstance(call, dict)
    return call


def done(bridge: Bridge) -> list[Any]:
    """The arguments of the calls that the server has got."""
    return [call["arguments"] for call in bridge.got("tools/call")]
