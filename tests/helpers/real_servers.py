"""Third-party MCP servers and the small world they act on: a folder, a memory file, a Git repository.

The rule: the world can be put back as it was, so that a call can be made twice, once directly and once
through mcpzip, and find the same things both times.
"""

import base64
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from helpers.json_client import Json
from mcpzip_conformance.http_subject import free_port

HERE = Path(__file__).parents[1] / "e2e"
NODE_MODULES = HERE / "node_modules"
NPM_CI = "npm ci --prefix tests/e2e"

_START_TIMEOUT = 60.0  # s
_POLL = 0.02  # s
_PORT_TRIES = 5
_LONG_AGO = 1_700_000_000  # Unix s; the time stamp of every file
_GIT_ENV = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_NAME": "Ada Lovelace" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_EMAIL": "ada@example.org" for who in ("AUTHOR", "COMMITTER")},
    **{f"GIT_{who}_DATE": "2026-01-02T03:04:05+00:00" for who in ("AUTHOR", "COMMITTER")},
}
_DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
_FILES: Mapping[str, bytes] = {
    "README.md": "# Nachlaß\n\nA folder with “odd” names — and tabs\t.\n".encode(),
    "dot.png": _DOT,
    "data.bin": bytes(range(256)),
    "notes/todo.txt": b"milk\nbread\nbatteries\nrope\n",
    "notes/deep/old name.md": "naïve café\n".encode(),
}
_MEMORY = (
    '{"type":"entity","name":"Ada","entityType":"person","observations":["writes programs","likes poetry"]}\n'
    '{"type":"entity","name":"Engine","entityType":"machine","observations":["is made of brass"]}\n'
    '{"type":"relation","from":"Ada","to":"Engine","relationType":"programs"}\n'
)
_PASSED_ON = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
_SETTLED = {"LC_CTYPE": "C.UTF-8"}  # Python exports this one itself where the locale is C (PEP 538)


class RealWorld:
    """The world in ``root``. entries: the ``mcpServers`` of a config that has all the servers in it."""

    def __init__(self, root: Path) -> None:
        self.files, self.memory, self.repo = root / "files", root / "memory.jsonl", root / "repo"
        self.home = root / "home"
        self.home.mkdir()
        self._pristine = root / "pristine"
        self._make_repository()
        self.files.mkdir()
        self.restore()
        self.entries: dict[str, Json] = {}

    @property
    def environment(self) -> dict[str, str]:
        """What mcpzip is started in: a home of its own and no more than it needs, as clients start it; so the
        daemon serves.
        """
        wanted = ("PATH", "SYSTEMROOT", "TEMP", "TMP")
        kept = {key: os.environ[key] for key in wanted if key in os.environ}
        return {**kept, "HOME": str(self.home), "USERPROFILE": str(self.home)}

    def restore(self) -> None:
        """Puts everything back as it was in the beginning."""
        for left in self.files.iterdir():
            shutil.rmtree(left) if left.is_dir() else left.unlink()
        for name, content in _FILES.items():
            path = self.files / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        for path in (*self.files.rglob("*"), self.files):
            os.utime(path, (_LONG_AGO, _LONG_AGO))
        self.memory.write_text(_MEMORY, "utf-8")
        shutil.rmtree(self.repo, ignore_errors=True)
        shutil.copytree(self._pristine, self.repo)

    def _make_repository(self) -> None:
        self._pristine.mkdir()
        story, plan = self._pristine / "story.txt", self._pristine / "plan.txt"
        story.write_bytes(b"Once upon a time\n")
        self._git("init", "--quiet", "--initial-branch", "main")
        self._git("add", ".")
        self._git("commit", "--quiet", "-m", "Begin")
        self._git("branch", "draft")
        story.write_bytes(b"Once upon a time\nthere was a proxy.\n")
        self._git("commit", "--quiet", "-am", "Go on – “slowly”")
        plan.write_bytes(b"staged\n")
        self._git("add", "plan.txt")
        story.write_bytes(b"Once upon a time\nthere was a fast proxy.\n")
        (self._pristine / "new.txt").write_bytes(b"not added\n")

    def _git(self, *words: str) -> None:
        subprocess.run(["git", *words], cwd=self._pristine, env={**os.environ, **_GIT_ENV}, check=True)

    def add_python_servers(self) -> None:
        """mcp-server-time and mcp-server-git, from this Python's packages."""
        self.entries["time"] = _python("mcp_server_time", "--local-timezone", "Europe/Paris")
        self.entries["git"] = {**_python("mcp_server_git", "--repository", str(self.repo)), "env": _GIT_ENV}

    @contextmanager
    def npm_servers(self, logs: Path) -> Iterator[None]:
        """The three of package.json; the two that listen on a port run until the block ends."""
        self.add_node_servers()
        with ExitStack() as running:
            http = running.enter_context(_listening("streamableHttp", logs))
            self.entries["everything-http"] = {"type": "http", "url": f"http://127.0.0.1:{http}/mcp"}
            sse = running.enter_context(_listening("sse", logs))
            self.entries["everything-sse"] = {"type": "sse", "url": f"http://127.0.0.1:{sse}/sse"}
            yield

    def add_node_servers(self) -> None:
        """The three of package.json, over stdio."""
        everything = node_entry("everything")
        self.entries["everything"] = {
            **everything,
            "args": [*everything["args"], "stdio"],
            # It prints its environment: what one starter might add and another not is settled here.
            "env": {
                **{name: os.environ.get(name, "") for name in _PASSED_ON},
                **_SETTLED,
                "HOME": str(self.home),
            },
        }
        self.entries["filesystem"] = node_entry("filesystem", str(self.files))
        self.entries["memory"] = {**node_entry("memory"), "env": {"MEMORY_FILE_PATH": str(self.memory)}}


def _python(module: str, *args: str) -> Json:
    return {"command": sys.executable, "args": ["-m", module, *args]}


def node_entry(server: str, *args: str) -> Json:
    """The entry of one of the servers of package.json."""
    script = NODE_MODULES / "@modelcontextprotocol" / f"server-{server}" / "dist" / "index.js"
    return {"command": shutil.which("node") or "node", "args": [str(script), *args]}


@contextmanager
def _listening(mode: str, logs: Path) -> Iterator[int]:
    """The everything server on a free port, which it gives.

    The server can't be told to choose its port and to say which: a free one is asked of the system, and
    another one should somebody take it in between.
    """
    for attempt in range(_PORT_TRIES):
        port = free_port()
        log = logs / f"everything-{mode}-{attempt}.log"
        with log.open("wb") as out:
            entry = node_entry("everything", mode)
            process = subprocess.Popen(
                [entry["command"], *entry["args"]],
                env={**os.environ, "PORT": str(port)},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        try:
            if _is_up(process, port, log):
                yield port
                return
        finally:
            process.terminate()
            process.wait()
    raise AssertionError(f"server-everything {mode} did not start: {log.read_text('utf-8', 'replace')}")


def _is_up(process: "subprocess.Popen[bytes]", port: int, log: Path) -> bool:
    """Waits until it says so and takes connections; False when it ended instead."""
    deadline = time.monotonic() + _START_TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        if b"on port %d" % port in log.read_bytes():
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                pass
            else:
                return process.poll() is None
        time.sleep(_POLL)
    return False
