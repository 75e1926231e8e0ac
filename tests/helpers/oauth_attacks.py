"""What attacks are made of: a web server that answers as it is told, and a person with a browser.

The rule: an attack goes the whole way, over sockets; what is looked at afterwards is what was said to the
person, what came to each host, and what is kept.
"""

import asyncio
import json
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.error import HTTPError
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

import pytest
from helpers.driver import PATIENCE
from mcpzip_fakes.oauth.controls import AuthControls

from mcpzip.auth.grant import Grant
from mcpzip.auth.interactive_login import InteractiveLogin
from mcpzip.auth.login import sign_in
from mcpzip.auth.store import Store
from mcpzip.config.schema import ServerConfig
from mcpzip.model.errors import LoginError

Json = dict[str, Any]
Go = Callable[[str], object]
"""What the browser does with the address it is sent to. It may block."""

SECRETS = {"code", "code_verifier", "refresh_token", "client_secret", "token", "client_assertion"}
"""Fields of a request of OAuth in which secrets stand."""


@dataclass
class Page:
    """An answer. body: bytes, or what becomes JSON. drips: a byte now and then, and never all."""

    body: object = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    drips: bool = False

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True)
class Seen:
    """A request that came."""

    verb: str
    path: str
    headers: dict[str, str]
    body: str


class Rogue:
    """Answers each path, but for its query, as ``pages`` say; 404 else. heard: all that came."""

    def __init__(self) -> None:
        self.pages: dict[str, Page | Callable[[Seen], Page]] = {}
        self.heard: list[Seen] = []
        self.over = threading.Event()
        rogue = self

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                seen = Seen(self.command, self.path, headers, body)
                rogue.heard.append(seen)
                page = rogue.pages.get(self.path.partition("?")[0], Page(status=404))
                page = page if isinstance(page, Page) else page(seen)
                self.send_response(page.status)
                for name, value in {"Content-Type": "application/json", **page.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(1 << 20 if page.drips else len(page.data)))
                self.end_headers()
                try:
                    self.wfile.write(page.data)
                    while page.drips and not rogue.over.wait(0.02):
                        self.wfile.write(b" ")
                except OSError:
                    pass  # whoever asked has had enough

            do_GET = do_POST = do_DELETE = answer

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def protects(self, issuer: str, **resource: object) -> None:
        """Be an MCP server at /mcp whose tokens ``issuer`` gives out. resource: more of its metadata."""
        where = f"{self.url}/.well-known/oauth-protected-resource/mcp"
        self.pages["/mcp"] = Page({}, 401, {"WWW-Authenticate": f'Bearer resource_metadata="{where}"'})
        known = {"resource": f"{self.url}/mcp", "authorization_servers": [issuer]}
        self.pages["/.well-known/oauth-protected-resource/mcp"] = Page({**known, **resource})

    def issues(self, **metadata: object) -> None:
        """Be an authorization server. metadata: more of what it says of itself; None removes."""
        known: Json = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "registration_endpoint": f"{self.url}/register",
            "code_challenge_methods_supported": ["S256"],
            **metadata,
        }
        told = {name: value for name, value in known.items() if value is not None}
        self.pages["/.well-known/oauth-authorization-server"] = Page(told)
        self.pages["/register"] = lambda seen: Page({**json.loads(seen.body), "client_id": "known"}, 201)

    def stop(self) -> None:
        self.over.set()
        self._server.shutdown()
        self._server.server_close()


@contextmanager
def rogues() -> Iterator[Callable[[], Rogue]]:
    """Makes rogues, which end together."""
    made: list[Rogue] = []

    def make() -> Rogue:
        made.append(Rogue())
        return made[-1]

    try:
        yield make
    finally:
        for rogue in made:
            rogue.stop()


class Victim(InteractiveLogin):
    """A person at no terminal, whose browser does ``go`` with whatever it is shown.

    shown: the addresses; told: every line they read; page: what the browser showed in the end.
    """

    def __init__(self, go: Go, timeout: float = PATIENCE * 3) -> None:
        self.shown: list[str] = []
        self.told: list[str] = []
        self.page: object = None
        self._go = go
        self._going: asyncio.Task[None] | None = None
        reading, self._typing = os.pipe()
        super().__init__("shop", self.told.append, timeout=timeout, browser=False, stdin=reading)

    async def show(self, url: str) -> None:
        await super().show(url)
        self.shown.append(url)
        self._going = asyncio.create_task(self._browse(url))

    async def __aexit__(self, *error: Any) -> None:
        os.close(self._typing)
        await super().__aexit__(*error)

    async def _browse(self, url: str) -> None:
        self.page = await asyncio.to_thread(self._go, url)

    async def settled(self) -> None:
        """Waits for the browser, whose page says how the login ended."""
        if self._going is not None:
            await self._going

    @property
    def read(self) -> str:
        return "\n".join(self.told)


@dataclass(frozen=True)
class Outcome:
    """How a login ended: with a grant (None: none was wanted) or a sentence."""

    person: Victim
    grant: Grant | None = None
    sentence: str = ""


async def attempt(server: ServerConfig, store: Store, go: Go) -> Outcome:
    """A login to ``server``, whole."""
    person = Victim(go)
    try:
        async with person:
            grant = await sign_in(server, store, person)
    except LoginError as error:
        await person.settled()
        return Outcome(person, sentence=str(error))
    await person.settled()
    return Outcome(person, grant)


def nowhere(url: str) -> object:
    """A browser that must not be opened."""
    raise AssertionError(f"a browser was sent to {url}")


def get(url: str, **headers: str) -> tuple[int, str]:
    """Status and page of ``url``. headers: with ``_`` for ``-``."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        with build_opener(ProxyHandler({})).open(Request(url, headers=named), timeout=PATIENCE * 3) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        with error:
            return error.code, error.read().decode()


def leaked(auth: AuthControls, host: str = "localhost") -> list[str]:
    """What is secret of the requests that came to ``auth`` under the name ``host``."""
    return [
        f"{request.endpoint}: {name}"
        for request in auth.requests()
        if request.host.startswith(host)
        for name in ({*request.fields} & SECRETS) | ({*request.headers} & {"authorization"})
    ]


def harmless(sentence: str) -> bool:
    """Whether it can be shown on a terminal: one line, printable, and not a page long."""
    return sentence.isprintable() and len(sentence) < 1000


TOKENS: Json = {
    "access_token": "rogue-access-1234",
    "refresh_token": "rogue-refresh-1234",
    "token_type": "Bearer",
}
SERVER, RESOURCE = "/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/mcp"
ESCAPES = "\x1b]0;owned\x07\x1b[2J\nroot# "


@pytest.fixture
def make() -> Iterator[Callable[[], Rogue]]:
    with rogues() as maker:
        yield maker


@pytest.fixture
def rogue(make: Callable[[], Rogue]) -> Rogue:
    """An MCP server and its authorization server, which grants `TOKENS` until it is told otherwise."""
    made = make()
    made.protects(made.url)
    made.issues()
    made.pages["/token"] = Page(TOKENS)
    return made


def allow(url: str) -> object:
    """A browser in which somebody said yes."""
    asked = {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()}
    return get(f"{asked['redirect_uri']}?{urlencode({'code': 'rogue-code-1234', 'state': asked['state']})}")


def refused(outcome: Outcome, sentence: str, store: Store, rogue: Rogue) -> None:
    assert sentence in outcome.sentence
    assert harmless(outcome.sentence)
    verifiers = [
        parse_qs(seen.body)["code_verifier"][0] for seen in rogue.heard if "code_verifier" in seen.body
    ]
    for secret in ("rogue-access-1234", "rogue-refresh-1234", "rogue-code-1234", "rogue-secret", *verifiers):
        assert secret not in outcome.sentence + outcome.person.read
    kept = store.load(f"{rogue.url}/mcp")
    assert kept is None or not (kept.access_token or kept.refresh_token)
