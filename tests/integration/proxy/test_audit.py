"""The audit log of a proxy: one line a call, whatever comes of it, and results stay as they are."""

import json
import time
from pathlib import Path
from typing import Any

from helpers.bridging import bridged, resumed
from helpers.driver import Json, config_of

from mcpzip.config.paths import audit_path
from mcpzip.policy.allowances import Allowance, AllowedFile
from mcpzip.policy.audit_files import AuditLine, FileReader, decoded, problems
from mcpzip.policy.hashes import arguments_hash, definition_hash

YES: Json = {"action": "accept"}
FORM: Json = {"elicitation": {}}


def lines(folder: Path) -> list[AuditLine]:
    path = audit_path(str(folder / "config.json"))
    assert list(problems(FileReader(path).texts(), FileReader(path).head)) == []
    found = [decoded(text) for _, text in FileReader(path).texts()]
    return [line for line in found if line is not None]


def outcomes(folder: Path) -> list[tuple[str, str, str, str]]:
    return [(line.tool, line.decision, line.approved_by, line.outcome) for line in lines(folder)]


async def test_every_call_has_a_line(tmp_path: Path) -> None:
    result = {"content": [], "n": 1.0}
    policy = {"tools": {"up__look": "deny"}}
    async with bridged(tmp_path, audit=True, policy=policy) as bridge:
        wire = await bridge.legacy()
        assert (await wire.call([["result", result]]))["result"] == result
        await wire.call([["result", {"content": [], "isError": True}]])
        await wire.call([["error", -32000, "no"]])
        await wire.call([], "up__look")
        number = wire.send_call([["hang"]])
        await bridge.gets("tools/call", 4)
        wire.cancel(number)
        await bridge.gets("notifications/cancelled")
        entry = bridge.proxy.catalog.get("up__run")
    assert outcomes(tmp_path) == [
        ("run", "allow", "", "result"),
        ("run", "allow", "", "tool error"),
        ("run", "allow", "", "no result"),
        ("look", "deny", "", "denied"),
        ("run", "allow", "", "cancelled"),
    ]
    first, *_ = lines(tmp_path)
    assert entry is not None
    assert first.definition == definition_hash(entry)
    assert first.arguments == ("do",)
    assert first.arguments_sha256 == arguments_hash(json.dumps({"do": [["result", result]]}).encode())
    assert first.client["name"] == "test"
    assert first.values is None
    assert 0 <= first.ms < 60_000


async def test_the_ways_of_a_call_that_a_person_is_asked_about(tmp_path: Path) -> None:
    async with bridged(tmp_path, audit={"arguments": "values"}, policy="ask") as bridge:
        old, new = await bridge.legacy(**FORM), bridge.modern(**FORM)
        for answer in (YES, {"action": "decline"}):
            number = old.send_call([])
            asked = await old.hears(lambda one: one.get("method") == "elicitation/create")
            old.heard.remove(asked)
            old.write({"id": asked["id"], "result": answer})
            await old.answer(number)
            await resumed(new, [], await new.call([]), answer)
        await bridge.modern().call([])
        entry, now = bridge.proxy.catalog.get("up__run"), time.time()
        assert entry is not None
        AllowedFile(bridge.proxy.config.path).allow(
            Allowance("up__run", now + 60, now, definition_hash(entry))
        )
        await bridge.modern().call([])
    assert outcomes(tmp_path) == [
        ("run", "ask", "person", "result"),
        ("run", "ask", "", "asked"),
        ("run", "ask", "person", "result"),
        ("run", "ask", "", "declined"),
        ("run", "ask", "", "asked"),
        ("run", "ask", "", "declined"),
        ("run", "ask", "", "not asked"),
        ("run", "ask", "mcpzip allow", "result"),
    ]
    assert {json.dumps(line.values) for line in lines(tmp_path)} == {'{"do": []}'}


async def test_an_edit_begins_and_ends_it(tmp_path: Path) -> None:
    async with bridged(tmp_path) as bridge:
        wire = bridge.modern()
        others = json.loads((tmp_path / "config.json").read_bytes())["mcpServers"]

        def use(**keys: Any) -> None:
            bridge.proxy.reconfigure(config_of(tmp_path, others=others, expose="direct", **keys))

        await wire.call([])
        use(audit=True)
        await wire.call([])
        use()
        await wire.call([])
        use(audit=True)
        await wire.call([])
    assert [line.n for line in lines(tmp_path)] == [1, 2]


async def test_a_folder_that_cannot_be_written_costs_no_call(tmp_path: Path) -> None:
    (tmp_path / "audit").write_text("a file")
    async with bridged(tmp_path, audit=True) as bridge:
        for _ in range(3):
            answer = await bridge.modern().call([])
            assert not answer["result"].get("isError")
