"""`mcpzip ui` as a process, and a browser without a screen for it: cookies, forms, and what a page says.

with page_of(config) as page:
    page.sign_in()
    assert "Overview" in page.get("/").text
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from html import unescape
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from urllib.parse import urlencode

import msgspec
from helpers.driver import PATIENCE, command, ended, environment


class Answer(msgspec.Struct):
    """What was answered. text: the body."""

    status: int
    headers: HTTPMessage
    text: str

    @property
    def form_token(self) -> str:
        """That of the first form of the page."""
        found = re.search(r'name="form_token" value="([^"]+)"', self.text)
        assert found, self.text
        return unescape(found[1])

    @property
    def words(self) -> str:
        """What a person reads, without the markup."""
        return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", self.text)))


class Page:
    """The page of one run. url: with its token. root: the path under which the pages are, once signed in."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.origin, _, self.token = url.partition("/#token=")
        self.host = self.origin.removeprefix("http://")
        self.cookie = self.root = ""

    def ask(
        self, method: str, path: str, body: str | None = None, headers: Mapping[str, str | None] = {}
    ) -> Answer:
        """One request. headers: replace those that a browser on this page sends; None leaves one out."""
        sent: dict[str, str | None] = {"Host": self.host, "Cookie": self.cookie or None}
        if method == "POST":
            sent |= {"Origin": self.origin, "Content-Type": "application/x-www-form-urlencoded"}
            sent["Sec-Fetch-Site"] = "same-origin"
        sent |= headers
        connection = HTTPConnection("127.0.0.1", int(self.host.rpartition(":")[2]), timeout=PATIENCE)
        try:
            ours = path.startswith(("/static/", "/sign-in/", "/sign-ins/callback", "http:"))
            ours = ours or path.partition("?")[0] == "/sign-in"
            connection.putrequest(
                method, path if ours else self.root + path, skip_host=True, skip_accept_encoding=True
            )
            for name, value in sent.items():
                if value is not None:
                    connection.putheader(name, value)
            data = None if body is None else body.encode()
            if data is not None:
                connection.putheader("Content-Length", str(len(data)))
            connection.endheaders(data)
            response = connection.getresponse()
            return Answer(response.status, response.headers, response.read().decode())
        finally:
            connection.close()

    def get(self, path: str, **headers: str | None) -> Answer:
        return self.ask("GET", path, headers={name.replace("_", "-"): one for name, one in headers.items()})

    def post(self, path: str, fields: Mapping[str, str], **headers: str | None) -> Answer:
        named = {name.replace("_", "-"): one for name, one in headers.items()}
        return self.ask("POST", path, urlencode(fields), named)

    def sign_in(self) -> "Page":
        """Shows the token, and keeps the cookie."""
        answer = self.post("/sign-in", {"token": self.token})
        assert answer.status == 303, answer
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        self.root = answer.headers["location"].removesuffix("/")
        assert f"; Path={self.root}/;" in answer.headers["set-cookie"]
        return self

    def submit(self, path: str, **fields: str) -> Answer:
        """A form of the page at ``path`` that posts there."""
        token = self.get("/").form_token
        return self.post(path, {"form_token": token, **fields})


_AT_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Makes its stdin the terminal of its session, and becomes another program."""


@contextmanager
def terminal_page_of(config: Path) -> Iterator[Page]:
    """The same, started by a person at a terminal."""
    keyboard, terminal = os.openpty()
    try:
        with page_of(config, terminal=terminal) as page:
            yield page
    finally:
        os.close(terminal)
        os.close(keyboard)


@contextmanager
def page_of(
    config: Path, *words: str, terminal: int = subprocess.DEVNULL, **variables: str
) -> Iterator[Page]:
    """`mcpzip ui --no-open`; it is ended by a signal, and has to end well. terminal: its stdin."""
    at_terminal = terminal != subprocess.DEVNULL
    process = subprocess.Popen(
        [
            *((sys.executable, "-c", _AT_TERMINAL) if at_terminal else ()),
            *command("ui", "--no-open", "--config", str(config), *words),
        ],
        stdin=terminal,
        start_new_session=at_terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(**variables),
        cwd=config.parent,
    )
    with ended(process):
        assert process.stdout
        assert process.stderr
        line = process.stdout.readline().decode()
        found = re.search(r"http://127\.0\.0\.1:\d+/#token=\S+", line)
        assert found, line + process.stderr.read().decode()
        yield Page(found[0])
        process.terminate()
        said = process.stderr.read().decode()
        assert process.wait(PATIENCE) == 0, said
        assert "Traceback" not in said, said
        assert "failed" not in said, said
