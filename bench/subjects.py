"""The measured commands, and a folder with their config."""

import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bench.client import Client

HERE = Path(__file__).parent
UPSTREAM = str(HERE / "upstream.py")


def installed(given: str | None) -> str:
    """The `mcpzip` command: ``given``, else the one beside this interpreter, else the first on the path.

    Raises SystemExit if there is none.
    """
    name = "mcpzip.exe" if os.name == "nt" else "mcpzip"
    beside = Path(sys.executable).with_name(name)
    found = given or (str(beside) if beside.exists() else shutil.which(name))
    if found is None or not Path(found).exists():
        raise SystemExit("No mcpzip command: install it (pip install .) or give --mcpzip PATH.")
    return str(Path(found).absolute())


def interpreter_of(command: str) -> str:
    """The interpreter that ``command``, a script in a virtual environment, runs in."""
    name = "python.exe" if os.name == "nt" else "python"
    beside = Path(command).with_name(name)
    return str(beside) if beside.exists() else sys.executable


def upstream_argv(
    python: str, *, seed: int = 0, tools: int = 0, silent_while: Path | None = None, wait: float = 0
) -> list[str]:
    """How to start `bench/upstream.py`. wait: seconds until it reads."""
    argv = [python, "-I", "-S", UPSTREAM, "--seed", str(seed), "--tools", str(tools)]
    argv += ["--wait", str(wait)] if wait else []
    return argv if silent_while is None else [*argv, "--silent-while", str(silent_while)]


SEARCH = {"name": "search_tools", "arguments": {"query": "archive the invoice of a customer"}}
"""The params of a search that finds tools of the upstreams."""


_INDEXED_WITHIN = 60.0


class Site:
    """A folder with a config for ``mcpzip``, ``servers`` upstreams and ``tools`` tools over all of them.

    While the file `silence` exists every upstream reads everything and answers nothing.
    """

    def __init__(self, folder: Path, mcpzip: str, *, servers: int, tools: int) -> None:
        self.mcpzip, self.servers, self.tools = mcpzip, servers, tools
        self.config = folder / "config.json"
        self.silence = folder / "silence"
        python = interpreter_of(mcpzip)
        folder.mkdir(parents=True, exist_ok=True)
        configured = {}
        for number in range(servers):
            argv = upstream_argv(python, seed=number, tools=tools // servers, silent_while=self.silence)
            configured[f"up{number}"] = {"command": argv[0], "args": argv[1:]}
        self.config.write_text(json.dumps({"mcpServers": configured}))

    @property
    def argv(self) -> list[str]:
        """`mcpzip serve` on this config."""
        return [self.mcpzip, "serve", "--config", str(self.config)]

    def open(self, *, daemon: bool = False) -> Client:
        """daemon: whether the daemon serves it (`bench.daemons`), else a process of its own."""
        return Client(self.argv, environment(daemon=daemon))

    def warm(self) -> None:
        """Runs it once, until its files on disk contain every tool. Raises SystemExit."""
        with self.open() as client:
            client.initialize()
            client.call({"name": "execute_tool", "arguments": {"name": "proxy_refresh"}})
        snapshot = self.config.parent / "cache" / "tools.json"
        if self.tools and snapshot.read_bytes().count(b'"inputSchema"') < self.tools:
            raise SystemExit(f"{snapshot} does not hold {self.tools} tools")

    def index(self) -> None:
        """Runs it once more, until the index is on disk, which is so when it has the words and the meaning of
        every tool. Raises SystemExit.
        """
        file = self.config.parent / "cache" / f"{self.config.name}.index.bin"
        file.unlink(missing_ok=True)  # which may be of some servers only, if the first run ended early
        late = time.monotonic() + _INDEXED_WITHIN
        with self.open() as client:
            client.initialize()
            client.call(SEARCH)
            while not file.exists():
                if time.monotonic() > late:
                    raise SystemExit(f"{file} was not written")
                time.sleep(0.05)

    def add_dead(self) -> None:
        """Adds a server that never answers, and runs it once, so that a search has waited for it."""
        config = json.loads(self.config.read_text())
        config["mcpServers"]["dead"] = {"command": "sleep", "args": ["100000"]}
        self.config.write_text(json.dumps(config))
        with self.open() as client:
            client.initialize()
            client.call(SEARCH)

    def forget(self) -> None:
        """Removes its files of earlier runs."""
        shutil.rmtree(self.config.parent / "cache", ignore_errors=True)

    def silent(self, silent: bool) -> None:
        if silent:
            self.silence.touch()
        else:
            self.silence.unlink(missing_ok=True)


def environment(*, daemon: bool = False) -> Mapping[str, str]:
    """The environment without variables that change an interpreter's start. daemon: whether the daemon serves
    a `mcpzip serve`, else that process itself.
    """
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("PYTHON") and key != "MCPZIP_DAEMON"
    }
    return kept if daemon else {**kept, "MCPZIP_DAEMON": "off"}
