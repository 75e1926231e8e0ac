"""The page *Calls*, latencies on a server's page, and calls from the page that go through the daemon."""

import json
import re
import socket
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from helpers.acting_markup import acting
from helpers.daemons import Home, daemon_home, said, say_often
from helpers.driver import INITIALIZE, until
from helpers.ui_client import Page, page_of
from helpers.ui_places import MARKUP


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with daemon_home(tmp_path, monkeypatch) as home:
        yield home


def called(page: Page, tool: str, **arguments: object) -> str:
    """What the page says after a call of ``up``'s tool."""
    until(lambda: page.get(f"/tools/up__{tool}").status == 200)
    return page.submit(f"/tools/up__{tool}", json=json.dumps(arguments)).words


def test_the_calls_of_all_agents_are_a_waterfall(home: Home, tmp_path: Path) -> None:
    with home.serving() as one, home.serving(begin=False) as other, page_of(home.config) as page:
        page.sign_in()
        assert "There was no call yet" in page.get("/calls").words
        other.ask("initialize", {**INITIALIZE, "clientInfo": {"name": "another", "version": "7"}})
        said(one)
        said(other, "where")
        waiting = one.send_call("up__wait", {"until": str(tmp_path / "go")})
        until(lambda: "under way" in page.get("/calls?outcome=under+way").words)
        answer = page.get("/calls")
        assert "test → up → say" in answer.words
        assert "another → up → where" in answer.words
        assert answer.text.count("<svg") >= 3
        (tmp_path / "go").touch()
        one.answer(waiting)
        until(lambda: "under way" not in page.get("/calls").words.split("Outcome")[-1])
        assert "1 call of 3" in page.get("/calls?client=another").words
        assert "2 calls of 3" in page.get("/calls?tool=A").words
        assert "No call matches" in page.get("/calls?outcome=failed").words
        words = page.get("/calls/1").words
        assert "it was sent to the server" in words
        assert "the server answered" in words
        server = page.get("/servers/up")
        assert "its last 3 calls" in server.words
        assert server.text.count('<rect class="server"') == 3


def test_a_page_of_a_thousand_calls_is_small(home: Home) -> None:
    with home.serving() as client, page_of(home.config) as page:
        page.sign_in()
        say_often(client, 1_100)
        answer = page.get("/calls")
        assert "1,000 calls" in answer.words
        assert "1–50 of 1,000" in answer.words
        assert len(answer.text.encode()) < 200_000
        last = page.get("/calls?page=20").text
        assert re.findall(r"/calls/([0-9]+)\"", last)[0] == "101"
        assert page.get("/calls/100").status == 404


def test_names_of_clients_and_tools_are_only_text(home: Home) -> None:
    with home.serving(begin=False) as agent, page_of(home.config) as page:
        agent.ask("initialize", {**INITIALIZE, "clientInfo": {"name": MARKUP, "version": MARKUP}})
        said(agent)
        page.sign_in()
        paths = ("/calls", "/calls/1", f"/calls?{urlencode({'client': MARKUP})}")
        for path in paths:
            answer = page.get(path)
            assert answer.status == 200
            assert acting(answer.text) == []
            assert not set(answer.text) & set("\u202e\u200b\x1b\x07")
        assert "<script>alert(1)</script>" in unescape(page.get("/calls/1").text)


# --- calls from the page


def waiting_call(page: Page) -> socket.socket:
    """A tab that waits for a call of ``wait``."""
    form = urlencode({"form_token": page.get("/").form_token, "json": '{"until": "/never"}'})
    head = f"POST {page.root}/tools/up__wait HTTP/1.1\r\nHost: {page.host}\r\nCookie: {page.cookie}\r\n"
    head += f"Origin: {page.origin}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    connection = socket.create_connection(("127.0.0.1", int(page.host.rpartition(":")[2])))
    connection.sendall(f"{head}Content-Length: {len(form)}\r\n\r\n{form}".encode())
    return connection


@pytest.mark.parametrize("loopback", [False, True])
def test_a_call_of_the_page_runs_in_the_server_of_the_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, loopback: bool
) -> None:
    with (
        daemon_home(tmp_path, monkeypatch, loopback=loopback) as home,
        home.serving() as agent,
        page_of(home.config) as page,
    ):
        pid = said(agent)["pid"]
        page.sign_in()
        assert f'"pid": {pid}' in called(page, "say")
        assert home.starts() == 1
        assert "mcpzip ui → up → say" in page.get("/calls").words
        assert "mcpzip ui" in page.get("/").words
        assert f'"pid": {pid}' in called(page, "where")
        assert home.starts() == 1


def test_without_a_daemon_the_page_calls_itself(home: Home) -> None:
    with home.serving() as agent:
        said(agent)
    home.stop()
    with page_of(home.config) as page:
        page.sign_in()
        assert "There was no call yet" in page.get("/calls").words
        assert '"pid"' in called(page, "say")
        assert home.starts() == 2
        words = page.get("/calls").words
        assert "No daemon runs now, so these are only the calls that were made from this page" in words
        assert "mcpzip ui → up → say" in words
        assert "its last 1 call" in page.get("/servers/up").words
        config = json.loads(home.config.read_text())
        home.config.write_text(json.dumps({**config, "call_timeout_seconds": 77}))
        assert "its last 1 call" in page.get("/servers/up").words


@pytest.mark.parametrize("expose", ["direct", "transparent"])
def test_whatever_agents_are_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expose: str) -> None:
    with (
        daemon_home(tmp_path, monkeypatch, expose=expose) as home,
        home.serving() as agent,
        page_of(home.config) as page,
    ):
        agent.ask("tools/list")
        page.sign_in()
        until(lambda: page.get("/tools/up__say").status == 200)
        starts = home.starts()
        assert '"x": "y"' in called(page, "say", x="y")
        assert "mcpzip ui → up → say" in page.get("/calls").words
        assert home.starts() == starts


def test_the_policy_decides_in_the_daemon_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = {"tools": {"up__where": "deny", "up__say": "ask"}}
    with (
        daemon_home(tmp_path, monkeypatch, policy=policy) as home,
        home.serving(),
        page_of(home.config) as page,
    ):
        page.sign_in()
        assert "denied by policy" in called(page, "where")
        words = called(page, "say")
        assert "Nothing ran" in words
        assert "mcpzip allow --call" in words
        assert home.calls("say") == home.calls("where") == []
        words = page.get("/calls?outcome=failed").words
        assert "policy: deny" in words
        assert "not asked ; policy: ask" in words


def test_a_daemon_that_is_lost_during_a_call_is_said(home: Home) -> None:
    with home.serving() as agent, page_of(home.config) as page:
        said(agent)
        page.sign_in()
        until(lambda: page.get("/tools/up__wait").status == 200)
        with waiting_call(page) as connection:
            until(lambda: home.calls("wait"))
            home.kill()
            connection.settimeout(20)
            answer = b""
            while b"</html>" not in answer:
                answer += connection.recv(1 << 16)
        assert b"so the tool may have run" in answer
        assert '"pid"' in called(page, "say")


def test_a_tab_that_is_closed_cancels_its_call(home: Home) -> None:
    with home.serving() as agent, page_of(home.config) as page:
        said(agent)
        page.sign_in()
        until(lambda: page.get("/tools/up__wait").status == 200)
        with waiting_call(page):
            until(lambda: home.calls("wait"))
        until(lambda: home.noted("cancelled"))
        until(lambda: "cancelled" in page.get("/calls").words)


# --- kept results


def test_a_kept_result_is_read_in_parts(home: Home) -> None:
    text = "".join(f"{number} <b>words</b> " for number in range(9_000))
    with home.serving() as agent, page_of(home.config) as page:
        said(agent)
        page.sign_in()
        until(lambda: page.get("/tools/up__say").status == 200)
        answer = page.submit("/tools/up__say", json=json.dumps({"x": text}))
        assert "Kept as r1-" in answer.words
        path = next_part(answer.text, "Read the whole result in parts")
        found, parts = "", 0
        while path:
            answer = page.get(path)
            part = re.search(r'<pre[^>]*aria-labelledby="kept">\n(.*?)</pre>', answer.text, re.DOTALL)
            assert part, answer.text
            assert "<b>" not in part[1]
            found, parts, path = found + unescape(part[1]), parts + 1, next_part(answer.text, "Next part")
        assert json.loads(found)["x"] == text
        assert parts > 10
        before = next_part(answer.text, "Previous part")
        assert "characters" in page.get(before).words.lower()
        assert "r9-madnawbx2cwm5gkt" in page.get("/tools/up__say?kept=r9-madnawbx2cwm5gkt&from=1").words


def next_part(text: str, label: str) -> str:
    found = re.search(rf'href="[^"]*?(/tools/[^"#]*)#kept">{label}', text)
    return unescape(found[1]) if found else ""


def test_without_a_session_nothing_is_kept(home: Home) -> None:
    with page_of(home.config) as page:
        page.sign_in()
        page.get("/servers")
        with home.serving() as agent:
            said(agent)
        until(lambda: page.get("/tools/up__say").status == 200)
        answer = page.get("/tools/up__say?kept=r1-madnawbx2cwm5gkt&from=1")
        assert answer.status == 200
        assert "kept no more" in answer.words


def test_a_link_to_a_kept_result_calls_no_tool_of_a_transparent_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        daemon_home(tmp_path, monkeypatch, expose="transparent") as home,
        home.serving() as agent,
        page_of(home.config) as page,
    ):
        agent.ask("tools/list")
        page.sign_in()
        called(page, "where")
        assert page.get("/tools/up__where?kept=r1-aaaaaaaaaaaaaaaa&from=1").status == 200
        assert "execute_tool" not in page.get("/calls").words
