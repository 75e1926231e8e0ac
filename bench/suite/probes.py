"""What is done to a subject in one turn, and what is noted.

The rule: a probe notes what it measured as soon as it has it, so that a subject which fails later keeps it.
"""

import statistics
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.agents import count, settle
from bench.client import Client
from bench.suite.figures import DIRECT, SERVERS, TOOLS
from bench.suite.place import Place, Setup
from bench.suite.subjects import BARE, RELAY, RUNNING, SDK, Subject

Note = Callable[[str, float], None]
"""Takes a quantity and its value, in seconds or bytes or as a count."""
MEGABYTE = 1_000_000
_SMALL = {"payload": "x" * 100}
_WINDOW = 64
_EACH = 1.5
"""Seconds after which no more samples of one kind are taken in a turn."""
_IDLE = 8.0
_SAVED = 4
"""Seconds without work after which a first start has saved its index: it waits for two."""
_AGENTS, _OF_EACH = 10, 8


@dataclass(frozen=True)
class Probe:
    """One kind of turn. setup: the upstreams; notes: the quantities that it notes; rounds: how many turns
    each subject gets; seconds: what a turn of a quick subject takes; patience: seconds from a spawn after
    which a subject has failed; primed: the folder is kept, and one start comes before the first turn."""

    group: str
    setup: Setup
    notes: tuple[str, ...]
    play: Callable[[Place, Note], None]
    rounds: int
    seconds: float = 1.0
    patience: float = 30.0
    primed: bool = False

    def takes(self, subject: Subject) -> bool:
        """Whether it is for ``subject``."""
        return bool(self.wanted(subject))

    def wanted(self, subject: Subject) -> tuple[str, ...]:
        """Of what it notes, that which ``subject`` can have."""
        return tuple(quantity for quantity in self.notes if _can(subject, quantity))


_CALLS = ("call-direct", "result", "both", "rate", "parallel")
_PASSED = ("initialize", "first-call", "agents-processes", "agents-memory", *_CALLS)
_ONLY = {
    BARE: ("initialize",),
    SDK: ("initialize", "memory", "idle"),
    DIRECT: _PASSED,
    RELAY: (*_PASSED, "memory", "idle", "processor"),
    RUNNING: ("initialize", "first-search", "first-call", "first-search-slow", "first-search-hung"),
}
"""What the subjects can have that can't have everything."""


def _can(subject: Subject, quantity: str) -> bool:
    if subject.key in _ONLY:
        return quantity in _ONLY[subject.key]
    return subject.finds or not quantity.startswith(("first-search", "search"))


def probes() -> list[Probe]:
    """Those of a run without growth."""
    quick = Setup(30, 3)
    return [
        catalog(TOOLS, SERVERS, rounds=5, seconds=5),
        catalog(10 * TOOLS, SERVERS, rounds=3, seconds=15),
        Probe("startup", quick, ("first-call",), first_call, 5, 1, primed=True),
        Probe(
            "startup",
            Setup(30, 3, wait=2.0),
            ("first-search-slow",),
            _first_search("slow"),
            3,
            3,
            primed=True,
        ),
        Probe(
            "startup",
            Setup(20, 2, hung=True),
            ("first-search-hung",),
            _first_search("hung"),
            3,
            1,
            10,
            primed=True,
        ),
        Probe("latency", quick, (*_CALLS, "processor"), latency, 6, 2),
        Probe("idle", Setup(), ("idle",), idle, 2, 12),
        Probe("agents", Setup(80, _OF_EACH), ("agents-processes", "agents-memory"), agents, 2, 5, 60),
    ]


def catalog(tools: int, servers: int, *, rounds: int, seconds: float) -> Probe:
    """Starts, searches, calls and memory with so many tools on so many upstreams."""
    notes = ("initialize-cold", "initialize", "searchable", "first-search", "search", "call", "memory")
    return Probe("catalog", Setup(tools, servers), notes, _catalog, rounds, seconds, max(60.0, tools / 500))


def _catalog(place: Place, note: Note) -> None:
    """A first start in an empty folder, and a second one."""
    subject, last = place.subject, place.each * place.setup.servers - 1
    if subject.key == BARE:
        begun = time.perf_counter()
        subprocess.run(subject.argv, check=True, env=place.env)
        note("initialize", time.perf_counter() - begun)
        return None
    if subject.finds:
        with place.running() as (client,):
            client.initialize()
            note("initialize-cold", client.elapsed())
            place.find(client, last)
            note("searchable", client.elapsed())
            if subject.key != RUNNING:
                settle(place.folder, _SAVED)
    with place.running() as (client,):
        client.initialize()
        note("initialize", client.elapsed())
        if subject.key in (DIRECT, SDK):
            return _memory(place, note) if subject.key == SDK else None
        if subject.finds:
            place.find(client, last // 2)
            note("first-search", client.elapsed())
        if subject.key == RUNNING:
            return None
        place.echo(client)
        if subject.finds:
            numbers = iter(range(0, last + 1, max(last // 50, 1)))
            note("search", _median(30, lambda: place.search(client, next(numbers))))
        small = place.params("echo", dict(_SMALL))
        note("call", _median(100, lambda: client.call(small)))
        _memory(place, note)
    return None


def _memory(place: Place, note: Note) -> None:
    settle(place.folder)
    note("memory", place.resident())


def _median(most: int, ask: Callable[[], object]) -> float:
    """The median of the seconds that ``ask`` takes, of up to ``most`` times in `_EACH` seconds."""
    taken: list[float] = []
    begun = time.perf_counter()
    while len(taken) < most and (now := time.perf_counter()) - begun < _EACH:
        ask()
        taken.append(time.perf_counter() - now)
    return statistics.median(taken)


def prime(place: Place) -> None:
    """A start in which a proxy can learn everything that it remembers."""
    with place.running() as (client,):
        client.initialize()
        if place.subject.finds:
            place.find(client, 0)
            settle(place.folder)


def first_call(place: Place, note: Note) -> None:
    """From spawn to the answer of the first call."""
    with place.running() as (client,):
        client.initialize()
        place.echo(client)
        note("first-call", client.elapsed())


def _first_search(kind: str) -> Callable[[Place, Note], None]:
    def first_search(place: Place, note: Note) -> None:
        """From spawn to the answer of the first search that finds a tool."""
        with place.running() as (client,):
            client.initialize()
            place.find(client, 1)
            note(f"first-search-{kind}", client.elapsed())

    return first_search


def latency(place: Place, note: Note) -> None:
    """Calls one at a time, and many in flight."""
    with place.running() as (client,):
        client.initialize()
        place.echo(client)
        small = place.params("echo", dict(_SMALL))
        _median(200, lambda: client.call(small))
        before, calls = place.busy(), client.number
        one = _median(400, lambda: client.call(small))
        note("call-direct", one)
        note("processor", _taken(before, place.busy()) / (client.number - calls))
        large = place.params("blob", {"bytes": MEGABYTE})
        client.call(large)
        note("result", _median(15, lambda: client.call(large)))
        both = place.params("echo", {"payload": "y" * MEGABYTE})
        note("both", _median(8, lambda: client.call(both)))
        # So many calls that a subject as slow as one at a time takes `_EACH` seconds.
        frames = _frames(client, small, max(_WINDOW, min(2000, int(_EACH / one))))
        note("rate", len(frames) / client.in_flight(frames, _WINDOW))
        slow = _frames(client, place.params("sleep", {"ms": 50}), _WINDOW)
        note("parallel", client.in_flight(slow, _WINDOW))


def _frames(client: Client, params: object, count: int) -> list[bytes]:
    return [client.frame("tools/call", params) for _ in range(count)]


def _taken(before: dict[int, float], after: dict[int, float]) -> float:
    """Processor seconds between two looks at all threads."""
    return sum(seconds - before.get(thread, 0.0) for thread, seconds in after.items())


def idle(place: Place, note: Note) -> None:
    """Processor time of a proxy that has been used and has nothing to do."""
    with place.running() as (client,):
        client.initialize()
        if place.subject.finds:
            place.find(client, 0)
        settle(place.folder)
        before = place.busy()
        time.sleep(_IDLE)
        note("idle", _taken(before, place.busy()) / _IDLE)


def agents(place: Place, note: Note) -> None:
    """Ten agents, each of which has called every server once."""
    subject = place.subject
    one_each = subject.key in (DIRECT, RELAY)
    with place.running(_AGENTS * (_OF_EACH if one_each else 1)) as clients:
        for client in clients:
            client.initialize()
        for client in clients:
            _call_all(place, client, ["up0"] if one_each else [f"up{number}" for number in range(_OF_EACH)])
        settle(place.folder)
        found = count(place.folder)
        note("agents-processes", found.all_processes)
        note("agents-memory", found.all_memory)


def _call_all(place: Place, client: Client, servers: Iterable[str]) -> None:
    place.echo(client)
    for server in servers:
        client.call(place.subject.call(server, "echo", {"payload": ""}, alone=place.alone))
