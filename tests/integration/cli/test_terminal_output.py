"""Escapes, markup, newlines, directions: hostile texts through every command's output, on a pseudo-terminal.

What is looked for is a control sequence that we did not write, and text that did not come out as it is, which
is what happens to markup that somebody else's text may have.
"""

import json
import os
import time
from functools import partialmethod
from pathlib import Path

import msgspec
import pytest
from helpers.hostile_texts import FORGED, hostile, writable
from hypothesis import HealthCheck, example, given, settings
from msgspec.structs import replace
from rich.progress import Progress

if os.name != "posix":
    pytest.skip("there are no pseudo-terminals here", allow_module_level=True)

from helpers.terminal import controls, plain, shown

from mcpzip.catalog import Catalog, ServerRecord, snapshot
from mcpzip.config import snapshot_path
from mcpzip.model import sanitize
from mcpzip.model.entry import Entry
from mcpzip.model.errors import (
    LoginError,
    McpzipError,
)
from mcpzip.proxy.call_records import CallRecords
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.name_resolution import NameResolver
from mcpzip.proxy.tool_caller import ToolCaller
from mcpzip.server.daemon import asking
from mcpzip.server.daemon.call_report import CallEvent, CallReport, CallsAnswer
from mcpzip.wire import RpcError, UpstreamRpcError

quick = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture(autouse=True)
def at_home(isolated: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A terminal with colours, and a folder for the config."""
    for name in ("NO_COLOR", "COLUMNS", "FORCE_COLOR", "TTY_COMPATIBLE", "COLORTERM", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    config = isolated / "config.json"
    monkeypatch.setenv("MCPZIP_CONFIG", str(config))
    return config


def tool(name: str, text: str) -> dict[str, object]:
    properties = {text or "p": {"type": "string", "description": text}, "q": {"enum": [text, "b"]}}
    return {
        "name": name,
        "title": text,
        "description": f"settled {text}",
        "inputSchema": {"type": "object", "properties": properties},
        "annotations": {"title": text},
    }


def known(config: Path, text: str) -> None:
    """A config of two servers of which everything that is known is hostile."""
    other = {"url": "http://127.0.0.1:9/mcp"}
    config.write_text(json.dumps({"mcpServers": {"evil": {"command": "false"}, "other": other}}), "utf-8")
    raws = [json.dumps(tool(name, text)).encode() for name in ("send", f"send{text}")]
    entries = tuple(Entry.parse("evil", raw) for raw in raws[: 1 if not text.strip() else 2])
    evil = ServerRecord(
        "evil", entries, fetched_at=time.time(), error=text or None, warnings=(text,), protocol=text
    )
    path = snapshot_path(str(config))
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    assert snapshot.save(path, str(config), Catalog({"evil": evil})) == ()


def judged(written: str, *texts: str) -> None:
    """Nothing of the hostile text acted, and none of it was eaten."""
    assert controls(written) == []
    assert FORGED not in written
    for text in texts:
        said = iter("".join(plain(written).split()))  # a table breaks it, with other cells between its lines
        assert [sign for sign in "".join(text.split()) if sign not in said] == []


@pytest.mark.parametrize(
    "argv",
    [
        ("servers", "--cached"),
        ("servers", "--cached", "--json"),
        ("search", "settled", "-s", "evil"),
        ("search", "settled", "-s", "evil", "--explain"),
        ("search", "settled", "-s", "evil", "--json"),
        ("search", "settled", "-s", "evil", "--as-model"),
        ("search", "xyzzy", "-s", "evil"),
        ("describe", "evil__send"),
        ("describe", "evil__send", "--json"),
        ("describe", "evil__sendd"),
        ("auth", "status"),
    ],
    ids=" ".join,
)
@quick
@given(text=writable)
@example(text="no \\[/boom]")
@example(text="[/boom][link=http://e/][green]connected")
@example(text="\x1b]52;c;cm0gLXJm\x1b\\")
def test_what_is_known_of_a_server_is_shown_and_nothing_of_it_obeyed(at_home, argv, text):
    known(at_home, text)
    code, written = shown(*argv)
    assert code in (0, 1, 2)
    literal = sanitize.one_line(text)
    judged(written, *([literal] if argv == ("servers", "--cached") else []))
    if argv == ("describe", "evil__send"):
        judged(written, *map(sanitize.lines, text.replace("\r\n", "\n").split("\n")))


def test_what_is_shown_is_the_same_as_of_the_harmless_text(at_home):
    """A colour that stands in a text is no colour of ours: the sequences are those of a text without one."""
    for argv in (("servers", "--cached"), ("search", "settled", "-s", "evil"), ("describe", "evil__send")):
        seen = []
        for text in ("\x1b[32mconnected\x1b[0m", "\\x1b[32mconnected\\x1b[0m"):
            known(at_home, text)
            seen.append([part for part in shown(*argv)[1].split() if "\x1b" in part])
        assert [part.count("\x1b") for part in seen[0]] == [part.count("\x1b") for part in seen[1]]


@quick
@given(text=writable)
@example(text="[/x]\x1b]52;c;cm0gLXJm\x1b\\")
def test_the_calls_that_a_daemon_tells_of_are_shown_harmlessly(at_home, text):
    """A daemon of another version may clean less of what clients and servers say."""
    call = CallReport.of(CallRecords().begin(Exchange(Client()), text, text, 2))
    texts = dict.fromkeys(("client", "version", "outcome", "error", "decision", "rule", "approved_by"), text)
    call = replace(call, **texts, seconds=1.0, events=(CallEvent(text, 0.5),))
    said = msgspec.to_builtins(CallsAnswer(7, 1, (call,), False))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking, "ask", lambda *where, **more: said)
        for words in ((), ("--failed",), ("--json",)):
            code, written = shown("calls", *words)
            assert code == 0
            judged(written, *([] if words == ("--json",) else [sanitize.one_line(text)]))


@quick
@given(text=hostile, message=hostile)
@example(text="[/x]", message="[/boom]")
def test_a_call_shows_progress_results_and_errors_harmlessly(at_home, text, message):
    known(at_home, "")

    async def execute(proxy, name, arguments, timeout=None, exchange=None):
        for progress, total in ((1, 2), (2, 0), (1e308, 1e-308), (-1, 1e308)):
            params = {"progress": progress, "total": total, "message": message, "progressToken": 1}
            exchange.notify("notifications/progress", json.dumps(params).encode())
        if failing:
            raise UpstreamRpcError("evil", RpcError(-1, text, json.dumps(text).encode()))
        content = [{"type": "text", "text": text}, {"type": text, "mimeType": text, "data": "AA"}]
        return json.dumps({"content": content, "isError": error}, ensure_ascii=True).encode()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ToolCaller, "execute", execute)
        for error, failing in ((False, False), (True, False), (False, True)):
            code, written = shown("call", "evil__send")
            assert code == (1 if error or failing else 0)
            judged(written)
            whole = not any(half in text for half in ("\ud800", "\udc80"))
            if whole and not failing:
                said = "".join(plain(written).split())
                assert "".join(sanitize.lines(text).split()) in said
        error, failing = False, False
        judged(shown("call", "evil__send", "--json")[1])


@quick
@given(text=hostile)
@example(text="[/x]")
def test_errors_and_warnings_are_shown_harmlessly(at_home, text):
    known(at_home, "")
    kinds = (McpzipError(text), LoginError(text))
    with pytest.MonkeyPatch.context() as patch:
        for error in kinds:
            patch.setattr(
                NameResolver, "resolve", lambda self, name, error=error: (_ for _ in ()).throw(error)
            )
            _, written = shown("describe", "evil__send")
            judged(written, sanitize.one_line(str(error)))
            assert written.count("\n") == 1  # no line can be forged
    for argv in (("servers", text), (text,), ("search", "x", "--limit", text), ("auth", "login", text)):
        code, written = shown(*argv)
        assert code in (0, 1, 2)
        judged(written)


@quick
@given(text=writable)
def test_what_is_remembered_as_used_is_shown_harmlessly(at_home, text):
    from mcpzip.proxy.tool_usage import usage_path

    known(at_home, "")
    name = f"evil__{text}"
    uses = {"format": "mcpzip-usage", "version": 1, "tools": {name: {"calls": 1.0, "at": time.time()}}}
    path = Path(usage_path(str(at_home)))
    path.write_text(json.dumps(uses), "utf-8")
    judged(shown("usage")[1], sanitize.one_line(name))
    for argv in (("usage", "--json"), ("usage", "--forget", name)):
        judged(shown(*argv)[1])


@pytest.mark.parametrize("pad", range(0, 60, 3))
def test_a_long_name_forges_no_row(at_home, pad):
    """What came after many spaces stood at the beginning of a line, like a tool of its own."""
    known(at_home, f"{' ' * pad}other__send{' ' * 40}other__pay")
    for argv in (("search", "settled"), ("search", "settled", "--explain")):
        _, written = shown(*argv, columns=60)
        lines = plain(written).splitlines()
        assert any("other__" in line for line in lines)
        assert not any(line.startswith("other__") for line in lines)


def test_progress_is_shown_as_a_percentage(at_home, monkeypatch):
    known(at_home, "")

    async def execute(proxy, name, arguments, timeout=None, exchange=None):
        exchange.notify("notifications/progress", b'{"progress":1,"total":4,"progressToken":1}')
        return b'{"content":[]}'

    at_once = partialmethod(Progress.update, refresh=True)  # not when it is its turn
    monkeypatch.setattr(Progress, "update", at_once)
    monkeypatch.setattr(ToolCaller, "execute", execute)
    assert " 25%" in plain(shown("call", "evil__send")[1])


def test_what_is_wrong_with_a_server_reads_as_one_sentence(at_home):
    entry = Entry.parse("evil", b'{"name":"send","inputSchema":{}}')
    evil = ServerRecord(
        "evil", (entry,), fetched_at=time.time(), error="it is gone.", warnings=("One.", "Two.")
    )
    at_home.write_text(json.dumps({"mcpServers": {"evil": {"command": "false"}}}), "utf-8")
    snapshot.save(snapshot_path(str(at_home)), str(at_home), Catalog({"evil": evil}))
    assert "it is gone; One; Two\n" in plain(shown("servers", "--cached")[1]).replace(" \n", "\n")


def test_on_a_pipe_a_result_is_the_bytes_that_came(at_home, monkeypatch, capfdbinary):
    known(at_home, "")
    text = "\x1b[31mred\x1b[0m\u202e\r\n[/x]"

    async def execute(proxy, name, arguments, timeout=None, exchange=None):
        return result

    result = json.dumps({"content": [{"type": "text", "text": text}]}, ensure_ascii=False).encode()
    monkeypatch.setattr(ToolCaller, "execute", execute)
    from mcpzip.cli.commands import run

    assert run(["call", "evil__send"]) == 0
    assert capfdbinary.readouterr().out == text.encode() + b"\n"
    assert run(["call", "evil__send", "--json"]) == 0
    assert capfdbinary.readouterr().out == result + b"\n"


@pytest.mark.parametrize("columns", [40, 60, 80, 120, 200])
def test_no_name_is_split_at_any_width(at_home, columns):
    name = "a-server-with-a-long-name"
    at_home.write_text(json.dumps({"mcpServers": {name: {"command": "false"}}}))
    tools = tuple(Entry.parse(name, json.dumps(tool(each, "")).encode()) for each in ("first", "second"))
    record = ServerRecord(name, tools, fetched_at=time.time(), error="it said no", protocol="2025-11-25")
    Path(snapshot_path(str(at_home))).parent.mkdir(parents=True)
    snapshot.save(snapshot_path(str(at_home)), str(at_home), Catalog({name: record}))
    for argv, whole in (
        (("servers", "--cached"), (name, "failing", "it said no")),
        (("tools",), (f"{name}__first", f"{name}__second")),
        (("search", "settled"), (f"{name}__first", f"{name}__second")),
    ):
        written = plain(shown(*argv, columns=columns)[1])
        assert all(text in written for text in whole), written
        if argv[0] != "search":  # which draws a spinner first
            assert all(len(line) <= columns for line in written.splitlines()), written
