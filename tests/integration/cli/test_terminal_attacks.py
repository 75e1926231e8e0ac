"""A server that is all escapes and markup, met with the installed command on a pseudo-terminal."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

if os.name != "posix":
    pytest.skip("there are no pseudo-terminals here", allow_module_level=True)

OURS = re.compile(
    r"\x1b\[(?!38;5;77m)[0-9;]*m"
    r"|\x1b\[\?25[lh]|\x1b\[2K|\x1b\[1A|\r(?=\x1b\[2K|\n|\x1b\[1A)|\r\n"
)
"""What we write to a terminal: colours, and a bar that moves on its own line."""

HOSTILE = (
    "\x1b]52;c;cm0gLXJm\x1b\\ \x1b[38;5;77mgreen \x9b2J \x9d0;t\x9c \r\b\x7f [/boom] \\[/boom] [link=http://e/]x[/]"
    " \u202egnp \u2028 \u200b \U000e0041 :smile: \x1b]8;;http://e/\x1b\\l\x07\nforged: connected"
)

SERVER = """
import json, sys

kind, text = sys.argv[1], json.loads(sys.argv[2])
print(text, file=sys.stderr, flush=True)
if kind == "dies":
    sys.exit(text)
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    answer, method = {"jsonrpc": "2.0", "id": asked["id"]}, asked["method"]
    if method == "initialize" and kind == "works":
        answer["result"] = {
            "protocolVersion": asked["params"]["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": text, "version": text},
        }
    elif method == "tools/list":
        schema = {"type": "object", "properties": {text: {"type": "string", "description": text}}}
        names = ("send", "refuse", "send " + text)
        answer["result"] = {
            "tools": [
                {"name": name, "title": text, "description": "tool " + text, "inputSchema": schema}
                for name in names
            ]
        }
    elif method == "tools/call" and asked["params"]["name"] != "refuse":
        token = asked["params"].get("_meta", {}).get("progressToken")
        for step in range(3):
            told = {"progressToken": token, "progress": step, "total": 2, "message": text}
            note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": told}
            print(json.dumps(note), flush=True)
        answer["result"] = {
            "content": [{"type": "text", "text": text}, {"type": text, "mimeType": text, "data": "AA"}],
            "isError": asked["params"]["name"] != "send",
        }
    elif method == "server/discover":
        answer["error"] = {"code": -32601, "message": "unknown"}
    else:
        answer["error"] = {"code": -32000, "message": "no " + text, "data": text}
    print(json.dumps(answer), flush=True)
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    script = tmp_path / "server.py"
    script.write_text(SERVER, "utf-8")
    servers: dict[str, object] = {
        kind: {"command": sys.executable, "args": [str(script), kind, json.dumps(HOSTILE)]}
        for kind in ("works", "refuses", "dies")
    }
    path = tmp_path / "config.json"
    path.write_text(
        json.dumps(
            {
                "mcpServers": {**servers, "web": {"url": "http://127.0.0.1:9/mcp"}},
                "trust": "open",  # else what is hostile is held back at first sight
            }
        ),
        "utf-8",
    )
    return path


def at_a_terminal(argv: list[str], stdin: bytes | None = None) -> tuple[int, str]:
    """The exit code, and all that the command writes to a terminal of 300 columns."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 300, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "CI")}
    process = subprocess.Popen(
        [sys.executable, "-m", "mcpzip", *argv],
        stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
        stdout=theirs if stdin is None else subprocess.DEVNULL,
        stderr=theirs,
        env={**env, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"},
    )
    os.close(theirs)
    if process.stdin:
        process.stdin.write(stdin or b"")
        process.stdin.close()
    written = bytearray()
    while True:
        try:
            data = os.read(ours, 65536)
        except OSError:  # nobody holds the other end any more
            break
        if not data:
            break
        written += data
    os.close(ours)
    return process.wait(), written.decode("utf-8", "surrogateescape")


def judged(written: str) -> None:
    rest = OURS.sub(lambda ours: "\n" if ours[0] == "\r\n" else "", written)
    assert [sign for sign in rest if not sign.isprintable() and sign not in "\n\t"] == []
    assert "Traceback" not in rest
    assert not any(line.startswith("forged:") for line in rest.splitlines() if "boom" in rest)


ROUND = [
    (["servers"], 1),
    (["servers", "--json"], 1),
    (["servers", "--cached"], 1),
    (["refresh", "works", "refuses"], 1),
    (["search", "tool"], 0),
    (["search", "tool", "--explain"], 0),
    (["search", "tool", "--json"], 0),
    (["search", "tool", "--as-model"], 0),
    (["describe", "works__send", "--json"], 0),
    (["describe", "works__sendd"], 2),
    (["describe", "refuses__x"], 1),
    (["call", "works__send", "--json"], 0),
    (["call", "works__refuse"], 1),
    (["call", "dies__x"], 1),
    (["auth", "status"], 0),
    (["auth", "login", "web", "--no-browser", "--timeout", "1"], 1),
    (["auth", "login", HOSTILE.replace("\0", "")], 2),
    (["usage"], 0),
    ([HOSTILE], 2),
]


def test_no_command_lets_a_server_at_the_terminal(config: Path) -> None:
    for argv, wanted in ROUND:
        code, written = at_a_terminal([*argv, "--config", str(config)] if argv != [HOSTILE] else argv)
        assert (argv, code) == (argv, wanted), written
        judged(written)
    _, told = at_a_terminal(["servers", "--config", str(config)])
    assert "“no ]52;" in told
    assert "[/boom] \\[/boom] [link=http://e/]x[/]" in " ".join(told.split())


def test_texts_that_may_have_lines_are_harmless_too(config: Path) -> None:
    """Only what is a text of its own has lines: it can't be mistaken for a line of ours."""
    for argv in (["describe", "works__send"], ["call", "works__send"]):
        code, written = at_a_terminal([*argv, "--config", str(config)])
        assert code == 0, written
        rest = OURS.sub(lambda ours: "\n" if ours[0] == "\r\n" else "", written)
        assert [sign for sign in rest if not sign.isprintable() and sign not in "\n\t"] == []
        assert "[/boom]" in rest


def test_serving_writes_nothing_of_it_to_stderr_that_acts(config: Path) -> None:
    config.write_text(
        config.read_text("utf-8").replace('"web": {', '"web": {"\\u001b[31m\\u202e": 1, '), "utf-8"
    )
    client = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    code, written = at_a_terminal(["serve", "--config", str(config)], json.dumps(asked).encode() + b"\n")
    assert code == 0
    assert "mcpzip: " in written  # the key that nobody knows
    judged(written)
