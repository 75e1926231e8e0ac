"""Which calls of clients that share a connection may overlap, and whom a server's question there is for."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpzip.config import load
from mcpzip.proxy.call import Call, UpstreamRequest
from mcpzip.proxy.call_states import Event
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.first_calls import KNOWN_TOOLS, FirstCalls
from mcpzip.proxy.shared_binding import SharedBinding
from mcpzip.wire import Era, JsonRpcError

SAMPLING = b'{"sampling":{}}'
TEXT = b'{"content":[{"type":"text","text":"done"}]}'
FAILED = b'{"content":[],"isError":true}'
ASK = "sampling/createMessage"


def first_calls(folder: Path, **keys: object) -> FirstCalls:
    path = folder / "config.json"
    path.write_text(json.dumps({"mcpServers": {"up": {"command": "up", **keys}}}))
    return FirstCalls(CurrentConfig(load(path, {})))


def shared(capabilities: bytes = SAMPLING) -> SharedBinding:
    return SharedBinding(capabilities, lambda server, method, params: None)


def request(tool: str, method: str = "tools/call") -> UpstreamRequest:
    return UpstreamRequest("up", method, {"name": json.dumps(tool).encode()}, 10.0)


def client(said: str = "") -> Client:
    async def answer(method: str, params: bytes | None) -> bytes:
        return said.encode()

    return Client(Era.LEGACY, SAMPLING, request=answer)


def call(of: Client, tool: str = "pay", method: str = "tools/call") -> Call:
    made = Call(Exchange(of, capabilities=of.capabilities, request=of.request), request(tool, method))
    made.happens(Event.SEND)
    return made


IN_FOLDER = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@IN_FOLDER
@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.booleans()), max_size=12))
def test_two_calls_overlap_only_if_both_tools_have_answered(
    tmp_path: Path, steps: list[tuple[int, str, bool]]
) -> None:
    """Calls that would overlap are left out, as if they waited; the others end in the order in which they
    began.
    """
    known, binding, clients = first_calls(tmp_path), shared(), [client() for _ in range(3)]
    answered: set[str] = set()
    under_way: list[tuple[Call, str]] = []
    for number, tool, ends in steps:
        others = {name for made, name in under_way if made.client is not clients[number]}
        overlaps = known.overlaps(binding, clients[number], request(tool))
        assert overlaps == (bool(others) and not {tool, *others} <= answered)
        if not overlaps:
            under_way.append((call(clients[number], tool), tool))
            binding.begin(under_way[-1][0])
        if ends and under_way:
            made, name = under_way.pop(0)
            known.answered(binding, made, TEXT)
            binding.end(made, Event.RESULT)
            answered.add(name)


@pytest.mark.parametrize(
    ("keys", "capabilities"),
    [
        ({"share": "always"}, SAMPLING),
        ({"command": None, "url": "http://127.0.0.1:1/mcp"}, SAMPLING),  # there the transport tells
        ({}, b'{"roots":{}}'),
        ({}, b"{}"),
    ],
)
def test_calls_overlap_where_nothing_could_be_asked_of_the_wrong_client(
    tmp_path: Path, keys: dict[str, object], capabilities: bytes
) -> None:
    entry = {key: value for key, value in {"command": "up", **keys}.items() if value is not None}
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"mcpServers": {"up": entry}}))
    known, binding = FirstCalls(CurrentConfig(load(path, {}))), shared(capabilities)
    binding.begin(call(client()))
    assert not known.overlaps(binding, client(), request("pay"))


def test_an_error_does_not_show_that_a_tool_does_not_ask(tmp_path: Path) -> None:
    known, binding, one = first_calls(tmp_path), shared(), client()
    for result, overlaps in ((FAILED, True), (TEXT, False)):
        known.answered(binding, call(one), result)
        made = call(one)
        binding.begin(made)
        assert known.overlaps(binding, client(), request("pay")) is overlaps
        binding.end(made, Event.RESULT)


def test_a_tool_is_known_for_what_it_could_have_asked(tmp_path: Path) -> None:
    known, both = first_calls(tmp_path), shared(b'{"sampling":{},"elicitation":{}}')
    known.answered(shared(), call(client()), TEXT)
    both.begin(call(client(), "other", "prompts/get"))
    assert known.overlaps(both, client(), request("pay"))
    assert not known.overlaps(both, client(), request("pay", "prompts/get"))


def test_the_tools_that_are_known_are_limited(tmp_path: Path) -> None:
    known, binding, one = first_calls(tmp_path), shared(), client()
    for number in range(KNOWN_TOOLS + 1):
        known.answered(binding, call(one, f"t{number}"), TEXT)
    binding.begin(call(one, f"t{KNOWN_TOOLS}"))
    assert not known.overlaps(binding, client(), request(f"t{KNOWN_TOOLS}"))
    assert known.overlaps(binding, client(), request("t0"))


async def test_a_question_in_the_response_to_a_call_is_for_its_client() -> None:
    binding, people = shared(), [client('"anna"'), client('"ben"')]
    calls = [call(each) for each in people]
    for made in calls:
        binding.begin(made)
    assert await binding.asked("up", ASK, b"{}", calls[0]) == b'"anna"'
    assert await binding.asked("up", ASK, b"{}", calls[1]) == b'"ben"'
    with pytest.raises(JsonRpcError, match="Several clients"):
        await binding.asked("up", ASK, b"{}", None)
    binding.end(calls[0], Event.RESULT)
    binding.begin(call(people[0], "other"))
    with pytest.raises(JsonRpcError, match="Several clients"):
        await binding.asked("up", ASK, b"{}", calls[0])  # it has ended


async def test_waiting_for_the_end_of_a_call_has_a_limit() -> None:
    binding, one = shared(), client()
    made = call(one)
    binding.begin(made)
    await binding.call_ends("up", 0.0)
    waiting = asyncio.create_task(binding.call_ends("up", 60.0))
    await asyncio.sleep(0)
    assert not waiting.done()
    binding.end(made, Event.RESULT)
    await waiting
    assert not binding._waiting
