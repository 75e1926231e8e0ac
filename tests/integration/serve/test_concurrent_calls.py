"""Many calls at once, through one client: each has its own answer, and one that hangs holds up nobody.

The rules of the story: 64 calls are sent without waiting, with calls among them that hang; every good one is
answered, whatever the order; then the hanging ones are cancelled, here and upstream, and nobody hears of them
again.
"""

import json
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import pytest
from helpers.driver import (
    INITIALIZE,
    LEGACY,
    MODERN,
    PATIENCE,
    STAMP,
    Answer,
    Json,
    encoded,
    serving,
    until,
    write_config,
)
from helpers.raw_client import data_of_events, listening_at
from helpers.raw_client import serving as served
from mcpzip_fakes.launch import FakeServer

Fake = Callable[..., FakeServer]

CALLS = 64
CANCELLED = -32800
SPEEDS = 6
"""Each server has so many tools that answer, some later than others."""
EIGHT = ("stdio",) * 4 + ("http",) * 3 + ("sse",)


class Downstream(Protocol):
    """What the tests need of a client."""

    def send_call(self, tool: str, arguments: Json) -> int: ...

    def answer(self, number: object) -> Answer: ...

    def cancel(self, number: int) -> None:
        """Says that the answer to this call is no longer wanted."""
        ...

    def status(self) -> str: ...

    def heard_of(self, number: int) -> int:
        """How many answers to this call there were until now."""
        ...


class OverStdio:
    """`driver.Client` as a `Downstream`."""

    def __init__(self, folder: Path, era: str, *fakes: FakeServer) -> None:
        self._folder, self._era, self._fakes = folder, era, fakes

    @contextmanager
    def open(self) -> Iterator[Downstream]:
        with serving(self._folder, *self._fakes, begin=False) as client:
            self._client = client.begin() if self._era == "legacy" else client.begin_modern()
            yield self

    def send_call(self, tool: str, arguments: Json) -> int:
        return self._client.send_call(tool, arguments)

    def answer(self, number: object) -> Answer:
        return self._client.answer(number)

    def cancel(self, number: int) -> None:
        self._client.tell("notifications/cancelled", {"requestId": number, "reason": "changed my mind"})

    def status(self) -> str:
        return self._client.status()

    def heard_of(self, number: int) -> int:
        return sum(json.loads(line).get("id") == number for line in list(self._client.heard))


class OverHttp:
    """The same over Streamable HTTP: each call on a connection of its own."""

    def __init__(self, folder: Path, era: str, *fakes: FakeServer) -> None:
        self._config, self._modern = write_config(folder, *fakes), era == "modern"
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "Mcp-Protocol-Version": MODERN if self._modern else LEGACY,
        }
        self._numbers = count(1)
        self._sockets: dict[int, HTTPConnection] = {}
        self._heard: list[bytes] = []
        self._news = threading.Condition()

    @contextmanager
    def open(self) -> Iterator[Downstream]:
        with served(self._config, "--http", "127.0.0.1:0") as process:
            self._place = urlsplit(until(lambda: listening_at(self._config, process)))
            if not self._modern:
                self._ask("initialize", INITIALIZE)
                self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})
            yield self

    def send_call(self, tool: str, arguments: Json) -> int:
        number = next(self._numbers)
        call = {"name": "execute_tool", "arguments": {"name": tool, "arguments": arguments}}
        threading.Thread(target=self._post, args=(number, "tools/call", call), daemon=True).start()
        with self._news:
            assert self._news.wait_for(lambda: number in self._sockets, PATIENCE)
        return number

    def answer(self, number: object) -> Answer:
        with self._news:
            assert self._news.wait_for(lambda: self._of(number), PATIENCE), f"no answer to {number}"
            return Answer(self._of(number)[0])

    def cancel(self, number: int) -> None:
        if self._modern:  # closing the stream says so
            self._sockets[number].sock.shutdown(socket.SHUT_RDWR)
        else:
            params = {"requestId": number, "reason": "changed my mind"}
            self._say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    def status(self) -> str:
        return self.answer(self.send_call("proxy_status", {})).text

    def heard_of(self, number: int) -> int:
        with self._news:
            return len(self._of(number))

    def _of(self, number: object) -> list[bytes]:
        # A stream of the legacy era can't end without an answer: the SDK says that there is none.
        messages = [(line, json.loads(line)) for line in self._heard]
        return [
            line
            for line, message in messages
            if message.get("id") == number and message.get("error", {}).get("code") != CANCELLED
        ]

    def _ask(self, method: str, params: Json) -> Answer:
        number = next(self._numbers)
        self._post(number, method, params)
        return self.answer(number)

    def _post(self, number: int, method: str, params: Json) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self._say(message, number)

    def _say(self, message: Json, number: int = 0) -> None:
        headers = dict(self._headers)
        if self._modern:
            message = {**message, "params": {**message["params"], "_meta": STAMP}}
            headers |= {"Mcp-Method": message["method"], "Mcp-Name": message["params"].get("name", "")}
        connection = HTTPConnection(self._place.hostname or "", self._place.port, timeout=PATIENCE)
        try:
            connection.request("POST", self._place.path, encoded(message), headers)
            with self._news:
                self._sockets[number] = connection
                self._news.notify_all()
            response = connection.getresponse()
            body = response.read()
        except (OSError, HTTPException):
            return  # it was cancelled
        finally:
            connection.close()
        if session := response.headers.get("Mcp-Session-Id"):
            self._headers["Mcp-Session-Id"] = session
        streams = response.headers.get("Content-Type", "").startswith("text/event-stream")
        with self._news:
            self._heard += data_of_events(body) if streams else [body] * bool(body)
            self._news.notify_all()


def opened(over: str, folder: Path, era: str, *fakes: FakeServer) -> AbstractContextManager[Downstream]:
    """A client of ``mcpzip serve`` with these fakes behind it."""
    kinds = {"stdio": OverStdio, "http": OverHttp}
    return kinds[over](folder, era, *fakes).open()


def story(name: str) -> list[Json]:
    """The tools of one server: they answer sooner or later with what they were asked, and one never does."""
    said = {"text": f"{name} {{n}} {{text}}", "fill": True}
    quick = [{"name": f"t{n}", "result": {**said, "delay": 0.02 * n}} for n in range(SPEEDS)]
    return [*quick, {"name": "hang", "result": {"delay": 600}}]


def fakes_of(fake_mcp: Fake, transports: tuple[str, ...], era: str) -> list[FakeServer]:
    return [
        fake_mcp(
            name=f"shop{n}",
            transport=transport,
            era="legacy" if transport == "sse" else era,
            tools=story(f"shop{n}"),
        )
        for n, transport in enumerate(transports)
    ]


def known(client: Downstream, fakes: list[FakeServer]) -> None:
    """Once all tools of all servers are."""
    until(lambda: client.status().count(f"{SPEEDS + 1} tools, listed") == len(fakes))


def hung(fake: FakeServer) -> dict[int, object]:
    """The calls that hang there: which, and the id the server knows it by."""
    lines = [line for line in fake.record.received("tools/call") if line.params["name"] == "hang"]
    return {line.params["arguments"]["place"]: line.message["id"] for line in lines}


@pytest.mark.parametrize(
    ("transports", "upstream_era", "downstream", "era"),
    [
        pytest.param(("stdio",), "legacy", "stdio", "legacy", id="one stdio, legacy"),
        pytest.param(("stdio",), "modern", "http", "modern", id="one stdio, modern, over http"),
        pytest.param(("http",), "legacy", "stdio", "modern", id="one http, legacy behind modern"),
        pytest.param(("http",), "modern", "http", "legacy", id="one http, modern behind legacy, over http"),
        pytest.param(("sse",), "legacy", "stdio", "legacy", id="one sse"),
        pytest.param(EIGHT, "legacy", "stdio", "legacy", id="eight, legacy"),
        pytest.param(EIGHT, "legacy", "http", "legacy", id="eight, legacy, over http"),
        pytest.param(EIGHT, "modern", "stdio", "modern", id="eight, modern"),
        pytest.param(EIGHT, "modern", "http", "modern", id="eight, modern, over http"),
    ],
)
def test_64_calls_in_flight_and_some_that_hang(
    fake_mcp: Fake,
    tmp_path: Path,
    transports: tuple[str, ...],
    upstream_era: str,
    downstream: str,
    era: str,
) -> None:
    fakes = fakes_of(fake_mcp, transports, upstream_era)
    dice = random.Random(len(transports))
    wanted = [(fakes[n % len(fakes)].name, n % SPEEDS, {"n": n, "text": "ü" * n}) for n in range(CALLS)]
    dice.shuffle(wanted)
    with opened(downstream, tmp_path, era, *fakes) as client:
        known(client, fakes)
        # One hangs before all others, and one of each server somewhere among them
        hanging = [(fakes[0], client.send_call("shop0__hang", {"place": -1}), -1)]
        places = dict(zip(dice.sample(range(CALLS), len(fakes)), fakes, strict=True))
        numbers = []
        for place, (server, speed, arguments) in enumerate(wanted):
            if fake := places.get(place):
                hanging.append((fake, client.send_call(f"{fake.name}__hang", {"place": place}), place))
            numbers.append(client.send_call(f"{server}__t{speed}", arguments))

        for number, (server, _, arguments) in zip(numbers, wanted, strict=True):
            assert client.answer(number).text == f"{server} {arguments['n']} {arguments['text']}"

        # The hanging ones arrived, and nobody has answered them
        for fake in fakes:
            asked = {place for of, _, place in hanging if of is fake}
            until(lambda fake=fake, asked=asked: hung(fake).keys() == asked)
        assert [client.heard_of(number) for _, number, _ in hanging] == [0] * len(hanging)

        # One is cancelled: that one upstream, and no other
        fake, number, place = hanging[-1]
        client.cancel(number)
        [cancelled] = until(lambda: fake.record.events("cancelled"))
        assert cancelled.detail["id"] == hung(fake)[place]
        assert sum(len(each.record.events("cancelled")) for each in fakes) == 1

        # The others too; and the calls after that are as good as the first
        for _, number, _ in hanging[:-1]:
            client.cancel(number)
        until(lambda: sum(len(each.record.events("cancelled")) for each in fakes) == len(hanging))
        for server in fakes:
            after = client.send_call(f"{server.name}__t0", {"n": -1, "text": "after"})
            assert client.answer(after).text == f"{server.name} -1 after"
        assert [client.heard_of(number) for _, number, _ in hanging] == [0] * len(hanging)
        assert [client.heard_of(number) for number in numbers] == [1] * CALLS
    for each in fakes:  # nothing ran twice, or elsewhere
        mine = sorted(arguments["n"] for server, _, arguments in wanted if server == each.name)
        ran = [call["arguments"]["n"] for call in each.record.calls() if call["name"] != "hang"]
        assert sorted(ran) == [-1, *mine]
