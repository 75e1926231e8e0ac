"""Pins in a store that processes share: who wins, what counts while the store is away, and what is noticed of
somebody who writes to it.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from helpers.driver import until
from helpers.memory_store import Flaky

from mcpzip.model import limits
from mcpzip.model.surface import Item
from mcpzip.pins.digests import item_digest
from mcpzip.pins.record import Event, Hold, Pin, ServerPins
from mcpzip.pins.shared_pins import CHANNEL, PARTS, TABLE, SharedPins, Times
from mcpzip.pins.shared_record import EARLIER, name_of
from mcpzip.pins.store import PinFile, PinsUnusableError, text_of
from mcpzip.store.memory_backend import Memory
from mcpzip.store.seen import SeenCounters
from mcpzip.store.store import Store
from mcpzip.store.thread import StoreThread
from mcpzip.system.sealing import KeyRing

NEW, OLD = b"n" * 32, b"o" * 32
TIMES = Times(poll=0.02)
BODY, OTHER_BODY = b'{"name":"read"}', b'{"name":"read","description":"more"}'
DIGEST, OTHER = (item_digest(Item("tool", "read", body)) for body in (BODY, OTHER_BODY))
NAME = name_of("shop")
Make = Callable[..., SharedPins]


def some(at: float = 1.0, digest: bytes = DIGEST) -> ServerPins:
    return ServerPins(at, ("tool",), {"tool read": Pin(digest, b"raw", at)})


def held(digest: bytes = DIGEST, *, rejected: bool = False) -> ServerPins:
    return ServerPins(1.0, ("tool",), {}, {"tool read": Hold(digest, b"raw", 1.0, ("why",), rejected)})


@pytest.fixture
def backend() -> Flaky:
    return Flaky(Memory())


@pytest.fixture
def make(backend: Flaky, tmp_path: Path) -> Iterator[Make]:
    """The pins as one more process on a machine has them."""
    made: list[SharedPins] = []

    def another(
        machine: str = "a", *keys: bytes, namespace: str = "team", times: Times = TIMES
    ) -> SharedPins:
        folder = tmp_path / machine
        own = PinFile(str(folder / "config.json"))
        seen = SeenCounters(str(folder / "cache" / "seen.json"), "memory", namespace)
        thread = StoreThread(lambda: Store(backend, deadline=2.0))
        ring = KeyRing(keys or (NEW,))
        made.append(SharedPins(thread, lambda: ring, namespace, "memory", own, seen, times))
        return made[-1]

    yield another
    for each in made:
        each.close()


def of(pins: SharedPins, server: str = "shop") -> ServerPins | None:
    pins.wait([server])
    return pins.load().of(server)


def write(pins: SharedPins, to: ServerPins, server: str = "shop") -> None:
    pins.change(server, lambda known: (to, {DIGEST: BODY}))


def test_what_one_machine_writes_all_read(make: Make) -> None:
    one, other = make("a"), make("b")
    assert of(one) is of(other) is None
    write(one, some())
    until(lambda: other.load().of("shop") == some())
    assert one.load().of("shop") == some()
    assert text_of(other.texts("shop"), "tool read", DIGEST) == BODY
    version = one.version()
    other.change("shop", lambda known: (some(2.0), {}))
    until(lambda: one.load().of("shop") == some(2.0))
    assert one.version() != version
    assert text_of(one.texts("shop"), "tool read", DIGEST) == BODY
    assert one.existed()


def test_who_writes_and_ends_at_once_is_heard(make: Make) -> None:
    """A command that a person runs does nothing else."""
    other, command = make("b", times=Times(poll=600)), make("a")
    assert of(other) is None
    until(lambda: other._thread.call(lambda: subscribers(other)))
    write(command, some())
    command.close()
    until(lambda: other.load().of("shop") == some())


async def subscribers(pins: SharedPins) -> int:
    backend = pins._thread.store._backend
    assert isinstance(backend, Flaky)
    return len(backend.memory.channels[CHANNEL])


def test_nothing_of_it_is_readable_in_the_store(make: Make, backend: Flaky) -> None:
    write(make(), some())
    there = b"".join(value.data for value in backend.memory.values.values())
    assert not any(text in there for text in (b"read", b"shop", b"first_seen", DIGEST.hex().encode()))


def test_what_was_not_read_yet_is_an_error_and_nobody_waits_for_it(make: Make, backend: Flaky) -> None:
    write(make(), some())
    pins, asked = make("b"), backend.asked
    with pytest.raises(PinsUnusableError, match="was not read yet") as caught:
        pins.load().of("shop")
    assert caught.value.is_pending
    assert backend.asked == asked
    pins.begin(["shop"])
    until(lambda: "shop" in pins.load().servers)


def test_two_who_see_a_server_first_pin_once(make: Make) -> None:
    pins = [make(str(number)) for number in range(4)]
    go = threading.Barrier(len(pins))
    first: list[ServerPins] = []

    def see(number: int) -> None:
        def decide(known: ServerPins | None) -> tuple[ServerPins, dict[bytes, bytes]] | None:
            if known is not None:
                return None
            return some(float(number)), {}

        pins[number].wait(["shop"])
        go.wait()
        pins[number].change("shop", decide)
        found = pins[number].load().of("shop")
        assert found is not None
        first.append(found)

    threads = [threading.Thread(target=see, args=(number,)) for number in range(len(pins))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert first == [first[0]] * 4


def test_changes_at_once_lose_nothing(make: Make) -> None:
    pins = [make(str(number)) for number in range(3)]

    def add(number: int) -> None:
        for turn in range(4):
            key = f"tool {number}-{turn}"

            def decide(known: ServerPins | None, key: str = key) -> tuple[ServerPins, dict[bytes, bytes]]:
                before = {} if known is None else known.pins
                return ServerPins(1.0, ("tool",), {**before, key: Pin(DIGEST, b"", 1.0)}), {}

            pins[number].change("shop", decide)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(len(pins))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = of(make("last"))
    assert found is not None
    assert len(found.pins) == 12


# ---- the store fails


def test_a_store_that_is_away_at_first_is_an_error_until_it_is_back(make: Make, backend: Flaky) -> None:
    write(make(), some())
    backend.away = True
    pins = make("b")
    pins.wait(["shop"])
    with pytest.raises(PinsUnusableError, match="memory has the pins, but it can't be used") as caught:
        pins.load().of("shop")
    assert not caught.value.is_pending
    assert not caught.value.repairable
    with pytest.raises(PinsUnusableError):
        pins.change("shop", lambda known: pytest.fail("nothing is decided"))
    version = pins.version()
    backend.away = False
    until(lambda: pins.load().servers == {"shop": some()})
    assert pins.version() != version


@pytest.mark.parametrize("how", ["away", "is_full"])
def test_what_was_read_counts_while_the_store_fails(make: Make, backend: Flaky, how: str) -> None:
    pins = make()
    write(pins, some())
    version = pins.version()
    setattr(backend, how, True)
    with pytest.raises(OSError, match=r"it can't be used|its memory is full"):
        write(pins, some(2.0))
    assert pins.load().of("shop") == some()
    asked = backend.asked
    until(lambda: backend.asked > asked + 6)  # it is looked at again and again
    assert pins.version() == version, "nothing has to be decided again yet"
    setattr(backend, how, False)
    until(lambda: pins.version() != version)
    assert pins.load().of("shop") == some()


# ---- somebody writes to the store


def test_an_earlier_value_that_somebody_puts_back(make: Make, backend: Flaky) -> None:
    """Case 26: rolled back."""
    pins = make()
    write(pins, some())
    earlier = backend.values(TABLE)[NAME].data
    pins.change("shop", lambda known: (held(), {}))
    backend.put(TABLE, NAME, earlier)
    for each in (pins, make("a")):  # also a process that is started after that
        until(lambda each=each: raises(each, "is an earlier one than was seen here"))
        with pytest.raises(PinsUnusableError):
            each.change("shop", lambda known: pytest.fail("nothing is decided"))
    assert backend.values(TABLE)[NAME].data == earlier, "it is left as it is"


def raises(pins: SharedPins, why: str) -> bool:
    try:
        of(pins)
    except PinsUnusableError as error:
        return why in str(error)
    return False


@pytest.mark.parametrize(
    ("what", "why"),
    [
        ("deleted", "memory has lost its pins of shop"),
        ("another server's", "was changed, or is for something else"),
        ("another namespace's", "was changed, or is for something else"),
        ("another table's", "was changed, or is for something else"),
        ("changed", "was changed, or is for something else"),
        ("garbage", "none"),
        ("with another key", "sealed with a key that isn't in the ring"),
        ("another with the same counter", "is another one than was seen here"),
    ],
)
def test_what_somebody_put_there_is_not_used(
    make: Make, backend: Flaky, monkeypatch: pytest.MonkeyPatch, what: str, why: str
) -> None:
    pins = make()
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000)
    write(pins, some())
    good = backend.values(TABLE)[NAME].data
    data: bytes | None = None
    if what == "another server's":
        write(pins, some(), "other")
        data = backend.values(TABLE)[name_of("other")].data
    elif what == "another table's":
        data = next(iter(backend.values(PARTS).values())).data
    elif what == "changed":
        data = good[:-3] + (b"AAA" if good[-3:] != b"AAA" else b"BBB")
    elif what == "garbage":
        data = b"\xff{"
    elif what != "deleted":
        backend.put(TABLE, NAME, None)
        namespace = "other" if what == "another namespace's" else "team"
        keys = [OLD] if what == "with another key" else []
        write(make("c", *keys, namespace=namespace), some(9.0))
        data = backend.values(TABLE)[NAME].data
    backend.put(TABLE, NAME, data)
    for each in (pins, make("a")):
        until(lambda each=each: raises(each, why))
    there = backend.values(TABLE).get(NAME)
    assert (there and there.data) == data


def test_a_new_machine_takes_what_it_finds(make: Make, backend: Flaky) -> None:
    """The limit: who has never seen the pins can't know that there were later ones."""
    pins = make("a")
    write(pins, some())
    earlier = backend.values(TABLE)[NAME].data
    write(pins, some(2.0))
    backend.put(TABLE, NAME, earlier)
    assert of(make("b")) == some()


@pytest.mark.parametrize("what", ["deleted", "put back"])
def test_what_a_new_machine_makes_of_that_is_not_used_by_others(
    make: Make, backend: Flaky, what: str
) -> None:
    """Its counter is higher than that of what others have seen."""
    pins = make("a")
    write(pins, some())
    earlier = backend.values(TABLE)[NAME].data
    write(pins, some(2.0))
    backend.put(TABLE, NAME, None if what == "deleted" else earlier)
    write(make("new"), some(3.0))
    for each in (pins, make("a")):
        until(lambda each=each: raises(each, "was not made of the one that was seen here last"))
    pins.replace({"shop": some(4.0)}, [], {})
    until(lambda: of(make("new")) == of(pins) == some(4.0))


def test_a_machine_that_was_off_for_long_goes_on(make: Make) -> None:
    pins, off = make("a"), make("b")
    write(pins, some())
    assert of(off) == some()
    off.close()
    for number in range(EARLIER + 6):
        pins.change("shop", lambda known, at=float(number): (some(at), {}))
        if number == 3:
            again = make("b")
            assert of(again) == some(float(number))
            again.close()
    assert of(make("b")) == some(float(EARLIER + 5)), "more values came between than have a mark"


def test_texts_that_somebody_deletes_or_swaps_are_lost_and_written_again(make: Make, backend: Flaky) -> None:
    pins = make()
    write(pins, some())
    pins.change("other", lambda known: (some(), {DIGEST: OTHER_BODY}))
    [part] = [name for name in backend.values(PARTS) if name.startswith(NAME[:32])]
    [others] = [name for name in backend.values(PARTS) if name != part]
    for data in (None, backend.values(PARTS)[others].data):
        backend.put(PARTS, part, data)
        assert pins.texts("shop") == {}
        assert of(pins) == some()
        write(pins, some())
        assert pins.texts("shop") == {DIGEST: BODY}


def test_repair_begins_anew_for_all(make: Make, backend: Flaky) -> None:
    one, other = make("a"), make("b")
    write(one, some())
    until(lambda: other.load().servers or of(other))
    backend.put(TABLE, NAME, b"x")
    until(lambda: raises(one, "none"))
    assert one.replace({"shop": some(3.0)}, ["gone"], {"shop": {DIGEST: BODY}}) == ""
    assert of(one) == some(3.0)
    until(lambda: other.load().servers == {"shop": some(3.0)})
    assert other.texts("shop") == {DIGEST: BODY}
    one.replace({}, ["shop"], {})
    assert of(one) is None
    until(lambda: of(other) is None)
    write(other, some(4.0))
    until(lambda: of(one) == some(4.0))


# ---- the file of a machine


def in_file(tmp_path: Path, pins: ServerPins, machine: str = "a") -> PinFile:
    own = PinFile(str(tmp_path / machine / "config.json"))
    own.change("shop", lambda known: (pins, {DIGEST: BODY}))
    return own


def test_pins_in_the_file_are_brought_along(make: Make, tmp_path: Path) -> None:
    in_file(tmp_path, some(7.0))
    pins = make("a")
    assert of(pins) == some(7.0)
    assert pins.texts("shop") == {DIGEST: BODY}
    assert of(make("b")) == some(7.0)


def test_the_file_is_looked_at_once(make: Make, tmp_path: Path) -> None:
    in_file(tmp_path, held(rejected=True))
    pins = make("a")
    assert of(pins) == held(rejected=True)
    write(pins, some(2.0))
    assert of(make("a")) == some(2.0)


@pytest.mark.parametrize(
    ("shared", "own", "is_held"),
    [
        (some(), held(), True),
        (some(), held(rejected=True), True),
        (some(digest=OTHER), held(), False),
        (some(digest=OTHER), held(rejected=True), True),
        (held(), held(rejected=True), True),
        (held(OTHER), held(rejected=True), False),
        (
            ServerPins(
                1.0, ("tool",), some().pins, {}, (Event(5.0, "approved", "tool read", "", b"", DIGEST),)
            ),
            held(),
            False,
        ),
        (ServerPins(1.0, ("tool",)), held(), False),
    ],
)
def test_nothing_is_let_in_by_sharing_that_a_machine_held(
    make: Make, tmp_path: Path, shared: ServerPins, own: ServerPins, is_held: bool
) -> None:
    write(make("b"), shared)
    in_file(tmp_path, own)
    found = of(make("a"))
    assert found is not None
    assert (found.held.get("tool read") == own.held["tool read"]) == is_held
    if is_held:
        pin = found.pins.get("tool read")
        assert pin is None or pin.digest != DIGEST
    else:
        assert found == shared


def test_a_file_that_cannot_be_used_closes_the_gate_until_it_is_gone(make: Make, tmp_path: Path) -> None:
    own = in_file(tmp_path, some())
    Path(own.path).write_bytes(b"{")
    pins = make("a")
    with pytest.raises(PinsUnusableError, match="can't take over the pins of this machine") as caught:
        of(pins)
    assert not caught.value.repairable
    assert of(make("b")) is None
    os.unlink(own.path)
    until(lambda: not raises(pins, "can't take over"))
    assert of(pins) is None


# ---- size, keys, leftovers


def many(count: int, seed: int = 0) -> ServerPins:
    pins = {f"tool t{number}": Pin(os.urandom(32), os.urandom(32), 1.0) for number in range(count)}
    return ServerPins(float(seed), ("tool",), pins)


def test_many_pins_are_in_parts_which_go_with_them(make: Make, backend: Flaky) -> None:
    pins, other = make("a"), make("b")
    large = many(16_000)
    pins.change("shop", lambda known: (large, {}))
    assert len(backend.values(PARTS)) > 1
    assert of(other) == large
    [one, *_] = backend.values(PARTS)
    pins.change("shop", lambda known: (some(), {}))
    until(lambda: not backend.values(PARTS))
    until(lambda: of(other) == some())
    pins.change("shop", lambda known: (large, {}))
    backend.put(PARTS, one, None)
    assert raises(make("c"), "lacks a part")


def test_pins_that_are_too_large_are_not_written(
    make: Make, backend: Flaky, monkeypatch: pytest.MonkeyPatch
) -> None:
    pins = make()
    write(pins, some())
    monkeypatch.setattr(limits, "SHARED_PINS", 100_000)
    with pytest.raises(OSError, match="and 100,000 is the most"):
        pins.change("shop", lambda known: (many(1_000), {}))
    assert of(pins) == some()


def test_texts_are_bounded(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SHARED_PIN_TEXTS", 1_200)
    gone = ServerPins(1.0, ("tool",), {**some().pins, "tool old": Pin(b"old", b"", 1.0, 2.0)})
    pins = make()
    pins.change("shop", lambda known: (gone, {b"old": b'"%b"' % (b"x" * 200), DIGEST: BODY}))
    assert pins.texts("shop") == {DIGEST: BODY}


def test_keys_rotate(make: Make, backend: Flaky) -> None:
    write(make("a", OLD), some())
    rotated = make("b", NEW, OLD)
    assert of(rotated) == some()
    until(lambda: of(make("c", NEW)) == some())
    assert make("c", NEW).texts("shop") == {DIGEST: BODY}


def test_what_killed_writers_leave_is_deleted_later(make: Make, backend: Flaky) -> None:
    pins = make("a", times=Times(poll=0.02, sweep=0.05))
    write(pins, some())
    [mine] = backend.values(PARTS)
    left = f"{NAME[:32]}.{'0' * 64}"
    strange = f"{'0' * 32}.{'0' * 64}"
    for name in (left, strange):
        backend.put(PARTS, name, b"x")
    until(lambda: left not in backend.values(PARTS))
    assert {mine, strange} == set(backend.values(PARTS))
