"""What the pages of `mcpzip ui` show, with a daemon and without one."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from html import unescape
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from helpers.daemons import Home, daemon_home, said
from helpers.driver import INITIALIZE, alive, run, until
from helpers.ui_client import Page, page_of

from mcpzip.ui.limits import STREAMS

_SERVER = """
import json, sys
print("ready <b>to</b> serve", file=sys.stderr, flush=True)
schema = {"type": "object", "properties": {"what": {"type": "string", "description": "What to say"},
    "times": {"type": "integer"}, "loud": {"type": "boolean"}}, "required": ["what"]}
tools = [{"name": "say", "description": "Say something aloud", "inputSchema": schema,
    "annotations": {"readOnlyHint": True}}, {"name": "fail", "description": "Fail always"}]
for line in sys.stdin:
    m = json.loads(line)
    def say(**more): print(json.dumps({"jsonrpc": "2.0", "id": m["id"], **more}), flush=True)
    if "id" not in m: continue
    if m["method"] == "initialize":
        say(result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}})
    elif m["method"] == "tools/list": say(result={"tools": tools})
    elif m["method"] == "tools/call" and m["params"]["name"] == "fail":
        say(result={"content": [{"type": "text", "text": "it <i>failed</i>"}], "isError": True})
    elif m["method"] == "tools/call":
        say(result={"content": [{"type": "text", "text": json.dumps(m["params"]["arguments"])}]})
    else: say(error={"code": -32601, "message": "no"})
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The page of a config with a server that was listed, and one that can't be started."""
    folder = tmp_path_factory.mktemp("ui")
    (folder / "server.py").write_text(_SERVER)
    servers = {
        "voice": {"command": sys.executable, "args": [str(folder / "server.py")]},
        "broken": {"command": str(folder / "is-not-there")},
    }
    config = folder / "config.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    run("servers", "--config", str(config))
    with page_of(config) as page:
        yield page.sign_in()


def test_the_overview_says_what_is_wrong_and_what_tools_cost(page: Page) -> None:
    words = page.get("/").words
    assert "Servers 2 Tools 2" in words
    assert "broken failing" in words
    assert "is-not-there" in words
    assert "No daemon runs now" in words
    until(lambda: "all tools listed" in page.get("/").words)
    assert "<rect" in page.get("/").text


def test_servers_are_filtered_here(page: Page) -> None:
    assert "voice idle 2" in page.get("/servers").words
    words = page.get("/servers?find=ROK").words
    assert "1 server of 2" in words
    assert "voice" not in words
    assert "No server has this in its name" in page.get("/servers?find=x").words


def test_a_server_has_a_page(page: Page) -> None:
    words = page.get("/servers/voice").words
    assert "Say something aloud [what:string*, loud:boolean, times:integer]" in words
    assert "The daemon doesn't run this server" in words
    assert "1 tool of 2" in page.get("/servers/voice?find=FAI").words
    assert page.get("/servers/nobody").status == 404


def test_a_search_is_what_the_model_reads_and_why(page: Page) -> None:
    answer = page.get("/search?query=say+somethign+aloud&limit=1")
    assert "voice__say: Say something aloud [what:string*, loud:boolean, times:integer]" in answer.words
    assert "'somethign' as 'something'" in answer.words
    assert "Matched: say" in answer.words
    assert answer.text.count("<rect") >= 3
    assert "Just missed" in page.get("/search?query=something+or+fail&limit=1").words


def test_a_tool_is_called_by_its_form(page: Page) -> None:
    words = page.get("/tools/voice__say").words
    assert "Its server says: changes nothing" in words
    assert "what (required)" in words
    filled = {"argument.what": "a <b> & \u202e", "argument.times": "3", "argument.loud": "true"}
    answer = page.submit("/tools/voice__say", **filled)
    assert answer.status == 200
    assert '{"what": "a <b> & \\u202e", "times": 3, "loud": true}' in answer.words
    assert "<b>" not in answer.text
    whole = page.submit("/tools/voice__say", json='{"what": "x", "other": [1]}').words
    assert '{"what": "x", "other": [1]}' in whole


def test_what_was_filled_in_is_sent_again_as_it_was(page: Page) -> None:
    """A second press of *Call* must not send an escape or a shortened text instead."""
    text = "x" * 5_000 + "\u202e\u200d\x01é"
    answer = page.submit("/tools/voice__say", **{"argument.what": text})
    found = re.search(r'<textarea[^>]* name="argument.what"[^>]*>\n(.*?)</textarea>', answer.text, re.DOTALL)
    assert found
    assert unescape(found[1]) == text
    whole = json.dumps({"what": "y" * 5_000})
    assert f'"{"y" * 5_000}"' in unescape(page.submit("/tools/voice__say", json=whole).text.split("json")[-1])


def test_a_link_fills_in_nothing(page: Page) -> None:
    answer = page.get("/tools/voice__say?argument.what=of-a-link&json=of-a-link")
    assert answer.status == 200
    assert "of-a-link" not in answer.text


def test_a_call_that_fails_says_so(page: Page) -> None:
    answer = page.submit("/tools/voice__fail")
    assert "The tool reports an error" in answer.words
    assert "it <i>failed</i>" in answer.words
    wrong = page.submit("/tools/voice__say", **{"argument.times": "three"})
    assert wrong.status == 400
    assert "times: 'three' is not integer" in wrong.words
    assert page.get("/tools/voice__nothing").status == 404


def test_pages_that_are_not_there(page: Page) -> None:
    for path in (
        "/calls/999999",
        "/calls/x",
        "/servers/voice/restart",
        "/static/base.html",
        "/static/..%2fpage.py",
        "/servers/",
        "//",
    ):
        assert page.get(path).status == 404
    assert page.submit("/servers").status == 404


def test_a_head_has_no_body(page: Page) -> None:
    answer = page.ask("HEAD", "/")
    assert (answer.status, answer.text) == (200, "")


def test_an_edit_of_the_config_is_seen(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text("{")
    with page_of(config) as page:
        page.sign_in()
        answer = page.get("/")
        assert answer.status == 200
        assert str(config) in answer.words
        assert str(config) in page.get("/servers").words
        assert page.get("/servers/new").status == 503
        config.write_text(
            json.dumps({"mcpServers": {"new": {"url": "http://127.0.0.1:9/mcp", "type": "http"}}})
        )
        assert "new" in page.get("/servers").words


def test_a_server_whose_name_is_a_step_in_a_path_has_a_page(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"mcpServers": {".": {"command": "x"}, "..": {"command": "y"}}}))
    with page_of(config) as page:
        page.sign_in()
        for name in (".", ".."):
            assert f'href="{page.root}/servers/~{name}"' in page.get("/servers").text
            assert page.get(f"/servers/~{name}").status == 200
            assert f"Disable {name}" in page.submit(f"/servers/~{name}/edit", action="disable").words


def test_it_works_from_an_empty_home(tmp_path: Path) -> None:
    with page_of(tmp_path / "config.json") as page:
        page.sign_in()
        answer = page.get("/")
        assert answer.status == 200
        assert "mcpzip migrate" in answer.words
        for path in ("/servers", "/config", "/add"):
            assert page.get(path).status == 200
    assert os.listdir(tmp_path) == []


def big(config: Path) -> None:
    """Leaves the catalog of 5,000 tools of 50 servers."""
    schema: Any = {
        "type": "object",
        "properties": {f"p{n}": {"type": "string", "description": "x" * 40} for n in range(8)},
    }
    names = [f"server-{number}" for number in range(50)]
    records = {
        name: {
            "fetched_at": time.time(),
            "tools": [
                {
                    "name": f"tool_{n}_of_{name}",
                    "description": f"Does the work {n} " * 10,
                    "inputSchema": schema,
                }
                for n in range(100)
            ],
        }
        for name in names
    }
    (config.parent / "cache").mkdir(mode=0o700)
    kept = {"format": "mcpzip-snapshot", "version": 1, "config": str(config), "servers": records}
    (config.parent / "cache" / "tools.json").write_text(json.dumps(kept))
    config.write_text(json.dumps({"mcpServers": {name: {"command": "x"} for name in names}, "pins": "off"}))


def test_pages_of_5000_tools_are_small(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    big(config)
    with page_of(config) as page:
        page.sign_in()
        until(lambda: "all tools listed" in page.get("/").words)
        for path in (
            "/",
            "/servers",
            "/servers/server-1",
            "/config",
            "/search?query=work&limit=20",
            "/tools/server-1__tool_1_of_server-1",
        ):
            answer = page.get(path)
            assert answer.status == 200, path
            assert len(answer.text.encode()) < 200_000, path
        assert "1–50 of 100" in page.get("/servers/server-1").words
        assert "51–100 of 100" in page.get("/servers/server-1?page=2").words


# --- with a daemon


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    with daemon_home(tmp_path, monkeypatch) as home:
        yield home


def test_the_daemon_is_seen_and_its_servers_are_restarted(home: Home) -> None:
    with home.serving() as agent, page_of(home.config) as page:
        first = said(agent)["pid"]
        page.sign_in()
        words = page.get("/").words
        assert f"The daemon: process {home.pid}" in words
        assert "test 1" in words
        assert "up connected 1" in words
        assert f"process {first}" in page.get("/servers/up").words
        answer = page.submit("/servers/up/stop")
        assert answer.headers["location"] == f"{page.root}/servers/up?done=stopped"
        until(lambda: not alive(first))
        assert "It was stopped" in page.get("/servers/up?done=stopped").words
        answer = page.submit("/servers/up/restart")
        assert answer.headers["location"] == f"{page.root}/servers/up?done=restarted"
        until(lambda: home.starts() == 2)
        assert page.submit("/servers/nobody/stop").status == 404


def test_what_a_server_wrote_to_stderr_is_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import sys; print('can <b>not</b> \\x1b[2J start', file=sys.stderr); sys.exit(3)"
    others = {"noisy": {"command": sys.executable, "args": ["-c", program]}}
    with (
        daemon_home(tmp_path, monkeypatch, others=others) as home,
        home.serving(),
        page_of(home.config) as page,
    ):
        page.sign_in()
        until(lambda: "can <b>not</b> \\x1b[2J start" in page.get("/servers/noisy").words)
        until(lambda: "noisy failing" in page.get("/").words)  # what it wrote is known before its end


def test_a_change_is_told_to_an_open_page(home: Home) -> None:
    with page_of(home.config) as page:
        page.sign_in()
        stream = HTTPConnection("127.0.0.1", int(page.host.rpartition(":")[2]), timeout=30)
        try:
            stream.request("GET", f"{page.root}/events", headers={"Host": page.host, "Cookie": page.cookie})
            response = stream.getresponse()
            assert response.headers["content-type"] == "text/event-stream"
            news = [b"event: message\r\n", b'data: {"changed":true}\r\n', b"\r\n"]
            assert [response.readline() for _ in news] == news  # since the page was asked for
            with home.serving():
                assert [response.readline() for _ in news] == news
        finally:
            stream.close()


def test_the_name_of_a_client_is_only_text(home: Home, tmp_path: Path) -> None:
    folder = tmp_path / "<b>folder<"
    folder.mkdir()
    with home.serving(begin=False, cwd=folder) as agent, page_of(home.config) as page:
        agent.ask(
            "initialize", {**INITIALIZE, "clientInfo": {"name": "<img src=x>\u202e\x1b[2J", "version": "<"}}
        )
        page.sign_in()
        until(lambda: "<img src=x>" in page.get("/").words)  # serve may answer before the daemon knows it
        answer = page.get("/")
        assert not set(answer.text) & set("\u202e\x1b")
        assert "<img" not in answer.text
        assert "<b>" not in answer.text


def test_it_ends_at_once_whatever_is_under_way(home: Home) -> None:
    with page_of(home.config) as page, ExitStack() as stack:
        page.sign_in()
        with home.serving() as agent:
            said(agent)
        until(lambda: page.get("/tools/up__wait").status == 200)
        form = urlencode({"form_token": page.get("/").form_token, "json": '{"until": "/never"}'})
        head = f"Host: {page.host}\r\nCookie: {page.cookie}\r\nOrigin: {page.origin}\r\n"
        head += f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(form)}\r\n\r\n"
        for start in (f"GET {page.root}/events", f"POST {page.root}/tools/up__wait"):
            connection = socket.create_connection(("127.0.0.1", int(page.host.rpartition(":")[2])))
            stack.enter_context(connection)
            body = form if start.startswith("POST") else ""
            size = head if body else head.replace(f"Content-Length: {len(form)}\r\n", "")
            connection.sendall(f"{start} HTTP/1.1\r\n{size}{body}".encode())
        until(lambda: home.calls("wait"))


def test_streams_of_changes_are_bounded(home: Home) -> None:
    with page_of(home.config) as page, ExitStack() as stack:
        page.sign_in()
        statuses = []
        for _ in range(STREAMS + 1):
            stream = HTTPConnection("127.0.0.1", int(page.host.rpartition(":")[2]), timeout=30)
            stack.callback(stream.close)
            stream.request("GET", f"{page.root}/events", headers={"Host": page.host, "Cookie": page.cookie})
            statuses.append(stream.getresponse().status)
        assert statuses == [200] * STREAMS + [503]
        assert page.get("/").status == 200


def test_serving_imports_nothing_of_the_page() -> None:
    code = "import sys, mcpzip.server.daemon.daemon, mcpzip.server.http.serve, mcpzip.cli.commands\n"
    code += "print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not [name for name in loaded if name.startswith(("mcpzip.ui", "jinja2", "markupsafe"))]


def test_what_is_held_back_is_counted_and_not_offered(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(
        _SERVER.replace("Say something aloud", "Say it \\u202e\\u200b <i>now</i>")
    )
    config = tmp_path / "config.json"
    entry = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    config.write_text(json.dumps({"mcpServers": {"odd": entry}}))
    run("servers", "--config", str(config))
    with page_of(config) as page:
        page.sign_in()
        words = page.get("/servers/odd").words
        assert "1 tool held back" in words
        assert "mcpzip review odd" in words
        assert "1 tool " in words
        assert "Say it" not in words
        assert "1 tool held back" in page.get("/search?query=say+it").words
        assert page.get("/tools/odd__say").status == 404
        assert page.submit("/tools/odd__say", json='{"what": "x"}').status == 404


def test_a_call_follows_the_policy(tmp_path: Path) -> None:
    (tmp_path / "server.py").write_text(_SERVER)
    config = tmp_path / "config.json"
    entry = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    config.write_text(
        json.dumps({"mcpServers": {"voice": entry}, "policy": {"writes": "deny", "destroys": "deny"}})
    )
    run("servers", "--config", str(config))
    with page_of(config) as page:
        page.sign_in()
        assert '{"what": "x"}' in page.submit("/tools/voice__say", json='{"what": "x"}').words
        answer = page.submit("/tools/voice__fail")
        assert "it <i>failed</i>" not in answer.words
        assert "denies" in answer.words or "policy" in answer.words


def test_a_call_about_which_the_policy_asks_is_refused(tmp_path: Path) -> None:
    """Nobody can be asked on the page, and no button of it says yes."""
    called = tmp_path / "called"
    program = _SERVER.replace(
        'm["params"]["name"] == "fail":',
        f'm["params"]["name"] == "fail":\n        open({str(called)!r}, "w")',
    )
    (tmp_path / "server.py").write_text(program)
    config = tmp_path / "config.json"
    entry = {"command": sys.executable, "args": [str(tmp_path / "server.py")]}
    policy = {"tools": {"voice__fail": "ask", "voice__say": "deny"}}
    config.write_text(json.dumps({"mcpServers": {"voice": entry}, "policy": policy}))
    run("servers", "--config", str(config))
    with page_of(config) as page:
        page.sign_in()
        for fields in (
            {},
            {"json": "{}"},
            {"confirm": "yes", "approved": "true", "json": '{"approved": true}'},
        ):
            answer = page.submit("/tools/voice__fail", **fields)
            assert "Nothing ran" in answer.words
            assert "mcpzip allow --call" in answer.words
            assert "it <i>failed</i>" not in answer.words
        assert re.findall(r"<button[^>]*>([^<]*)", answer.text) == ["Sign out", "Call"]
        denied = page.submit("/tools/voice__say", json='{"what": "x"}').words
        assert "policy.tools" in denied
        assert "Result" not in denied
    assert not called.exists()


def test_a_tool_that_changed_for_the_worse_is_not_called(tmp_path: Path) -> None:
    program = tmp_path / "server.py"
    program.write_text(_SERVER)
    config = tmp_path / "config.json"
    entry = {"command": sys.executable, "args": [str(program)]}
    config.write_text(json.dumps({"mcpServers": {"voice": entry}}))
    run("servers", "--config", str(config))
    with page_of(config) as page:
        page.sign_in()
        assert '{"what": "x"}' in page.submit("/tools/voice__say", json='{"what": "x"}').words
        program.write_text(_SERVER.replace("Say something aloud", "Say it \\u202e\\u200b <i>now</i>"))
        run("servers", "--config", str(config))
        assert "1 tool held back" in page.get("/servers/voice").words
        assert "now" not in page.get("/tools/voice__say").words
        assert (
            '{"what": "x"}'
            not in page.submit("/tools/voice__say", json='{"what": "x"}').words.split("Call it")[0]
        )
