"""Clients of mcpzip that write and read messages, in front of an upstream that asks them, all in this process
but for the upstream. What is kept for a client can so be looked at.

    async with bridged(tmp_path) as bridge:
        wire = bridge.modern(sampling={})
        asked = await wire.call([["ask", "q", "sampling/createMessage", {}], ["wait"]])
"""

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.driver import INITIALIZE, MODERN, PATIENCE, Json, comes_true, encoded, proxy_of
from helpers.raw_http_client import LOCAL, Web

from mcpzip.proxy.proxy import Proxy
from mcpzip.server.endpoint import Endpoint
from mcpzip.server.http.access import read_address, take
from mcpzip.server.http.limits import Limits
from mcpzip.server.http.server import HttpServer
from mcpzip.server.session import Session

SERVER = Path(__file__).with_name("bridging_server.py")
META = "io.modelcontextprotocol/"
ASK: Json = {"messages": [], "maxTokens": 5}
SAMPLE = ["ask", "q", "sampling/createMessage", ASK]
WAIT = ["wait"]
SAID: Json = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "so be it"}}


def ahead(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Puts the event loop's clock so many seconds on."""
    loop = asyncio.get_running_loop()
    now = loop.time
    monkeypatch.setattr(loop, "time", lambda: now() + seconds)


def upstream(folder: Path, name: str, era: str) -> Json:
    """The config of an upstream; its record is ``NAME.jsonl`` in ``folder``."""
    return {"command": sys.executable, "args": [str(SERVER), str(folder / f"{name}.jsonl"), era]}


class Wire:
    """A client on a stream of its own, as over stdio. says: by method, the results with which it answers
    requests at once.
    """

    def __init__(
        self, endpoint: Endpoint, capabilities: Json, modern: bool, *, is_only_client: bool = True
    ) -> None:
        self.session = Session(endpoint, self._hear, is_only_client=is_only_client)
        self.heard: list[Json] = []
        self.says: dict[str, Json] = {}
        self._lines: list[bytes] = []
        self._ids = itertools.count(1)
        self.meta: Json = {}
        if modern:
            self.meta = {f"{META}protocolVersion": MODERN, f"{META}clientCapabilities": capabilities}

    def _hear(self, frame: bytes) -> None:
        self._lines.append(frame)
        if frame:
            heard = json.loads(frame)
            self.heard.append(heard)
            if "id" in heard and (said := self.says.get(heard.get("method", ""))) is not None:
                answer = {"id": heard["id"], "result": said}
                asyncio.get_running_loop().call_soon(self.write, answer)

    def write(self, message: Json) -> None:
        self.session.receive(encoded({"jsonrpc": "2.0", **message}))

    def send(self, method: str, params: Json, **meta: object) -> int:
        """A request, not waited for; its id."""
        number = next(self._ids)
        if self.meta or meta:
            params = {**params, "_meta": {**self.meta, **meta}}
        self.write({"id": number, "method": method, "params": params})
        return number

    def send_call(self, do: object, tool: str = "up__run", **more: object) -> int:
        """A call of the tool that does what it is told; ``more`` of its params."""
        meta = more.pop("meta", {})
        assert isinstance(meta, dict)
        arguments = do if isinstance(do, dict) else {"do": do}
        return self.send("tools/call", {"name": tool, "arguments": arguments, **more}, **meta)

    async def hears(self, wanted: Callable[[Json], bool], seconds: float = PATIENCE) -> Json:
        return await comes_true(lambda: next(filter(wanted, self.heard), None), seconds)  # type: ignore[return-value]

    async def answer(self, number: int) -> Json:
        return await self.hears(lambda one: one.get("id") == number and "method" not in one)

    async def ask(self, method: str, params: Json, **meta: object) -> Json:
        return await self.answer(self.send(method, params, **meta))

    async def call(self, do: object, tool: str = "up__run", **more: object) -> Json:
        return await self.answer(self.send_call(do, tool, **more))

    async def asked(self, method: str) -> Json:
        """The latest request of this method, once there is one."""
        await self.hears(lambda one: one.get("method") == method and "id" in one)
        return [one for one in self.heard if one.get("method") == method and "id" in one][-1]

    def cancel(self, number: int) -> None:
        self.write({"method": "notifications/cancelled", "params": {"requestId": number}})

    def notices(self, method: str) -> list[Any]:
        return [one.get("params") for one in self.heard if one.get("method") == method]

    async def begin(self, capabilities: Json) -> "Wire":
        await self.ask("initialize", {**INITIALIZE, "capabilities": capabilities})
        self.write({"method": "notifications/initialized"})
        return self


class Bridge:
    """mcpzip, and ways to be its client."""

    def __init__(self, folder: Path, proxy: Proxy) -> None:
        self._folder = folder
        self.proxy, self.endpoint = proxy, Endpoint(proxy)
        self.sessions: list[Session] = []

    def modern(self, *, is_only_client: bool = True, **capabilities: object) -> Wire:
        wire = Wire(self.endpoint, capabilities, modern=True, is_only_client=is_only_client)
        self.sessions.append(wire.session)
        return wire

    async def legacy(self, *, is_only_client: bool = True, **capabilities: object) -> Wire:
        wire = Wire(self.endpoint, {}, modern=False, is_only_client=is_only_client)
        self.sessions.append(wire.session)
        return await wire.begin(capabilities)

    def has_asked(self, name: str = "up") -> None:
        """The upstream is known to ask its clients: each has it to itself from now on."""
        for method in ("sampling/createMessage", "roots/list", "elicitation/create"):
            self.proxy._sharing.asked(name, method, None)

    def lines(self, name: str = "up") -> list[Json]:
        """What the upstream ``name`` has got so far."""
        record = self._folder / f"{name}.jsonl"
        written = record.read_bytes() if record.exists() else b""
        whole, _, _ = written.rpartition(b"\n")
        return [json.loads(line) for line in whole.splitlines()]

    def got(self, method: str, name: str = "up") -> list[Any]:
        """The params of what it got by this method."""
        return [line.get("params") for line in self.lines(name) if line.get("method") == method]

    def starts(self, name: str = "up") -> int:
        return sum("started" in line for line in self.lines(name))

    async def gets(self, method: str, times: int = 1, name: str = "up") -> list[Any]:
        """The same, once there are so many."""
        return await comes_true(lambda: got if len(got := self.got(method, name)) >= times else [])

    @asynccontextmanager
    async def web(self) -> AsyncIterator[Web]:
        """The same mcpzip over HTTP."""
        listening, warnings = take(read_address("127.0.0.1:0")), list[str]()
        served = HttpServer(self.endpoint, LOCAL, warnings.append, Limits())
        done, ready = asyncio.Event(), asyncio.Event()
        serving = asyncio.create_task(served.serve(listening, done, ready.set, lambda: None))
        try:
            await ready.wait()
            yield Web(listening.getsockname()[1])
        finally:
            done.set()
            async with asyncio.timeout(PATIENCE):
                await serving
        assert warnings == []


@asynccontextmanager
async def bridged(folder: Path, *eras: str, server: Json | None = None, **keys: Any) -> AsyncIterator[Bridge]:
    """mcpzip in front of an upstream of each of these eras (legacy): "up", "up2" and so on. server: more of
    their configs.
    """
    names = [f"up{number if number > 1 else ''}" for number in range(1, len(eras or (0,)) + 1)]
    others = {
        name: {**upstream(folder, name, era), **(server or {})}
        for name, era in zip(names, eras or ("legacy",), strict=True)
    }
    async with proxy_of(folder, others=others, **{"expose": "direct", **keys}) as proxy:
        bridge = Bridge(folder, proxy)
        try:
            yield bridge
        finally:
            for session in bridge.sessions:
                session.end()
                await session.finish(0.0)


def give_up_the_parked(bridge: Bridge) -> None:
    """What happens when nobody comes back, in its time, for the one call that waits for its client."""
    (handle,) = bridge.proxy._pipeline.parked._calls
    bridge.proxy._pipeline.parked._abandon(handle)


def text_of(answer: Json) -> Any:
    """What the upstream has to say of a call: the answers it got."""
    assert "result" in answer, answer
    return json.loads(answer["result"]["content"][0]["text"])


def questions(answer: Json) -> Json:
    """The questions of an ``input_required``."""
    result = answer["result"]
    assert result["resultType"] == "input_required", answer
    return result["inputRequests"]


def state_of(answer: Json) -> str:
    state = answer["result"]["requestState"]
    assert isinstance(state, str)
    return state


def again(wire: Wire, do: object, asked: Json, *answers: Json, **more: object) -> int:
    """The call made again, with ``answers`` to the questions in their order."""
    given = dict(zip(questions(asked), answers, strict=False))
    return wire.send_call(do, inputResponses=given, requestState=state_of(asked), **more)


async def resumed(wire: Wire, do: object, asked: Json, *answers: Json) -> Json:
    return await wire.answer(again(wire, do, asked, *answers))


def parked(bridge: Bridge) -> int:
    return len(bridge.proxy._pipeline.parked)


async def refused(wire: Wire, do: object, state: object, **more: object) -> Json:
    answer = await wire.call(do, inputResponses={}, requestState=state, **more)
    assert answer["error"]["code"] == -32602, answer
    assert "requestState" in answer["error"]["message"]
    return answer


def log(level: str, data: object) -> list[object]:
    return ["say", "notifications/message", {"level": level, "data": data}]
