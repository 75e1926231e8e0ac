"""Signing in as a person does it: the installed command, a real browser, a client that goes on working."""

import os
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.browser_login import PATIENCE, Desk, Tab
from helpers.chromium import Browser
from helpers.driver import until, write_config
from helpers.grants import kept_at
from mcpzip_fakes.launch import FakeServer
from mcpzip_fakes.oauth.controls import AuthControls
from msgspec.structs import replace

from mcpzip.config import config_path

pytestmark = pytest.mark.skipif(os.name == "nt", reason="a script can't be the browser there")

DAY = 86_400.0
TOOL = {
    "name": "pay",
    "description": "Pay an invoice.",
    "result": {"text": "Receipt {#}: {id}", "fill": True},
}


@pytest.fixture
def shop(fake_mcp: Callable[..., FakeServer]) -> FakeServer:
    """A server whose authorization server asks a person, in the config that is read when none is named."""
    shop = fake_mcp(name="shop", tools=[TOOL], transport="http", oauth={"approve": "page"})
    folder = Path(config_path(None, {"HOME": os.environ["HOME"]})).parent
    folder.mkdir(parents=True)
    write_config(folder, shop)
    return shop


@pytest.fixture
def auth(shop: FakeServer) -> AuthControls:
    assert shop.auth is not None
    return shop.auth


@pytest.fixture
def desk(mcpzip: str, tmp_path: Path) -> Desk:
    return Desk(mcpzip, tmp_path)


@pytest.fixture
def tab(browser: Browser) -> Iterator[Tab]:
    tab = Tab(browser)
    yield tab
    tab.context.close()
    assert tab.wrong == []


def a_day_passes(auth: AuthControls, shop: FakeServer) -> None:
    """For the authorization server, and for what is kept of it: a token that was good for an hour is not."""
    auth.advance(DAY)
    store = kept_at(Path(config_path(None, {"HOME": os.environ["HOME"]})).parent)
    grant = store.load(shop.url)
    assert grant is not None
    assert grant.expires_at is not None
    store.save(replace(grant, expires_at=grant.expires_at - DAY))


def endpoints(auth: AuthControls) -> dict[str, int]:
    """How often those were asked that a person or a token is had from."""
    return {name: len(auth.requests(name)) for name in ("register", "authorize", "token")}


def refusals(shop: FakeServer) -> list[object]:
    """Why ``shop`` let requests not in, in order."""
    return [event.detail["refused"] for event in shop.record.events("bearer") if event.detail["refused"]]


def test_from_nothing_to_a_sign_in_that_has_ended(
    shop: FakeServer, auth: AuthControls, desk: Desk, tab: Tab
) -> None:
    with desk.login("mcpzip", "auth", "login", "shop") as (login, address):
        assert address in login.said
        tab.decides(address, "Allow")
        assert tab.told == (
            "Signed in to shop",
            "mcpzip can use this server now. You can close this window.",
        )
        tab.can_be_read()
        assert login.ends() == 0, login.said
    assert "It lists 1 tool." in login.said
    asked = {"register": 1, "authorize": 2, "token": 1}  # the page, and the button on it
    assert endpoints(auth) == asked
    with desk.serving() as client:
        assert client.execute("shop__pay", {"id": "a"}).text == "Receipt 1: a"

    # A new process, and an access token that has expired: one refresh, and nobody is asked.
    a_day_passes(auth, shop)
    with desk.serving() as client:
        assert client.execute("shop__pay", {"id": "b"}).text == "Receipt 2: b"
        assert client.execute("shop__pay", {"id": "c"}).text == "Receipt 3: c"
        asked["token"] += 1
        assert endpoints(auth) == asked
        assert len(auth.refreshes()) == 1
        assert refusals(shop) == ["there is none"]  # the login's own: the server never saw the expired token

        # Five calls in flight, and the token is revoked: one refresh, and all are answered.
        auth.revoke_access()
        auth.configure(faults=[{"kind": "slow", "seconds": 3}])
        calls = [client.send_call("shop__pay", {"id": name}) for name in "defgh"]
        receipts = [client.answer(call).text.split(": ") for call in calls]
        assert [name for _, name in receipts] == list("defgh")
        assert {number for number, _ in receipts} == {f"Receipt {n}" for n in range(4, 9)}  # none ran twice
        asked["token"] += 1
        assert endpoints(auth) == asked
        assert len(auth.refreshes()) == 2
        assert refusals(shop).count("revoked") > 1  # they were in flight together

        # The refresh token is revoked as well: it is told so once, and asked nothing more.
        auth.revoke()
        asked["token"] += 1
        for _ in range(10):
            answer = client.execute("shop__pay", {"id": "i"})
            assert answer.failed
            assert "it needs a login" in answer.text
            assert "Run: mcpzip auth login shop" in answer.text
            assert endpoints(auth) == asked
        assert "needs login" in client.status()
    with desk.serving() as client:  # nor does a new process ask
        assert "it needs a login" in client.execute("shop__pay", {"id": "j"}).text
    assert endpoints(auth) == asked
    assert desk.opened == [address]

    listed = desk.run("auth", "status")
    assert listed.returncode == 1
    assert "needs login" in listed.stdout
    wrote = [login.said, listed.stdout, listed.stderr, desk.errors.read_text("utf-8"), str(desk.heard)]
    assert not [token.id for token in auth.tokens() for text in wrote if token.value in text]


def test_a_running_serve_takes_up_a_login(shop: FakeServer, auth: AuthControls, desk: Desk, tab: Tab) -> None:
    with desk.serving() as client:
        refused = client.execute("shop__pay", {"id": "a"}).text
        assert "it needs a login" in refused
        assert "shop__pay" not in client.search("pay an invoice")
        assert desk.opened == []
        assert endpoints(auth) == {"register": 0, "authorize": 0, "token": 0}

        # What the client was told to run is run, as it was told; and the person says no.
        command = shlex.split(refused.partition("Run: ")[2].partition(".")[0])
        with desk.login(*command) as (login, address):
            tab.decides(address, "Deny")
            heading, text = tab.told
            assert heading == "Not signed in"
            assert "you, or it, said no (access_denied)" in text
            tab.can_be_read()
            assert login.ends() == 1
        assert "refused: you, or it, said no (access_denied)" in login.said
        assert "it needs a login" in client.execute("shop__pay", {"id": "b"}).text
        assert auth.requests("token") == []
        tab.wrong.clear()  # Chromium remarks that the page had the status 403

        # They think again.
        with desk.login(*command) as (login, address):
            tab.decides(address, "Allow")
            assert login.ends() == 0, login.said
        until(lambda: "shop__pay" in client.search("pay an invoice"), PATIENCE)
        assert client.execute("shop__pay", {"id": "c"}).text == "Receipt 1: c"
    assert endpoints(auth) == {"register": 1, "authorize": 4, "token": 1}
    assert len(desk.opened) == 2
