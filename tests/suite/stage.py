"""What the suite is let loose on: the fake ``everything``, bare or with mcpzip before it.

The rule: each is a process of its own that says where it listens, with a home that is empty, and is gone when
its block ends.
"""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, Queue

ROOT = Path(__file__).resolve().parents[2]
_PATIENCE = 60.0
"""Seconds a process may take to listen; on a busy machine importing the SDK takes some."""
_LISTENING = re.compile(r"listening (\S+)")


class StageError(Exception):
    """A process didn't come up. The text holds what it said."""


def fake(transport: str, era: str = "both") -> list[str]:
    """The command of the fake."""
    quick = [sys.executable, "-m", "mcpzip_fakes.stdio", "everything"]
    served = [sys.executable, "-m", "mcpzip_fakes", "everything", "--transport", transport]
    return [*(quick if transport == "stdio" else served), "--era", era]


@contextmanager
def everything(home: Path, era: str = "both") -> Generator[str]:
    """The URL of the fake over HTTP."""
    with _listening(fake("http", era), home) as url:
        yield url


@contextmanager
def proxied(upstream: str, home: Path, era: str = "both") -> Generator[str]:
    """The URL of mcpzip before the fake, which it reaches over ``stdio`` or ``http``; names untouched."""
    if upstream == "stdio":
        command, *args = fake("stdio", era)
        with _proxy({"command": command, "args": args, "env": {"PYTHONPATH": str(ROOT)}}, home) as url:
            yield url
    else:
        with everything(home, era) as behind, _proxy({"url": behind}, home) as url:
            yield url


@contextmanager
def _proxy(server: Mapping[str, object], home: Path) -> Generator[str]:
    config = home / "config.json"
    config.write_text(json.dumps({"mcpServers": {"everything": server}, "expose": "transparent"}), "utf-8")
    words = ["serve", "--config", str(config), "--http", "127.0.0.1:0"]
    with _listening([sys.executable, "-m", "mcpzip.cli.main", *words], home) as url:
        yield url


@contextmanager
def _listening(command: Sequence[str], home: Path) -> Generator[str]:
    home.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "HOME": str(home), "PYTHONPATH": str(ROOT)},
    )
    try:
        yield _url(process, " ".join(command), home / f"{process.pid}.log")
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _url(process: "subprocess.Popen[bytes]", command: str, log: Path) -> str:
    """The URL it says it listens at. All it says goes into ``log``."""
    found: Queue[str] = Queue()
    thread = threading.Thread(target=_listen, args=(process, log, found), daemon=True)
    thread.start()
    try:
        url = found.get(timeout=_PATIENCE)
    except Empty:
        url = ""
    if not url:
        raise StageError(f"{command} did not come up:\n{log.read_text('utf-8')}")
    return url


def _listen(process: "subprocess.Popen[bytes]", log: Path, found: "Queue[str]") -> None:
    assert process.stdout
    with log.open("wb") as file, process.stdout:
        for line in process.stdout:
            file.write(line)
            file.flush()
            if said := _LISTENING.search(line.decode(errors="replace")):
                found.put(said[1])
    found.put("")
