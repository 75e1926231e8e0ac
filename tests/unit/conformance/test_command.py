"""Signals that arrive while a package manager is being started."""

import signal
import threading
from collections.abc import Iterator

import pytest
from mcpzip_conformance.installing.command import signals_deferred


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """The signals whose handler has run; that of SIGINT raises KeyboardInterrupt, too."""
    heard: list[int] = []

    def handler(number: int, frame: object) -> None:
        heard.append(number)
        if number == signal.SIGINT:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, handler) for number in (signal.SIGINT, signal.SIGTERM)}
    yield heard
    for number, former in before.items():
        signal.signal(number, former)


def test_handlers_run_after_the_block(heard: list[int]) -> None:
    during = []

    def work() -> None:
        with signals_deferred():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)
            during.append([*heard])

    with pytest.raises(KeyboardInterrupt):
        work()
    assert during == [[]]
    assert heard == [signal.SIGINT, signal.SIGTERM]  # though the first one raises


def test_handlers_run_after_a_block_that_fails(heard: list[int]) -> None:
    def work() -> None:
        with signals_deferred():
            signal.raise_signal(signal.SIGTERM)
            raise OSError("not there")

    with pytest.raises(OSError, match="not there"):
        work()
    assert heard == [signal.SIGTERM]


def test_handlers_are_as_before(heard: list[int]) -> None:
    before = {number: signal.getsignal(number) for number in signal.valid_signals()}
    with signals_deferred():
        assert signal.getsignal(signal.SIGTERM) != before[signal.SIGTERM]
    assert {number: signal.getsignal(number) for number in signal.valid_signals()} == before
    signal.raise_signal(signal.SIGTERM)
    assert heard == [signal.SIGTERM]


def test_other_threads_change_no_handler(heard: list[int]) -> None:
    before, inside = signal.getsignal(signal.SIGTERM), []

    def work() -> None:
        with signals_deferred():
            inside.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert inside == [before]
