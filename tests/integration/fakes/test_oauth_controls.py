"""A fake authorization server in the hands of a test: controls, pages, faults; as a process too."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
from helpers.driver import until
from helpers.oauth_client import CALLBACK, called, controls, origin
from mcpzip_fakes.errors import ScenarioError
from mcpzip_fakes.faults import fault
from mcpzip_fakes.launch import FakeServer, importable
from mcpzip_fakes.oauth.authority import s256
from mcpzip_fakes.oauth.controls import AuthControls
from mcpzip_fakes.oauth.server import FakeAuth
from mcpzip_fakes.oauth.settings import OAuth
from mcpzip_fakes.pytest_plugin import fake_auth as fake_auth
from mcpzip_fakes.scenario import Scenario

Start = Callable[..., FakeServer]
StartAuth = Callable[..., FakeAuth]
VERIFIER = "v" * 43


def start(fake_mcp: Start, **oauth: object) -> FakeServer:
    return fake_mcp(tools=["echo", "pay"], transport="http", oauth=oauth)


def refreshing(auth: AuthControls, minted: dict[str, Any], **options: Any) -> httpx.Response:
    form = {
        "grant_type": "refresh_token",
        "refresh_token": minted["refresh_token"],
        "client_id": minted["client"]["client_id"],
    }
    return httpx.post(f"{auth.issuer}/token", data=form, **options)


def authorization_url(auth: AuthControls, client: str, **changed: str) -> str:
    fields = {
        "response_type": "code",
        "client_id": client,
        "redirect_uri": CALLBACK,
        "state": "s",
        "code_challenge": s256(VERIFIER),
        "code_challenge_method": "S256",
        **changed,
    }
    return f"{auth.issuer}/authorize?{urlencode(fields)}"


def test_a_test_reaches_in(fake_mcp: Start) -> None:
    server = start(fake_mcp)
    auth = controls(server)
    minted = auth.mint()
    assert minted["resource"] == server.url
    assert auth.revoke_access() == 1
    assert called(server, str(minted["access_token"])).status_code == 401
    again = refreshing(auth, minted).json()
    assert called(server, again["access_token"]).status_code == 200
    assert auth.revoke(again["access_token"]) == 1
    assert called(server, again["access_token"]).status_code == 401
    assert auth.revoke_refresh() == 1  # the first was rotated
    assert refreshing(auth, again | {"client": minted["client"]}).json()["error"] == "invalid_grant"
    first, second = auth.refreshes()
    assert (first.status, second.status) == (200, 400)
    assert first.fields["refresh_token"] == minted["refresh_token"]
    assert first.answer == again
    assert second.time >= first.time
    assert [token.ended for token in auth.tokens()] == ["revoked", "rotated", "revoked", "revoked"]
    auth.forget_clients()
    assert refreshing(auth, minted).json()["error"] == "invalid_client"
    noted = server.record.events("auth")
    assert [line.detail["endpoint"] for line in noted] == ["token"] * 3
    assert [line.detail["status"] for line in server.record.events("auth-answer")] == [200, 400, 401]


@pytest.mark.parametrize("decision", ["allow", "deny"])
def test_a_person_is_asked(fake_auth: StartAuth, decision: str) -> None:
    auth = fake_auth(approve="page", resource="optional", scopes=["read"])
    client = str(auth.mint(redirect_uris=[CALLBACK])["client"]["client_id"])  # type: ignore[index, call-overload]
    url = authorization_url(auth, client, scope="read")
    page = httpx.get(url).text
    assert '<button type="submit" name="decision" value="allow">Allow</button>' in page
    assert '<button type="submit" name="decision" value="deny">Deny</button>' in page
    back = auth.visit(url, decision)
    assert back["state"] == "s"
    assert ("code" in back, back.get("error")) == (
        (True, None) if decision == "allow" else (False, "access_denied")
    )
    with pytest.raises(ValueError, match="There is no client &#x27;&lt;b&gt;&#x27;"):
        auth.visit(authorization_url(auth, "<b>"))


def test_the_browser_goes_back(fake_auth: StartAuth) -> None:
    with HTTPServer(("127.0.0.1", 0), _Callback) as callback:
        threading.Thread(target=callback.serve_forever, args=(0.01,), daemon=True).start()
        back = f"http://127.0.0.1:{callback.server_port}/callback"
        auth = fake_auth(resource="optional")
        client = auth.mint(redirect_uris=["http://127.0.0.1/callback"])["client"]
        assert isinstance(client, dict)
        page = auth.browse(authorization_url(auth, client["client_id"], redirect_uri=back))
        callback.shutdown()
    assert page.startswith("it worked: /callback?code=code-1-")


def test_a_document_on_loopback_is_fetched(fake_auth: StartAuth) -> None:
    with HTTPServer(("127.0.0.1", 0), _Callback) as holder:
        threading.Thread(target=holder.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{holder.server_port}/client.json"
        auth = fake_auth(cimd=True, resource="optional")
        assert "code" in auth.visit(authorization_url(auth, url))
        with pytest.raises(ValueError, match="can&#x27;t be had"):
            auth.visit(authorization_url(auth, "http://127.0.0.1:1/client.json"))
        holder.shutdown()


class _Callback(BaseHTTPRequestHandler):
    """A client's own server: its callback, and its document."""

    def do_GET(self) -> None:
        assert isinstance(self.server, HTTPServer)
        own = f"http://127.0.0.1:{self.server.server_port}{self.path}"
        document = json.dumps({"client_id": own, "redirect_uris": [CALLBACK]})
        said = document if self.path.endswith(".json") else f"it worked: {self.path}"
        self.send_response(200)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said.encode())

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def test_every_fault_of_an_endpoint(fake_auth: StartAuth) -> None:
    auth = fake_auth(resource="optional")
    minted: dict[str, Any] = auth.mint()

    def meet(kind: str, **options: object) -> httpx.Response:
        auth.configure(faults=[{"kind": kind, "grant": "refresh_token", **options}])
        return refreshing(auth, minted, timeout=httpx.Timeout(20, read=options.pop("read", 20)))  # type: ignore[arg-type]

    busy = meet("status", status=429, retry_after=7)
    assert (busy.status_code, busy.headers["retry-after"]) == (429, "7")
    assert meet("status").status_code == 500
    assert meet("error", error="temporarily_unavailable", status=503).json()["error"] == (
        "temporarily_unavailable"
    )
    with pytest.raises(json.JSONDecodeError):
        meet("garbage").json()
    assert meet("shape").json() == {"welcome": True}
    with pytest.raises(httpx.RemoteProtocolError):
        meet("cut", times=1)
    minted = auth.mint()
    auth.configure(faults=["hang"])
    before = len(auth.requests("token"))
    with pytest.raises(httpx.ReadTimeout):
        refreshing(auth, minted, timeout=httpx.Timeout(20, read=0.2))
    until(lambda: len(auth.requests("token")) > before)
    assert auth.requests("token")[-1].status is None
    there = meet("redirect").headers["location"]
    assert there == f"{auth.issuer}/token".replace("127.0.0.1", "localhost")
    assert meet("redirect", status=302).status_code == 302
    slow = meet("slow", seconds=0.01)
    assert slow.json()["access_token"]
    auth.configure(faults=[{"kind": "status", "nth": 2, "times": 1}])
    minted = auth.mint()
    statuses = []
    for _ in range(3):
        answer = refreshing(auth, minted)
        statuses.append(answer.status_code)
        minted = {**minted, **answer.json()} if answer.status_code == 200 else minted
    assert statuses == [200, 500, 200]


@pytest.mark.parametrize("endpoint", ["metadata", "resource", "authorize", "register", "revoke"])
def test_a_fault_of_another_endpoint(fake_mcp: Start, endpoint: str) -> None:
    server = start(fake_mcp, faults=[{"kind": "redirect", "endpoint": endpoint}])
    auth = controls(server)
    well_known = f"{origin(server)}/.well-known"
    url = {
        "metadata": f"{well_known}/oauth-authorization-server",
        "resource": f"{well_known}/oauth-protected-resource/mcp",
    }.get(endpoint, f"{auth.issuer}/{endpoint}?a=b")
    answer = httpx.get(url)
    assert answer.status_code == 307
    assert answer.headers["location"] == url.replace("127.0.0.1", "localhost")
    assert httpx.get(answer.headers["location"]).status_code in (200, 400, 405)
    assert [seen.host.partition(":")[0] for seen in auth.requests(endpoint)] == ["127.0.0.1", "localhost"]


def test_what_the_endpoints_take(fake_auth: StartAuth) -> None:
    auth = fake_auth(resource="optional")
    token = f"{auth.issuer}/token"
    assert httpx.get(token).status_code == 405
    assert httpx.post(token, json={}).json()["error"] == "invalid_request"
    twice = httpx.post(
        token,
        content="grant_type=a&grant_type=b",
        headers={"content-type": "application/x-www-form-urlencoded"},
    )
    assert twice.json()["error"] == "invalid_request"
    nobody = httpx.post(token, data={"grant_type": "refresh_token"}, auth=("a", "b"))
    assert (nobody.status_code, nobody.headers["www-authenticate"]) == (401, 'Basic realm="fake"')
    assert nobody.headers["cache-control"] == "no-store"
    assert httpx.post(f"{auth.issuer}/register", content=b"{").json()["error"] == "invalid_redirect_uri"
    assert httpx.get(f"{auth.issuer}/elsewhere").status_code == 404
    auth.configure(registration=False)
    assert httpx.post(f"{auth.issuer}/register", json={}).status_code == 404


def test_the_control_of_a_process(tmp_path: Path) -> None:
    record = tmp_path / "seen.jsonl"
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpzip_fakes", "protected", "--transport", "http", "--record", str(record)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **importable()},
    )
    with process:
        assert process.stdout
        url = process.stdout.readline().split()[1]
        auth = AuthControls.at(url)
        minted = auth.mint()
        assert (minted["scope"], minted["resource"]) == ("till:read", url)
        then = auth.now
        auth.advance(1000)
        assert auth.now >= then + 1000
        with pytest.raises(ValueError, match="approve is 'x'; write auto, page, deny"):
            auth.configure(approve="x")
        auth.configure(approve="auto", faults=[{"kind": "error", "times": 1}])
        assert [refreshing(auth, minted).status_code for _ in range(2)] == [400, 200]
        assert [seen.status for seen in auth.refreshes()] == [400, 200]
        assert auth.revoke() == 3
        for headers in ({"origin": "http://evil.example"}, {"content-type": "text/plain"}):
            headers = {"content-type": "application/json", **headers}
            told = httpx.post(f"{auth.issuer}/control", content=b'{"do":"tokens"}', headers=headers)
            assert told.status_code == 403
        wrong = httpx.post(f"{auth.issuer}/control", json={"do": "dance"})
        assert wrong.status_code == 400
        process.kill()


def test_mistakes_are_told(fake_mcp: Start, fake_auth: StartAuth) -> None:
    with pytest.raises(ScenarioError, match=r"there is no key 'aprove' here; the nearest is 'approve'"):
        fake_auth(aprove="auto")
    with pytest.raises(ScenarioError, match=r"oauth: .*there is no key 'aprove' here; the nearest is"):
        start(fake_mcp, aprove="auto")
    with pytest.raises(ScenarioError, match=r"no key 'secnds' here; the nearest is 'seconds'"):
        start(fake_mcp, faults=[{"kind": "slow", "secnds": 1}])
    with pytest.raises(ScenarioError, match="there are no tokens over stdio; use http or sse"):
        fake_mcp("protected")
    with pytest.raises(ScenarioError, match="there are no tokens over stdio; use http or sse"):
        fake_mcp(tools=["pay"], auth=fake_auth())
    with pytest.raises(ScenarioError, match="it can't share"):
        fake_mcp(tools=["pay"], auth=fake_auth(), transport="http", faults=[fault("crash")])
    with pytest.raises(ValueError, match="is not protected"):
        fake_mcp(tools=["pay"], transport="http").trust(fake_auth())


def test_a_scenario_keeps_its_oauth(tmp_path: Path) -> None:
    written = tmp_path / "mine.toml"
    written.write_text(
        '[oauth]\naccess_seconds = 5\nfaults = ["garbage", { kind = "status", status = 429 }]\n'
        'tool_scopes = { pay = ["write"] }\n\n[[oauth.clients]]\nid = "bot"\nsecret = "s"\n'
    )
    scenario = Scenario.load(written)
    assert isinstance(scenario.oauth, OAuth)
    assert [each.code for each in scenario.oauth.faults] == [500, 429]
    assert Scenario.load(scenario.save(tmp_path / "saved.json")) == scenario
    assert Scenario.from_mapping({"oauth": OAuth(approve="page")}).oauth == OAuth(approve="page")
