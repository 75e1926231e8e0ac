"""Starts a subject that serves over HTTP, and waits until it accepts connections.

The rule: it is up when it prints the line that its file defines; without one, when its port accepts
connections.
"""

import asyncio
import re
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from mcpzip_conformance.errors import Finding
from mcpzip_conformance.processes import Process
from mcpzip_conformance.transcript import printable

_EACH = 0.02
"""Seconds between two attempts to connect."""
_KEPT = 64 * 1024
_ADDRESS = re.compile("https?://[!-~]+")
_LOWEST, _BEYOND = 20_000, 32_000
_given: list[int] = []
"""Ports returned lately. They aren't returned again, because their subjects may not listen yet."""


class Listening:
    """A running HTTP subject. process: its process; url: its URL."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.process: Process
        self._output = b""

    @classmethod
    async def start(
        cls,
        command: list[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        url: str,
        up: str,
        port: int,
        patience: float,
    ) -> "Listening":
        """Start ``command`` and wait until it is up. up: a regular expression for the line that it then
        prints, or ""; group 1, if there is one, is the URL. Raises Finding if it can't be started, exits or
        isn't up in time."""
        listening = cls(url)
        try:
            listening.process = await Process.start(command, listening._printed, env=env, cwd=cwd)
        except OSError as error:
            raise Finding(f"{command[0]} can't be started: {error.strerror}.") from error
        try:
            await listening._until_up(up, port, patience)
        except BaseException:
            await listening.process.end(0.0)
            raise
        return listening

    async def _until_up(self, up: str, port: int, patience: float) -> None:
        deadline = asyncio.get_running_loop().time() + patience
        while not await self._is_up(up, port):
            if self.process.code is not None:
                raise Finding(f"It exited before it took connections{self.process.last_words()}")
            if asyncio.get_running_loop().time() > deadline:
                raise Finding(
                    f"{patience:g} s after its start it took no connections{self.process.last_words()}"
                )
            await asyncio.sleep(_EACH)
        if self.process.code is not None:  # then another process accepts connections on this port
            raise Finding(f"It exited before it took connections{self.process.last_words()}")

    async def _is_up(self, up: str, port: int) -> bool:
        if not up:
            return await _takes_connections(urlsplit(self.url).hostname or "127.0.0.1", port)
        said = (self._output + b"\n" + self.process.stderr).decode("utf-8", "replace")
        match = re.search(up, said, re.MULTILINE)
        if match is None or not match.groups() or not match[1]:
            return match is not None
        # Output may arrive in pieces: the URL is complete if it is the declared one, or the same twice.
        settled, self.url = match[1] == self.url, match[1]
        if settled and not _ADDRESS.fullmatch(self.url):
            raise Finding(f"It printed an invalid address: {printable(self.url)}")
        return settled

    def _printed(self, data: bytes) -> None:
        self._output = (self._output + data)[-_KEPT:]


async def _takes_connections(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    return True


def free_port() -> int:
    """A port of 127.0.0.1 on which nothing listens, that this function didn't return lately, and that systems
    don't assign by themselves (below the ephemeral ports: RFC 6335, 6; Linux's begin at 32768)."""
    while True:
        port = _LOWEST + secrets.randbelow(_BEYOND - _LOWEST)
        if port not in _given and _is_free(port):
            _given.append(port)
            del _given[:-256]
            return port


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
