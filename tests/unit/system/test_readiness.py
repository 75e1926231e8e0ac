"""Waiting for descriptors, of whatever number."""

import os
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from mcpzip.system import readiness
from mcpzip.system.readiness import wait

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes can't be watched there")


@pytest.fixture(params=[wait, readiness._poll])
def waiting(request: pytest.FixtureRequest) -> Callable[..., tuple[list[object], list[object]]]:
    return request.param


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def pipe(stack: ExitStack) -> tuple[int, int]:
    ends = os.pipe()
    for end in ends:
        stack.callback(os.close, end)
    return ends


def test_what_is_ready_is_returned_as_it_was_given(
    waiting: Callable[..., tuple[list[object], list[object]]], stack: ExitStack
) -> None:
    (empty, room), (full, _) = pipe(stack), pipe(stack)
    one, other = (stack.enter_context(end) for end in socket.socketpair())
    assert waiting([empty, full, one], (), 0) == ([], [])
    os.write(_, b"x")
    other.send(b"x")
    assert waiting([empty, full, one], [room, one], 1) == ([full, one], [room, one])
    assert waiting((), [other], None) == ([], [other])


def test_the_other_end_that_was_closed_is_news(
    waiting: Callable[..., tuple[list[object], list[object]]], stack: ExitStack
) -> None:
    (reading, closed), (gone, writing) = os.pipe(), os.pipe()
    stack.callback(os.close, reading)
    stack.callback(os.close, writing)
    os.close(closed)
    os.close(gone)
    assert waiting([reading], [writing], None) == ([reading], [writing])


def test_a_number_above_1023_is_watched(stack: ExitStack) -> None:
    import fcntl
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 1_100:
        pytest.skip("so many descriptors are not allowed here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 1_100), hard))
    stack.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
    reading, writing = pipe(stack)
    high = fcntl.fcntl(reading, fcntl.F_DUPFD_CLOEXEC, 1_030)
    stack.callback(os.close, high)
    assert wait([high], [writing], 0) == ([], [writing])
    os.write(writing, b"x")
    assert wait([high], (), None) == ([high], [])
