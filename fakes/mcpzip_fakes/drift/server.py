"""The server that is checked: a command that is started for each session, or a URL."""

import os
import shlex
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from mcpzip.cassettes.files import load
from mcpzip.model.errors import McpzipError
from mcpzip_fakes.clients.channel import Sink
from mcpzip_fakes.clients.http import HttpChannel
from mcpzip_fakes.clients.sse import SseChannel
from mcpzip_fakes.clients.stdio import StdioChannel
from mcpzip_fakes.drift.checking import check
from mcpzip_fakes.drift.connection import SweptChannel
from mcpzip_fakes.drift.drift import Report
from mcpzip_fakes.drift.settings import Settings

_TO_CONNECT = 10.0
"""Seconds for a connection to a URL."""


class ServerUnreachableError(McpzipError):
    """The server can't be started, or nothing listens at its URL."""


def check_command(
    cassette: str,
    command: Sequence[str],
    settings: Settings,
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | Path | None = None,
) -> Report:
    """Checks the server that ``command`` starts. cassette: the path of the file. env: variables beside this
    process's own. Raises CassetteError, ServerUnreachableError.
    """

    def connect(sink: Sink) -> StdioChannel:
        return StdioChannel(command, sink, env={**os.environ, **(env or {})}, cwd=cwd)

    name = shlex.join(command)
    try:
        return check(load(cassette), connect, settings, names=(cassette, name))
    except OSError as error:
        raise ServerUnreachableError(f"{name} can't be started: {error}. Check the command.") from error


def check_url(
    cassette: str,
    url: str,
    settings: Settings,
    *,
    headers: Mapping[str, str] | None = None,
    transport: str | None = None,
) -> Report:
    """Checks the server at ``url``. cassette: the path of the file; transport: ``http`` or ``sse`` (None: the
    recorded one, or else as the URL looks). Raises CassetteError, ServerUnreachableError; ValueError if
    ``url`` is none.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no http or https URL")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname, port), _TO_CONNECT).close()
    except OSError as error:
        raise ServerUnreachableError(f"Nothing answers at {url}: {error}. Check that it runs.") from error

    loaded = load(cassette)
    if transport is None:
        guess = "sse" if parts.path.rstrip("/").endswith("/sse") else "http"
        transport = guess if loaded.transport == "stdio" else loaded.transport

    def connect(sink: Sink) -> SweptChannel:
        if transport == "sse":
            return SseChannel(url, sink, headers=headers)
        return HttpChannel(url, sink, headers=headers, errors_answer=True)

    try:
        return check(loaded, connect, settings, names=(cassette, url))
    except OSError as error:
        raise ServerUnreachableError(f"{url} can't be used: {error}. Check its --transport.") from error
