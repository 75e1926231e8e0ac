"""``mcpzip-fake check``: whatever changes in a server is named."""

import copy
import json
import os
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from helpers.cassette_maker import HELLO, message, recorded
from mcpzip_fakes.drift.drift import Report
from mcpzip_fakes.drift.server import ServerUnreachableError, check_command, check_url
from mcpzip_fakes.drift.settings import Settings
from mcpzip_fakes.launch import Fakes, FakeServer, importable
from msgspec.structs import replace

from mcpzip.cassettes import files
from mcpzip.cassettes.cassette import Check

DATA = Path(__file__).parents[2] / "data" / "drifts"
SERVER = tomllib.loads((DATA / "server.toml").read_text("utf-8"))
DRIFTS = tomllib.loads((DATA / "drifts.toml").read_text("utf-8"))["drifts"]
ANSWERS = {"roots/list": {"roots": [{"uri": "file:///home/ada"}]}}
Start = Callable[..., FakeServer]


def request(number: int, method: str, **params: object) -> bytes:
    return message(id=number, method=method, **({"params": params} if params else {}))


def call(number: int, tool: str, **more: object) -> bytes:
    return request(number, "tools/call", name=tool, arguments={}, **more)


CLIENT = [
    request(1, "initialize", **{**HELLO, "capabilities": {"roots": {}, "sampling": {}}}),
    message(method="notifications/initialized"),
    request(2, "tools/list"),
    request(3, "prompts/list"),
    request(4, "resources/list"),
    request(5, "resources/templates/list"),
    request(6, "tools/call", name="look", arguments={"q": "Ada"}),
    call(7, "refuse"),
    call(8, "show"),
    call(9, "ask"),
    call(10, "work", _meta={"progressToken": "p"}),
    call(11, "pay"),
    request(12, "prompts/get", name="remind", arguments={"who": "Ada"}),
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The cassette of the server."""
    folder = tmp_path_factory.mktemp("desk")
    path = str(folder / "desk.toml")
    with Fakes(folder / "fakes") as fakes:
        command = fakes.start(SERVER).command
        files.save(path, recorded(command, CLIENT, answers=ANSWERS))
    return path


def changed(server: Mapping[str, object], drift: Mapping[str, object]) -> dict[str, object]:
    """``server`` with one thing changed."""
    whole: dict[str, object] = copy.deepcopy(dict(server))
    *path, last = drift["at"]  # type: ignore[misc]
    inner = whole
    for key in path:
        inner = inner[key]
    if "to" not in drift:
        del inner[last]
    elif isinstance(inner, list) and last == len(inner):
        inner.append(drift["to"])
    else:
        inner[last] = drift["to"]
    return whole


def check(cassette: str, server: FakeServer, **settings: object) -> Report:
    return check_command(cassette, server.command, Settings(**settings), env=server.env)  # type: ignore[arg-type]


def test_the_same_server_has_no_drift_and_nothing_is_paid(desk: str, fake_mcp: Start) -> None:
    server = fake_mcp(SERVER)
    report = check(desk, server)
    assert list(report.lines()) == [
        f"{desk}, against {' '.join(server.command)}: 0 drifts",
        "11 requests sent, 1 not sent.",
        "  not sent: tools/call pay: the tool may do more than read; --call pay or --call-all sends it",
    ]
    assert "pay" not in [each["name"] for each in server.record.calls()]


@pytest.mark.parametrize("drift", DRIFTS, ids=lambda drift: drift["name"])
def test_each_drift_is_named(drift: dict[str, object], desk: str, fake_mcp: Start) -> None:
    server = fake_mcp(changed(SERVER, drift))
    report = check(desk, server, timeout=2.0 if drift["name"] == "hangs" else 30.0)
    lines = list(report.lines())
    assert any(line.strip().startswith(str(drift["says"])) for line in lines), "\n".join(lines)
    assert len(report.drifts) <= 3, "\n".join(lines)


def test_a_flood_is_named_once_and_held_back(desk: str, fake_mcp: Start) -> None:
    junk = [{"kind": "junk"}, {"kind": "flood", "count": 2_000, "size": 10_000}]
    report = check(desk, fake_mcp({**SERVER, "faults": junk}))
    assert [each.kind for each in report.drifts].count("no-message") == 1, list(report.lines())
    assert len(report.drifts) < 10


def test_there_are_enough_drifts() -> None:
    assert len({drift["name"] for drift in DRIFTS}) == len(DRIFTS) >= 15


@pytest.mark.parametrize("transport", ["http", "sse"])
@pytest.mark.parametrize("name", ["description", "error code", "answer", "notification missing"])
def test_drifts_over_http(name: str, transport: str, desk: str, fake_mcp: Start) -> None:
    (drift,) = (each for each in DRIFTS if each["name"] == name)
    same, other = fake_mcp(SERVER, transport=transport), fake_mcp(changed(SERVER, drift), transport=transport)
    assert check_url(desk, same.url, Settings()).drifts == []
    report = check_url(desk, other.url, Settings())
    assert any(line.strip().startswith(drift["says"]) for line in report.lines()), list(report.lines())


def test_a_stream_that_the_server_closes_is_resumed(fake_mcp: Start, tmp_path: Path) -> None:
    tool: dict[str, object] = {"name": "poll", "annotations": {"readOnlyHint": True}}
    plain = fake_mcp(name="desk", tools=[{**tool, "result": {"text": "at last"}}])
    made = recorded(plain.command, [*CLIENT[:2], call(2, "poll")], answers={})
    files.save(path := str(tmp_path / "poll.toml"), made)
    for text, kinds in (("at last", []), ("too late", ["answer-value"])):
        result = {"text": text, "hangs_up": 0.01, "delay": 0.05}
        server = fake_mcp(name="desk", tools=[{**tool, "result": result}], transport="http")
        report = check_url(path, server.url, Settings())
        assert [each.kind for each in report.drifts] == kinds, list(report.lines())
        resumed = [line for line in server.record.events("http") if "last-event-id" in str(line.detail)]
        assert resumed, "the stream was not closed"


@pytest.mark.parametrize(
    ("endpoint", "status", "why"),
    [
        ("http://localhost:9/messages", 200, "the stream names a URL of another server for messages"),
        ("", 404, "the URL is no event stream (HTTP 404)"),
        ("", 200, "the stream names no URL for messages"),
    ],
)
def test_a_url_that_is_no_server_of_http_and_sse(endpoint: str, status: int, why: str, desk: str) -> None:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            if endpoint:
                self.wfile.write(f"event: endpoint\ndata: {endpoint}\n\n".encode())

        def log_message(self, format: str, *values: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            with pytest.raises(ServerUnreachableError) as caught:
                check_url(desk, f"http://127.0.0.1:{server.server_port}/", Settings(), transport="sse")
        finally:
            server.shutdown()
    assert why in str(caught.value)


_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
    "io.modelcontextprotocol/clientInfo": {"name": "t", "version": "1"},
}


@pytest.mark.parametrize("transport", ["stdio", "http"])
def test_a_stateless_server_with_pages_and_questions(transport: str, fake_mcp: Start, tmp_path: Path) -> None:
    """The present cursors and request states are sent, not the recorded ones."""
    modern = {**SERVER, "era": "modern", "page_size": 2}
    start = fake_mcp(modern)
    made = recorded(
        start.command,
        [
            request(1, "server/discover", _meta=_META),
            request(2, "tools/list", _meta=_META),
            request(3, "tools/call", name="look", arguments={"q": "Ada"}, _meta=_META),
            request(4, "tools/call", name="ask", arguments={}, _meta=_META),
        ],
        answers={},
    )
    asked = json.loads(made.exchanges[3].reply or b"")["result"]
    page = json.loads(made.exchanges[1].reply or b"")["result"]["nextCursor"]
    (key,) = asked["inputRequests"]
    answered = {
        "name": "ask",
        "arguments": {},
        "requestState": asked["requestState"],
        "inputResponses": {key: ANSWERS["roots/list"]},
        "_meta": _META,
    }
    more = recorded(
        start.command,
        [request(5, "tools/call", **answered), request(6, "tools/list", cursor=page, _meta=_META)],
        answers={},
    )
    whole = made.with_exchanges([*made.exchanges, *(replace(each, at=99.0) for each in more.exchanges)])
    path = str(tmp_path / "modern.toml")
    files.save(path, whole)
    same = fake_mcp(modern, transport=transport)
    report = check_url(path, same.url, Settings()) if transport == "http" else check(path, same)
    assert [each.line for each in report.drifts] == []
    assert [each.why for each in report.not_sent] == []
    assert len(same.record.calls("ask")) == 2
    other = fake_mcp(changed(modern, {"at": ["version"], "to": "2.0.0"}), transport=transport)
    report = check_url(path, other.url, Settings()) if transport == "http" else check(path, other)
    assert "server-info" in {each.kind for each in report.drifts}


def test_both_eras_of_one_recorded_session_are_checked_apart(fake_mcp: Start, tmp_path: Path) -> None:
    """Over HTTP one session can have requests of both; a server on stdio speaks only one."""
    server = fake_mcp({**SERVER, "era": "both"})
    legacy = recorded(server.command, [CLIENT[0], CLIENT[1], call(2, "show")], answers={})
    modern = recorded(
        server.command,
        [request(3, "server/discover", _meta=_META), call(4, "show", _meta=_META)],
        answers={},
    )
    later = [replace(each, at=each.at + 60) for each in modern.exchanges]
    path = str(tmp_path / "both.toml")
    files.save(path, legacy.with_exchanges([*legacy.exchanges, *later]))
    report = check(path, server)
    assert ([each.line for each in report.drifts], report.not_sent) == ([], [])
    assert len(server.record.calls("show")) == 4  # two while recording


def test_masked_secrets_are_no_drift_and_are_sent_when_given(
    desk: str, fake_mcp: Start, tmp_path: Path
) -> None:
    path = str(tmp_path / "masked.toml")
    text = Path(desk).read_text("utf-8")
    Path(path).write_text(
        text.replace("An invoice.", "[masked 1] invoice.").replace('"q":"Ada"', '"q":"[masked 2]"'), "utf-8"
    )
    server = fake_mcp(SERVER)
    report = check(path, server)
    assert report.drifts == []
    assert next((each.title, each.why) for each in report.not_sent) == (
        "tools/call look",
        "it holds a masked secret; --unmask gives its value",
    )
    assert server.record.calls("look") == []
    assert check(path, server, unmasked={"[masked 2]": 'A"da'}).drifts == []
    assert [each["arguments"] for each in server.record.calls("look")] == [{"q": 'A"da'}]


def test_tools_are_called_when_the_user_says_so(desk: str, fake_mcp: Start) -> None:
    server = fake_mcp(changed(SERVER, {"at": ["tools", 5, "result", "text"], "to": "Paid twice."}))
    assert check(desk, server).drifts == []
    for settings in ({"call": ("pay",)}, {"call_all": True}):
        (drift,) = check(desk, server, **settings).drifts
        assert drift.place == "tools/call pay (exchange 12)"
    assert len(server.record.calls("pay")) == 2


def test_a_tool_that_no_longer_says_that_it_only_reads_is_not_called(desk: str, fake_mcp: Start) -> None:
    server = fake_mcp(changed(SERVER, {"at": ["tools", 2, "annotations"], "to": {}}))
    check(desk, server)
    assert server.record.calls("show") == []


def test_only_one_area(desk: str, fake_mcp: Start) -> None:
    both = changed(changed(SERVER, {"at": ["version"], "to": "2"}), {"at": ["tools", 2, "result"], "to": {}})
    server = fake_mcp(both)
    assert [each.kind for each in check(desk, server, only="catalog").drifts] == ["server-info"]
    assert server.record.calls() == []
    assert [each.kind for each in check(desk, server, only="answers").drifts] == ["answer-value"]


def test_by_shape_values_dont_count(desk: str, fake_mcp: Start, tmp_path: Path) -> None:
    result = {"structuredContent": {"total": 9, "first": {"id": 1, "open": False}}}
    server = fake_mcp(changed(SERVER, {"at": ["tools", 0, "result"], "to": result}))
    paths = {each.path for each in check(desk, server).drifts}
    assert {"structuredContent.total", "structuredContent.first.id"} <= paths
    assert check(desk, server, shape=True).drifts == []
    ignored = ("look:structuredContent", "look:content")
    assert check(desk, server, ignore=ignored).drifts == []
    kept = str(tmp_path / "kept.toml")
    files.save(kept, replace(files.load(desk), check=Check(ignore=ignored)))
    assert check(kept, server).drifts == []
    gone = {"structuredContent": {"total": "9", "more": 1}}
    other = fake_mcp(changed(SERVER, {"at": ["tools", 0, "result"], "to": gone}))
    told = {(each.path, each.kind) for each in check(desk, other, shape=True).drifts}
    assert {
        ("structuredContent.first", "answer-removed"),
        ("structuredContent.more", "answer-added"),
        ("structuredContent.total", "answer-type"),
    } <= told


def test_the_command(desk: str, fake_mcp: Start, tmp_path: Path) -> None:
    same, other = fake_mcp(SERVER), fake_mcp(changed(SERVER, DRIFTS[1]))
    done = run("check", desk, "--", *same.command)
    assert (done.returncode, done.stderr) == (0, "")
    done = run("check", desk, "--json", "--", *other.command)
    assert done.returncode == 1
    told = json.loads(done.stdout)
    assert told["counts"] == {"breaking": 0, "changed": 1, "added": 0}
    assert told["drifts"][0]["path"] == "serverInfo.version"
    assert run("check", desk, "--fail-on", "breaking", "--", *other.command).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give the server's command after --, or its --url"),
        (("--url", "http://127.0.0.1:1/mcp"), "Nothing answers at http://127.0.0.1:1/mcp"),
        (("--url", "time"), "'time' is no http or https URL"),
        (("--", "no-such-program"), "no-such-program can't be started"),
        (("--header", "a: b", "--", "true"), "--header and --transport are for --url"),
        (("--unmask", "1=NOT_SET_HERE", "--", "true"), "the variable NOT_SET_HERE is not set"),
    ],
)
def test_wrong_use(arguments: tuple[str, ...], says: str, desk: str) -> None:
    done = run("check", desk, *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_server_that_cant_be_started_is_no_drift(desk: str) -> None:
    with pytest.raises(ServerUnreachableError):
        check_command(desk, ["no-such-program"], Settings())


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mcpzip_fakes", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=60,
        env={**os.environ, **importable()},
    )


def test_a_check_that_sends_nothing_is_no_pass(tmp_path: Path) -> None:
    cassette = tmp_path / "empty.toml"
    cassette.write_text("cassette = 1\n[[exchanges]]\nrequest = 'no message'\n")
    done = run("check", str(cassette), "--", sys.executable, "-c", "pass")
    assert done.returncode == 2
    assert "nothing was compared" in done.stderr
