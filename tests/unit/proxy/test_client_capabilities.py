"""What a client declared, and what it can be asked then."""

import asyncio
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config import ServerConfig
from mcpzip.model import limits
from mcpzip.proxy.calls import Caller
from mcpzip.proxy.client_binding import Call, ClientBinding, Request
from mcpzip.proxy.client_capabilities import ClientCapabilities, has, lacking, needed
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.transport.connection import Connection, _IncomingHandler
from mcpzip.transport.pool import Pool
from mcpzip.wire import Era


@pytest.mark.parametrize(
    ("method", "params", "ability"),
    [
        ("sampling/createMessage", None, ("sampling",)),
        ("sampling/createMessage", b'{"tools":[]}', ("sampling", "tools")),
        ("elicitation/create", b'{"message":"?"}', ("elicitation", "form")),
        ("elicitation/create", b'{"mode":"form"}', ("elicitation", "form")),
        ("elicitation/create", b'{"mode":"url"}', ("elicitation", "url")),
        ("roots/list", None, ("roots",)),
        ("tools/list", None, None),
        ("elicitation/create", b"[]", ("elicitation", "form")),
    ],
)
def test_what_a_question_needs(method: str, params: bytes | None, ability: ClientCapabilities | None) -> None:
    assert needed(method, params) == ability


@pytest.mark.parametrize(
    ("capabilities", "ability", "able"),
    [
        (b"{}", ("roots",), False),
        (b'{"roots":{}}', ("roots",), True),
        (b'{"elicitation":{}}', ("elicitation", "form"), True),
        (b'{"elicitation":{"form":{}}}', ("elicitation", "form"), True),
        (b'{"elicitation":{"url":{}}}', ("elicitation", "form"), False),
        (b'{"elicitation":{}}', ("elicitation", "url"), False),
        (b'{"elicitation":{"form":{},"url":{}}}', ("elicitation", "url"), True),
        (b'{"sampling":{}}', ("sampling", "tools"), False),
        (b'{"sampling":{"tools":{}}}', ("sampling", "tools"), True),
        (b"7", ("roots",), False),
    ],
)
def test_what_a_client_can_be_asked(capabilities: bytes, ability: ClientCapabilities, able: bool) -> None:
    assert has(capabilities, ability) is able


@given(st.lists(st.text(), min_size=1, max_size=2))
def test_whoever_declares_what_is_lacking_has_it(path: list[str]) -> None:
    ability = tuple(path)
    data = lacking(ability).data
    assert data is not None
    declared = json.dumps(json.loads(data)["requiredCapabilities"]).encode()
    assert has(declared, ability)


def request(fields: dict[str, bytes], server: str = "s", method: str = "tools/call") -> Request:
    return Request(server, method, fields, 1.0)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (b'{"a":1,"b":{"c":2,"d":3}}', b'{"b": {"d":3,"c":2}, "a":1}', True),
        (b'{"a":1}', b'{"a":1.0}', False),
        (b'{"a":1}', b'{"a":true}', False),
        (b'{"a":[1,2]}', b'{"a":[2,1]}', False),
        (b'{"a":"\\u00e9"}', '{"a":"é"}'.encode(), True),
        (b"[" * 100_000, b"[" * 100_001, False),
    ],
)
def test_what_counts_as_the_same_request(one: bytes, other: bytes, same: bool) -> None:
    assert request({"arguments": one}).same(request({"arguments": other})) is same


def test_another_server_or_method_is_another_request() -> None:
    assert not request({}).same(request({}, server="t"))
    assert not request({}).same(request({}, method="prompts/get"))


def test_what_is_left_of_a_request_that_was_answered_reaches_no_client() -> None:
    """Progress under a token of ours came to the client, which may have given the same to another request."""
    told: list[str] = []
    client = Client(Era.LEGACY, alone=True, tell=lambda method, params: told.append(method))
    connection = Connection(ServerConfig("s", "stdio"), None, None, bound_client=ClientBinding(client))  # type: ignore[arg-type]
    for method in ("notifications/progress", "notifications/cancelled", "notifications/other"):
        _IncomingHandler(connection).notified(method, b'{"progressToken":1}')
    assert told == ["notifications/other"]


def test_a_client_that_has_left_has_no_connection_of_its_own() -> None:
    one = ClientBinding(Client(Era.LEGACY, b'{"roots":{}}'))
    one.resources["s"].add("u")
    assert one.key is not None
    one.leave()
    assert one.key is None
    assert not one.watched("s")


async def test_how_long_a_call_waits_can_be_said() -> None:
    caller = Caller(Pool([], idle_timeout=1.0), patience=0.01)
    client = Client(Era.MODERN, b'{"roots":{}}', lasting=False)
    call = Call(Exchange(client, capabilities=client.capabilities), request({}))
    call.task = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]
    asking = asyncio.create_task(call.asked("roots/list", None))
    await call.news.wait()
    assert b"mcpzip-" in caller._park(call)
    await asyncio.wait({call.task})
    assert call.task.cancelled()
    assert caller._parked == {}
    asking.cancel()
    await asyncio.wait({asking})


@pytest.mark.parametrize(("lasting", "most"), [(True, limits.PARKED_CLIENT), (False, limits.PARKED)])
async def test_calls_that_wait_for_their_client_are_so_many_and_the_oldest_goes(
    lasting: bool, most: int
) -> None:
    """There was no end to them: each holds a call at its server."""
    caller = Caller(Pool([], idle_timeout=1.0))
    client = Client(Era.MODERN, b'{"roots":{}}', lasting=lasting)
    calls = [Call(Exchange(client), request({})) for _ in range(most + 2)]
    for call in calls:
        call.task = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]
        caller._park(call)
    assert len(caller._parked) == most
    await asyncio.wait({call.task for call in calls[:2] if call.task})
    assert [call.task.cancelled() for call in calls if call.task] == [True] * 2 + [False] * most
    await caller.close()
