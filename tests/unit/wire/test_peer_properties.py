"""What holds of a `Peer` for all inputs and all orders of things."""

import json
import tracemalloc
from itertools import pairwise

import pytest
from helpers.json_texts import numbers, objects, patient, strings, values
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, precondition, rule

from mcpzip.wire import (
    Cancelled,
    Closed,
    Error,
    Event,
    Notification,
    Peer,
    Progress,
    Request,
    Result,
    Role,
    RpcError,
    Unmatched,
)

ids = strings | numbers | st.sampled_from([b"1", b"2", b'"1"', b"null", b"true", b"{}", b"1.0"])
methods = (
    st.sampled_from([b'"ping"', b'"notifications/progress"', b'"notifications/cancelled"', b"7"]) | strings
)
params = objects | st.builds(
    lambda key, id: b'{"%b":%b}' % (key, id), st.sampled_from([b"requestId", b"progressToken"]), ids
)


@st.composite
def messages(draw: st.DrawFn) -> bytes:
    """Anything shaped like a message, right or wrong."""
    parts = {b"jsonrpc": st.just(b'"2.0"'), b"id": ids, b"method": methods, b"params": params | values}
    parts |= {b"result": values, b"error": values, b"x": values}
    names = draw(st.permutations([name for name in parts if draw(st.booleans())]))
    return b"{%b}" % b",".join(b'"%b":%b' % (name, draw(parts[name])) for name in names)


@st.composite
def bent(draw: st.DrawFn) -> bytes:
    """A message with some bytes lost, or put in."""
    text = draw(messages())
    start, end = sorted(draw(st.integers(0, len(text))) for _ in range(2))
    return (
        text[:start]
        + draw(st.binary(max_size=4) | st.sampled_from([b"", b"\n", b"\xff", b'"', b"\\"]))
        + text[end:]
    )


lines = (
    messages() | bent() | st.sampled_from([b"", b" ", b"log line", b"[]", b"\xef\xbb\xbf{}"]) | st.binary()
)
roles = st.sampled_from(Role)


def told(peer: Peer, pieces: list[bytes]) -> list[Event]:
    for _ in range(3):
        peer.request("subscriptions/listen")
    return [event for piece in pieces for event in peer.receive(piece)] + peer.eof()


@patient
@given(
    roles,
    st.lists(lines, max_size=6),
    st.lists(st.integers(0, 10_000), max_size=6),
    st.sampled_from([b"\n", b"\r\n"]),
)
def test_any_split_gives_the_same_events(
    role: Role, parts: list[bytes], places: list[int], end: bytes
) -> None:
    data = b"".join(part + end for part in parts)
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    pieces = [data[start:stop] for start, stop in pairwise(edges)]
    whole = told(Peer(role=role, max_frame=60), [data])
    assert told(Peer(role=role, max_frame=60), pieces) == whole
    assert told(Peer(role=role, max_frame=60), [data[at : at + 1] for at in range(len(data))]) == whole


@patient
@given(roles, st.lists(lines, max_size=6))
def test_whatever_comes_each_request_has_one_outcome_and_the_next_message_is_understood(
    role: Role, parts: list[bytes]
) -> None:
    peer = Peer(role=role)
    asked = [peer.request("subscriptions/listen")[0] for _ in range(3)]
    events = [event for part in parts for event in peer.receive(part + b"\n")]
    asked.append(peer.request("tools/list")[0])
    sane = peer.receive(b'\n{"jsonrpc":"2.0","id":%d,"result":{"ok":1.0}}\n' % asked[-1])
    assert sane == [Result(asked[-1], b'{"ok":1.0}')]
    events += sane + peer.eof()
    outcomes = [event.id for event in events if isinstance(event, Result | Error)]
    outcomes += [id for event in events if isinstance(event, Closed) for id in event.ids]
    assert sorted(outcomes) == asked


@patient
@given(roles, st.lists(lines, max_size=4))
def test_all_that_must_be_answered_can_be_once(role: Role, parts: list[bytes]) -> None:
    peer = Peer(role=role)
    peer.receive(b"\n".join(parts) + b"\n")
    for id in peer.unanswered:
        line = peer.error(id, -32603, "no")
        assert json.loads(line, parse_int=str, parse_float=str)["id"] == json.loads(
            id, parse_int=str, parse_float=str
        )
        assert peer.result(id, b"{}") == b""
    assert peer.unanswered == ()


@patient
@given(
    strings.filter(lambda text: text.isascii())
    | st.from_regex(r"-?(0|[1-9][0-9]{0,30})", fullmatch=True).map(str.encode),
    st.text(st.characters()),
    st.none() | objects,
    values,
)
def test_everything_passes_there_and_back_byte_for_byte(
    id: bytes, method: str, sent: bytes | None, result: bytes
) -> None:
    client, server = Peer(role=Role.CLIENT), Peer(role=Role.SERVER)
    number, line = client.request("x/" + method, sent)
    (request,) = server.receive(line)
    assert request == Request(b"%d" % number, json.loads(json.dumps("x/" + method)), sent)
    assert client.receive(server.result(b"%d" % number, result)) == [Result(number, result)]
    if sent is not None:
        assert server.receive(client.notify("x/" + method, sent)) == [Notification(request.method, sent)]
    assert server.receive(b'{"jsonrpc":"2.0","id":%b,"method":"a"}\n' % id) == [Request(id, "a", None)]
    assert server.result(id, result) == b'{"jsonrpc":"2.0","id":%b,"result":%b}\n' % (id, result)


@patient
@given(st.integers(-(10**17), 10**17), st.text(), st.none() | values)
def test_errors_pass_whole(code: int, message: str, data: bytes | None) -> None:
    client, server = Peer(role=Role.CLIENT), Peer(role=Role.SERVER)
    server.receive(client.request("a")[1])
    assert client.receive(server.error(b"1", code, message, data)) == [
        Error(1, RpcError(code, message, data))
    ]


@pytest.mark.parametrize("role", Role)
def test_a_flood_without_a_newline_is_not_kept(role: Role) -> None:
    peer = Peer(role=role, max_frame=50_000)
    tracemalloc.start()
    try:
        for _ in range(1000):
            peer.receive(b'{"id":1,"result":"' * 500)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200_000


class Conversation(RuleBasedStateMachine):
    """Two peers, two pipes that deliver when they please, and everything both may do meanwhile.

    The model knows what each asked, and what the other answered before it was told to stop.
    """

    ours = Bundle("ours")

    @initialize()
    def start(self) -> None:
        self.peers = {Role.CLIENT: Peer(role=Role.CLIENT), Role.SERVER: Peer(role=Role.SERVER)}
        self.pipes: dict[Role, bytearray] = {role: bytearray() for role in Role}  # by whom they lead to
        self.asked: dict[tuple[Role, int], bytes | None] = {}
        self.outcomes: dict[tuple[Role, int], list[object]] = {}
        self.to_answer: dict[Role, list[bytes]] = {role: [] for role in Role}
        self.answers: dict[tuple[Role, int], object] = {}

    @staticmethod
    def other(role: Role) -> Role:
        return Role.SERVER if role is Role.CLIENT else Role.CLIENT

    def send(self, role: Role, line: bytes) -> None:
        self.pipes[self.other(role)] += line

    @rule(target=ours, role=roles, sent=st.none() | objects)
    def ask(self, role: Role, sent: bytes | None) -> tuple[Role, int]:
        number, line = self.peers[role].request("tools/call", sent)
        self.asked[role, number] = sent
        self.outcomes[role, number] = []
        self.send(role, line)
        return role, number

    @rule(request=consumes(ours))
    def take_back(self, request: tuple[Role, int]) -> None:
        role, number = request
        line = self.peers[role].cancel(number, "enough")
        assert (line is None) == bool(self.outcomes[request])
        if line is not None:
            self.outcomes[request].append("cancelled")
            self.send(role, line)

    @precondition(lambda self: any(self.to_answer.values()))
    @rule(data=st.data(), result=values, fails=st.booleans())
    def answer(self, data: st.DataObject, result: bytes, fails: bool) -> None:
        role = data.draw(st.sampled_from([role for role in Role if self.to_answer[role]]))
        id = data.draw(st.sampled_from(self.to_answer[role]))
        self.to_answer[role].remove(id)
        peer = self.peers[role]
        line = peer.error(id, -32000, "no", result) if fails else peer.result(id, result)
        outcome = RpcError(-32000, "no", result) if fails else result
        self.answers[self.other(role), int(id)] = outcome
        assert line
        assert peer.result(id, result) == b""
        self.send(role, line)

    @precondition(lambda self: any(self.to_answer.values()))
    @rule(data=st.data())
    def report(self, data: st.DataObject) -> None:
        role = data.draw(st.sampled_from([role for role in Role if self.to_answer[role]]))
        id = data.draw(st.sampled_from(self.to_answer[role]))
        self.send(role, self.peers[role].notify("notifications/progress", b'{"progressToken":%b}' % id))

    @rule(role=roles, sent=st.none() | objects)
    def tell(self, role: Role, sent: bytes | None) -> None:
        self.send(role, self.peers[role].notify("notifications/message", sent))

    @rule(role=roles, size=st.integers(1, 400))
    def deliver(self, role: Role, size: int) -> None:
        piece = bytes(self.pipes[role][:size])
        del self.pipes[role][:size]
        for event in self.peers[role].receive(piece):
            self.see(role, event)

    def see(self, role: Role, event: Event) -> None:
        match event:
            case Request(id, "tools/call", sent):
                assert self.asked[self.other(role), int(id)] == sent
                self.to_answer[role].append(id)
            case Cancelled(id, "enough"):
                assert self.outcomes[self.other(role), int(id)] == ["cancelled"]
                self.to_answer[role].remove(id)
                assert self.peers[role].result(id, b"{}") == b""
            case Result(number, outcome) | Error(number, outcome):
                assert self.answers[role, number] == outcome
                self.outcomes[role, number].append(outcome)
            case Progress(number, sent):
                assert self.outcomes[role, number] == []
                assert sent == b'{"progressToken":%d}' % number
            case Notification("notifications/message", _):
                pass
            case Unmatched(kind, detail):
                # Only what crossed a cancellation, or its answer, on the way.
                assert kind in ("answer", "progress", "cancelled")
                assert "cancelled" in [outcome for made in self.outcomes.values() for outcome in made], detail
            case Closed(numbers):
                for number in numbers:
                    self.outcomes[role, number].append("closed")
            case _:
                raise AssertionError(event)

    def teardown(self) -> None:
        if not hasattr(self, "peers"):
            return
        for role in Role:
            self.deliver(role, len(self.pipes[role]))
        for role in Role:
            assert self.peers[role].unanswered == tuple(self.to_answer[role])
            for event in self.peers[role].eof():
                self.see(role, event)
        assert [len(made) for made in self.outcomes.values()] == [1] * len(self.asked)


TestConversation = Conversation.TestCase
TestConversation.settings = settings(deadline=None, max_examples=30, stateful_step_count=35)
