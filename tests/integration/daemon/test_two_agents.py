"""What two agents do at the same time through one daemon never crosses: progress, cancellation, questions."""

import json
import random
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from helpers.daemons import Home, daemon_home
from helpers.driver import INITIALIZE, STAMP, Client, encoded, until

_SERVER = """
import json, os, sys, threading, time
log, lock = sys.argv[1], threading.Lock()
def say(**message):
    with lock:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def note(**said):
    with open(log, "a") as file:
        file.write(json.dumps(said) + "\\n")
def text(id, value):
    say(id=id, result={"content": [{"type": "text", "text": value}]})
def wait(id, params):
    gate, token = params["arguments"]["gate"], params.get("_meta", {}).get("progressToken")
    for step in range(3):
        if token is not None:
            progress = {"progressToken": token, "progress": step, "message": params["arguments"]["mark"]}
            say(method="notifications/progress", params=progress)
        time.sleep(0.002)
    while not os.path.exists(gate):
        if id in cancelled:
            return
        time.sleep(0.005)
    text(id, params["arguments"]["mark"])
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("wait", "ask")]
asked, cancelled, number = {}, set(), 0
for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
    if method == "initialize":
        about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}}
        say(id=id, result={**about, "serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list":
        say(id=id, result={"tools": TOOLS})
    elif method == "tools/call" and params["name"] == "wait":
        note(id=id, mark=params["arguments"]["mark"])
        threading.Thread(target=wait, args=(id, params), daemon=True).start()
    elif method == "tools/call":
        number += 1
        asked[f"q{number}"] = id, params["arguments"]["mark"]
        schema = {"type": "object", "properties": {"word": {"type": "string"}}}
        question = {"message": params["arguments"]["mark"], "requestedSchema": schema}
        say(id=f"q{number}", method="elicitation/create", params=question)
    elif method == "notifications/cancelled":
        cancelled.add(params["requestId"])
        note(cancelled=params["requestId"])
    elif method is None and id in asked:
        call, mark = asked.pop(id)
        text(call, mark + " " + json.dumps(message.get("result", message.get("error"))))
    elif id is not None:
        say(id=id, error={"code": -32601, "message": "no"})
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Home]:
    (tmp_path / "talks.py").write_text(_SERVER)
    servers = {
        name: {"command": sys.executable, "args": [str(tmp_path / "talks.py"), str(tmp_path / f"{name}.log")]}
        for name in ("asks", "waits")
    }
    with daemon_home(tmp_path, monkeypatch, others=servers) as home:
        yield home


def legacy(client: Client) -> Client:
    client.ask("initialize", {**INITIALIZE, "capabilities": {"elicitation": {}}})
    client.tell("notifications/initialized")
    return client


def modern(client: Client) -> Client:
    client.meta = {**STAMP, "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    return client


def questions(client: Client) -> list[Any]:
    return [message for message in map(json.loads, list(client.heard)) if message.get("method") == ASK]


ASK = "elicitation/create"


def answer_next(client: Client, name: str, answered: set[int]) -> None:
    """Answers the next question, which has to be for ``name``."""
    question = until(lambda: next((each for each in questions(client) if each["id"] not in answered), None))
    assert question["params"]["message"].startswith(f"{name} ")
    answered.add(question["id"])
    result = {"action": "accept", "content": {"word": f"by {name}"}}
    client.write(encoded({"jsonrpc": "2.0", "id": question["id"], "result": result}))


@pytest.mark.parametrize("seed", range(2))
def test_questions_progress_and_cancellation_reach_the_agent_they_belong_to(home: Home, seed: int) -> None:
    chance, marks = random.Random(seed), count()
    with home.serving(begin=False) as first, home.serving(begin=False) as second:
        agents = {"first": legacy(first), "second": legacy(second)}
        answered: dict[str, set[int]] = {name: set() for name in agents}
        # The first question is asked alone: from then on each agent has a process of this server.
        number = first.send_call("asks__ask", {"mark": "first 0"})
        answer_next(first, "first", answered["first"])
        assert "by first" in first.answer(number).text
        # A tool that has answered is known not to ask, so the agents share a process of the other server.
        there = first.send_call("waits__wait", {"mark": f"first {next(marks)}", "gate": str(home.folder)})
        assert not first.answer(there).failed
        waiting, asking, tokens = [], [], {name: set[str]() for name in agents}
        cancelled = []
        for act in ["wait", "wait", *chance.sample(["wait", "ask", "cancel"], 21, counts=[9, 7, 5])]:
            name = chance.choice([*agents])
            client, mark = agents[name], f"{name} {next(marks)}"
            match act:
                case "ask":
                    asking.append((name, mark, client.send_call("asks__ask", {"mark": mark})))
                case "wait":
                    gate, token = str(home.folder / "gate"), f"token of {mark}"
                    tokens[name].add(token)
                    number = client.send_call(
                        "waits__wait", {"mark": mark, "gate": gate}, progressToken=token
                    )
                    waiting.append((name, mark, number))
                case "cancel" if waiting:
                    name, mark, number = waiting.pop(chance.randrange(len(waiting)))
                    log = home.folder / "waits.log"
                    until(lambda log=log, mark=mark: log.exists() and f'"{mark}"' in log.read_text())
                    agents[name].tell("notifications/cancelled", {"requestId": number})
                    cancelled.append((name, mark, number))
        assert all((waiting, asking, cancelled))
        for name, client in agents.items():
            for _ in [each for each in asking if each[0] == name]:
                answer_next(client, name, answered[name])
        for name, mark, number in asking:
            text = agents[name].answer(number).text
            assert text.startswith(f"{mark} ")
            assert f"by {name}" in text
        log = [json.loads(line) for line in (home.folder / "waits.log").read_text().splitlines()]
        until(lambda: len(cancels(home)) == len(cancelled))
        ids = {each["id"]: each["mark"] for each in log if "mark" in each}
        assert sorted(ids[each] for each in cancels(home)) == sorted(mark for _, mark, _ in cancelled)
        (home.folder / "gate").touch()
        for name, mark, number in waiting:
            assert agents[name].answer(number).text == mark
        for name, client in agents.items():
            for notice in client.notices("notifications/progress"):
                assert notice["params"]["progressToken"] in tokens[name]
                assert notice["params"]["message"].startswith(f"{name} ")
            ids_heard = {json.loads(line).get("id") for line in client.heard}
            assert not ids_heard & {number for owner, _, number in cancelled if owner == name}
            assert all(each["params"]["message"].startswith(f"{name} ") for each in questions(client))


def cancels(home: Home) -> list[object]:
    lines = (home.folder / "waits.log").read_text().splitlines()
    return [each["cancelled"] for each in map(json.loads, lines) if "cancelled" in each]


def test_a_call_that_waits_for_one_agent_is_not_resumed_by_another(home: Home) -> None:
    with home.serving(begin=False) as first, home.serving(begin=False) as second:
        agents = {"first": modern(first), "second": modern(second)}
        arguments = {name: call_of(name) for name in agents}
        parked = {name: agents[name].ask("tools/call", arguments[name]).result for name in agents}
        for name, other in (("first", "second"), ("second", "first")):
            assert parked[name]["resultType"] == "input_required"
            stolen = resumed(arguments[name], parked[other], name)
            assert "requestState" in agents[name].ask("tools/call", stolen).error["message"]
        for name in agents:
            done = agents[name].ask("tools/call", resumed(arguments[name], parked[name], name))
            assert done.text.startswith(f"{name} ")
            assert f"by {name}" in done.text


def call_of(name: str) -> dict[str, Any]:
    arguments = {"name": "asks__ask", "arguments": {"mark": f"{name} 0"}}
    return {"name": "execute_tool", "arguments": arguments}


def resumed(call: dict[str, Any], parked: dict[str, Any], name: str) -> dict[str, Any]:
    answer = {"action": "accept", "content": {"word": f"by {name}"}}
    responses = dict.fromkeys(parked["inputRequests"], answer)
    return {**call, "requestState": parked["requestState"], "inputResponses": responses}
