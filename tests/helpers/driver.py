"""A client at its plainest, for tests that read as scripts: the fakes are told their story, `serving` starts
`mcpzip serve` in front of them, and the client's side is played line by line.

    shop = fake_mcp(name="shop", tools=["pay"], faults=["crash"])
    with serving(tmp_path, shop) as client:
        assert "may have run" in client.execute("shop__pay", {"id": 7}).text
    assert len(shop.record.calls("pay")) == 1

What a client says and hears are the very bytes on the pipes; nothing here is of mcpzip's own making.
"""

import asyncio
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from textwrap import indent
from typing import Any, Self, TypeVar
from unittest.mock import patch

from helpers.event_loop_watchdog import short_turns, watched
from mcpzip_fakes.launch import FakeServer

from mcpzip.catalog import snapshot
from mcpzip.cli import commands
from mcpzip.config import Config, load, snapshot_path
from mcpzip.proxy.exchange import Client as Downstream
from mcpzip.proxy.exchange import Exchange
from mcpzip.proxy.proxy import Proxy
from mcpzip.proxy.refresh import QUIET
from mcpzip.transport.pool import Pool

Json = dict[str, Any]
T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
PATIENCE = 20.0
"""Seconds after which a test gives up on an answer; nothing takes nearly as long."""
LEGACY, MODERN = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
STAMP: Json = {
    f"{META}protocolVersion": MODERN,
    f"{META}clientCapabilities": {},
    f"{META}clientInfo": {"name": "test", "version": "1"},
}
INITIALIZE: Json = {
    "protocolVersion": LEGACY,
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


@dataclass(frozen=True)
class Answer:
    """One response, and its line as it came."""

    line: bytes

    @property
    def message(self) -> Json:
        return json.loads(self.line)

    @property
    def result(self) -> Json:
        message = self.message
        assert "result" in message, message
        return message["result"]

    @property
    def error(self) -> Json:
        message = self.message
        assert "error" in message, message
        return message["error"]

    @property
    def text(self) -> str:
        """The text of a tool's result."""
        return "\n".join(part["text"] for part in self.result["content"])

    @property
    def failed(self) -> bool:
        """Whether the tool reports an error."""
        return self.result.get("isError", False)

    @property
    def raw_result(self) -> bytes:
        """The bytes of the result, as they stand in the line."""
        head, found, rest = self.line.partition(b'"result":')
        assert found, self.line
        assert b'"error"' not in head
        return rest.rstrip()[:-1]


class Client:
    """Speaks JSON-RPC, a line a message, to a process. Every wait has a deadline and says what was seen."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process, self._ids = process, count(1)
        self.meta: Json | None = None
        self.heard: list[bytes] = []
        self._news = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout
        for line in self.process.stdout:
            with self._news:
                self.heard.append(line)
                self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()

    # What the client says

    def write(self, data: bytes) -> None:
        """Any bytes."""
        assert self.process.stdin
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def tell(self, method: str, params: Json | None = None) -> None:
        """A notification."""
        self.write(encoded({"jsonrpc": "2.0", "method": method, **({"params": params} if params else {})}))

    def send(self, method: str, params: Json | None = None) -> int:
        """A request; its id."""
        number = next(self._ids)
        if self.meta is not None:
            params = {**(params or {}), "_meta": {**self.meta, **(params or {}).get("_meta", {})}}
        message = {"jsonrpc": "2.0", "id": number, "method": method}
        self.write(encoded(message if params is None else {**message, "params": params}))
        return number

    def send_call(self, tool: str, arguments: Json, **meta: object) -> int:
        """`execute_tool`, not waited for; its id."""
        params: Json = {"name": "execute_tool", "arguments": {"name": tool, "arguments": arguments}}
        return self.send("tools/call", {**params, "_meta": meta} if meta else params)

    # What it hears

    def hears(self, wanted: Callable[[Json], bool], seconds: float = PATIENCE) -> Answer:
        """The first message, from the beginning on, that is ``wanted``."""
        deadline, seen = time.monotonic() + seconds, 0
        with self._news:
            while True:
                for line in self.heard[seen:]:
                    if wanted(json.loads(line)):
                        return Answer(line)
                seen = len(self.heard)
                assert not self._ended, f"it ended; heard {self.heard[-5:]}"
                left = deadline - time.monotonic()
                assert left > 0, f"not heard within {seconds:g} s; heard {self.heard[-5:]}"
                self._news.wait(left)

    def answer(self, number: object, seconds: float = PATIENCE) -> Answer:
        """The response to the request of this id."""
        return self.hears(lambda message: message.get("id") == number and "method" not in message, seconds)

    def notices(self, method: str) -> list[Json]:
        """The notifications of this method heard so far."""
        with self._news:
            messages = [json.loads(line) for line in self.heard]
        return [message for message in messages if message.get("method") == method]

    def all_heard(self) -> list[bytes]:
        """Every line until the process closes its end."""
        self._reader.join(PATIENCE)
        assert not self._reader.is_alive(), "it goes on talking"
        return list(self.heard)

    # Whole exchanges

    def ask(self, method: str, params: Json | None = None, seconds: float = PATIENCE) -> Answer:
        """One request, answered."""
        return self.answer(self.send(method, params), seconds)

    def begin(self) -> Self:
        """The legacy handshake."""
        assert self.ask("initialize", INITIALIZE).result["protocolVersion"] == LEGACY
        self.tell("notifications/initialized")
        return self

    def begin_modern(self) -> Self:
        """Nothing is said; but from now on every request carries its version."""
        self.meta = STAMP
        return self

    def use(self, tool: str, **arguments: object) -> Answer:
        """One of the tools that are listed."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def search(self, query: str, **more: object) -> str:
        """What the model reads."""
        return self.use("search_tools", query=query, **more).text

    def execute(self, tool: str, arguments: Json | None = None, **more: object) -> Answer:
        """`execute_tool`."""
        return self.use("execute_tool", name=tool, arguments=arguments or {}, **more)

    def status(self) -> str:
        """`proxy_status`."""
        return self.execute("proxy_status").text

    def finds(self, query: str, expected: str) -> str:
        """Search until ``expected`` is in the reply: the background goes on while we ask."""
        return until(lambda: text if expected in (text := self.search(query)) else "")

    # The end

    def leave(self) -> int:
        """Closes the pipe; the exit code."""
        assert self.process.stdin
        self.process.stdin.close()
        return self.process.wait(PATIENCE)

    def signal(self, number: int) -> int:
        """Sends a signal; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


def encoded(message: object) -> bytes:
    """A line."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def until(look: Callable[[], T], seconds: float = PATIENCE) -> T:
    """What ``look`` gives once it is true."""
    deadline = time.monotonic() + seconds
    while not (found := look()):
        assert time.monotonic() < deadline, f"it did not come to it within {seconds:g} s"
        time.sleep(0.01)
    return found


def write_config(folder: Path, *fakes: FakeServer, others: Mapping[str, Json] = {}, **keys: object) -> Path:
    """``config.json`` in ``folder`` with these fakes, ``others`` by name, and any other key of a config."""
    servers = {fake.name: fake.config for fake in fakes} | dict(others)
    config = folder / "config.json"
    if "MCPZIP_TEST_THROUGH_DAEMON" in os.environ:
        keys.setdefault("daemon", {"idle_minutes": 0})
    config.write_text(json.dumps({"mcpServers": servers, **keys}), "utf-8")
    return config


def snapshot_of(config: Path) -> Json:
    """What is kept of its servers, by name; {} while nothing is."""
    file = config.parent / "cache" / "tools.json"
    return json.loads(file.read_bytes())["servers"] if file.exists() else {}


_SCRIPT = """
import json, os, signal, subprocess, sys, time
def say(**message): print(json.dumps({{"jsonrpc": "2.0", **message}}), flush=True)
def answer(result): say(id=m["id"], result=result)
def greet(): answer({{"protocolVersion": "2025-11-25", "capabilities": {{}}, "serverInfo": {{"name": "s"}}}})
def refuse(): say(id=m["id"], error={{"code": -32601, "message": "no"}})
{before}
for line in sys.stdin:
    m = json.loads(line)
    method = m.get("method")
{each}
"""


def scripted(each: str, before: str = "") -> Json:
    """A server of a few lines, for what no scenario can say: ``each`` runs for each message ``m``."""
    return {
        "command": sys.executable,
        "args": ["-c", _SCRIPT.format(before=before, each=indent(each, "    "))],
    }


LEGACY_SCRIPT = """
if method == "server/discover": refuse()
elif method == "initialize": greet()
elif method == "tools/list": answer({"tools": [{"name": "pay", "inputSchema": {"type": "object"}}]})
"""
"""The beginning of a legacy server with one tool; what calls do comes after it."""


def config_of(folder: Path, *fakes: FakeServer, **keys: Any) -> Config:
    """The same, read."""
    return load(str(write_config(folder, *fakes, **keys)), os.environ)


@asynccontextmanager
async def pool_of(
    folder: Path, *fakes: FakeServer, others: Mapping[str, Json] = {}, **options: Any
) -> AsyncIterator[Pool]:
    """The connections alone, in this process."""
    keys = {"idle_timeout": 60.0, **options}
    pool = Pool(config_of(folder, *fakes, others=others).servers.values(), **keys)
    with nothing_unheard():
        try:
            yield pool
        finally:
            await pool.close()


@asynccontextmanager
async def proxy_of(
    folder: Path,
    *fakes: FakeServer,
    listed: bool = True,
    warn: Callable[[str], None] = lambda warning: None,
    **keys: Any,
) -> AsyncIterator[Proxy]:
    """The proxy without its downstream, in this process. listed: whether every server has been asked."""
    config = config_of(folder, *fakes, **keys)
    catalog, _ = snapshot.load(snapshot_path(config.path), config.path)
    proxy = Proxy(config, catalog, warn)
    with nothing_unheard():
        try:
            if listed:
                await proxy.refresh()
            yield proxy
        finally:
            await proxy.close()


@contextmanager
def nothing_unheard() -> Iterator[None]:
    """No error goes unhandled in the event loop: a task's, a callback's, a future's that nobody looks at."""
    heard: list[Json] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda loop, context: heard.append(context))
    try:
        yield
    finally:
        loop.set_exception_handler(None)
    assert heard == [], [(context.get("message"), repr(context.get("exception"))) for context in heard]


def exchange(meta: bytes | None = None, on_progress: Callable[[bytes], None] | None = None) -> Exchange:
    """A request of a client that is of no era, asks nothing and can't be asked."""

    def tell(method: str, params: bytes | None) -> None:
        if on_progress is not None and method == "notifications/progress" and params is not None:
            on_progress(params)

    if on_progress is not None:
        meta = b'{"progressToken":"heard"}'
    return Exchange(Downstream(), params=None if meta is None else b'{"_meta":%b}' % meta, notify=tell)


async def said_by(proxy: Proxy, tool: str, arguments: Json, **more: Any) -> Json:
    """The result of one of mcpzip's own tools."""
    return json.loads(await proxy.call(tool, json.dumps(arguments).encode(), exchange(**more)))


async def executed(proxy: Proxy, name: str, arguments: Json | None = None, **more: Any) -> Json:
    """The result of `execute_tool`."""
    return await said_by(proxy, "execute_tool", {"name": name, "arguments": arguments or {}, **more})


def text_of(result: Json) -> str:
    """What the model reads."""
    return "\n".join(part["text"] for part in result["content"])


async def comes_true(look: Callable[[], T], seconds: float = PATIENCE) -> T:
    """`until`, for the event loop."""
    async with asyncio.timeout(seconds):
        while not (found := look()):  # noqa: ASYNC110 - what is looked at has no event
            await asyncio.sleep(0.005)
    return found


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "mcpzip", *words]


@contextmanager
def serving(
    folder: Path, *fakes: FakeServer, begin: bool = True, cwd: Path | None = None, **keys: Any
) -> Iterator[Client]:
    """`mcpzip serve` on ``folder``'s config, which is written when there are ``fakes`` or ``keys``.

    cwd: the folder it is started in. begin: whether the legacy handshake is done. The process is killed at
    the end if it is still there. Where a fake plays a fault, no turn of the event loop may have taken long.
    """
    config = write_config(folder, *fakes, **keys) if fakes or keys else folder / "config.json"
    with (folder / "stderr.log").open("ab") as errors:
        process = subprocess.Popen(
            command("serve", "--config", str(config)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=watched(environment(), folder / "turns"),
            cwd=cwd,
        )
    with short_turns(folder / "turns", *fakes), ended(process):
        client = Client(process)
        yield client.begin() if begin else client
        if process.poll() is None:
            client.leave()


@contextmanager
def ended(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Whatever happens inside, the process is gone afterwards and its pipes are closed."""
    try:
        yield
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass


def environment(**more: str) -> dict[str, str]:
    """Ours, with the project importable."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}


def run(*words: str, stdin: bytes = b"", **more: str) -> "subprocess.CompletedProcess[bytes]":
    """A command line of mcpzip, run to its end."""
    return subprocess.run(
        command(*words), input=stdin, capture_output=True, env=environment(**more), timeout=60, check=False
    )


def run_here(*words: str, stdin: bytes = b"", **more: str) -> "subprocess.CompletedProcess[bytes]":
    """`run` without a process, for tests of what a command does and prints, and not of how it is started."""
    with ExitStack() as stack:
        streams = [io.TextIOWrapper(stack.enter_context(tempfile.TemporaryFile())) for _ in range(3)]
        given, out, err = streams
        given.buffer.write(stdin)
        given.buffer.seek(0)
        for name, stream in zip(("stdin", "stdout", "stderr"), streams, strict=True):
            stack.enter_context(patch.object(sys, name, stream))
        stack.enter_context(patch.object(sys, "argv", ["mcpzip", *words]))
        stack.enter_context(patch.dict(os.environ, more))
        code = commands.run(list(words))
        said = []
        for stream in (out, err):
            stream.flush()
            stream.buffer.seek(0)
            said.append(stream.buffer.read())
    return subprocess.CompletedProcess(words, code, *said)


def alive(pid: int) -> bool:
    """Whether the process runs; one that only waits to be buried doesn't."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    if Path("/proc/self").exists():
        try:
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
        except (FileNotFoundError, ProcessLookupError):
            return False
    shown = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return shown.returncode == 0 and not shown.stdout.lstrip().startswith("Z")


def left_of(pids: list[int], seconds: float = 10.0) -> list[int]:
    """Those that still live ``seconds`` from now. It returns sooner when all are gone."""
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if alive(pid)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    return left


def family(*fakes: FakeServer) -> list[int]:
    """The processes of these fakes and what they forked, so far."""
    started = [line.pid for fake in fakes for line in fake.record.events("start")]
    forked = [int(str(line.detail["child"])) for fake in fakes for line in fake.record.events("grandchild")]
    return started + forked


def few_listings(stormy: FakeServer) -> bool:
    """Whether what a call's burst of `list_changed` brought about stayed within one listing each `QUIET`: one
    at its begin, one at its end, and one somebody else asked for.
    """
    called = stormy.record.received("tools/call")[0].time
    listed = [line.time for line in stormy.record.received("tools/list") if line.time > called]
    return len(listed) <= 3 + (listed[-1] - called) / QUIET
