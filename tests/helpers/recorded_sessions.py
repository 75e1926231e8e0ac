"""Sessions with fakes that hypothesis draws, and a client that plays them."""

import json
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from hypothesis import strategies as st

KEY = "io.modelcontextprotocol/"
FORM = '{"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}'
_DEADLINE = 30.0

TOOLS: Sequence[dict[str, Any]] = (
    {"name": "echo"},
    {"name": "counts", "result": {"text": "call {#}", "fill": True}},
    {"name": "odd", "result": {"raw": '{"content": [] , "n":1.0,"s":"\\u00e9"}'}},
    {"name": "slow", "result": {"text": "done", "delay": 0.03, "progress": 3}},
    {"name": "logs", "result": {"log": [{"data": "one", "wait": 0.01}, {"data": "two"}], "text": "logged"}},
    {
        "name": "asks",
        "result": {
            "ask": {"method": "elicitation/create", "params": FORM},
            "text": "{question.action}",
            "fill": True,
        },
    },
    {"name": "large", "result": {"size": 5_000}},
    {"name": "fails", "result": {"error": {"code": -32000, "message": "no", "data": '{"n":1.0}'}}},
    {"name": "changes", "result": {"text": "changed", "changes": ["tools"]}},
    {"name": "junk"},
    {"name": "not-utf8"},
    {"name": "twice"},
    {"name": "wrong-id"},
    {"name": "torn"},
    {"name": "silent"},
    {"name": "held", "result": {"hold": True}},
    {"name": "dies", "result": {"text": "half of this"}},
)
FAULTS: Sequence[dict[str, Any]] = (
    {"kind": "junk", "tool": "junk"},
    {"kind": "invalid-utf8", "tool": "not-utf8"},
    {"kind": "duplicate", "tool": "twice"},
    {"kind": "wrong-id", "tool": "wrong-id"},
    {"kind": "torn", "tool": "torn"},
    {"kind": "silence", "tool": "silent"},
)
_ANSWERS = {"silent": 0, "held": 0, "twice": 2, "dies": 0}
"""By tool: the answers to one call, if that isn't one."""


class Drawn(NamedTuple):
    """A session: the scenario of its server, and its client. batches: the calls that the client sends at
    once, each a tool with its arguments; it waits for the answers to one batch before the next."""

    scenario: dict[str, Any]
    modern: bool
    batches: Sequence[Sequence[tuple[str, dict[str, Any]]]]
    cancels: bool


class Transcript(NamedTuple):
    """All that a client got."""

    output: bytes
    errors: bytes
    code: int


@st.composite
def drawn_sessions(draw: st.DrawFn) -> Drawn:
    dies = draw(st.sampled_from([None, "before", "middle", "after"]))
    tools = [tool["name"] for tool in TOOLS if tool["name"] != "dies"]
    calls = st.tuples(
        st.sampled_from(tools), st.dictionaries(st.sampled_from("abc"), st.integers(0, 3), max_size=2)
    )
    batches: list[list[tuple[str, dict[str, Any]]]] = draw(
        st.lists(st.lists(calls, min_size=1, max_size=4), min_size=1, max_size=5)
    )
    faults = list(FAULTS)
    if dies:
        faults.append({"kind": "crash", "tool": "dies", "when": dies, "code": 3, "text": "gone"})
        batches = [*batches, [("dies", {})]]
    faults += [{"kind": kind} for kind in draw(st.sets(st.sampled_from(["banner", "stderr"])))]
    scenario = {"name": "drawn", "tools": list(TOOLS), "faults": faults, "page_size": 4}
    return Drawn(scenario, draw(st.booleans()), batches, draw(st.booleans()))


class _Client:
    """The client of a drawn session, over stdio."""

    def __init__(self, process: "subprocess.Popen[bytes]", modern: bool) -> None:
        self._process, self._modern = process, modern
        self.heard: list[bytes] = []
        self._answers = self._expected = 0
        self._number = 0
        self._open: dict[object, dict[str, Any]] = {}

    def say(self, *messages: dict[str, Any]) -> None:
        assert self._process.stdin
        with suppress(BrokenPipeError):
            lines = (json.dumps({"jsonrpc": "2.0", **message}) for message in messages)
            self._process.stdin.write("".join(f"{line}\n" for line in lines).encode())
            self._process.stdin.flush()

    def request(self, method: str, params: dict[str, Any], answers: int = 1) -> dict[str, Any]:
        self._number += 1
        meta: dict[str, Any] = {"progressToken": f"t{self._number}"} if self._number % 2 else {}
        if self._modern:
            capabilities = {"elicitation": {"form": {}}}
            meta |= {f"{KEY}protocolVersion": "2026-07-28", f"{KEY}clientCapabilities": capabilities}
            meta |= {f"{KEY}logLevel": "debug"}
        self._expected += answers
        asked = {"id": self._number, "method": method, "params": {**params, "_meta": meta}}
        self._open[self._number] = asked
        return asked

    def wait(self) -> bool:
        """Reads until every expected answer is there. Returns whether the server still runs."""
        assert self._process.stdout
        while self._answers < self._expected:
            line = self._process.stdout.readline()
            if not line.endswith(b"\n"):
                self.heard.append(line)
                return False
            self.heard.append(line)
            self._hear(line)
        return True

    def _hear(self, line: bytes) -> None:
        try:
            message = json.loads(line)
        except ValueError:
            return
        if message.get("method") == "elicitation/create":
            self.say({"id": message["id"], "result": {"action": "accept", "content": {}}})
        elif "id" in message and "method" not in message:
            self._answers += 1
            result = message.get("result", {})
            if result.get("resultType") == "input_required":
                given = {name: {"action": "decline"} for name in result["inputRequests"]}
                again = {"inputResponses": given, "requestState": result["requestState"]}
                asked = self._open[message["id"]]["params"]
                self.say(self.request("tools/call", {**asked, **again}))


def talk(command: Sequence[str], drawn: Drawn, env: dict[str, str]) -> Transcript:
    """What the client of ``drawn`` gets from the server that ``command`` runs."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(list(command), stdin=pipe, stdout=pipe, stderr=pipe, env=env)
    late = threading.Timer(_DEADLINE, process.kill)
    late.start()
    try:
        client = _Client(process, drawn.modern)
        _play(client, drawn)
        assert process.stdin
        assert process.stdout
        assert process.stderr
        with suppress(BrokenPipeError):
            process.stdin.close()
        output, errors = b"".join(client.heard) + process.stdout.read(), process.stderr.read()
        return Transcript(output, errors, process.wait())
    finally:
        late.cancel()
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream
            with suppress(BrokenPipeError):
                stream.close()


def _play(client: _Client, drawn: Drawn) -> None:
    if not drawn.modern:
        opening = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}}
        client.say(client.request("initialize", {**opening, "clientInfo": {"name": "c", "version": "1"}}))
        if not client.wait():
            return
        client.say({"method": "notifications/initialized"})
    client.say(client.request("tools/list", {}), client.request("tools/list", {"cursor": "page-2"}))
    if not client.wait():
        return
    for batch in drawn.batches:
        asked = [
            client.request("tools/call", {"name": name, "arguments": arguments}, _ANSWERS.get(name, 1))
            for name, arguments in batch
        ]
        client.say(*asked)
        if any(name == "dies" for name, _ in batch):
            client.say()
        elif not client.wait():
            return
        if drawn.cancels:
            held = [it for it, (name, _) in zip(asked, batch, strict=True) if name == "held"]
            client.say(
                *({"method": "notifications/cancelled", "params": {"requestId": it["id"]}} for it in held)
            )
