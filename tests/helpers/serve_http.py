"""`mcpzip serve --http`, the installed command, on a port of the system's choice."""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from helpers.driver import ROOT, until

_PATIENCE = 60.0  # s; what takes this long to start or to end is broken
_POLL = 0.02  # s


@contextmanager
def listening(mcpzip: str, config: Path, token: str | None = None, port: int = 0) -> Iterator[str]:
    """Its URL. token: what clients must send; it reaches mcpzip in the environment. port: 0 for any.

    At the end it is asked to go, and must do so with exit code 0. What it said on stderr is kept beside
    ``config``.
    """
    log = config.with_suffix(".serve.log")
    environment = {**os.environ, "HOME": str(config.parent), **({"MCPZIP_TOKEN": token} if token else {})}
    with log.open("wb") as errors:
        process = subprocess.Popen(
            [mcpzip, "serve", "--config", str(config), "--http", f"127.0.0.1:{port}"],
            stdin=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
        )
    try:
        yield _url(process, log)
        process.terminate()
        assert process.wait(_PATIENCE) == 0, log.read_text("utf-8")
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _url(process: "subprocess.Popen[bytes]", log: Path) -> str:
    deadline = time.monotonic() + _PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        for line in log.read_text("utf-8").splitlines(keepends=True):
            if line.startswith("listening ") and line.endswith("\n"):
                return line.split()[1]
        time.sleep(_POLL)
    raise AssertionError(f"it did not come up: {log.read_text('utf-8')}")


def mcpzip_command(folder: Path) -> str:
    """The path of a program that runs mcpzip."""
    program = folder / "mcpzip"
    program.write_text(f'#!/bin/sh\nPYTHONPATH="{ROOT}" exec "{sys.executable}" -m mcpzip "$@"\n')
    program.chmod(0o700)
    return str(program)


def get(url: str, path: str, **headers: str) -> tuple[int, str]:
    """The status and the body of a GET at the server that ``url`` is of."""
    connection = http.client.HTTPConnection(url.split("/")[2])
    try:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read().decode()
    finally:
        connection.close()


def metrics_url(config: Path) -> str:
    """Where `listening` has said that metrics are."""
    log = config.with_suffix(".serve.log")

    def found() -> str | None:
        lines = [line for line in log.read_text("utf-8").splitlines(keepends=True) if line.endswith("\n")]
        return next((line.split()[1] for line in lines if line.startswith("metrics ")), None)

    url = until(found)
    assert url is not None
    return url
