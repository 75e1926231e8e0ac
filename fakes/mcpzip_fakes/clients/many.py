"""Starts several clients at once, and ends them.

The rule: all get the same command or URL, and the same environment; only their identities differ.
Whatever the test did, nothing of them is left at its end.
"""

import os
import shlex
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from mcpzip_fakes.clients.client import Client
from mcpzip_fakes.clients.http import HttpChannel
from mcpzip_fakes.clients.identity import Identity
from mcpzip_fakes.clients.pending import Pending
from mcpzip_fakes.clients.stdio import StdioChannel
from mcpzip_fakes.launch import FakeServer

PATIENCE = 10.0
"""Seconds a test waits for one message, unless it says otherwise."""
_TO_START = 3.0
"""The factor for the start of all clients."""


class ManyClients:
    """Starts clients, and ends them at the end of the ``with`` block."""

    def __init__(self) -> None:
        self._channels: list[StdioChannel | HttpChannel] = []
        self._lock = threading.Lock()
        self._over = False

    def start(
        self,
        target: "str | Sequence[str] | FakeServer",
        clients: "int | Sequence[Identity | Mapping[str, object]]" = 2,
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        headers: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> Pending[list[Client]]:
        """Open clients, all at the same time; the outcome is there when every handshake is over.

        target: a URL, a command (a list of words, or a line), or a fake server. clients: their number, or
        their identities (`Identity`, or its fields); without a name they are client-1, client-2 and so on.
        env: variables beside this process's own; cwd: the working folder of a command; headers: of every
        HTTP request; patience: seconds to wait for anything. If one can't be opened, its error is the
        outcome: OSError, or as `Pending`.
        """
        given = [{}] * clients if isinstance(clients, int) else clients
        identities = [_identity(number, one) for number, one in enumerate(given, 1)]
        places = (target, {**os.environ, **_needed(target), **(env or {})}, cwd, headers)
        made = [Client(identity, patience) for identity in identities]
        outcome: Future[list[Client]] = Future()

        def run() -> None:
            errors: list[BaseException] = []

            def one(client: Client) -> None:
                try:
                    self._connect(client, *places)
                    client.open(patience * _TO_START)
                except BaseException as error:
                    errors.append(error)

            threads = [threading.Thread(target=one, args=(client,), daemon=True) for client in made]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if errors:
                outcome.set_exception(errors[0])
            else:
                outcome.set_result(made)

        threading.Thread(target=run, daemon=True).start()
        return Pending(outcome, f"the start of {len(made)} clients", patience * _TO_START)

    def _connect(
        self,
        client: Client,
        target: "str | Sequence[str] | FakeServer",
        env: Mapping[str, str],
        cwd: str | Path | None,
        headers: Mapping[str, str] | None,
    ) -> None:
        url, command = _reached(target)
        with self._lock:
            if self._over:
                raise RuntimeError("the test has ended")
            channel: StdioChannel | HttpChannel
            if url:
                channel = HttpChannel(url, client, headers=headers)
            else:
                channel = StdioChannel(command, client, env=env, cwd=cwd)
            self._channels.append(channel)
        client.channel = channel

    def stop(self) -> None:
        """End every client, even if ending one fails, and all processes that they started."""
        with self._lock:
            self._over = True
            channels = list(self._channels)
        with ExitStack() as ending:
            for channel in channels:
                ending.callback(channel.sweep)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _identity(number: int, given: "Identity | Mapping[str, object]") -> Identity:
    """The identity ``given``, or of its fields. Raises TypeError for an unknown field."""
    if isinstance(given, Identity):
        return given
    return Identity(**{"name": f"client-{number}", **given})  # type: ignore[arg-type]


def _needed(target: "str | Sequence[str] | FakeServer") -> Mapping[str, str]:
    return target.env if isinstance(target, FakeServer) else {}


def _reached(target: "str | Sequence[str] | FakeServer") -> tuple[str, list[str]]:
    """The URL of a target, or its command."""
    if isinstance(target, FakeServer):
        return target.url, target.command
    if not isinstance(target, str):
        return "", list(target)
    is_url = target.startswith(("http://", "https://"))
    return (target, []) if is_url else ("", shlex.split(target))
