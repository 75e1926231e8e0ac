"""Which connections clients use while servers ask, roots change, and clients come and go."""

import asyncio
import json
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcpzip.config import load
from mcpzip.proxy import bindings as module
from mcpzip.proxy.bindings import Bindings
from mcpzip.proxy.client_binding import ClientBinding
from mcpzip.proxy.current_config import CurrentConfig
from mcpzip.proxy.exchange import Client
from mcpzip.proxy.first_calls import FirstCalls
from mcpzip.proxy.shared_binding import RootsBinding, SharedBinding
from mcpzip.proxy.sharing import Sharing
from mcpzip.wire import Era, JsonRpcError, RpcError

SERVERS = ("up", "down")
QUESTIONS = {"sampling": "sampling/createMessage", "roots": "roots/list"}


class Pool:
    """What `Bindings` tells the pool."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Hashable]] = []
        self.outdated: list[tuple[str, Hashable | None]] = []
        self.forgotten: list[Hashable] = []

    async def notify(self, server: str, binding: ClientBinding, method: str, params: bytes | None) -> None:
        await asyncio.sleep(0)
        self.told.append((server, binding.key))

    def outdate(self, server: str, binding: ClientBinding | None) -> None:
        self.outdated.append((server, None if binding is None else binding.key))

    async def forget(self, binding: ClientBinding) -> None:
        self.forgotten.append(binding.key)


class Person:
    """A client with roots of one folder, or none. may_answer: it waits with its answers until this is
    set; waits: set while it does.
    """

    def __init__(self, capabilities: dict[str, Any], folder: str) -> None:
        self.capabilities, self.folder, self.asked = capabilities, folder, 0
        self.may_answer: asyncio.Event | None = None
        self.waits = asyncio.Event()
        text = json.dumps(capabilities).encode()
        self.client = Client(Era.LEGACY, text, request=self._request)

    async def _request(self, method: str, params: bytes | None) -> bytes:
        assert "roots" in self.capabilities, "a client without roots was asked for them"
        self.asked += 1
        await asyncio.sleep(0)
        if self.may_answer is not None:
            self.waits.set()
            await self.may_answer.wait()
        if self.folder == "refuses":
            raise JsonRpcError(RpcError(-32603, "no"))
        return self.roots

    @property
    def roots(self) -> bytes:
        return json.dumps({"roots": [{"uri": f"file:///{self.folder}"}]}).encode()

    def would(self, server_asked: set[str]) -> Any:
        """What decides with whom it uses a server that asked this."""
        others = {key: self.capabilities[key] for key in self.capabilities if key != "roots"}
        if "roots" not in server_asked:
            return others
        return others, self.capabilities.get("roots"), self.folder if "roots" in self.capabilities else ""


class Stage:
    def __init__(self, folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({"mcpServers": {name: {"command": name} for name in SERVERS}}))
        sharing = Sharing(CurrentConfig(load(path, {})))
        sharing._asked = {}
        sharing._saving.want = lambda after: None  # type: ignore[method-assign]
        self.pool = Pool()
        self.bindings = Bindings(self.pool, sharing, FirstCalls(sharing.current))  # type: ignore[arg-type]
        self.people: list[Person] = []
        self.asked: dict[str, set[str]] = {name: set() for name in SERVERS}

    async def come(self, person: Person) -> Person:
        self.people.append(person)
        return person

    async def use(self, person: Person, server: str) -> ClientBinding:
        binding = await self.bindings.to(person.client, server)
        if isinstance(binding, RootsBinding):
            assert binding.roots.result == person.roots
        return binding

    async def change(self, person: Person, folder: str) -> None:
        person.folder = folder
        await self.bindings.roots_changed(person.client)

    def ask(self, server: str, capability: str) -> None:
        self.asked[server].add(capability)
        self.bindings.asked(server, QUESTIONS[capability], None)

    async def leave(self, person: Person) -> None:
        self.people.remove(person)
        await self.bindings.remove_client(person.client)

    def check(self) -> None:
        bindings = self.bindings
        by_client = {person.client: person for person in self.people}
        assert bindings._used.keys() | bindings._of.keys() | bindings._roots._asked.keys() <= by_client.keys()
        for shared in bindings._shared.values():
            for server, asked in self.asked.items():
                members = [by_client[client] for client in shared.members(server)]
                for person in members:
                    assert bindings._used[person.client][server] is shared
                    assert person.would(asked) == members[0].would(asked)
                    assert not person.capabilities.keys() & asked - {"roots"}
                    assert person.client.log_level is None
                    if isinstance(shared, RootsBinding):
                        assert shared.roots.result == person.roots
                    elif "roots" in asked:
                        assert "roots" not in person.capabilities
                        assert b"roots" not in shared.capabilities
        for client, used in bindings._used.items():
            assert all(client in shared.members(server) for server, shared in used.items())


FOLDERS = st.sampled_from(["a", "b", "refuses"])
CAPABILITIES = (
    {"roots": {"listChanged": True}},
    {"roots": {}},
    {},
    {"sampling": {}, "roots": {}},
    {"sampling": {}},
)
PEOPLE = st.builds(Person, st.sampled_from(CAPABILITIES), FOLDERS)
STEPS = st.lists(
    st.tuples(st.just("come"), PEOPLE, st.none())
    | st.tuples(st.just("use"), st.integers(0, 9), st.sampled_from(SERVERS))
    | st.tuples(st.just("ask"), st.sampled_from(SERVERS), st.sampled_from([*QUESTIONS]))
    | st.tuples(st.just("change"), st.integers(0, 9), FOLDERS)
    | st.tuples(st.just("level"), st.integers(0, 9), st.none())
    | st.tuples(st.just("leave"), st.integers(0, 9), st.none()),
    max_size=30,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.lists(PEOPLE, min_size=1, max_size=4), STEPS, st.booleans(), st.booleans())
def test_only_clients_with_equal_roots_use_a_connection_on_which_they_matter(
    tmp_path: Path, people: list[Person], steps: list[tuple[str, Any, Any]], at_once: bool, begun: bool
) -> None:
    """at_once: no step waits until the one before is done. begun: whether all use a server already that asks
    for roots.
    """

    async def play() -> None:
        stage, running = Stage(tmp_path), set[asyncio.Task[Any]]()
        for person in people:
            await stage.come(person)
        if begun:
            stage.ask("up", "roots")
            await asyncio.gather(*(stage.use(person, "up") for person in people))
        for verb, what, more in steps:
            if verb == "come":
                await stage.come(what)
                continue
            if verb == "ask":
                stage.ask(what, more)
                continue
            if not stage.people:
                continue
            person = stage.people[what % len(stage.people)]
            if verb == "level":
                person.client.log_level = "error"
                stage.bindings.reconsider(person.client)
            elif verb == "leave":
                await asyncio.gather(*running)  # what a client has under way ends before it leaves
                await stage.leave(person)
            else:
                work = stage.use(person, more) if verb == "use" else stage.change(person, more)
                running.add(asyncio.create_task(work))
                if not at_once:
                    await asyncio.gather(*running)
                    stage.check()
        await asyncio.gather(*running)
        for person in stage.people:
            for server in SERVERS:
                await stage.use(person, server)
        stage.check()
        for person in [*stage.people]:
            await stage.leave(person)
        stage.check()
        assert len(stage.bindings._shared) <= module.SHARED_UNUSED
        await stage.bindings.close()

    asyncio.run(play())


HAS = {"roots": {"listChanged": True}}


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.ask("up", "roots")
    return stage


async def test_a_client_is_asked_once_for_all_servers_and_calls(stage: Stage) -> None:
    stage.ask("down", "roots")
    one = await stage.come(Person(HAS, "a"))
    used = await asyncio.gather(*(stage.use(one, server) for server in SERVERS * 3))
    assert len(set(used)) == one.asked == 1


async def test_a_client_is_asked_only_when_it_uses_a_server_that_wants_to_know(stage: Stage) -> None:
    one = await stage.come(Person(HAS, "a"))
    await stage.use(one, "down")
    await stage.change(one, "b")
    assert one.asked == 0
    assert stage.bindings.for_listing(one.client, "up") is None
    assert stage.bindings.for_listing(one.client, "down") is await stage.use(one, "down")
    assert one.asked == 0
    await stage.use(one, "up")
    assert one.asked == 1
    assert stage.bindings.for_listing(one.client, "up") is None  # others may have other roots


async def test_who_lists_for_others_uses_nothing(stage: Stage) -> None:
    one = await stage.come(Person({"sampling": {}}, "a"))
    shared = stage.bindings.for_listing(one.client, "down")
    assert isinstance(shared, SharedBinding)
    assert not shared.is_used
    stage.ask("down", "sampling")
    assert stage.bindings.for_listing(one.client, "down") is None
    plain = await stage.come(Person({}, ""))
    unshared = stage.bindings.for_listing(plain.client, "up")
    assert unshared is not None
    assert unshared.key is None
    assert not stage.bindings.own(one.client)


async def test_servers_are_told_that_roots_have_changed_where_they_stay(stage: Stage) -> None:
    stage.ask("down", "roots")
    one = await stage.come(Person(HAS, "a"))
    used = [await stage.use(one, server) for server in SERVERS]
    await stage.change(one, "b")
    assert [await stage.use(one, server) for server in SERVERS] == used
    assert sorted(stage.pool.told) == sorted((server, used[0].key) for server in SERVERS)


async def test_one_of_several_with_equal_roots_leaves_the_others_theirs(stage: Stage) -> None:
    people = [await stage.come(Person(HAS, "a")) for _ in range(2)]
    used = [await stage.use(person, "up") for person in people]
    assert used[0] is used[1]
    await stage.change(people[0], "b")
    assert stage.pool.told == []
    assert await stage.use(people[1], "up") is used[1]
    moved = await stage.use(people[0], "up")
    assert moved is not used[0]
    await stage.change(people[1], "b")
    assert await stage.use(people[1], "up") is moved


async def test_one_that_leaves_while_it_is_asked_leaves_nothing(stage: Stage) -> None:
    one = await stage.come(Person(HAS, "a"))
    await stage.use(one, "up")
    one.may_answer = asyncio.Event()
    changing = asyncio.create_task(stage.change(one, "b"))
    await one.waits.wait()
    await stage.leave(one)
    one.may_answer.set()
    await changing
    stage.check()


async def test_an_answer_from_before_a_change_is_not_used(stage: Stage) -> None:
    one = await stage.come(Person(HAS, "a"))
    one.may_answer = asyncio.Event()
    using = asyncio.create_task(stage.use(one, "up"))
    await one.waits.wait()
    await stage.change(one, "b")
    one.may_answer.set()
    await using  # which compares what is told with "b"
    assert one.asked == 2


async def test_what_nobody_will_use_again_is_outdated(stage: Stage) -> None:
    one, other = await stage.come(Person(HAS, "a")), await stage.come(Person({}, ""))
    assert (await stage.use(other, "down")).key is None
    shared = await stage.use(one, "down")
    assert stage.pool.outdated == [("down", None)]  # the connection of clients none of whom has roots
    assert await stage.use(other, "down") is shared
    stage.ask("down", "sampling")
    assert len(stage.pool.outdated) == 1
    stage.ask("down", "roots")
    assert stage.pool.outdated[1:] == [("down", shared.key)]
    stage.ask("down", "roots")
    assert len(stage.pool.outdated) == 2


async def test_servers_are_told_of_roots_if_a_client_that_uses_them_has_some(stage: Stage) -> None:
    able, has = (
        await stage.come(Person({"sampling": {}}, "")),
        await stage.come(Person({"sampling": {}, **HAS}, "a")),
    )
    alone = await stage.use(able, "down")
    assert alone.capabilities == b'{"sampling":{}}'
    shared = await stage.use(has, "down")
    assert shared.capabilities == b'{"sampling":{},"roots":{"listChanged":true}}'
    assert stage.pool.outdated == [("down", alone.key), ("down", None)]
    assert await stage.use(able, "down") is shared
    await stage.leave(has)
    assert await stage.use(able, "down") is shared
    await stage.leave(able)
    again = await stage.come(Person({"sampling": {}}, ""))
    assert (await stage.use(again, "down")).capabilities == b'{"sampling":{}}'


async def test_a_few_connections_that_nobody_uses_are_kept(stage: Stage) -> None:
    for number in range(module.SHARED_UNUSED + 3):
        person = await stage.come(Person(HAS, str(number)))
        await stage.use(person, "up")
        await stage.leave(person)
    assert len(stage.bindings._shared) == module.SHARED_UNUSED
    assert len(stage.pool.forgotten) == 3


async def test_there_are_so_many_groups_and_no_more(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARED", 2)
    used = [await stage.use(await stage.come(Person(HAS, name)), "up") for name in "abc"]
    assert [isinstance(each, SharedBinding) for each in used] == [True, True, False]
