"""The person who signs in: what is taken from mcpzip's words, and what is done with them."""

import os
import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
import sign_in

QUERY = "?client_id=c&response_type=code&state=s"


class Pages(BaseHTTPRequestHandler):
    """``/authorize`` sends the browser to ``/callback``, which says no."""

    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(302 if self.path.startswith("/authorize") else 400)
        self.send_header("Location", "/callback?code=1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def site() -> Iterator[tuple[str, list[str]]]:
    """The address of the pages, and what is asked for there."""
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Site", (Pages,), {"asked": asked}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


def login(says: str, code: int = 0) -> list[str]:
    """What stands for mcpzip: it prints its words, and ends."""
    return [sys.executable, "-c", f"import sys; print({says!r}, sys.argv[1:]); sys.exit({code})"]


def test_the_command_is_read_where_mcpzip_names_it() -> None:
    said = 'suite: it needs a login: it was revoked. Run: mcpzip auth login suite --config "/a b/c.json"'
    assert sign_in.told_to_sign_in(said) == ["auth", "login", "suite", "--config", "/a b/c.json"]
    assert sign_in.told_to_sign_in(f"{said}. Or put a header in the config.") == sign_in.told_to_sign_in(said)
    assert sign_in.told_to_sign_in("suite: it answered HTTP 500.") is None


def test_the_page_is_opened_and_its_redirects_are_followed_to_the_end(
    site: tuple[str, list[str]], capfd: pytest.CaptureFixture[str]
) -> None:
    url, asked = site
    sign_in.sign_in(
        login(f"See {url}/help, open {url}/authorize{QUERY}"), os.environ, ["auth", "login", "suite"]
    )
    assert asked == [f"/authorize{QUERY}", "/callback?code=1"]
    said = capfd.readouterr().err
    assert "'auth', 'login', 'suite', '--no-browser'" in said
    assert f"(400 at {url}/callback)" in said


def test_a_login_that_fails_is_an_error_and_a_page_that_is_not_there_is_none() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        gone = f"http://127.0.0.1:{nobody.getsockname()[1]}/authorize{QUERY}"
        sign_in.sign_in(login(gone), os.environ, ["auth", "login", "suite"])
        with pytest.raises(RuntimeError, match="mcpzip auth login suite ended with 1"):
            sign_in.sign_in(login(gone, code=1), os.environ, ["auth", "login", "suite"])
