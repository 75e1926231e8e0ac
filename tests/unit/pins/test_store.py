"""The file of pins: what makes it unusable, and that nothing in it is lost."""

import json
import os
import stat
import threading
import time
from pathlib import Path

import pytest

from mcpzip.model import limits
from mcpzip.model.surface import Item
from mcpzip.pins import store as pin_store
from mcpzip.pins.digests import item_digest
from mcpzip.pins.record import Pin, ServerPins
from mcpzip.pins.store import Decide, PinFile, PinsUnusableError, text_of

BODY = b'{"name":"read"}'
DIGEST = item_digest(Item("tool", "read", BODY))


@pytest.fixture
def config(tmp_path: Path) -> str:
    return str(tmp_path / "config.json")


def some(at: float = 1.0) -> ServerPins:
    return ServerPins(at, ("tool",), {"tool read": Pin(DIGEST, b"raw", at)})


def write(store: PinFile, server: str = "a", pins: ServerPins | None = None) -> None:
    with store.changing() as known:
        store.write(known, server, pins or some(), {DIGEST: BODY})


def test_what_is_written_is_read(config: str) -> None:
    store = PinFile(config)
    assert store.load().servers == {}
    assert not store.existed()
    write(store)
    write(store, "b@/project/.mcpzip.json")
    again = PinFile(config)
    assert again.load().servers == {"a": some(), "b@/project/.mcpzip.json": some()}
    assert again.load().counter == 2
    assert again.existed()
    assert text_of(again.texts("a"), "tool read", DIGEST) == BODY
    assert text_of(again.texts("b@/project/.mcpzip.json"), "tool read", DIGEST) == BODY


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_only_its_owner_can_read_it(config: str) -> None:
    store = PinFile(config)
    write(store)
    files = [path for path in Path(store.path).parent.iterdir() if path.suffix == ".json"]
    assert len(files) == 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "damaged"),
        (b'{"format":"mcpzip-pins","version":1,"coun', "damaged"),
        (b'{"format":"mcpzip-pins","version":1,"counter":1,"servers":{"a":1}}', "damaged"),
        (b'{"format":"mcpzip-snapshot","version":1,"counter":9,"servers":{}}', "isn't a file of pins"),
        (b'{"format":"mcpzip-pins","version":99,"counter":9,"servers":{}}', "newer version"),
        (b'{"format":"mcpzip-pins","version":1,"counter":0,"servers":{}}', "is an earlier one"),
        (b'{"format":"mcpzip-pins","version":1,"counter":1,"servers":{}}', "was changed by another program"),
        (None, "is gone"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error(config: str, content: bytes | None, why: str) -> None:
    write(PinFile(config))
    path = Path(PinFile(config).path)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    store = PinFile(config)
    with pytest.raises(PinsUnusableError, match=why):
        store.load()
    with pytest.raises(PinsUnusableError, match=why), store.changing():
        pass
    assert store.existed()
    assert (path.read_bytes() if path.exists() else None) == content, "it is left as it is"


def test_a_file_that_is_too_large_is_an_error(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write(PinFile(config))
    monkeypatch.setattr(limits, "PINS", 10)
    with pytest.raises(PinsUnusableError, match="can't be read"):
        PinFile(config).load()
    with pytest.raises(PinsUnusableError), PinFile(config).changing():
        pass


def test_an_earlier_file_put_back(config: str) -> None:
    """Case 26: rolled back."""
    store = PinFile(config)
    write(store)
    earlier = Path(store.path).read_bytes()
    write(store, "b")
    Path(store.path).write_bytes(earlier)
    with pytest.raises(PinsUnusableError, match=r"its counter is 1, and was 2"):
        store.load()


@pytest.mark.parametrize("lost", [b"", b"{", None])
def test_without_the_counter_the_file_counts(config: str, lost: bytes | None, tmp_path: Path) -> None:
    """The cache folder can be deleted at any time."""
    write(PinFile(config))
    counter = tmp_path / "cache" / "config.json.pins.json"
    if lost is None:
        counter.unlink()
    else:
        counter.write_bytes(lost)
    assert PinFile(config).load().servers == {"a": some()}


def test_a_writer_that_died_before_the_counter(config: str, tmp_path: Path) -> None:
    write(PinFile(config))
    counter = tmp_path / "cache" / "config.json.pins.json"
    before = counter.read_bytes()
    write(PinFile(config), "b")
    counter.write_bytes(before)
    assert PinFile(config).load().counter == 2


def test_a_failed_write_loses_nothing(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Case 26: half-written. A full disk fails after the temporary file was begun."""
    store = PinFile(config)
    write(store)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            write(store, "b")
    for each in (store, PinFile(config)):
        assert each.load().servers == {"a": some()}
    write(store, "b")
    assert PinFile(config).load().servers == {"a": some(), "b": some()}


def test_two_processes_at_once(config: str) -> None:
    """Each store stands for a process: it has its own lock and its own cached file."""
    stores = [PinFile(config) for _ in range(4)]
    go = threading.Barrier(len(stores))

    def work(number: int) -> None:
        go.wait()
        for turn in range(5):
            write(stores[number], f"server-{number}-{turn}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(stores))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(PinFile(config).load().servers) == 20
    assert PinFile(config).load().counter == 20


def test_a_text_that_was_changed_is_not_used(config: str) -> None:
    store = PinFile(config)
    write(store)
    texts = next(path for path in Path(store.path).parent.iterdir() if path.name.endswith(".texts.json"))
    content = json.loads(texts.read_bytes())
    content["texts"][DIGEST.hex()]["description"] = "harmless"
    texts.write_text(json.dumps(content))
    assert text_of(store.texts("a"), "tool read", DIGEST) is None
    texts.write_bytes(b"{")
    assert store.texts("a") == {}


def test_texts_are_bounded(config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = ServerPins(1.0, ("tool",), {**some().pins, "tool old": Pin(b"old", b"", 1.0, 2.0)})
    monkeypatch.setattr(limits, "PIN_TEXTS", 1_200)
    store = PinFile(config)
    with store.changing() as known:
        store.write(known, "a", gone, {b"old": b'"%b"' % (b"x" * 200), DIGEST: BODY})
    assert store.texts("a") == {DIGEST: BODY}


def test_a_new_file_keeps_the_broken_one(config: str) -> None:
    store = PinFile(config)
    write(store)
    Path(store.path).write_bytes(b"{")
    backup = store.replace({"b": some()}, ["a"], {"b": {DIGEST: BODY}})
    assert Path(backup).read_bytes() == b"{"
    again = PinFile(config)
    assert again.load().servers == {"b": some()}
    assert again.load().counter == 2
    assert text_of(again.texts("b"), "tool read", DIGEST) == BODY


def test_what_waits_for_the_file_is_written_at_once(config: str) -> None:
    """The first of four threads has the file until the others wait for it."""
    store, at_it, go_on = PinFile(config), threading.Event(), threading.Event()
    failed: list[Exception] = []

    def first(known: ServerPins | None) -> tuple[ServerPins, dict[bytes, bytes]]:
        at_it.set()
        go_on.wait()
        return some(), {DIGEST: BODY}

    def refuses(known: ServerPins | None) -> None:
        raise ZeroDivisionError

    def change(key: str, decide: Decide) -> None:
        try:
            store.change(key, decide)
        except ZeroDivisionError as error:
            failed.append(error)

    threads = [threading.Thread(target=change, args=("a", first))]
    threads[0].start()
    assert at_it.wait(30)
    for key, decide in (("b", lambda known: (some(2.0), {})), ("c", lambda known: None), ("d", refuses)):
        threads.append(threading.Thread(target=change, args=(key, decide)))
        threads[-1].start()
    while len(store._waiting) < 3:
        time.sleep(0.001)
    go_on.set()
    for thread in threads:
        thread.join(30)
    again = PinFile(config).load()
    assert again.servers == {"a": some(), "b": some(2.0)}
    assert again.counter == 2, "one write for the first, one for all others"
    assert len(failed) == 1
    assert text_of(store.texts("a"), "tool read", DIGEST) == BODY


def test_a_write_that_fails_is_an_error_for_those_who_changed_something(
    config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pin_store, "write_state", fail)
    store = PinFile(config)
    store.change("a", lambda known: None)
    with pytest.raises(OSError, match="No space"):
        store.change("a", lambda known: (some(), {}))
    monkeypatch.undo()
    store.change("a", lambda known: (some(), {}))
    assert PinFile(config).load().servers == {"a": some()}
