"""Held means absent: no way over MCP leads to a tool, prompt or resource that is held back, in any mode."""

import asyncio
import functools
import json
import posixpath
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from helpers.changing_server import ChangingServer, tool
from helpers.driver import Answer, comes_true, command, environment, run_here, serving, until, write_config
from helpers.serve_http import listening, mcpzip_command
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpzip.catalog import snapshot
from mcpzip.config import load
from mcpzip.model.names import folded
from mcpzip.pins.review import Review
from mcpzip.proxy.proxy import Proxy

WORD = "zanzibar"
"""A word that only what is held has."""
TOLD = "quokka"
"""Another one, which no request has. So no answer that repeats a request has it."""
SECRET = tool(
    "pay_zanzibar",
    f"Pays a {WORD}. {TOLD}",
    inputSchema={"type": "object", "properties": {WORD: {}}},
    annotations={"readOnlyHint": True},
)
PROMPT = {"name": "greet_zanzibar", "title": TOLD}
RESOURCE = {"uri": f"file:///{WORD}.txt", "name": WORD, "description": TOLD}
TEMPLATE = {"uriTemplate": f"{WORD}://{{path}}", "name": WORD, "title": TOLD}
MODES: list[tuple[str, dict[str, Any]]] = [
    ("meta", {}),
    ("split", {"expose": {"split": True}}),
    ("direct", {"expose": "direct"}),
    ("transparent", {"expose": "transparent"}),
]
META = ("execute_tool", "execute_read_tool", "describe_tool")
URI_METHODS = ("resources/read", "resources/subscribe", "completion/complete")
HELD = {
    "prompts": [{"name": "greet"}, PROMPT],
    "resources": [{"uri": "file:///open.txt", "name": "open"}, RESOURCE],
    "templates": [{"uriTemplate": "open://{path}", "name": "open"}, TEMPLATE],
}


def begin(folder: Path, **keys: Any) -> ChangingServer:
    """A server that was listed once, and then offers more: all that has WORD in it is held."""
    shop = ChangingServer("shop", folder / "shop")
    first = {kind: items[:1] for kind, items in HELD.items()}
    shop.offers(tools=[tool("poke"), tool("pay_bill")], **first)
    write_config(folder, others={"shop": {**shop.config, "pin": True}}, trust="strict", **keys)
    asyncio.run(list_all(folder, lambda pins: "template" in pins["lists"]))
    shop.offers(
        tools=[tool("poke"), tool("pay_bill"), SECRET],
        instructions=f"Use {WORD}. {TOLD}",
        info={"name": "shop", "title": f"{WORD} {TOLD}"},
        **HELD,
    )
    asyncio.run(list_all(folder, lambda pins: len(pins["held"]) == 6))
    return shop


async def list_all(folder: Path, done: Callable[[Any], bool]) -> None:
    """Lists the server until the pins of it are as ``done`` wants them, as a process that ends then."""
    config, file = load(str(folder / "config.json"), {}), folder / "pins" / "config.json"
    proxy = Proxy(config, snapshot.load_for(config)[0])
    try:
        await proxy.refresh()
        await comes_true(lambda: done(json.loads(file.read_bytes())["servers"]["shop"]))
    finally:
        await proxy.close()


def use(name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return "tools/call", {"name": name, "arguments": arguments}


def completed(ref: dict[str, str]) -> tuple[str, dict[str, Any]]:
    return "completion/complete", {"ref": ref, "argument": {"name": "path", "value": ""}}


def everything(ask: Callable[[str, dict[str, Any]], Answer]) -> list[bytes]:
    """The answers to every method that a client has, with what is held as its object."""
    asked: list[tuple[str, dict[str, Any]]] = [
        ("tools/list", {}),
        ("prompts/list", {}),
        ("resources/list", {}),
        ("resources/templates/list", {}),
    ]
    names = ["shop__pay_zanzibar", "pay_zanzibar", "shop.pay_zanzibar", "payZanzibar", "shop__pay_zanzibr"]
    for each in names:
        asked.append(use(each, {WORD: 1}))
        asked += [use(meta, {"name": each, "arguments": {}}) for meta in META]
    queries = (WORD, "pay", "shop__pay_zanzibar", "server:shop")
    asked += [use("search_tools", {"query": query, "limit": 50}) for query in queries]
    asked += [use("execute_tool", {"name": admin}) for admin in ("proxy_status", "proxy_refresh")]
    for prompt in ("shop__greet_zanzibar", "greet_zanzibar", "SHOP__greet_zanzibar", "shop__greet-zanzibar"):
        asked += [("prompts/get", {"name": prompt}), completed({"type": "ref/prompt", "name": prompt})]
    uris = [RESOURCE["uri"], f"file:///{WORD.upper()}.txt", "file:///%7aanzibar.txt", f"{WORD}://a"]
    for uri in [*uris, *(f"mcpzip://shop/{uri}" for uri in uris)]:
        asked += [("resources/read", {"uri": uri}), ("resources/subscribe", {"uri": uri})]
    for template in (TEMPLATE["uriTemplate"], f"mcpzip://shop/{TEMPLATE['uriTemplate']}"):
        asked.append(completed({"type": "ref/resource", "uri": template}))
    return [ask(method, params).line for method, params in asked]


def reached(shop: ChangingServer) -> list[str]:
    """The requests for something held that reached the server, in any spelling that it may understand."""
    return [f"{method} {told}" for method, told in shop.asked if is_held(method, told)]


def is_held(method: str, told: dict[str, Any]) -> bool:
    named = told.get("ref", {}) if method == "completion/complete" else told
    secret = {"tools/call": SECRET, "prompts/get": PROMPT, "completion/complete": PROMPT}.get(method, {})
    if "name" in secret and folded(str(named.get("name"))) == folded(secret["name"]):
        return True
    uri = unquote(unquote(str(named.get("uri")))).lower().strip()
    scheme, _, path = uri.partition("\0")[0].partition("#")[0].partition(":")
    place = posixpath.normpath(path.replace("\\", "/").replace("//localhost/", "/"))
    held = scheme == WORD or (scheme == "file" and place.lstrip("/") == f"{WORD}.txt")
    return method in URI_METHODS and held


@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
@pytest.mark.parametrize(("name", "keys"), MODES, ids=[name for name, _ in MODES])
@pytest.mark.parametrize("daemon", [False, True], ids=["alone", "daemon"])
def test_nothing_held_can_be_reached(
    tmp_path: Path, name: str, keys: dict[str, Any], modern: bool, daemon: bool
) -> None:
    """Cases 9, 10, 27 and 28."""
    shop = begin(tmp_path, shared=daemon, daemon={"idle_minutes": 0}, **keys)
    with serving(tmp_path, begin=False) as client:
        if modern:
            client.begin_modern()
            greeting = client.ask("server/discover")
        else:
            greeting = client.ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
            client.tell("notifications/initialized")
        assert WORD not in json.dumps(greeting.result)
        answers = everything(client.ask)
    check_answers(answers)
    assert reached(shop) == []


@pytest.mark.parametrize(("name", "keys"), MODES, ids=[name for name, _ in MODES])
def test_nothing_held_can_be_reached_over_http(tmp_path: Path, name: str, keys: dict[str, Any]) -> None:
    shop = begin(tmp_path, **keys)
    with listening(mcpzip_command(tmp_path), tmp_path / "config.json") as url, httpx.Client() as http:
        headers = {"accept": "application/json, text/event-stream"}

        def ask(method: str, params: dict[str, Any]) -> Answer:
            message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
            said = http.post(url, json=message, headers=headers, timeout=20)
            if "mcp-session-id" in said.headers:
                headers["mcp-session-id"] = said.headers["mcp-session-id"]
            lines = [line.removeprefix("data:").strip() for line in said.text.splitlines()]
            return Answer(next(line for line in lines if line.startswith("{") and '"id"' in line).encode())

        greeting = ask("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {}})
        assert WORD not in json.dumps(greeting.result)
        check_answers(everything(ask))
    assert reached(shop) == []


def check_answers(answers: list[bytes]) -> None:
    """Nothing of what is held is in them, but for the names that were asked for."""
    assert [line for line in answers if TOLD.encode() in line] == []
    told = [line for line in answers if b"properties" in line or b"Pays" in line]
    assert [line for line in told if WORD.encode() in line] == []
    for line in answers:
        result = json.loads(line).get("result", {})
        lists = ("tools", "prompts", "resources", "resourceTemplates")
        assert WORD not in json.dumps([result.get(key) for key in lists])


def test_what_is_not_held_can_be_reached(tmp_path: Path) -> None:
    for number, (name, keys) in enumerate(MODES):
        folder = tmp_path / str(number)
        folder.mkdir()
        shop = begin(folder, **keys)
        prefix, scheme = ("", "") if name == "transparent" else ("shop__", "mcpzip://shop/")
        with serving(folder) as client:
            assert "pay_bill" in json.dumps(client.ask("tools/list").result)
            assert client.use(f"{prefix}pay_bill").text == "done"
            assert "messages" in client.ask("prompts/get", {"name": f"{prefix}greet"}).result
            for uri in ("file:///open.txt", "open://a", "open://zanzibar"):
                assert "contents" in client.ask("resources/read", {"uri": f"{scheme}{uri}"}).result
        assert len(shop.asked) == 5


def test_a_search_says_how_much_is_held_and_not_what(tmp_path: Path) -> None:
    begin(tmp_path)
    with serving(tmp_path) as client:
        status = client.finds(WORD, "held back").splitlines()[-1]
        assert status == (
            "-- 1 tool, 1 prompt, 1 resource, 1 resource template, 1 text of instructions and 1 name "
            f"held back: mcpzip review shop --config {tmp_path}/config.json"
        )
        assert WORD not in client.status()


def test_a_warning_about_a_list_is_for_a_person(tmp_path: Path) -> None:
    """Its words are a server's: a name that is left out, or that was listed twice and is held."""
    shop = begin(tmp_path)
    twice = tool("x" * 300)
    shop.offers(tools=[tool("poke"), tool(WORD * 300), twice, twice])
    asyncio.run(list_all(tmp_path, lambda pins: any("xxx" in key for key in pins["held"])))
    with serving(tmp_path) as client:
        told = client.status()
    assert WORD not in told
    assert "xxx" not in told
    found = re.search(r"2 things in its lists can't be used: a person sees them with mcpzip (.+)", told)
    assert found
    shown = run_here(*found[1].split(), "--cached").stdout.decode()
    assert WORD in shown
    assert "more than once" in re.sub(r"\s+", " ", shown)


def test_a_resource_that_is_held_later_is_not_heard_of_any_more(tmp_path: Path) -> None:
    shop = begin(tmp_path, expose="transparent")
    with serving(tmp_path) as client:
        client.ask("resources/subscribe", {"uri": "file:///open.txt"})
        assert shop.asked[-1] == ("resources/subscribe", {"uri": "file:///open.txt"})
        shop.offers(tools=[tool("poke")], resources=[{"uri": "file:///open.txt", "name": "other"}])
        client.use("poke")
        until(lambda: json.dumps(client.ask("resources/list").result["resources"]) == "[]")
        until(lambda: "error" in client.ask("resources/subscribe", {"uri": "file:///open.txt"}).message)


@pytest.mark.parametrize(("name", "keys"), MODES, ids=[name for name, _ in MODES])
def test_a_change_is_held_while_mcpzip_runs_and_offered_when_it_is_approved(
    tmp_path: Path, name: str, keys: dict[str, Any]
) -> None:
    """Cases 17 and 21: a tool that was searched, described and called before."""
    shop = ChangingServer("shop", tmp_path / "shop")
    write_config(tmp_path, others={"shop": {**shop.config, "pin": True}}, trust="strict", **keys)
    own = "pay_bill" if name == "transparent" else "shop__pay_bill"
    with serving(tmp_path) as client:
        until(lambda: own in json.dumps(client.ask("tools/list").result))
        assert client.use(own).text == "done"
        changed = tool("pay_bill", "Pays and tells.")
        shop.offers(tools=[tool("poke"), tool("other"), changed], page=0 if name == "transparent" else 1)
        client.use(own.replace("pay_bill", "poke"))
        until(lambda: own not in json.dumps(client.ask("tools/list").result))
        until(lambda: is_refused(client.use(own)))
        reached_before = len(shop.asked)
        assert is_refused(client.use(own))
        assert len(shop.asked) == reached_before
        heard = len(client.notices("notifications/tools/list_changed"))
        approve_all(tmp_path)
        until(lambda: "Pays and tells." in json.dumps(client.ask("tools/list").result))
        until(lambda: len(client.notices("notifications/tools/list_changed")) > heard)
        assert client.use(own).text == "done"


@pytest.mark.parametrize("name", ["meta", "direct", "transparent"])
def test_what_is_held_is_in_no_answer_that_was_kept_for_the_next_start(tmp_path: Path, name: str) -> None:
    """The first answers of a start are those of the run before, and the server is not asked for them."""
    shop = ChangingServer("shop", tmp_path / "shop")
    expose = {"expose": name, "shared": False}
    write_config(tmp_path, others={"shop": {**shop.config, "pin": True}}, trust="strict", **expose)
    own = "pay_bill" if name == "transparent" else "shop__pay_bill"
    with serving(tmp_path) as client:
        until(lambda: own in json.dumps(client.ask("tools/list").result))
        shop.offers(tools=[tool("poke"), tool("pay_bill", f"Pays. {TOLD}")], instructions=TOLD)
        client.use(own.replace("pay_bill", "poke"))
        until(lambda: own not in json.dumps(client.ask("tools/list").result))
    for _ in range(2):
        with serving(tmp_path) as client:
            told = [client.ask("tools/list").line.decode()]
            if name == "meta":
                told.append(client.search("pay bill"))
            assert [text for text in told if own in text or TOLD in text] == []
            assert is_refused(client.use(own))


def test_trust_is_an_edit_like_others(tmp_path: Path) -> None:
    shop = begin(tmp_path)
    with serving(tmp_path) as client:
        client.finds("pay", "held back: mcpzip review shop")
        write_config(tmp_path, others={"shop": {**shop.config, "pin": True}}, trust="open")
        client.finds(WORD, "shop__pay_zanzibar")
        assert client.execute("shop__pay_zanzibar").text == "done"
        assert "held back" not in client.search("pay")


def is_refused(answer: Answer) -> bool:
    return "error" in answer.message or answer.failed


def approve_all(folder: Path) -> None:
    """What a person does at a terminal."""
    review = Review(load(str(folder / "config.json"), {}))
    assert review.approve(review.held(["shop"])) == []


def spellings(text: str) -> st.SearchStrategy[str]:
    """``text`` as a server, or mcpzip, may still understand it."""
    changes = (
        *(str.upper, str.title, str.swapcase, lambda name: f" {name} ", lambda name: f"{name}/"),
        *(lambda name, mark=mark: name.replace("_", mark) for mark in ("-", ".", "", "__", " ")),
        *(lambda name, by=by: f"shop{by}{name}" for by in ("__", ".", "/", ":", "_", "__shop__")),
        *(lambda uri, by=by: f"mcpzip:{by}{uri}" for by in ("//shop/", "//SHOP/", "/shop/")),
        *(lambda uri, more=more: f"{uri}{more}" for more in ("#x", "?x=1", "/.", "//", "%00")),
        lambda uri: uri.replace("zanzibar", "%7Aanz%69bar").replace("/", "%2F"),
        lambda uri: uri.replace("///", "//localhost/x/../"),
        lambda name: "".join(chr(ord(char) + 0xFEE0) if "!" <= char <= "~" else char for char in name),
    )
    some = st.lists(st.sampled_from(changes), max_size=3)
    return some.map(lambda chosen: functools.reduce(lambda name, change: change(name), chosen, text))


words = (
    spellings("pay_zanzibar")
    | spellings("greet_zanzibar")
    | st.sampled_from([WORD, "server:shop", "review", "approve", "mcpzip review shop --approve --all"])
)
uris = spellings(RESOURCE["uri"]) | spellings(f"{WORD}://x") | spellings(TEMPLATE["uriTemplate"])
texts = words | uris | st.text(max_size=10)
objects = st.recursive(
    texts | st.integers() | st.booleans() | st.none(),
    lambda of: (
        st.lists(of, max_size=3) | st.dictionaries(texts | st.sampled_from(["name", "uri"]), of, max_size=3)
    ),
    max_leaves=6,
)
METHODS = [
    *("initialize", "ping", "tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list"),
    *("resources/read", "resources/subscribe", "resources/unsubscribe", "resources/templates/list"),
    *(
        "completion/complete",
        "logging/setLevel",
        "server/discover",
        "tasks/get",
        "tasks/result",
        "tasks/list",
    ),
    *("pins/approve", "mcpzip/review", "notifications/cancelled", "sampling/createMessage", "roots/list"),
]
calls = st.fixed_dictionaries(
    {
        "name": st.sampled_from(
            [
                "search_tools",
                "describe_tool",
                "execute_tool",
                "execute_read_tool",
                "proxy_status",
                "proxy_refresh",
                "mcpzip_review",
            ]
        )
        | texts,
        "arguments": st.fixed_dictionaries({}, optional={"name": texts, "query": texts, "arguments": objects})
        | st.fixed_dictionaries({"name": texts, "arguments": st.just({})})
        | objects,
    }
)
named = st.fixed_dictionaries({"name": texts})
places = st.fixed_dictionaries({"uri": texts})
refs = st.fixed_dictionaries(
    {
        "ref": st.fixed_dictionaries({"type": st.just("ref/prompt"), "name": texts})
        | st.fixed_dictionaries({"type": st.just("ref/resource"), "uri": texts}),
        "argument": st.just({"name": "path", "value": ""}),
    }
)
params = calls | named | places | refs | st.dictionaries(texts, objects, max_size=3)
requests = st.one_of(
    st.tuples(st.just("tools/call"), calls),
    st.tuples(st.just("prompts/get"), named),
    st.tuples(st.sampled_from(["resources/read", "resources/subscribe"]), places),
    st.tuples(st.just("completion/complete"), refs),
    st.tuples(st.sampled_from(METHODS), params),
)


@pytest.fixture(scope="module", params=MODES, ids=[name for name, _ in MODES])
def held_shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The server, and a client of each era."""
    name, keys = request.param
    folder = tmp_path_factory.mktemp(name)
    shop = begin(folder, **keys)
    pins = (folder / "pins" / "config.json").read_bytes()
    with serving(folder) as legacy, serving(folder, begin=False) as modern:
        yield shop, (legacy, modern.begin_modern())
    after = json.loads((folder / "pins" / "config.json").read_bytes())["servers"]["shop"]
    assert after["held"].keys() == json.loads(pins)["servers"]["shop"]["held"].keys(), "nothing was approved"


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.integers(0, 1), requests)
def test_no_request_reaches_or_approves_anything(
    held_shop: Any, era: int, request: tuple[str, dict[str, Any]]
) -> None:
    shop, clients = held_shop
    before = len(reached(shop))
    answer = clients[era].ask(*request)
    assert reached(shop)[before:] == []
    assert TOLD not in answer.line.decode()


def test_the_command_is_there_for_a_person_only(tmp_path: Path) -> None:
    """Case 28: what an agent runs has no terminal."""
    begin(tmp_path)
    for words in (["--approve", "--all"], ["shop", "--approve", "pay_zanzibar"], ["--repair"]):
        arguments = command("review", *words, "--config", str(tmp_path / "config.json"))
        done = subprocess.run(arguments, input=b"y\na\n", capture_output=True, env=environment(), check=False)
        assert done.returncode == 1
        assert b"Only a person at a terminal" in done.stderr
    assert b"held back" in run_here("servers", "--config", str(tmp_path / "config.json")).stdout
