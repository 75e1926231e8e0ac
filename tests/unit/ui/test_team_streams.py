"""What the open pages of a person are told, and that it says nothing of anybody else."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from helpers.sent_channel import SentChannel

from mcpzip.model.principal import Principal
from mcpzip.server.http.response import HttpResponse
from mcpzip.ui.team.limits import STREAMS_OF_BROWSER
from mcpzip.ui.team.sessions import PersonSession
from mcpzip.ui.team.streams import Streams

ANN, BOB = Principal("i", "ann", "ann"), Principal("i", "bob", "bob")


class Proxy:
    """One whose servers and calls are set. looks: how often somebody's servers were asked
    for. groups: those of whom they were asked for."""

    def __init__(self) -> None:
        self.servers: dict[str, list[str]] = {"ann": ["desk"], "bob": ["desk", "vault"]}
        self.tool_caller = SimpleNamespace(calls=[])
        self.views = SimpleNamespace(of=lambda _: SimpleNamespace(catalog=None))
        self.looked, self.looks, self.groups = asyncio.Event(), 0, set[frozenset[str]]()

    def status(self, principal: Principal) -> list[str]:
        self.looks += 1
        self.groups.add(principal.groups)
        self.looked.set()
        return list(self.servers[principal.subject])

    def note_call(self, who: Principal) -> None:
        change = len(self.tool_caller.calls) + 1
        self.tool_caller.calls.append(SimpleNamespace(change=change, caller=SimpleNamespace(person=who.id)))

    async def look(self, times: int = 4) -> None:
        """Until so many looks were begun: of the pages of two people, each had a whole one."""
        until = self.looks + times
        while self.looks < until:
            self.looked.clear()
            await self.looked.wait()


class Sessions:
    """Of the two, until they end."""

    def __init__(self) -> None:
        self.people = {each.name: each for each in (ANN, BOB)}

    def current(self, secret: str) -> PersonSession | None:
        who = self.people.get(secret)
        return None if who is None else PersonSession(secret, "t", who.name, who)


class Tab:
    def __init__(self, streams: Streams, who: Principal) -> None:
        self.channel = SentChannel()
        self.response = HttpResponse(self.channel)
        streams.tell(PersonSession(who.name, "t", who.name, who), self.response)

    @property
    def is_told(self) -> bool:
        return not self.response.ended

    @property
    def news(self) -> int:
        return self.channel.sent.count(b"changed")


class Place:
    def __init__(self) -> None:
        self.proxy, self.sessions = Proxy(), Sessions()
        self.streams = Streams(self.proxy, self.sessions, 0.001)  # type: ignore[arg-type]

    def tab(self, who: Principal) -> Tab:
        return Tab(self.streams, who)


@asynccontextmanager
async def place() -> AsyncIterator[Place]:
    made = Place()
    yield made
    await made.streams.close()


def of_bob(place: Place) -> None:
    place.proxy.note_call(BOB)


def of_bobs_servers(place: Place) -> None:
    place.proxy.servers["bob"].append("attic")


def of_bobs_groups(place: Place) -> None:
    place.sessions.people["bob"] = Principal("i", "bob", "bob", frozenset({"keepers"}))


@pytest.mark.parametrize("change", [of_bob, of_bobs_servers, of_bobs_groups])
async def test_a_person_is_told_what_they_see_and_nobody_else_is(change: Callable[[Place], Any]) -> None:
    async with place() as here:
        ann, bob = here.tab(ANN), here.tab(BOB)
        await here.proxy.look()
        assert (ann.news, bob.news) == (1, 1)
        change(here)
        await here.proxy.look()
        assert (ann.news, bob.news) == (1, 2)


async def test_each_browser_has_the_groups_of_its_own_sign_in() -> None:
    """The same person may have signed in with fewer groups in another browser."""
    async with place() as here:
        ann = Principal("i", "ann", "ann2", frozenset({"keepers"}))
        here.sessions.people["ann2"] = ann
        here.tab(ANN)
        here.tab(ann)
        await here.proxy.look()
        assert here.proxy.groups == {frozenset(), frozenset({"keepers"})}


async def test_nothing_is_asked_when_nobody_looks() -> None:
    async with place() as here:
        tab, other = here.tab(ANN), here.tab(ANN)
        await here.proxy.look()
        tab.response.client_left()
        await here.proxy.look()
        other.response.client_left()
        await asyncio.sleep(0)
        assert "changes" not in {task.get_name() for task in asyncio.all_tasks()}


async def test_a_stream_ends_with_its_sign_in() -> None:
    async with place() as here:
        ann, bob = here.tab(ANN), here.tab(BOB)
        await here.proxy.look()
        del here.sessions.people["ann"]
        await here.proxy.look()
        assert ann.response.ended
        assert not bob.response.ended


async def test_one_browser_takes_no_streams_from_others() -> None:
    async with place() as here:
        tabs = [here.tab(ANN) for _ in range(STREAMS_OF_BROWSER)]
        assert all(tab.is_told for tab in tabs)
        assert not here.tab(ANN).is_told
        assert here.tab(BOB).is_told
