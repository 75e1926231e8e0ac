"""Replicas of `mcpzip serve --http` that share a config, and their end without a moment to tidy up."""

import base64
import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from mcpzip_conformance.http_subject import free_port

from bench.lives import listening
from bench.subjects import environment

KEY = base64.b64encode(b"k" * 32).decode()


class Replica:
    """One of the processes of ``config``, always at one port."""

    def __init__(self, command: str, config: Path, number: int) -> None:
        self._command, self._config = command, config
        self._errors = config.parent / f"stderr-{number}"
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.begin()

    def begin(self) -> None:
        """Starts it; see `ready`."""
        with self._errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [self._command, "serve", "--http", f"127.0.0.1:{self.port}", "--config", str(self._config)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment(),
            )

    def ready(self) -> None:
        """Waits until it serves. Raises SystemExit."""
        listening(self.process, self._errors)

    def kill(self) -> None:
        """Ends it as a machine without power does."""
        self.process.send_signal(signal.SIGKILL if os.name != "nt" else signal.SIGTERM)
        self.process.wait()

    def end(self) -> None:
        """Ends it in order."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()


def write_config(folder: Path, servers: Mapping[str, object], **more: object) -> Path:
    """The config of replicas on this machine. more: further keys."""
    config = folder / "config.json"
    replicas = {"keys": [KEY], "listen": "127.0.0.1:0"}
    config.write_text(json.dumps({"mcpServers": servers, "replicas": replicas, **more}))
    return config


@contextmanager
def running(command: str, config: Path, count: int) -> Iterator[list[Replica]]:
    """So many replicas, from when all serve until their end."""
    with ExitStack() as stack:
        replicas = []
        for number in range(count):
            replicas.append(Replica(command, config, number))
            stack.callback(replicas[-1].end)
        for each in replicas:
            each.ready()
        yield replicas


class Killer(threading.Thread):
    """Kills the ``replicas`` in turn, one in so many ``seconds``, and starts each again. kills: how many."""

    def __init__(self, replicas: list[Replica], seconds: float) -> None:
        super().__init__(name="killer")
        self._replicas, self._seconds = replicas, seconds
        self._over = threading.Event()
        self.kills = 0

    def run(self) -> None:
        while not self._over.wait(self._seconds):
            replica = self._replicas[self.kills % len(self._replicas)]
            replica.kill()
            self.kills += 1
            replica.begin()
            replica.ready()

    def stop(self) -> None:
        self._over.set()
        self.join()
