"""A JSON-RPC connection: each request has one outcome, whatever comes and in whatever order."""

import asyncio
import gc
import json
from collections.abc import Awaitable, Callable

import pytest
from helpers.event_loop import outside_of_tasks
from hypothesis import given
from hypothesis import strategies as st

from mcpzip.model import limits
from mcpzip.transport.base import ChannelClosedError, Origin
from mcpzip.transport.jsonrpc import JsonRpcConnection
from mcpzip.wire import (
    INTERNAL_ERROR,
    JsonRpcError,
    RpcError,
)

Json = dict[str, object]


class Listener:
    """Hears what the server says unasked. answer: to its requests; open until `asked` is done."""

    def __init__(self) -> None:
        self.notices: list[tuple[str, bytes | None]] = []
        self.reasons: list[str] = []
        self.questions: list[str] = []
        self.cancelled: list[str] = []
        self.origins: list[object] = []
        self.answer: Callable[[str], Awaitable[bytes]] = self._never

    async def _never(self, method: str) -> bytes:
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    def notified(self, method: str, params: bytes | None, origin: object = None) -> None:
        self.notices.append((method, params))
        self.origins.append(origin)

    async def asked(self, method: str, params: bytes | None, origin: object = None) -> bytes:
        self.questions.append(method)
        self.origins.append(origin)
        try:
            return await self.answer(method)
        except asyncio.CancelledError:
            self.cancelled.append(method)
            raise

    def ended(self, reason: str) -> None:
        self.reasons.append(reason)


class Stage:
    """A connection, who listens to it, what it sent, and what on it was no message."""

    def __init__(self) -> None:
        self.listener = Listener()
        self.sent: list[Json] = []
        self.junk: list[bytes] = []
        self.full = False
        self.rpc = JsonRpcConnection(
            self.listener,
            lambda line: self.sent.append(json.loads(line)),
            full=lambda: self.full,
            junk=self.junk.append,
        )

    def hear(self, *messages: Json | bytes, alone: bool = False) -> None:
        for message in messages:
            text = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.rpc.received(self.rpc.peer.message(text), alone=alone)

    def ask(self, method: str = "tools/call") -> "asyncio.Future[bytes]":
        return self.rpc.request(method, None, None)[2]


def answer(id: object, result: object = "yes") -> Json:
    return {"jsonrpc": "2.0", "id": id, "result": result}


def question(id: object, method: str = "roots/list") -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method}


def cancelled(id: object) -> Json:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}


async def settled() -> None:
    """All tasks have gone as far as they go by themselves."""
    for _ in range(10):
        await asyncio.sleep(0)


# ---- our requests


def outcome(future: "asyncio.Future[bytes]") -> object:
    """What became of a request: its result, or the kind of its failure."""
    if not future.done():
        return None
    return future.result() if future.exception() is None else type(future.exception())


SAID = st.one_of(
    *(st.builds(answer, st.integers(0, 4) | st.sampled_from(["1", None, 1.0])),),
    st.builds(
        lambda id: {"jsonrpc": "2.0", "id": id, "error": {"code": -1, "message": "no"}}, st.integers(0, 4)
    ),
    st.builds(lambda id: {"id": id, "result": 1, "error": {"code": 1, "message": "m"}}, st.integers(0, 4)),
    st.builds(
        lambda token: {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": token, "progress": 1},
        },
        st.integers(0, 4),
    ),
    st.builds(cancelled, st.integers(0, 4)),
    st.builds(question, st.integers(0, 4)),
    st.sampled_from([b"", b"log line", b"[]", b'{"jsonrpc":"2.0","id":2,"result":', b"\xff", b'{"id":3}']),
)
STEP = st.one_of(SAID, st.sampled_from(["forget 1", "forget 2", "fail 1", "fail 3", "end"]))


@given(st.lists(STEP, max_size=12))
def test_each_request_has_one_outcome_whatever_order_things_have(steps: list[Json | bytes | str]) -> None:
    async def play() -> None:
        stage = Stage()
        requests = {number: stage.ask() for number in (1, 2, 3)}
        kept: dict[int, object] = {}
        for step in [*steps, "end"]:
            if step == "end":
                stage.rpc.end("it is over")
            elif isinstance(step, str):
                verb, about = step.split()
                if verb == "forget":
                    stage.rpc.forget(int(about))
                else:
                    stage.rpc.fail(int(about), ValueError())
            else:
                stage.hear(step)
            for number, future in requests.items():
                if future.done() and not future.cancelled():
                    assert kept.setdefault(number, outcome(future)) == outcome(future)
                    assert not stage.rpc.is_open(number)
        assert all(future.done() for future in requests.values())
        assert stage.listener.reasons == ["it is over"]
        for number in requests:
            stage.rpc.forget(number)
        assert not stage.rpc.waits
        assert stage.rpc.peer.open_requests == ()
        await settled()

    asyncio.run(play())


async def test_an_answer_goes_to_whom_it_answers() -> None:
    stage = Stage()
    first, second, third = stage.ask(), stage.ask(), stage.ask()
    stage.hear(answer(2, "second"), answer("one"), answer(9))
    stage.hear({"jsonrpc": "2.0", "id": 3, "error": {"code": -7, "message": "no", "data": [1]}})
    assert (first.done(), await second) == (False, b'"second"')
    with pytest.raises(JsonRpcError) as caught:
        await third
    assert caught.value.error == RpcError(-7, "no", b"[1]")
    stage.rpc.forget(1)


async def test_whoever_waits_for_what_comes_alone_goes_on_at_once() -> None:
    stage, log = Stage(), list[object]()

    async def wait() -> None:
        log.append(await stage.ask())

    waits = asyncio.create_task(wait())
    await asyncio.sleep(0)

    def hear() -> None:
        stage.hear(answer(1), alone=True)
        log.append("heard")

    await outside_of_tasks(hear)
    assert log == [b'"yes"', "heard"]
    await waits


@pytest.mark.parametrize("alone", [True, False])
async def test_what_the_server_asked_before_its_answer_is_asked_before_it(alone: bool) -> None:
    stage, log = Stage(), list[object]()

    async def answering(method: str) -> bytes:
        log.append(method)
        return b"{}"

    async def wait() -> None:
        log.append(await stage.ask())

    stage.listener.answer = answering
    waits = asyncio.create_task(wait())
    await asyncio.sleep(0)

    def hear() -> None:
        stage.hear(question(1), alone=alone)
        stage.hear(answer(1), alone=alone)

    await outside_of_tasks(hear)
    await waits
    assert log == ["roots/list", b'"yes"']


async def test_who_is_told_that_it_has_ended_knows_it_of_the_connection() -> None:
    """They may send their request again, and must not do so here."""
    stage, log = Stage(), list[object]()

    async def wait() -> None:
        try:
            await stage.ask()
        except ChannelClosedError:
            log.append(stage.listener.reasons)

    waits = asyncio.create_task(wait())
    await asyncio.sleep(0)
    await outside_of_tasks(lambda: stage.rpc.end("it is over"))
    await waits
    assert log == [["it is over"]]


async def test_an_answer_that_is_none_fails_its_request_which_may_have_run() -> None:
    stage = Stage()
    request = stage.ask()
    stage.hear(b'{"jsonrpc":"2.0","id":1}')
    with pytest.raises(ChannelClosedError) as caught:
        await request
    assert (caught.value.reason, caught.value.sent, caught.value.fatal) == (
        "the answer has neither result nor error",
        True,
        False,
    )


async def test_progress_comes_in_order_to_whom_it_is_about_and_not_when_it_is_late() -> None:
    stage = Stage()
    heard: list[object] = []
    number, line, request = stage.rpc.request(
        "tools/call", b'{"name":"pay"}', lambda params: heard.append(json.loads(params)["progress"])
    )
    assert json.loads(line)["params"] == {"name": "pay", "_meta": {"progressToken": number}}

    def progress(value: int, token: object) -> Json:
        params = {"progressToken": token, "progress": value}
        return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}

    stage.hear(progress(1, number), progress(2, 7), progress(3, "x"), progress(4, number))
    stage.hear(answer(number), progress(5, number))
    assert await request == b'"yes"'
    assert heard == [1, 4]
    stage.rpc.forget(number)
    stage.hear(progress(6, number))
    assert heard == [1, 4]
    assert stage.listener.notices == []


async def test_what_comes_about_a_request_is_handed_on_with_its_origin() -> None:
    stage, origin = Stage(), Origin(call="mine")
    number, _, request = stage.rpc.request("tools/call", None, None, origin)
    said = stage.rpc.peer.message(b'{"jsonrpc":"2.0","method":"notifications/x"}')
    for about in (number, number + 1, None):
        stage.rpc.received(said, about)
    stage.rpc.received(
        stage.rpc.peer.message(b'{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage"}'), number
    )
    await asyncio.sleep(0)
    assert stage.listener.origins == [origin, None, None, origin]
    stage.hear(answer(number))
    await request
    stage.rpc.forget(number)
    stage.rpc.received(said, number)
    assert stage.listener.origins[-1] is None


async def test_a_request_without_progress_has_no_token() -> None:
    number, line, _ = Stage().rpc.request("tools/call", b'{"name":"pay"}', None)
    assert json.loads(line) == {
        "jsonrpc": "2.0",
        "id": number,
        "method": "tools/call",
        "params": {"name": "pay"},
    }


async def test_notifications_and_junk_go_where_they_are_heard() -> None:
    stage = Stage()
    stage.hear({"jsonrpc": "2.0", "method": "notifications/message", "params": {"a": 1}}, b"a log line")
    assert stage.listener.notices == [("notifications/message", b'{"a": 1}')]
    assert stage.junk == [b"a log line"]


# ---- requests of the server


async def test_requests_of_the_server_are_answered_side_by_side() -> None:
    stage = Stage()
    gates = {"a": asyncio.Event(), "b": asyncio.Event()}

    async def reply(method: str) -> bytes:
        await gates[method].wait()
        if method == "b":
            raise JsonRpcError(RpcError(-5, "no", b"[2]", b'{"more":1}'))
        return b'{"is":1}'

    stage.listener.answer = reply
    stage.hear(question(1, "a"), question("x", "b"))
    await settled()
    assert (stage.listener.questions, stage.sent) == (["a", "b"], [])
    gates["b"].set()
    await settled()
    gates["a"].set()
    await settled()
    assert stage.sent == [
        {"jsonrpc": "2.0", "id": "x", "error": {"code": -5, "message": "no", "data": [2], "more": 1}},
        {"jsonrpc": "2.0", "id": 1, "result": {"is": 1}},
    ]


async def test_a_request_that_the_server_takes_back_is_cancelled_and_not_answered() -> None:
    stage = Stage()
    stage.hear(question(1, "a"), question(2, "b"))
    await settled()
    stage.hear(cancelled(1), cancelled(7))
    await settled()
    assert stage.listener.cancelled == ["a"]
    stage.hear(question(1, "again"))
    await settled()
    assert stage.listener.questions == ["a", "b", "again"]
    stage.rpc.end("over")
    await settled()
    assert stage.listener.cancelled == ["a", "b", "again"]
    assert stage.sent == []


async def test_a_request_under_the_id_of_one_that_is_taken_back_can_be_taken_back_too() -> None:
    stage = Stage()
    stage.hear(question(1, "a"))
    await settled()
    stage.hear(cancelled(1), question(1, "again"))
    await settled()
    assert stage.listener.cancelled == ["a"]
    stage.hear(cancelled(1))
    await settled()
    assert stage.listener.cancelled == ["a", "again"]
    assert stage.sent == []


async def test_one_request_too_many_is_refused_and_the_next_is_heard_when_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "ASKED", 3)
    stage = Stage()
    stage.hear(*(question(number) for number in range(4)))
    await settled()
    assert len(stage.listener.questions) == 3
    error = {"code": INTERNAL_ERROR, "message": "There are too many requests under way."}
    assert stage.sent == [{"jsonrpc": "2.0", "id": 3, "error": error}]
    stage.hear(cancelled(0))
    await settled()
    stage.hear(question(4))
    await settled()
    assert len(stage.listener.questions) == 4
    assert len(stage.sent) == 1
    stage.rpc.end("over")
    await settled()


async def test_a_server_that_takes_no_answers_is_not_heard() -> None:
    stage = Stage()
    stage.full = True
    stage.hear(question(1), b'{"jsonrpc":"2.0","id":2,"method":7}')
    await settled()
    assert (stage.listener.questions, stage.sent, stage.rpc.peer.unanswered) == ([], [], ())
    stage.full = False
    stage.hear(b'{"jsonrpc":"2.0","id":2,"method":"ping","params":7}')
    assert [message["id"] for message in stage.sent] == [2]


# ---- the end


async def test_the_end_fails_what_waits_and_is_told_once() -> None:
    stage = Stage()
    first, second = stage.ask(), stage.ask()
    stage.hear(answer(1))
    stage.rpc.end("it fell silent")
    stage.rpc.end("something else")
    assert stage.listener.reasons == ["it fell silent"]
    assert stage.rpc.gone == "it fell silent"
    assert await first == b'"yes"'
    with pytest.raises(ChannelClosedError) as caught:
        await second
    assert (caught.value.reason, caught.value.sent, caught.value.fatal) == ("it fell silent", True, True)
    with pytest.raises(ChannelClosedError) as refused:
        stage.rpc.request("tools/list", None, None)
    assert (refused.value.reason, refused.value.sent) == ("it fell silent", False)


@pytest.mark.parametrize(
    "half", [b'{"jsonrpc":"2.0","id":1,"result":', b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"mess']
)
async def test_half_an_answer_at_the_end_is_none(half: bytes) -> None:
    stage = Stage()
    request = stage.ask()
    assert stage.rpc.peer.receive(half) == []
    stage.rpc.end("it ended")
    with pytest.raises(ChannelClosedError, match="it ended"):
        await request


async def test_a_whole_answer_at_the_end_is_one() -> None:
    stage = Stage()
    request = stage.ask()
    assert stage.rpc.peer.receive(b'{"jsonrpc":"2.0","id":1,"result":"yes"}') == []
    stage.rpc.end("it ended")
    assert await request == b'"yes"'


def by_a_last_line(stage: Stage) -> None:
    stage.rpc.peer.receive(json.dumps(question(1)).encode())
    stage.rpc.end("it ended")


def by_another_stream(stage: Stage) -> None:
    stage.rpc.end("it ended")
    stage.hear(question(1))


@pytest.mark.parametrize("late", [by_a_last_line, by_another_stream])
async def test_nobody_is_asked_anything_when_it_has_ended(late: Callable[[Stage], None]) -> None:
    stage = Stage()
    late(stage)
    before = asyncio.all_tasks()
    await settled()
    left = [task for task in before | asyncio.all_tasks() if task is not asyncio.current_task()]
    undone = [task for task in left if not task.done()]
    for task in undone:
        task.cancel()
    await asyncio.gather(*undone, return_exceptions=True)
    assert undone == []


def unheard(error: Exception) -> Callable[[Stage, int], None]:
    return lambda stage, number: stage.rpc.fail(number, error)


def lost(stage: Stage, number: int) -> None:
    stage.rpc.end("it ended")


FAULT: Json = {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}


@pytest.mark.parametrize(
    "fail",
    [unheard(ValueError()), lost, lambda stage, number: stage.hear(FAULT)],
    ids=["failed", "lost", "said"],
)
@pytest.mark.parametrize("waits", [True, False])
async def test_a_failure_that_nobody_waits_for_is_no_news(
    fail: Callable[[Stage, int], None], waits: bool
) -> None:
    """Who waited may leave in the very moment in which it fails."""
    gc.freeze()  # the collection below is of what this test makes
    heard: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: heard.append(context))
    stage = Stage()

    async def asking() -> bytes:
        number, _, future = stage.rpc.request("tools/call", None, None)
        try:
            return await future
        finally:
            stage.rpc.forget(number)

    if waits:
        asked = asyncio.create_task(asking())
        await settled()
        fail(stage, 1)
        asked.cancel()
        await asyncio.wait({asked})
        assert asked.cancelled()
        del asked
    else:
        stage.ask()
        fail(stage, 1)
        stage.rpc.forget(1)
    gc.collect()
    assert heard == []
