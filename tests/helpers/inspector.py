"""The Inspector, the protocol's own debugging client, as the two commands it has for scripts.

The rule: it is the referee, and not ours. ``--cli`` makes one request a run. ``mcpdo`` opens a connection
that lives on in a daemon, and so can be asked by the server, hear news and take a call back. Both take their
servers from a file of `mcpServers`, as their users would write it.
"""

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self

from official import NotInstalledError, node

SUITE = Path(__file__).parents[1] / "suite"
Json = dict[str, Any]

CLIENTS = SUITE / "node_modules" / "@modelcontextprotocol" / "inspector" / "clients"
PATIENCE = 60.0  # s; what takes this long is broken
_POLL = 0.02  # s


def missing() -> str | None:
    """What isn't there and how to get it; None when the Inspector can be run."""
    try:
        node()
    except NotInstalledError as error:
        return str(error)
    if not CLIENTS.is_dir():
        return "the Inspector is not installed: npm ci --prefix tests/suite --ignore-scripts"
    return None


@dataclass(frozen=True)
class Answer:
    """What one run printed: ``result``, or ``error`` (code, message), or both; and its exit code."""

    code: int
    result: Json
    error: Json

    @property
    def text(self) -> str:
        """The text of a tool's result."""
        (part,) = self.result["content"]
        return str(part["text"])


@dataclass(frozen=True)
class Inspector:
    """Both commands. servers: the file of servers it is told to use; home: where it keeps what is its own."""

    servers: Path
    home: Path

    def ask(self, server: str, era: str, method: str, *words: str) -> Answer:
        """One request, over a connection of its own."""
        told = ["--config", str(self.servers), "--server", server, "--protocol-era", era]
        return self._cli("--method", method, *told, *words)

    @contextmanager
    def connection(self, server: str, era: str) -> Iterator["Connection"]:
        """``mcpdo`` with one connection and a daemon of its own."""
        with tempfile.TemporaryDirectory(prefix="mcpdo-") as daemon:  # its socket wants a short path
            connection = Connection(self, server, daemon)
            try:
                yield connection.opened(era)
            finally:
                connection.command("daemon", "stop")

    def _cli(self, *words: str) -> Answer:
        script = CLIENTS / "launcher" / "build" / "index.js"
        return _answer(self._run([node(), str(script), "--cli", *words, "--format", "json", "-q"]))

    def environment(self, **more: str) -> dict[str, str]:
        """What both commands are run in."""
        kept = {**os.environ, "HOME": str(self.home), "USERPROFILE": str(self.home)}
        quicker = {"NODE_COMPILE_CACHE": str(self.home / "compiled")}
        return {**kept, **quicker, "MCP_INSPECTOR_SECRET_STORE": "file", **more}

    def _run(self, words: list[str], **more: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
            env=self.environment(**more),
        )


class Connection:
    """One connection of ``mcpdo``. era: as the Inspector says it is."""

    def __init__(self, inspector: Inspector, server: str, daemon: str) -> None:
        self._inspector, self._server, self._daemon = inspector, server, daemon
        self.era = ""

    def opened(self, era: str) -> Self:
        """Connects."""
        told = ["--config", str(self._inspector.servers), "--era", era]
        self.era = self.command("connect", self._server, *told).result["protocolEra"]
        return self

    def command(self, *words: str) -> Answer:
        """One command, run to its end. What it prints is its result."""
        done = self._inspector._run(self._words(words), MCP_INSPECTOR_DAEMON_DIR=self._daemon)
        return _answer(done, bare=True)

    def call(self, tool: str, arguments: Json | None = None) -> Answer:
        """`tools/call`; a call in which the user is asked something gives the question."""
        return self.on("tools/call", *_call(tool, arguments))

    def execute(self, name: str, arguments: Json | None = None) -> Answer:
        """The same through `execute_tool`."""
        return self.call("execute_tool", {"name": name, "arguments": arguments or {}})

    def reply(self, asked: Answer, *words: str) -> Answer:
        """The end of the call in which the user was ``asked``."""
        return self.command(
            "elicitation/respond", asked.result["elicitationPending"]["elicitationId"], *words
        )

    def on(self, *words: str) -> Answer:
        """A command on this connection."""
        return self.command(f"@{self._server}", *words)

    @contextmanager
    def hearing(self, *words: str) -> Iterator["Running"]:
        """A command that goes on printing until it is told to stop."""
        with tempfile.TemporaryFile("w+", encoding="utf-8") as out:
            process = subprocess.Popen(
                self._words((f"@{self._server}", *words)),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.DEVNULL,
                env=self._inspector.environment(MCP_INSPECTOR_DAEMON_DIR=self._daemon),
            )
            try:
                yield Running(process, out)
            finally:
                process.terminate()
                process.wait(PATIENCE)

    @contextmanager
    def calling(self, tool: str, arguments: Json | None = None) -> Iterator[None]:
        """`tools/call` at a terminal, taken back with Ctrl-C at the end of the block."""
        ours, terminal = os.openpty()
        process = subprocess.Popen(
            self._words((f"@{self._server}", "tools/call", *_call(tool, arguments)), "text"),
            stdin=terminal,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=self._inspector.environment(MCP_INSPECTOR_DAEMON_DIR=self._daemon),
        )
        try:
            yield
            process.send_signal(signal.SIGINT)
            assert process.wait(PATIENCE) != 0
        finally:
            process.kill()
            process.wait()
            os.close(terminal)
            os.close(ours)

    def _words(self, words: tuple[str, ...], form: str = "json") -> list[str]:
        return [node(), str(CLIENTS / "mcpdo" / "build" / "mcp-bin.js"), *words, "--format", form]


@dataclass(frozen=True)
class Running:
    """A command under way, and what it has printed so far."""

    process: "subprocess.Popen[bytes]"
    out: IO[str]

    def said(self) -> list[Json]:
        """Every object that is complete."""
        self.out.seek(0)
        return _objects(self.out.read())

    def says(
        self, wanted: Callable[[list[Json]], bool], meanwhile: Callable[[], object] = lambda: None
    ) -> None:
        """Waits until what it has said is ``wanted``; ``meanwhile`` is done before each look."""
        deadline = time.monotonic() + PATIENCE
        while not wanted(self.said()):
            assert self.process.poll() is None, f"it ended; it said {self.said()}"
            assert time.monotonic() < deadline, f"it said no more than {self.said()}"
            meanwhile()
            time.sleep(_POLL)


def _call(tool: str, arguments: Json | None) -> list[str]:
    return ["--tool-name", tool, "--tool-args-json", json.dumps(arguments or {})]


def _answer(done: "subprocess.CompletedProcess[str]", *, bare: bool = False) -> Answer:
    """bare: whether the result stands by itself on stdout."""
    printed = _objects(done.stdout)
    result = printed[0] if printed else {}
    complaints = [part["error"] for part in _objects(done.stderr) if "error" in part]
    assert printed or complaints, done.stdout + done.stderr
    return Answer(
        done.returncode,
        result if bare else result.get("result", result),
        complaints[-1] if complaints else {},
    )


def _objects(text: str) -> list[Json]:
    """The JSON objects in ``text`` that begin a line, as far as they are complete."""
    found, at, decoder = [], 0, json.JSONDecoder()
    while (at := text.find("{", at)) >= 0:
        if at and text[at - 1] != "\n":
            at += 1
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except ValueError:
            break
        found.append(value)
    return found
