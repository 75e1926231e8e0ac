"""A call: its states, what its client declared and can be asked then, and where it waits for the client."""

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.config import ServerConfig
from mcpzip.model import limits
from mcpzip.proxy import parking
from mcpzip.proxy.call import Call, ModernCall, UpstreamRequest
from mcpzip.proxy.call_states import TRANSITIONS, Event, IllegalEventError, State
from mcpzip.proxy.client_binding import ClientBinding
from mcpzip.proxy.client_capabilities import (
    CapabilityPath,
    has_capability,
    missing_capability,
    required_capability,
)
from mcpzip.proxy.exchange import Client, Exchange
from mcpzip.proxy.parking import ParkedCalls
from mcpzip.transport.connection import Connection, _IncomingHandler
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
def test_what_a_question_needs(method: str, params: bytes | None, ability: CapabilityPath | None) -> None:
    assert required_capability(method, params) == ability


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
def test_what_a_client_can_be_asked(capabilities: bytes, ability: CapabilityPath, able: bool) -> None:
    assert has_capability(capabilities, ability) is able


@given(st.lists(st.text(), min_size=1, max_size=2))
def test_whoever_declares_what_is_lacking_has_it(path: list[str]) -> None:
    ability = tuple(path)
    data = missing_capability(ability).data
    assert data is not None
    declared = json.dumps(json.loads(data)["requiredCapabilities"]).encode()
    assert has_capability(declared, ability)


def request(fields: dict[str, bytes], server: str = "s", method: str = "tools/call") -> UpstreamRequest:
    return UpstreamRequest(server, method, fields, 1.0)


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
    client = Client(Era.LEGACY, is_only_client=True, notify=lambda method, params: told.append(method))
    connection = Connection(ServerConfig("s", "stdio"), None, None, bound_client=ClientBinding(client))  # type: ignore[arg-type]
    for method in ("notifications/progress", "notifications/cancelled", "notifications/other"):
        _IncomingHandler(connection).notified(method, b'{"progressToken":1}', None)
    assert told == ["notifications/other"]


def test_a_client_that_has_left_has_no_connection_of_its_own() -> None:
    one = ClientBinding(Client(Era.LEGACY, b'{"roots":{}}'))
    one.subscriptions["s"].add("u")
    assert one.key is not None
    one.close()
    assert one.key is None
    assert not one.watched("s")


# States


def ways(table: Mapping[State, Mapping[Event, State]]) -> list[tuple[State, Event]]:
    return [(state, event) for state, events in table.items() for event in events]


@pytest.mark.parametrize("era", Era)
def test_every_state_of_a_call_is_reached_and_left_or_is_its_end(era: Era) -> None:
    table = TRANSITIONS[era]
    reached = {State.ASKED, *(after for events in table.values() for after in events.values())}
    assert reached == set(table)
    ends = {State.ANSWERED, State.ABANDONED}
    for state, events in table.items():
        assert state in ends or any(after is not state for after in events.values()), state


def test_each_event_of_a_call_happens_to_clients_of_these_eras() -> None:
    both = {Event.SEND, Event.RESULT, Event.LOSS}
    happening = {era: {event for _, event in ways(table)} for era, table in TRANSITIONS.items()}
    assert happening[Era.LEGACY] == both | {Event.INPUT_REQUIRED}
    assert happening[Era.MODERN] == set(Event) - {Event.INPUT_REQUIRED}


@pytest.mark.parametrize("kind", [Call, ModernCall])
async def test_an_event_that_the_table_does_not_have_is_an_error(kind: type[Call]) -> None:
    table = TRANSITIONS[Era.MODERN if kind is ModernCall else Era.LEGACY]
    for state in table:
        for event in Event:
            call = kind(Exchange(Client()), request({}))
            call.state = state
            if event in table[state]:
                call.happens(event)
                assert call.state is table[state][event]
            else:
                with pytest.raises(IllegalEventError, match=f"{state}.*{event}"):
                    call.happens(event)
                assert call.state is state


def test_the_documentation_has_the_states_of_the_table() -> None:
    """Rows of the table in docs/conversation.md: state, event, next state, client's eras."""
    text = (Path(__file__).parents[3] / "docs" / "conversation.md").read_text("utf-8")
    row = r"^\| ([a-z ]+) \| `([A-Z_]+)` \| ([a-z ]+) \| (legacy|modern|any) \|"
    written = {
        (era, State(state), Event[event], State(after))
        for state, event, after, eras in re.findall(row, text, re.MULTILINE)
        for era in Era
        if eras in ("any", era.value)
    }
    assert written == {
        (era, state, event, after)
        for era, table in TRANSITIONS.items()
        for state, events in table.items()
        for event, after in events.items()
    }


# Waiting for the client


def being_asked(client: Client) -> ModernCall:
    """A call that is under way, and in which its client is to be asked something."""
    call = ModernCall(Exchange(client, capabilities=client.capabilities), request({}))
    call.task = asyncio.create_task(asyncio.Event().wait())  # type: ignore[arg-type]
    call.happens(Event.SEND)
    call.happens(Event.QUESTION)
    return call


async def test_how_long_a_call_waits_can_be_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parking, "PARKING_TIME", 0.01)
    parked = ParkedCalls()
    call = being_asked(Client(Era.MODERN, b'{"roots":{}}', has_session=False))
    asking = asyncio.create_task(call.ask("roots/list", None))
    await call.news.wait()
    assert b"mcpzip-" in parked.park(call)
    assert call.task
    await asyncio.wait({call.task})
    assert call.task.cancelled()
    assert call.state is State.ABANDONED
    assert len(parked) == 0
    asking.cancel()
    await asyncio.wait({asking})


@pytest.mark.parametrize(("lasting", "most"), [(True, limits.PARKED_CLIENT), (False, limits.PARKED)])
async def test_calls_that_wait_for_their_client_are_so_many_and_the_oldest_goes(
    lasting: bool, most: int
) -> None:
    """There was no end to them: each holds a call at its server."""
    parked = ParkedCalls()
    client = Client(Era.MODERN, b'{"roots":{}}', has_session=lasting)
    calls = [being_asked(client) for _ in range(most + 2)]
    for call in calls:
        parked.park(call)
    assert len(parked) == most
    await asyncio.wait({call.task for call in calls[:2] if call.task})
    assert [call.task.cancelled() for call in calls if call.task] == [True] * 2 + [False] * most
    await asyncio.gather(*parked.abandon_calls(client), return_exceptions=True)
