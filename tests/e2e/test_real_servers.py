"""Third-party servers over all three transports in one config: every tool is listed, found, described and
executed, with the very result that a direct call gives.

Nothing is left out of the comparison. What changes by itself is dealt with so: a clock is read directly
before and after, and the call repeated when it moved on; the random session id that server-everything names
in two replies is masked; the environment that it prints is sorted, because whoever starts it orders it; and a
client of 2026-07-28 has the two fields that its era demands of every result from mcpzip, not from the server.
"""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from helpers.json_client import Answer, Json
from helpers.real_server_calls import CALLS, Call
from helpers.sync_client import Line, Real

pytestmark = pytest.mark.npm

FIRST = 5
_SESSION = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TRIES = 5
_EVERY_CALL = [
    pytest.param(server, call, id=f"{server}-{call.tool}")
    for server, calls in CALLS.items()
    for call in calls
]


def text_of(value: object) -> str:
    """As JSON text: key order, 1 and 1.0, and every character count."""
    return _SESSION.sub("SESSION", json.dumps(value, ensure_ascii=False))


@pytest.mark.parametrize("server", CALLS)
def test_every_tool_is_listed(real: Real, server: str) -> None:
    listed = {tool["name"] for tool in real.direct["legacy"][server].tools()}
    status = real.lines["legacy"].say("execute_tool", {"name": "proxy_status"})
    assert re.search(rf"^{server}: (connected|idle), {len(listed)} tools, ", status, re.MULTILINE), status
    assert {call.tool for call in CALLS[server]} == listed, "the table of calls is not up to date"


def test_all_of_them_answer_on_the_first_start_ever(
    real: Real, mcpzip: str, tmp_path: Path, isolated: Path
) -> None:
    # Once a server that answered the probe with -32000 was taken for a broken connection; and once an http
    # and an sse server, both new, deadlocked over the import of the SDK.
    config = tmp_path / "config.json"
    shutil.copy(real.config, config)
    done = subprocess.run([mcpzip, "servers", "--json", "--config", config], capture_output=True, check=False)
    found = {one["name"]: one["tools"] for one in json.loads(done.stdout)}
    assert found == {server: len(calls) for server, calls in CALLS.items()}
    assert done.returncode == 0


def test_a_client_sees_three_tools(real: Real) -> None:
    for line in real.lines.values():
        assert [tool["name"] for tool in line.tools()] == ["search_tools", "describe_tool", "execute_tool"]


@pytest.mark.parametrize(("server", "call"), _EVERY_CALL)
def test_a_plain_request_finds_it(real: Real, server: str, call: Call) -> None:
    found = real.lines["legacy"].say("search_tools", {"query": call.request})
    lines = [line for line in found.splitlines() if not line.startswith(("-- ", 'for "'))]
    assert len(lines) <= FIRST
    same = [name for line in lines for name in line.partition("(also on: ")[2].rstrip(")").split(", ")]
    assert f"{server}__{call.tool}" in [*(line.partition(":")[0] for line in lines), *same]


@pytest.mark.parametrize("server", CALLS)
def test_it_is_described_as_the_server_describes_it(real: Real, server: str) -> None:
    # The daemon has one catalog for clients of both eras, in which servers describe tools differently.
    of_modern = {tool["name"]: tool for tool in real.direct["modern"][server].tools()}
    for tool in real.direct["legacy"][server].tools():
        name = f"{server}__{tool['name']}"
        described, _, freshness = real.lines["legacy"].say("describe_tool", {"name": name}).partition("\n")
        either = [text_of({**each, "name": name}) for each in (tool, of_modern[tool["name"]])]
        assert text_of(json.loads(described)) in either
        assert freshness.startswith(f"Server {server}, listed ")


@pytest.mark.parametrize("era", ["legacy", "modern"])
@pytest.mark.parametrize(("server", "call"), _EVERY_CALL)
def test_the_result_is_that_of_a_direct_call(real: Real, server: str, call: Call, era: str) -> None:
    direct, proxied = real.direct[era][server], real.lines[era]
    arguments = call.filled(real.world.files, real.world.repo)

    def ask(line: Line) -> list[Answer]:
        if call.changes:
            real.world.restore()
        if line.through_mcpzip:
            name, sent = "execute_tool", {"name": f"{server}__{call.tool}", "arguments": arguments}
        else:
            name, sent = call.tool, arguments
        return [line.call(name, sent, progress=call.progress) for _ in range(call.times)]

    for _ in range(_TRIES):
        before, through, after = ask(direct), ask(proxied), ask(direct)
        if comparable(call, before, era) == comparable(call, after, era):
            break
    else:
        pytest.fail("two direct calls in a row never agreed")
    assert comparable(call, through, era) == comparable(call, before, era)
    assert all(bool(answer.progress) == call.progress for answer in before)


def comparable(call: Call, answers: list[Answer], era: str) -> list[str]:
    """All of each answer, as text."""
    results = [unstamped(answer.result, era) for answer in answers]
    if call.unordered:
        for result in results:
            assert result is not None
            content = result["content"][0]
            said = json.loads(content["text"])
            said.pop("MCPZIP_SERVER", None)  # by which what a server starts is found (docs/config.md)
            content["text"] = json.dumps(said, sort_keys=True)
    whole = zip(results, answers, strict=True)
    return [text_of([result, answer.error, answer.progress]) for result, answer in whole]


def unstamped(result: Json | None, era: str) -> Json | None:
    """``result`` without what the modern era demands of every result: the last server's own to say."""
    if result is None or era == "legacy":
        return result
    result = {key: value for key, value in result.items() if key != "resultType"}
    meta = {key: value for key, value in result.pop("_meta", {}).items() if not key.endswith("/serverInfo")}
    return {**result, "_meta": meta} if meta else result
