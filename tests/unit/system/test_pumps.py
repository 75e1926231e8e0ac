"""Standard streams as sockets: nothing is lost or reordered, and what was not taken is left to others."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from mcpzip.system.pumps import InputPump, OutputPump
from mcpzip.system.readiness import wait

LONG = bytes(range(256)) * 20_000


@contextmanager
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    ends = [reading, writing]
    try:
        yield reading, writing
    finally:
        for end in ends:
            try:
                os.close(end)
            except OSError:
                pass  # the test, or a pump, has closed it


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data[: 1 << 16]) :]
    os.close(descriptor)


def all_of(pump: InputPump) -> bytes:
    found = b""
    while True:
        wait([pump.fileno()], (), 20)
        if not (data := pump.read()):
            return found
        found += data


def test_input_arrives_in_order_and_ends() -> None:
    with pipe() as (reading, writing):
        pump = InputPump(os.dup(reading))
        with pytest.raises(BlockingIOError):
            pump.read()
        sender = threading.Thread(target=write_all, args=(os.dup(writing), LONG))
        sender.start()
        os.close(writing)
        assert all_of(pump) == LONG
        sender.join()
        pump.close()


def test_what_was_not_taken_is_handed_back_in_order() -> None:
    with pipe() as (reading, writing), pipe() as (instead, _):
        pump = InputPump(os.dup(reading))
        os.write(writing, b"first ")
        wait([pump.fileno()], (), 20)
        assert pump.read() == b"first "
        os.write(writing, b"second ")
        wait([pump.fileno()], (), 20)
        pump.hand_back(instead)
        os.write(writing, b"third")
        os.close(writing)
        found = b""
        while data := os.read(instead, 100):
            found += data
        assert found == b"second third"
        pump.close()


def test_output_is_all_written_before_the_end() -> None:
    with pipe() as (reading, writing):
        pump = OutputPump(writing)
        left, found = LONG, b""
        while left:
            _, writable = wait((), [pump.connection], 0)
            if writable:
                left = left[pump.write(left) :]
            if wait([reading], (), 0)[0]:
                found += os.read(reading, 1 << 20)
        pump.connection.shutdown(socket.SHUT_WR)
        while len(found) < len(LONG):
            found += os.read(reading, 1 << 20)
        pump.finish(20)
        assert not pump._thread.is_alive()
        assert found == LONG
        pump.close()


def test_output_that_nobody_reads_is_waited_for_no_longer_than_asked() -> None:
    with pipe() as (reading, writing):
        pump = OutputPump(writing)
        while wait((), [pump.connection], 0.05)[1]:
            pump.write(LONG)
        pump.finish(0.01)
        assert pump._thread.is_alive()
        os.close(reading)
        pump._thread.join(20)
        pump.close()
        assert not pump._thread.is_alive()


def test_a_reader_that_has_left_is_noticed() -> None:
    with pipe() as (reading, writing):
        pump = OutputPump(writing)
        os.close(reading)
        pump.write(b"x")
        pump._thread.join(20)
        with pytest.raises(BrokenPipeError):
            pump.write(b"x")
        pump.close()
