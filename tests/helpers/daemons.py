"""`mcpzip serve` with a daemon: starts clients, asks the daemon, and ends it.

with daemon_home(tmp_path, monkeypatch) as home:
    with home.serving() as client:
        assert client.execute("up__say", {"what": "x"}).text == …
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from helpers.driver import (
    PATIENCE,
    ROOT,
    Client,
    Json,
    alive,
    command,
    ended,
    environment,
    until,
    write_config,
)

from mcpzip.server.daemon import protocol
from mcpzip.system import local_socket

_SERVER = """
import json, os, sys, threading, time
log, lock = sys.argv[1], threading.Lock()
def note(**said):
    with open(log, "a") as file:
        file.write(json.dumps({"pid": os.getpid(), **said}) + "\\n")
def say(**message):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def text(id, value):
    say(id=id, result={"content": [{"type": "text", "text": json.dumps(value)}]})
def wait(id, arguments):
    while not os.path.exists(arguments["until"]):
        time.sleep(0.01)
    text(id, {"pid": os.getpid()})
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("say", "wait", "where")]
note(started=os.getcwd(), token=os.environ.get("TOKEN"))
for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}, "logging": {}}
        say(id=id, result={"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list":
        say(id=id, result={"tools": TOOLS})
    elif method == "tools/call":
        name, arguments = params["name"], params.get("arguments") or {}
        note(call=name, arguments=arguments)
        if name == "wait":
            threading.Thread(target=wait, args=(id, arguments), daemon=True).start()
        else:
            text(id, {"pid": os.getpid(), "folder": os.getcwd(), "token": os.environ.get("TOKEN"), **arguments})
    elif method == "notifications/cancelled":
        note(cancelled=params)
    elif id is not None:
        say(id=id, error={"code": -32601, "message": "no"})
"""  # noqa: E501 - a program


class Home:
    """A config with the server ``up``, and what its processes did. config: the path of the file."""

    def __init__(self, folder: Path, **keys: Any) -> None:
        """keys: of the config. ``up``: more keys of the server's entry."""
        self.folder = folder
        self.log = folder / "server.log"
        (folder / "server.py").write_text(_SERVER)
        up = {
            "command": sys.executable,
            "args": [str(folder / "server.py"), str(self.log)],
            **keys.pop("up", {}),
        }
        self.config = write_config(folder, others={"up": up, **keys.pop("others", {})}, **keys)
        self.socket, self.lock = protocol.socket_and_lock(str(self.config), "")

    # --- agents

    @contextmanager
    def serving(
        self,
        *,
        begin: bool = True,
        cwd: Path | None = None,
        constants: Json | None = None,
        version: str = "",
        words: tuple[str, ...] = (),
        **variables: str,
    ) -> Iterator[Client]:
        """`mcpzip serve` for one agent. constants: of `server.shim`, replaced in its process. version: what
        its process, and the daemon that it starts, take for the version of mcpzip.
        """
        if version:
            path = self.folder / f"version-{version}"
            path.mkdir(exist_ok=True)
            (path / "sitecustomize.py").write_text(f"import mcpzip\nmcpzip.__version__ = {version!r}\n")
            variables["PYTHONPATH"] = os.pathsep.join([str(path), str(ROOT)])
        argv = command("serve", *words, "--config", str(self.config))
        if constants is not None:
            argv = [sys.executable, "-c", with_constants(constants, str(self.config))]
        with (self.folder / "stderr.log").open("ab") as errors:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment(**variables),
                cwd=cwd or self.folder,
            )
        with ended(process):
            client = Client(process)
            yield client.begin() if begin else client
            if process.poll() is None:
                client.leave()

    # --- the daemon

    @contextmanager
    def running(self, module: str, **constants: object) -> Iterator[int]:
        """A daemon in whose process the constants of ``module`` are replaced; its process id. It is ended."""
        lines = [f"import {module} as changed"]
        lines += [f"changed.{name} = {value!r}" for name, value in constants.items()]
        lines += [
            "from mcpzip.server.daemon.main import main",
            f"raise SystemExit(main({str(self.config)!r}))",
        ]
        with (self.folder / "stderr.log").open("ab") as errors:
            process = subprocess.Popen(
                [sys.executable, "-c", "\n".join(lines)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment(),
                cwd=self.folder,
            )
        with ended(process):
            until(lambda: self.pid == process.pid)
            yield process.pid

    def ask(self, kind: str, **said: object) -> Any:
        """What the daemon answers to a command; None if there is none."""
        connection = local_socket.connect(self.socket)
        if connection is None:
            return None
        with closing(connection):
            connection.settimeout(PATIENCE)
            connection.sendall(protocol.greeting(kind, said))
            line = b""
            while not line.endswith(b"\n"):
                data = connection.recv(1 << 16)
                if not data:
                    return None
                line += data
        return protocol.read_notice(line)[1]

    @property
    def pid(self) -> int | None:
        """The process id of the daemon, None if there is none."""
        with suppress(OSError):
            said = self.ask("ping")
            return None if said is None else said["pid"]
        return None

    def kill(self) -> None:
        """Kills the daemon, and waits until it has gone, and its sockets with it, which takes a moment
        longer.
        """
        pid = self.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        until(lambda: not alive(pid) and threads(pid) <= 1)

        def is_closed() -> bool:
            connection = local_socket.connect(self.socket)
            if connection is None:
                return True
            connection.close()
            return False

        until(lambda: is_closed() or self.pid not in (None, pid))

    def wait_for_end(self) -> None:
        """Waits until no daemon holds the lock."""

        def is_free() -> bool:
            lock = local_socket.take_lock(self.lock)
            if lock is not None:
                os.close(lock)
            return lock is not None

        until(is_free)

    def stop(self) -> None:
        """Ends the daemon, if there is one."""
        with suppress(OSError):
            self.ask("stop")
        if os.path.isdir(os.path.dirname(self.lock)):
            self.wait_for_end()

    # --- what the server did

    def noted(self, key: str) -> list[Json]:
        """The lines of the server's log with this key, without one that is being written."""
        whole, _, _ = (self.log.read_text() if self.log.exists() else "").rpartition("\n")
        lines = whole.splitlines()
        return [found for each in lines if key in (found := json.loads(each))]

    def calls(self, tool: str) -> list[Json]:
        """The arguments of the calls of this tool."""
        return [each["arguments"] for each in self.noted("call") if each["call"] == tool]

    def starts(self) -> int:
        """How many processes the server had so far."""
        return len(self.noted("started"))


@contextmanager
def daemon_home(
    folder: Path, monkeypatch: pytest.MonkeyPatch, *, loopback: bool = False, **keys: Any
) -> Iterator[Home]:
    """A `Home` in ``folder``, whose daemon and servers are gone at the end. loopback: where there is no Unix
    domain socket, as on Windows.
    """
    monkeypatch.delenv("MCPZIP_DAEMON", raising=False)
    if loopback:
        monkeypatch.setenv("MCPZIP_DAEMON", "loopback")
    home = Home(folder, **keys)
    try:
        yield home
    finally:
        home.stop()
    servers = [each["pid"] for each in home.noted("started")]
    until(lambda: not any(map(alive, servers)))


def threads(pid: int) -> int:
    """The threads of a process that are left, of which the last one closes its files; 0 if that can't be
    told.
    """
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0


def said(client: Client, tool: str = "say", **arguments: object) -> Json:
    """What ``up``'s tool answers."""
    found: Json = json.loads(client.execute(f"up__{tool}", arguments).text)
    return found


def say_often(client: Client, times: int) -> None:
    """So many calls of ``up``'s tool ``say``, some at a time."""
    for begin in range(0, times, 50):
        numbers = [client.send_call("up__say", {"n": n}) for n in range(begin, min(begin + 50, times))]
        for number in numbers:
            assert not client.answer(number).failed


def listen_as_nobody(path: str) -> None:
    """Leaves a socket at ``path`` whose process has ended."""
    left = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    left.bind(path)
    left.close()


def with_constants(constants: Json, config: str) -> str:
    """The program of a `mcpzip serve` with other constants."""
    lines = ["from mcpzip.server import shim"]
    lines += [f"shim.{name} = {value!r}" for name, value in constants.items()]
    return "\n".join([*lines, f"raise SystemExit(shim.main({config!r}))"])
