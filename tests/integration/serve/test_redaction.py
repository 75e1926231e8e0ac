"""A server says its own secrets on its stderr and in its errors: mcpzip neither says nor keeps them."""

import base64
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

TOKEN = "tok/3n-0123456789+secret"
KEY = "key-abcdefghij"
PASSWORD = "pass word=1"
SPELLINGS = {
    *(TOKEN, KEY, PASSWORD, quote(TOKEN, safe=""), json.dumps(TOKEN)[1:-1], quote_plus(PASSWORD)),
    *(base64.b64encode(f"user:{each}".encode()).decode() for each in (TOKEN, KEY, PASSWORD)),
}

SERVER = """
import json, os, sys

kind, told = sys.argv[1], json.loads(os.environ["SPELLINGS"])

def complain():
    print("cannot use", *told, file=sys.stderr, flush=True)

if kind == "dies":
    complain()
    sys.exit("the end: " + " ".join(told))
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer, method = {"jsonrpc": "2.0", "id": asked["id"]}, asked["method"]
    if method == "initialize" and kind != "refuses":
        answer["result"] = {
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"},
        }
    elif method == "tools/list":
        schema = {"type": "object", "properties": {}}
        answer["result"] = {"tools": [{"name": n, "inputSchema": schema} for n in ("crash", "refuse")]}
    elif method == "tools/call" and asked["params"]["name"] == "crash":
        complain()
        sys.exit(3)
    elif method == "server/discover":
        answer["error"] = {"code": -32601, "message": "unknown"}
    else:
        answer["error"] = {"code": -32000, "message": "refused: " + " ".join(told)}
    print(json.dumps(answer), flush=True)
"""

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    script = tmp_path / "server.py"
    script.write_text(SERVER, "utf-8")
    given = {"SPELLINGS": json.dumps(sorted(SPELLINGS)), "API_TOKEN": "${TOKEN}", "K": "${SOME}"}
    servers = {
        kind: {
            "command": sys.executable,
            "args": [str(script), kind, "--password", PASSWORD],
            "env": given,
        }
        for kind in ("dies", "refuses", "works")
    }
    folder = tmp_path / "conf"
    folder.mkdir()
    path = folder / "config.json"
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return path


def mcpzip(config: Path, *words: str, stdin: str = "") -> str:
    """Everything the command wrote."""
    done = subprocess.run(
        [sys.executable, "-m", "mcpzip", *words, "--config", str(config)],
        input=stdin,
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "TOKEN": TOKEN, "SOME": KEY},
        check=False,
    )
    return done.stdout + done.stderr


def none_of_it(said: str) -> None:
    assert [each for each in SPELLINGS if each in said or json.dumps(each)[1:-1] in said] == []


@pytest.mark.parametrize(
    ("words", "tells"),
    [
        (("servers",), "refused: …"),
        (("servers", "--json"), "refused: …"),
        (("refresh",), "refused: …"),
        (("call", "works__crash"), "cannot use …"),
        (("call", "works__refuse"), "refused: …"),
        (("describe", "dies__x"), "the end: …"),
    ],
)
def test_no_command_says_what_a_server_should_not_have_said(config, words, tells):
    said = mcpzip(config, *words)
    assert tells.split()[0] in said
    assert "…" in said
    none_of_it(said)


def test_serving_neither_says_nor_keeps_it(config):
    def call(number: int, name: str) -> dict[str, object]:
        params = {"name": "execute_tool", "arguments": {"name": name, "arguments": {}}}
        return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}

    asked = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        call(2, "proxy_refresh"),
        call(3, "proxy_status"),
        call(4, "works__crash"),
        call(5, "dies__anything"),
    ]
    script = Path(config.parent.parent / "client.py")
    script.write_text(CLIENT, "utf-8")
    done = subprocess.run(
        [sys.executable, str(script), str(config)],
        input=json.dumps(asked),
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "TOKEN": TOKEN, "SOME": KEY},
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["id"] for each in answers] == [1, 2, 3, 4, 5], done.stderr
    assert "cannot use" in str(answers[3])
    assert "…" in str(answers[2])
    none_of_it(done.stdout + done.stderr)
    kept = [path for path in config.parent.rglob("*") if path.is_file() and path != config]
    assert [path.name for path in kept if path.name == "tools.json"] == ["tools.json"]
    for path in kept:
        none_of_it(path.read_bytes().decode("utf-8", "replace"))


SENT = {
    "X-Odd": "0dd-value-1234",
    "X-Session": "s3ss10n-5678",
    "Cookie": "theme=dark; a=c00kie-9012",
    "Accept-Language": "tlh-KX",
}


class Repeats(BaseHTTPRequestHandler):
    """Answers any request with 500, and says in the reason, in a header and in the body what was sent."""

    def do_POST(self) -> None:
        sent = " ".join(self.headers.get(name, "") for name in SENT)
        body = f"failed for {sent}".encode()
        self.send_response(500, f"failed for {sent}")
        self.send_header("Content-Type", "text/plain")
        self.send_header("X-Sent", sent)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_DELETE = do_POST

    def log_message(self, *said: object) -> None:
        """Nothing."""


@pytest.mark.parametrize("kind", ["http", "sse"])
def test_a_header_that_a_500_repeats_is_not_said(tmp_path, kind):
    config = tmp_path / "config.json"
    with ThreadingHTTPServer(("127.0.0.1", 0), Repeats) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/mcp"
        entry = {"type": kind, "url": url, "headers": SENT, "auth": False}
        config.write_text(json.dumps({"mcpServers": {"odd": entry}}), "utf-8")
        ways = (("servers",), ("servers", "--json"), ("refresh",), ("describe", "odd__x"), ("search", "x"))
        said = [mcpzip(config, *words) for words in ways]
        server.shutdown()
    assert "500" in said[1]
    kept = [path for path in tmp_path.rglob("*") if path.is_file() and path != config]
    for each in (*said, *(path.read_bytes().decode("utf-8", "replace") for path in kept)):
        for value in ("0dd-value-1234", "s3ss10n-5678", "c00kie-9012"):
            assert value not in each


CLIENT = """
import json, subprocess, sys

process = subprocess.Popen(
    [sys.executable, "-m", "mcpzip", "serve", "--config", sys.argv[1]],
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
    text=True,
    encoding="utf-8",
)
for request in json.load(sys.stdin):
    process.stdin.write(json.dumps(request) + "\\n")
    process.stdin.flush()
    while "id" in request:
        line = process.stdout.readline()
        if not line or json.loads(line).get("id") == request["id"]:
            sys.stdout.write(line)
            break
process.stdin.close()
process.wait()
"""
