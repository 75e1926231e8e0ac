"""`mcpzip auth login` as a process, and the browser that a test plays for it."""

import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

from helpers.driver import command, environment, until
from mcpzip_fakes.launch import FakeServer

PATIENCE = 120.0
"""Seconds: a login imports all of the SDK, which takes long where much else goes on."""
_PAGE = re.compile(r"^https?://\S+$")
BROWSERLESS = {"DISPLAY": "", "WAYLAND_DISPLAY": "", "BROWSER": "", "SSH_CONNECTION": ""}


class Login:
    """A login under way: what it says, line by line, and its one address."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self._lines: list[str] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self._lines.append(line.decode())

    @property
    def said(self) -> str:
        """On stderr, so far."""
        return "".join(self._lines)

    @property
    def page(self) -> str:
        """The address that a person is shown."""
        lines = until(
            lambda: [line.strip() for line in list(self._lines) if _PAGE.match(line.strip())], PATIENCE
        )
        return lines[0]

    def hears(self, text: str) -> None:
        """Waits until it has said ``text``."""
        until(lambda: text in self.said, PATIENCE)

    def paste(self, text: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def end(self) -> tuple[int, str]:
        """Its exit code, and what it said on stdout."""
        assert self.process.stdout
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        return code, self.process.stdout.read().decode()


@contextmanager
def login(name: str, *options: str, stdin: int = subprocess.PIPE, **env: str) -> Iterator[Login]:
    """`mcpzip auth login NAME`, on a machine without a display unless ``env`` says otherwise."""
    process = subprocess.Popen(
        command("auth", "login", name, *options),
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**environment(), **BROWSERLESS, **env},
    )
    with process:
        try:
            yield Login(process)
        finally:
            process.kill()


def go(url: str) -> str:
    """The page that a browser shows at ``url``, whatever its status."""
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=PATIENCE) as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        with error:
            return error.read().decode()


def signed_in(server: FakeServer) -> None:
    """Signs in to ``server``, and sees that it worked."""
    assert server.auth
    with login(server.name) as trying:
        page = server.auth.browse(trying.page)
        assert trying.end()[0] == 0, trying.said
    assert f"Signed in to {server.name}" in page
