"""Pins and allowed calls in a real store: two machines with one config, and a person at one of them."""

import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from helpers.changing_server import ChangingServer, tool
from helpers.command_answers import at_a_terminal
from helpers.driver import run_here, serving, until, write_config
from helpers.memory_store import KEY
from helpers.pinning_process import Process, config_of
from helpers.store_servers import SERVERS, StoreServer, running
from helpers.ui_client import page_of

from mcpzip.config import store_opening
from mcpzip.pins import shared_pins
from mcpzip.pins.review import Review
from mcpzip.policy.allowances import Allowance
from mcpzip.policy.opening import open_allowances
from mcpzip.store.opening import open_store
from mcpzip.store.thread import StoreThread

READ = {"name": "read", "inputSchema": {"type": "object"}}
WIDER = {"name": "read", "inputSchema": {"type": "object", "properties": {"bcc": {}}}}
WRITE = {"name": "write", "inputSchema": {"type": "object"}}
Start = Callable[[str], Process]


@pytest.fixture(scope="module", params=[*SERVERS])
def server(request: pytest.FixtureRequest) -> Iterator[StoreServer]:
    with running(SERVERS[request.param]()) as server:
        yield server


@pytest.fixture
def store(server: StoreServer) -> dict[str, Any]:
    """The `store` of a config, with a namespace of its own."""
    return {"url": server.url, "keys": [KEY], "namespace": f"test-{time.time_ns()}"}


@pytest.fixture
def start(store: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """A proxy on a machine, with times for tests."""
    begun: list[Process] = []
    monkeypatch.setattr(shared_pins, "USUAL", shared_pins.Times(poll=0.2))
    monkeypatch.setattr(
        store_opening,
        "store_thread",
        lambda config: StoreThread(lambda: open_store(config.url, config.namespace, 2.0)),
    )

    def another(machine: str) -> Process:
        folder = tmp_path / machine
        folder.mkdir(exist_ok=True)
        begun.append(Process(config_of(folder, "pin", store)))
        return begun[-1]

    yield another
    for each in begun:
        each.decisions.close()


def test_machines_share_pins_and_decisions(start: Start) -> None:
    machines = [start(name) for name in "abc"]
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda each: each.lists(READ), machines)) == [["read"]] * 3
    with Review(machines[0].config) as review:
        pins = review.pins_of("shop")
        assert pins is not None
        assert [event.what for event in pins.events] == ["first seen"], "it is pinned once"
    for each in machines:
        each.reload()
        assert each.lists(WIDER) == []
    began = time.monotonic()
    machines[0].approve_all()
    for each in machines:
        until(lambda each=each: each.reload() or each.tools() == ["read"])
    assert time.monotonic() - began < 5


def test_a_store_that_fails_closes_the_gate_until_it_is_back(start: Start, server: StoreServer) -> None:
    one = start("a")
    one.lists(READ)
    one.reload()
    server.kill()
    try:
        assert one.lists(READ, WRITE) == ["read"]
        assert "can't be written" in one.told[-1]
        two = start("b")
        assert two.lists(READ) == []
        assert two.reload() == []
        assert "has the pins, but" in two.told[-1]
        for each in (one, two):
            with open_allowances(each.config) as allowances:
                assert_refused(lambda: allowances.use("shop__read", "d", "x", time.time()))
    finally:
        server.start()
    for each, offered in ((one, ["read", "write"]), (two, ["read", "write"])):
        until(lambda each=each: each.decisions.outdated)
        assert each.reload() == ["shop"]
        assert each.lists(READ, WRITE) == offered


def assert_refused(work: Callable[[], object]) -> None:
    with pytest.raises(Exception, match="nothing counts as allowed"):
        work()


def test_a_store_that_does_not_answer_is_waited_for_once(start: Start, server: StoreServer) -> None:
    one = start("a")
    server.signal_all(signal.SIGSTOP)
    try:
        began = time.monotonic()
        one.decisions.load()
        assert one.decisions.held("shop").has_name("tool", "read")
        assert time.monotonic() - began < 1.5, "no request waits"
        assert one.lists(READ) == []
        began = time.monotonic()
        assert one.lists(READ) == []
        assert one.decisions.reload() == ([], [])
        assert time.monotonic() - began < 1.5, "it is known"
    finally:
        server.signal_all(signal.SIGCONT)
    until(lambda: one.reload() == ["shop"])
    assert one.lists(READ) == ["read"]


def test_what_is_allowed_once_is_taken_by_one_machine(start: Start) -> None:
    configs = [start(name).config for name in "abcd"]
    now = time.time()
    with open_allowances(configs[0]) as allowances:
        allowances.allow(Allowance("shop__pay", now + 60, now, "d", "", once=True))
        allowances.allow(Allowance("shop__read", now + 60, now, "d"))

    def use(number: int) -> tuple[bool, bool]:
        with open_allowances(configs[number]) as allowances:
            return allowances.use("shop__pay", "d", "x", now), allowances.use("shop__read", "d", "x", now)

    with ThreadPoolExecutor(4) as pool:
        used = list(pool.map(use, range(4)))
    assert sorted(used) == [(False, True)] * 3 + [(True, True)]


def reject_on_the_page(config: Path) -> None:
    """A person rejects the only held item."""
    with page_of(config) as page:
        page.sign_in()
        listed = page.get("/review").text
        assert "It can't be read" not in listed
        link = re.search(r'href="[^"]+?(/review/shop[?]item=[0-9a-f]+)">tool pay_bill', listed)
        assert link
        form = dict(re.findall(r'name="(item|held|approved)" value="([^"]*)"', page.get(link[1]).text))
        assert page.submit("/review/shop/reject", **form).status == 303
        assert "rejected" in page.get("/review").words


def test_two_processes_that_serve(store: dict[str, Any], tmp_path: Path) -> None:
    """What a person decides at one machine, the agents of both have; nothing is in files."""
    shop, folders = ChangingServer("shop", tmp_path / "shop"), [tmp_path / "a", tmp_path / "b"]
    shop.offers(tools=[tool("poke"), tool("pay_bill")])
    for folder in folders:
        folder.mkdir()
        write_config(folder, others={"shop": shop.config}, store=store)
    with serving(folders[0]) as one, serving(folders[1]) as other:
        for each in (one, other):
            each.finds("pay", "shop__pay_bill")
        shop.offers(tools=[tool("poke"), tool("pay_bill", inputSchema=WIDER["inputSchema"])])
        for each in (one, other):
            each.execute("shop__poke")
            each.finds("pay", "1 tool held back: mcpzip review shop")
        words = ("review", "--approve", "pay_bill", "--config", str(folders[1] / "config.json"))
        shown = at_a_terminal(words, lambda shown: None, TERM="dumb", COLUMNS="200")
        assert "Approved shop: tool pay_bill" in shown
        assert "Agents see it within seconds, on all machines." in shown
        for each in (one, other):
            each.finds("pay", "shop__pay_bill")
            assert "held back" not in each.search("pay")
        shop.offers(tools=[tool("poke"), tool("pay_bill", annotations={"readOnlyHint": True})])
        for each in (one, other):
            each.execute("shop__poke")
            each.finds("pay", "1 tool held back: mcpzip review shop")
        reject_on_the_page(folders[0] / "config.json")
        for each in (one, other):
            until(lambda each=each: "held back" not in each.search("pay"))
            assert "shop__pay_bill" not in each.search("pay")
    assert not any((folder / "pins").exists() for folder in folders)
    done = run_here("doctor", "--config", str(folders[0] / "config.json"))
    assert "Sign-ins, pins and allowed calls are in " in done.stdout.decode()
    assert KEY not in done.stdout.decode()
