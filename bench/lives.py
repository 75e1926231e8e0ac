"""Processes that crash and restart during a measurement."""

import json
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench.client import Client
from bench.subjects import HERE, environment


def mortal(python: str, every: int, deaths: Path) -> list[str]:
    """The command line of `bench/crashing.py`."""
    return [python, "-I", "-S", str(HERE / "crashing.py"), "--every", str(every), "--deaths", str(deaths)]


class Restarted:
    """The HTTP upstream: a process on one port that is restarted when it has crashed."""

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = [*argv, "--port"]
        self._over = threading.Event()
        self._process, self.port = self._start(0)
        self._thread = threading.Thread(target=self._keep)
        self._thread.start()

    def _start(self, port: int) -> "tuple[subprocess.Popen[bytes], int]":
        process = subprocess.Popen(
            [*self._argv, str(port)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, env=environment()
        )
        assert process.stdout
        line = process.stdout.readline()
        process.stdout.close()
        if not line.startswith(b"listening "):
            raise SystemExit(f"The HTTP upstream did not start at port {port}.")
        return process, int(line.split()[1])

    def _keep(self) -> None:
        while True:
            self._process.wait()
            if self._over.is_set():
                return
            self._process, _ = self._start(self.port)

    def stop(self) -> None:
        self._over.set()
        while self._thread.is_alive():  # it may just be starting another one
            self._process.kill()
            self._thread.join(0.1)


@contextmanager
def serving(command: str, config: Path) -> "Iterator[tuple[int, str]]":
    """`mcpzip serve --http`: its process id and its URL."""
    with (config.parent / "stderr").open("wb") as errors:
        process = subprocess.Popen(
            [command, "serve", "--http", "127.0.0.1:0", "--config", str(config)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment(),
        )
    try:
        yield process.pid, listening(process, config.parent / "stderr")
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def listening(process: "subprocess.Popen[bytes]", errors: Path) -> str:
    """The URL at which a `mcpzip serve --http` listens, which writes it to ``errors``. Raises SystemExit."""
    deadline = time.monotonic() + 30
    while process.poll() is None and time.monotonic() < deadline:
        for line in errors.read_text("utf-8", "replace").splitlines():
            if line.startswith("listening "):
                return line.split()[1]
        time.sleep(0.02)
    raise SystemExit(f"mcpzip serve --http did not start: {errors.read_text('utf-8', 'replace')[-500:]}")


class Piped:
    """`bench.client.Client` as a `Talk`."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def call(self, tool: str, arguments: dict[str, object]) -> tuple[str, bool]:
        self._client.write(self._client.frame("tools/call", {"name": tool, "arguments": arguments}))
        while True:
            message = json.loads(self._client.line())
            if "id" in message:
                result = message["result"]
                return result["content"][0]["text"], result.get("isError") is True
