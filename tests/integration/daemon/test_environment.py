"""What an agent's environment means for the servers that a daemon starts, or reaches, for it."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from helpers.daemons import daemon_home, said

PRINT = "import json, os; print(json.dumps({'X-Of': os.environ.get('OF', 'nobody')}))"


class Site(ThreadingHTTPServer):
    """A server that speaks MCP, also as an HTTP proxy. asked: the targets of requests, and a header."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[tuple[str, str | None]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Site

    def do_POST(self) -> None:
        self.server.asked.append((self.path, self.headers.get("X-Of")))
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        result: Any = {"tools": [{"name": "here", "inputSchema": {"type": "object"}}]}
        if message["method"] == "initialize":
            capabilities: dict[str, object] = {"tools": {}}
            result = {"protocolVersion": "2025-11-25", "capabilities": capabilities}
            result["serverInfo"] = {"name": "s", "version": "1"}
        elif message["method"] == "tools/call":
            result = {"content": [{"type": "text", "text": str(self.headers.get("X-Of"))}]}
        answer: dict[str, object] = {"jsonrpc": "2.0", "id": message.get("id"), "result": result}
        if message["method"] == "server/discover":
            answer = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no"}}
        body = b"" if "id" not in message else json.dumps(answer).encode()
        self.send_response(200 if body else 202)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        self.send_error(405)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def site() -> Iterator[Site]:
    with Site() as found:
        thread = Thread(target=found.serve_forever)
        thread.start()
        try:
            yield found
        finally:
            found.shutdown()
            thread.join()


def test_a_program_that_prints_headers_has_the_environment_of_the_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had that of the agent that had started the daemon."""
    with site() as there:
        web = {"url": f"{there.url}/mcp?of=${{OF}}", "headersCommand": [sys.executable, "-c", PRINT]}
        with (
            daemon_home(tmp_path, monkeypatch, others={"web": web}) as home,
            home.serving(OF="one") as one,
            home.serving(OF="other") as other,
        ):
            assert one.execute("web__here").text == "one"
            assert other.execute("web__here").text == "other"
            assert home.pid is not None


def test_requests_take_the_proxy_of_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with site() as one_way, site() as other_way:
        web = {"url": "http://mcp.example/mcp"}
        proxies = [{"HTTP_PROXY": way.url, "NO_PROXY": ""} for way in (one_way, other_way)]
        with (
            daemon_home(tmp_path, monkeypatch, others={"web": web}) as home,
            home.serving(**proxies[0]) as one,
            home.serving(**proxies[1]) as other,
        ):
            assert not one.execute("web__here").failed
            assert not other.execute("web__here").failed
            assert home.pid is not None
        for way in (one_way, other_way):
            assert ("http://mcp.example/mcp", None) in way.asked


def test_agents_share_a_python_server_only_in_the_same_virtual_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its server ran in that of the agent that had come first."""
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    with (
        daemon_home(tmp_path, monkeypatch) as home,
        home.serving(VIRTUAL_ENV="/a", JAVA_HOME="/java") as one,
        home.serving(VIRTUAL_ENV="/b") as other,
        home.serving(VIRTUAL_ENV="/a") as same,
        home.serving() as without,
    ):
        pids = [said(agent)["pid"] for agent in (one, other, same, without)]
        assert pids[0] == pids[2]
        assert len(set(pids)) == 3
        assert home.pid is not None


def test_a_word_that_names_a_folder_of_the_agent_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = [tmp_path / name for name in ("a", "b", "c", "d")]
    for folder in folders:
        folder.mkdir()
    for folder in folders[:2]:
        (folder / "src").mkdir()
    with daemon_home(tmp_path, monkeypatch) as home:
        home.config.write_text(home.config.read_text().replace('server.log"', 'server.log", "src"'))
        with ExitStack() as stack:
            agents = [stack.enter_context(home.serving(cwd=folder)) for folder in folders]
            found = [said(agent) for agent in agents]
        assert [each["folder"] for each in found[:2]] == [str(folder) for folder in folders[:2]]
        assert len({each["pid"] for each in found}) == 3
        assert found[2]["pid"] == found[3]["pid"]
