"""Everything that the real commands write, over the whole life of a sign-in, is searched for its secrets.

The rule: tokens and client secrets stand in the folder of sign-ins and nowhere else; codes and verifiers
stand nowhere.
"""

import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import ProxyHandler, build_opener

import pytest
from helpers.driver import command, environment, serving, write_config
from mcpzip_fakes.launch import FakeServer

from mcpzip.model.redaction import Secrets

Start = Callable[..., FakeServer]
GREET = {"name": "greet", "description": "Say hello", "result": {"text": "hello"}}
FAIL = {"name": "fail", "description": "Break", "result": {"text": "it broke", "isError": True}}
PATIENCE = 120.0
_PAGE = re.compile(r"^https?://\S+$")


class Onlooker:
    """Another user of this machine, who lists its processes again and again (Linux)."""

    def __init__(self) -> None:
        self.seen: set[bytes] = set()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._over.wait(0.02):
            for process in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    self.seen.add(process.read_bytes().replace(b"\0", b" "))
                except OSError:
                    pass  # it has ended

    def stop(self) -> None:
        self._over.set()
        self._thread.join()


class Life:
    """Commands on one config, and all that they wrote."""

    def __init__(self, home: Path, config: Path, shop: FakeServer) -> None:
        self.home, self.config, self.shop = home, config, shop
        self.said: list[str] = []

    @property
    def env(self) -> dict[str, str]:
        own = {"HOME": str(self.home), "USERPROFILE": str(self.home), "MCPZIP_CONFIG": str(self.config)}
        return environment(**own, DISPLAY="", WAYLAND_DISPLAY="", BROWSER="", COLUMNS="250")

    def run(self, *words: str) -> tuple[int, str]:
        """A command; its exit code, and what it wrote."""
        done = subprocess.run(
            command(*words), env=self.env, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        self.said.append((done.stdout + done.stderr).decode())
        return done.returncode, self.said[-1]

    def login(self, *options: str) -> int:
        """A login in which the test is the browser; its exit code."""
        assert self.shop.auth
        process = subprocess.Popen(
            command("auth", "login", "shop", *options),
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        with process:
            assert process.stdout
            for line in process.stdout:
                self.said.append(line.decode())
                if _PAGE.match(page := self.said[-1].strip()):
                    self.said.append(browse(self.shop.auth.leads_to(page)))
        return process.returncode


def browse(url: str) -> str:
    """The page at ``url``, whatever its status."""
    try:
        with build_opener(ProxyHandler({})).open(url, timeout=PATIENCE) as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        with error:
            return error.read().decode()


@pytest.fixture
def onlooker() -> Iterator[Onlooker]:
    looking = Onlooker()
    yield looking
    looking.stop()


@pytest.fixture
def life(fake_mcp: Start, tmp_path: Path) -> Life:
    home = tmp_path / "home"
    folder = home / "conf"
    folder.mkdir(parents=True)
    oauth = {"access_seconds": 3600, "scopes": ["read"], "registration_method": "client_secret_post"}
    shop = fake_mcp(name="shop", tools=[GREET, FAIL], transport="http", oauth=oauth)
    return Life(home, write_config(folder, shop), shop)


def secrets_of(shop: FakeServer) -> tuple[Secrets, Secrets, list[str]]:
    """What may be kept, what may not, and all of it, as the authorization server saw it."""
    assert shop.auth
    lasting, passing = {token.value for token in shop.auth.tokens()}, set[str]()
    for request in shop.auth.requests():
        answer = request.answer or {}
        lasting |= {
            str(answer[name]) for name in ("client_secret", "registration_access_token") if name in answer
        }
        passing |= {str(request.fields[name]) for name in ("code", "code_verifier") if name in request.fields}
    assert len(lasting) >= 5
    assert len(passing) >= 4
    return kept_in(lasting), kept_in(passing), sorted(lasting | passing)


def kept_in(texts: set[str]) -> Secrets:
    secrets = Secrets()
    for text in texts:
        secrets.keep(text)
    return secrets


def shown_in(text: str, *secrets: Secrets) -> bool:
    """Whether any of them is in ``text``, however it is written."""
    return any(each.conceal(text) != text for each in secrets)


@contextmanager
def served(life: Life) -> Iterator[Callable[[str], str]]:
    """`mcpzip serve`; gives what a model reads when it calls a tool of the shop."""
    with serving(life.config.parent) as client:
        yield lambda tool: client.execute(f"shop__{tool}").text
        life.said += [line.decode() for line in client.heard]


def test_no_secret_is_ever_said(life: Life, onlooker: Onlooker) -> None:
    auth = life.shop.auth
    assert auth
    assert life.login() == 0, life.said
    with served(life) as execute:
        assert execute("greet") == "hello"
        assert "it broke" in execute("fail")
        auth.revoke_access()
        assert execute("greet") == "hello"
        auth.configure(faults=[{"kind": "status", "status": 503, "endpoint": "token"}])
        auth.revoke_access()
        assert "503" in execute("greet")
    assert life.run("auth", "status", "--json")[0] == 1
    auth.configure(faults=[{"kind": "error", "endpoint": "token"}])
    assert life.login("--force") == 1, life.said
    assert "invalid_grant" in life.said[-1]
    life.run("servers", "--json")
    life.run("refresh")
    looked_at = files(life)
    auth.configure(faults=[{"kind": "error", "endpoint": "revoke"}])
    assert life.run("auth", "logout", "shop")[0] == 0

    lasting, passing, each = secrets_of(life.shop)
    said = "\n".join(life.said)
    assert [secret for secret in each if secret in said] == []
    assert not shown_in(said, lasting, passing)
    assert "Traceback" not in said
    keeping = [path for path, text in looked_at.items() if shown_in(text, lasting)]
    assert [(path.parent.name, path.suffix) for path in keeping] == [("auth", ".json")]
    assert not any(shown_in(text, passing) for text in looked_at.values())
    assert not any(shown_in(text, lasting, passing) for text in files(life).values())
    onlooker.stop()
    lines = "\n".join(line.decode("utf-8", "replace") for line in onlooker.seen)
    assert ("auth login shop" in lines) == (sys.platform == "linux")
    assert not shown_in(lines, lasting, passing)


def files(life: Life) -> dict[Path, str]:
    """All that is kept on this machine."""
    found = (path for path in life.home.rglob("*") if path.is_file() and path != life.config)
    return {path: path.read_bytes().decode("utf-8", "replace") for path in found}
