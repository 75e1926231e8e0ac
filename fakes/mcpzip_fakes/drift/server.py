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
from mcpzip_fakes.clients.stdio import StdioChannel
from mcpzip_fakes.drift.checking import check
from mcpzip_fakes.drift.connection import Connect
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

    return _check(cassette, connect, settings, shlex.join(command))


def check_url(
    cassette: str, url: str, settings: Settings, *, headers: Mapping[str, str] | None = None
) -> Report:
    """Checks the server at ``url`` (Streamable HTTP). cassette: the path of the file. Raises CassetteError,
    ServerUnreachableError; ValueError if ``url`` is none.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f"{url!r} is no http or https URL")
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        socket.create_connection((parts.hostname, port), _TO_CONNECT).close()
    except OSError as error:
        raise ServerUnreachableError(f"Nothing answers at {url}: {error}. Check that it runs.") from error

    def connect(sink: Sink) -> HttpChannel:
        return HttpChannel(url, sink, headers=headers, errors_answer=True)

    return _check(cassette, connect, settings, url)


def _check(cassette: str, connect: Connect, settings: Settings, server: str) -> Report:
    loaded = load(cassette)
    try:
        return check(loaded, connect, settings, names=(cassette, server))
    except OSError as error:
        raise ServerUnreachableError(f"{server} can't be started: {error}. Check the command.") from error
